"""Record batches in Spark: callables for mapPartitions, functions over binary columns, the data source "kwire"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.lazy import attach

if TYPE_CHECKING:
    from kwire.spark.functions import decode_records, records
    from kwire.spark.messages import decode_frames, decode_messages, from_wire
    from kwire.spark.source import KwireDataSource, register

# public name -> module that defines it; at first use, for Spark starts a new Python for each step of planning
_HOME = {
    "KwireDataSource": "kwire.spark.source",
    "decode_frames": "kwire.spark.messages",
    "decode_messages": "kwire.spark.messages",
    "decode_records": "kwire.spark.functions",
    "from_wire": "kwire.spark.messages",
    "records": "kwire.spark.functions",
    "register": "kwire.spark.source",
}

__all__ = [
    "KwireDataSource", "decode_frames", "decode_messages", "decode_records", "from_wire", "records", "register",
]

__getattr__, __dir__ = attach(__name__, _HOME)
