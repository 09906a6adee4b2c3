/* The positions and maximum output of the blocks in lz4 frames, zstd frames and xerial's snappy streams.
   Accepts and refuses what Kafka's stream classes do, without decompressing anything.
   Pure C without Python, so that the fuzzers can link it alone. */
#ifndef KWIRE_CONTAINERS_H
#define KWIRE_CONTAINERS_H

#include "cursor.h"

/* The result of reading a container, and its text. */
#define KW_CONTAINER_STATUSES(X)                                                                                     \
    X(KW_CONTAINER_OK, "valid")                                                                                      \
    X(KW_CONTAINER_END, "at its end") /* nothing more to read */                                                     \
    X(KW_CONTAINER_SHORT, "the stream ends early") /* more bytes are needed */                                       \
    X(KW_CONTAINER_MAGIC, "wrong magic bytes")                                                                       \
    X(KW_CONTAINER_VERSION, "unsupported version")                                                                   \
    X(KW_CONTAINER_RESERVED, "reserved bits are set")                                                                \
    X(KW_CONTAINER_DEPENDENT, "dependent blocks are unsupported") /* lz4: blocks that need earlier ones */        \
    X(KW_CONTAINER_BLOCK_SIZE, "block size out of range")                                                            \
    X(KW_CONTAINER_EMPTY_BLOCK, "empty block before the end") /* lz4 */                                              \
    X(KW_CONTAINER_HEADER_CHECKSUM, "header checksum does not match")                                                \
    X(KW_CONTAINER_BLOCK_CHECKSUM, "block checksum does not match")                                                  \
    X(KW_CONTAINER_WINDOW, "window exceeds 128 MiB") /* zstd */                                                      \
    X(KW_CONTAINER_CONTENT_SIZE, "declared content size exceeds what the blocks can hold") /* zstd */                \
    X(KW_CONTAINER_DECLARED, "declared size is unreadable or exceeds what the bytes can hold") /* snappy */

typedef enum {
#define KW_CODE(code, reason) code,
    KW_CONTAINER_STATUSES(KW_CODE)
#undef KW_CODE
} kw_container_status;

static inline const char *kw_container_reason(kw_container_status status) {
    switch (status) {
#define KW_CASE(code, reason) case code: return reason;
        KW_CONTAINER_STATUSES(KW_CASE)
#undef KW_CASE
    }
    return "unknown error";
}

typedef struct {
    uint32_t max_block;
    int block_checksums;
    int content_checksum;
} kw_lz4_frame;

typedef struct {
    const uint8_t *start;
    uint32_t size;
    int stored;  /* not compressed */
} kw_lz4_block;

/* Kafka's Lz4BlockInputStream.readHeader; any_checksum: for magic 0, whose checksum is of other bytes. */
kw_container_status kw_lz4_open(kw_cursor *c, int any_checksum, kw_lz4_frame *frame);
/* Its readBlock: the next block, with its checksum verified; KW_CONTAINER_END after the end mark. */
kw_container_status kw_lz4_next(kw_cursor *c, const kw_lz4_frame *frame, kw_lz4_block *block);

typedef struct {
    int skippable;   /* a skippable frame, or an empty one with a valid checksum */
    uint64_t least;  /* minimum output of the whole blocks, in bytes */
    uint64_t most;   /* maximum output */
} kw_zstd_frame;

/* One frame; on KW_CONTAINER_SHORT `most` is the maximum output of the whole blocks before it. */
kw_container_status kw_zstd_next(kw_cursor *c, kw_zstd_frame *frame);

/* The output size that a raw snappy block declares (0 if unreadable); refused if size bytes cannot produce it. */
kw_container_status kw_snappy_declared(const uint8_t *data, size_t size, uint32_t *declared);
/* The position of the last element of a raw snappy block, if it is a literal whose length is in bytes after its tag and
   less than 4 bytes follow the tag; else size. *extra: the bytes of the length. */
size_t kw_snappy_long_end(const uint8_t *data, size_t size, size_t *extra);
/* Whether data is in xerial's framing; else it is one raw block. */
int kw_xerial_is(const uint8_t *data, size_t size);
/* The next block; the cursor starts after the first 16 bytes of the stream; given: output size of earlier blocks. */
kw_container_status kw_xerial_next(kw_cursor *c, int64_t given, const uint8_t **block, uint32_t *size,
                                   uint32_t *declared);

uint32_t kw_xxh32(const uint8_t *data, size_t size);

#endif
