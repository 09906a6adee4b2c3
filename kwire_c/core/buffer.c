/* Growable buffers: see buffer.h. */
#define _DEFAULT_SOURCE
#include "buffer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cursor.h"

/* Freed buffers are kept for the next table, as fresh pages cost more than what is written into them. What goes past
   POOL_WARM in all is marked as free to the kernel, which takes such pages back when memory is short. */
#define POOL_SLOTS 24
#define POOL_SMALLEST ((size_t)64 << 10)
#define POOL_WARM ((size_t)256 << 20)
#define POOL_BYTES ((size_t)2 << 30)
static struct {
    uint8_t *data;
    size_t room;
} pool[POOL_SLOTS];
static size_t pool_bytes;
static unsigned pool_next;
static atomic_flag pool_lock = ATOMIC_FLAG_INIT;

static void lock_pool(void) {
    while (atomic_flag_test_and_set_explicit(&pool_lock, memory_order_acquire)) {
    }
}

static void unlock_pool(void) { atomic_flag_clear_explicit(&pool_lock, memory_order_release); }

static void mark_free(uint8_t *data, size_t room) {
#ifdef MADV_FREE
    uintptr_t from = ((uintptr_t)data + 4095) & ~(uintptr_t)4095, to = ((uintptr_t)data + room) & ~(uintptr_t)4095;
    if (to > from) madvise((void *)from, to - from, MADV_FREE);
#else
    (void)data, (void)room;
#endif
}

/* The smallest kept buffer of room bytes or more, and not of twice as many; NULL where there is none. */
static uint8_t *pool_take(size_t room, size_t *got) {
    int best = -1;
    if (room < POOL_SMALLEST) return NULL;
    lock_pool();
    for (int i = 0; i < POOL_SLOTS; i++)
        if (pool[i].data && pool[i].room >= room && pool[i].room / 2 <= room &&
            (best < 0 || pool[i].room < pool[best].room))
            best = i;
    uint8_t *data = NULL;
    if (best >= 0) {
        data = pool[best].data;
        *got = pool[best].room;
        pool_bytes -= pool[best].room;
        pool[best].data = NULL;
    }
    unlock_pool();
    return data;
}

static void pool_give(uint8_t *data, size_t room) {
    uint8_t *dropped[POOL_SLOTS];
    int drops = 0;
    if (room < POOL_SMALLEST || room > POOL_BYTES) {
        free(data);
        return;
    }
    lock_pool();
    int cold = pool_bytes + room > POOL_WARM;
    unlock_pool();
    if (cold) mark_free(data, room);
    lock_pool();
    int slot = -1;
    for (int i = 0; i < POOL_SLOTS && slot < 0; i++)
        if (!pool[i].data) slot = i;
    while (slot < 0 || pool_bytes + room > POOL_BYTES) { /* the oldest go */
        unsigned i = pool_next++ % POOL_SLOTS;
        if (!pool[i].data) continue;
        dropped[drops++] = pool[i].data;
        pool_bytes -= pool[i].room;
        pool[i].data = NULL;
        slot = (int)i;
    }
    pool[slot].data = data;
    pool[slot].room = room;
    pool_bytes += room;
    unlock_pool();
    while (drops) free(dropped[--drops]);
}

int kw_buffer_grow(kw_buffer *buffer, size_t need, size_t wish) {
    size_t room = buffer->room * 2 > wish ? buffer->room * 2 : wish;
    if (room < need) room = need;
    if (room < 4096) room = 4096;
    size_t got;
    uint8_t *taken = pool_take(room, &got);
    if (taken) {
        if (buffer->size) memcpy(taken, buffer->data, buffer->size);
        if (buffer->data) pool_give(buffer->data, buffer->room);
        buffer->data = taken;
        buffer->room = got;
        return 1;
    }
    uint8_t *grown = realloc(buffer->data, room);
    if (!grown) grown = realloc(buffer->data, room = need);
    if (!grown) return 0;
    buffer->data = grown;
    buffer->room = room;
    return 1;
}

int kw_buffer_reserve(kw_buffer *buffer, size_t more) {
    if (KW_LIKELY(more <= buffer->room - buffer->size)) return 1;
    if (more > SIZE_MAX / 4 - buffer->size) return 0;
    return kw_buffer_grow(buffer, buffer->size + more, 0);
}

void kw_buffer_free(kw_buffer *buffer) {
    if (buffer->data) pool_give(buffer->data, buffer->room);
    buffer->data = NULL;
    buffer->size = buffer->room = 0;
}
