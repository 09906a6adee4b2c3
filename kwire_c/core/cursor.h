/* A cursor over immutable bytes: one bounds check, big-endian integers and Kafka's varints.
   Pure C without Python, so that the fuzzers can link it alone. */
#ifndef KWIRE_CURSOR_H
#define KWIRE_CURSOR_H

#include <stdint.h>
#include <string.h>

/* Integers are swapped unconditionally, which is wrong on a big-endian processor; 32-bit ones are not tested. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || __SIZEOF_POINTER__ != 8
#error "kwire needs a little-endian 64-bit processor: see docs/support.md"
#endif

typedef struct {
    const uint8_t *base; /* first byte of the input, for positions in errors */
    const uint8_t *at;   /* next byte to read */
    const uint8_t *end;  /* one past the last */
} kw_cursor;

/* Why a read failed. 0 is success everywhere. */
typedef enum {
    KW_OK = 0,
    KW_SHORT = 1,        /* the input ends before the value does */
    KW_VARINT_LONG = 2,  /* a 6th (11th) byte in a 32-bit (64-bit) varint */
    KW_OVERLONG = 3      /* strict only: a varint with more bytes than it needs, or with dropped bits */
} kw_status;

#define KW_LIKELY(x) __builtin_expect(!!(x), 1)
#define KW_UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline void kw_cursor_set(kw_cursor *c, const uint8_t *data, size_t size) {
    c->base = c->at = data;
    c->end = data + size;
}

/* The bounds check: are there n more bytes? Safe for any n, also negative. */
static inline int kw_has(const kw_cursor *c, int64_t n) {
#ifdef KWIRE_PLANT /* reads the byte after the end: a planted bug that the sanitizer tests must find */
    if (n > 0 && n == c->end - c->at) (void)*(const volatile uint8_t *)c->end;
#endif
    return !(n < 0 || n > c->end - c->at);
}

static inline uint16_t kw_load16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
static inline uint32_t kw_load32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
static inline uint64_t kw_load64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
static inline void kw_store16(uint8_t *p, uint16_t v) { v = __builtin_bswap16(v); memcpy(p, &v, 2); }
static inline void kw_store32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
static inline void kw_store64(uint8_t *p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }

static inline int32_t kw_unzigzag32(uint32_t v) { return (int32_t)((v >> 1) ^ (0u - (v & 1))); }
static inline int64_t kw_unzigzag64(uint64_t v) { return (int64_t)((v >> 1) ^ (0ull - (v & 1))); }
static inline uint32_t kw_zigzag32(int32_t v) { return ((uint32_t)v << 1) ^ (0u - ((uint32_t)v >> 31)); }
static inline uint64_t kw_zigzag64(int64_t v) { return ((uint64_t)v << 1) ^ (0ull - ((uint64_t)v >> 63)); }

/* Bytes of a varint: 1..5 (1..10). */
static inline int kw_uvarint_size(uint64_t v) {
    if (KW_LIKELY(v < 0x80)) return 1;
    if (KW_LIKELY(v < 0x4000)) return 2; /* counting leading zeros is slow on many processors */
    return (9 * (64 - __builtin_clzll(v)) + 64) / 64;
}

/* As Kafka's ByteUtils.readUnsignedVarint: overlong forms are accepted, bits above 32 of the 5th byte are
   dropped, a 6th byte is an error. The cursor moves only on success. */
static inline kw_status kw_read_uvarint32(kw_cursor *c, uint32_t *out) {
    const uint8_t *p = c->at;
    uint32_t v = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (KW_UNLIKELY(p == c->end)) return KW_SHORT;
        uint32_t b = *p++;
        v |= (b & 0x7f) << shift;
        if (KW_LIKELY(b < 0x80)) {
            c->at = p;
            *out = v;
            return KW_OK;
        }
    }
    return KW_VARINT_LONG;
}

/* The same for 64 bits: up to ten bytes, of which the 10th has one bit. */
static inline kw_status kw_read_uvarint64(kw_cursor *c, uint64_t *out) {
    const uint8_t *p = c->at;
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (KW_UNLIKELY(p == c->end)) return KW_SHORT;
        uint64_t b = *p++;
        v |= (b & 0x7f) << shift;
        if (KW_LIKELY(b < 0x80)) {
            c->at = p;
            *out = v;
            return KW_OK;
        }
    }
    return KW_VARINT_LONG;
}

/* Strict: the shortest form only, no dropped bits. */
static inline kw_status kw_read_uvarint32_strict(kw_cursor *c, uint32_t *out) {
    const uint8_t *from = c->at;
    kw_status status = kw_read_uvarint32(c, out);
    if (KW_UNLIKELY(status != KW_OK)) return status;
    if (KW_UNLIKELY(c->at - from != kw_uvarint_size(*out) || (c->at - from == 5 && from[4] > 0x0f))) {
        c->at = from;
        return KW_OVERLONG;
    }
    return KW_OK;
}

static inline kw_status kw_read_varint32(kw_cursor *c, int32_t *out) {
    uint32_t v;
    kw_status status = kw_read_uvarint32(c, &v);
    if (status == KW_OK) *out = kw_unzigzag32(v);
    return status;
}

static inline kw_status kw_read_varint64(kw_cursor *c, int64_t *out) {
    uint64_t v;
    kw_status status = kw_read_uvarint64(c, &v);
    if (status == KW_OK) *out = kw_unzigzag64(v);
    return status;
}

/* Writes without a bounds check: the caller has reserved the room. Returns one past the last byte written. */
static inline uint8_t *kw_write_uvarint(uint8_t *p, uint64_t v) {
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* memcpy, inlined for short keys, headers and values. */
static inline void kw_copy(uint8_t *to, const uint8_t *from, size_t size) {
    if (size > 128) {
        memcpy(to, from, size);
    } else if (size > 64) {
        memcpy(to, from, 64);
        memcpy(to + size - 64, from + size - 64, 64);
    } else if (size > 32) {
        memcpy(to, from, 32);
        memcpy(to + size - 32, from + size - 32, 32);
    } else if (size >= 16) {
        memcpy(to, from, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else {
        for (size_t i = 0; i < size; i++) to[i] = from[i];
    }
}

#endif
