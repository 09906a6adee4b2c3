/* Records in Arrow arrays: read row by row, and written into record batches of magic 2. Pure C. */
#ifndef KWIRE_ARROW_ROWS_H
#define KWIRE_ARROW_ROWS_H

#include "rows.h"

/* How an array of bytes or text gives the position of a row's bytes. */
typedef enum {
    KW_LAYOUT_NULL = 0, /* every row is null */
    KW_LAYOUT_32,       /* 32-bit offsets */
    KW_LAYOUT_64,
    KW_LAYOUT_VIEW,
    KW_LAYOUT_FIXED /* width bytes each */
} kw_layout;

typedef struct {
    kw_layout layout;
    const uint8_t *valid; /* a bit per row, or NULL */
    const void *spans;    /* offsets or views */
    const uint8_t *data;
    const uint8_t *const *buffers; /* of views */
    const int64_t *sizes;          /* of these buffers, in bytes; NULL if there are none */
    int64_t n_buffers, width;
    int64_t first; /* the index of row 0 in the array */
} kw_arrow_bytes;

typedef struct {
    const uint8_t *valid;
    const int64_t *values; /* NULL if there is no such column */
    int64_t multiply, divide, first;
} kw_arrow_numbers;

typedef struct {
    kw_layout layout; /* KW_LAYOUT_NULL: no row has headers */
    const uint8_t *valid;
    const void *spans;
    int64_t first, items; /* items: number of pairs */
    const uint8_t *pair_valid;
    int64_t pair_first;
    kw_arrow_bytes key, value;
} kw_arrow_headers;

typedef struct {
    int64_t rows;
    const uint8_t *valid; /* of whole rows, or NULL */
    int64_t first;
    kw_arrow_bytes key, value;
    kw_arrow_numbers stamp, offset;
    kw_arrow_headers headers;
} kw_arrow_rows;

/* Why filling a batch stopped: for an error the column ("": the whole row) and the reason. */
#define KW_FILL_ERRORS(X)                                                                      \
    X(KW_FILL_NULL_ROW, "", "the row is null")                                                 \
    X(KW_FILL_BAD_SPAN, "", "the Arrow array's offsets decrease or point outside it")       \
    X(KW_FILL_LONG, "", "key, value or headers exceed 2 GiB")                                  \
    X(KW_FILL_LONG_BATCH, "", "the record exceeds 2 GiB")                                      \
    X(KW_FILL_TIME, "timestamp", "the timestamp in milliseconds does not fit 64 bits")         \
    X(KW_FILL_NULL_OFFSET, "offset", "the offset is null")                                     \
    X(KW_FILL_FALLING_OFFSET, "offset", "offsets are not ascending")                           \
    X(KW_FILL_NO_OFFSET, "offset", "no offset is left after 2^63 - 1")                         \
    X(KW_FILL_NULL_PAIR, "headers", "a header is null")                                        \
    X(KW_FILL_NULL_HEADER_KEY, "headers", "a header key is null")                              \
    X(KW_FILL_CHANGED, "headers", "the headers changed while they were read")

typedef enum {
    KW_FILL_OK = 0,  /* all rows of the arrays are written */
    KW_FILL_FULL,    /* the next row begins another batch */
    KW_FILL_ROOM,    /* the next row needs more room */
#define KW_CODE(code, column, reason) code,
    KW_FILL_ERRORS(KW_CODE)
#undef KW_CODE
} kw_fill_status;

static inline const char *kw_fill_reason(kw_fill_status status, const char **of) {
    switch (status) {
#define KW_CASE(code, column, reason) case code: return *of = column, reason;
        KW_FILL_ERRORS(KW_CASE)
#undef KW_CASE
    default: return *of = "", "unknown error";
    }
}

/* The open batch. at: the next row; next: the offset that it gets, or after the first one its minimum. */
typedef struct {
    int64_t at, next;
    int64_t most_bytes, most_rows;
    int64_t count, base, base_stamp, max_stamp;
    int64_t head;      /* bytes of the batch that are not written to the output */
    int64_t need;      /* with KW_FILL_ROOM: the bytes needed */
    int takes_stamp;   /* the timestamp of the first record becomes the base timestamp */
    int has_next;      /* there was a row before */
    uint8_t *start, *out, *end;
} kw_fill;

/* Reads row at of the arrays; *from to *to: its pairs in the arrays of headers. */
kw_fill_status kw_arrow_row(const kw_arrow_rows *rows, int64_t at, kw_row *row, int64_t *from, int64_t *to);

/* The offset of a row: from its column, or the next one. */
kw_fill_status kw_arrow_offset(const kw_arrow_rows *rows, kw_fill *fill, int64_t *offset);

/* Writes the rows from fill->at on into the open batch. */
kw_fill_status kw_fill_batch(const kw_arrow_rows *rows, kw_fill *fill);

#endif
