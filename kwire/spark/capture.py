"""kind = capture of the data source: exchanges of requests and responses out of captures, a task a capture."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kwire.capture import Exchange, Lost, captures, read_capture
from kwire.codec.json import to_json
from kwire.defaults import BATCH_ROWS
from kwire.errors import KwireError
from kwire.spark.schema import CORRUPT, arrow_schema
from kwire.storage.filesystem import is_url, plain
from kwire_c.printable import printable, storable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kwire.spark.options import Options

_MOST_TEXT = 16 << 20  # characters of JSON in one Arrow batch

COLUMNS: dict[str, spark.DataType] = {
    "capture": spark.StringType(),
    "connection": spark.LongType(),
    "client": spark.StringType(),
    "server": spark.StringType(),
    "client_id": spark.StringType(),
    "software": spark.StringType(),
    "timestamp": spark.TimestampType(),
    "response_timestamp": spark.TimestampType(),
    "api_key": spark.IntegerType(),
    "api_name": spark.StringType(),
    "version": spark.IntegerType(),
    "correlation_id": spark.IntegerType(),
    "outcome": spark.StringType(),
    "request_bytes": spark.LongType(),
    "response_bytes": spark.LongType(),
    "request": spark.StringType(),
    "response": spark.StringType(),
    CORRUPT: spark.StringType(),
}


def capture_schema(permissive: bool) -> StructType:
    """Return the columns where the user gives none: all, _corrupt_record in mode PERMISSIVE only."""
    names = [name for name in COLUMNS if permissive or name != CORRUPT]
    return spark.StructType([spark.StructField(name, COLUMNS[name]) for name in names])


def check_capture_schema(schema: StructType) -> None:
    """Refuse a user's schema with a column or a type that captures lack. Raises ValueError."""
    for field in schema.fields:
        known = COLUMNS.get(field.name)
        if known is None:
            raise ValueError(f'column "{field.name}" is unknown; there are {", ".join(COLUMNS)}')
        if field.dataType.simpleString() != known.simpleString():
            raise ValueError(
                f'column "{field.name}" is {known.simpleString()}, the schema says {field.dataType.simpleString()}'
            )


class CaptureFile(InputPartition):
    """One task: one capture."""

    def __init__(self, path: str) -> None:
        super().__init__(None)
        self.path = path


class CaptureReader(DataSourceReader):
    """The reader of a batch query over captures."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options, self.schema = options, schema

    def partitions(self) -> list[InputPartition]:
        """Return the captures behind the paths. Runs in the driver. Raises FileNotFoundError, ValueError for a URL."""
        return [CaptureFile(path) for path in captures(list(_paths(self.options.paths)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the exchanges of one capture. Runs in a worker.

        In mode FAILFAST a message that does not decode raises its KwireError, with file and connection, and what is
        lost is a warning; PERMISSIVE has a row with _corrupt_record for either, DROPMALFORMED drops the exchange.
        """
        if not isinstance(partition, CaptureFile):  # what Spark makes of an empty list of tasks
            return
        shaper = _Rows(self.schema, self.options.mode)
        for event in read_capture(partition.path):
            shaper.add(event)
            if len(shaper) >= BATCH_ROWS or shaper.text > _MOST_TEXT:
                yield shaper.batch()
        if len(shaper):
            yield shaper.batch()


def _paths(given: tuple[str, ...]) -> Iterator[str]:
    for text in given:
        path = plain(text)
        parts = [path] if os.path.exists(path) else [plain(part.strip()) for part in path.split(",") if part.strip()]
        for part in parts:
            if is_url(part):
                raise ValueError(f"{part}: captures are read from local files and mounted folders only")
            yield part


class _Rows:
    """Rows of the columns wanted, until they become an Arrow batch."""

    def __init__(self, schema: StructType, mode: str) -> None:
        self.schema, self.mode = arrow_schema(schema), mode
        self.columns: dict[str, list[Any]] = {name: [] for name in self.schema.names}
        self.decoded = [name for name in ("request", "response") if name in self.columns]
        self.count = self.text = 0

    def __len__(self) -> int:
        return self.count

    def add(self, event: Exchange | Lost) -> None:
        """Add what becomes a row of one thing that a capture gave."""
        if isinstance(event, Lost):
            self._add_lost(event)
            return
        row = _facts(event)
        try:
            for name in self.decoded:
                row[name] = self._json(event, name)
        except KwireError as error:
            reason = f"{event.api} v{event.version}, correlation id {event.correlation_id}: {error} at {_place(event)}"
            if self.mode == "FAILFAST":
                error.args = (reason, *error.args[1:])
                raise
            if self.mode == "DROPMALFORMED":
                return
            row[CORRUPT] = reason
        self._add(row)

    def batch(self) -> pa.RecordBatch:
        """The rows so far; the next ones begin anew."""
        arrays = [pa.array(self.columns[field.name], field.type) for field in self.schema]
        for values in self.columns.values():
            values.clear()
        self.count = self.text = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _json(self, event: Exchange, name: str) -> str | None:
        frame = event.request if name == "request" else event.response
        if frame is None or frame.missing:
            return None
        found = event.decode_request() if name == "request" else event.decode_response()
        assert found is not None
        text = json.dumps(to_json(found.message, found.version), ensure_ascii=False)
        self.text += len(text)
        return text

    def _add_lost(self, event: Lost) -> None:
        size = "" if event.bytes is None else f" ({event.bytes} bytes)"
        reason = f"{event.reason}{size} at {_place(event)}"
        if self.mode != "PERMISSIVE":
            warnings.warn(printable(reason), RuntimeWarning, stacklevel=2)
            return
        ends = event.connection
        self._add({
            "capture": event.capture, "connection": ends and ends.number, "client": ends and ends.client,
            "server": ends and ends.server, "timestamp": event.time, CORRUPT: reason,
        })  # fmt: skip

    def _add(self, row: dict[str, Any]) -> None:
        for name, values in self.columns.items():
            value = row.get(name)
            values.append(storable(value) if isinstance(value, str) else value)
        self.count += 1


def _facts(event: Exchange) -> dict[str, Any]:
    """What is known of an exchange without decoding its messages."""
    ends, request, response = event.connection, event.request, event.response
    return {
        "capture": ends.capture, "connection": ends.number, "client": ends.client, "server": ends.server,
        "client_id": event.client_id, "software": ends.software, "timestamp": request.time, "api_key": event.api_key,
        "api_name": event.api, "version": event.version, "correlation_id": event.correlation_id,
        "outcome": event.outcome,
        "request_bytes": len(request.data) + request.missing,
        "response_timestamp": response and response.time,
        "response_bytes": response and len(response.data) + response.missing,
    }


def _place(event: Exchange | Lost) -> str:
    ends = event.connection
    if ends is None:
        assert isinstance(event, Lost)
        return event.capture
    return f"{ends.capture}, connection {ends.number}" + (f" of {ends.client}" if ends.client else "")
