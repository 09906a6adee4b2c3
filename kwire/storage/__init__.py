"""Kafka's log on disk or in an object store, without a broker: segments, their indexes, log directories."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.storage.batch_header import BatchHeader as BatchHeader
    from kwire.storage.checkpoints import read_leader_epochs as read_leader_epochs
    from kwire.storage.checkpoints import read_partition_metadata as read_partition_metadata
    from kwire.storage.checkpoints import read_producer_snapshot as read_producer_snapshot
    from kwire.storage.directory import LogDirectory as LogDirectory
    from kwire.storage.directory import Partition as Partition
    from kwire.storage.discovery import SegmentFile as SegmentFile
    from kwire.storage.discovery import discover as discover
    from kwire.storage.formatting.formatter import Formatter as Formatter
    from kwire.storage.formatting.info import storage_info as storage_info
    from kwire.storage.formatting.server_config import ServerConfig as ServerConfig
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

# module -> the public names that it defines
_NAMES = {
    "kwire.storage.batch_header": ("BatchHeader",),
    "kwire.storage.checkpoints": ("read_leader_epochs", "read_partition_metadata", "read_producer_snapshot"),
    "kwire.storage.directory": ("LogDirectory", "Partition"),
    "kwire.storage.discovery": ("SegmentFile", "discover"),
    "kwire.storage.formatting.formatter": ("Formatter",),
    "kwire.storage.formatting.info": ("storage_info",),
    "kwire.storage.formatting.server_config": ("ServerConfig",),
    "kwire.storage.indexes": ("AbortedTransaction", "OffsetIndex", "TimeIndex", "TransactionIndex"),
    "kwire.storage.scanner": ("Window", "resync"),
    "kwire.storage.segment": ("LogSegment",),
    "kwire.storage.splits": ("ByteRange",),
    "kwire.storage.stats": ("SegmentStats",),
    "kwire.storage.transactions": ("Transactions",),
    "kwire.storage.verify": ("Finding",),
}

__getattr__, __dir__, __all__ = attach(__name__, _NAMES)
