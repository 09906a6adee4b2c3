"""The .index and .timeindex of a segment, entry by entry as a broker writes them."""

from __future__ import annotations

from struct import Struct
from typing import IO, Any

from kwire.storage.side_files.indexes import OFFSET_ENTRY, TIME_ENTRY

INDEX_BYTES = 10 << 20  # segment.index.bytes: an index that is full ends its segment
_offset_entry, _time_entry = Struct(OFFSET_ENTRY), Struct(TIME_ENTRY)


class IndexWriter:
    """Writes the entries that are due before each batch (LogSegment.append, LogSegment.recover).

    base_offset: of the segment; interval: bytes of the log from one entry to the next (index.interval.bytes); index,
    times: files or buffers that are at their ends. size: bytes of the batches so far.
    """

    def __init__(self, base_offset: int, interval: int, index: IO[bytes], times: IO[bytes]) -> None:
        self.size = 0
        self._base, self._interval = base_offset, interval
        self._index, self._times = index, times
        self._entries, self._time_entries = 0, 0
        self._since = 0  # bytes since the last entry of the .index
        self._largest, self._largest_at, self._written = -1, base_offset, -1  # timestamps; its offset; in the index

    @property
    def is_full(self) -> bool:
        """Whether an index has no room for another entry."""
        most, most_times = INDEX_BYTES // _offset_entry.size, INDEX_BYTES // _time_entry.size - 1
        return self._entries >= most or self._time_entries >= most_times

    @property
    def last_timestamp(self) -> int:
        """The timestamp of the last entry of the .timeindex, -1 if it has none."""
        return self._written

    def add(self, batch: Any, size: int) -> None:
        """Count one batch of so many bytes, and write the entries that are due before it."""
        if batch.max_timestamp > self._largest:
            self._largest, self._largest_at = batch.max_timestamp, batch.last_offset
        if self._since > self._interval:
            self._index.write(_offset_entry.pack(batch.last_offset - self._base, self.size))
            self._entries += 1
            self.add_time()
            self._since = 0
        self._since += size
        self.size += size

    def add_time(self) -> None:
        """TimeIndex.maybeAppend: the largest timestamp so far, if it is larger than that of the last entry."""
        if self._largest > self._written:
            self._times.write(_time_entry.pack(self._largest, self._largest_at - self._base))
            self._written = self._largest
            self._time_entries += 1

    def go_on(self, index: IO[bytes], times: IO[bytes]) -> None:
        """Go on at the end of other files, as a broker does that has opened the segment again."""
        self._index, self._times, self._since = index, times, 0
        self._entries, self._time_entries = index.tell() // _offset_entry.size, times.tell() // _time_entry.size
