/* Messages as columns: the input's head says what the message looks like, a walk reads the rest by that plan. */
#include "crc32c.h"
#include "sink.h"
#include "target.h"

int starved;
uint32_t digest;

#define DEEPEST 4
#define MOST 8 /* fields of a struct */

/* What was allocated for one input; sinks free themselves. */
static void *kept[4096];
static int n_kept;

static void *room(size_t count, size_t size) {
    MUST(n_kept < 4096);
    return kept[n_kept++] = calloc(count + 1, size);
}

typedef struct { const uint8_t *at, *end; } spec; /* zeros behind its end: no more fields */

static uint8_t next(spec *s) { return s->at < s->end ? *s->at++ : 0; }

/* A plan as kwire_c/plan.pyx compiles them: fixed-width fields that follow each other are one run. ops must not move.
   A field is wanted as a column if its `ignorable` says so here. */
static kw_plan *make_plan(spec *s, int depth, int flexible) {
    int n_fields = next(s) % MOST + (depth == 0);
    kw_plan *plan = room(1, sizeof *plan);
    kw_op *ops = room(2 * n_fields, sizeof *ops), *tags = room(n_fields, sizeof *tags), *run = NULL;
    kw_class *cls = room(1, sizeof *cls);
    cls->model = room(n_fields, 16);
    plan->ops = ops, plan->tags = tags, plan->flexible = (uint8_t)flexible, plan->cls = cls;
    plan->least = (uint32_t)flexible;
    for (int i = 0; i < n_fields; i++) {
        static const uint8_t codes[] = {KW_BOOL, KW_INT8, KW_INT16, KW_INT32, KW_INT64, KW_FLOAT64, KW_UUID, KW_STRING,
                                        KW_BYTES, KW_RECORDS, KW_STRUCT, KW_ARRAY_STRUCT, KW_ARRAY_STRUCT,
                                        KW_ARRAY_STRING, KW_ARRAY_UUID, KW_ARRAY_INT};
        uint8_t told = next(s), code = codes[told & 15];
        int tagged = flexible && (told & 0xc0) == 0xc0;
        if (depth == DEEPEST && (code == KW_STRUCT || code == KW_ARRAY_STRUCT)) code = KW_STRING;
        kw_field *field = room(1, sizeof *field);
        field->owner = cls, field->at = 16 * (uint32_t)i, field->ignorable = !!(told & 0x20);
        field->nullable = !!(told & 0x10);
        field->kind = code < KW_STRUCT ? code : code == KW_STRUCT ? KW_STRUCT : KW_ARRAY;
        if (code >= KW_STRING || tagged) run = NULL;
        else if (run == NULL) (run = &ops[plan->n_ops++])->code = KW_RUN;
        kw_op *op = tagged ? &tags[plan->n_tags++] : &ops[plan->n_ops++];
        op->field = field, op->code = code, op->tag = plan->n_tags;
        op->flags = (uint8_t)(flexible * KW_COMPACT) | (told & 0x10 ? KW_NULLABLE : 0);
        if (code == KW_STRUCT || code == KW_ARRAY_STRUCT) op->sub = make_plan(s, depth + 1, flexible);
        if (code == KW_ARRAY_INT) op->elem = KW_INT8 + told / 16 % 4 * 2;
        field->elem = code == KW_ARRAY_INT ? op->elem : code == KW_ARRAY_UUID ? KW_UUID
                      : code == KW_ARRAY_STRING ? KW_STRING : KW_STRUCT;
        uint32_t least = flexible ? 1 : code == KW_STRING ? 2 : 4;
        if (code < KW_STRING) {
            least = kw_width[code];
            if (!tagged) run->count++, run->need += least;
        } else if (code == KW_STRUCT) {
            least = op->flags & KW_NULLABLE ? 1 : op->sub->least;
        } else if (code >= KW_ARRAY_STRUCT) {
            op->need = code == KW_ARRAY_STRUCT ? op->sub->least : code == KW_ARRAY_STRING ? (flexible ? 1 : 2)
                       : kw_width[field->elem];
            if (op->need == 0) op->need = 1;
        }
        if (!tagged) plan->least += least;
    }
    return plan;
}

static kw_sink *make_sink(const kw_field *field, uint8_t kind) {
    kw_sink *s = calloc(1, sizeof *s);
    s->field = field, s->kind = kind == KW_RECORDS ? KW_BYTES : kind, s->default_null = field && field->nullable;
    s->most = INT32_MAX;
    s->children = calloc(MOST, sizeof(void *));
    return s;
}

static kw_sink *field_sink(const kw_op *op) {
    kw_sink *s = make_sink(op->field, op->field->kind);
    if (s->kind == KW_ARRAY) {
        s->children[0] = make_sink(op->field, op->field->elem);
        s->n_children = 1;
    }
    return s;
}

/* As Gatherer.make_route; owner: the struct's sink, NULL where nobody looks. */
static kw_route *make_route(const kw_plan *plan, kw_sink *owner) {
    kw_route *route = room(1, sizeof *route);
    kw_step *step = NULL;
    uint32_t at = 0;
    route->plan = plan;
    route->steps = room(plan->n_ops, sizeof(kw_step));
    route->tag_sinks = room(plan->n_tags, sizeof(void *));
    for (int i = 0; i < plan->n_ops + plan->n_tags; i++) {
        int tagged = i >= plan->n_ops;
        const kw_op *op = tagged ? &plan->tags[i - plan->n_ops] : &plan->ops[i];
        if (!tagged && op->code >= KW_STRING) {
            step = &route->steps[route->n_steps++];
            step->op = op, step->code = op->code;
        }
        if (op->code == KW_RUN) {
            step->picks = room(op->count, sizeof(kw_pick));
            at = 0;
            continue;
        }
        kw_sink *s = owner && op->field->ignorable ? field_sink(op) : NULL;
        if (s) owner->children[owner->n_children++] = s;
        kw_sink *inner = s && s->kind == KW_ARRAY ? s->children[0] : s;
        kw_route *below = op->sub ? make_route(op->sub, inner) : NULL;
        if (tagged) {
            route->tag_sinks[i - plan->n_ops] = s;
        } else if (op->code >= KW_STRING) {
            step->sink = s, step->below = below;
            while (op->code >= KW_ARRAY_UUID && 1u << step->shift < op->need) step->shift++;
            step->guesses = op->code >= KW_ARRAY_UUID && op->flags & KW_COMPACT;
            step->last_length = 1, step->last_size = 1;
        } else {
            if (s || op->code == KW_BOOL) step->picks[step->n_picks++] = 
                    (kw_pick){.sink = s, .at = at, .kind = op->code, .width = (uint8_t)kw_width[op->code]};
            at += kw_width[op->code];
        }
    }
    return route;
}

static int32_t end_of(const kw_sink *s, int64_t row) {
    int32_t end;
    memcpy(&end, s->offsets.data + 4 * row, 4);
    return end;
}

/* Every column holds what its rows need, and every value can be read. */
static void sound(const kw_sink *s, int64_t rows) {
    MUST(s->rows == rows && s->nulls <= rows && (s->valid.size == 0 || s->valid.size == (size_t)rows));
    for (const kw_buffer *b = &s->values; b <= &s->valid; b++)
        if (b->size) digest = kw_crc32c(digest, b->data, b->size);
    if (s->kind < KW_STRING) {
        MUST(s->values.size == (size_t)rows * kw_width[s->kind]);
    } else if (s->kind == KW_STRUCT) {
        for (int i = 0; i < s->n_children; i++) sound(s->children[i], rows);
    } else {
        MUST(s->offsets.size == 4 * ((size_t)rows + 1));
        for (int64_t row = 0; row < rows; row++) MUST(end_of(s, row) <= end_of(s, row + 1));
        if (s->kind == KW_ARRAY) sound(s->children[0], end_of(s, rows));
        else MUST((size_t)end_of(s, rows) == s->values.size);
    }
}

static kw_sink *like(const kw_sink *s) {
    kw_sink *made = make_sink(s->field, s->kind);
    for (; made->n_children < s->n_children; made->n_children++)
        made->children[made->n_children] = like(s->children[made->n_children]);
    return made;
}

static void primitives(const uint8_t *data, size_t size) {
    kw_cursor c;
    kw_failure f = {0};
    int64_t length, big;
    int32_t small;
    for (int way = 0; way < 16; way++) {
        kw_cursor_set(&c, data, size);
        while (kw_take_length(&c, way & 1, way & 2 ? 2 : 4, way & 4, &f, &length) == 0) {
            MUST(length >= -1 && c.at <= c.end);
            if (way & 8 && kw_has(&c, length)) {
                sink += (uint32_t)kw_is_ascii(c.at, length);
                c.at += length > 0 ? length : 0;
            }
        }
        MUST(f.offset >= 0 && f.offset <= (int64_t)size);
    }
    kw_cursor_set(&c, data, size);
    while (kw_read_varint32(&c, &small) == KW_OK) sink += (uint32_t)small;
    while (kw_read_varint64(&c, &big) == KW_OK) sink += (uint32_t)big;
}

/* The messages of an input as columns, then some of their rows taken from these. */
static int columns_of(const uint8_t *data, size_t size, size_t head) {
    spec s = {data + 2, data + head};
    kw_plan *plan = make_plan(&s, 0, data[1] & 1);
    kw_sink *top = make_sink(NULL, KW_STRUCT), *taken;
    kw_route *route = make_route(plan, top);
    uint8_t *message = exact(data + head, size - head);
    kw_cursor c;
    int status = kw_sink_start(top);
    kw_cursor_set(&c, message, size - head);
    while (status == KW_DONE && top->rows < 8) { /* message behind message */
        status = kw_route_walk(&c, route);
        if (status == KW_DONE) status = kw_sink_struct(top);
        MUST(status >= KW_NO_MEMORY && c.at <= c.end);
        if (status == KW_DONE) sound(top, top->rows);
    }
    if (status == KW_DONE) {
        taken = like(top);
        status = kw_sink_start(taken);
        for (int64_t row = 7, times = 0; row >= 0 && status == KW_DONE; row -= 2)
            status = kw_sink_repeat(top, row, taken, times++ % 3);
        MUST(status == KW_DONE || status == KW_NO_MEMORY);
        if (status == KW_DONE) sound(taken, 3);
        kw_sink_free(taken);
    }
    free(message);
    kw_sink_free(top);
    while (n_kept) free(kept[--n_kept]);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t head = 2 + data[0] % 64 < (int)size ? 2 + data[0] % 64 : size;
    while (columns_of(data, size, head) == KW_NO_MEMORY && ++starved == 1) digest = 0; /* all of it once more */
    uint8_t *message = exact(data + head, size - head);
    primitives(message, size - head);
    free(message);
    return 0;
}
