/* Compares every variant of kw_crc32c that this processor has with the definition, bit by bit; prints their names. */
#include "crc32c.h"

#include <stdio.h>

static uint8_t data[70000];

static uint32_t definition(uint32_t value, const uint8_t *at, size_t size) {
    uint32_t state = ~value;
    while (size--) {
        state ^= *at++;
        for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (0x82f63b78u & (0u - (state & 1)));
    }
    return ~state;
}

int main(void) {
    uint32_t x = 1, wrong = 0;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)((x = x * 1103515245u + 12345u) >> 16);
    const kw_crc32c_variant *v;
    for (size_t i = 0; (v = kw_crc32c_usable(i)); i++) {
        for (size_t size = 0; size < sizeof data - 64; size += size < 1200 ? 1 : 1 + size / 7) {
            const uint32_t value = (uint32_t)size * 2654435761u;
            const uint8_t *at = data + size % 64;
            const uint32_t expected = definition(value, at, size);
            if (~v->run(~value, at, size) != expected || kw_crc32c(value, at, size) != expected) {
                fprintf(stderr, "%s is wrong for %zu bytes\n", v->name, size);
                wrong = 1;
            }
        }
        printf("%s\n", v->name);
    }
    return (int)wrong;
}
