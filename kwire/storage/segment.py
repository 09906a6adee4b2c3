"""LogSegment: one segment of a partition, read by offset, time or byte range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kwire.shared_iterator import shared
from kwire.storage.indexed import IndexedSegment
from kwire.storage.pieces import FIELDS, SegmentBatches, column_pieces, gather_all
from kwire.storage.ranges import Range
from kwire.storage.source import located
from kwire.storage.transactions import Transactions
from kwire_c.failure import KwireError

if TYPE_CHECKING:
    from kwire.storage.stats import SegmentStats
    from kwire.storage.verify import Finding

__all__ = ["FIELDS", "LogSegment"]


class LogSegment(IndexedSegment):
    """One segment of a partition. path: a local file or an fsspec URL (s3://bucket/topic-0/0000.log, memory://...).

    topic, partition: from the folder name `topic-N`, else None, unless given. Only the .log file is needed. Positions
    are bytes in the file, offsets Kafka offsets, times milliseconds; all ends are exclusive. options: keywords for
    fsspec. Raises FileNotFoundError where there is no such file.
    """

    def batches(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = 64 << 20,
        strict_tail: bool = False,
    ) -> SegmentBatches:
        """RecordBatch by RecordBatch (.position is the byte in the file), as kwire.read_batches, window by window.

        errors="keep" yields BadBatch for what is damaged and goes on at the next sound batch. The iterator's .tail is
        (position, bytes left) of a partial last batch or of zeros, after its end. Errors raised have .file.
        """
        return SegmentBatches(
            self, start, end, verify_crc=verify_crc, errors=errors, max_batch_bytes=max_batch_bytes,
            strict_tail=strict_tail,
        )

    @shared
    def read(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        committed: bool = False,
        control: bool = False,
        verify_crc: bool = True,
        max_batch_bytes: int = 64 << 20,
    ) -> Iterator[Any]:
        """The Records of the range, in order; control records only with control=True.

        committed=True leaves out aborted and still open transactions (and control records). Raises CorruptBatchError or
        LimitError (.file) where a batch is damaged.
        """
        span = Range(start_offset, end_offset, start_timestamp, end_timestamp)
        start = self.start_of(span)
        hidden = self.transactions(start) if committed else Transactions()
        try:
            for batch in self.batches(start, verify_crc=verify_crc, max_batch_bytes=max_batch_bytes):
                if span.is_behind(batch):
                    return
                if span.misses(batch) or (batch.is_control and (committed or not control)):
                    continue
                if committed and batch.is_transactional and hidden.hides(batch.producer_id, batch.base_offset):
                    continue
                yield from batch if span.holds(batch) else filter(span.admits, batch)
        except KwireError as error:
            raise located(error, self.path) from error.__cause__

    def columns(self, fields: Sequence[str] = FIELDS, **options: Any) -> Any:
        """RecordColumns of the whole range in one piece, as kwire.columns; keywords as column_batches (no rows)."""
        return gather_all([self], fields, **options)

    @shared
    def column_batches(
        self,
        fields: Sequence[str] = FIELDS,
        *,
        rows: int = 10_000,
        start: int = 0,
        end: int | None = None,
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
        strict_tail: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Any]:
        """RecordColumns piece by piece, in bounded memory: about `rows` rows each, cut at batch boundaries.

        start, end: a byte range as cut() gives it. committed=True uses transactions, or finds them itself.
        errors="keep": what is bad gives no rows; it stands in each piece's .bad as BadBatch (position: byte in the
        file), the search for the next sound batch included. Errors raised name the file, the batch offset and the
        byte, and have .file.
        """
        span = Range(start_offset, end_offset, start_timestamp, end_timestamp)
        first = start or self.start_of(span)
        hidden = None
        if committed:
            hidden = self.transactions(first, end) if transactions is None else transactions
        done = 0
        for found, behind in column_pieces(
            self, fields, span, start=first, end=end, rows=rows, hidden=hidden, errors=errors, control=control,
            views=views, verify_crc=verify_crc, max_batch_bytes=max_batch_bytes, strict_tail=strict_tail,
        ):
            yield found
            if progress is not None:
                progress(behind - done)
                done = behind

    def verify(self) -> list[Finding]:
        """What is wrong with the segment and its indexes; empty when all is well."""
        from kwire.storage.verify import verify_segment

        return verify_segment(self)

    def stats(self) -> SegmentStats:
        """Batches, records, codecs, sizes, ratio, producers, time range."""
        from kwire.storage.stats import segment_stats

        return segment_stats(self)
