# Arrow arrays over memory that Python objects own, handed out through the Arrow C interfaces.
from libc.stdint cimport int64_t


cdef class Node:
    cdef readonly str name
    cdef readonly bytes format
    cdef readonly int64_t length
    cdef readonly int64_t offset
    cdef readonly int64_t null_count
    cdef readonly list children
    cdef readonly Node dictionary
    cdef object owner
    cdef const void **buffers
    cdef int64_t n_buffers

    cdef int set_buffers(self, const void **buffers, int64_t count) except -1


cdef Node make_node(str name, bytes format, int64_t length, int64_t null_count, object owner, list children=*,
                    Node dictionary=*)
