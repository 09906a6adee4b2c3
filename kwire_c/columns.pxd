# Buffers from the memory pool of columns, for the other extensions.
from kwire_c.core cimport kw_buffer


cdef class PooledBytes:
    cdef kw_buffer buffer


cdef PooledBytes pooled_bytes(size_t room)
