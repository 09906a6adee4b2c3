#include "arrow_rows.h"

#define MOST (INT32_MAX - 64) /* the largest batch, in bytes */

static inline int is_set(const uint8_t *bits, int64_t at) { return !bits || bits[at >> 3] >> (at & 7) & 1; }

/* The address and size of the bytes of row at; a size of -1 is null. */
static inline kw_fill_status find(const kw_arrow_bytes *column, int64_t at, const uint8_t **data, int32_t *size) {
    int64_t from, to;
    *size = -1;
    at += column->first;
    if (column->layout == KW_LAYOUT_NULL || !is_set(column->valid, at)) return KW_FILL_OK;
    if (column->layout == KW_LAYOUT_VIEW) {
        int32_t view[4];
        memcpy(view, (const uint8_t *)column->spans + 16 * at, 16);
        if (view[0] < 0) return KW_FILL_BAD_SPAN;
        *size = view[0];
        *data = (const uint8_t *)column->spans + 16 * at + 4;
        if (view[0] <= 12) return KW_FILL_OK;
        if (view[2] < 0 || view[2] >= column->n_buffers || view[3] < 0 || column->sizes == NULL ||
            (int64_t)view[3] + view[0] > column->sizes[view[2]] || column->buffers[view[2]] == NULL)
            return KW_FILL_BAD_SPAN;
        *data = column->buffers[view[2]] + view[3];
        return KW_FILL_OK;
    }
    if (column->layout == KW_LAYOUT_32) {
        from = ((const int32_t *)column->spans)[at];
        to = ((const int32_t *)column->spans)[at + 1];
    } else if (column->layout == KW_LAYOUT_64) {
        from = ((const int64_t *)column->spans)[at];
        to = ((const int64_t *)column->spans)[at + 1];
    } else {
        from = at * column->width;
        to = from + column->width;
    }
    if (from < 0 || to < from) return KW_FILL_BAD_SPAN;
    if (to - from > INT32_MAX) return KW_FILL_LONG;
    if (to > from && column->data == NULL) return KW_FILL_BAD_SPAN;
    *data = column->data + from;
    *size = (int32_t)(to - from);
    return KW_FILL_OK;
}

static kw_fill_status measure_headers(const kw_arrow_headers *headers, int64_t at, kw_row *row, int64_t *from,
                                      int64_t *to) {
    int64_t size = 0;
    *from = *to = 0;
    at += headers->first;
    if (headers->layout == KW_LAYOUT_NULL || !is_set(headers->valid, at)) return KW_FILL_OK;
    if (headers->layout == KW_LAYOUT_32) {
        *from = ((const int32_t *)headers->spans)[at];
        *to = ((const int32_t *)headers->spans)[at + 1];
    } else {
        *from = ((const int64_t *)headers->spans)[at];
        *to = ((const int64_t *)headers->spans)[at + 1];
    }
    if (*from < 0 || *to < *from || *to > headers->items) return KW_FILL_BAD_SPAN;
    for (int64_t i = *from; i < *to; i++) {
        const uint8_t *data;
        int32_t key, value;
        kw_fill_status status;
        if (!is_set(headers->pair_valid, headers->pair_first + i)) return KW_FILL_NULL_PAIR;
        if ((status = find(&headers->key, i, &data, &key)) != KW_FILL_OK) return status;
        if ((status = find(&headers->value, i, &data, &value)) != KW_FILL_OK) return status;
        if (key < 0) return KW_FILL_NULL_HEADER_KEY;
        size += kw_uvarint_size(kw_zigzag32(key)) + (int64_t)key + kw_uvarint_size(kw_zigzag32(value));
        size += value > 0 ? value : 0;
        if (size > INT32_MAX) return KW_FILL_LONG;
    }
    row->headers = (int32_t)(*to - *from); /* fits: each takes at least two bytes */
    row->headers_size = (int32_t)size;
    return KW_FILL_OK;
}

/* Writes the measured headers to p; NULL: they were changed meanwhile. */
static uint8_t *write_headers(const kw_arrow_headers *headers, int64_t from, int64_t to, uint8_t *p, int32_t size) {
    uint8_t *const end = p + size;
    for (int64_t i = from; i < to; i++) {
        const uint8_t *key = NULL, *value = NULL;
        int32_t key_size, value_size;
        if (find(&headers->key, i, &key, &key_size) || find(&headers->value, i, &value, &value_size)) return NULL;
        const int64_t bytes = (int64_t)key_size + (value_size > 0 ? value_size : 0) +
                              kw_uvarint_size(kw_zigzag32(key_size)) + kw_uvarint_size(kw_zigzag32(value_size));
        if (key_size < 0 || bytes > end - p) return NULL;
        p = kw_write_span(kw_write_span(p, key, key_size), value, value_size);
    }
    return p == end ? p : NULL;
}

static inline kw_fill_status read_stamp(const kw_arrow_numbers *column, int64_t at, int64_t *stamp) {
    *stamp = -1;
    at += column->first;
    if (!column->values || !is_set(column->valid, at)) return KW_FILL_OK;
    int64_t value = column->values[at];
    if (column->multiply > 1) {
        if (__builtin_mul_overflow(value, column->multiply, &value)) return KW_FILL_TIME;
    } else if (column->divide > 1) {
        const int64_t rest = value % column->divide;
        value = value / column->divide - (rest < 0);
    }
    *stamp = value;
    return KW_FILL_OK;
}

kw_fill_status kw_arrow_row(const kw_arrow_rows *rows, int64_t at, kw_row *row, int64_t *from, int64_t *to) {
    kw_fill_status status;
    row->headers = row->headers_size = 0;
    row->attributes = 0;
    if (!is_set(rows->valid, rows->first + at)) return KW_FILL_NULL_ROW;
    if ((status = find(&rows->key, at, &row->key, &row->key_size)) != KW_FILL_OK) return status;
    if ((status = find(&rows->value, at, &row->value, &row->value_size)) != KW_FILL_OK) return status;
    if ((status = read_stamp(&rows->stamp, at, &row->stamp)) != KW_FILL_OK) return status;
    return measure_headers(&rows->headers, at, row, from, to);
}

kw_fill_status kw_arrow_offset(const kw_arrow_rows *rows, kw_fill *fill, int64_t *offset) {
    const kw_arrow_numbers *column = &rows->offset;
    *offset = fill->next;
    if (column->values) {
        const int64_t at = column->first + fill->at;
        if (!is_set(column->valid, at)) return KW_FILL_NULL_OFFSET;
        *offset = column->values[at];
    }
    if (!fill->has_next) return KW_FILL_OK;
    if (fill->next == INT64_MIN) return KW_FILL_NO_OFFSET; /* after 2^63 - 1 */
    return *offset < fill->next ? KW_FILL_FALLING_OFFSET : KW_FILL_OK;
}

kw_fill_status kw_fill_batch(const kw_arrow_rows *rows, kw_fill *fill) {
    kw_row row = {0};
    for (; fill->at < rows->rows; fill->at++) {
        int64_t from, to;
        int32_t delta = 0;
        kw_fill_status status = kw_arrow_offset(rows, fill, &row.offset);
        if (status == KW_FILL_OK) status = kw_arrow_row(rows, fill->at, &row, &from, &to);
        if (status != KW_FILL_OK) return status;
        if (fill->count == 0) {
            fill->base = row.offset;
            if (fill->takes_stamp) fill->base_stamp = row.stamp;
        } else if (fill->count >= fill->most_rows || !kw_offset_fits(row.offset, fill->base, &delta)) {
            return KW_FILL_FULL;
        }
        const uint64_t stamp = kw_zigzag64((int64_t)((uint64_t)row.stamp - (uint64_t)fill->base_stamp));
        const int64_t body = kw_body_size(&row, stamp, delta), used = fill->head + (fill->out - fill->start);
        const int64_t size = body + kw_uvarint_size((uint64_t)body << 1);
        if (fill->count && size > fill->most_bytes - used) return KW_FILL_FULL;
        if (size > MOST - used) return KW_FILL_LONG_BATCH;
        if (size > fill->end - fill->out) {
            fill->need = size;
            return KW_FILL_ROOM;
        }
        uint8_t *p = kw_write_row(fill->out, &row, body, stamp, delta);
        if (row.headers && !(p = write_headers(&rows->headers, from, to, p, row.headers_size))) return KW_FILL_CHANGED;
        fill->out = p;
        fill->next = (int64_t)((uint64_t)row.offset + 1);
        fill->has_next = 1;
        if (!fill->count++ || row.stamp > fill->max_stamp) fill->max_stamp = row.stamp;
    }
    return KW_FILL_OK;
}
