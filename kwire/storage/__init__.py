"""Kafka's log on disk or in an object store, without a broker: segments, their indexes, log directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.lazy import attach

if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.storage.batch_header import BatchHeader as BatchHeader
    from kwire.storage.checkpoints import read_leader_epochs as read_leader_epochs
    from kwire.storage.checkpoints import read_partition_metadata as read_partition_metadata
    from kwire.storage.checkpoints import read_producer_snapshot as read_producer_snapshot
    from kwire.storage.directory import LogDirectory as LogDirectory
    from kwire.storage.directory import Partition as Partition
    from kwire.storage.discovery import SegmentFile as SegmentFile
    from kwire.storage.discovery import discover as discover
    from kwire.storage.indexes import AbortedTransaction as AbortedTransaction
    from kwire.storage.indexes import OffsetIndex as OffsetIndex
    from kwire.storage.indexes import TimeIndex as TimeIndex
    from kwire.storage.indexes import TransactionIndex as TransactionIndex
    from kwire.storage.scanner import Window as Window
    from kwire.storage.scanner import resync as resync
    from kwire.storage.segment import LogSegment as LogSegment
    from kwire.storage.splits import ByteRange as ByteRange
    from kwire.storage.stats import SegmentStats as SegmentStats
    from kwire.storage.transactions import Transactions as Transactions
    from kwire.storage.verify import Finding as Finding

# public name -> module that defines it
_HOME = {
    "LogSegment": "kwire.storage.segment",
    "LogDirectory": "kwire.storage.directory",
    "Partition": "kwire.storage.directory",
    "SegmentFile": "kwire.storage.discovery",
    "discover": "kwire.storage.discovery",
    "BatchHeader": "kwire.storage.batch_header",
    "ByteRange": "kwire.storage.splits",
    "Window": "kwire.storage.scanner",
    "resync": "kwire.storage.scanner",
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

__getattr__, __dir__ = attach(__name__, _HOME)
