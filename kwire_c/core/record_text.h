/* Rows of columns as text: tables, JSON lines and formats, by a list of pieces. Pure C without Python. */
#ifndef KWIRE_RECORD_TEXT_H
#define KWIRE_RECORD_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "columns.h"

/* What a piece writes. Text is escaped (\x1b) where it is not printable; C writes ASCII, the caller all other text. */
typedef enum {
    KW_TEXT_LITERAL,      /* texts[0] */
    KW_TEXT_NUMBER,       /* a fixed-width column in decimal, right-aligned */
    KW_TEXT_NAME,         /* texts[the value of a column + 1], of three */
    KW_TEXT_TIME,         /* timestamp as 2023-11-14 22:13:20.000, its signs [from, to); "-" for a negative one */
    KW_TEXT_PLAIN,        /* key or value as text; texts[0] for null */
    KW_TEXT_JSON,         /* key or value as a JSON string, null */
    KW_TEXT_RAW,          /* key or value as it is; texts[0] for null */
    KW_TEXT_SIZE,         /* bytes of key or value in decimal, -1 for null */
    KW_TEXT_SIZE_BINARY,  /* the same as 4 bytes, big-endian */
    KW_TEXT_HEADERS,      /* texts[0] before the first header, texts[1] before others, NAME=VALUE, texts[2] for null */
    KW_TEXT_HEADERS_RAW,  /* the same, names and values as they are */
    KW_TEXT_HEADERS_JSON, /* [["NAME", "VALUE"], ...] */
    KW_TEXT_CALL,         /* the caller writes it */
    KW_TEXT_KINDS
} kw_text_kind;

typedef struct {
    kw_text_kind kind;
    int column;           /* KW_COL_* */
    uint32_t width;       /* least number of signs, filled with spaces */
    uint32_t limit;       /* most signs of a text, 0: no limit; a longer one ends in an ellipsis */
    uint8_t from, to;     /* of KW_TEXT_TIME */
    int given;            /* of rows that are decoded the caller writes it */
    const uint8_t *texts[3];
    uint32_t sizes[3];
} kw_text_piece;

typedef enum {
    KW_TEXT_DONE,  /* all pieces are written */
    KW_TEXT_ASK,   /* the caller writes piece *at, of which nothing is written, and goes on with the next one */
    KW_TEXT_MEMORY
} kw_text_status;

/* Makes room for more bytes after size; 0 if out of memory. The memory is malloc's: it grows once for a caller. */
int kw_text_reserve(kw_buffer *out, size_t more);

/* Appends the pieces from *at on for one row. decoded: pieces that are `given` are the caller's. */
kw_text_status kw_text_row(const kw_columns *columns, int64_t row, const kw_text_piece *pieces, int count, int decoded,
                           int *at, kw_buffer *out);

/* A row of a fixed-width column. */
int64_t kw_text_number(const kw_columns *columns, int column, int64_t row);

/* The bytes of a row of a binary column without views; NULL for null. */
const uint8_t *kw_text_bytes(const kw_binary *binary, int64_t row, uint32_t *size);

#endif
