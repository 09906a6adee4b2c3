# Arrow arrays over memory that Python objects own, handed out through the Arrow C interfaces.
from libc.stdint cimport int64_t


cdef extern from "arrow.h" nogil:
    enum:
        ARROW_FLAG_NULLABLE

    struct ArrowSchema:
        const char *format
        const char *name
        const char *metadata
        int64_t flags
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil
        void *private_data

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *out) noexcept nogil
        int (*get_next)(ArrowArrayStream *, ArrowArray *out) noexcept nogil
        const char *(*get_last_error)(ArrowArrayStream *) noexcept nogil
        void (*release)(ArrowArrayStream *) noexcept nogil
        void *private_data


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
