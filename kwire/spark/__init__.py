"""Record batches in Spark: callables for mapPartitions, functions over binary columns, the data source "kwire"."""

from __future__ import annotations

from kwire.spark.functions import decode_records, records
from kwire.spark.messages import decode_frames, decode_messages, from_wire
from kwire.spark.source import KwireDataSource, register

__all__ = [
    "KwireDataSource", "decode_frames", "decode_messages", "decode_records", "from_wire", "records", "register",
]
