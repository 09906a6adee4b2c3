"""Kafka's log on disk or in an object store, without a broker: segments, their indexes, log directories."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.storage.batches.batch_header import BatchHeader as BatchHeader
    from kwire.storage.batches.scanner import Window as Window
    from kwire.storage.batches.scanner import resync as resync
    from kwire.storage.formatting.formatter import Formatter as Formatter
    from kwire.storage.formatting.info import storage_info as storage_info
    from kwire.storage.formatting.server_config import ServerConfig as ServerConfig
    from kwire.storage.internal.internal_tables import internal_batches as internal_batches
    from kwire.storage.internal.internal_topics import CommittedOffset as CommittedOffset
    from kwire.storage.internal.internal_topics import InternalRecord as InternalRecord
    from kwire.storage.internal.internal_topics import TransactionRow as TransactionRow
    from kwire.storage.internal.internal_topics import committed_offset as committed_offset
    from kwire.storage.internal.internal_topics import decode_internal_record as decode_internal_record
    from kwire.storage.internal.internal_topics import internal_kind as internal_kind
    from kwire.storage.internal.internal_topics import read_internal_topic as read_internal_topic
    from kwire.storage.internal.internal_topics import transaction_row as transaction_row
    from kwire.storage.isolation.transactions import Transactions as Transactions
    from kwire.storage.metadata import Change as Change
    from kwire.storage.metadata import ClusterImage as ClusterImage
    from kwire.storage.metadata import Downgrade as Downgrade
    from kwire.storage.metadata import DowngradeError as DowngradeError
    from kwire.storage.metadata import Loss as Loss
    from kwire.storage.metadata import MetadataLogError as MetadataLogError
    from kwire.storage.places.discovery import SegmentFile as SegmentFile
    from kwire.storage.places.discovery import discover as discover
    from kwire.storage.reading.directory import LogDirectory as LogDirectory
    from kwire.storage.reading.directory import Partition as Partition
    from kwire.storage.reading.read_plan import ReadPlan as ReadPlan
    from kwire.storage.reading.segment import LogSegment as LogSegment
    from kwire.storage.reading.splits import ByteRange as ByteRange
    from kwire.storage.reading.stats import SegmentStats as SegmentStats
    from kwire.storage.reading.verify import Finding as Finding
    from kwire.storage.recompression import WhatIf as WhatIf
    from kwire.storage.recompression import whatif as whatif
    from kwire.storage.salvage.salvage import Salvage as Salvage
    from kwire.storage.salvage.salvage import salvage_log as salvage_log
    from kwire.storage.side_files.checkpoints import read_leader_epochs as read_leader_epochs
    from kwire.storage.side_files.checkpoints import read_partition_metadata as read_partition_metadata
    from kwire.storage.side_files.checkpoints import read_producer_snapshot as read_producer_snapshot
    from kwire.storage.side_files.indexes import AbortedTransaction as AbortedTransaction
    from kwire.storage.side_files.indexes import OffsetIndex as OffsetIndex
    from kwire.storage.side_files.indexes import TimeIndex as TimeIndex
    from kwire.storage.side_files.indexes import TransactionIndex as TransactionIndex
    from kwire.storage.side_files.side_file import SideFile as SideFile
    from kwire.storage.side_files.side_file import read_side_file as read_side_file
    from kwire.storage.side_files.side_file import side_file_kind as side_file_kind
    from kwire.storage.writing.segment_writer import SegmentWriter as SegmentWriter

# module -> the public names that it defines
_NAMES = {
    "kwire.storage.batches.batch_header": ("BatchHeader",),
    "kwire.storage.side_files.checkpoints": ("read_leader_epochs", "read_partition_metadata", "read_producer_snapshot"),
    "kwire.storage.reading.directory": ("LogDirectory", "Partition"),
    "kwire.storage.reading.read_plan": ("ReadPlan",),
    "kwire.storage.places.discovery": ("SegmentFile", "discover"),
    "kwire.storage.formatting.formatter": ("Formatter",),
    "kwire.storage.formatting.info": ("storage_info",),
    "kwire.storage.formatting.server_config": ("ServerConfig",),
    "kwire.storage.side_files.indexes": ("AbortedTransaction", "OffsetIndex", "TimeIndex", "TransactionIndex"),
    "kwire.storage.internal.internal_tables": ("internal_batches",),
    "kwire.storage.internal.internal_topics": (
        "CommittedOffset", "InternalRecord", "TransactionRow", "committed_offset", "decode_internal_record",
        "internal_kind", "read_internal_topic", "transaction_row",
    ),
    "kwire.storage.metadata": (
        "Change", "ClusterImage", "Downgrade", "DowngradeError", "Loss", "MetadataLogError",
    ),
    "kwire.storage.recompression": ("WhatIf", "whatif"),
    "kwire.storage.salvage.salvage": ("Salvage", "salvage_log"),
    "kwire.storage.batches.scanner": ("Window", "resync"),
    "kwire.storage.reading.segment": ("LogSegment",),
    "kwire.storage.writing.segment_writer": ("SegmentWriter",),
    "kwire.storage.side_files.side_file": ("SideFile", "read_side_file", "side_file_kind"),
    "kwire.storage.reading.splits": ("ByteRange",),
    "kwire.storage.reading.stats": ("SegmentStats",),
    "kwire.storage.isolation.transactions": ("Transactions",),
    "kwire.storage.reading.verify": ("Finding",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__, _NAMES)
