/* Messages as columns: see sink.h. */
#include "sink.h"

#include <stdlib.h>

static int grow(kw_store *s, size_t more) {
    if (KW_LIKELY(s->size - s->used >= more)) return KW_DONE;
    size_t size = s->size ? s->size : 64;
    while (size - s->used < more) size *= 2;
    uint8_t *made = realloc(s->data, size);
    if (made == NULL) return KW_NO_MEMORY;
    s->data = made;
    s->size = size;
    return KW_DONE;
}

static inline int append(kw_store *s, const void *data, size_t size) {
    if (size == 0) return KW_DONE; /* both pointers may be NULL then */
    if (KW_UNLIKELY(grow(s, size) < 0)) return KW_NO_MEMORY;
    memcpy(s->data + s->used, data, size);
    s->used += size;
    return KW_DONE;
}

static inline int append_offset(kw_sink *s, size_t end) {
    if (KW_UNLIKELY(end > INT32_MAX)) return KW_TOO_LARGE;
    int32_t at = (int32_t)end;
    return append(&s->offsets, &at, 4);
}

/* Validity is kept from the first null on; before that every row is there. */
static inline int mark(kw_sink *s, uint8_t there) {
    if (KW_LIKELY(there && s->valid.used == 0)) {
        s->rows++;
        return KW_DONE;
    }
    if (s->valid.used == 0 && s->rows > 0) {
        if (grow(&s->valid, (size_t)s->rows) < 0) return KW_NO_MEMORY;
        memset(s->valid.data, 1, (size_t)s->rows);
        s->valid.used = (size_t)s->rows;
    }
    s->rows++;
    s->nulls += !there;
    return append(&s->valid, &there, 1);
}

int kw_sink_start(kw_sink *s) {
    int status = KW_DONE;
    if (s->kind == KW_STRING || s->kind == KW_BYTES || s->kind == KW_ARRAY) status = append_offset(s, 0);
    for (int i = 0; status == KW_DONE && i < s->n_children; i++) status = kw_sink_start(s->children[i]);
    return status;
}

int kw_sink_fixed(kw_sink *s, const uint8_t *native) {
    s->rows++;
    return append(&s->values, native, kw_width[s->kind]);
}

int kw_sink_bytes(kw_sink *s, const uint8_t *data, size_t size) {
    int status = append(&s->values, data, size);
    if (status == KW_DONE) status = append_offset(s, s->values.used);
    return status == KW_DONE ? mark(s, 1) : status;
}

int kw_sink_list(kw_sink *s) {
    int status = append_offset(s, (size_t)s->children[0]->rows);
    return status == KW_DONE ? mark(s, 1) : status;
}

int kw_sink_struct(kw_sink *s) { return mark(s, 1); }

int kw_sink_null(kw_sink *s) {
    static const uint8_t zero[16] = {0};
    int status = KW_DONE;
    if (s->kind < KW_STRING) return kw_sink_fixed(s, zero); /* under a null struct */
    if (s->kind == KW_STRUCT) {
        for (int i = 0; status == KW_DONE && i < s->n_children; i++) status = kw_sink_null(s->children[i]);
    } else {
        status = append_offset(s, s->kind == KW_ARRAY ? (size_t)s->children[0]->rows : s->values.used);
    }
    return status == KW_DONE ? mark(s, 0) : status;
}

int kw_sink_default(kw_sink *s) {
    int status = KW_DONE;
    if (s->kind < KW_STRING) return kw_sink_fixed(s, s->field->owner->model + s->field->at);
    if (s->default_null) return kw_sink_null(s);
    if (s->kind == KW_ARRAY) return kw_sink_list(s);
    if (s->kind != KW_STRUCT) return kw_sink_bytes(s, (const uint8_t *)"", 0);
    for (int i = 0; status == KW_DONE && i < s->n_children; i++) status = kw_sink_default(s->children[i]);
    return status == KW_DONE ? mark(s, 1) : status;
}

static int32_t ends(const kw_sink *s, int64_t row) {
    int32_t at;
    memcpy(&at, s->offsets.data + 4 * row, 4);
    return at;
}

int kw_sink_take(const kw_sink *from, kw_sink *to, const int64_t *rows, int64_t count) {
    int status = KW_DONE;
    if (from->kind == KW_STRUCT) {
        for (int i = 0; status == KW_DONE && i < from->n_children; i++) {
            status = kw_sink_take(from->children[i], to->children[i], rows, count);
        }
    }
    for (int64_t i = 0; status == KW_DONE && i < count; i++) {
        int64_t row = rows[i];
        if (from->kind < KW_STRING) {
            status = kw_sink_fixed(to, from->values.data + row * kw_width[from->kind]);
        } else if (from->valid.used && !from->valid.data[row]) {
            status = from->kind == KW_STRUCT ? mark(to, 0) : kw_sink_null(to);
        } else if (from->kind == KW_STRUCT) {
            status = mark(to, 1);
        } else if (from->kind == KW_ARRAY) {
            for (int64_t j = ends(from, row); status == KW_DONE && j < ends(from, row + 1); j++) {
                status = kw_sink_take(from->children[0], to->children[0], &j, 1);
            }
            if (status == KW_DONE) status = kw_sink_list(to);
        } else {
            int32_t at = ends(from, row), size = ends(from, row + 1) - at;
            status = kw_sink_bytes(to, size ? from->values.data + at : NULL, (size_t)size); /* no bytes yet: NULL */
        }
    }
    return status;
}

void kw_sink_free(kw_sink *s) {
    if (s == NULL) return;
    for (int i = 0; i < s->n_children; i++) kw_sink_free(s->children[i]);
    free(s->children);
    free(s->values.data);
    free(s->offsets.data);
    free(s->valid.data);
    free(s);
}

/* Strict lengths; anything odd goes by object, which finds the right error. */
static inline int take_length(kw_cursor *c, int compact, int width, int64_t *out) {
    kw_failure failure;
    if (compact && KW_LIKELY(kw_has(c, 1) && *c->at < 0x80)) {
        *out = (int64_t)*c->at++ - 1;
        return KW_DONE;
    }
    return kw_take_length(c, compact, width, 0, &failure, out) < 0 ? KW_BY_OBJECT : KW_DONE;
}

static int walk_run(kw_cursor *c, const kw_route *route, int first) {
    const kw_op *run = &route->plan->ops[first];
    if (KW_UNLIKELY(!kw_has(c, run->need))) return KW_BY_OBJECT;
    if (!route->looked[first]) {
        c->at += run->need;
        return KW_DONE;
    }
    for (int i = first + 1; i <= first + run->count; i++) {
        int kind = route->plan->ops[i].code;
        if (kind == KW_BOOL && *c->at > 1) return KW_BY_OBJECT;
        kw_sink *sink = route->sinks[i];
        if (sink != NULL) {
            if (KW_UNLIKELY(grow(&sink->values, 16) < 0)) return KW_NO_MEMORY;
            kw_load_fixed(kind, c->at, sink->values.data + sink->values.used, 0);
            sink->values.used += kw_width[kind];
            sink->rows++;
        }
        c->at += kw_width[kind];
    }
    return KW_DONE;
}

static int walk_bytes(kw_cursor *c, const kw_op *op, kw_sink *sink) {
    int64_t size;
    if (take_length(c, op->flags & KW_COMPACT, op->code == KW_STRING ? 2 : 4, &size)) return KW_BY_OBJECT;
    if (size < 0) return !(op->flags & KW_NULLABLE) ? KW_BY_OBJECT : sink ? kw_sink_null(sink) : KW_DONE;
    if (!kw_has(c, size)) return KW_BY_OBJECT;
    if (op->code == KW_STRING && (size > KW_MAX_STRING || !kw_is_ascii(c->at, size))) return KW_BY_OBJECT;
    const uint8_t *data = c->at;
    c->at += size;
    return sink ? kw_sink_bytes(sink, data, (size_t)size) : KW_DONE;
}

static int walk_array(kw_cursor *c, const kw_op *op, kw_sink *sink, const kw_route *below) {
    int64_t count;
    int status = KW_DONE;
    if (take_length(c, op->flags & KW_COMPACT, 4, &count)) return KW_BY_OBJECT;
    if (count < 0) return !(op->flags & KW_NULLABLE) ? KW_BY_OBJECT : sink ? kw_sink_null(sink) : KW_DONE;
    if (count > (c->end - c->at) / op->need) return KW_BY_OBJECT;
    kw_sink *items = sink ? sink->children[0] : NULL;
    if (op->code == KW_ARRAY_STRUCT) {
        for (int64_t i = 0; i < count; i++) {
            if ((status = kw_route_walk(c, below)) != KW_DONE) return status;
            if (items && (status = kw_sink_struct(items)) != KW_DONE) return status;
        }
    } else if (op->code == KW_ARRAY_STRING) {
        kw_op text = {.code = KW_STRING, .flags = op->flags & KW_COMPACT};
        for (int64_t i = 0; i < count; i++) {
            if ((status = walk_bytes(c, &text, items)) != KW_DONE) return status;
        }
    } else {
        int kind = op->code == KW_ARRAY_UUID ? KW_UUID : op->elem, width = kw_width[kind];
        if (items && count) {
            if ((status = grow(&items->values, (size_t)(count * width))) != KW_DONE) return status;
            uint8_t *to = items->values.data + items->values.used;
            for (int64_t i = 0; i < count; i++) kw_load_fixed(kind, c->at + i * width, to + i * width, 0);
            items->values.used += (size_t)(count * width);
            items->rows += count;
        }
        c->at += count * width;
    }
    return sink ? kw_sink_list(sink) : KW_DONE;
}

static int walk_struct(kw_cursor *c, const kw_op *op, kw_sink *sink, const kw_route *below) {
    if (op->flags & KW_NULLABLE) {
        if (!kw_has(c, 1)) return KW_BY_OBJECT;
        uint8_t sign = *c->at++;
        if (sign == 0xff) return sink ? kw_sink_null(sink) : KW_DONE;
        if (sign != 1) return KW_BY_OBJECT;
    }
    int status = kw_route_walk(c, below);
    return status == KW_DONE && sink ? kw_sink_struct(sink) : status;
}

int kw_route_walk(kw_cursor *c, const kw_route *route) {
    const kw_plan *plan = route->plan;
    int status = KW_DONE;
    for (int i = 0; i < plan->n_ops; i++) {
        const kw_op *op = &plan->ops[i];
        if (op->code == KW_RUN) {
            status = walk_run(c, route, i);
            i += op->count;
        } else if (op->code < KW_STRUCT) {
            status = walk_bytes(c, op, route->sinks[i]);
        } else if (op->code == KW_STRUCT) {
            status = walk_struct(c, op, route->sinks[i], route->below[i]);
        } else {
            status = walk_array(c, op, route->sinks[i], route->below[i]);
        }
        if (KW_UNLIKELY(status != KW_DONE)) return status;
    }
    if (!plan->flexible) return KW_DONE;
    if (KW_UNLIKELY(!kw_has(c, 1) || *c->at != 0)) return KW_BY_OBJECT;
    c->at++;
    for (int i = 0; i < plan->n_tags && status == KW_DONE; i++) {
        if (route->tag_sinks[i] != NULL) status = kw_sink_default(route->tag_sinks[i]);
    }
    return status;
}
