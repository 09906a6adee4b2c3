"""Declarations of core/plan.h and of the registry of messages."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "cursor.h" nogil:
    ctypedef struct kw_cursor:
        const uint8_t *base
        const uint8_t *at
        const uint8_t *end
    void kw_cursor_set(kw_cursor *c, const uint8_t *data, size_t size)
    bint kw_has(const kw_cursor *c, int64_t n)
    uint16_t kw_load16(const uint8_t *p)
    uint32_t kw_load32(const uint8_t *p)
    uint64_t kw_load64(const uint8_t *p)
    void kw_store16(uint8_t *p, uint16_t v)
    void kw_store32(uint8_t *p, uint32_t v)
    void kw_store64(uint8_t *p, uint64_t v)
    uint8_t *kw_write_uvarint(uint8_t *p, uint64_t v)
    int kw_uvarint_size(uint64_t v)


cdef extern from "plan.h" nogil:
    enum:
        KW_BOOL, KW_INT8, KW_INT16, KW_UINT16, KW_INT32, KW_UINT32, KW_INT64, KW_FLOAT64, KW_UUID
        KW_STRING, KW_BYTES, KW_RECORDS, KW_STRUCT, KW_ARRAY
        KW_RUN, KW_ARRAY_STRUCT, KW_ARRAY_STRING, KW_ARRAY_UUID, KW_ARRAY_INT
    enum:
        KW_OK, KW_SHORT, KW_VARINT_LONG, KW_OVERLONG
        KW_NEGATIVE, KW_NULL, KW_STRING_LONG, KW_BAD_BOOL, KW_BAD_UTF8, KW_BAD_MARK, KW_COUNT
        KW_TAG_ORDER, KW_TAG_TWICE, KW_TAG_SIZE, KW_TAG_DEFAULT, KW_TAG_FOREIGN, KW_TAG_COUNT, KW_TRAILING
        KW_TAG_VALUE, KW_PYTHON
    enum:
        KW_COMPACT, KW_NULLABLE, KW_MAX_STRING, KW_MAX_TAG, KW_MAX_DEPTH

    const uint8_t kw_width[9]

    ctypedef struct kw_field:
        uint8_t kind, elem, nullable, ignorable
        int16_t first, last, null_first, null_last
        uint32_t at
        int64_t number
        void *fallback
        kw_class *cls
        kw_class *owner
        void *name
        void *json

    ctypedef struct kw_class:
        void *type
        void *message
        void *label
        void *names
        void *blank
        kw_field *fields
        uint8_t *model
        uint32_t size
        uint16_t n_fields, n_slots
        uint8_t collected
        uint32_t n_spare
        void *spare

    ctypedef struct kw_op:
        uint8_t code, flags, elem, inside_tag
        uint16_t count
        uint32_t need, at, tag
        const kw_plan *sub
        const kw_field *field

    ctypedef struct kw_plan:
        const kw_class *cls
        const kw_op *ops
        const kw_op *tags
        const kw_field **absent
        const uint32_t *foreign
        uint16_t n_ops, n_tags, n_absent, n_foreign
        uint32_t least, room
        int16_t version
        uint8_t flexible

    ctypedef struct kw_piece:
        const kw_field *field
        int64_t index

    ctypedef struct kw_failure:
        int why, depth
        int64_t number, left, offset
        kw_piece path[16]

    int kw_fail(kw_failure *f, const kw_cursor *c, int why, int64_t number)
    int kw_in(kw_failure *f, const kw_field *field, int64_t index)
    int kw_take_uvarint(kw_cursor *c, int lenient, kw_failure *f, uint32_t *out)
    int kw_take_length(kw_cursor *c, int compact, int width, int lenient, kw_failure *f, int64_t *out)
    bint kw_is_ascii(const uint8_t *p, int64_t n)
    int kw_load_fixed(int kind, const uint8_t *p, uint8_t *to, int lenient)
    void kw_store_fixed(int kind, const uint8_t *src, uint8_t *p)


cdef class Message:
    """One message: its facts, its classes, and a plan for each version as it is first used."""
    cdef readonly str name
    cdef readonly object facts
    cdef readonly object root
    cdef readonly int first, last
    cdef kw_class *top
    cdef dict classes
    cdef dict renamed  # (label, JSON name) -> ((old JSON name, versions), ...)
    cdef const kw_plan **plans

    cdef int make(self, facts) except -1
    cdef kw_class *declare(self, int count) except NULL
    cdef int lay_out(self, kw_class *cls, tuple fields) except -1
    cdef bint spread(self, kw_class *cls) except? True
    cdef object name_type(self, kw_class *cls, str label, tuple fields)
    cdef const kw_plan *at(self, object version) except NULL


cdef Message find(object message)
