"""Fixed-width columns in other Arrow types, for readers that take exactly one."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memset

from kwire_c.arrow cimport Node, make_node
from kwire_c.sealed cimport seal

from kwire_c.arrow import export_array


cdef class Cast:
    """One Arrow array: pyarrow.array(cast) takes it as it is."""

    cdef Node node

    def __len__(self):
        return self.node.length

    def __arrow_c_array__(self, requested_schema=None):
        return export_array(self.node)


cdef Cast made(bytes format, int64_t rows, bytes values, bytes validity, int64_t nulls):
    cdef const void *buffers[2]
    cdef Cast cast = Cast.__new__(Cast)
    cast.node = make_node("", format, rows, nulls, (values, validity))
    buffers[0] = <const void *> PyBytes_AS_STRING(validity) if nulls else NULL
    buffers[1] = PyBytes_AS_STRING(values)
    cast.node.set_buffers(buffers, 2)
    return cast


seal(Cast)


def microseconds(milliseconds):
    """timestamp[us, UTC] of a buffer of int64 milliseconds; those that microseconds cannot hold are null."""
    cdef Py_buffer view
    cdef const int64_t *times
    cdef int64_t *out
    cdef uint8_t *valid = NULL
    cdef int64_t row, rows, nulls = 0, largest = INT64_MAX // 1000
    cdef bytes values, validity = b""
    PyObject_GetBuffer(milliseconds, &view, PyBUF_SIMPLE)
    try:
        times = <const int64_t *> view.buf
        rows = view.len // 8
        values = PyBytes_FromStringAndSize(NULL, 8 * rows)
        out = <int64_t *> PyBytes_AS_STRING(values)
        for row in range(rows):
            if -largest <= times[row] <= largest:
                out[row] = times[row] * 1000
                continue
            if valid == NULL:
                validity = PyBytes_FromStringAndSize(NULL, rows // 8 + 1)
                valid = <uint8_t *> PyBytes_AS_STRING(validity)
                memset(valid, 0xff, rows // 8 + 1)
            valid[row >> 3] &= ~(1 << (row & 7))
            out[row] = 0
            nulls += 1
    finally:
        PyBuffer_Release(&view)
    return made(b"tsu:UTC", rows, values, validity, nulls)


def widened(numbers):
    """int32 of a buffer of int8."""
    cdef Py_buffer view
    cdef const int8_t *narrow
    cdef int32_t *wide
    cdef Py_ssize_t row
    cdef bytes values
    PyObject_GetBuffer(numbers, &view, PyBUF_SIMPLE)
    try:
        narrow = <const int8_t *> view.buf
        values = PyBytes_FromStringAndSize(NULL, 4 * view.len)
        wide = <int32_t *> PyBytes_AS_STRING(values)
        for row in range(view.len):
            wide[row] = narrow[row]
        return made(b"i", view.len, values, b"", 0)
    finally:
        PyBuffer_Release(&view)
