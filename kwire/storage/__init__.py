"""Kafka's log on disk or in an object store, without a broker: segments, their indexes, log directories."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# public name -> module that defines it
_HOME = {
    "LogSegment": "kwire.storage.segment",
    "LogDirectory": "kwire.storage.directory",
    "Partition": "kwire.storage.directory",
    "SegmentFile": "kwire.storage.discovery",
    "discover": "kwire.storage.discovery",
    "BatchHeader": "kwire.storage.scan",
    "ByteRange": "kwire.storage.scan",
    "Window": "kwire.storage.scan",
    "resync": "kwire.storage.scan",
    "Transactions": "kwire.storage.transactions",
    "AbortedTransaction": "kwire.storage.indexes",
    "OffsetIndex": "kwire.storage.indexes",
    "TimeIndex": "kwire.storage.indexes",
    "TransactionIndex": "kwire.storage.indexes",
    "read_producer_snapshot": "kwire.storage.checkpoints",
    "read_leader_epochs": "kwire.storage.checkpoints",
    "read_partition_metadata": "kwire.storage.checkpoints",
    "Finding": "kwire.storage.verify",
    "SegmentStats": "kwire.storage.stats",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'kwire.storage' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
