/* CRC-32C on x86-64: the crc32 instruction, joined with carry-less multiplication, 128 or 512 bits wide. */
#include "crc32c.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#include "crc32c_constants.h"

#ifdef __clang__ /* for clang the instruction is a feature of its own, for gcc it is part of SSE 4.2 */
#define CRC "sse4.2,crc32"
#else
#define CRC "sse4.2"
#endif
#define SSE42 __attribute__((target(CRC)))
#define CLMUL __attribute__((target(CRC ",pclmul")))
#define WIDE __attribute__((target(CRC ",pclmul,avx512f,avx512vl,avx512dq,vpclmulqdq")))
#define ALIGN_FROM 4096
#define INLINE static inline __attribute__((always_inline))

/* A joined kernel's block: rounds, and the multipliers that move a checksum over one, two and three streams. */
typedef struct {
    uint32_t rounds;
    uint32_t move[3];
} join;

INLINE uint64_t load(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* ---- the plain instruction: 8 bytes in 3 cycles ---- */

SSE42 INLINE uint32_t step(uint32_t state, uint64_t v) { return (uint32_t)_mm_crc32_u64(state, v); }

SSE42 INLINE uint32_t serial(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8) state = step(state, load(data));
    if (size & 4) {
        uint32_t v;
        memcpy(&v, data, 4);
        state = _mm_crc32_u32(state, v);
        data += 4;
    }
    if (size & 2) {
        uint16_t v;
        memcpy(&v, data, 2);
        state = _mm_crc32_u16(state, v);
        data += 2;
    }
    if (size & 1) state = _mm_crc32_u8(state, *data);
    return state;
}

SSE42 static uint32_t by_sse42(uint32_t state, const uint8_t *data, size_t size) { return serial(state, data, size); }

/* ---- 128-bit lanes: fold by multiplication, interleaved with three streams of the instruction ---- */

CLMUL INLINE __m128i pair(uint32_t low, uint32_t high) { return _mm_set_epi64x(high, low); }

CLMUL INLINE __m128i fetch(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }

CLMUL INLINE __m128i fold(__m128i x, __m128i by, __m128i next) {
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11)), next);
}

/* The state after the 16 bytes of a lane. */
CLMUL INLINE uint32_t reduce(__m128i x) {
    return step(step(0, (uint64_t)_mm_cvtsi128_si64(x)), (uint64_t)_mm_extract_epi64(x, 1));
}

CLMUL INLINE uint32_t reduce4(__m128i a, __m128i b, __m128i c, __m128i d) {
    const __m128i by16 = pair(KW_FOLD_16), by32 = pair(KW_FOLD_32);
    return reduce(fold(fold(a, by16, b), by32, fold(c, by16, d)));
}

/* A state moved over bytes, before its reduction by step(0, ...). */
CLMUL INLINE uint64_t moved(uint32_t state, uint32_t by) {
    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)state), _mm_cvtsi32_si128((int)by), 0x00));
}

CLMUL INLINE uint32_t joined(uint32_t first, uint32_t a, uint32_t b, uint32_t c, const join *j) {
    return step(0, moved(first, j->move[2]) ^ moved(a, j->move[1]) ^ moved(b, j->move[0])) ^ c;
}

/* One round of the three streams, each 8 * (rounds * 3) bytes long. */
#define STREAMS(at, stride)                                \
    do {                                                   \
        a = step(a, load(at));                             \
        b = step(b, load(at + stride));                    \
        c = step(c, load(at + 2 * stride));                \
        a = step(a, load(at + 8));                         \
        b = step(b, load(at + stride + 8));                \
        c = step(c, load(at + 2 * stride + 8));            \
        a = step(a, load(at + 16));                        \
        b = step(b, load(at + stride + 16));               \
        c = step(c, load(at + 2 * stride + 16));           \
        at += 24;                                          \
    } while (0)

CLMUL INLINE uint32_t block128(uint32_t state, const uint8_t *data, const join *j) {
    const __m128i by64 = pair(KW_FOLD_64);
    const size_t stride = 24u * j->rounds;
    const uint8_t *at = data + 64u * j->rounds;
    uint32_t a = 0, b = 0, c = 0;
    __m128i x0 = _mm_xor_si128(fetch(data), _mm_cvtsi32_si128((int)state));
    __m128i x1 = fetch(data + 16), x2 = fetch(data + 32), x3 = fetch(data + 48);
    STREAMS(at, stride);
    for (uint32_t round = 1; round < j->rounds; round++) {
        data += 64;
        x0 = fold(x0, by64, fetch(data));
        x1 = fold(x1, by64, fetch(data + 16));
        x2 = fold(x2, by64, fetch(data + 32));
        x3 = fold(x3, by64, fetch(data + 48));
        STREAMS(at, stride);
    }
    return joined(reduce4(x0, x1, x2, x3), a, b, c, j);
}

/* From 128 bytes on, for short input; up to 63 bytes at the end use the plain instruction. */
CLMUL INLINE uint32_t short128(uint32_t state, const uint8_t *data, size_t size) {
    if (size >= 128) {
        const __m128i by64 = pair(KW_FOLD_64);
        __m128i x0 = _mm_xor_si128(fetch(data), _mm_cvtsi32_si128((int)state));
        __m128i x1 = fetch(data + 16), x2 = fetch(data + 32), x3 = fetch(data + 48);
        for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
            x0 = fold(x0, by64, fetch(data));
            x1 = fold(x1, by64, fetch(data + 16));
            x2 = fold(x2, by64, fetch(data + 32));
            x3 = fold(x3, by64, fetch(data + 48));
        }
        state = reduce4(x0, x1, x2, x3);
    }
    return serial(state, data, size);
}

CLMUL static uint32_t by_pclmul(uint32_t state, const uint8_t *data, size_t size) {
    static const join joins[] = {KW_JOINS_PCLMUL};
    if (size < 128) return serial(state, data, size);
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        const size_t length = 136u * joins[i].rounds;
        for (; size >= length; data += length, size -= length) state = block128(state, data, &joins[i]);
    }
    return short128(state, data, size);
}

/* ---- 512-bit lanes ---- */

WIDE INLINE __m512i fetch512(const uint8_t *p) { return _mm512_loadu_si512((const void *)p); }

WIDE INLINE __m512i fold512(__m512i x, __m512i by, __m512i next) {
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00), _mm512_clmulepi64_epi128(x, by, 0x11),
                                     next, 0x96);
}

WIDE INLINE __m512i pair512(uint32_t low, uint32_t high) { return _mm512_broadcast_i32x4(_mm_set_epi64x(high, low)); }

/* The state after the 64 bytes of a register: its first three lanes are moved onto the last. */
WIDE INLINE uint32_t reduce512(__m512i x) {
    const __m512i by = _mm512_inserti32x4(
        _mm512_inserti32x4(_mm512_inserti32x4(_mm512_setzero_si512(), pair(KW_FOLD_48), 0), pair(KW_FOLD_32), 1),
        pair(KW_FOLD_16), 2);
    const __m512i y =
        _mm512_xor_si512(_mm512_clmulepi64_epi128(x, by, 0x00), _mm512_clmulepi64_epi128(x, by, 0x11));
    const __m128i last = _mm512_extracti32x4_epi32(x, 3);
    const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(y), _mm512_extracti64x4_epi64(y, 1));
    return reduce(_mm_ternarylogic_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1), last, 0x96));
}

WIDE INLINE __m512i join512(__m512i x0, __m512i x1, __m512i x2, __m512i x3) {
    const __m512i by64 = pair512(KW_FOLD_64), by128 = pair512(KW_FOLD_128);
    return fold512(fold512(x0, by64, x1), by128, fold512(x2, by64, x3));
}

WIDE static uint32_t by_avx512(uint32_t state, const uint8_t *data, size_t size) {
    if (size < 256) return short128(state, data, size);
    if (size >= ALIGN_FROM) { /* beyond the L1 cache, loads across cache lines are slow */
        const size_t head = (0 - (uintptr_t)data) & 63;
        state = serial(state, data, head);
        data += head;
        size -= head;
    }
    const __m512i by64 = pair512(KW_FOLD_64), by256 = pair512(KW_FOLD_256);
    __m512i x0 = _mm512_xor_si512(fetch512(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
    __m512i x1 = fetch512(data + 64), x2 = fetch512(data + 128), x3 = fetch512(data + 192);
    for (data += 256, size -= 256; size >= 256; data += 256, size -= 256) {
        x0 = fold512(x0, by256, fetch512(data));
        x1 = fold512(x1, by256, fetch512(data + 64));
        x2 = fold512(x2, by256, fetch512(data + 128));
        x3 = fold512(x3, by256, fetch512(data + 192));
    }
    x0 = join512(x0, x1, x2, x3);
    for (; size >= 64; data += 64, size -= 64) x0 = fold512(x0, by64, fetch512(data));
    return serial(reduce512(x0), data, size);
}

/* ---- CPU detection; __builtin_cpu_supports needs a run-time library that not every compiler has ---- */

static uint64_t enabled_by_system(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static int has_sse42(void) {
    uint32_t a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & 1u << 20);
}

static int has_pclmul(void) {
    uint32_t a, b, c, d;
    return has_sse42() && __get_cpuid(1, &a, &b, &c, &d) && (c & 1u << 1);
}

static int has_avx512(void) {
    uint32_t a, b, c, d;
    if (!has_pclmul() || !__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return 0; /* OSXSAVE */
    if ((enabled_by_system() & 0xe6) != 0xe6) return 0;                               /* XMM YMM ZMM and masks */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    return (b & 1u << 16) && (b & 1u << 17) && (b & 1u << 31) && (c & 1u << 10); /* F DQ VL VPCLMULQDQ */
}

const kw_crc32c_variant kw_crc32c_x86[] = {
    {"avx512-vpclmulqdq", by_avx512, has_avx512},
    {"sse4.2-pclmul", by_pclmul, has_pclmul},
    {"sse4.2", by_sse42, has_sse42},
    {0, 0, 0},
};

#endif
