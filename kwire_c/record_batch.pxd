# Record batches for the other extensions.
from libc.stdint cimport uint8_t, uint32_t

from kwire_c.core cimport kw_batch, kw_batch_status, kw_heads, kw_record


cdef class Block:
    cdef Py_buffer view
    cdef const uint8_t *data
    cdef Py_ssize_t size


cdef class RecordBatch


cdef class Record:
    cdef RecordBatch batch  # that contains it
    cdef kw_record head


cdef class RecordBatch:
    cdef Block block
    cdef const uint8_t *data
    cdef kw_batch head
    cdef Py_ssize_t at
    cdef Py_ssize_t limit
    cdef Block payload
    cdef kw_heads heads  # valid once is_loaded, at the first record
    cdef bint is_loaded

    cdef int load(self, kw_record *first=*, uint32_t room=*) except -1


cdef Block pin(object data, str name=*)
cdef bint is_iterable(object value) except -1
cdef list header_list(object headers, str place)
cdef tuple header_pair(object pair, str what)
cdef Block unpack(Block block, const uint8_t *data, const kw_batch *head, Py_ssize_t limit, Py_ssize_t position)
cdef bint checksum_holds(const uint8_t *data, const kw_batch *head) noexcept
cdef object partial_batch(const uint8_t *data, Py_ssize_t left, Py_ssize_t position)
cdef object corrupt(kw_batch_status status, Py_ssize_t position, const kw_batch *head, object where=*)
cdef int check_heads(kw_heads *heads, const uint8_t *data, const kw_batch *head, Block payload, kw_record *first,
                     uint32_t room, Py_ssize_t position) except -1
cdef Py_ssize_t read_heads(const uint8_t *data, const kw_batch *head, Block payload, kw_record **records,
                           Py_ssize_t *room, Py_ssize_t position) except -1
