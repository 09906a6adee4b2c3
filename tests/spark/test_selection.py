"""Topics, partitions and paths that match nothing: errors that say what there is, without a JVM."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from kwire.spark.options import parse
from kwire.spark.partitions import Pushed, tasks
from kwire.spark.schema import source_schema
from kwire.spark.source import KwireDataSource
from kwire.spark.stream import SegmentStreamReader
from tests.capture.making import write_pcap
from tests.spark.logs import batch, segment
from tests.spark.test_modes import rows_of

pytestmark = pytest.mark.quick

ALLOWED = r' \(option allowEmpty "true" allows it\)$'


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for place in ("orders-0", "orders-1", "orders-7", "refunds-0", "users-2"):
        segment(tmp_path / "logs" / place, 0, batch(0))
    return tmp_path / "logs"


def planned(path: object, **options: str) -> list[str]:
    made = tasks(parse({"path": str(path), **options}), Pushed())
    return sorted({f"{part.file.topic}-{part.file.partition}" for task in made for part in task.ranges})


def test_what_there_is(logs: Path) -> None:
    assert planned(logs, topic="users,refunds") == ["refunds-0", "users-2"]
    assert planned(logs, topic="orders", partition="7,0") == ["orders-0", "orders-7"]
    assert planned(logs / "orders-0" / f"{0:020d}.log", topic="orders") == ["orders-0"]
    both = '{"users": {"2": 0}, "orders": {"0": 0}}'  # one JSON for several reads
    assert planned(logs, topic="users", startingOffsets=both) == ["users-2"]


@pytest.mark.parametrize(("options", "text"), [
    ({"topic": "order"}, r'option topic: no topic "order" in {logs}; did you mean "orders"\?; '
                         "there are 3 topics: orders, refunds, users"),
    ({"topic": "orders,x,y"}, 'no topic "x", "y" in {logs}; there are 3 topics: orders, refunds, users'),
    ({"partition": "0,4"}, 'option partition: no partition "4" in {logs}; there are 4 partitions: 0, 1, 2, 7'),
    ({"topic": "orders", "partition": "2"}, 'no partition "2" in {logs}; there are 3 partitions: 0, 1, 7'),
    ({"startingOffsets": '{{"order": {{"0": 5}}}}'},
     "option startingOffsets: no partition order-0 in {logs}; there are 5 partitions: orders-0, orders-1"),
    ({"endingOffsets": '{{"orders": {{"2": 5}}}}'}, "option endingOffsets: no partition orders-2 in"),
    ({"topic": "orders", "startingOffsets": '{{"order": {{"0": 5}}}}'},
     "option startingOffsets: none of its partitions is read; there are 3 partitions: orders-0, orders-1, orders-7"),
])  # fmt: skip
def test_a_selection_without_a_match_names_what_there_is(logs: Path, options: dict[str, str], text: str) -> None:
    given = {name: value.replace("{{", "{").replace("}}", "}") for name, value in options.items()}
    with pytest.raises(ValueError, match=text.format(logs=logs) + ".*" + ALLOWED):
        planned(logs, **given)
    planned(logs, **given, allowEmpty="true")


def test_at_most_ten_names_and_their_number(tmp_path: Path) -> None:
    for number in range(25):
        segment(tmp_path / f"t{number:02}-0", 0, batch(0))
    with pytest.raises(ValueError, match=r"there are 25 topics: t00, t01, .*t09, \.\.\. \("):
        planned(tmp_path, topic="zzz")


def test_paths_without_a_match_say_what_is_beside_them(logs: Path) -> None:
    here = "there are 5 entries: orders-0, orders-1, orders-7, refunds-0, users-2"
    near = r'\(did you mean "orders-0"\?\)'
    for path, text in (
        (logs / "order-0", f'{logs}/order-0: no such file or folder {near}; in {logs} {here}'),
        (logs / "deep" / "er", f"{logs}/deep/er: no such file or folder; in {logs} {here}"),
        (f"{logs}/order-*", rf"{logs}/order-\*: no file matches; in {logs} {here}"),
        (f"file:{logs}/{{orders,x}}-0", f"{logs}/x-0: no such file or folder; in {logs} {here}"),
        (f"{logs}/orders-0,{logs}/x-0", f"{logs}/x-0: no such file or folder; in {logs} {here}"),
    ):
        with pytest.raises(FileNotFoundError, match=text + ALLOWED):
            planned(path)
    assert planned(f"{logs}/orders-0,{logs}/x-0", allowEmpty="true") == ["orders-0"]
    assert planned(f"{logs}/{{orders-1,x}}*", allowEmpty="true") == ["orders-1"]
    assert planned(logs / "x", allowEmpty="true") == []


def test_a_folder_without_segments_says_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.index").write_bytes(b"")
    text = rf"{tmp_path}/t-0: no segments \(\*\.log, .*\); in {tmp_path}/t-0 there is 1 entry: {0:020d}\.index"
    for options in ({}, {"topic": "t"}):
        with pytest.raises(FileNotFoundError, match=text + ALLOWED):
            planned(tmp_path / "t-0", **options)
    assert planned(tmp_path, allowEmpty="true") == []


def test_names_that_are_shown_are_printable(tmp_path: Path) -> None:
    segment(tmp_path / "a\x1b[2J-0", 0, batch(0))
    with pytest.raises(ValueError, match="there is 1 topic: a") as caught:
        planned(tmp_path, topic="zzz")
    assert str(caught.value).isprintable()


def test_what_is_beside_a_url_is_told_without_its_secrets() -> None:
    fsspec = importlib.import_module("fsspec")
    store = fsspec.filesystem("memory")
    for place in ("t-0", "u-0"):
        store.pipe_file(f"/selection/logs/{place}/{0:020d}.log", batch(0))
    try:
        assert planned("memory://selection/logs") == ["t-0", "u-0"]
        for path in ("x?sig=hunter2", "x?sig=hunter2/hunter2", "x-*,memory://selection/logs/x?sig=hunter2"):
            with pytest.raises(FileNotFoundError) as gone:
                planned(f"memory://selection/logs/{path}")
            text = str(gone.value)
            assert "in memory://selection/logs there are 2 entries: t-0, u-0" in text and "hunter2" not in text
        with pytest.raises(ValueError, match='no topic "x" in memory://selection/logs; there are 2 topics: t, u'):
            planned("memory://selection/logs", topic="x")
    finally:
        store.rm("/selection", recursive=True)


def test_a_file_outside_of_a_partition_folder_takes_any_label(tmp_path: Path) -> None:
    (tmp_path / "lone.bin").write_bytes(batch(0))
    offsets = '{"x": {"4": 1}}'
    assert planned(tmp_path / "lone.bin", topic="x", partition="4", startingOffsets=offsets) == ["x-4"]
    assert planned(tmp_path / "lone.bin", topic="x,y") == ["None-None"]


def test_a_new_stream_looks_too_and_a_running_one_does_not(logs: Path) -> None:
    reader = SegmentStreamReader(parse({"path": str(logs), "topic": "order"}), source_schema(False, False))
    with pytest.raises(ValueError, match='no topic "order" in'):
        reader.initialOffset()
    assert reader.latestOffset({}) == {"v": 4, "topics": {}}
    allowed = parse({"path": str(logs), "topic": "order", "allowEmpty": "true"})
    assert SegmentStreamReader(allowed, source_schema(False, False)).initialOffset() == {"v": 4, "topics": {}}


def test_a_stream_that_cannot_be_read_says_so_at_its_first_call(logs: Path) -> None:
    source = KwireDataSource({"path": str(logs), "endingOffsets": "latest"})
    refused = source.streamReader(source.schema())
    for call in (refused.initialOffset, lambda: refused.latestOffset({}, None), lambda: refused.partitions({}, {})):
        with pytest.raises(ValueError, match="option endingOffsets applies to batch reads only, not to streams"):
            call()


def test_a_spark_without_limits_for_streams_refuses_maxbytespertrigger(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = KwireDataSource({"path": str(logs), "maxBytesPerTrigger": "1m"})
    monkeypatch.setattr("kwire.spark.source.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"option maxBytesPerTrigger: Spark \S+ gives a Python source no limit"):
        source.streamReader(source.schema()).initialOffset()
    monkeypatch.setattr("kwire.spark.source.find_spec", lambda name: name)
    assert source.streamReader(source.schema()).initialOffset()["topics"]


def test_captures(tmp_path: Path) -> None:
    write_pcap(tmp_path / "a.pcap", b"")
    for path in (tmp_path / "b.pcap", f"{tmp_path}/{{a,b}}.pcap"):
        with pytest.raises(FileNotFoundError, match="no such capture"):
            rows_of(path, kind="capture")
        assert rows_of(path, kind="capture", allowEmpty="true", columns="outcome") == []
