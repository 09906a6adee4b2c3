/* UTF-8 as Java reads it: see utf8.h. The cases are those of java.lang.String.decodeUTF8_UTF16. */
#include "utf8.h"

#include <string.h>

static inline int follows(uint8_t byte) { return (byte & 0xc0) == 0x80; }

/* The size of the next character, or (*good = 0) of the bytes that become one U+FFFD. */
static size_t step(const uint8_t *p, size_t left, int *good) {
    const uint8_t lead = p[0];
    *good = 0;
    if (lead < 0xc2 || lead > 0xf4) return 1;
    if (lead < 0xe0) {
        *good = left > 1 && follows(p[1]);
        return *good ? 2 : 1;
    }
    if (lead < 0xf0) {
        if (left < 2 || !follows(p[1]) || (lead == 0xe0 && p[1] < 0xa0)) return 1;
        if (left < 3 || !follows(p[2])) return 2;
        *good = !(lead == 0xed && p[1] >= 0xa0); /* a surrogate: one U+FFFD for its three bytes */
        return 3;
    }
    if (left < 2 || !follows(p[1]) || (lead == 0xf0 && p[1] < 0x90) || (lead == 0xf4 && p[1] > 0x8f)) return 1;
    if (left < 3 || !follows(p[2])) return 2;
    if (left < 4 || !follows(p[3])) return 3;
    *good = 1;
    return 4;
}

size_t kw_utf8_clean(const uint8_t *data, size_t size, uint8_t *out) {
    const uint8_t *end = data + size;
    uint8_t *to = out;
    while (data < end) {
        int good;
        size_t left = (size_t)(end - data);
        uint8_t character[4] = {*data}; /* a copy: the input may be mutable */
        if (character[0] < 0x80) {
            *to++ = character[0];
            data++;
            continue;
        }
        memcpy(character + 1, data + 1, left < 4 ? left - 1 : 3);
        size_t bytes = step(character, left, &good);
        if (good) {
            memcpy(to, character, bytes);
            to += bytes;
        } else {
            memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
        }
        data += bytes;
    }
    return (size_t)(to - out);
}
