/* Records as Arrow-layout buffers: see columns.h. */
#include "columns.h"

#include "cursor.h"
#include "utf8.h"

/* A batch is read in portions of about this many bytes and at most this many records. Each portion is read, copied and
   added to the checksum in turn, so that prefetching and write-back overlap with the work. */
#define PORTION_BYTES 3072
#define PORTION 256
#define PORTION_LEAST 16

static const uint8_t widths[KW_COL_FIXED] = {8, 8, 1, 4, 8, 2, 4, 8, 4, 1, 1};

/* The expected size of a buffer for all the input, if it has size bytes after `done` bytes of the input. */
static size_t foreseen(const kw_columns *columns, size_t size, double done) {
    double all = (double)columns->input_bytes, wish = all > done ? 1.02 * (double)size * all / done : (double)size;
    return (size_t)(wish > 2 * all ? 2 * all : wish);
}

/* Makes room for more bytes; a buffer that must grow gets the expected size for all the input. */
static int reserve(const kw_columns *columns, kw_buffer *buffer, size_t more) {
    if (KW_LIKELY(more <= buffer->room - buffer->size)) return 1;
    return kw_buffer_grow(buffer, buffer->size + more, foreseen(columns, buffer->size + more, columns->done));
}

/* The same if `more` is an upper bound: the rate is that of the bytes in the buffer. */
static int reserve_at_rate(const kw_columns *columns, kw_buffer *buffer, size_t more) {
    if (KW_LIKELY(more <= buffer->room - buffer->size)) return 1;
    size_t wish = buffer->size ? foreseen(columns, buffer->size, columns->done_before) : 0;
    return kw_buffer_grow(buffer, buffer->size + more, wish + more);
}

static void binary_free(kw_binary *binary) {
    kw_buffer_free(&binary->spans);
    kw_buffer_free(&binary->data);
    kw_buffer_free(&binary->validity);
}

void kw_columns_free(kw_columns *columns) {
    for (int i = 0; i < KW_COL_FIXED; i++) kw_buffer_free(&columns->fixed[i]);
    binary_free(&columns->key);
    binary_free(&columns->value);
    binary_free(&columns->header_key);
    binary_free(&columns->header_value);
    kw_buffer_free(&columns->header_lists);
}

#define WIDEST 32
#define AHEAD 512 /* prefetch distance in bytes */

/* Copies size bytes in blocks of width (a constant): both sides must have width spare bytes after them. */
static inline __attribute__((always_inline)) void copy_wide(uint8_t *to, const uint8_t *from, int64_t size,
                                                            int64_t width) {
    do {
        memcpy(to, from, (size_t)width);
        to += width;
        from += width;
        size -= width;
    } while (size > 0);
}

/* Extends a bitmap to rows + count bits; in a new one the first `rows` bits are set to 1. */
static int validity_reserve(kw_binary *binary, int64_t rows, int64_t count) {
    size_t need = (size_t)(rows + count + 7) / 8;
    if (need > binary->validity.size) {
        size_t more = need - binary->validity.size;
        if (!kw_buffer_reserve(&binary->validity, more)) return 0;
        memset(binary->validity.data + binary->validity.size, 0xff, more);
        binary->validity.size = need;
    }
    return 1;
}

/* Marks a row null; the bitmap is made at the first null. */
static __attribute__((noinline)) int set_null(kw_binary *binary, int64_t row) {
    if (!validity_reserve(binary, row, 1)) return 0;
    binary->validity.data[row >> 3] &= (uint8_t)~(1u << (row & 7));
    binary->nulls++;
    return 1;
}

/* The spans of keys (value = 0) or values of records. */
#define PART_AT(r, value) ((value) ? (r)->value_at : (r)->key_at)
#define PART_SIZE(r, value) ((value) ? (r)->value_size : (r)->key_size)

/* Copies the parts of count records to `to`, in blocks of width; spans[i + 1] is where part i ends. */
static inline __attribute__((always_inline)) int32_t copy_parts(kw_binary *binary, uint8_t *to, int32_t *spans,
                                                                int64_t rows, const kw_record *records, uint32_t count,
                                                                int value, const kw_place *place, int64_t width) {
    const uint8_t *block = place->block, *safe = block + place->block_size;
    int32_t at = spans[0];
    for (uint32_t i = 0; i < count; i++) {
        int32_t size = PART_SIZE(records + i, value);
        if (KW_LIKELY(size >= 0)) {
            const uint8_t *from = block + PART_AT(records + i, value);
            __builtin_prefetch(to + AHEAD, 1);
            __builtin_prefetch(to + AHEAD + 64, 1);
            if (KW_LIKELY(size <= 1024 && safe - from >= size + width))
                copy_wide(to, from, size, width);
            else
                memcpy(to, from, (size_t)size);
            to += size;
            at += size;
        } else if (!set_null(binary, rows + i)) {
            return -1;
        }
        spans[i + 1] = at;
    }
    return at;
}

typedef int32_t copy_function(kw_binary *, uint8_t *, int32_t *, int64_t, const kw_record *, uint32_t, int,
                              const kw_place *);

static int32_t copy_parts_16(kw_binary *binary, uint8_t *to, int32_t *spans, int64_t rows, const kw_record *records,
                             uint32_t count, int value, const kw_place *place) {
    return value ? copy_parts(binary, to, spans, rows, records, count, 1, place, 16)
                 : copy_parts(binary, to, spans, rows, records, count, 0, place, 16);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static int32_t copy_parts_32(kw_binary *binary, uint8_t *to, int32_t *spans,
                                                             int64_t rows, const kw_record *records, uint32_t count,
                                                             int value, const kw_place *place) {
    return value ? copy_parts(binary, to, spans, rows, records, count, 1, place, 32)
                 : copy_parts(binary, to, spans, rows, records, count, 0, place, 16);
}

static copy_function *best_copy(void) {
    return __builtin_cpu_supports("avx2") ? copy_parts_32 : copy_parts_16;
}
#else
static copy_function *best_copy(void) { return copy_parts_16; }
#endif

static kw_append_status append_copies(const kw_columns *columns, kw_binary *binary, const kw_record *records,
                                      uint32_t count, int value, const kw_place *place) {
    int64_t rows = columns->rows, bytes = place->block_size - records->key_at; /* at most this many are left */
    /* rows are counted only once all columns have room: anything after them is overwritten */
    int64_t used = rows ? ((const int32_t *)binary->spans.data)[rows] : 0;
    if (bytes > columns->max_bytes - used) return KW_APPEND_FULL;
    binary->data.size = (size_t)used;
    binary->spans.size = rows ? (size_t)(rows + 1) * 4 : 0;
    if (!reserve_at_rate(columns, &binary->data, (size_t)bytes + WIDEST) ||
        !reserve(columns, &binary->spans, ((size_t)count + 1) * 4))
        return KW_APPEND_MEMORY;
    int32_t *spans = (int32_t *)binary->spans.data + rows;
    spans[0] = (int32_t)used;
    int32_t at = best_copy()(binary, binary->data.data + used, spans, rows, records, count, value, place);
    if (at < 0 || (binary->validity.size && !validity_reserve(binary, rows, count))) return KW_APPEND_MEMORY;
    binary->data.size = (size_t)at;
    binary->spans.size = (size_t)(rows + count + 1) * 4;
    return KW_APPEND_OK;
}

static kw_append_status append_views(const kw_columns *columns, kw_binary *binary, const kw_record *records,
                                     uint32_t count, int value, const kw_place *place) {
    int64_t rows = columns->rows;
    binary->spans.size = (size_t)rows * 16;
    if (!reserve(columns, &binary->spans, (size_t)count * 16)) return KW_APPEND_MEMORY;
    uint8_t *to = binary->spans.data + rows * 16;
    const uint8_t *block = place->block, *safe = block + place->block_size;
    for (uint32_t i = 0; i < count; i++, to += 16) {
        int32_t size = PART_SIZE(records + i, value);
        uint32_t part = PART_AT(records + i, value);
        if (KW_LIKELY(size > 12)) {
            uint64_t at = place->view_at + part;
            int32_t index = place->view_buffer + (int32_t)(at >> 30), inside = (int32_t)(at & 0x3fffffff);
            memcpy(to, &size, 4);
            memcpy(to + 4, block + part, 4);
            memcpy(to + 8, &index, 4);
            memcpy(to + 12, &inside, 4);
            continue;
        }
        if (size < 0) {
            if (!set_null(binary, rows + i)) return KW_APPEND_MEMORY;
            size = 0;
        }
        if (KW_LIKELY(safe - (block + part) >= 16)) {
            /* copies twelve bytes, then clears those after the value */
            static const uint8_t mask[24] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
            uint64_t low, low_mask;
            uint32_t high, high_mask;
            memcpy(&low, block + part, 8);
            memcpy(&high, block + part + 8, 4);
            memcpy(&low_mask, mask + 12 - size, 8);
            memcpy(&high_mask, mask + 20 - size, 4);
            low &= low_mask;
            high &= high_mask;
            memcpy(to, &size, 4);
            memcpy(to + 4, &low, 8);
            memcpy(to + 12, &high, 4);
        } else {
            memset(to, 0, 16);
            memcpy(to, &size, 4);
            if (size) memcpy(to + 4, block + part, (size_t)size);
        }
    }
    binary->spans.size = (size_t)(rows + count) * 16;
    if (binary->validity.size && !validity_reserve(binary, rows, count)) return KW_APPEND_MEMORY;
    return KW_APPEND_OK;
}

/* Adds one span to a header column. */
static int append_header_part(kw_binary *binary, int64_t rows, const uint8_t *from, int32_t size, int text) {
    size_t bytes = size > 0 ? (size_t)size : 0;
    if (!kw_buffer_reserve(&binary->data, text ? bytes * 3 : bytes) || !kw_buffer_reserve(&binary->spans, 8)) return 0;
    int32_t *spans = (int32_t *)binary->spans.data;
    if (rows == 0) spans[0] = 0;
    if (bytes) {
        if (text) {
            bytes = kw_utf8_clean(from, bytes, binary->data.data + binary->data.size);
        } else {
            memcpy(binary->data.data + binary->data.size, from, bytes);
        }
        binary->data.size += bytes;
    }
    if (size < 0 ? !set_null(binary, rows) : binary->validity.size && !validity_reserve(binary, rows, 1)) return 0;
    spans[rows + 1] = (int32_t)binary->data.size;
    binary->spans.size = (size_t)(rows + 2) * 4;
    return 1;
}

static kw_append_status append_headers(kw_columns *columns, const kw_record *records, uint32_t count,
                                       const kw_place *place) {
    int64_t rows = columns->header_rows;
    /* drops the headers of a batch that failed after them */
    if (!kw_buffer_reserve(&columns->header_lists, ((size_t)count + 2) * 4)) return KW_APPEND_MEMORY;
    columns->header_key.data.size = rows ? (size_t)((int32_t *)columns->header_key.spans.data)[rows] : 0;
    columns->header_value.data.size = rows ? (size_t)((int32_t *)columns->header_value.spans.data)[rows] : 0;
    columns->header_key.spans.size = columns->header_value.spans.size = rows ? (size_t)(rows + 1) * 4 : 0;
    columns->header_lists.size = (size_t)(columns->rows + 1) * 4;
    int32_t *lists = (int32_t *)columns->header_lists.data + columns->rows;
    lists[0] = (int32_t)rows;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = records[i].headers_at;
        for (int32_t n = records[i].headers; n > 0; n--) {
            uint32_t key_at, value_at;
            int32_t key_size, value_size;
            if (kw_header_read(place->block, place->block_size, &at, &key_at, &key_size, &value_at, &value_size))
                return KW_APPEND_BAD; /* the input was changed meanwhile */
            if ((int64_t)key_size * 3 > columns->max_bytes - (int64_t)columns->header_key.data.size ||
                value_size > columns->max_bytes - (int64_t)columns->header_value.data.size || rows >= INT32_MAX - 1)
                return KW_APPEND_FULL;
            if (!append_header_part(&columns->header_key, rows, place->block + key_at, key_size, 1) ||
                !append_header_part(&columns->header_value, rows, place->block + value_at, value_size, 0))
                return KW_APPEND_MEMORY;
            rows++;
        }
        lists[i + 1] = (int32_t)rows;
    }
    columns->header_lists.size = (size_t)(columns->rows + count + 1) * 4;
    columns->header_rows = rows;
    return KW_APPEND_OK;
}

#define FILL(type, number, expression)                                                      \
    if (columns->fields & 1u << (number)) {                                                 \
        type *column = (type *)columns->fixed[number].data + columns->rows;                 \
        for (uint32_t i = 0; i < count; i++) column[i] = (type)(expression);                \
    }

/* Reverts the validity bitmap after a failed append. */
static void restore_validity(kw_binary *binary, int64_t rows, int64_t nulls) {
    binary->nulls = nulls;
    if (!binary->validity.size) return;
    binary->validity.size = (size_t)(rows + 7) / 8;
    if (rows & 7) binary->validity.data[rows >> 3] |= (uint8_t)(0xff << (rows & 7));
}

/* The state to which a failed append reverts; the sizes of all buffers follow from the rows. */
typedef struct {
    int64_t rows, header_rows, keys, values, headers;
} mark;

static mark mark_rows(const kw_columns *columns) {
    return (mark){columns->rows, columns->header_rows, columns->key.nulls, columns->value.nulls,
                  columns->header_value.nulls};
}

static void restore_rows(kw_columns *columns, const mark *to) {
    columns->rows = to->rows;
    columns->header_rows = to->header_rows;
    restore_validity(&columns->key, to->rows, to->keys);
    restore_validity(&columns->value, to->rows, to->values);
    restore_validity(&columns->header_value, to->header_rows, to->headers);
}

static kw_append_status append_all(kw_columns *columns, const kw_batch *batch, const kw_record *records,
                                   uint32_t count, const kw_place *place) {
    kw_append_status status;
    if (count == 0) return KW_APPEND_OK; /* the buffers may be NULL */
    if (columns->rows + count > INT32_MAX - 1) return KW_APPEND_FULL;
    for (int i = 0; i < KW_COL_FIXED; i++) {
        if (!(columns->fields & 1u << i)) continue;
        kw_buffer *buffer = &columns->fixed[i];
        buffer->size = (size_t)columns->rows * widths[i];
        if (!reserve(columns, buffer, (size_t)count * widths[i])) return KW_APPEND_MEMORY;
    }
    for (int value = 0; value < 2; value++) {
        if (!(columns->fields & 1u << (value ? KW_COL_VALUE : KW_COL_KEY))) continue;
        kw_binary *binary = value ? &columns->value : &columns->key;
        status = columns->views
                     ? append_views(columns, binary, records, count, value, place)
                     : append_copies(columns, binary, records, count, value, place);
        if (status) return status;
    }
    if (columns->fields & 1u << KW_COL_HEADERS) {
        status = append_headers(columns, records, count, place);
        if (status) return status;
    }
    FILL(int64_t, KW_COL_OFFSET, records[i].offset)
    if (batch->timestamp_type == KW_TIME_CREATE) {
        FILL(int64_t, KW_COL_TIMESTAMP, records[i].stamp)
    } else {
        FILL(int64_t, KW_COL_TIMESTAMP, kw_timestamp(batch, records + i))
    }
    FILL(int8_t, KW_COL_TIMESTAMP_TYPE, records[i].timestamp_type)
    FILL(int32_t, KW_COL_SEQUENCE, kw_sequence(batch, records[i].offset))
    FILL(int64_t, KW_COL_PRODUCER_ID, batch->producer_id)
    FILL(int16_t, KW_COL_PRODUCER_EPOCH, batch->producer_epoch)
    FILL(int32_t, KW_COL_LEADER_EPOCH, batch->partition_leader_epoch)
    FILL(int64_t, KW_COL_BATCH_POSITION, place->position)
    FILL(int32_t, KW_COL_SOURCE, place->source)
    FILL(int8_t, KW_COL_CODEC, batch->codec)
    FILL(int8_t, KW_COL_IS_CONTROL, batch->magic == 2 && batch->attributes & KW_ATTR_CONTROL)
    columns->rows += count;
    for (int i = 0; i < KW_COL_FIXED; i++)
        if (columns->fields & 1u << i) columns->fixed[i].size = (size_t)columns->rows * widths[i];
    return KW_APPEND_OK;
}

kw_append_status kw_columns_append(kw_columns *columns, const kw_batch *batch, const kw_record *records,
                                   uint32_t count, const kw_place *place) {
    mark before = mark_rows(columns);
    columns->done_before = (double)columns->seen_bytes;
    columns->done = columns->done_before + batch->size;
    kw_append_status status = append_all(columns, batch, records, count, place);
    if (KW_UNLIKELY(status != KW_APPEND_OK))
        restore_rows(columns, &before);
    else
        columns->seen_bytes += batch->size;
    return status;
}

uint32_t kw_window_apply(const kw_window *window, const kw_batch *batch, kw_record *records, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t offset = records[i].offset, time = kw_timestamp(batch, records + i);
        if (offset < window->offset_from || offset > window->offset_last || time < window->time_from ||
            time > window->time_last)
            continue;
        if (kept != i) records[kept] = records[i];
        kept++;
    }
    return kept;
}

/* The number of records per portion of a batch. */
static uint32_t portion_of(uint32_t bytes, uint32_t count) {
    uint64_t portion = (uint64_t)count * PORTION_BYTES / (bytes ? bytes : 1);
    return portion < PORTION_LEAST ? PORTION_LEAST : portion > PORTION ? PORTION : (uint32_t)portion;
}

kw_append_status kw_columns_append_batch(kw_columns *columns, const kw_batch *batch, const kw_place *place,
                                         uint32_t at, const kw_window *window, kw_checksum *crc32c,
                                         kw_batch_status *status, uint32_t *where) {
    kw_record records[PORTION];
    const uint32_t start = at, bytes = place->block_size - start;
    const double rate = (double)batch->size / (double)(bytes ? bytes : 1);
    uint32_t summed = KW_ATTRIBUTES_OFFSET, sum = 0;
    mark before = mark_rows(columns);
    kw_append_status appended = KW_APPEND_OK;
    *where = 0;
    *status = kw_batch_count(batch, bytes);
    columns->done = (double)columns->seen_bytes;
    uint32_t left = *status == KW_BATCH_OK ? (uint32_t)batch->count : 0, portion = portion_of(bytes, left);
    while (left) {
        uint32_t count = left < portion ? left : portion;
        *status = kw_records_read(place->block, &at, place->block_size, batch, records, count);
        if (KW_UNLIKELY(*status != KW_BATCH_OK)) break;
        left -= count;
        if (window) count = kw_window_apply(window, batch, records, count);
        columns->done_before = columns->done;
        columns->done = (double)columns->seen_bytes + (double)(at - start) * rate;
        appended = append_all(columns, batch, records, count, place);
        if (KW_UNLIKELY(appended != KW_APPEND_OK)) break;
        if (crc32c) {
            sum = crc32c(sum, place->block + summed, at - summed);
            summed = at;
        }
    }
    if (*status == KW_BATCH_OK && appended == KW_APPEND_BAD) *status = KW_BATCH_HEADERS; /* the input changed */
    if (*status == KW_BATCH_OK && appended == KW_APPEND_OK && batch->count && at != place->block_size)
        *status = KW_BATCH_TRAILING;
    *where = at;
    if (crc32c && appended != KW_APPEND_MEMORY &&
        crc32c(sum, place->block + summed, place->block_size - summed) != batch->crc) {
        *status = KW_BATCH_CRC; /* reported first, as it causes the other errors */
        *where = 0;
    }
    if (KW_LIKELY(*status == KW_BATCH_OK && appended == KW_APPEND_OK)) {
        columns->seen_bytes += batch->size;
        return KW_APPEND_OK;
    }
    restore_rows(columns, &before);
    return *status != KW_BATCH_OK ? KW_APPEND_BAD : appended;
}

kw_run_status kw_columns_run(kw_columns *columns, kw_run *run) {
    for (;;) {
        size_t left = run->size - run->at;
        const uint8_t *data = run->data + run->at;
        kw_batch *batch = &run->batch;
        if (left == 0) {
            run->status = KW_BATCH_OK;
            return KW_RUN_END;
        }
        run->status = kw_batch_read(data, left, batch);
        if (run->status == KW_BATCH_TAIL) return KW_RUN_END;
        run->where = 0;
        if (run->status != KW_BATCH_OK) return KW_RUN_BAD;
        if (batch->magic < 2) return KW_RUN_SLOW;
        const int is_control = (batch->attributes & KW_ATTR_CONTROL) != 0;
        kw_checksum *crc32c = run->verify_crc && run->keep_at != run->at ? run->crc32c : NULL;
        if (crc32c && (batch->codec || is_control || run->window || run->ask)) {
            /* check the CRC before using the header below; for other batches it is checked while reading */
            if (crc32c(0, data + KW_ATTRIBUTES_OFFSET, batch->size - KW_ATTRIBUTES_OFFSET) != batch->crc) {
                run->status = KW_BATCH_CRC;
                return KW_RUN_BAD;
            }
            crc32c = NULL;
        }
        if (!run->control && is_control) {
            run->at += batch->size;
            continue;
        }
        if (run->window && (batch->base_offset > run->window->offset_last ||
                            batch->last_offset < run->window->offset_from)) {
            run->at += batch->size;
            continue;
        }
        if (run->ask && run->keep_at != run->at && (batch->attributes & KW_ATTR_TRANSACTIONAL) && !is_control)
            return KW_RUN_TRANSACTION;
        if (batch->codec) return KW_RUN_SLOW;
        kw_place place = {data, batch->size, run->view_buffer, run->at, run->origin + (int64_t)run->at, run->source};
        switch (kw_columns_append_batch(columns, batch, &place, KW_RECORD_BATCH_OVERHEAD, run->window, crc32c, &run->status,
                                        &run->where)) {
        case KW_APPEND_OK: break;
        case KW_APPEND_FULL: return KW_RUN_FULL;
        case KW_APPEND_MEMORY: return KW_RUN_MEMORY;
        case KW_APPEND_BAD: return KW_RUN_BAD;
        }
        run->at += batch->size;
    }
}
