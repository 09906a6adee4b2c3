/* Messages as columns: sinks collect the values of a plan's fields in Arrow's layout, in one pass without Python. */
#ifndef KWIRE_SINK_H
#define KWIRE_SINK_H

#include "plan.h"

typedef struct kw_store {
    uint8_t *data;
    size_t used, size;
} kw_store;

/* One column: a value a row. Bools and validity are a byte a row here, packed when they are handed out. */
typedef struct kw_sink {
    const kw_field *field;
    uint8_t kind;            /* KW_BOOL..KW_BYTES, KW_STRUCT, KW_ARRAY (a list) */
    uint8_t default_null;
    int64_t rows, nulls;
    kw_store values;         /* numbers, or the bytes of strings */
    kw_store offsets;        /* int32: where rows of strings and lists end */
    kw_store valid;          /* empty: every row is there */
    struct kw_sink **children; /* of a struct; the one of a list */
    uint16_t n_children;
} kw_sink;

/* A plan with the sinks of its fields; NULL where nobody wants the column. */
typedef struct kw_route {
    const kw_plan *plan;
    kw_sink **sinks;             /* beside plan->ops; of a run's first op: any pointer if the run must be looked at */
    kw_sink **tag_sinks;         /* beside plan->tags */
    struct kw_route **below;     /* beside plan->ops: of structs and arrays of structs */
    uint8_t *looked;             /* beside plan->ops: whether a run has a wanted field, or a bool to check */
} kw_route;

enum { KW_DONE = 0, KW_BY_OBJECT = 1, KW_NO_MEMORY = -1, KW_TOO_LARGE = -2 };

int kw_sink_fixed(kw_sink *s, const uint8_t *native);
int kw_sink_bytes(kw_sink *s, const uint8_t *data, size_t size);
int kw_sink_start(kw_sink *s);                    /* the offset of row 0 */
int kw_sink_list(kw_sink *s);                     /* a list ends where its child's rows do */
int kw_sink_struct(kw_sink *s);                   /* a struct that is there */
int kw_sink_null(kw_sink *s);
int kw_sink_default(kw_sink *s);
int kw_sink_take(const kw_sink *from, kw_sink *to, const int64_t *rows, int64_t count);
void kw_sink_free(kw_sink *s);

/* Appends one message. KW_BY_OBJECT: it has tags or is not plain, the caller takes the slow way (and rolls back). */
int kw_route_walk(kw_cursor *c, const kw_route *route);

#endif
