/* Rows as text: what each kind of piece writes, and that a piece that finds no memory writes nothing at all.
   realloc is replaced (-Drealloc=told_realloc), so that a buffer keeps the room that it was given. */
#undef realloc
#include "record_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../must.h"

#define TEXT(text) {(const uint8_t *)(text)}, {sizeof(text) - 1}
#define TEXTS(a, b, c) {(const uint8_t *)(a), (const uint8_t *)(b), (const uint8_t *)(c)}, \
    {sizeof(a) - 1, sizeof(b) - 1, sizeof(c) - 1}
#define LONG 5000
#define ASKED "<asked>" /* in the place of a piece that is the caller's */

static int short_of_memory;
void *told_realloc(void *data, size_t size);
void *told_realloc(void *data, size_t size) { return short_of_memory ? NULL : realloc(data, size); }

static char long_text[LONG + 1];

/* Appends a row of bytes, or of null. */
static void put(kw_binary *binary, int row, const char *text) {
    const size_t size = text ? strlen(text) : 0;
    int32_t *ends = (int32_t *)binary->spans.data;
    if (text) binary->validity.data[row >> 3] |= (uint8_t)(1 << (row & 7));
    else binary->nulls++;
    memcpy(binary->data.data + ends[row], text ? text : "", size);
    ends[row + 1] = ends[row] + (int32_t)size;
}

static void make(kw_binary *binary, const char *const *texts, int count) {
    binary->spans.data = calloc((size_t)count + 1, 4);
    binary->validity.data = calloc(8, 1);
    binary->data.data = calloc(2 * LONG, 1);
    MUST(binary->spans.data && binary->validity.data && binary->data.data);
    for (int row = 0; row < count; row++) put(binary, row, texts[row]);
}

static void drop(kw_binary *binary) {
    free(binary->spans.data);
    free(binary->validity.data);
    free(binary->data.data);
}

/* Writes one row: memory that is there for `room` bytes of it. */
static kw_text_status write(const kw_columns *columns, int row, const kw_text_piece *piece, int decoded, size_t room,
                            kw_buffer *out) {
    int at = 0;
    *out = (kw_buffer){malloc(room + 1), 1, room + 1};
    MUST(out->data);
    out->data[0] = '>'; /* of the row before */
    const kw_text_status status = kw_text_row(columns, row, piece, 1, decoded, &at, out);
    MUST(at == (status == KW_TEXT_DONE) && out->data[0] == '>');
    return status;
}

/* A piece writes this; with less memory than it takes, nothing. */
static void expect(const kw_columns *columns, int row, kw_text_piece piece, int decoded, const char *text) {
    const size_t size = strlen(text);
    const int asked = !strcmp(text, ASKED);
    kw_buffer out;
    MUST(write(columns, row, &piece, decoded, 0, &out) == (asked ? KW_TEXT_ASK : KW_TEXT_DONE));
    MUST(out.size == 1 + (asked ? 0 : size) && (asked || !memcmp(out.data + 1, text, size)));
    free(out.data);
    if (size > LONG) return;
    short_of_memory = 1;
    kw_text_status last = KW_TEXT_DONE;
    for (size_t room = 6 * size + 20; room-- > 0;) {
        const kw_text_status status = write(columns, row, &piece, decoded, room, &out);
        MUST(status == (asked ? KW_TEXT_ASK : KW_TEXT_DONE) || status == KW_TEXT_MEMORY);
        MUST(last == KW_TEXT_DONE || status == last || asked); /* less memory does not help */
        MUST(status != KW_TEXT_DONE || (out.size == 1 + size && !memcmp(out.data + 1, text, size)));
        MUST(status == KW_TEXT_DONE || out.size == 1);
        last = status;
        free(out.data);
    }
    short_of_memory = 0;
    MUST(asked || !size || last == KW_TEXT_MEMORY);
}

enum { ROWS = 5 };

static void pieces(void) {
    kw_columns columns = {.rows = ROWS};
    const char *const keys[ROWS] = {"k\x01\"\\\n\r\t\b\f\x7f", NULL, "", "abcdefgh", "\xc3\xa9"};
    const char *const values[ROWS] = {NULL, "v", long_text, "abcdefghijklmnopqrstuvw\xc3\xa9", ""};
    const char *const names[] = {"a", "\n", "\xc3\xa9", "n"}, *const contents[] = {"b", NULL, "x", "\xc3\xa9"};
    int32_t lists[ROWS + 1] = {0, 2, 3, 4, 4, 4};
    int64_t stamps[ROWS] = {1709164799999, -1, 253402300800000, 0, INT64_MIN};
    int8_t kinds[ROWS] = {-1, 0, 1, 2, -2};
    int16_t epochs[ROWS] = {INT16_MIN};
    int32_t sequences[ROWS] = {INT32_MAX};
    char long_json[LONG + 8], long_escaped[LONG + 8];
    snprintf(long_json, sizeof long_json, "\"\\n%s\"", long_text + 1);
    snprintf(long_escaped, sizeof long_escaped, "\\x0a%s", long_text + 1);
    make(&columns.key, keys, ROWS);
    make(&columns.value, values, ROWS);
    make(&columns.header_key, names, 4);
    make(&columns.header_value, contents, 4);
    columns.header_lists.data = (uint8_t *)lists;
    columns.fixed[KW_COL_TIMESTAMP].data = (uint8_t *)stamps;
    columns.fixed[KW_COL_TIMESTAMP_TYPE].data = (uint8_t *)kinds;
    columns.fixed[KW_COL_PRODUCER_EPOCH].data = (uint8_t *)epochs;
    columns.fixed[KW_COL_SEQUENCE].data = (uint8_t *)sequences;

    const struct {
        int row, decoded;
        const char *text;
        kw_text_piece piece;
    } cases[] = {
        {0, 0, "", {KW_TEXT_LITERAL, 0, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, "t-0 ", {KW_TEXT_LITERAL, 0, 0, 0, 0, 0, 1, TEXT("t-0 ")}},
        {0, 1, ASKED, {KW_TEXT_LITERAL, 0, 0, 0, 0, 0, 1, TEXT("t-0 ")}},
        {0, 1, "t-0 ", {KW_TEXT_LITERAL, 0, 0, 0, 0, 0, 0, TEXT("t-0 ")}},
        {0, 0, ASKED, {KW_TEXT_CALL, 0, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, "1709164799999", {KW_TEXT_NUMBER, KW_COL_TIMESTAMP, 0, 0, 0, 0, 0, TEXT("")}},
        {1, 0, "   -1", {KW_TEXT_NUMBER, KW_COL_TIMESTAMP, 5, 0, 0, 0, 0, TEXT("")}},
        {3, 0, "0", {KW_TEXT_NUMBER, KW_COL_TIMESTAMP, 1, 0, 0, 0, 0, TEXT("")}},
        {4, 0, "-9223372036854775808", {KW_TEXT_NUMBER, KW_COL_TIMESTAMP, 20, 0, 0, 0, 0, TEXT("")}},
        {4, 0, "-2", {KW_TEXT_NUMBER, KW_COL_TIMESTAMP_TYPE, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, "-32768", {KW_TEXT_NUMBER, KW_COL_PRODUCER_EPOCH, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, "2147483647", {KW_TEXT_NUMBER, KW_COL_SEQUENCE, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, "no", {KW_TEXT_NAME, KW_COL_TIMESTAMP_TYPE, 0, 0, 0, 0, 0, TEXTS("no", "create", "append")}},
        {1, 0, "create", {KW_TEXT_NAME, KW_COL_TIMESTAMP_TYPE, 0, 0, 0, 0, 0, TEXTS("no", "create", "append")}},
        {2, 0, "append", {KW_TEXT_NAME, KW_COL_TIMESTAMP_TYPE, 0, 0, 0, 0, 0, TEXTS("no", "create", "append")}},
        {3, 0, ASKED, {KW_TEXT_NAME, KW_COL_TIMESTAMP_TYPE, 0, 0, 0, 0, 0, TEXTS("no", "create", "append")}},
        {4, 0, ASKED, {KW_TEXT_NAME, KW_COL_TIMESTAMP_TYPE, 0, 0, 0, 0, 0, TEXTS("no", "create", "append")}},
        {0, 0, "2024-02-28 23:59:59.999", {KW_TEXT_TIME, KW_COL_TIMESTAMP, 23, 0, 0, 23, 0, TEXT("")}},
        {0, 0, "23:59:59  ", {KW_TEXT_TIME, KW_COL_TIMESTAMP, 10, 0, 11, 19, 0, TEXT("")}},
        {3, 0, "1970-01-01", {KW_TEXT_TIME, KW_COL_TIMESTAMP, 0, 0, 0, 10, 0, TEXT("")}},
        {1, 0, "-   ", {KW_TEXT_TIME, KW_COL_TIMESTAMP, 4, 0, 0, 23, 0, TEXT("")}},
        {2, 0, ASKED, {KW_TEXT_TIME, KW_COL_TIMESTAMP, 4, 0, 0, 23, 0, TEXT("")}},
        {0, 0, "k\\x01\"\\\\x0a\\x0d\\x09\\x08\\x0c\\x7f", {KW_TEXT_PLAIN, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, "k\\x\xe2\x80\xa6 ", {KW_TEXT_PLAIN, KW_COL_KEY, 5, 4, 0, 0, 0, TEXT("")}},
        {0, 0, "k\\x01\"\\\\x0a\\x0\xe2\x80\xa6", {KW_TEXT_PLAIN, KW_COL_KEY, 0, 15, 0, 0, 0, TEXT("")}},
        {1, 0, "null  ", {KW_TEXT_PLAIN, KW_COL_KEY, 6, 3, 0, 0, 0, TEXT("null")}},
        {1, 0, "null", {KW_TEXT_PLAIN, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("null")}},
        {2, 0, "  ", {KW_TEXT_PLAIN, KW_COL_KEY, 2, 3, 0, 0, 0, TEXT("null")}},
        {3, 0, "abcdefgh", {KW_TEXT_PLAIN, KW_COL_KEY, 8, 8, 0, 0, 0, TEXT("")}},
        {4, 0, ASKED, {KW_TEXT_PLAIN, KW_COL_KEY, 8, 8, 0, 0, 0, TEXT("")}},
        {3, 0, ASKED, {KW_TEXT_PLAIN, KW_COL_VALUE, 0, 6, 0, 0, 0, TEXT("")}},
        {3, 0, "abcd\xe2\x80\xa6", {KW_TEXT_PLAIN, KW_COL_VALUE, 0, 5, 0, 0, 0, TEXT("")}},
        {2, 0, long_escaped, {KW_TEXT_PLAIN, KW_COL_VALUE, 0, 0, 0, 0, 0, TEXT("")}},
        {2, 0, long_json, {KW_TEXT_JSON, KW_COL_VALUE, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, "\"k\\u0001\\\"\\\\\\n\\r\\t\\b\\f\\u007f\"", {KW_TEXT_JSON, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("")}},
        {1, 0, "null", {KW_TEXT_JSON, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("")}},
        {4, 0, ASKED, {KW_TEXT_JSON, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("")}},
        {4, 0, "\xc3\xa9", {KW_TEXT_RAW, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("NULL")}},
        {1, 0, "NULL", {KW_TEXT_RAW, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("NULL")}},
        {1, 0, " -1", {KW_TEXT_SIZE, KW_COL_KEY, 3, 0, 0, 0, 0, TEXT("")}},
        {2, 0, "5000", {KW_TEXT_SIZE, KW_COL_VALUE, 3, 0, 0, 0, 0, TEXT("")}},
        {1, 0, "\xff\xff\xff\xff", {KW_TEXT_SIZE_BINARY, KW_COL_KEY, 0, 0, 0, 0, 0, TEXT("")}},
        {0, 0, " | a=b, \\x0a=null", {KW_TEXT_HEADERS, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXTS(" | ", ", ", "null")}},
        {1, 0, ASKED, {KW_TEXT_HEADERS, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXTS(" | ", ", ", "null")}},
        {2, 0, ASKED, {KW_TEXT_HEADERS_JSON, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXT("")}},
        {3, 0, "", {KW_TEXT_HEADERS, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXTS(" | ", ", ", "null")}},
        {0, 0, "a=b,\n=NULL", {KW_TEXT_HEADERS_RAW, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXTS("", ",", "NULL")}},
        {1, 0, "\xc3\xa9=x", {KW_TEXT_HEADERS_RAW, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXTS("", ",", "NULL")}},
        {0, 0, "[[\"a\", \"b\"], [\"\\n\", null]]", {KW_TEXT_HEADERS_JSON, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXT("")}},
        {3, 0, "[]", {KW_TEXT_HEADERS_JSON, KW_COL_HEADERS, 0, 0, 0, 0, 0, TEXT("")}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(&columns, cases[i].row, cases[i].piece, cases[i].decoded, cases[i].text);
    drop(&columns.key);
    drop(&columns.value);
    drop(&columns.header_key);
    drop(&columns.header_value);
}

static void room(void) {
    kw_buffer out = {0};
    MUST(!kw_text_reserve(&out, SIZE_MAX / 4 + 1) && !out.data);
    MUST(kw_text_reserve(&out, 100) && out.room == 100);
    out.size = 100;
    MUST(kw_text_reserve(&out, 1) && out.room == 200); /* twice as much */
    MUST(kw_text_reserve(&out, 101) && out.room == 400 && kw_text_reserve(&out, 700) && out.room == 800);
    free(out.data);
}

int main(void) {
    memset(long_text, 'x', LONG);
    long_text[0] = '\n';
    room();
    pieces();
    puts("sound");
    return 0;
}
