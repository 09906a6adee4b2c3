/* See containers.h. */
#include "containers.h"

static inline uint32_t little16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t little24(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16; }
static inline uint32_t little32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t little64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }

/* ---- XXH32, seed 0 ---- */

#define P1 2654435761u
#define P2 2246822519u
#define P3 3266489917u
#define P4 668265263u
#define P5 374761393u

static inline uint32_t rotate(uint32_t v, int bits) { return v << bits | v >> (32 - bits); }

uint32_t kw_xxh32(const uint8_t *data, size_t size) {
    const uint8_t *p = data;
    size_t left = size;
    uint32_t h;
    if (size >= 16) {
        uint32_t a = P1 + P2, b = P2, c = 0, d = 0u - P1;
        for (; left >= 16; left -= 16, p += 16) {
            a = rotate(a + little32(p) * P2, 13) * P1;
            b = rotate(b + little32(p + 4) * P2, 13) * P1;
            c = rotate(c + little32(p + 8) * P2, 13) * P1;
            d = rotate(d + little32(p + 12) * P2, 13) * P1;
        }
        h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    } else {
        h = P5;
    }
    h += (uint32_t)size;
    for (; left >= 4; left -= 4, p += 4) h = rotate(h + little32(p) * P3, 17) * P4;
    for (; left; left--, p++) h = rotate(h + *p * P5, 11) * P1;
    h = (h ^ h >> 15) * P2;
    h = (h ^ h >> 13) * P3;
    return h ^ h >> 16;
}

/* ---- lz4 ---- */

kw_container_status kw_lz4_open(kw_cursor *c, int any_checksum, kw_lz4_frame *frame) {
    if (!kw_has(c, 6)) return KW_CONTAINER_SHORT;
    const uint8_t *p = c->at;
    if (little32(p) != 0x184D2204u) return KW_CONTAINER_MAGIC;
    int flags = p[4], size = p[5];
    if (flags & 3) return KW_CONTAINER_RESERVED; /* bit 0: a dictionary, which Kafka treats as reserved */
    if (flags >> 6 != 1) return KW_CONTAINER_VERSION;
    if (!(flags & 0x20)) return KW_CONTAINER_DEPENDENT;
    if (size & 0x8f) return KW_CONTAINER_RESERVED;
    if (size < 0x40) return KW_CONTAINER_BLOCK_SIZE;
    int descriptor = flags & 8 ? 10 : 2; /* with the content size, which is ignored */
    if (!kw_has(c, 4 + descriptor + 1)) return KW_CONTAINER_SHORT;
    if (!any_checksum && p[4 + descriptor] != (kw_xxh32(p + 4, (size_t)descriptor) >> 8 & 0xff))
        return KW_CONTAINER_HEADER_CHECKSUM;
    frame->max_block = 1u << (2 * (size >> 4) + 8);
    frame->block_checksums = flags >> 4 & 1;
    frame->content_checksum = flags >> 2 & 1;
    c->at = p + 4 + descriptor + 1;
    return KW_CONTAINER_OK;
}

kw_container_status kw_lz4_next(kw_cursor *c, const kw_lz4_frame *frame, kw_lz4_block *block) {
    if (!kw_has(c, 4)) return KW_CONTAINER_SHORT;
    uint32_t word = little32(c->at), size = word & 0x7fffffffu;
    c->at += 4;
    if (size == 0) return frame->content_checksum && !kw_has(c, 4) ? KW_CONTAINER_SHORT : KW_CONTAINER_END;
    if (size > frame->max_block) return KW_CONTAINER_BLOCK_SIZE;
    if (!kw_has(c, size)) return KW_CONTAINER_SHORT;
    block->start = c->at;
    block->size = size;
    block->stored = word >> 31;
    c->at += size;
    if (frame->block_checksums) {
        if (!kw_has(c, 4)) return KW_CONTAINER_SHORT;
        if (little32(c->at) != kw_xxh32(block->start, size)) return KW_CONTAINER_BLOCK_CHECKSUM;
        c->at += 4;
    }
    if (size > 1 || block->stored || *block->start) return KW_CONTAINER_OK;
    /* an empty block: Kafka stops here or reads on, as the size of a read has it, so only the end mark may follow */
    if (!kw_has(c, 4)) return KW_CONTAINER_SHORT;
    if (little32(c->at) & 0x7fffffffu) return KW_CONTAINER_EMPTY_BLOCK;
    return kw_lz4_next(c, frame, block);
}

/* ---- zstd ---- */

#define ZSTD_EMPTY 0x51d8e999u /* the checksum of empty content: the low half of its XXH64 */

#define ZSTD_BLOCK (128u * 1024)
#define ZSTD_WINDOW ((1ull << 27) + 1) /* ZSTD_d_windowLogMax's default, which Kafka does not change */

kw_container_status kw_zstd_next(kw_cursor *c, kw_zstd_frame *frame) {
    static const uint8_t normal[4] = {0x28, 0xb5, 0x2f, 0xfd}, skipped[4] = {0x50, 0x2a, 0x4d, 0x18};
    frame->skippable = 0;
    frame->least = frame->most = 0;
    if (!kw_has(c, 1)) return KW_CONTAINER_END;
    const uint8_t *p = c->at;
    size_t known = kw_has(c, 4) ? 4 : (size_t)(c->end - p);
    if (memcmp(p, normal, known) != 0) {
        if ((p[0] & 0xf0) != 0x50 || memcmp(p + 1, skipped + 1, known - 1) != 0) return KW_CONTAINER_MAGIC;
        frame->skippable = 1;
        if (!kw_has(c, 8) || !kw_has(c, 8 + (int64_t)little32(p + 4))) return KW_CONTAINER_SHORT;
        c->at = p + 8 + little32(p + 4);
        return KW_CONTAINER_OK;
    }
    if (!kw_has(c, 5)) return KW_CONTAINER_SHORT;
    int flags = p[4], single = flags >> 5 & 1, dictionary = (1 << (flags & 3)) >> 1;
    int stated = flags >> 6 ? 1 << (flags >> 6) : single;
    int header = 5 + !single + dictionary + stated;
    if (!kw_has(c, header)) return KW_CONTAINER_SHORT;
    if (flags & 8) return KW_CONTAINER_RESERVED;
    const uint8_t *q = p + header - stated;
    uint64_t content = stated == 8 ? little64(q) : stated == 4 ? little32(q) : stated == 2 ? little16(q) + 256
                       : stated ? *q : 0;
    uint64_t window = single ? content : ((1ull << 10) + ((uint64_t)(p[5] & 7) << 7)) << (p[5] >> 3);
    if (window > ZSTD_WINDOW) return KW_CONTAINER_WINDOW;
    uint32_t largest = window < ZSTD_BLOCK ? (uint32_t)window : ZSTD_BLOCK;
    c->at = p + header;
    int plain = 1; /* no block is compressed */
    for (int last = 0; !last;) {
        if (!kw_has(c, 3)) return KW_CONTAINER_SHORT;
        uint32_t word = little24(c->at), kind = word >> 1 & 3, size = word >> 3;
        last = word & 1;
        if (kind == 3) return KW_CONTAINER_RESERVED;
        int64_t held = kind == 1 ? 1 : size; /* kind 1: one byte, repeated */
        if (size > largest || held > largest) return KW_CONTAINER_BLOCK_SIZE;
        plain &= kind < 2;
        frame->most += kind < 2 ? size : largest;
        frame->least += kind < 2 ? size : 0;
        if (!kw_has(c, 3 + held)) return KW_CONTAINER_SHORT;
        c->at += 3 + held;
    }
    if (flags & 4) {
        if (!kw_has(c, 4)) return KW_CONTAINER_SHORT;
        plain &= little32(c->at) == ZSTD_EMPTY;
        c->at += 4;
    }
    if (stated) {
        if (content < frame->least || content > frame->most) return KW_CONTAINER_CONTENT_SIZE;
        frame->least = frame->most = content;
    }
    /* skipped here: the library takes microseconds for each of 100,000 per MB */
    frame->skippable = plain && !dictionary && frame->most == 0;
    return KW_CONTAINER_OK;
}

/* ---- snappy ---- */

static const uint8_t xerial[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

kw_container_status kw_snappy_declared(const uint8_t *data, size_t size, uint32_t *declared) {
    kw_cursor c;
    kw_cursor_set(&c, data, size);
    *declared = 0;
    /* a copy makes at most 64 bytes of 3; in Java the size is an int */
    if (kw_read_uvarint32(&c, declared) != KW_OK || *declared > 0x7fffffffu || *declared / 22 > size)
        return KW_CONTAINER_DECLARED;
    return KW_CONTAINER_OK;
}

size_t kw_snappy_long_end(const uint8_t *data, size_t size, size_t *extra) {
    static const uint8_t copies[4] = {0, 2, 3, 5}; /* bytes of a copy with its tag */
    kw_cursor c;
    uint32_t declared;
    kw_cursor_set(&c, data, size);
    if (kw_read_uvarint32(&c, &declared) != KW_OK) return size;
    for (size_t at = (size_t)(c.at - data); at < size;) {
        const uint8_t tag = data[at];
        uint64_t length = tag >> 2;
        if (tag & 3) {
            at += copies[tag & 3];
            continue;
        }
        *extra = length < 60 ? 0 : length - 59;
        if (*extra) {
            if (*extra > size - at - 1) return size;
            length = 0;
            for (size_t i = 0; i < *extra; i++) length |= (uint64_t)data[at + 1 + i] << 8 * i;
            if (size - at < 5) return length + 1 == size - at - 1 - *extra ? at : size;
        }
        if (length >= size - at - 1 - *extra) return size; /* the last one, which is whole or not */
        at += 2 + *extra + length;
    }
    return size;
}

int kw_xerial_is(const uint8_t *data, size_t size) {
    return size >= 16 && memcmp(data, xerial, 8) == 0; /* the versions in the first header are ignored */
}

kw_container_status kw_xerial_next(kw_cursor *c, int64_t given, const uint8_t **block, uint32_t *size,
                                   uint32_t *declared) {
    for (;;) {
        if (!kw_has(c, 4)) return KW_CONTAINER_END; /* fewer bytes end the stream silently, as in Java */
        if (memcmp(c->at, xerial, 4) != 0) break;
        if (!kw_has(c, 16)) return KW_CONTAINER_SHORT;
        if (memcmp(c->at, xerial, 8) == 0) { /* concatenated streams */
            if ((int32_t)kw_load32(c->at + 8) < 1) return KW_CONTAINER_VERSION;
        } else if (given == 0) {
            /* a block that only begins like a header ends SnappyInputStream's read: the end of the stream if there was
               no output yet, else the next read continues after it */
            return KW_CONTAINER_END;
        }
        c->at += 16;
    }
    *size = kw_load32(c->at);
    if (*size > 512u * 1024 * 1024) return KW_CONTAINER_BLOCK_SIZE; /* also negative ones */
    if (!kw_has(c, 4 + (int64_t)*size)) return KW_CONTAINER_SHORT;
    *block = c->at + 4;
    c->at += 4 + *size;
    return kw_snappy_declared(*block, *size, declared);
}
