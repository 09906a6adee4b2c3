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
    from kwire.storage.internal_tables import internal_batches as internal_batches
    from kwire.storage.internal_topics import CommittedOffset as CommittedOffset
    from kwire.storage.internal_topics import InternalRecord as InternalRecord
    from kwire.storage.internal_topics import TransactionRow as TransactionRow
    from kwire.storage.internal_topics import committed_offset as committed_offset
    from kwire.storage.internal_topics import decode_internal_record as decode_internal_record
    from kwire.storage.internal_topics import internal_kind as internal_kind
    from kwire.storage.internal_topics import read_internal_topic as read_internal_topic
    from kwire.storage.internal_topics import transaction_row as transaction_row
    from kwire.storage.metadata import Change as Change
    from kwire.storage.metadata import ClusterImage as ClusterImage
    from kwire.storage.metadata import Downgrade as Downgrade
    from kwire.storage.metadata import DowngradeError as DowngradeError
    from kwire.storage.metadata import Loss as Loss
    from kwire.storage.metadata import MetadataLogError as MetadataLogError
    from kwire.storage.recompression import WhatIf as WhatIf
    from kwire.storage.recompression import whatif as whatif
    from kwire.storage.salvage import Salvage as Salvage
    from kwire.storage.salvage import salvage_log as salvage_log
    from kwire.storage.scanner import Window as Window
    from kwire.storage.scanner import resync as resync
    from kwire.storage.segment import LogSegment as LogSegment
    from kwire.storage.segment_writer import SegmentWriter as SegmentWriter
    from kwire.storage.side_files import SideFile as SideFile
    from kwire.storage.side_files import read_side_file as read_side_file
    from kwire.storage.side_files import side_file_kind as side_file_kind
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
    "kwire.storage.internal_tables": ("internal_batches",),
    "kwire.storage.internal_topics": (
        "CommittedOffset", "InternalRecord", "TransactionRow", "committed_offset", "decode_internal_record",
        "internal_kind", "read_internal_topic", "transaction_row",
    ),
    "kwire.storage.metadata": (
        "Change", "ClusterImage", "Downgrade", "DowngradeError", "Loss", "MetadataLogError",
    ),
    "kwire.storage.recompression": ("WhatIf", "whatif"),
    "kwire.storage.salvage": ("Salvage", "salvage_log"),
    "kwire.storage.scanner": ("Window", "resync"),
    "kwire.storage.segment": ("LogSegment",),
    "kwire.storage.segment_writer": ("SegmentWriter",),
    "kwire.storage.side_files": ("SideFile", "read_side_file", "side_file_kind"),
    "kwire.storage.splits": ("ByteRange",),
    "kwire.storage.stats": ("SegmentStats",),
    "kwire.storage.transactions": ("Transactions",),
    "kwire.storage.verify": ("Finding",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__, _NAMES)
