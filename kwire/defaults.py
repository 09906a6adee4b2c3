"""Defaults that several packages share."""

from __future__ import annotations

MAX_BATCH_BYTES = 64 << 20  # the most that one record batch may decompress to
MAX_FRAME_BYTES = 100 << 20  # the largest request or response, as Kafka's socket.request.max.bytes
BATCH_ROWS = 10_000  # rows of one Arrow batch, approximately
RECORD_FIELDS = ("offset", "timestamp", "key", "value")  # the default columns of records
