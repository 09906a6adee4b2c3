/* Messages as columns: sinks collect the values of a plan's fields in Arrow's layout, in one pass without Python. */
#ifndef KWIRE_SINK_H
#define KWIRE_SINK_H

#include "buffer.h"
#include "plan.h"

/* One column, a value per row. Bools and validity take a byte per row here, and are packed when they are exported. */
typedef struct kw_sink {
    const kw_field *field;
    uint8_t kind;            /* KW_BOOL..KW_BYTES, KW_STRUCT, KW_ARRAY (a list) */
    uint8_t default_null;
    uint16_t n_children;
    int64_t rows, nulls, most; /* most: rows of a list's child, bytes of strings */
    int64_t *room;           /* bytes left for all sinks, -1 once exceeded; or NULL */
    kw_buffer values;        /* numbers, or the bytes of strings */
    kw_buffer offsets;       /* int32: the ends of the rows of strings and lists */
    kw_buffer valid;         /* empty: no row is null */
    struct kw_sink **children; /* the fields of a struct; the element of a list */
} kw_sink;

/* A field of a run that is read; sink: NULL for a bool that is only checked. */
typedef struct kw_pick {
    kw_sink *sink;
    uint8_t *to;             /* address of the next value */
    uint32_t at;             /* offset in the run */
    uint8_t kind, width;
} kw_pick;

/* How one op of a plan is handled: a run, or any other field. */
typedef struct kw_step {
    const kw_op *op;
    kw_sink *sink;           /* NULL for a column that is not wanted */
    int32_t *ends;           /* of a string or list: address of the row's end */
    uint8_t *first, *to, *limit; /* of an array of numbers: the first one, the address of the next, the end */
    struct kw_route *below;  /* of structs and arrays of structs */
    kw_pick *picks;          /* of a run */
    uint16_t n_picks;
    uint8_t code;            /* the op's */
    uint8_t guesses;         /* a compact array of numbers */
    uint8_t shift;           /* of an array of numbers: their width is 1 << shift */
    uint8_t last_length;     /* the previous length of the array, and its size in bytes */
    uint32_t last_size;
} kw_step;

/* A plan with the sinks of its fields. */
typedef struct kw_route {
    const kw_plan *plan;
    kw_step *steps;
    kw_sink **tag_sinks;     /* parallel to plan->tags */
    uint16_t n_steps;
} kw_route;

enum { KW_DONE = 0, KW_BY_OBJECT = 1, KW_NO_MEMORY = -1, KW_TOO_LARGE = -2, KW_TOO_WIDE = -3 };

int kw_sink_fixed(kw_sink *s, const uint8_t *native);
int kw_sink_bytes(kw_sink *s, const uint8_t *data, size_t size);
int kw_sink_start(kw_sink *s);                    /* the offset of row 0 */
int kw_sink_list(kw_sink *s);                     /* ends a list at its child's last row */
int kw_sink_struct(kw_sink *s);                   /* a struct that is not null */
int kw_sink_null(kw_sink *s);
int kw_sink_repeat(const kw_sink *from, int64_t row, kw_sink *to, int64_t times);
void kw_sink_empty(kw_sink *s);                   /* frees its buffers, not its children's */
void kw_sink_free(kw_sink *s);                    /* also frees its children, if allocated */

/* Appends one message. KW_BY_OBJECT: it has tags or is unusual; the caller rolls back and takes the slow path. */
int kw_route_walk(kw_cursor *c, const kw_route *route);

#endif
