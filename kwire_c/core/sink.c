/* Messages as columns: see sink.h. */
#include "sink.h"

#include <stdlib.h>

static inline int reserve(kw_buffer *b, size_t more) {
    if (KW_LIKELY(b->room - b->size >= more)) return KW_DONE;
    return kw_buffer_grow(b, b->size + more, 0) ? KW_DONE : KW_NO_MEMORY;
}

static inline int append(kw_buffer *b, const void *data, size_t size) {
    if (size == 0) return KW_DONE; /* both pointers may be NULL */
    if (KW_UNLIKELY(reserve(b, size) < 0)) return KW_NO_MEMORY;
    kw_copy(b->data + b->size, data, size);
    b->size += size;
    return KW_DONE;
}

/* Counts the bytes that a sink is about to take. */
static inline int spend(const kw_sink *s, uint64_t bytes) {
    if (KW_LIKELY(s->room == NULL)) return KW_DONE;
    if (*s->room < 0 || bytes > (uint64_t)*s->room) {
        *s->room = -1;
        return KW_TOO_WIDE;
    }
    *s->room -= (int64_t)bytes;
    return KW_DONE;
}

static inline int append_offset(kw_sink *s, size_t end) {
    if (KW_UNLIKELY(end > (size_t)s->most)) return KW_TOO_LARGE;
    if (KW_UNLIKELY(spend(s, 4) != KW_DONE)) return KW_TOO_WIDE;
    int32_t at = (int32_t)end;
    return append(&s->offsets, &at, 4);
}

/* Validity is stored from the first null on; before that every row is valid. */
static int mark_some(kw_sink *s, uint8_t there, int64_t times) {
    int64_t rows = s->valid.size == 0 ? s->rows : 0; /* rows without stored validity */
    if (spend(s, (uint64_t)(rows + times)) != KW_DONE) return KW_TOO_WIDE;
    if (reserve(&s->valid, (size_t)(rows + times)) < 0) return KW_NO_MEMORY;
    memset(s->valid.data + s->valid.size, 1, (size_t)rows);
    memset(s->valid.data + s->valid.size + rows, there, (size_t)times);
    s->valid.size += (size_t)(rows + times);
    s->rows += times;
    s->nulls += there ? 0 : times;
    return KW_DONE;
}

static inline int mark(kw_sink *s, uint8_t there, int64_t times) {
    if (KW_UNLIKELY(!there || s->valid.size)) return times ? mark_some(s, there, times) : KW_DONE;
    s->rows += times;
    return KW_DONE;
}

int kw_sink_start(kw_sink *s) {
    int status = KW_DONE;
    if (s->kind == KW_STRING || s->kind == KW_BYTES || s->kind == KW_ARRAY) status = append_offset(s, 0);
    for (int i = 0; status == KW_DONE && i < s->n_children; i++) status = kw_sink_start(s->children[i]);
    return status;
}

static __attribute__((noinline)) int add_fixed(kw_sink *s, const uint8_t *native, uint8_t there) {
    if (KW_UNLIKELY(spend(s, kw_width[s->kind]) != KW_DONE)) return KW_TOO_WIDE;
    int status = append(&s->values, native, kw_width[s->kind]);
    return status == KW_DONE ? mark(s, there, 1) : status;
}

int kw_sink_fixed(kw_sink *s, const uint8_t *native) { return add_fixed(s, native, 1); }

static inline int add_bytes(kw_sink *s, const uint8_t *data, size_t size) {
    int status = append(&s->values, data, size);
    if (status == KW_DONE) status = append_offset(s, s->values.size);
    return status == KW_DONE ? mark(s, 1, 1) : status;
}

int kw_sink_bytes(kw_sink *s, const uint8_t *data, size_t size) { return add_bytes(s, data, size); }

static inline int add_list(kw_sink *s) {
    int status = append_offset(s, (size_t)s->children[0]->rows);
    return status == KW_DONE ? mark(s, 1, 1) : status;
}

int kw_sink_list(kw_sink *s) { return add_list(s); }

int kw_sink_struct(kw_sink *s) { return mark(s, 1, 1); }

int kw_sink_null(kw_sink *s) {
    static const uint8_t zero[16] = {0};
    int status = KW_DONE;
    if (s->kind < KW_STRING) return add_fixed(s, zero, 0); /* under a null struct */
    if (s->kind == KW_STRUCT) {
        for (int i = 0; status == KW_DONE && i < s->n_children; i++) status = kw_sink_null(s->children[i]);
    } else {
        status = append_offset(s, s->kind == KW_ARRAY ? (size_t)s->children[0]->rows : s->values.size);
    }
    return status == KW_DONE ? mark(s, 0, 1) : status;
}

static int add_default(kw_sink *s) {
    int status = KW_DONE;
    if (s->kind < KW_STRING) return kw_sink_fixed(s, s->field->owner->model + s->field->at);
    if (s->default_null) return kw_sink_null(s);
    if (s->kind == KW_ARRAY) return add_list(s);
    if (s->kind != KW_STRUCT) return add_bytes(s, (const uint8_t *)"", 0);
    for (int i = 0; status == KW_DONE && i < s->n_children; i++) status = add_default(s->children[i]);
    return status == KW_DONE ? mark(s, 1, 1) : status;
}

/* Appends one row of a column, repeated, to another column of the same type. */
static int repeat_fixed(const kw_sink *from, int64_t row, kw_sink *to, int64_t times, uint8_t there) {
    int width = kw_width[from->kind];
    const uint8_t *value = from->values.data + row * width;
    if (spend(to, (uint64_t)times * (uint64_t)width) != KW_DONE) return KW_TOO_WIDE;
    if (reserve(&to->values, (size_t)(times * width)) < 0) return KW_NO_MEMORY;
    uint8_t *at = to->values.data + to->values.size;
    if (width == 4) {
        for (int64_t i = 0; i < times; i++) memcpy(at + i * 4, value, 4);
    } else {
        for (int64_t i = 0; i < times; i++) memcpy(at + i * width, value, (size_t)width);
    }
    to->values.size += (size_t)(times * width);
    return mark(to, there, times);
}

static inline int32_t end_of(const kw_sink *s, int64_t row) {
    int32_t at;
    memcpy(&at, s->offsets.data + 4 * row, 4);
    return at;
}

static int repeat_bytes(const kw_sink *from, int64_t row, kw_sink *to, int64_t times) {
    int32_t at = end_of(from, row);
    size_t size = (size_t)(end_of(from, row + 1) - at);
    if (to->values.size + size * (size_t)times > (size_t)to->most) return KW_TOO_LARGE;
    if (spend(to, (size + 4) * (uint64_t)times) != KW_DONE) return KW_TOO_WIDE;
    if (reserve(&to->values, size * (size_t)times) < 0) return KW_NO_MEMORY;
    if (reserve(&to->offsets, 4 * (size_t)times) < 0) return KW_NO_MEMORY;
    for (int64_t i = 0; i < times; i++) {
        if (size) memcpy(to->values.data + to->values.size, from->values.data + at, size);
        to->values.size += size;
        int32_t end = (int32_t)to->values.size;
        memcpy(to->offsets.data + to->offsets.size, &end, 4);
        to->offsets.size += 4;
    }
    return mark(to, 1, times);
}

int kw_sink_repeat(const kw_sink *from, int64_t row, kw_sink *to, int64_t times) {
    int status = KW_DONE;
    if (times == 0) return KW_DONE;
    uint8_t there = from->valid.size == 0 || from->valid.data[row];
    if (from->kind < KW_STRING) return repeat_fixed(from, row, to, times, there);
    if (from->kind == KW_STRUCT) {
        for (int i = 0; status == KW_DONE && i < from->n_children; i++) {
            status = kw_sink_repeat(from->children[i], row, to->children[i], times);
        }
        return status == KW_DONE ? mark(to, there, times) : status;
    }
    if (there && from->kind != KW_ARRAY) return repeat_bytes(from, row, to, times);
    for (; status == KW_DONE && times; times--) {
        if (!there) {
            status = kw_sink_null(to);
            continue;
        }
        for (int64_t j = end_of(from, row); status == KW_DONE && j < end_of(from, row + 1); j++) {
            status = kw_sink_repeat(from->children[0], j, to->children[0], 1);
        }
        if (status == KW_DONE) status = add_list(to);
    }
    return status;
}

void kw_sink_empty(kw_sink *s) {
    kw_buffer_free(&s->values);
    kw_buffer_free(&s->offsets);
    kw_buffer_free(&s->valid);
}

void kw_sink_free(kw_sink *s) {
    if (s == NULL) return;
    for (int i = 0; s->children && i < s->n_children; i++) kw_sink_free(s->children[i]);
    free(s->children);
    kw_sink_empty(s);
    free(s);
}

/* -- decoding: strict; anything unusual is left to the slow path by object, which finds the right error.
   Each step takes the position where it begins and returns where it ends; NULL: *status says why. */

static const uint8_t *walk_all(const uint8_t *at, const uint8_t *end, const kw_route *route, int64_t times,
                               int *status);

static inline const uint8_t *stop(int *status, int why) {
    *status = why;
    return NULL;
}

/* Continues at `at` if the sinks accepted the values. */
static inline const uint8_t *taken(const uint8_t *at, int *status, int why) {
    return KW_LIKELY(why == KW_DONE) ? at : stop(status, why);
}

static const uint8_t *take_any_length(const uint8_t *at, const uint8_t *end, int compact, int width, int64_t *out) {
    kw_cursor c = {.base = at, .at = at, .end = end};
    kw_failure failure;
    return kw_take_length(&c, compact, width, 0, &failure, out) < 0 ? NULL : c.at;
}

static inline const uint8_t *take_length(const uint8_t *at, const uint8_t *end, int compact, int width, int64_t *out) {
    if (compact && KW_LIKELY(at < end && *at < 0x80)) {
        *out = (int64_t)*at - 1;
        return at + 1;
    }
    int64_t length; /* a local, so that *out stays in a register */
    at = take_any_length(at, end, compact, width, &length);
    *out = length;
    return at;
}

static inline void open_numbers(kw_step *step) {
    const kw_buffer *values = &step->sink->children[0]->values;
    step->first = values->data;
    step->to = values->data + values->size;
    step->limit = values->data + values->room;
}

static inline void close_numbers(const kw_step *step) {
    kw_sink *items = step->sink->children[0];
    items->values.size = (size_t)(step->to - step->first);
    items->rows = (int64_t)(items->values.size >> step->shift);
}

/* Makes room for what decoding `walks` structs will append: fixed-width values, and offsets of strings and lists. */
static int make_room(const kw_route *route, int64_t walks) {
    for (int i = 0; i < route->n_steps; i++) {
        kw_step *step = &route->steps[i];
        for (int j = 0; j < step->n_picks; j++) {
            kw_sink *sink = step->picks[j].sink;
            if (sink == NULL) continue;
            if (reserve(&sink->values, (size_t)walks * kw_width[sink->kind]) < 0) return KW_NO_MEMORY;
            step->picks[j].to = sink->values.data + sink->values.size;
        }
        if (step->sink == NULL || step->code == KW_STRUCT) continue;
        if (reserve(&step->sink->offsets, (size_t)walks * 4) < 0) return KW_NO_MEMORY;
        step->ends = (int32_t *)(step->sink->offsets.data + step->sink->offsets.size);
        if (step->code < KW_ARRAY_UUID) continue;
        if (reserve(&step->sink->children[0]->values, 1) < 0) return KW_NO_MEMORY; /* else data would be NULL */
        open_numbers(step);
    }
    return KW_DONE;
}

/* The rows of a string or list up to the one being written. */
static inline int64_t rows_so_far(const kw_step *step) { return step->ends - (int32_t *)step->sink->offsets.data - 1; }

/* Ends a row of a string or list there. Whether 32 bits can hold the end is checked after the last row. */
static inline int put_row(kw_step *step, size_t end) {
    if (KW_UNLIKELY(step->sink->valid.size)) {
        step->sink->rows = rows_so_far(step);
        if (mark_some(step->sink, 1, 1) < 0) return KW_NO_MEMORY;
    }
    *step->ends++ = (int32_t)end;
    return KW_DONE;
}

static int put_null(kw_step *step) {
    step->sink->rows = rows_so_far(step);
    if (mark_some(step->sink, 0, 1) < 0) return KW_NO_MEMORY;
    step->ends[0] = step->ends[-1];
    step->ends++;
    return KW_DONE;
}

/* Counts the rows that were written into the room made by make_room. */
static int count_values(const kw_route *route, int64_t walks) {
    for (int i = 0; i < route->n_steps; i++) {
        const kw_step *step = &route->steps[i];
        for (int j = 0; j < step->n_picks; j++) {
            kw_sink *sink = step->picks[j].sink;
            if (sink == NULL) continue;
            sink->values.size += (size_t)walks * kw_width[sink->kind];
            if (mark(sink, 1, walks) < 0) return KW_NO_MEMORY;
        }
        if (step->sink == NULL || step->code == KW_STRUCT) continue;
        step->sink->rows = rows_so_far(step);
        step->sink->offsets.size = (size_t)(step->sink->rows + 1) * 4;
        if (step->code >= KW_ARRAY_UUID) close_numbers(step);
        size_t last = step->code < KW_STRUCT ? step->sink->values.size : (size_t)step->sink->children[0]->rows;
        if (last > (size_t)step->sink->most) return KW_TOO_LARGE; /* the end of the last row exceeds the limit */
    }
    return KW_DONE;
}

static inline const uint8_t *walk_run(const uint8_t *at, const uint8_t *end, const kw_step *step, int *status) {
    if (KW_UNLIKELY(step->op->need > end - at)) return stop(status, KW_BY_OBJECT);
    for (kw_pick *pick = step->picks, *last = pick + step->n_picks; pick < last; pick++) {
        const uint8_t *from = at + pick->at;
        if (pick->width == 4) { /* the usual case */
            uint32_t v = kw_load32(from);
            memcpy(pick->to, &v, 4);
        } else {
            if (pick->kind == KW_BOOL && *from > 1) return stop(status, KW_BY_OBJECT);
            if (pick->sink == NULL) continue;
            kw_load_fixed(pick->kind, from, pick->to, 0);
        }
        pick->to += pick->width;
    }
    return at + step->op->need;
}

/* Reads the length of a string or bytes; *size is -1 for null. */
static inline const uint8_t *read_size(const uint8_t *at, const uint8_t *end, int code, int flags, int64_t *size) {
    at = take_length(at, end, flags & KW_COMPACT, code == KW_STRING ? 2 : 4, size);
    if (at == NULL || (*size < 0 && !(flags & KW_NULLABLE)) || *size > end - at) return NULL;
    return code == KW_STRING && *size > KW_MAX_STRING ? NULL : at;
}

/* Whether a string needs no slow path. The bytes appended to a sink are checked, as the input may change. */
static inline int is_plain(const kw_sink *sink, const uint8_t *at, int64_t size) {
    if (size <= 0) return 1;
    return kw_is_ascii(sink ? sink->values.data + sink->values.size - size : at, size);
}

static inline const uint8_t *walk_bytes(const uint8_t *at, const uint8_t *end, kw_step *step, int *status) {
    int64_t size;
    at = read_size(at, end, step->code, step->op->flags, &size);
    if (KW_UNLIKELY(at == NULL)) return stop(status, KW_BY_OBJECT);
    if (size < 0) return taken(at, status, step->sink ? put_null(step) : KW_DONE);
    if (step->sink && KW_UNLIKELY(append(&step->sink->values, at, (size_t)size) < 0)) return stop(status, KW_NO_MEMORY);
    if (step->code == KW_STRING && KW_UNLIKELY(!is_plain(step->sink, at, size))) return stop(status, KW_BY_OBJECT);
    if (step->sink == NULL) return at + size;
    return taken(at + size, status, put_row(step, step->sink->values.size));
}

static inline void swap_two(uint8_t *to, const uint8_t *from) { /* of 32 bits */
    uint64_t v = kw_load64(from);
    v = v << 32 | v >> 32;
    memcpy(to, &v, 8);
}

static int more_numbers(kw_step *step, size_t size) {
    close_numbers(step);
    if (reserve(&step->sink->children[0]->values, size) < 0) return KW_NO_MEMORY;
    open_numbers(step);
    return KW_DONE;
}

/* Appends a row of an array of numbers, of size bytes. */
static inline int put_numbers(kw_step *step, const uint8_t *data, size_t size, const uint8_t *end) {
    if (KW_UNLIKELY(size + 16 > (size_t)(step->limit - step->to)) && more_numbers(step, size + 16) < 0)
        return KW_NO_MEMORY;
    uint8_t *to = step->to;
    step->to = to + size;
    if (KW_LIKELY(step->shift == 2 && size <= 16 && end - data >= 16)) { /* such as replicas: few elements */
        swap_two(to, data);
        swap_two(to + 8, data + 8);
    } else {
        const int kind = step->sink->children[0]->kind;
        const size_t width = (size_t)1 << step->shift;
        for (size_t i = 0; i < size; i += width) kw_load_fixed(kind, data + i, to + i, 0);
    }
    return put_row(step, (size_t)(step->to - step->first) >> step->shift);
}

static const uint8_t *walk_array(const uint8_t *at, const uint8_t *end, kw_step *step, int *status) {
    const kw_op *op = step->op;
    kw_sink *items = step->sink ? step->sink->children[0] : NULL;
    int64_t count, size;
    at = take_length(at, end, op->flags & KW_COMPACT, 4, &count);
    if (at == NULL || (count < 0 && !(op->flags & KW_NULLABLE))) return stop(status, KW_BY_OBJECT);
    if (count < 0) return taken(at, status, step->sink ? put_null(step) : KW_DONE);
    if (count * op->need > end - at) return stop(status, KW_BY_OBJECT); /* 31 and 32 bits: no overflow */
    if (op->code == KW_ARRAY_STRUCT) {
        at = walk_all(at, end, step->below, count, status);
        if (at == NULL) return NULL;
        if (items && mark(items, 1, count) < 0) return stop(status, KW_NO_MEMORY);
    } else if (op->code == KW_ARRAY_STRING) {
        for (int64_t i = 0; i < count; i++) {
            at = read_size(at, end, KW_STRING, op->flags & KW_COMPACT, &size);
            if (at == NULL) return stop(status, KW_BY_OBJECT);
            int why = items ? add_bytes(items, at, (size_t)size) : KW_DONE;
            if (KW_UNLIKELY(why != KW_DONE)) return stop(status, why);
            if (KW_UNLIKELY(!is_plain(items, at, size))) return stop(status, KW_BY_OBJECT);
            at += size;
        }
    } else { /* need is the width of an element */
        if (items == NULL) return at + count * op->need;
        return taken(at + count * op->need, status, put_numbers(step, at, (size_t)(count * op->need), end));
    }
    return taken(at, status, items ? put_row(step, (size_t)items->rows) : KW_DONE);
}

/* A compact array of numbers. Most are as long as the previous one: guessing so, the processor need not wait for the
   length to know where the next field begins. */
static inline const uint8_t *guess_array(const uint8_t *at, const uint8_t *end, kw_step *step, int *status) {
    if (KW_UNLIKELY(at == end)) return stop(status, KW_BY_OBJECT);
    const uint8_t length = *at;
    if (KW_LIKELY(length == step->last_length)) {
        if (KW_UNLIKELY(step->last_size > end - at)) return stop(status, KW_BY_OBJECT);
        if (step->sink == NULL) return at + step->last_size;
        return taken(at + step->last_size, status, put_numbers(step, at + 1, step->last_size - 1, end));
    }
    const uint8_t *after = walk_array(at, end, step, status);
    /* a valid length is used as it was read, as the input may have changed since */
    if (after && length && length < 0x80 && after - at == 1 + ((int64_t)(length - 1) << step->shift)) {
        step->last_length = length;
        step->last_size = (uint32_t)(after - at);
    }
    return after;
}

static const uint8_t *walk_struct(const uint8_t *at, const uint8_t *end, const kw_step *step, int *status) {
    if (step->op->flags & KW_NULLABLE) {
        if (at == end) return stop(status, KW_BY_OBJECT);
        uint8_t sign = *at++;
        if (sign == 0xff) return taken(at, status, step->sink ? kw_sink_null(step->sink) : KW_DONE);
        if (sign != 1) return stop(status, KW_BY_OBJECT);
    }
    at = walk_all(at, end, step->below, 1, status);
    return at && step->sink ? taken(at, status, kw_sink_struct(step->sink)) : at;
}

/* Decodes the same struct `times` times. */
static const uint8_t *walk(const uint8_t *at, const uint8_t *end, const kw_route *route, int64_t times, int *status) {
    const kw_plan *plan = route->plan;
    for (; times > 0; times--) {
        for (kw_step *step = route->steps, *last = step + route->n_steps; step < last; step++) {
            if (step->code == KW_RUN) {
                at = walk_run(at, end, step, status);
            } else if (step->guesses) {
                at = guess_array(at, end, step, status);
            } else if (step->code < KW_STRUCT) {
                at = walk_bytes(at, end, step, status);
            } else if (step->code == KW_STRUCT) {
                at = walk_struct(at, end, step, status);
            } else {
                at = walk_array(at, end, step, status);
            }
            if (KW_UNLIKELY(at == NULL)) return NULL;
        }
        if (!plan->flexible) continue;
        if (KW_UNLIKELY(at == end || *at != 0)) return stop(status, KW_BY_OBJECT);
        for (int i = 0; i < plan->n_tags; i++) {
            int why = route->tag_sinks[i] ? add_default(route->tag_sinks[i]) : KW_DONE;
            if (KW_UNLIKELY(why != KW_DONE)) return stop(status, why);
        }
        at++;
    }
    return at;
}

static const uint8_t *walk_all(const uint8_t *at, const uint8_t *end, const kw_route *route, int64_t times,
                               int *status) {
    if (times == 0) return at; /* the buffers may be NULL */
    if (make_room(route, times) < 0) return stop(status, KW_NO_MEMORY);
    at = walk(at, end, route, times, status);
    return at ? taken(at, status, count_values(route, times)) : NULL;
}

int kw_route_walk(kw_cursor *c, const kw_route *route) {
    int status = KW_DONE;
    const uint8_t *at = walk_all(c->at, c->end, route, 1, &status);
    if (at) c->at = at;
    return status;
}
