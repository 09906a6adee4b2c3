/* Scanning batch headers: see log_scan.h. */
#include "log_scan.h"

#include "batch.h"
#include "cursor.h"

/* The size of the batch whose header begins at the cursor, 0 if there is no valid header. */
static uint64_t header_size(const kw_cursor *c) {
    if (!kw_has(c, KW_HEADER_UP_TO_MAGIC)) return 0;
    uint32_t length = kw_load32(c->at + KW_LENGTH_OFFSET);
    uint8_t magic = c->at[KW_MAGIC_OFFSET];
    if (magic > 2 || length > KW_MAX_LENGTH || length + KW_LOG_OVERHEAD < kw_smallest_batch(magic)) return 0;
    return (uint64_t)length + KW_LOG_OVERHEAD;
}

static int all_zero(const uint8_t *p, size_t size) {
    uint8_t all = 0;
    while (size--) all |= *p++;
    return all == 0;
}

void kw_hop(const uint8_t *data, size_t size, size_t stop, int64_t rows, size_t *end, size_t *last) {
    kw_cursor c;
    int64_t count = 0;
    kw_cursor_set(&c, data, size);
    *last = 0;
    while ((size_t)(c.at - data) < stop) {
        uint64_t batch = header_size(&c);
        if (batch == 0 || !kw_has(&c, (int64_t)batch)) break;
        const uint8_t *at = c.at;
        *last = (size_t)(at - data);
        c.at += batch;
        if (rows) {
            if (batch >= KW_RECORD_BATCH_OVERHEAD && at[KW_MAGIC_OFFSET] == 2) /* checked again: it may have changed */
                count += (int64_t)kw_load32(at + KW_RECORDS_COUNT_OFFSET);
            else
                count += at[KW_LEGACY_ATTRIBUTES_OFFSET] & KW_ATTR_CODEC ? 100 : 1;
            if (count >= rows) break;
        }
    }
    *end = (size_t)(c.at - data);
}

size_t kw_find_header(const uint8_t *data, size_t size, uint64_t left, size_t from, size_t stop) {
    kw_cursor c, after;
    kw_cursor_set(&c, data, size);
    for (size_t at = from; at < stop; at++) {
        c.at = data + at;
        uint64_t batch = header_size(&c);
        if (batch == 0) {
            if (!kw_has(&c, KW_HEADER_UP_TO_MAGIC)) return stop;
            if (kw_load64(c.at + KW_LENGTH_OFFSET) == 0) at += 4; /* no length at the next four positions */
            continue;
        }
        if (c.at[0] > 0x7f || batch > left - at) continue;
        if (kw_has(&c, (int64_t)batch + KW_HEADER_UP_TO_MAGIC)) {
            after = c;
            after.at += batch;
            if (header_size(&after) == 0 && !all_zero(after.at, KW_HEADER_UP_TO_MAGIC)) continue;
        }
        return at;
    }
    return stop;
}

size_t kw_next_marked(const uint8_t *data, size_t size, size_t at, uint16_t bits) {
    kw_cursor c;
    kw_cursor_set(&c, data, size);
    c.at += at;
    for (;;) {
        uint64_t batch = header_size(&c);
        if (batch == 0 || !kw_has(&c, (int64_t)batch)) return size;
        if (c.at[KW_MAGIC_OFFSET] == 2 && kw_load16(c.at + KW_ATTRIBUTES_OFFSET) & bits) return (size_t)(c.at - data);
        c.at += batch;
    }
}
