/* Rows of columns as text: see record_text.h. */
#include "record_text.h"

#include <stdlib.h>
#include <string.h>

#include "cursor.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define DAY_MS ((int64_t)86400000)
#define MOST_MS ((int64_t)253402300800000) /* the year 10000 */

/* How a byte is written in text and in JSON: as it is, escaped, or (not ASCII) by the caller. */
enum { AS_IS = 0, CONTROL, QUOTED, FOREIGN };
#define R4(x) x, x, x, x
#define R16(x) R4(x), R4(x), R4(x), R4(x)
#define R64(x) R16(x), R16(x), R16(x), R16(x)
static const uint8_t KINDS[256] = {
    R16(CONTROL), R16(CONTROL),
    0, 0, QUOTED, 0, R4(0), R4(0), R4(0), R16(0),
    R16(0), 0, 0, 0, 0, R4(0), R4(0), QUOTED, 0, 0, 0,
    R16(0), R4(0), R4(0), R4(0), 0, 0, 0, CONTROL,
    R64(FOREIGN), R64(FOREIGN),
};

static const char HEX[] = "0123456789abcdef";

static int is_ascii(const uint8_t *data, uint32_t size) {
    uint64_t all = 0, word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        all |= word;
    }
    uint8_t rest = 0;
    while (size--) rest |= *data++;
    return !(all & 0x8080808080808080u) && !(rest & 0x80);
}

int kw_text_reserve(kw_buffer *out, size_t more) {
    if (more <= out->room - out->size) return 1;
    if (more > SIZE_MAX / 4) return 0;
    size_t room = out->size + more > 2 * out->room ? out->size + more : 2 * out->room;
    uint8_t *grown = realloc(out->data, room);
    if (!grown) return 0;
    out->data = grown;
    out->room = room;
    return 1;
}

static uint8_t *append(uint8_t *to, const void *data, size_t size) {
    if (size) memcpy(to, data, size);
    return to + size;
}

static int add(kw_buffer *out, const void *data, size_t size) {
    if (!kw_text_reserve(out, size)) return 0;
    append(out->data + out->size, data, size);
    out->size += size;
    return 1;
}

static int add_spaces(kw_buffer *out, size_t count) {
    if (!kw_text_reserve(out, count)) return 0;
    memset(out->data + out->size, ' ', count);
    out->size += count;
    return 1;
}

static int add_number(kw_buffer *out, int64_t value, uint32_t width) {
    char digits[20], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    size_t size = (size_t)(digits + sizeof digits - at), signs = size + (value < 0);
    if (width > signs && !add_spaces(out, width - signs)) return 0;
    return (value >= 0 || add(out, "-", 1)) && add(out, at, size);
}

static void two(char *at, int value) {
    at[0] = (char)('0' + value / 10 % 10);
    at[1] = (char)('0' + value % 10);
}

/* 2023-11-14 22:13:20.000 of milliseconds in [0, MOST_MS). */
static void time_text(int64_t ms, char text[23]) {
    int64_t days = ms / DAY_MS + 719468; /* since the first of March of the year 0; eras have 400 years */
    int left = (int)(ms % DAY_MS);
    int64_t era = days / 146097;
    int of_era = (int)(days - era * 146097);
    int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int of_year = of_era - (365 * year + year / 4 - year / 100);
    int month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    int full = (int)(era * 400) + year + (month <= 2);
    memcpy(text, "0000-00-00 00:00:00.000", 23);
    two(text, full / 100), two(text + 2, full % 100), two(text + 5, month), two(text + 8, day);
    two(text + 11, left / 3600000), two(text + 14, left / 60000 % 60), two(text + 17, left / 1000 % 60);
    text[20] = (char)('0' + left % 1000 / 100);
    two(text + 21, left % 100);
}

/* Makes room for the text of these bytes, each of at most 6 signs; returns its place, NULL if out of memory. */
static uint8_t *room_for(kw_buffer *out, const uint8_t *data, uint32_t size) {
    size_t need = 6 * (size_t)size;
    if (size > 1 << 12) { /* exactly: a value may have many megabytes */
        need = size;
        for (uint32_t i = 0; i < size; i++) need += KINDS[data[i]] ? 5 : 0;
    }
    return kw_text_reserve(out, need + 2) ? out->data + out->size : NULL;
}

/* ASCII with control characters escaped; at most `limit` signs. Returns the number of signs, -1 if out of memory. */
static int64_t add_plain(kw_buffer *out, const uint8_t *data, uint32_t size, uint32_t limit) {
    uint32_t taken = limit && size > limit ? limit + 1 : size; /* each byte is one sign at least */
    uint8_t *begin = room_for(out, data, taken), *to = begin;
    if (!to) return -1;
    for (uint32_t i = 0; i < taken; i++) {
        if (KINDS[data[i]] != CONTROL) {
            *to++ = data[i];
            continue;
        }
        to = append(to, "\\x", 2);
        *to++ = (uint8_t)HEX[data[i] >> 4];
        *to++ = (uint8_t)HEX[data[i] & 15];
    }
    int64_t signs = to - begin;
    if (limit && signs > limit) {
        append(begin + limit - 1, ELLIPSIS, 3); /* there is room for 2 bytes more than the signs */
        out->size += limit + 2;
        return limit;
    }
    out->size += (size_t)signs;
    return signs;
}

/* An ASCII string as JSON. */
static int add_json(kw_buffer *out, const uint8_t *data, uint32_t size) {
    uint8_t *begin = room_for(out, data, size), *to = begin;
    if (!to) return 0;
    *to++ = '"';
    for (uint32_t i = 0; i < size; i++) {
        uint8_t sign = data[i];
        if (!KINDS[sign]) {
            *to++ = sign;
            continue;
        }
        *to++ = '\\';
        switch (sign) {
        case '"': case '\\': *to++ = sign; break;
        case '\n': *to++ = 'n'; break;
        case '\r': *to++ = 'r'; break;
        case '\t': *to++ = 't'; break;
        case '\b': *to++ = 'b'; break;
        case '\f': *to++ = 'f'; break;
        default:
            to = append(to, "u00", 3);
            *to++ = (uint8_t)HEX[sign >> 4];
            *to++ = (uint8_t)HEX[sign & 15];
        }
    }
    *to++ = '"';
    out->size += (size_t)(to - begin);
    return 1;
}

int64_t kw_text_number(const kw_columns *columns, int column, int64_t row) {
    const uint8_t *data = columns->fixed[column].data;
    switch (column) {
    case KW_COL_TIMESTAMP_TYPE: case KW_COL_CODEC: case KW_COL_IS_CONTROL: return ((const int8_t *)data)[row];
    case KW_COL_PRODUCER_EPOCH: return ((const int16_t *)data)[row];
    case KW_COL_SEQUENCE: case KW_COL_LEADER_EPOCH: case KW_COL_SOURCE: return ((const int32_t *)data)[row];
    default: return ((const int64_t *)data)[row];
    }
}

const uint8_t *kw_text_bytes(const kw_binary *binary, int64_t row, uint32_t *size) {
    static const uint8_t none[1] = {0};
    const int32_t *span = (const int32_t *)binary->spans.data + row;
    *size = 0;
    if (binary->nulls && !(binary->validity.data[row >> 3] >> (row & 7) & 1)) return NULL;
    *size = (uint32_t)(span[1] - span[0]);
    return *size ? binary->data.data + span[0] : none;
}

static kw_text_status done(int ok) { return ok ? KW_TEXT_DONE : KW_TEXT_MEMORY; }

static kw_text_status write_time(const kw_text_piece *piece, int64_t ms, kw_buffer *out) {
    char text[23];
    uint32_t size = 1;
    if (ms >= MOST_MS) return KW_TEXT_ASK;
    if (ms < 0) {
        if (!add(out, "-", 1)) return KW_TEXT_MEMORY;
    } else {
        time_text(ms, text);
        size = (uint32_t)(piece->to - piece->from);
        if (!add(out, text + piece->from, size)) return KW_TEXT_MEMORY;
    }
    return done(size >= piece->width || add_spaces(out, piece->width - size));
}

static kw_text_status write_content(const kw_text_piece *piece, const uint8_t *data, uint32_t size, kw_buffer *out) {
    int64_t signs;
    switch (piece->kind) {
    case KW_TEXT_SIZE:
        return done(add_number(out, data ? (int64_t)size : -1, piece->width));
    case KW_TEXT_SIZE_BINARY: {
        uint8_t binary[4];
        kw_store32(binary, data ? size : UINT32_MAX);
        return done(add(out, binary, 4));
    }
    case KW_TEXT_RAW:
        return done(data ? add(out, data, size) : add(out, piece->texts[0], piece->sizes[0]));
    case KW_TEXT_JSON:
        if (!data) return done(add(out, "null", 4));
        return is_ascii(data, size) ? done(add_json(out, data, size)) : KW_TEXT_ASK;
    default:
        if (!data) {
            signs = piece->sizes[0];
            if (!add(out, piece->texts[0], piece->sizes[0])) return KW_TEXT_MEMORY;
        } else {
            uint32_t looked = piece->limit && piece->limit < size / 4 ? 4 * piece->limit : size;
            if (!is_ascii(data, looked)) return KW_TEXT_ASK;
            signs = add_plain(out, data, size, piece->limit);
        }
        if (signs < 0) return KW_TEXT_MEMORY;
        return done(signs >= piece->width || add_spaces(out, piece->width - (size_t)signs));
    }
}

static kw_text_status write_headers(const kw_columns *columns, int64_t row, const kw_text_piece *piece,
                                    kw_buffer *out) {
    const int32_t *lists = (const int32_t *)columns->header_lists.data;
    int is_json = piece->kind == KW_TEXT_HEADERS_JSON, is_raw = piece->kind == KW_TEXT_HEADERS_RAW;
    if (is_json && !add(out, "[", 1)) return KW_TEXT_MEMORY;
    for (int64_t i = lists[row]; i < lists[row + 1]; i++) {
        uint32_t name_size, size;
        const uint8_t *name = kw_text_bytes(&columns->header_key, i, &name_size);
        const uint8_t *data = kw_text_bytes(&columns->header_value, i, &size);
        int ok, later = i > lists[row];
        if (!is_raw && !(is_ascii(name, name_size) && (!data || is_ascii(data, size)))) return KW_TEXT_ASK;
        if (is_json) {
            ok = add(out, ", [", later ? 3 : 0) && (later || add(out, "[", 1)) && add_json(out, name, name_size) &&
                 add(out, ", ", 2) && (data ? add_json(out, data, size) : add(out, "null", 4)) && add(out, "]", 1);
        } else {
            ok = add(out, piece->texts[later], piece->sizes[later]) &&
                 (is_raw ? add(out, name, name_size) : add_plain(out, name, name_size, 0) >= 0) && add(out, "=", 1);
            if (ok && !data)
                ok = add(out, piece->texts[2], piece->sizes[2]);
            else if (ok)
                ok = is_raw ? add(out, data, size) : add_plain(out, data, size, 0) >= 0;
        }
        if (!ok) return KW_TEXT_MEMORY;
    }
    return done(!is_json || add(out, "]", 1));
}

static kw_text_status write_piece(const kw_columns *columns, int64_t row, const kw_text_piece *piece, kw_buffer *out) {
    const uint8_t *data;
    uint32_t size;
    int number;
    switch (piece->kind) {
    case KW_TEXT_LITERAL: return done(add(out, piece->texts[0], piece->sizes[0]));
    case KW_TEXT_NUMBER: return done(add_number(out, kw_text_number(columns, piece->column, row), piece->width));
    case KW_TEXT_TIME: return write_time(piece, kw_text_number(columns, piece->column, row), out);
    case KW_TEXT_NAME:
        number = (int)kw_text_number(columns, piece->column, row) + 1;
        if (number < 0 || number > 2) return KW_TEXT_ASK;
        return done(add(out, piece->texts[number], piece->sizes[number]));
    case KW_TEXT_HEADERS: case KW_TEXT_HEADERS_RAW: case KW_TEXT_HEADERS_JSON:
        return write_headers(columns, row, piece, out);
    case KW_TEXT_PLAIN: case KW_TEXT_JSON: case KW_TEXT_RAW: case KW_TEXT_SIZE: case KW_TEXT_SIZE_BINARY:
        data = kw_text_bytes(piece->column == KW_COL_KEY ? &columns->key : &columns->value, row, &size);
        return write_content(piece, data, size, out);
    default: return KW_TEXT_ASK;
    }
}

kw_text_status kw_text_row(const kw_columns *columns, int64_t row, const kw_text_piece *pieces, int count, int decoded,
                           int *at, kw_buffer *out) {
    for (; *at < count; ++*at) {
        size_t before = out->size;
        kw_text_status status = KW_TEXT_ASK;
        if (!(decoded && pieces[*at].given)) status = write_piece(columns, row, &pieces[*at], out);
        if (status != KW_TEXT_DONE) {
            out->size = before;
            return status;
        }
    }
    return KW_TEXT_DONE;
}
