"""The defaults that several rooms share, each in one place."""

from __future__ import annotations

MAX_BATCH_BYTES = 64 << 20  # that one record batch may decompress to
MAX_FRAME_BYTES = 100 << 20  # of one request or response, as Kafka's socket.request.max.bytes
BATCH_ROWS = 10_000  # rows of one Arrow batch, about
RECORD_FIELDS = ("offset", "timestamp", "key", "value")  # of the columns of records
