"""LogSegment: one .log file with what stands beside it, read by offset, time or byte range."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.storage.indexes import OffsetIndex, TimeIndex, TransactionIndex
    from kwire.storage.scan import BatchHeader, ByteRange
    from kwire.storage.stats import SegmentStats
    from kwire.storage.transactions import Transactions
    from kwire.storage.verify import Finding


class LogSegment:
    """One segment of a partition. path: a local file or an fsspec URL (s3://bucket/topic-0/0000.log, memory://...).

    topic, partition: from the folder name `topic-N`, else None, unless given. Only the .log file is needed. Positions are
    bytes in the file, offsets Kafka offsets, times milliseconds; all ends are exclusive. options: keywords for fsspec.
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int
    size: int

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        topic: str | None = None,
        partition: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def tail(self) -> tuple[int, int] | None:
        """(position, bytes left) of a partial last batch or of zeros at the end (preallocated), None if it ends cleanly."""
        raise NotImplementedError

    def cut(self, partition_bytes: int) -> list[ByteRange]:
        """Byte ranges at batch boundaries that together cover the segment, each about partition_bytes."""
        raise NotImplementedError

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
        """The batch headers in bytes [start, end), nothing decoded."""
        raise NotImplementedError

    def seek(self, offset: int) -> int:
        """Position of the batch that holds the first record at or behind offset; .size if there is none."""
        raise NotImplementedError

    def seek_time(self, timestamp: int) -> int:
        """Position of the first batch whose largest timestamp is >= timestamp (ms); .size if there is none."""
        raise NotImplementedError

    def transactions(self, end_position: int | None = None) -> Transactions:
        """Aborted and open transactions that touch this segment (up to end_position): looks on into later segments."""
        raise NotImplementedError

    def batches(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = 64 << 20,
        strict_tail: bool = False,
    ) -> Iterator[Any]:
        """RecordBatch by RecordBatch (.position is the byte in the file), as kwire.read_batches, window by window.

        errors="keep" yields BadBatch for what is damaged and goes on at the next sound batch.
        """
        raise NotImplementedError

    def read(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        committed: bool = False,
        control: bool = False,
    ) -> Iterator[Any]:
        """Records of the range; control records only with control=True."""
        raise NotImplementedError

    def columns(self, fields: Sequence[str] = ("offset", "timestamp", "key", "value"), **options: Any) -> Any:
        """RecordColumns of the whole range, as kwire.columns, with the same range keywords as read()."""
        raise NotImplementedError

    def column_batches(
        self,
        fields: Sequence[str] = ("offset", "timestamp", "key", "value"),
        *,
        start: int = 0,
        end: int | None = None,
        rows: int = 10_000,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        committed: bool = False,
        transactions: Transactions | None = None,
        control: bool = False,
        views: bool = False,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = 64 << 20,
    ) -> Iterator[Any]:
        """RecordColumns piece by piece, in bounded memory: about `rows` rows each, cut at batch boundaries.

        start, end: a byte range as cut() gives it. committed=True uses transactions, or finds them itself. errors="keep":
        what is bad gives no rows; it stands in each piece's .bad as BadBatch (position: byte in the file), the search for
        the next sound batch included. Errors raised name the file, the batch offset and the byte.
        """
        raise NotImplementedError

    @property
    def index(self) -> OffsetIndex | None:
        """The .index beside the segment, None if missing."""
        raise NotImplementedError

    @property
    def time_index(self) -> TimeIndex | None:
        """The .timeindex beside the segment, None if missing."""
        raise NotImplementedError

    @property
    def transaction_index(self) -> TransactionIndex | None:
        """The .txnindex beside the segment, None if missing."""
        raise NotImplementedError

    def verify(self) -> list[Finding]:
        """What is wrong with the segment and its indexes; empty when all is well."""
        raise NotImplementedError

    def stats(self) -> SegmentStats:
        """Batches, records, codecs, sizes, ratio, producers, time range."""
        raise NotImplementedError
