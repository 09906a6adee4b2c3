/* A record to write, and its encoding in magic 2. */
#ifndef KWIRE_ROWS_H
#define KWIRE_ROWS_H

#include "cursor.h"

/* A size of -1 is null. */
typedef struct {
    int64_t offset, stamp;
    const uint8_t *key, *value;
    int32_t key_size, value_size;
    int32_t headers, headers_size; /* their number, and their size on the wire in bytes */
    uint8_t attributes;
} kw_row;

/* The size of a record in bytes, without its length field. */
static inline int64_t kw_body_size(const kw_row *row, uint64_t stamp, int32_t delta) {
    return (int64_t)row->headers_size + (row->key_size > 0 ? row->key_size : 0) +
           (row->value_size > 0 ? row->value_size : 0) + 1 + kw_uvarint_size(stamp) +
           kw_uvarint_size(kw_zigzag32(delta)) + kw_uvarint_size(kw_zigzag32(row->key_size)) +
           kw_uvarint_size(kw_zigzag32(row->value_size)) + kw_uvarint_size(kw_zigzag32(row->headers));
}

static inline uint8_t *kw_write_span(uint8_t *p, const uint8_t *data, int32_t size) {
    p = kw_write_uvarint(p, kw_zigzag32(size));
    if (size <= 0) return p;
    kw_copy(p, data, (size_t)size);
    return p + size;
}

/* Writes a record up to its headers. */
static inline uint8_t *kw_write_row(uint8_t *p, const kw_row *row, int64_t body, uint64_t stamp, int32_t delta) {
    p = kw_write_uvarint(p, (uint64_t)body << 1);
    *p++ = row->attributes;
    p = kw_write_uvarint(p, stamp);
    p = kw_write_uvarint(p, kw_zigzag32(delta));
    p = kw_write_span(p, row->key, row->key_size);
    p = kw_write_span(p, row->value, row->value_size);
    return kw_write_uvarint(p, kw_zigzag32(row->headers));
}

/* Writes a whole record; headers: their bytes. */
static inline uint8_t *kw_write_record(uint8_t *p, const kw_row *row, int64_t body, uint64_t stamp, int32_t delta,
                                       const uint8_t *headers) {
    p = kw_write_row(p, row, body, stamp, delta);
    if (row->headers_size) kw_copy(p, headers, (size_t)row->headers_size);
    return p + row->headers_size;
}

/* The offset delta in a batch; whether it fits in 31 bits. */
static inline int kw_offset_fits(int64_t offset, int64_t base, int32_t *delta) {
    const int64_t far = (int64_t)((uint64_t)offset - (uint64_t)base);
    *delta = (int32_t)far;
    return *delta == far && (offset < base) == (far < 0);
}

#endif
