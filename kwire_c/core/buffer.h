/* Growable buffers, whose memory is reused. Pure C, thread-safe. */
#ifndef KWIRE_BUFFER_H
#define KWIRE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t *data;
    size_t size, room;
} kw_buffer;

/* The freed buffers that are kept: their maximum number and total size in bytes. */
#define KW_POOL_SLOTS 64
#define KW_POOL_BYTES ((size_t)256 << 20)

/* Makes room for need bytes in all, for wish bytes if memory allows; 0 if out of memory. */
int kw_buffer_grow(kw_buffer *buffer, size_t need, size_t wish);

/* Makes room for more bytes after size; 0 if out of memory. */
int kw_buffer_reserve(kw_buffer *buffer, size_t more);
void kw_buffer_free(kw_buffer *buffer);

#endif
