/* Rows of Arrow arrays: what is read of each layout, and what is refused before a byte of it is read. */
#include "arrow_rows.h"

#include <stdio.h>
#include <string.h>

#include "../must.h"

static const uint8_t NONE[1] = {0}, DATA[8] = "abcdefg";
static int64_t one_stamp[1] = {7};

/* What one row with this key gives. */
static kw_fill_status key_is(kw_arrow_bytes key, const char *text) {
    const kw_arrow_rows rows = {.rows = 1, .key = key};
    kw_row row = {0};
    int64_t from, to;
    const kw_fill_status status = kw_arrow_row(&rows, 0, &row, &from, &to);
    if (status != KW_FILL_OK) return status;
    MUST(row.value_size == -1 && row.key_size == (text ? (int32_t)strlen(text) : -1));
    if (row.key_size > 0) MUST(!memcmp(row.key, text, strlen(text)));
    return status;
}

static kw_fill_status span32(int32_t from, int32_t to, const uint8_t *data, const char *text) {
    const int32_t spans[2] = {from, to};
    return key_is((kw_arrow_bytes){.layout = KW_LAYOUT_32, .spans = spans, .data = data}, text);
}

static kw_fill_status span64(int64_t from, int64_t to, const uint8_t *data, const char *text) {
    const int64_t spans[2] = {from, to};
    return key_is((kw_arrow_bytes){.layout = KW_LAYOUT_64, .spans = spans, .data = data}, text);
}

/* A view of size bytes from `at` on of a buffer, of two: one of 19 bytes, and NULL. */
static kw_fill_status view(int32_t size, int32_t buffer, int32_t at, int has_sizes, const char *text) {
    const int32_t spans[4] = {size, 0, buffer, at};
    static const uint8_t more[20] = "abcdefghijklmnopqrs";
    const uint8_t *const buffers[2] = {more, NULL};
    const int64_t sizes[2] = {19, 100};
    return key_is((kw_arrow_bytes){.layout = KW_LAYOUT_VIEW, .spans = spans, .buffers = buffers,
                                   .sizes = has_sizes ? sizes : NULL, .n_buffers = 2}, text);
}

static void spans(void) {
    MUST(span32(1, 3, DATA, "bc") == KW_FILL_OK && span64(1, 3, DATA, "bc") == KW_FILL_OK);
    MUST(span32(0, 0, NULL, "") == KW_FILL_OK && span64(2, 2, DATA, "") == KW_FILL_OK);
    MUST(span32(-1, 3, DATA, "") == KW_FILL_BAD_SPAN && span64(-1, 3, DATA, "") == KW_FILL_BAD_SPAN);
    MUST(span32(3, 2, DATA, "") == KW_FILL_BAD_SPAN && span64(3, 2, DATA, "") == KW_FILL_BAD_SPAN);
    MUST(span32(0, 1, NULL, "") == KW_FILL_BAD_SPAN && span64(0, 1, NULL, "") == KW_FILL_BAD_SPAN);
    MUST(span64(0, (int64_t)INT32_MAX + 1, DATA, "") == KW_FILL_LONG);
    MUST(span64(0, INT64_MAX, DATA, "") == KW_FILL_LONG && span64(0, INT32_MAX, NULL, "") == KW_FILL_BAD_SPAN);
    const uint8_t second[1] = {2};
    kw_arrow_bytes fixed = {.layout = KW_LAYOUT_FIXED, .data = DATA, .width = 3, .first = 1};
    MUST(key_is(fixed, "def") == KW_FILL_OK);
    fixed.valid = second;
    MUST(key_is(fixed, "def") == KW_FILL_OK);
    fixed.valid = NONE;
    MUST(key_is(fixed, NULL) == KW_FILL_OK && key_is((kw_arrow_bytes){0}, NULL) == KW_FILL_OK);
}

static void views(void) {
    MUST(view(13, 0, 6, 1, "ghijklmnopqrs") == KW_FILL_OK && view(0, 9, 9, 0, "") == KW_FILL_OK);
    MUST(view(-1, 0, 0, 1, "") == KW_FILL_BAD_SPAN);
    MUST(view(13, -1, 0, 1, "") == KW_FILL_BAD_SPAN && view(13, 2, 0, 1, "") == KW_FILL_BAD_SPAN);
    MUST(view(13, 0, -1, 1, "") == KW_FILL_BAD_SPAN && view(13, 0, 7, 1, "") == KW_FILL_BAD_SPAN);
    MUST(view(INT32_MAX, 0, INT32_MAX, 1, "") == KW_FILL_BAD_SPAN);
    MUST(view(13, 0, 0, 0, "") == KW_FILL_BAD_SPAN); /* no sizes */
    MUST(view(13, 1, 0, 1, "") == KW_FILL_BAD_SPAN); /* no buffer */
}

/* Two pairs, (a, b) and (cd, null), and what is wrong with them. */
static kw_arrow_headers pairs(int64_t first) {
    static const int32_t lists[4] = {0, 0, 0, 2}, keys[3] = {0, 1, 3}, values[3] = {1, 2, 2};
    static const uint8_t some[1] = {1};
    return (kw_arrow_headers){
        .layout = KW_LAYOUT_32, .spans = lists, .first = first, .items = 2,
        .key = {.layout = KW_LAYOUT_32, .spans = keys, .data = (const uint8_t *)"acd"},
        .value = {.layout = KW_LAYOUT_32, .spans = values, .data = (const uint8_t *)"ab", .valid = some}};
}

static kw_fill_status headers_of(kw_arrow_headers headers, kw_row *row) {
    const kw_arrow_rows rows = {.rows = 1, .headers = headers};
    int64_t from, to;
    return kw_arrow_row(&rows, 0, row, &from, &to);
}

static void headers(void) {
    kw_row row;
    MUST(headers_of(pairs(2), &row) == KW_FILL_OK && row.headers == 2 && row.headers_size == 2 + 2 + 3 + 1);
    MUST(headers_of(pairs(1), &row) == KW_FILL_OK && row.headers == 0 && row.headers_size == 0);
    kw_arrow_headers wrong = pairs(2);
    wrong.valid = NONE;
    MUST(headers_of(wrong, &row) == KW_FILL_OK && row.headers == 0);
    const int64_t lists[][2] = {{0, 2}, {-1, 2}, {2, 1}, {0, 3}};
    for (int i = 0; i < 4; i++) {
        wrong = pairs(0), wrong.layout = KW_LAYOUT_64, wrong.spans = lists[i];
        MUST(headers_of(wrong, &row) == (i ? KW_FILL_BAD_SPAN : KW_FILL_OK));
    }
    wrong = pairs(2), wrong.pair_valid = NONE;
    MUST(headers_of(wrong, &row) == KW_FILL_NULL_PAIR);
    wrong = pairs(2), wrong.key.valid = NONE;
    MUST(headers_of(wrong, &row) == KW_FILL_NULL_HEADER_KEY);
    wrong = pairs(2), wrong.key.data = NULL;
    MUST(headers_of(wrong, &row) == KW_FILL_BAD_SPAN);
    wrong = pairs(2), wrong.value.data = NULL;
    MUST(headers_of(wrong, &row) == KW_FILL_BAD_SPAN);
    const int64_t large[3] = {0, 0x60000000, 0x60000000 + 0x60000000LL}; /* only their sizes are read */
    wrong = pairs(2), wrong.key.layout = KW_LAYOUT_64, wrong.key.spans = large;
    MUST(headers_of(wrong, &row) == KW_FILL_LONG);
}

static kw_fill_status stamp_is(int64_t value, int64_t multiply, int64_t divide, int64_t expected) {
    const kw_arrow_rows rows = {.rows = 1, .stamp = {.values = &value, .multiply = multiply, .divide = divide}};
    kw_row row = {0};
    int64_t from, to;
    const kw_fill_status status = kw_arrow_row(&rows, 0, &row, &from, &to);
    MUST(status != KW_FILL_OK || row.stamp == expected);
    return status;
}

static void numbers(void) {
    MUST(stamp_is(5, 1, 1, 5) == KW_FILL_OK && stamp_is(-5, 1000, 1, -5000) == KW_FILL_OK);
    MUST(stamp_is(1999, 1, 1000, 1) == KW_FILL_OK && stamp_is(-1, 1, 1000, -1) == KW_FILL_OK);
    MUST(stamp_is(-2000, 1, 1000, -2) == KW_FILL_OK && stamp_is(INT64_MAX, 1000, 1, 0) == KW_FILL_TIME);
    kw_arrow_rows rows = {.rows = 1, .stamp = {.values = one_stamp, .valid = NONE}};
    kw_row row = {0};
    int64_t from, to, offset;
    MUST(kw_arrow_row(&rows, 0, &row, &from, &to) == KW_FILL_OK && row.stamp == -1);
    rows.valid = NONE;
    MUST(kw_arrow_row(&rows, 0, &row, &from, &to) == KW_FILL_NULL_ROW);

    kw_fill fill = {.next = 7, .has_next = 1};
    rows.offset.values = one_stamp;
    MUST(kw_arrow_offset(&rows, &fill, &offset) == KW_FILL_OK && offset == 7);
    fill.next = 8;
    MUST(kw_arrow_offset(&rows, &fill, &offset) == KW_FILL_FALLING_OFFSET);
    fill.next = INT64_MIN;
    MUST(kw_arrow_offset(&rows, &fill, &offset) == KW_FILL_NO_OFFSET);
    fill.has_next = 0;
    MUST(kw_arrow_offset(&rows, &fill, &offset) == KW_FILL_OK && offset == 7);
    rows.offset.valid = NONE;
    MUST(kw_arrow_offset(&rows, &fill, &offset) == KW_FILL_NULL_OFFSET);
}

static _Alignas(4) uint8_t out[4100];

static kw_fill opened(int64_t room) {
    return (kw_fill){.most_bytes = 1 << 20, .most_rows = INT32_MAX, .has_next = 1, .takes_stamp = 1,
                     .start = out, .out = out, .end = out + room};
}

static void batches(void) {
    kw_arrow_rows rows = {.rows = 1, .key = {.layout = KW_LAYOUT_FIXED, .data = DATA, .width = 1}, .headers = pairs(2),
                          .stamp = {.values = one_stamp, .multiply = 1, .divide = 1}};
    static const uint8_t wire[] = {30, 0, 0, 0, 2, 'a', 1, 4, 2, 'a', 2, 'b', 4, 'c', 'd', 1};
    kw_fill fill = opened(sizeof wire - 1);
    MUST(kw_fill_batch(&rows, &fill) == KW_FILL_ROOM && fill.need == sizeof wire && fill.count == 0);
    fill.end = out + sizeof wire;
    MUST(kw_fill_batch(&rows, &fill) == KW_FILL_OK && fill.count == 1 && fill.next == 1 && fill.max_stamp == 7);
    MUST(fill.out == out + sizeof wire && !memcmp(out, wire, sizeof wire));
    fill = opened(4096), rows.rows = 3, rows.headers.layout = KW_LAYOUT_NULL, rows.stamp.values = NULL;
    fill.most_rows = 1;
    MUST(kw_fill_batch(&rows, &fill) == KW_FILL_FULL && fill.count == 1 && fill.at == 1);
    fill = opened(4096), fill.most_bytes = 1; /* the first row of a batch always fits */
    MUST(kw_fill_batch(&rows, &fill) == KW_FILL_FULL && fill.count == 1 && fill.max_stamp == -1);
    const int64_t far[3] = {0, 1, (int64_t)1 << 31};
    fill = opened(4096), rows.offset.values = far;
    MUST(kw_fill_batch(&rows, &fill) == KW_FILL_FULL && fill.count == 2);
    fill = opened(4096), fill.has_next = 0, rows.offset.valid = NONE;
    MUST(kw_fill_batch(&rows, &fill) == KW_FILL_NULL_OFFSET && fill.out == out);
    const int64_t large[2] = {0, INT32_MAX}; /* refused by its size, before it is read */
    fill = opened(4096);
    rows = (kw_arrow_rows){.rows = 1, .value = {.layout = KW_LAYOUT_64, .spans = large, .data = DATA}};
    MUST(kw_fill_batch(&rows, &fill) == KW_FILL_LONG_BATCH && fill.out == out);
}

/* Headers that change after they were measured: their spans lie where the key of the record is written. */
static kw_fill_status changing(int32_t first, int32_t second, int32_t third) {
    const int32_t now[3] = {first, second, third}, then[3] = {0, 1, 3};
    int32_t *const spans = (int32_t *)out + 2;
    kw_arrow_rows rows = {.rows = 1, .headers = pairs(2)};
    rows.key = (kw_arrow_bytes){.layout = KW_LAYOUT_FIXED, .data = (const uint8_t *)now, .width = sizeof now};
    rows.headers.key.spans = memcpy(spans, then, sizeof then);
    kw_fill fill = opened(4096);
    fill.start = fill.out = out + 3; /* length, attributes, timestamp, offset and size of the key: 5 bytes */
    const kw_fill_status status = kw_fill_batch(&rows, &fill);
    MUST(!memcmp(spans, now, sizeof now) && fill.count == (status == KW_FILL_OK));
    return status;
}

static void change(void) {
    MUST(changing(0, 1, 3) == KW_FILL_OK);
    MUST(changing(0, 1, 0) == KW_FILL_CHANGED);  /* a bad span */
    MUST(changing(0, 1, 2) == KW_FILL_CHANGED);  /* shorter: bytes are left */
    MUST(changing(0, 3, 3) == KW_FILL_OK);       /* as long in all */
    MUST(changing(0, 0, 99) == KW_FILL_CHANGED); /* longer than there is room for */
}

static void reasons(void) {
    const char *of = NULL;
    MUST(!strcmp(kw_fill_reason(KW_FILL_TIME, &of), "the timestamp in milliseconds does not fit 64 bits"));
    MUST(!strcmp(of, "timestamp"));
    for (int status = KW_FILL_NULL_ROW; status <= KW_FILL_CHANGED; status++)
        MUST(strcmp(kw_fill_reason((kw_fill_status)status, &of), "unknown error"));
    MUST(!strcmp(kw_fill_reason(KW_FILL_OK, &of), "unknown error") && !*of);
}

int main(void) {
    spans();
    views();
    headers();
    numbers();
    batches();
    change();
    reasons();
    puts("sound");
    return 0;
}
