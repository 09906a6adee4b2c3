# The cursor for Cython: see cursor.h.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "cursor.h" nogil:
    ctypedef struct kw_cursor:
        const uint8_t *base
        const uint8_t *at
        const uint8_t *end

    ctypedef enum kw_status:
        KW_OK
        KW_SHORT
        KW_VARINT_LONG
        KW_OVERLONG

    void kw_cursor_set(kw_cursor *c, const uint8_t *data, size_t size)
    bint kw_has(const kw_cursor *c, int64_t n)
    uint16_t kw_load16(const uint8_t *p)
    uint32_t kw_load32(const uint8_t *p)
    uint64_t kw_load64(const uint8_t *p)
    void kw_store16(uint8_t *p, uint16_t v)
    void kw_store32(uint8_t *p, uint32_t v)
    void kw_store64(uint8_t *p, uint64_t v)
    int32_t kw_unzigzag32(uint32_t v)
    int64_t kw_unzigzag64(uint64_t v)
    uint32_t kw_zigzag32(int32_t v)
    uint64_t kw_zigzag64(int64_t v)
    int kw_uvarint_size(uint64_t v)
    kw_status kw_read_uvarint32(kw_cursor *c, uint32_t *out)
    kw_status kw_read_uvarint64(kw_cursor *c, uint64_t *out)
    kw_status kw_read_uvarint32_strict(kw_cursor *c, uint32_t *out)
    kw_status kw_read_varint32(kw_cursor *c, int32_t *out)
    kw_status kw_read_varint64(kw_cursor *c, int64_t *out)
    uint8_t *kw_write_uvarint(uint8_t *p, uint64_t v)
    void kw_copy(uint8_t *to, const uint8_t *source, size_t size)
