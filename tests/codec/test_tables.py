"""Columns as tables: in terminals and notebooks, and as values of pandas, polars and Python."""

from __future__ import annotations

import sys
import zipfile
from datetime import UTC, datetime
from typing import Any

import pyarrow
import pytest

import kwire
from kwire import messages
from tools.places import VECTORS

pytestmark = pytest.mark.quick

FIELDS = (
    "offset", "timestamp", "timestamp_type", "key", "value", "headers", "sequence", "producer_id", "producer_epoch",
    "partition_leader_epoch", "batch_position", "source", "codec", "is_control",
)  # fmt: skip


def batch(rows: int, **keywords: Any) -> bytes:
    return kwire.build_batch([
        (1_700_000_000_000 + row, None if row % 2 else b"key %d" % row, b"<b>%d</b>" % row, [("h", b"x"), ("n", None)])
        for row in range(rows)
    ], **keywords)  # fmt: skip


def test_a_small_table() -> None:
    columns = kwire.columns(batch(2, base_offset=99), ["offset", "timestamp", "key", "value"])
    assert repr(columns) == (
        "RecordColumns: 2 rows, 4 columns\n"
        "offset  timestamp                key       value\n"
        "    99  2023-11-14 22:13:20.000  b'key 0'  b'<b>0</b>'\n"
        "   100  2023-11-14 22:13:20.001  null      b'<b>1</b>'"
    )
    assert columns._repr_html_() == (
        "<table><caption>RecordColumns: 2 rows, 4 columns</caption>"
        "<thead><tr><th>offset</th><th>timestamp</th><th>key</th><th>value</th></tr></thead><tbody>"
        "<tr><td>99</td><td>2023-11-14 22:13:20.000</td><td>b&#x27;key 0&#x27;</td>"
        "<td>b&#x27;&lt;b&gt;0&lt;/b&gt;&#x27;</td></tr>"
        "<tr><td>100</td><td>2023-11-14 22:13:20.001</td><td>null</td>"
        "<td>b&#x27;&lt;b&gt;1&lt;/b&gt;&#x27;</td></tr></tbody></table>"
    )
    assert repr(kwire.columns(b"", ["key"])) == "RecordColumns: 0 rows, 1 column\nkey"
    assert repr(kwire.columns(batch(1), [])) == "RecordColumns: 1 row, 0 columns"
    bad = kwire.columns(batch(1) + b"x" * 99, ["offset"], errors="keep")
    assert repr(bad) == "RecordColumns: 1 row, 1 column, 1 bad\noffset\n     0"


@pytest.mark.parametrize("views", [False, True])
def test_a_large_table_is_bounded(views: bool) -> None:
    data = [batch(1000), kwire.build_batch([(1, b"\x1b[31m" * 1000, b"v" * 10_000_000, [("h" * 999, b"")] * 999)])]
    columns = kwire.columns(data, FIELDS, views=views)
    text = repr(columns)
    lines = text.split("\n")
    assert len(lines) == 1 + 1 + 10 + 1 and lines[7] == "…" and len(text) < 5000
    assert text.isprintable() is False and text.replace("\n", "").isprintable()
    assert len(columns._repr_html_()) < 10_000 and columns._repr_html_().count("<tr>") == 12
    assert lines[1].endswith("…")  # two columns are left out


@pytest.mark.parametrize("views", [False, True])
def test_values_are_those_of_pyarrow(views: bool) -> None:
    files = zipfile.ZipFile(VECTORS / "records.zip")
    data = [files.read(name) for name in sorted(files.namelist()) if files.getinfo(name).file_size < 10_000]
    columns = kwire.columns(data, FIELDS, views=views, control=True, errors="keep")
    assert len(columns) > 500
    assert columns.to_pylist() == pyarrow.table(columns).to_pylist()
    for name in FIELDS:
        assert columns[name].to_pylist() == pyarrow.chunked_array(columns[name]).to_pylist(), name


def test_values_of_messages_are_those_of_pyarrow() -> None:
    topic = messages.CreateTopicsRequest.CreatableTopic(name="é\x1b", num_partitions=3)
    payload = kwire.encode(messages.CreateTopicsRequest(topics=[topic], timeout_ms=7), 5)
    columns = kwire.columns_of("CreateTopicsRequest", 5, [payload, payload])
    assert columns.to_pylist() == pyarrow.table(columns).to_pylist()
    flat = kwire.columns_of("CreateTopicsRequest", 5, [payload], ["timeout_ms", "topics.name"])
    assert flat.to_pylist() == [{"timeout_ms": 7, "topics.name": "é\x1b"}]
    assert repr(flat) == "MessageColumns: 1 row, 2 columns\ntimeout_ms  topics.name\n         7  é\\x1b"
    assert "<td>é\\x1b</td>" in flat._repr_html_()
    assert flat.to_pandas().to_dict("list") == flat.to_polars().to_dict(as_series=False)


def test_timestamps_that_no_datetime_holds_are_numbers() -> None:
    stamps = [-1, (1 << 63) - 1, -(1 << 63), 253_402_300_799_999, 253_402_300_800_000]
    columns = kwire.columns(b"".join(kwire.build_batch([(stamp, None, b"")]) for stamp in stamps), ["timestamp"])
    assert columns["timestamp"].to_pylist() == [
        datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), (1 << 63) - 1, -(1 << 63),
        datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC), 253_402_300_800_000,
    ]
    assert str((1 << 63) - 1) in repr(columns)


def test_pandas_and_polars() -> None:
    columns = kwire.columns(batch(3), ["offset", "timestamp", "value", "codec"])
    frame = columns.to_pandas()
    assert list(frame.columns) == list(columns.names) and frame["offset"].tolist() == [0, 1, 2]
    assert str(frame["timestamp"].dtype) == "datetime64[ms, UTC]"
    assert columns.to_polars()["value"].to_list() == [b"<b>0</b>", b"<b>1</b>", b"<b>2</b>"]


@pytest.mark.parametrize(("method", "missing", "install"), [
    ("to_pandas", "pyarrow", "pip install pandas 'kwire[arrow]'"),
    ("to_pandas", "pandas", "pip install pandas 'kwire[arrow]'"),
    ("to_polars", "polars", "pip install polars"),
    ("to_numpy", "numpy", "pip install numpy"),
])  # fmt: skip
@pytest.mark.parametrize("broken", ["", "libx.so: failed to map segment from shared object"])
def test_a_missing_library(
    monkeypatch: pytest.MonkeyPatch, method: str, missing: str, install: str, broken: str
) -> None:
    pytest.importorskip(missing)
    columns = kwire.columns(batch(1), ["value"])
    table: Any = columns["value"] if method == "to_numpy" else columns

    class Absent:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == missing:
                raise ImportError(broken) if broken else ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.delitem(sys.modules, missing)
    monkeypatch.setattr(sys, "meta_path", [Absent, *sys.meta_path])
    with pytest.raises(ImportError) as caught:
        getattr(table, method)()
    assert (broken or install) in str(caught.value)
