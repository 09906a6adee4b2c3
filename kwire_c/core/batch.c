/* Record batches: see batch.h. */
#include "batch.h"

#include "cursor.h"

kw_batch_status kw_batch_read(const uint8_t *data, size_t left, kw_batch *batch) {
    if (left < KW_LOG_OVERHEAD) return KW_BATCH_TAIL;
    batch->base_offset = batch->last_offset = (int64_t)kw_load64(data);
    batch->size = 0;
    int32_t length = (int32_t)kw_load32(data + KW_LENGTH_OFFSET);
    if (length < KW_MIN_LENGTH) return KW_BATCH_LENGTH;
    if (left < KW_HEADER_UP_TO_MAGIC) return KW_BATCH_TAIL;
    if (length > KW_MAX_LENGTH) return KW_BATCH_LENGTH; /* in Kafka the sum with the overhead overflows */
    batch->size = (uint32_t)length + KW_LOG_OVERHEAD;
    batch->magic = (int8_t)data[KW_MAGIC_OFFSET];
    if (batch->magic < 0 || batch->magic > 2) return KW_BATCH_MAGIC;
    if (batch->size > left) return KW_BATCH_TAIL;

    if (batch->magic < 2) {
        if (batch->size < kw_smallest_batch(batch->magic)) return KW_BATCH_TOO_SMALL;
        batch->crc = kw_load32(data + KW_LEGACY_CRC_OFFSET);
        batch->attributes = data[KW_LEGACY_ATTRIBUTES_OFFSET];
        batch->codec = batch->attributes & KW_ATTR_CODEC;
        batch->timestamp_type = !batch->magic ? KW_TIME_NONE
                                : batch->attributes & KW_ATTR_LOG_APPEND ? KW_TIME_LOG_APPEND : KW_TIME_CREATE;
        batch->base_timestamp = batch->max_timestamp = batch->magic ? (int64_t)kw_load64(data + KW_LEGACY_TIMESTAMP_OFFSET)
                                                                            : -1;
        batch->producer_id = batch->partition_leader_epoch = batch->base_sequence = batch->producer_epoch = -1;
        batch->count = batch->codec ? -1 : 1;
        batch->payload = 0;
        return KW_BATCH_OK;
    }
    if (batch->size < KW_RECORD_BATCH_OVERHEAD) return KW_BATCH_TOO_SMALL;
    batch->partition_leader_epoch = (int32_t)kw_load32(data + KW_PARTITION_LEADER_EPOCH_OFFSET);
    batch->crc = kw_load32(data + KW_CRC_OFFSET);
    batch->attributes = kw_load16(data + KW_ATTRIBUTES_OFFSET);
    batch->codec = batch->attributes & KW_ATTR_CODEC;
    batch->timestamp_type = batch->attributes & KW_ATTR_LOG_APPEND ? KW_TIME_LOG_APPEND : KW_TIME_CREATE;
    int32_t delta = (int32_t)kw_load32(data + KW_LAST_OFFSET_DELTA_OFFSET);
    batch->last_offset = (int64_t)((uint64_t)batch->base_offset + (uint64_t)(int64_t)delta);
    batch->base_timestamp = (int64_t)kw_load64(data + KW_BASE_TIMESTAMP_OFFSET);
    batch->max_timestamp = (int64_t)kw_load64(data + KW_MAX_TIMESTAMP_OFFSET);
    batch->producer_id = (int64_t)kw_load64(data + KW_PRODUCER_ID_OFFSET);
    batch->producer_epoch = (int16_t)kw_load16(data + KW_PRODUCER_EPOCH_OFFSET);
    batch->base_sequence = (int32_t)kw_load32(data + KW_BASE_SEQUENCE_OFFSET);
    batch->count = (int32_t)kw_load32(data + KW_RECORDS_COUNT_OFFSET);
    batch->payload = KW_RECORD_BATCH_OVERHEAD;
    return KW_BATCH_OK;
}

uint32_t kw_batch_trusted_size(const uint8_t *data, size_t left) {
    if (left < KW_HEADER_UP_TO_MAGIC) return 0;
    int32_t length = (int32_t)kw_load32(data + KW_LENGTH_OFFSET);
    if (length < KW_MIN_LENGTH || length > KW_MAX_LENGTH || (size_t)length > left - KW_LOG_OVERHEAD) return 0;
    uint32_t size = (uint32_t)length + KW_LOG_OVERHEAD;
    size_t after = left - size;
    return after == 0 || (after >= KW_HEADER_UP_TO_MAGIC && data[(size_t)size + KW_MAGIC_OFFSET] <= 2) ? size : 0;
}

int32_t kw_sequence(const kw_batch *batch, int64_t offset) {
    if (batch->base_sequence < 0) return -1;
    uint32_t delta = (uint32_t)((uint64_t)offset - (uint64_t)batch->base_offset), base = (uint32_t)batch->base_sequence;
    uint32_t room = (uint32_t)INT32_MAX - delta; /* wraps as Java's int does */
    if (batch->base_sequence > (int32_t)room) return (int32_t)(delta - ((uint32_t)INT32_MAX - base) - 1);
    return (int32_t)(base + delta);
}

int kw_control_type(const uint8_t *block, const kw_record *record) {
    return record->key_size < 4 ? -1 : (int16_t)kw_load16(block + record->key_at + 2);
}

/* Walks a record's headers; they must end where the record ends. */
static kw_batch_status walk_headers(const uint8_t *block, uint32_t at, uint32_t end, int32_t count) {
    if (count < 0 || (uint32_t)count > end - at) return KW_BATCH_HEADERS;
    const uint8_t *p = block + at, *stop = block + end;
    while (count) {
        /* fast path for one-byte lengths; each is read once, as the input may change */
        const uint32_t key = p < stop ? *(const volatile uint8_t *)p : 1;
        if (KW_LIKELY(key < 0x80 && !(key & 1))) {
            if (KW_LIKELY((int64_t)(key >> 1) + 2 <= stop - p)) {
                const uint8_t *v = p + 1 + (key >> 1);
                const uint32_t value = *(const volatile uint8_t *)v;
                if (KW_LIKELY(value < 0x80 && !(value & 1) && (value >> 1) < stop - v)) {
                    p = v + 1 + (value >> 1);
                    count--;
                    continue;
                }
            }
        }
        uint32_t from = (uint32_t)(p - block), key_at, value_at;
        int32_t key_size, value_size;
        kw_batch_status status = kw_header_read(block, end, &from, &key_at, &key_size, &value_at, &value_size);
        if (status != KW_BATCH_OK) return status;
        p = block + from;
        count--;
    }
    return p == stop ? KW_BATCH_OK : KW_BATCH_RECORD;
}

/* Reads one record with bounds checks. */
static kw_batch_status read_record(kw_cursor *c, const kw_batch *batch, kw_record *record) {
    int32_t size, delta, headers;
    int64_t stamp_delta;
    if (kw_read_varint32(c, &size) != KW_OK || !kw_has(c, size)) return KW_BATCH_RECORD_LENGTH;
    kw_cursor r = {c->base, c->at, c->at + size};
    if (!kw_has(&r, 1)) return KW_BATCH_RECORD;
    record->attributes = (int8_t)*r.at++;
    if (kw_read_varint64(&r, &stamp_delta) != KW_OK || kw_read_varint32(&r, &delta) != KW_OK ||
        kw_read_varint32(&r, &record->key_size) != KW_OK)
        return KW_BATCH_RECORD;
    record->stamp = (int64_t)((uint64_t)batch->base_timestamp + (uint64_t)stamp_delta);
    record->offset = (int64_t)((uint64_t)batch->base_offset + (uint64_t)(int64_t)delta);
    record->key_at = (uint32_t)(r.at - r.base);
    if (record->key_size < 0) {
        record->key_size = -1;
    } else {
        if (!kw_has(&r, record->key_size)) return KW_BATCH_RECORD;
        r.at += record->key_size;
    }
    if (kw_read_varint32(&r, &record->value_size) != KW_OK) return KW_BATCH_RECORD;
    record->value_at = (uint32_t)(r.at - r.base);
    if (record->value_size < 0) {
        record->value_size = -1;
    } else {
        if (!kw_has(&r, record->value_size)) return KW_BATCH_RECORD;
        r.at += record->value_size;
    }
    if (kw_read_varint32(&r, &headers) != KW_OK) return KW_BATCH_RECORD;
    record->headers = headers;
    record->headers_at = (uint32_t)(r.at - r.base);
    c->at = r.end;
    return walk_headers(r.base, record->headers_at, (uint32_t)(r.end - r.base), headers);
}

/* Reads a varint of one or two bytes at p into v (still zigzag encoded); `otherwise` if it is longer. */
#define SHORT_VARINT(p, v, otherwise)                    \
    do {                                                 \
        v = *p++;                                        \
        if (v >= 0x80) {                                 \
            uint32_t second = *p++;                      \
            if (KW_UNLIKELY(second >= 0x80)) otherwise;  \
            v = (v & 0x7f) | second << 7;                \
        }                                                \
    } while (0)

kw_batch_status kw_records_read(const uint8_t *block, uint32_t *at, uint32_t size, const kw_batch *batch,
                                kw_record *records, uint32_t count) {
    kw_cursor c = {block, block + *at, block + size};
    const int8_t type = batch->timestamp_type;
    const uint64_t base_stamp = (uint64_t)batch->base_timestamp, base_offset = (uint64_t)batch->base_offset;
    if (count == 0) return KW_BATCH_OK; /* the array may be NULL */
    /* While 64 bytes are left after a record, its head's varints (under 40 bytes) are read without a check: each part
       is checked against the record's end, and no varint reaches 64 bytes past it. */
    const int64_t last_safe = (int64_t)size - 64;
    for (kw_record *record = records, *stop = records + count; record != stop; record++) {
        const uint8_t *p = c.at, *record_end;
        uint32_t v;
        record->timestamp_type = type;
        if (KW_UNLIKELY(p - block > last_safe)) goto checked;
        SHORT_VARINT(p, v, goto checked);
        if (KW_UNLIKELY((v & 1) || p - block + (int64_t)(v >> 1) > last_safe)) goto checked;
        record_end = p + (v >> 1);
        record->attributes = (int8_t)*p++;
        SHORT_VARINT(p, v, goto wide_stamp);
        record->stamp = (int64_t)(base_stamp + (uint64_t)(int64_t)kw_unzigzag32(v));
    after_stamp:
        SHORT_VARINT(p, v, goto checked);
        record->offset = (int64_t)(base_offset + (uint64_t)(int64_t)kw_unzigzag32(v));
        SHORT_VARINT(p, v, goto checked);
        record->key_at = (uint32_t)(p - block);
        if (KW_LIKELY(!(v & 1))) {
            v >>= 1;
            if (KW_UNLIKELY((int64_t)v > record_end - p)) goto checked;
            record->key_size = (int32_t)v;
            p += v;
        } else {
            record->key_size = -1;
        }
        SHORT_VARINT(p, v, goto wide_value);
    after_value_size:
        record->value_at = (uint32_t)(p - block);
        if (KW_LIKELY(!(v & 1))) {
            v >>= 1;
            if (KW_UNLIKELY((int64_t)v >= record_end - p)) goto checked; /* a byte must remain for the headers */
            record->value_size = (int32_t)v;
            p += v;
        } else {
            record->value_size = -1;
            if (KW_UNLIKELY(p >= record_end)) goto checked;
        }
        v = *p++;
        if (KW_UNLIKELY(v >= 0x80)) goto checked;
        record->headers_at = (uint32_t)(p - block);
        record->headers = kw_unzigzag32(v);
        if (v == 0) {
            if (KW_UNLIKELY(p != record_end)) goto checked;
        } else {
            kw_batch_status status =
                walk_headers(block, record->headers_at, (uint32_t)(record_end - block), record->headers);
            if (KW_UNLIKELY(status != KW_BATCH_OK)) {
                *at = (uint32_t)(c.at - block);
                return status;
            }
        }
        c.at = record_end;
        continue;

    wide_stamp: {
            /* three bytes or more: still within the 64 */
            uint64_t wide = 0;
            p -= 2;
            for (int shift = 0;; shift += 7) {
                if (KW_UNLIKELY(shift == 70)) goto checked;
                uint64_t b = *p++;
                wide |= (b & 0x7f) << shift;
                if (b < 0x80) break;
            }
            record->stamp = (int64_t)(base_stamp + (uint64_t)kw_unzigzag64(wide));
            goto after_stamp;
        }
    wide_value: {
            uint32_t wide = 0;
            p -= 2;
            for (int shift = 0;; shift += 7) {
                if (KW_UNLIKELY(shift == 35)) goto checked;
                uint32_t b = *p++;
                wide |= (b & 0x7f) << shift;
                if (b < 0x80) break;
            }
            v = wide;
            goto after_value_size;
        }
    checked: {
            const uint8_t *from = c.at;
            kw_batch_status status = read_record(&c, batch, record);
            if (KW_UNLIKELY(status != KW_BATCH_OK)) {
                *at = (uint32_t)(from - block);
                return status;
            }
        }
    }
    *at = (uint32_t)(c.at - block);
    return KW_BATCH_OK;
}

kw_batch_status kw_batch_count(const kw_batch *batch, uint32_t size) {
    if (batch->count < 0) return KW_BATCH_COUNT_NEGATIVE;
    return (uint32_t)batch->count > size / KW_MIN_RECORD ? KW_BATCH_COUNT_HIGH : KW_BATCH_OK;
}

kw_batch_status kw_legacy_entry(const uint8_t *block, uint32_t size, kw_record *record) {
    int magic = block[KW_MAGIC_OFFSET], attributes = block[KW_LEGACY_ATTRIBUTES_OFFSET];
    kw_cursor c = {block, block + KW_LEGACY_KEY_OFFSET(magic), block + size};
    record->offset = (int64_t)kw_load64(block);
    record->stamp = magic ? (int64_t)kw_load64(block + KW_LEGACY_TIMESTAMP_OFFSET) : -1;
    record->timestamp_type = !magic ? KW_TIME_NONE
                             : attributes & KW_ATTR_LOG_APPEND ? KW_TIME_LOG_APPEND : KW_TIME_CREATE;
    record->attributes = (int8_t)attributes;
    record->headers = 0;
    record->headers_at = size;
    if (!kw_has(&c, 4)) return KW_BATCH_LEGACY_FIELD;
    record->key_size = (int32_t)kw_load32(c.at);
    c.at += 4;
    record->key_at = (uint32_t)(c.at - block);
    if (record->key_size < 0) {
        record->key_size = -1;
    } else {
        if (!kw_has(&c, record->key_size)) return KW_BATCH_LEGACY_FIELD;
        c.at += record->key_size;
    }
    if (!kw_has(&c, 4)) return KW_BATCH_LEGACY_FIELD;
    record->value_size = (int32_t)kw_load32(c.at);
    c.at += 4;
    record->value_at = (uint32_t)(c.at - block);
    if (record->value_size < 0)
        record->value_size = -1;
    else if (!kw_has(&c, record->value_size))
        return KW_BATCH_LEGACY_FIELD;
    return KW_BATCH_OK;
}

/* The entry of a wrapper at block[*at..size), *at moved after it; KW_BATCH_TAIL at the end, and if the last entry is
   truncated: as in Kafka, that is not an error. */
static kw_batch_status inner_entry(const uint8_t *block, uint32_t *at, uint32_t size, const kw_batch *wrapper,
                                   kw_record *record) {
    const uint8_t *entry = block + *at;
    uint32_t left = size - *at;
    if (left < KW_LOG_OVERHEAD) return KW_BATCH_TAIL;
    int32_t length = (int32_t)kw_load32(entry + KW_LENGTH_OFFSET);
    if (length < KW_MIN_LENGTH) return KW_BATCH_INNER;
    if ((uint32_t)length > left - KW_LOG_OVERHEAD) return KW_BATCH_TAIL;
    uint8_t magic = entry[KW_MAGIC_OFFSET];
    if (magic > 1 || (magic == 1 && length < KW_RECORD_OVERHEAD_V1)) return KW_BATCH_INNER;
    kw_batch_status status = kw_legacy_entry(entry, (uint32_t)length + KW_LOG_OVERHEAD, record);
    if (status != KW_BATCH_OK) return status;
    record->key_at += *at;
    record->value_at += *at;
    record->headers_at = size;
    /* a magic 0 entry in a magic 1 wrapper: the batch's type, as a consumer reports it */
    if (magic == 1 || wrapper->timestamp_type == KW_TIME_CREATE) record->timestamp_type = wrapper->timestamp_type;
    *at += (uint32_t)length + KW_LOG_OVERHEAD;
    return KW_BATCH_OK;
}

/* Checks all entries of a wrapper; heads->left and heads->shift. */
static kw_batch_status check_inner(kw_heads *heads, kw_record *first, uint32_t room) {
    const kw_batch *wrapper = heads->batch;
    kw_record other;
    int64_t last = 0;
    int nested = 0;
    for (;;) {
        kw_record *record = heads->left < room ? first + heads->left : &other;
        kw_batch_status status = inner_entry(heads->block, &heads->at, heads->size, wrapper, record);
        if (status == KW_BATCH_TAIL) break;
        if (status != KW_BATCH_OK) return status;
        nested |= record->attributes & KW_ATTR_CODEC;
        last = record->offset;
        heads->left++;
    }
    if (heads->left == 0) return KW_BATCH_WRAPPER_EMPTY;
    if (nested) return KW_BATCH_NESTED;
    /* old librdkafka wrote wrappers with offset 0: then the inner offsets are absolute */
    if (wrapper->magic == 1 && wrapper->last_offset != 0) {
        if (wrapper->last_offset < last) return KW_BATCH_WRAPPER_OFFSET;
        heads->shift = (uint64_t)wrapper->last_offset - (uint64_t)last;
    }
    for (uint32_t i = 0; i < heads->left && i < room; i++)
        first[i].offset = (int64_t)((uint64_t)first[i].offset + heads->shift);
    return KW_BATCH_OK;
}

/* Checks all records of magic 2; heads->left. */
static kw_batch_status check_records(kw_heads *heads, kw_record *first, uint32_t room) {
    kw_record others[KW_PORTION];
    uint32_t left = heads->left = (uint32_t)heads->batch->count;
    while (left) {
        kw_record *records = left == heads->left && room ? first : others;
        uint32_t most = records == first ? room : KW_PORTION, count = left < most ? left : most;
        kw_batch_status status =
            kw_records_read(heads->block, &heads->at, heads->size, heads->batch, records, count);
        if (status != KW_BATCH_OK) return status;
        left -= count;
    }
    return heads->left && heads->at != heads->size ? KW_BATCH_TRAILING : KW_BATCH_OK;
}

kw_batch_status kw_heads_check(kw_heads *heads, kw_record *first, uint32_t room) {
    const uint32_t start = heads->at;
    kw_record other;
    kw_batch_status status;
    heads->left = 0;
    heads->shift = 0;
    if (heads->batch->magic == 2) {
        status = check_records(heads, first, room);
    } else if (heads->batch->codec) {
        status = check_inner(heads, first, room);
    } else {
        status = kw_legacy_entry(heads->block, heads->size, room ? first : &other);
        heads->left = 1;
    }
    if (status == KW_BATCH_OK) heads->at = start;
    return status;
}

kw_batch_status kw_heads_next(kw_heads *heads, kw_record *records, uint32_t room, uint32_t *count) {
    const uint32_t most = heads->left < room ? heads->left : room;
    kw_batch_status status = KW_BATCH_OK;
    *count = 0;
    if (heads->batch->magic == 2) {
        status = kw_records_read(heads->block, &heads->at, heads->size, heads->batch, records, most);
    } else if (!heads->batch->codec) {
        if (most) status = kw_legacy_entry(heads->block, heads->size, records);
    } else {
        for (uint32_t i = 0; i < most; i++) {
            status = inner_entry(heads->block, &heads->at, heads->size, heads->batch, records + i);
            if (status != KW_BATCH_OK) return status;
            records[i].offset = (int64_t)((uint64_t)records[i].offset + heads->shift);
        }
    }
    if (status != KW_BATCH_OK) return status;
    heads->left -= most;
    *count = most;
    return KW_BATCH_OK;
}
