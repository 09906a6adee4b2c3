"""Kind "capture" of the data source: the requests and responses in captures as rows, one task a capture."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kwire.capture import Exchange, Lost, captures, read_capture
from kwire.codec.json import message_json
from kwire.defaults import BATCH_ROWS
from kwire.errors import KwireError
from kwire.spark.schema import CORRUPT, arrow_schema, chosen_schema
from kwire.spark.worker import in_one_line
from kwire.storage.places.filesystem import is_url, plain, shown
from kwire.storage.places.path_patterns import alternatives
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


def capture_schema(permissive: bool, columns: Sequence[str] | None = None) -> StructType:
    """Return the columns where the user's schema names none: all, _corrupt_record in mode PERMISSIVE only.

    columns: those of the option columns.
    """
    return chosen_schema(COLUMNS, [name for name in COLUMNS if name != CORRUPT] if columns is None else columns,
                         permissive)


class CaptureFile(InputPartition):
    """One task: one capture."""

    def __init__(self, path: str) -> None:
        super().__init__(None)
        self.path = path


class CaptureReader(DataSourceReader):
    """The reader of a batch query over captures."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options, self.schema = options, schema

    @in_one_line
    def partitions(self) -> list[InputPartition]:
        """Return the captures at the paths. Runs in the driver. Raises FileNotFoundError, ValueError for a URL."""
        names: dict[str, None] = {}
        for path in _paths(self.options.paths):
            try:
                names.update(dict.fromkeys(captures(path)))
            except FileNotFoundError:
                if not self.options.allow_empty:
                    raise
        return [CaptureFile(name) for name in names]

    @in_one_line
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the exchanges of one capture. Runs in a worker.

        In mode FAILFAST a message that cannot be decoded raises its KwireError, with file and connection; PERMISSIVE
        gives a row with _corrupt_record, DROPMALFORMED drops the exchange. Lost data is a warning, in PERMISSIVE a row.
        """
        if not isinstance(partition, CaptureFile):  # Spark's own partition, for an empty list of tasks
            return
        rows = _Rows(self.schema, self.options.mode)
        for event in read_capture(partition.path):
            rows.add(event)
            if len(rows) >= BATCH_ROWS or rows.text > _MOST_TEXT:
                yield rows.batch()
        if len(rows):
            yield rows.batch()


def _paths(given: tuple[str, ...]) -> Iterator[str]:
    for text in given:
        path = plain(text)
        parts = [path] if os.path.exists(path) else [plain(part) for part in alternatives(path)]
        for part in parts:
            if is_url(part):
                raise ValueError(f"{printable(shown(part))}: captures are read from local files and folders only, "
                                 "not from URLs")
            yield part


class _Rows:
    """Rows of the requested columns, collected for an Arrow batch."""

    def __init__(self, schema: StructType, mode: str) -> None:
        self.schema, self.mode = arrow_schema(schema), mode
        self.columns: dict[str, list[Any]] = {name: [] for name in self.schema.names}
        self.decoded = [name for name in ("request", "response") if name in self.columns]
        self.count = self.text = 0

    def __len__(self) -> int:
        return self.count

    def add(self, event: Exchange | Lost) -> None:
        """Add the row of an exchange, or of lost data."""
        if isinstance(event, Lost):
            self._add_lost(event)
            return
        row = _undecoded(event)
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
            row[CORRUPT] = printable(reason)
        self._add(row)

    def batch(self) -> pa.RecordBatch:
        """Return the rows so far as a batch, and start an empty one."""
        arrays = [pa.array(self.columns[field.name], field.type) for field in self.schema]
        for values in self.columns.values():
            values.clear()
        self.count = self.text = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _json(self, event: Exchange, name: str) -> str | None:
        frame = event.request if name == "request" else event.response
        if frame is None or frame.missing:
            return None
        decoded = event.decode_request() if name == "request" else event.decode_response()
        assert decoded is not None
        text = message_json(decoded.message, decoded.version)
        self.text += len(text)
        return text

    def _add_lost(self, event: Lost) -> None:
        size = "" if event.bytes is None else f" ({event.bytes} bytes)"
        reason = f"{event.reason}{size} at {_place(event)}"
        if self.mode != "PERMISSIVE":
            warnings.warn(printable(reason), RuntimeWarning, stacklevel=2)
            return
        connection = event.connection
        self._add({
            "capture": event.capture, "connection": connection and connection.number,
            "client": connection and connection.client, "server": connection and connection.server,
            "timestamp": event.time, CORRUPT: printable(reason),
        })  # fmt: skip

    def _add(self, row: dict[str, Any]) -> None:
        for name, values in self.columns.items():
            value = row.get(name)
            values.append(storable(value) if isinstance(value, str) else value)
        self.count += 1


def _undecoded(event: Exchange) -> dict[str, Any]:
    """The columns of an exchange that need no decoding of its messages."""
    connection, request, response = event.connection, event.request, event.response
    return {
        "capture": connection.capture, "connection": connection.number, "client": connection.client,
        "server": connection.server, "client_id": event.client_id, "software": connection.software,
        "timestamp": request.time, "api_key": event.api_key,
        "api_name": event.api, "version": event.version, "correlation_id": event.correlation_id,
        "outcome": event.outcome,
        "request_bytes": len(request.data) + request.missing,
        "response_timestamp": response and response.time,
        "response_bytes": response and len(response.data) + response.missing,
    }


def _place(event: Exchange | Lost) -> str:
    connection = event.connection
    if connection is None:
        assert isinstance(event, Lost)
        return event.capture
    return f"{connection.capture}, connection {connection.number}" + (
        f" of {connection.client}" if connection.client else "")
