"""The batches of a file in order, as Kafka's own tools read them: nothing is checked but that a batch is all there."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kwire.defaults import MAX_BATCH_BYTES
from kwire.errors import CorruptBatchError
from kwire.storage.batches.batch_header import BatchHeader, parse_header
from kwire.storage.batches.scanner import KEPT_BYTES, holds_at
from kwire.storage.places.filesystem import File, located
from kwire_c.record_batch import (
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LENGTH,
    SMALLEST_BATCHES,
    BatchIterator,
    RecordBatch,
)

_WINDOW_BYTES = 5 << 18  # read at a time, but at least one batch

_start = Struct(">qi").unpack_from  # base offset, length


def loaded(batch: RecordBatch | BatchHeader, path: str) -> RecordBatch:
    """The batch. Raises CorruptBatchError (.file) for one of which FileBatches gave only the header."""
    if isinstance(batch, RecordBatch):
        return batch
    reason = f"checksum does not match, and {batch.size} bytes are too many to read records of a damaged batch"
    raise located(CorruptBatchError(reason, position=batch.position, offset=batch.base_offset), path)


class FileBatches:
    """The batches in bytes [start, end) of a file, as RecordBatch, whatever their checksums.

    Of a batch of more than KEPT_BYTES whose checksum does not match there is only the header, as BatchHeader: a damaged
    length would cost up to 2 GiB of memory. Iteration ends before a batch that goes past `end`; position is then the
    byte after the last batch. It may be called again to go on. Raises CorruptBatchError (.file) for a length below 14
    bytes, zeros included, and for a header that is not a batch's. Source: Kafka's FileLogInputStream.
    """

    def __init__(self, file: File, end: int | None = None, start: int = 0) -> None:
        self._file = file.held()
        size = self._file.size()
        self.end = size if end is None else min(end, size)
        self.position = start

    def __iter__(self) -> Iterator[RecordBatch | BatchHeader]:
        while needed := self._needed():
            if needed > KEPT_BYTES and not holds_at(self._file, self.position, needed):
                yield self._header(needed)
                continue
            window_end = min(self.end, self.position + max(_WINDOW_BYTES, needed))
            data = self._file.view(self.position, window_end)
            before = self.position
            try:
                batches: BatchIterator[RecordBatch] = BatchIterator(
                    data, False, "raise", MAX_BATCH_BYTES, False, before)
                for batch in batches:
                    self.position += batch.size
                    yield batch
            except CorruptBatchError as error:
                if self.position == before:
                    raise located(error, self._file.path) from None
            if self.position == before:  # the file has changed meanwhile
                raise located(CorruptBatchError("unreadable batch", position=before), self._file.path)

    def headers(self) -> Iterator[BatchHeader]:
        """The headers alone, of which a few bytes each are read."""
        while needed := self._needed():
            yield self._header(needed)

    def _header(self, size: int) -> BatchHeader:
        """The header of the batch of that size at the position; moves the position past it."""
        head = self._file.view(self.position, min(self.end, self.position + max(SMALLEST_BATCHES)))
        magic = head[MAGIC_OFFSET]
        if magic > 2 or size < SMALLEST_BATCHES[magic]:
            reason = f"unknown magic {magic}" if magic > 2 else f"a batch of {size} bytes is too small"
            error = CorruptBatchError(reason, position=self.position, offset=_start(head)[0])
            raise located(error, self._file.path)
        header = parse_header(head, 0, self.position)
        self.position += size
        return header

    def _needed(self) -> int:
        """Bytes of the batch at the position, 0 if it is not all there."""
        if self.position >= self.end - HEADER_UP_TO_MAGIC:
            return 0
        base, length = _start(self._file.view(self.position, self.position + LOG_OVERHEAD))
        if length < MIN_LENGTH:
            error = CorruptBatchError("", position=self.position, offset=base)
            error.reason = (f"Found record size {length} smaller than minimum record overhead ({MIN_LENGTH}) in file "
                            f"{self._file.path}.")
            error.args = (error.reason,)
            raise error
        size: int = LOG_OVERHEAD + length
        return size if self.position + size <= self.end else 0
