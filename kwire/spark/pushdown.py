"""Filters that Spark pushes down, as bounds on offsets, timestamps, topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyspark
from pyspark.sql.datasource import DataSourceReader

from kwire.spark.partitions import Pushed
from kwire.storage.reading.bounds import Bounds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RECORDS = {name: name for name in ("topic", "partition", "offset", "timestamp")}
# kinds "offsets" and "transactions", whose topic, partition and offset are not those of the record
_INTERNAL = {"log_partition": "partition", "log_offset": "offset", "log_timestamp": "timestamp"}
_ORDER = ("EqualTo", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual")


def check_pushdown() -> None:
    """Raise ValueError for the option pushFilters on a Spark that gives a query the rows of an earlier one.

    Spark 4.1 to 4.3 keep the plan of a read that was narrowed by the filters of one query (readInfo of
    PythonDataSourceV2, set by PythonScanBuilder.pushFilters), and give it to every later use of the DataFrame that has
    no filters to push, and to the other half of a union. The Spark in which each scan has a plan of its own also
    pushes limits (SPARK-58551): by that it is known. Spark 4.0 pushes nothing to Python.
    """
    if not hasattr(DataSourceReader, "pushLimit"):
        raise ValueError(
            f"option pushFilters: Spark {pyspark.__version__} would give a query the rows of an earlier one on the "
            "same DataFrame; narrow the read with the options topic, partition, startingOffsets, endingOffsets, "
            "startingTimestamp and endingTimestamp instead")


class PushFilters:
    """The reader's pushFilters, as a callable attribute instead of a method.

    Spark 4.1 and newer refuse a reader that overrides the method while spark.sql.python.filterPushdown.enabled is
    false (the default), because a filter might get lost. Here none can: without pushdown Spark applies all filters
    itself. So __func__ is the base class's method, which is what Spark checks, and a call does the pushdown.

    It narrows the read only with the option pushFilters, which check_pushdown allows where it is safe.
    """

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)

    def __call__(self, filters: Iterable[Any]) -> Iterable[Any]:
        """Narrow the read; return the filters that Spark must still apply."""
        if not self.reader.options.push_filters:
            return list(filters)
        kept, names = [], pushed_columns(self.reader.options.kind)
        for condition in filters:
            pushed, exact = push(self.reader.pushed, condition, names)
            self.reader.pushed = pushed
            if not exact or self.reader.options.mode == "PERMISSIVE":
                kept.append(condition)
        return kept


def pushed_columns(kind: str) -> Mapping[str, str]:
    """Return the columns of a kind whose filters narrow the read, each with what it is in the log."""
    if kind == "records":
        return _RECORDS
    return {"offset": "offset", "timestamp": "timestamp"} if kind == "metadata" else _INTERNAL


def push(pushed: Pushed, condition: Any, columns: Mapping[str, str] = _RECORDS) -> tuple[Pushed, bool]:
    """Return pushed narrowed by one more filter, and whether Spark need not apply that filter any more."""
    attribute = getattr(condition, "attribute", None)
    if attribute is None or len(attribute) != 1:
        return pushed, False
    column, name = columns.get(attribute[0], ""), type(condition).__name__
    values: tuple[Any, ...] = condition.value if name == "In" else (getattr(condition, "value", None),)
    if name == "In":
        name = "EqualTo" if len(values) == 1 else "In"
    if not values or name not in (*_ORDER, "In") or any(value is None or isinstance(value, bool) for value in values):
        return pushed, False
    if column in ("topic", "partition"):
        return _push_label(pushed, column, name, values)
    if column == "offset" and all(isinstance(value, int) for value in values):
        return _bounded(pushed, _offsets(name, values)), name != "In"
    if column == "timestamp" and all(isinstance(value, datetime) and value.tzinfo for value in values):
        return _bounded(pushed, _timestamps(name, values)), False
    return pushed, False


def _push_label(pushed: Pushed, column: str, name: str, values: tuple[Any, ...]) -> tuple[Pushed, bool]:
    kind = str if column == "topic" else int
    if name not in ("EqualTo", "In") or not all(isinstance(value, kind) for value in values):
        return pushed, False
    if column == "topic":
        topics = frozenset(values) if pushed.topics is None else pushed.topics & frozenset(values)
        return Pushed(topics, pushed.partitions, pushed.bounds), True
    partitions = frozenset(values) if pushed.partitions is None else pushed.partitions & frozenset(values)
    return Pushed(pushed.topics, partitions, pushed.bounds), True


def _bounded(pushed: Pushed, bounds: Bounds) -> Pushed:
    return Pushed(pushed.topics, pushed.partitions, pushed.bounds.narrowed(bounds))


def _offsets(name: str, values: tuple[int, ...]) -> Bounds:
    least, most = min(values), max(values)
    if name in ("EqualTo", "In"):
        return Bounds(start_offset=least, end_offset=most + 1)
    return {
        "GreaterThan": Bounds(start_offset=least + 1),
        "GreaterThanOrEqual": Bounds(start_offset=least),
        "LessThan": Bounds(end_offset=most),
        "LessThanOrEqual": Bounds(end_offset=most + 1),
    }[name]


def _timestamps(name: str, values: tuple[datetime, ...]) -> Bounds:
    """Bounds in milliseconds, rounded outwards; Spark applies the filter again."""
    least = (min(values) - _EPOCH) // timedelta(milliseconds=1)
    most = (max(values) - _EPOCH) // timedelta(milliseconds=1) + 1
    if name in ("EqualTo", "In"):
        return Bounds(start_timestamp=least, end_timestamp=most)
    if name.startswith("Greater"):
        return Bounds(start_timestamp=least)
    return Bounds(end_timestamp=most)
