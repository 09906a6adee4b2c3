/* Growable buffers, whose memory is kept for the next ones. Pure C, safe from any thread. */
#ifndef KWIRE_BUFFER_H
#define KWIRE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t *data;
    size_t size, room;
} kw_buffer;

/* Freed buffers that are kept: so many, of so many bytes in all. */
#define KW_POOL_SLOTS 64
#define KW_POOL_BYTES ((size_t)256 << 20)

/* Room for need bytes in all, for wish bytes where memory allows; 0 when it is short. */
int kw_buffer_grow(kw_buffer *buffer, size_t need, size_t wish);

/* Room for more bytes after size; 0 when memory is short. */
int kw_buffer_reserve(kw_buffer *buffer, size_t more);
void kw_buffer_free(kw_buffer *buffer);

#endif
