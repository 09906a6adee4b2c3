"""Filters that Spark pushes down (since 4.1; Spark 4.0 has none, so there is nothing to test with it)."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import datasource

from kwire.spark.partitions import Pushed
from kwire.spark.pushdown import push
from kwire.spark.schema import source_schema
from kwire.spark.source import KwireDataSource
from kwire.storage.reading.bounds import Bounds

pytestmark = pytest.mark.quick

NOON = datetime(2024, 1, 1, 12, 0, 0, 500, UTC)
NOON_MS = 1704110400000
CASES: list[Any] = []
if hasattr(datasource, "EqualTo"):
    from pyspark.sql.datasource import (
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        LessThan,
        LessThanOrEqual,
        Not,
    )  # fmt: skip

    CASES = [
        (GreaterThan(("offset",), 4), Pushed(bounds=Bounds(start_offset=5)), True),
        (GreaterThanOrEqual(("offset",), 4), Pushed(bounds=Bounds(start_offset=4)), True),
        (LessThan(("offset",), 4), Pushed(bounds=Bounds(end_offset=4)), True),
        (LessThanOrEqual(("offset",), 4), Pushed(bounds=Bounds(end_offset=5)), True),
        (In(("offset",), [9, 4]), Pushed(bounds=Bounds(4, 10)), False),
        (In(("offset",), []), Pushed(), False),
        (In(("partition",), [1, 2]), Pushed(partitions=frozenset({1, 2})), True),
        (EqualTo(("topic",), "a"), Pushed(topics=frozenset({"a"})), True),
        (EqualTo(("timestamp",), NOON), Pushed(bounds=Bounds(None, None, NOON_MS, NOON_MS + 1)), False),
        (GreaterThan(("timestamp",), NOON), Pushed(bounds=Bounds(start_timestamp=NOON_MS)), False),
        (LessThanOrEqual(("timestamp",), NOON), Pushed(bounds=Bounds(end_timestamp=NOON_MS + 1)), False),
        (GreaterThan(("partition",), 1), Pushed(), False),
        (IsNotNull(("offset",)), Pushed(), False),
        (EqualTo(("headers", "key"), "a"), Pushed(), False),
        (Not(EqualTo(("offset",), 4)), Pushed(), False),
    ]


if CASES:

    @pytest.mark.parametrize(("one", "left", "exact"), CASES)
    def test_pushed_filters(one: Any, left: Pushed, exact: bool) -> None:
        assert push(Pushed(), one) == (left, exact)

    def test_pushed_filters_narrow_each_other() -> None:
        pushed = push(Pushed(), GreaterThan(("offset",), 4))[0]
        pushed = push(pushed, LessThan(("offset",), 9))[0]
        assert pushed.bounds == Bounds(5, 9)
        assert push(pushed, LessThan(("offset",), 5))[0].bounds.empty

    def test_reader_pickles_with_its_pushed_filters(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        # of the Spark in which a scan keeps what was pushed to itself
        monkeypatch.setattr(datasource.DataSourceReader, "pushLimit", lambda self, limit: False, raising=False)
        options = {"path": str(tmp_path)}
        reader = KwireDataSource({**options, "pushFilters": "true"}).reader(source_schema(False, False))
        # what Spark asks while pushdown is off
        assert reader.pushFilters.__func__ is datasource.DataSourceReader.pushFilters
        filters = [EqualTo(("offset",), 7), EqualTo(("key",), b"k")]
        assert list(reader.pushFilters(filters)) == filters[1:]
        assert pickle.loads(pickle.dumps(reader)).pushed.bounds == Bounds(7, 8)
        safe = KwireDataSource(options).reader(source_schema(False, False))
        assert list(safe.pushFilters(filters)) == filters and safe.pushed == Pushed()


def test_pushfilters_is_refused_where_spark_keeps_what_was_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(datasource.DataSourceReader, "pushLimit", raising=False)
    with pytest.raises(ValueError, match=r"pushFilters: Spark \S+ would give a query the rows of an earlier one"):
        KwireDataSource({"path": "x", "pushFilters": "true"}).schema()
    monkeypatch.setattr(datasource.DataSourceReader, "pushLimit", lambda self, limit: False, raising=False)
    assert "offset" in KwireDataSource({"path": "x", "pushFilters": "true"}).schema().names
