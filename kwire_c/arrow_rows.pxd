# core/arrow_rows.h for Cython, and the reader of other libraries' Arrow arrays.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kwire_c.arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema
from kwire_c.rows cimport Row


cdef extern from "arrow_rows.h" nogil:
    ctypedef enum kw_layout:
        KW_LAYOUT_NULL
        KW_LAYOUT_32
        KW_LAYOUT_64
        KW_LAYOUT_VIEW
        KW_LAYOUT_FIXED

    ctypedef struct kw_arrow_bytes:
        kw_layout layout
        const uint8_t *valid
        const void *spans
        const uint8_t *data
        const uint8_t **buffers
        const int64_t *sizes
        int64_t n_buffers
        int64_t width
        int64_t first

    ctypedef struct kw_arrow_numbers:
        const uint8_t *valid
        const int64_t *values
        int64_t multiply
        int64_t divide
        int64_t first

    ctypedef struct kw_arrow_headers:
        kw_layout layout
        const uint8_t *valid
        const void *spans
        int64_t first
        int64_t items
        const uint8_t *pair_valid
        int64_t pair_first
        kw_arrow_bytes key
        kw_arrow_bytes value

    ctypedef struct kw_arrow_rows:
        int64_t rows
        const uint8_t *valid
        int64_t first
        kw_arrow_bytes key
        kw_arrow_bytes value
        kw_arrow_numbers stamp
        kw_arrow_numbers offset
        kw_arrow_headers headers

    ctypedef enum kw_fill_status:
        KW_FILL_OK
        KW_FILL_FULL
        KW_FILL_ROOM
        KW_FILL_NULL_ROW
        KW_FILL_BAD_SPAN
        KW_FILL_LONG
        KW_FILL_LONG_BATCH
        KW_FILL_TIME
        KW_FILL_NULL_OFFSET
        KW_FILL_FALLING_OFFSET
        KW_FILL_NO_OFFSET
        KW_FILL_NULL_PAIR
        KW_FILL_NULL_HEADER_KEY
        KW_FILL_CHANGED

    ctypedef struct kw_fill:
        int64_t at
        int64_t next
        int64_t most_bytes
        int64_t most_rows
        int64_t count
        int64_t base
        int64_t base_stamp
        int64_t max_stamp
        int64_t head
        int64_t need
        int takes_stamp
        int has_next
        uint8_t *start
        uint8_t *out
        uint8_t *end

    kw_fill_status kw_arrow_row(const kw_arrow_rows *rows, int64_t at, Row *row, int64_t *start, int64_t *stop)
    kw_fill_status kw_arrow_offset(const kw_arrow_rows *rows, kw_fill *fill, int64_t *offset)
    kw_fill_status kw_fill_batch(const kw_arrow_rows *rows, kw_fill *fill)


cdef class ArrowRows:
    cdef ArrowArrayStream stream
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef kw_arrow_rows c
    cdef int64_t first       # the row of the whole input at which the arrays begin
    cdef bint has_array      # given as it is, not by the stream
    cdef bint was_given

    cdef int check(self, int status) except -1
    cdef bint next(self) except -1
    cdef int place(self) except -1
    cdef kw_fill_status fill(self, kw_fill *fill) noexcept
    cdef int read(self, kw_fill *fill, Row *row) except -1
    cdef object error(self, kw_fill_status status, kw_fill *fill)
