/* Plans: flat immutable arrays of ops, one plan per struct (by its path) of a message at a version.
   Pure C: Python objects are void* here, so that code without Python can use it. */
#ifndef KWIRE_PLAN_H
#define KWIRE_PLAN_H

#include "cursor.h"

/* Kinds of fields, which are also the codes of ops. The fixed-width ones come first. */
typedef enum {
    KW_BOOL = 0, KW_INT8, KW_INT16, KW_UINT16, KW_INT32, KW_UINT32, KW_INT64, KW_FLOAT64, KW_UUID,
    KW_STRING, KW_BYTES, KW_RECORDS, KW_STRUCT, KW_ARRAY,
    /* ops only */
    KW_RUN,             /* `count` fixed-width ops follow, `need` bytes in all */
    KW_ARRAY_STRUCT, KW_ARRAY_STRING, KW_ARRAY_UUID, KW_ARRAY_INT
} kw_kind;

static const uint8_t kw_width[9] = {1, 1, 2, 2, 4, 4, 8, 8, 16};

#define KW_MAX_STRING 0x7fff
#define KW_MAX_TAG 0x7ffffffe /* the maximum of Kafka's own writers */
#define KW_MAX_DEPTH 16

typedef struct kw_class kw_class;
typedef struct kw_plan kw_plan;

/* A field of a message class, for all versions. */
typedef struct kw_field {
    uint8_t kind, elem;      /* elem: kind of an array's elements */
    uint8_t nullable;        /* in some version */
    uint8_t ignorable;
    int16_t first, last;     /* versions that have it */
    int16_t null_first, null_last;
    uint32_t at;             /* offset in the instance */
    int64_t number;          /* default of numbers */
    void *fallback;          /* PyObject: default of objects; NULL: an instance of cls, created when read */
    kw_class *cls;           /* of a struct, or of an array's elements */
    kw_class *owner;
    void *name, *json;       /* PyObject: snake_case, camelCase */
} kw_field;

/* A heap type: header, then the object slots (the first holds the unknown tags), then the numbers. */
struct kw_class {
    void *type;              /* PyTypeObject */
    void *message;           /* the Message that it belongs to, borrowed */
    void *label;             /* PyObject: "FetchRequest.FetchTopic" */
    void *names;             /* PyObject: dict of name -> index */
    void *blank;             /* PyObject: an instance with every default, never handed out */
    kw_field *fields;
    uint8_t *model;          /* bytes of a fresh instance */
    uint32_t size;
    uint16_t n_fields, n_slots;
    uint8_t collected;       /* may be part of a cycle: tracked by the garbage collector */
    uint32_t n_spare;
    void *spare;             /* freed instances to be reused, each pointing to the next */
    uint64_t *spared;        /* bytes of those of all classes */
};

#define KW_COMPACT 1
#define KW_NULLABLE 2

typedef struct kw_op {
    uint8_t code, flags;
    uint8_t elem;            /* of KW_ARRAY_INT */
    uint8_t inside_tag;      /* the null marker of a struct is an unsigned varint there */
    uint16_t count;          /* ops in a run */
    uint32_t need;           /* bytes of a run; of an array: minimum size of an element */
    uint32_t at;             /* offset in the instance */
    uint32_t tag;
    const kw_plan *sub;
    const kw_field *field;
} kw_op;

struct kw_plan {
    const kw_class *cls;
    const kw_op *ops;
    const kw_op *tags;       /* known tags, ascending */
    const kw_field **absent; /* fields that this version lacks and may not drop */
    const uint32_t *foreign; /* tags known in other versions only */
    uint16_t n_ops, n_tags, n_absent, n_foreign;
    uint32_t least;          /* minimum size of an instance on the wire */
    uint32_t room;           /* maximum size of its own fixed parts and lengths when encoded */
    int16_t version;
    uint8_t flexible;
};

/* Why decoding a message failed, besides KW_SHORT to KW_OVERLONG of cursor.h, each with its error text. {number} is
   kw_failure's number, {left} the bytes remaining. */
#define KW_READ_ERRORS(X)                                                                  \
    X(KW_NEGATIVE, "negative length {number}") /* strict: other than -1 */                 \
    X(KW_NULL, "null in a field that is not nullable in this version")                     \
    X(KW_STRING_LONG, "string of {number} bytes exceeds 32767")                            \
    X(KW_BAD_BOOL, "bool byte {number} is neither 0 nor 1")                                \
    X(KW_BAD_UTF8, "invalid UTF-8")                                                        \
    X(KW_BAD_MARK, "null marker {number} is neither -1 nor 1") /* strict */                \
    X(KW_COUNT, "array of {number} elements exceeds the {left} bytes remaining")           \
    X(KW_TAG_ORDER, "tags out of order: {number}")                                         \
    X(KW_TAG_TWICE, "duplicate tag {number}")                                              \
    X(KW_TAG_SIZE, "tagged field does not have its declared size of {number} bytes")       \
    X(KW_TAG_DEFAULT, "tag {number} is present with its default value")                    \
    X(KW_TAG_FOREIGN, "tag {number} is not valid in this version")                         \
    X(KW_TAG_COUNT, "{number} tagged fields exceed the {left} bytes remaining")            \
    X(KW_TRAILING, "{number} bytes remaining after the message")                           \
    X(KW_TAG_VALUE, "invalid tag number {number}") /* strict */

typedef enum {
    KW_BEFORE_READ_ERRORS = KW_OVERLONG,
#define KW_CODE(code, reason) code,
    KW_READ_ERRORS(KW_CODE)
#undef KW_CODE
    KW_PYTHON /* a Python exception is set */
} kw_why;

/* The error text of a failure's code, for str.format. */
static inline const char *kw_why_reason(int why) {
    switch (why) {
    case KW_SHORT: return "{number} bytes needed, {left} remaining";
    case KW_VARINT_LONG: return "varint longer than 5 bytes";
    case KW_OVERLONG: return "overlong varint";
#define KW_CASE(code, reason) case code: return reason;
    KW_READ_ERRORS(KW_CASE)
#undef KW_CASE
    }
    return "unknown error";
}

typedef struct kw_piece {
    const kw_field *field;
    int64_t index;           /* -1: no index */
} kw_piece;

/* What failed and where; the path is added from the inside out while unwinding. */
typedef struct kw_failure {
    int why;
    int depth;
    int64_t number;          /* the bytes needed, or the bad value */
    int64_t left;
    int64_t offset;
    kw_piece path[KW_MAX_DEPTH];
} kw_failure;

static inline int kw_fail(kw_failure *f, const kw_cursor *c, int why, int64_t number) {
    f->why = why;
    f->number = number;
    f->left = c->end - c->at;
    f->offset = c->at - c->base;
    return -1;
}

static inline int kw_in(kw_failure *f, const kw_field *field, int64_t index) {
    if (f->depth < KW_MAX_DEPTH) {
        f->path[f->depth].field = field;
        f->path[f->depth].index = index;
        f->depth++;
    }
    return -1;
}

/* An unsigned varint: in strict mode the shortest form only. */
static inline int kw_take_uvarint(kw_cursor *c, int lenient, kw_failure *f, uint32_t *out) {
    if (KW_LIKELY(kw_has(c, 1) && *c->at < 0x80)) {
        *out = *c->at++;
        return 0;
    }
    kw_status status = lenient ? kw_read_uvarint32(c, out) : kw_read_uvarint32_strict(c, out);
    if (KW_UNLIKELY(status != KW_OK)) return kw_fail(f, c, status, 1);
    return 0;
}

/* A length: compact (length + 1), or of `width` bytes (2 or 4). *out is -1 for null. */
static inline int kw_take_length(kw_cursor *c, int compact, int width, int lenient, kw_failure *f, int64_t *out) {
    if (compact) {
        uint32_t u;
        if (kw_take_uvarint(c, lenient, f, &u) < 0) return -1;
        *out = (int32_t)(u - 1u);
        if (KW_UNLIKELY(*out < -1)) {
            if (!lenient) return kw_fail(f, c, KW_NEGATIVE, *out);
            *out = -1;
        }
        return 0;
    }
    if (KW_UNLIKELY(!kw_has(c, width))) return kw_fail(f, c, KW_SHORT, width);
    int64_t n = width == 2 ? (int16_t)kw_load16(c->at) : (int32_t)kw_load32(c->at);
    if (KW_UNLIKELY(n < -1)) {
        if (!lenient) return kw_fail(f, c, KW_NEGATIVE, n);
        n = -1;
    }
    c->at += width;
    *out = n;
    return 0;
}

static inline int kw_is_ascii(const uint8_t *p, int64_t n) {
    uint64_t word, all = 0;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        all |= word;
    }
    for (; n > 0; n--) all |= *p++;
    return (all & 0x8080808080808080ull) == 0;
}

/* Reads one fixed-width value into its place, in native byte order. Returns 0, or -1 for an invalid bool. */
static inline int kw_load_fixed(int kind, const uint8_t *p, uint8_t *to, int lenient) {
    switch (kind) {
    case KW_BOOL:
        if (KW_UNLIKELY(*p > 1)) {
            if (!lenient) return -1;
            *to = 1;
            return 0;
        }
        *to = *p;
        return 0;
    case KW_INT8: *to = *p; return 0;
    case KW_INT16: case KW_UINT16: { uint16_t v = kw_load16(p); memcpy(to, &v, 2); return 0; }
    case KW_INT32: case KW_UINT32: { uint32_t v = kw_load32(p); memcpy(to, &v, 4); return 0; }
    case KW_INT64: case KW_FLOAT64: { uint64_t v = kw_load64(p); memcpy(to, &v, 8); return 0; }
    default: memcpy(to, p, 16); return 0;
    }
}

static inline void kw_store_fixed(int kind, const uint8_t *from, uint8_t *p) {
    switch (kind) {
    case KW_BOOL: case KW_INT8: *p = *from; return;
    case KW_INT16: case KW_UINT16: { uint16_t v; memcpy(&v, from, 2); kw_store16(p, v); return; }
    case KW_INT32: case KW_UINT32: { uint32_t v; memcpy(&v, from, 4); kw_store32(p, v); return; }
    case KW_INT64: case KW_FLOAT64: { uint64_t v; memcpy(&v, from, 8); kw_store64(p, v); return; }
    default: memcpy(p, from, 16); return;
    }
}

#endif
