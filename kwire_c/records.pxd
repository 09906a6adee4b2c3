# Record batches for the other extensions.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kwire_c.batch cimport kw_batch, kw_batch_status, kw_record
from kwire_c.block cimport Block


cdef class Record:
    cdef Block block
    cdef const uint8_t *data
    cdef uint32_t size
    cdef kw_record head
    cdef int64_t reported
    cdef int32_t sequence_number
    cdef bint is_control

    cdef tuple content(self)


cdef class RecordBatch:
    cdef Block block
    cdef const uint8_t *data
    cdef kw_batch head
    cdef Py_ssize_t at
    cdef Py_ssize_t limit
    cdef Block payload
    cdef kw_record *records
    cdef Py_ssize_t loaded

    cdef int load(self) except -1


cdef Block unpack(const uint8_t *data, const kw_batch *head, Py_ssize_t limit, Py_ssize_t position)
cdef bint checksum_holds(const uint8_t *data, const kw_batch *head)
cdef object corrupt(kw_batch_status status, Py_ssize_t position, const kw_batch *head, object where=*)
cdef Py_ssize_t read_heads(const uint8_t *data, const kw_batch *head, Block payload, kw_record **records,
                           Py_ssize_t *room, Py_ssize_t position) except -1
