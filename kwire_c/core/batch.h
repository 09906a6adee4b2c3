/* Record batches of magic 0, 1 and 2: headers, and the heads of the records in them. Pure C without Python.
   Accepts and refuses what Kafka does: DefaultRecordBatch, DefaultRecord and AbstractLegacyRecordBatch. */
#ifndef KWIRE_BATCH_H
#define KWIRE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "batch_layout.h"
#include "cursor.h"

#define KW_MIN_RECORD 7      /* bytes of the smallest record of magic 2 */
#define KW_PORTION 256       /* heads of records held at a time */

enum { KW_TIME_NONE = -1, KW_TIME_CREATE = 0, KW_TIME_LOG_APPEND = 1 };

/* What is wrong with a batch, and the error text. */
#define KW_BATCH_STATUSES(X)                                                                                          \
    X(KW_BATCH_OK, "valid")                                                                                           \
    X(KW_BATCH_TAIL, "the input ends inside the batch") /* the partial last batch of a fetch or a log */              \
    X(KW_BATCH_LENGTH, "invalid batch length") /* below 14, or so large that the batch passes 2 GiB */                \
    X(KW_BATCH_MAGIC, "magic is not 0, 1 or 2")                                                                       \
    X(KW_BATCH_TOO_SMALL, "batch is smaller than its header") /* that of its magic */                                 \
    X(KW_BATCH_CRC, "checksum does not match")                                                                        \
    X(KW_BATCH_COUNT_NEGATIVE, "negative number of records")                                                          \
    X(KW_BATCH_COUNT_HIGH, "number of records exceeds what the bytes can hold")                                       \
    X(KW_BATCH_TRAILING, "bytes remaining after the last record")                                                     \
    X(KW_BATCH_RECORD_LENGTH, "record length is negative or past the end of the batch")                               \
    X(KW_BATCH_RECORD, "record fields do not fill the record's length")                                               \
    X(KW_BATCH_HEADERS, "record headers do not fit in the record")                                                    \
    X(KW_BATCH_HEADER_KEY, "negative length of a header key")                                                         \
    X(KW_BATCH_LEGACY_FIELD, "key or value extends past the end of its entry") /* magic 0 and 1 */                    \
    X(KW_BATCH_CODEC, "unknown compression codec")                                                                    \
    X(KW_BATCH_LEGACY_CODEC, "magic 0 and 1 do not support zstd")                                                     \
    X(KW_BATCH_WRAPPER_NULL, "compressed wrapper without a value")                                                    \
    X(KW_BATCH_WRAPPER_EMPTY, "compressed wrapper without an entry")                                                  \
    X(KW_BATCH_NESTED, "compressed entry in a compressed wrapper")                                                    \
    X(KW_BATCH_WRAPPER_OFFSET, "wrapper offset is below that of its last entry")                                      \
    X(KW_BATCH_INNER, "invalid entry in a compressed wrapper") /* its length, its magic, or too small for it */

typedef enum {
#define KW_CODE(code, reason) code,
    KW_BATCH_STATUSES(KW_CODE)
#undef KW_CODE
} kw_batch_status;

static inline const char *kw_batch_reason(kw_batch_status status) {
    switch (status) {
#define KW_CASE(code, reason) case code: return reason;
        KW_BATCH_STATUSES(KW_CASE)
#undef KW_CASE
    }
    return "unknown error";
}

/* The header of one batch. Positions inside it count from its first byte. */
typedef struct {
    int64_t base_offset;      /* magic 0, 1: the entry's own (a wrapper's last) offset */
    int64_t last_offset;
    int64_t base_timestamp;   /* raw: the delete horizon where that bit is set */
    int64_t max_timestamp;
    int64_t producer_id;
    uint32_t size;            /* the whole batch, with base offset and length */
    uint32_t crc;
    int32_t partition_leader_epoch;
    int32_t base_sequence;
    int32_t count;            /* records; magic 0, 1: 1, or -1 for a wrapper */
    uint32_t payload;         /* magic 2: the records; magic 0, 1: unused */
    uint16_t attributes;
    int16_t producer_epoch;
    int8_t magic;
    int8_t codec;             /* 0..7, as in the attributes */
    int8_t timestamp_type;
} kw_batch;

/* The head of one record: where its parts are in the block (the batch, or its decompressed payload). */
typedef struct {
    int64_t offset;
    int64_t stamp;            /* its own timestamp, -1 in magic 0 */
    uint32_t key_at, value_at, headers_at;
    int32_t key_size, value_size; /* -1: null */
    int32_t headers;          /* how many */
    int8_t attributes;
    int8_t timestamp_type;
} kw_record;

/* Reads the header at data: KW_BATCH_OK, KW_BATCH_TAIL, or what is wrong. On KW_BATCH_TOO_SMALL and
   KW_BATCH_MAGIC base_offset and size are filled too. */
kw_batch_status kw_batch_read(const uint8_t *data, size_t left, kw_batch *batch);

/* The size of the batch at data if its length can be trusted: at least 14, within the data, and followed by the end
   or a header; else 0. The length is read once: the input may be mutable. */
uint32_t kw_batch_trusted_size(const uint8_t *data, size_t left);

/* Magic 2: the heads of the next count records from block[*at..size). *at: moved after them; on failure the byte of
   the bad record. The last record of a batch must end at size: the caller checks it. */
kw_batch_status kw_records_read(const uint8_t *block, uint32_t *at, uint32_t size, const kw_batch *batch,
                                kw_record *records, uint32_t count);

/* Magic 2: can size bytes hold count records? */
kw_batch_status kw_batch_count(const kw_batch *batch, uint32_t size);

/* Magic 0, 1: the one entry of an uncompressed batch, or a wrapper's own key and value. */
kw_batch_status kw_legacy_entry(const uint8_t *block, uint32_t size, kw_record *record);

/* The records of one batch, read in portions: a batch of nine million needs no array of nine million heads.
   Filled by the caller: batch, block (the batch itself, or its decompressed payload), size (of the block) and at (the
   byte of the first record). kw_heads_check comes first. */
typedef struct {
    const kw_batch *batch;
    const uint8_t *block;
    uint32_t size;
    uint32_t at;              /* the next byte to read */
    uint32_t left;            /* records left */
    uint64_t shift;           /* added to the relative offsets of a wrapper's entries */
} kw_heads;

/* Checks every record of the batch (magic 2: after kw_batch_count): its fields, the end of the batch, and the
   rules for wrappers. The first `room` heads are left in first. heads is then at its beginning again, with the number
   of records in left; on failure heads->at is the byte of the bad part. */
kw_batch_status kw_heads_check(kw_heads *heads, kw_record *first, uint32_t room);

/* The next heads, at most room; *count is 0 after the last. Checked again: the input may be mutable. */
kw_batch_status kw_heads_next(kw_heads *heads, kw_record *records, uint32_t room, uint32_t *count);

/* One header of a record from block[*at..size): key and value spans, moves *at. Checked. */
static inline kw_batch_status kw_header_read(const uint8_t *block, uint32_t size, uint32_t *at, uint32_t *key_at,
                                             int32_t *key_size, uint32_t *value_at, int32_t *value_size) {
    kw_cursor c = {block, block + *at, block + size};
    if (kw_read_varint32(&c, key_size) != KW_OK) return KW_BATCH_HEADERS;
    if (*key_size < 0) return KW_BATCH_HEADER_KEY;
    if (!kw_has(&c, *key_size)) return KW_BATCH_HEADERS;
    *key_at = (uint32_t)(c.at - block);
    c.at += *key_size;
    if (kw_read_varint32(&c, value_size) != KW_OK) return KW_BATCH_HEADERS;
    *value_at = (uint32_t)(c.at - block);
    if (*value_size < 0) {
        *value_size = -1;
    } else {
        if (!kw_has(&c, *value_size)) return KW_BATCH_HEADERS;
        c.at += *value_size;
    }
    *at = (uint32_t)(c.at - block);
    return KW_BATCH_OK;
}

/* The sequence number of the record at an offset, -1 if none: DefaultRecordBatch.incrementSequence. */
int32_t kw_sequence(const kw_batch *batch, int64_t offset);

/* The timestamp of a record of this batch: its own, or the append time. */
static inline int64_t kw_timestamp(const kw_batch *batch, const kw_record *record) {
    return record->timestamp_type == KW_TIME_LOG_APPEND ? batch->max_timestamp : record->stamp;
}

/* Type of a control record by its key (ABORT 0, COMMIT 1, ...), -1 if the key is too short. */
int kw_control_type(const uint8_t *block, const kw_record *record);

#endif
