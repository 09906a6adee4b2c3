"""Scans of the batch headers in a buffer, without reading the records, for readers of whole log segments."""

from os import dup

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdint cimport INT64_MAX, SIZE_MAX, int64_t, uint16_t, uint8_t
from libc.string cimport memcpy
from posix.unistd cimport close, pread

from kwire_c.columns cimport PooledBytes, pooled_bytes
from kwire_c.core cimport (
    KW_HOP_CHECKSUM, KW_HOP_LEGACY, KW_HOP_ORDER, KW_LEGACY_CRC_OFFSET, KW_LENGTH_OFFSET, KW_LOG_OVERHEAD,
    KW_MAGIC_OFFSET, kw_find_header, kw_hop, kw_hop_status, kw_hop_valid, kw_hops, kw_load32, kw_next_marked,
)
from kwire_c.crc32c cimport crc32_update, crc32c_update
from kwire_c.integers cimport clipped

UNKNOWN_OFFSET = INT64_MAX
CHECKSUM, ORDER = "checksum", "order"
# A copy of memory takes six times as long where its target lies up to 32 bytes after its source, in their pages: an
# x86-64 takes its stores for what it is about to load. The source is the page cache, whose pages are those of the file.
cdef size_t PAGE = 4096
cdef size_t APART = 64


cdef class HeldFile:
    """A file by a descriptor of its own, which is closed when nothing refers to it.

    No Python runs then, in which Ctrl-C would be lost (as it is in a finalizer), and no warning is given.
    """

    cdef readonly int descriptor

    def __cinit__(self, int descriptor):
        """descriptor: of an open file; it stays the caller's. Raises OSError."""
        self.descriptor = -1
        self.descriptor = dup(descriptor)  # not fcntl, which is another function in a new glibc than in an old one

    def __dealloc__(self):
        if self.descriptor >= 0:
            with nogil:
                close(self.descriptor)


def read_piece(int file, int64_t start, int64_t end, before=b""):
    """The bytes of before, then bytes [start, end) of the file descriptor, fewer at the end of the file.

    They are a copy, which later changes of the file do not affect. Raises OSError.
    """
    cdef PooledBytes piece
    cdef Py_buffer front
    cdef size_t size = end - start if end > start else 0
    cdef ssize_t got = 1
    PyObject_GetBuffer(before, &front, PyBUF_SIMPLE)
    try:
        start -= front.len
        size += front.len
        piece = pooled_bytes(size + APART)
        if (<size_t> piece.buffer.data - <size_t> start) % PAGE < APART:
            piece.skipped = APART
        size += piece.skipped
        if front.len:
            memcpy(piece.buffer.data + piece.skipped, front.buf, front.len)
        piece.buffer.size = piece.skipped + front.len
    finally:
        PyBuffer_Release(&front)
    while piece.buffer.size < size and got:
        with nogil:
            got = pread(file, piece.buffer.data + piece.buffer.size, min(size - piece.buffer.size, <size_t> (1 << 30)),
                        start + <int64_t> (piece.buffer.size - piece.skipped))
        if got >= 0:  # 0: end of file
            piece.buffer.size += got
        elif errno == EINTR:
            PyErr_CheckSignals()
        else:
            PyErr_SetFromErrno(OSError)
    return memoryview(piece)


def hop(data, stop, rows=0):
    """(size of the whole batches at the start of data, first byte of the last one).

    Ends before a partial batch or an invalid header, at or after stop, or after about `rows` rows (0: no limit).
    """
    cdef Py_buffer view
    cdef size_t end = 0, last = 0
    cdef int64_t until = clipped(stop), enough = clipped(rows)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            kw_hop(<const uint8_t *> view.buf, view.len, until if until > 0 else 0, enough, &end, &last)
    finally:
        PyBuffer_Release(&view)
    return end, last


def hop_valid(data, stop, rows, left, previous, ordered=True):
    """hop over batches whose checksum holds: (bytes of them, first byte of the last, last offset of it, why it ended).

    left: bytes from the start of data to the end of the file; a batch is taken when the header after it is in data, or
    the end of the file. previous: the last offset before data, UNKNOWN_OFFSET if unknown. Why: None (stop, rows or the
    end of data), CHECKSUM, or ORDER (if ordered): the next batch is out of order, those before and after it are not.
    """
    cdef Py_buffer view
    cdef kw_hops hops
    cdef kw_hop_status status
    cdef int64_t until = clipped(stop), room = clipped(left)
    hops.stop = until if until > 0 else 0
    hops.rows = clipped(rows)
    hops.ordered = ordered
    hops.end = hops.last = 0
    hops.checked = SIZE_MAX
    hops.previous = clipped(previous)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        hops.left = room if room > view.len else view.len
        while True:
            with nogil:
                status = kw_hop_valid(<const uint8_t *> view.buf, view.len, crc32c_update, &hops)
            if status != KW_HOP_LEGACY:
                break
            if not legacy_checksum_holds(<const uint8_t *> view.buf + hops.end, view.len - hops.end):
                status = KW_HOP_CHECKSUM
                break
            hops.checked = hops.end
    finally:
        PyBuffer_Release(&view)
    why = CHECKSUM if status == KW_HOP_CHECKSUM else ORDER if status == KW_HOP_ORDER else None
    return hops.end, hops.last, hops.previous, why


cdef bint legacy_checksum_holds(const uint8_t *data, size_t left) noexcept:
    """Is the CRC-32 of the batch of magic 0 or 1 at data right? left: bytes that may be read."""
    cdef size_t size = <size_t> kw_load32(data + KW_LENGTH_OFFSET) + KW_LOG_OVERHEAD
    if not KW_MAGIC_OFFSET < size <= left:  # it has changed meanwhile
        return False
    return crc32_update(0, data + KW_MAGIC_OFFSET, size - KW_MAGIC_OFFSET) == kw_load32(data + KW_LEGACY_CRC_OFFSET)


def find_header(data, start, stop, left, low=0, high=INT64_MAX, followed=True):
    """The first byte in [start, stop) at which a valid header may begin, -1 where there is none.

    left: bytes from the start of data to the end of the file, which no batch may pass; low, high: its base offset is
    between these, both inclusive; followed: after the batch another header may begin, or zeros, where that is in data.
    """
    cdef Py_buffer view
    cdef size_t position
    cdef int64_t first = clipped(start), until = clipped(stop), room = clipped(left)
    cdef int64_t least = clipped(low), most = clipped(high)
    cdef bint wanted = followed
    if first < 0 or until <= first:
        return -1
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if until > view.len:
            until = view.len
        if until <= first:
            return -1
        if room < view.len:
            room = view.len
        with nogil:
            position = kw_find_header(<const uint8_t *> view.buf, view.len, room, first, until, least, most, wanted)
        return position if position < <size_t> until else -1
    finally:
        PyBuffer_Release(&view)


def next_marked(data, at, uint16_t bits):
    """The first batch of magic 2 with one of the attribute bits, from the batch at byte `at` on; -1 if none."""
    cdef Py_buffer view
    cdef size_t position
    cdef int64_t start = clipped(at)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= start < view.len:
            return -1
        with nogil:
            position = kw_next_marked(<const uint8_t *> view.buf, view.len, start, bits)
        return position if position < <size_t> view.len else -1
    finally:
        PyBuffer_Release(&view)
