# Buffers from the memory pool of columns, and records as columns, for the other extensions.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kwire_c.arrow cimport Node
from kwire_c.core cimport kw_binary, kw_buffer, kw_columns


cdef class PooledBytes:
    cdef kw_buffer buffer
    cdef size_t skipped  # bytes at the front that are not of it


cdef PooledBytes pooled_bytes(size_t room)


cdef class Chunk:
    cdef kw_columns c
    cdef list kept          # Blocks that views point into
    cdef list view_buffers  # (address, size) of each Arrow buffer of views

    cdef int32_t add_views(self, object block, const uint8_t *data, Py_ssize_t size) except -1
    cdef Node binary(self, str name, kw_binary *binary, int64_t rows, bytes format)
    cdef bytes control_bits(self)
    cdef object item(self, kw_binary *binary, int64_t row, bint view)


cdef class RecordColumns:
    cdef readonly tuple names
    cdef readonly list bad
    cdef object known_tail
    cdef readonly object stopped
    cdef list chunks

    cdef list nodes(self)
