# core/batch.h for Cython.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "batch.h" nogil:
    enum:
        KW_LOG_OVERHEAD
        KW_HEADER_TO_MAGIC
        KW_HEADER_V2
        KW_MIN_LENGTH
        KW_MIN_RECORD
        KW_PORTION
        KW_TIME_NONE
        KW_TIME_CREATE
        KW_TIME_LOG_APPEND
        KW_ATTR_CODEC
        KW_ATTR_LOG_APPEND
        KW_ATTR_TRANSACTIONAL
        KW_ATTR_CONTROL
        KW_ATTR_DELETE_HORIZON

    ctypedef enum kw_batch_status:
        KW_BATCH_OK
        KW_BATCH_TAIL
        KW_BATCH_LENGTH
        KW_BATCH_MAGIC
        KW_BATCH_TOO_SMALL
        KW_BATCH_CRC
        KW_BATCH_TRAILING
        KW_BATCH_CODEC
        KW_BATCH_LEGACY_CODEC
        KW_BATCH_WRAPPER_NULL

    const char *kw_batch_reason(kw_batch_status status)

    ctypedef struct kw_batch:
        int64_t base_offset
        int64_t last_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        uint32_t size
        uint32_t crc
        int32_t partition_leader_epoch
        int32_t base_sequence
        int32_t count
        uint32_t payload
        uint16_t attributes
        int16_t producer_epoch
        int8_t magic
        int8_t codec
        int8_t timestamp_type

    ctypedef struct kw_record:
        int64_t offset
        int64_t stamp
        uint32_t key_at
        uint32_t value_at
        uint32_t headers_at
        int32_t key_size
        int32_t value_size
        int32_t headers
        int8_t attributes
        int8_t timestamp_type

    ctypedef struct kw_heads:
        const kw_batch *batch
        const uint8_t *block
        uint32_t size
        uint32_t at
        uint32_t left
        uint64_t shift

    kw_batch_status kw_batch_read(const uint8_t *data, size_t left, kw_batch *batch)
    uint32_t kw_batch_trusted_size(const uint8_t *data, size_t left)
    kw_batch_status kw_records_read(const uint8_t *block, uint32_t *at, uint32_t size, const kw_batch *batch,
                                    kw_record *records, uint32_t count)
    kw_batch_status kw_batch_count(const kw_batch *batch, uint32_t size)
    kw_batch_status kw_legacy_entry(const uint8_t *block, uint32_t size, kw_record *record)
    kw_batch_status kw_heads_check(kw_heads *heads, kw_record *first, uint32_t room)
    kw_batch_status kw_heads_next(kw_heads *heads, kw_record *records, uint32_t room, uint32_t *count)
    kw_batch_status kw_header_read(const uint8_t *block, uint32_t size, uint32_t *at, uint32_t *key_at,
                                   int32_t *key_size, uint32_t *value_at, int32_t *value_size)
    int32_t kw_sequence(const kw_batch *batch, int64_t offset)
    int64_t kw_timestamp(const kw_batch *batch, const kw_record *record)
    int kw_control_type(const uint8_t *block, const kw_record *record)
