"""Scans of the batch headers in a buffer, without reading the records, for readers of whole log segments."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint16_t, uint8_t
from libc.string cimport memcpy
from posix.unistd cimport pread

from kwire_c.columns cimport PooledBytes, pooled_bytes
from kwire_c.core cimport kw_find_header, kw_hop, kw_next_marked
from kwire_c.integers cimport clipped


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
        piece = pooled_bytes(size)
        if front.len:
            memcpy(piece.buffer.data, front.buf, front.len)
            piece.buffer.size = front.len
    finally:
        PyBuffer_Release(&front)
    while piece.buffer.size < size and got:
        with nogil:
            got = pread(file, piece.buffer.data + piece.buffer.size, min(size - piece.buffer.size, <size_t> (1 << 30)),
                        start + <int64_t> piece.buffer.size)
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


def find_header(data, start, stop, left):
    """The first byte in [start, stop) at which a valid batch header may begin, -1 if there is none.

    left: bytes from the start of data to the end of the file, at or before which a batch must end.
    """
    cdef Py_buffer view
    cdef size_t position
    cdef int64_t first = clipped(start), until = clipped(stop), room = clipped(left)
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
            position = kw_find_header(<const uint8_t *> view.buf, view.len, room, first, until)
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
