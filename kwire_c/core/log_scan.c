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

/* The last offset of the batch at data, of at least the smallest size; wraps like Kafka's where it is not valid. */
static int64_t last_offset(const uint8_t *data) {
    uint64_t base = kw_load64(data);
    if (data[KW_MAGIC_OFFSET] != 2) return (int64_t)base;
    return (int64_t)(base + (uint64_t)(int64_t)(int32_t)kw_load32(data + KW_LAST_OFFSET_DELTA_OFFSET));
}

kw_hop_status kw_hop_valid(const uint8_t *data, size_t size, kw_hop_checksum *crc32c, kw_hops *hops) {
    kw_cursor c, after;
    kw_cursor_set(&c, data, size);
    c.at += hops->end;
    while (hops->end < hops->stop) {
        const uint8_t *at = c.at;
        uint64_t batch = header_size(&c);
        if (batch == 0 || !kw_has(&c, (int64_t)batch)) break;
        after = c;
        after.at += batch;
        int is_end = hops->end + batch >= hops->left, seen = kw_has(&after, KW_HEADER_UP_TO_MAGIC);
        if (!seen && !is_end && hops->left - hops->end - batch >= KW_HEADER_UP_TO_MAGIC) break;
        /* the bytes may change meanwhile: the sizes were checked above, the magic may only choose the checksum */
        if (at[KW_MAGIC_OFFSET] == 2 && batch >= KW_RECORD_BATCH_OVERHEAD) {
            if (crc32c(0, at + KW_ATTRIBUTES_OFFSET, (size_t)batch - KW_ATTRIBUTES_OFFSET) != kw_load32(at + KW_CRC_OFFSET))
                return KW_HOP_CHECKSUM;
        } else if (hops->checked != hops->end) {
            return KW_HOP_LEGACY;
        }
        int64_t base = (int64_t)kw_load64(at), last = batch >= KW_RECORD_BATCH_OVERHEAD ? last_offset(at) : base;
        if (hops->ordered && seen && header_size(&after) != 0) {
            int64_t next = (int64_t)kw_load64(after.at);
            if (hops->previous < next && (base <= hops->previous || last >= next)) return KW_HOP_ORDER;
        }
        hops->previous = last;
        hops->last = hops->end;
        hops->end += (size_t)batch;
        c.at += batch;
        if (hops->rows) {
            if (batch >= KW_RECORD_BATCH_OVERHEAD && at[KW_MAGIC_OFFSET] == 2)
                hops->rows -= (int64_t)kw_load32(at + KW_RECORDS_COUNT_OFFSET);
            else
                hops->rows -= at[KW_LEGACY_ATTRIBUTES_OFFSET] & KW_ATTR_CODEC ? 100 : 1;
            if (hops->rows <= 0) break;
        }
    }
    return KW_HOP_STOP;
}

size_t kw_find_header(const uint8_t *data, size_t size, uint64_t left, size_t from, size_t stop, int64_t low,
                      int64_t high, int followed) {
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
        int64_t base = (int64_t)kw_load64(c.at);
        if (base < low || base > high || batch > left - at) continue;
        if (followed && kw_has(&c, (int64_t)batch + KW_HEADER_UP_TO_MAGIC)) {
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
