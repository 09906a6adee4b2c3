# core/columns.h for Cython, and the chunk of columns that holds its memory.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwire_c.arrow cimport Node
from kwire_c.batch cimport kw_batch, kw_batch_status, kw_record


cdef extern from "columns.h" nogil:
    enum:
        KW_COL_OFFSET
        KW_COL_TIMESTAMP
        KW_COL_TIMESTAMP_TYPE
        KW_COL_SEQUENCE
        KW_COL_PRODUCER_ID
        KW_COL_PRODUCER_EPOCH
        KW_COL_LEADER_EPOCH
        KW_COL_BATCH_POSITION
        KW_COL_SOURCE
        KW_COL_CODEC
        KW_COL_IS_CONTROL
        KW_COL_FIXED
        KW_COL_KEY
        KW_COL_VALUE
        KW_COL_HEADERS

    ctypedef struct kw_buffer:
        uint8_t *data
        size_t size
        size_t room

    ctypedef struct kw_binary:
        kw_buffer spans
        kw_buffer data
        kw_buffer validity
        int64_t nulls

    ctypedef struct kw_columns:
        uint32_t fields
        int views
        int64_t rows
        int64_t header_rows
        int64_t max_bytes
        uint64_t input_bytes
        uint64_t seen_bytes
        kw_buffer fixed[11]
        kw_binary key
        kw_binary value
        kw_binary header_key
        kw_binary header_value
        kw_buffer header_lists

    ctypedef enum kw_append_status:
        KW_APPEND_OK
        KW_APPEND_FULL
        KW_APPEND_MEMORY
        KW_APPEND_BAD

    ctypedef struct kw_place:
        const uint8_t *block
        uint32_t block_size
        int32_t view_buffer
        uint64_t view_at
        int64_t position
        int32_t source

    ctypedef struct kw_window:
        int64_t offset_from
        int64_t offset_to
        int64_t time_from
        int64_t time_to

    ctypedef enum kw_run_status:
        KW_RUN_END
        KW_RUN_BAD
        KW_RUN_SLOW
        KW_RUN_TRANSACTION
        KW_RUN_FULL
        KW_RUN_MEMORY

    ctypedef uint32_t kw_checksum(uint32_t value, const uint8_t *data, size_t size) noexcept nogil

    ctypedef struct kw_run:
        const uint8_t *data
        size_t size
        int verify_crc
        int control
        int ask
        const kw_window *window
        int64_t origin
        int32_t source
        int32_t view_buffer
        kw_checksum *crc32c
        size_t at
        size_t keep_at
        kw_batch batch
        kw_batch_status status
        uint32_t where

    uint32_t kw_window_apply(const kw_window *window, const kw_batch *batch, kw_record *records, uint32_t count)
    kw_append_status kw_columns_append(kw_columns *columns, const kw_batch *batch, const kw_record *records,
                                       uint32_t count, const kw_place *place)
    kw_append_status kw_columns_append_batch(kw_columns *columns, const kw_batch *batch, const kw_place *place,
                                             uint32_t at, const kw_window *window, kw_checksum *crc32c,
                                             kw_batch_status *status, uint32_t *where)
    void kw_columns_free(kw_columns *columns)
    int kw_buffer_grow(kw_buffer *buffer, size_t need, size_t wish)
    void kw_buffer_free(kw_buffer *buffer)
    kw_run_status kw_columns_run(kw_columns *columns, kw_run *run)


# The pool of buffers is this module's: what takes from it and what gives back must go through here.
cdef uint32_t window_apply(const kw_window *window, const kw_batch *batch, kw_record *records,
                           uint32_t count) noexcept nogil
cdef kw_append_status columns_append(kw_columns *columns, const kw_batch *batch, const kw_record *records,
                                     uint32_t count, const kw_place *place) noexcept nogil
cdef kw_append_status columns_append_batch(kw_columns *columns, const kw_batch *batch, const kw_place *place,
                                           uint32_t at, const kw_window *window, kw_checksum *crc32c,
                                           kw_batch_status *status, uint32_t *where) noexcept nogil
cdef kw_run_status columns_run(kw_columns *columns, kw_run *run) noexcept nogil
cdef int buffer_grow(kw_buffer *buffer, size_t need, size_t wish) noexcept nogil
cdef void buffer_free(kw_buffer *buffer) noexcept nogil


cdef class Chunk:
    cdef kw_columns c
    cdef list kept          # Blocks that views point into
    cdef list view_buffers  # (address, size) of each Arrow buffer of views

    cdef int32_t add_views(self, object block, const uint8_t *data, Py_ssize_t size) except -1
    cdef Node binary(self, str name, kw_binary *binary, int64_t rows, bytes format)
    cdef bytes control_bits(self)
    cdef object item(self, kw_binary *binary, int64_t row, bint view)


cdef object make_columns(tuple names, list chunks, list bad, object tail, object stopped)
