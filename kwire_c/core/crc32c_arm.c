/* CRC-32C on 64-bit ARM under Linux: three streams of the crc32cx instruction, joined by PMULL. */
#include "crc32c.h"

#if defined(__aarch64__) && defined(__linux__)

#include <string.h>
#include <sys/auxv.h>

#include "crc32c_constants.h"

#define INLINE static inline __attribute__((always_inline))

typedef struct {
    uint32_t rounds;
    uint32_t move[3];
} join;

INLINE uint64_t load(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* Instructions in assembly: compilers differ in how a function enables them, assemblers do not. */
INLINE uint32_t step(uint32_t state, uint64_t v) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(v));
    return state;
}

INLINE uint32_t step4(uint32_t state, uint32_t v) {
    __asm__(".arch_extension crc\n\tcrc32cw %w0, %w0, %w1" : "+r"(state) : "r"(v));
    return state;
}

INLINE uint32_t step1(uint32_t state, uint32_t v) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(v));
    return state;
}

/* A state moved over bytes, before its reduction by step(0, ...). */
INLINE uint64_t moved(uint32_t state, uint32_t by) {
    uint64_t product;
    __asm__(".arch_extension crypto\n\t"
            "fmov d30, %x1\n\tfmov d31, %x2\n\tpmull v30.1q, v30.1d, v31.1d\n\tfmov %x0, d30"
            : "=r"(product)
            : "r"((uint64_t)state), "r"((uint64_t)by)
            : "v30", "v31");
    return product;
}

static uint32_t by_crc(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8) state = step(state, load(data));
    if (size & 4) {
        uint32_t v;
        memcpy(&v, data, 4);
        state = step4(state, v);
        data += 4;
    }
    for (size &= 3; size; size--) state = step1(state, *data++);
    return state;
}

static uint32_t by_pmull(uint32_t state, const uint8_t *data, size_t size) {
    static const join joins[] = {KW_JOINS_PMULL};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        const size_t stride = 24u * joins[i].rounds, length = 3 * stride;
        for (; size >= length; size -= length) {
            const uint8_t *end = data + stride;
            uint32_t b = 0, c = 0;
            for (; data < end; data += 8) {
                state = step(state, load(data));
                b = step(b, load(data + stride));
                c = step(c, load(data + 2 * stride));
            }
            state = step(0, moved(state, joins[i].move[1]) ^ moved(b, joins[i].move[0])) ^ c;
            data += 2 * stride;
        }
    }
    return by_crc(state, data, size);
}

/* Bits of AT_HWCAP, with the kernel's names; old C libraries lack them. */
static int has_crc(void) { return getauxval(AT_HWCAP) >> 7 & 1; }
static int has_pmull(void) { return has_crc() && getauxval(AT_HWCAP) >> 4 & 1; }

const kw_crc32c_variant kw_crc32c_arm[] = {
    {"armv8-crc-pmull", by_pmull, has_pmull},
    {"armv8-crc", by_crc, has_crc},
    {0, 0, 0},
};

#endif
