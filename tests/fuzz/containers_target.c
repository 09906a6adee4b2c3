/* What codecs wrap their blocks in: LZ4 and Zstandard frames, raw and xerial snappy. */
#include "containers.h"
#include "target.h"

uint32_t digest; /* of nothing: no memory is asked for here */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kw_cursor c;
    kw_lz4_frame frame;
    kw_lz4_block block;
    kw_zstd_frame zstd;
    uint32_t declared, length;
    const uint8_t *start;
    for (int any = 0; any < 2; any++) {
        kw_cursor_set(&c, data, size);
        if (kw_lz4_open(&c, any, &frame) == KW_CONTAINER_OK)
            while (kw_lz4_next(&c, &frame, &block) == KW_CONTAINER_OK) touch(block.start, block.size);
    }
    kw_cursor_set(&c, data, size);
    while (kw_zstd_next(&c, &zstd) == KW_CONTAINER_OK) MUST(c.at <= c.end);
    sink += (uint32_t)kw_snappy_declared(data, size, &declared);
    if (kw_xerial_is(data, size)) {
        kw_cursor_set(&c, data, size);
        c.at += 16;
        for (int64_t given = 0; kw_xerial_next(&c, given, &start, &length, &declared) == KW_CONTAINER_OK; given += declared)
            touch(start, length);
    }
    sink += kw_xxh32(data, size);
    return 0;
}
