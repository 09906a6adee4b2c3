/* Records as buffers in Arrow's layout, in one pass over the batches. Pure C without Python. */
#ifndef KWIRE_COLUMNS_H
#define KWIRE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "buffer.h"

/* The columns, as bits of kw_columns.fields. The fixed-width ones come first: their number is their bit. */
enum {
    KW_COL_OFFSET, KW_COL_TIMESTAMP, KW_COL_TIMESTAMP_TYPE, KW_COL_SEQUENCE, KW_COL_PRODUCER_ID,
    KW_COL_PRODUCER_EPOCH, KW_COL_LEADER_EPOCH, KW_COL_BATCH_POSITION, KW_COL_SOURCE, KW_COL_CODEC,
    KW_COL_IS_CONTROL, KW_COL_FIXED, /* the number of fixed-width columns */
    KW_COL_KEY = KW_COL_FIXED, KW_COL_VALUE, KW_COL_HEADERS
};

/* Binary with 32-bit offsets (spans, rows + 1 of them), or views (spans: 16 bytes a row, data unused). */
typedef struct {
    kw_buffer spans, data, validity;
    int64_t nulls;
} kw_binary;

typedef struct {
    uint32_t fields;
    int views;
    int64_t rows, header_rows;
    int64_t max_bytes; /* of one column, at which a new chunk begins */
    uint64_t input_bytes, seen_bytes; /* of all inputs; of the batches appended so far */
    double done_before, done;         /* bytes of input that were appended before this append; and after it */
    kw_buffer fixed[KW_COL_FIXED];
    kw_binary key, value, header_key, header_value;
    kw_buffer header_lists;
} kw_columns;

typedef enum { KW_APPEND_OK = 0, KW_APPEND_FULL, KW_APPEND_MEMORY, KW_APPEND_BAD } kw_append_status;

/* Where a batch and its records are, for views and for the columns source and batch_position. */
typedef struct {
    const uint8_t *block;    /* the base of the positions in record heads */
    uint32_t block_size;
    int32_t view_buffer;     /* index of the Arrow buffer that holds block */
    uint64_t view_at;        /* byte of that buffer at which block begins; from 2^30 on, in the buffers after it */
    int64_t position;        /* of the batch in its input */
    int32_t source;          /* number of the input */
} kw_place;

/* Only records from the first to the last offset and time become rows, both inclusive: a time may be INT64_MAX. */
typedef struct {
    int64_t offset_from, offset_last, time_from, time_last;
} kw_window;

/* Removes the records outside the window; returns the number left. */
uint32_t kw_window_apply(const kw_window *window, const kw_batch *batch, kw_record *records, uint32_t count);

/* Appends count records. On anything but OK no row was added (the buffers may contain bytes after the rows). */
kw_append_status kw_columns_append(kw_columns *columns, const kw_batch *batch, const kw_record *records,
                                   uint32_t count, const kw_place *place);

/* CRC-32C, continued from value (0 to begin). */
typedef uint32_t kw_checksum(uint32_t value, const uint8_t *data, size_t size);

/* Appends the records of magic 2 in place->block from byte `at` on; window: NULL for all; crc32c: NULL, or
   the block is the whole batch and its checksum must hold. On anything but OK no row was added; KW_APPEND_BAD: *status
   and *where (byte of the block) have the error. */
kw_append_status kw_columns_append_batch(kw_columns *columns, const kw_batch *batch, const kw_place *place,
                                         uint32_t at, const kw_window *window, kw_checksum *crc32c,
                                         kw_batch_status *status, uint32_t *where);
void kw_columns_free(kw_columns *columns);

/* Why a run over plain batches stopped. */
typedef enum {
    KW_RUN_END,          /* end of input, or a partial last batch (see *status) */
    KW_RUN_BAD,          /* the batch at *at is bad: *status, *where */
    KW_RUN_SLOW,         /* compressed, or magic 0 and 1: the caller reads its records */
    KW_RUN_TRANSACTION,  /* a batch of a transaction: the caller sets keep_at to keep it */
    KW_RUN_FULL,         /* the caller begins a new chunk and continues */
    KW_RUN_MEMORY
} kw_run_status;

typedef struct {
    const uint8_t *data;
    size_t size;
    int verify_crc, control, ask; /* ask: stop at every batch of a transaction */
    const kw_window *window;      /* or NULL */
    int32_t source, view_buffer;
    int64_t origin;               /* the position that the first byte of data is reported at */
    kw_checksum *crc32c;
    /* in and out */
    size_t at;
    size_t keep_at;               /* the position of a batch that the caller keeps (SIZE_MAX: none) */
    kw_batch batch;
    kw_batch_status status;
    uint32_t where;
} kw_run;

/* Appends uncompressed batches of magic 2 from run->at on, up to the first other one. */
kw_run_status kw_columns_run(kw_columns *columns, kw_run *run);

#endif
