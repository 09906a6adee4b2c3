# Record batches for the other extensions.
from libc.stdint cimport uint8_t, uint32_t

from kwire_c.batch cimport kw_batch, kw_heads, kw_record
from kwire_c.block cimport Block


cdef class RecordBatch


cdef class Record:
    cdef RecordBatch batch  # in which it stands
    cdef kw_record head


cdef class RecordBatch:
    cdef Block block
    cdef const uint8_t *data
    cdef kw_batch head
    cdef Py_ssize_t at
    cdef Py_ssize_t limit
    cdef Block payload
    cdef kw_heads heads  # once it is loaded, before the first record
    cdef bint is_loaded

    cdef int load(self, kw_record *first=*, uint32_t room=*) except -1


cdef RecordBatch new_batch()  # to be filled
