/* The layout of record batches. Offsets are relative to the first byte of the batch; names are those of Kafka's
   DefaultRecordBatch, LegacyRecord and Records. */
#ifndef KWIRE_BATCH_LAYOUT_H
#define KWIRE_BATCH_LAYOUT_H

#include <stdint.h>

/* every magic */
#define KW_LENGTH_OFFSET 8
#define KW_LOG_OVERHEAD 12              /* base offset and length, not counted by the length */
#define KW_MAGIC_OFFSET 16
#define KW_HEADER_UP_TO_MAGIC 17        /* bytes up to and including the magic */

/* magic 2 */
#define KW_PARTITION_LEADER_EPOCH_OFFSET 12
#define KW_CRC_OFFSET 17
#define KW_ATTRIBUTES_OFFSET 21         /* the checksum covers the bytes from here on */
#define KW_LAST_OFFSET_DELTA_OFFSET 23
#define KW_BASE_TIMESTAMP_OFFSET 27
#define KW_MAX_TIMESTAMP_OFFSET 35
#define KW_PRODUCER_ID_OFFSET 43
#define KW_PRODUCER_EPOCH_OFFSET 51
#define KW_BASE_SEQUENCE_OFFSET 53
#define KW_RECORDS_COUNT_OFFSET 57
#define KW_RECORD_BATCH_OVERHEAD 61     /* the whole header */
#define KW_BATCH_FORMAT ">qiibIhiqqqhii" /* the header in the format of Python's struct */

/* magic 0 and 1: entries, one record or a compressed wrapper each */
#define KW_LEGACY_CRC_OFFSET 12
#define KW_LEGACY_ATTRIBUTES_OFFSET 17
#define KW_LEGACY_TIMESTAMP_OFFSET 18   /* magic 1 */
#define KW_LEGACY_KEY_OFFSET(magic) ((magic) ? 26 : 18) /* the size of the key */
#define KW_RECORD_OVERHEAD_V0 14        /* length of an entry with neither key nor value */
#define KW_RECORD_OVERHEAD_V1 22
#define KW_LEGACY_FORMAT ">qiIbBq"      /* base offset to timestamp, in the format of Python's struct */

#define KW_MIN_LENGTH KW_RECORD_OVERHEAD_V0 /* a smaller length is corrupt in every magic */
#define KW_MAX_LENGTH (INT32_MAX - KW_LOG_OVERHEAD) /* above it the whole batch exceeds 2 GiB */

/* The size of the smallest batch of a magic. */
static inline uint32_t kw_smallest_batch(int magic) {
    return magic == 2 ? KW_RECORD_BATCH_OVERHEAD
                      : KW_LOG_OVERHEAD + (magic == 1 ? KW_RECORD_OVERHEAD_V1 : KW_RECORD_OVERHEAD_V0);
}

enum {
    KW_ATTR_CODEC = 0x07, KW_ATTR_LOG_APPEND = 0x08, KW_ATTR_TRANSACTIONAL = 0x10, KW_ATTR_CONTROL = 0x20,
    KW_ATTR_DELETE_HORIZON = 0x40
};

#endif
