/* Where the blocks of lz4 frames, zstd frames and xerial's snappy streams stand, and how much they can give:
   the containers as Kafka's stream classes take and refuse them, without decompressing anything.
   Pure C without Python, so that the fuzzers can link it alone. */
#ifndef KWIRE_CONTAINERS_H
#define KWIRE_CONTAINERS_H

#include "cursor.h"

typedef enum {
    KW_FRAME_OK = 0,
    KW_FRAME_END,            /* nothing more to read */
    KW_FRAME_SHORT,          /* more bytes are needed */
    KW_FRAME_MAGIC,
    KW_FRAME_VERSION,
    KW_FRAME_RESERVED,
    KW_FRAME_DEPENDENT,      /* lz4: blocks that need the ones before */
    KW_FRAME_BLOCK_SIZE,
    KW_FRAME_HEADER_CHECKSUM,
    KW_FRAME_BLOCK_CHECKSUM,
    KW_FRAME_WINDOW,         /* zstd: more than 128 MiB of history */
    KW_FRAME_CONTENT_SIZE,   /* zstd: a stated size that the blocks cannot give */
    KW_FRAME_DECLARED        /* snappy: a declared size that so few bytes cannot give, or none that can be read */
} kw_frame_status;

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
kw_frame_status kw_lz4_open(kw_cursor *c, int any_checksum, kw_lz4_frame *frame);
/* Its readBlock: the next block, its checksum looked at; KW_FRAME_END behind the end mark. */
kw_frame_status kw_lz4_next(kw_cursor *c, const kw_lz4_frame *frame, kw_lz4_block *block);

typedef struct {
    int skippable;   /* nothing of it is looked at, or it gives nothing and its checksum is that of nothing */
    uint64_t least;  /* bytes that whole blocks give for certain */
    uint64_t most;   /* and at most */
} kw_zstd_frame;

/* One frame; on KW_FRAME_SHORT `most` tells what the whole blocks before the cut can give. */
kw_frame_status kw_zstd_next(kw_cursor *c, kw_zstd_frame *frame);

/* The size that a raw snappy block declares; refused (but told, 0 if unreadable) where size bytes cannot give it. */
kw_frame_status kw_snappy_declared(const uint8_t *data, size_t size, uint32_t *declared);
/* Is this xerial's framing? Anything else is one raw block. */
int kw_xerial_is(const uint8_t *data, size_t size);
/* The next block; the cursor starts behind the stream's first 16 bytes; given: bytes that the blocks before it give. */
kw_frame_status kw_xerial_next(kw_cursor *c, int64_t given, const uint8_t **block, uint32_t *size, uint32_t *declared);

uint32_t kw_xxh32(const uint8_t *data, size_t size);

#endif
