# A pinned buffer: the input, or the decompressed payload of one batch.
from libc.stdint cimport uint8_t


cdef class Block:
    cdef Py_buffer view
    cdef const uint8_t *data
    cdef Py_ssize_t size


cdef Block pin(object data)
