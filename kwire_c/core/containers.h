/* Where the blocks of lz4 frames, zstd frames and xerial's snappy streams are, and how much they can give:
   the containers as Kafka's stream classes take and refuse them, without decompressing anything.
   Pure C without Python, so that the fuzzers can link it alone. */
#ifndef KWIRE_CONTAINERS_H
#define KWIRE_CONTAINERS_H

#include "cursor.h"

/* What came of reading a container, and the words for it. */
#define KW_CONTAINER_STATUSES(X)                                                                                     \
    X(KW_CONTAINER_OK, "valid")                                                                                      \
    X(KW_CONTAINER_END, "at its end") /* nothing more to read */                                                     \
    X(KW_CONTAINER_SHORT, "the stream ends early") /* more bytes are needed */                                       \
    X(KW_CONTAINER_MAGIC, "wrong magic bytes")                                                                       \
    X(KW_CONTAINER_VERSION, "unsupported version")                                                                   \
    X(KW_CONTAINER_RESERVED, "reserved bits are set")                                                                \
    X(KW_CONTAINER_DEPENDENT, "dependent blocks are unsupported") /* lz4: blocks that need the ones before */        \
    X(KW_CONTAINER_BLOCK_SIZE, "block size out of range")                                                            \
    X(KW_CONTAINER_HEADER_CHECKSUM, "header checksum does not match")                                                \
    X(KW_CONTAINER_BLOCK_CHECKSUM, "block checksum does not match")                                                  \
    X(KW_CONTAINER_WINDOW, "window exceeds 128 MiB") /* zstd */                                                      \
    X(KW_CONTAINER_CONTENT_SIZE, "declared content size exceeds what the blocks can give") /* zstd */                \
    X(KW_CONTAINER_DECLARED, "declared size is unreadable or exceeds what the bytes can give") /* snappy */

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

/* Kafka's Lz4BlockInputStream.readHeader; any_checksum: magic 0, whose writers hashed the wrong bytes. */
kw_container_status kw_lz4_open(kw_cursor *c, int any_checksum, kw_lz4_frame *frame);
/* Its readBlock: the next block, its checksum looked at; KW_CONTAINER_END after the end mark. */
kw_container_status kw_lz4_next(kw_cursor *c, const kw_lz4_frame *frame, kw_lz4_block *block);

typedef struct {
    int skippable;   /* nothing of it is looked at, or it gives nothing and its checksum is that of nothing */
    uint64_t least;  /* bytes that whole blocks give for certain */
    uint64_t most;   /* and at most */
} kw_zstd_frame;

/* One frame; on KW_CONTAINER_SHORT `most` is what the whole blocks before the cut can give. */
kw_container_status kw_zstd_next(kw_cursor *c, kw_zstd_frame *frame);

/* The size that a raw snappy block declares; refused (but given, 0 if unreadable) where size bytes cannot give it. */
kw_container_status kw_snappy_declared(const uint8_t *data, size_t size, uint32_t *declared);
/* Is this xerial's framing? Anything else is one raw block. */
int kw_xerial_is(const uint8_t *data, size_t size);
/* The next block; the cursor starts after the stream's first 16 bytes; given: bytes that the blocks before it give. */
kw_container_status kw_xerial_next(kw_cursor *c, int64_t given, const uint8_t **block, uint32_t *size,
                                   uint32_t *declared);

uint32_t kw_xxh32(const uint8_t *data, size_t size);

#endif
