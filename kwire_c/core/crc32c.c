/* CRC-32C: the table variant, and the choice of a variant at the first checksum. CRC-32, by a table. */
#include "crc32c.h"

#include <stdatomic.h>
#include <string.h>

#include "crc32c_constants.h"

static inline uint32_t sliced(const uint32_t tables[8][256], uint32_t state, const uint8_t *data, size_t size) {
    const uint8_t *end = data + size;
    for (; end - data >= 8; data += 8) {
        uint64_t v;
        memcpy(&v, data, 8);
        v ^= state;
        state = tables[7][v & 0xff] ^ tables[6][v >> 8 & 0xff] ^ tables[5][v >> 16 & 0xff] ^
                tables[4][v >> 24 & 0xff] ^ tables[3][v >> 32 & 0xff] ^ tables[2][v >> 40 & 0xff] ^
                tables[1][v >> 48 & 0xff] ^ tables[0][v >> 56];
    }
    for (; data < end; data++) state = state >> 8 ^ tables[0][(state ^ *data) & 0xff];
    return state;
}

static uint32_t by_table(uint32_t state, const uint8_t *data, size_t size) {
    return sliced(kw_crc32c_table, state, data, size);
}

uint32_t kw_crc32(uint32_t value, const uint8_t *data, size_t size) {
    return ~sliced(kw_crc32_table, ~value, data, size);
}

static const kw_crc32c_variant table = {"table", by_table, 0 /* always usable */};

static const kw_crc32c_variant *built(void) {
#if defined(__x86_64__)
    return kw_crc32c_x86;
#elif defined(__aarch64__) && defined(__linux__)
    return kw_crc32c_arm;
#else
    static const kw_crc32c_variant none[] = {{0, 0, 0}};
    return none;
#endif
}

/* One bit per variant, set once: CPUID is slow on a virtual machine. */
static unsigned usable(void) {
    static _Atomic unsigned known;
    unsigned bits = atomic_load_explicit(&known, memory_order_relaxed);
    if (!bits) {
        bits = 1u << 31;
        for (unsigned i = 0; built()[i].name; i++) bits |= built()[i].usable() ? 1u << i : 0;
        atomic_store_explicit(&known, bits, memory_order_relaxed);
    }
    return bits;
}

const kw_crc32c_variant *kw_crc32c_usable(size_t index) {
    const unsigned bits = usable();
    for (unsigned i = 0; built()[i].name; i++)
        if (bits >> i & 1 && index-- == 0) return &built()[i];
    return index == 0 ? &table : 0;
}

typedef uint32_t (*runner)(uint32_t, const uint8_t *, size_t);

static uint32_t choose(uint32_t state, const uint8_t *data, size_t size);

/* Threads that run this at the same time all store the same pointer. */
static _Atomic(runner) chosen = choose;

static uint32_t choose(uint32_t state, const uint8_t *data, size_t size) {
    runner run = kw_crc32c_usable(0)->run;
    atomic_store_explicit(&chosen, run, memory_order_relaxed);
    return run(state, data, size);
}

uint32_t kw_crc32c(uint32_t value, const uint8_t *data, size_t size) {
    return ~atomic_load_explicit(&chosen, memory_order_relaxed)(~value, data, size);
}
