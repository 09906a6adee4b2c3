/* Growable buffers: see buffer.h. */
#define _GNU_SOURCE /* mremap */
#include "buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cursor.h"

/* Large buffers have their own mapping, in huge pages if the system has them: a page fault per 2 MiB instead of
   4 KiB, and growing one moves its pages, not its bytes. */
#define LARGE ((size_t)4 << 20)
#ifdef __linux__
#ifndef MADV_HUGEPAGE /* C library headers older than the kernel */
#define MADV_HUGEPAGE 14
#endif
#define HUGE_PAGE ((size_t)2 << 20)

static uint8_t *map_pages(size_t room) {
    uint8_t *all = mmap(NULL, room + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    size_t before = (0 - (uintptr_t)all) & (HUGE_PAGE - 1);
    if (before) munmap(all, before);
    munmap(all + before + room, HUGE_PAGE - before);
    madvise(all + before, room, MADV_HUGEPAGE); /* only advice: failure is harmless */
    return all + before;
}

static uint8_t *remap_pages(uint8_t *data, size_t from, size_t room) {
    if (mremap(data, from, room, 0) != MAP_FAILED) return data;
    uint8_t *to = map_pages(room);
    if (!to) return NULL;
    /* if it fails, another thread may have mapped this address: it is not unmapped here */
    return mremap(data, from, room, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED ? NULL : to;
}

static void unmap_pages(uint8_t *data, size_t room) { munmap(data, room); }

#else
#define HUGE_PAGE ((size_t)1)
static uint8_t *map_pages(size_t room) { return malloc(room); }
static uint8_t *remap_pages(uint8_t *data, size_t from, size_t room) { return (void)from, realloc(data, room); }
static void unmap_pages(uint8_t *data, size_t room) { (void)room, free(data); }
#endif

/* Memory of *room bytes (rounded up) that starts with the size bytes of data, which is freed; NULL if out of memory. */
static uint8_t *resize(uint8_t *data, size_t size, size_t from, size_t *room) {
    if (*room < LARGE) return realloc(data, *room);
    *room = (*room + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    if (from >= LARGE) return remap_pages(data, from, *room);
    uint8_t *grown = map_pages(*room);
    if (!grown) return NULL;
    if (size) memcpy(grown, data, size);
    free(data);
    return grown;
}

static void drop(uint8_t *data, size_t room) {
    if (room < LARGE)
        free(data);
    else
        unmap_pages(data, room);
}

/* Freed buffers are kept for the next table, as new pages cost more than writing them: at most KW_POOL_SLOTS buffers
   of KW_POOL_BYTES in all, which stay resident. */
#define POOL_SMALLEST ((size_t)64 << 10)
static struct kept {
    uint8_t *data;
    size_t room;
} pool[KW_POOL_SLOTS];
static size_t pool_bytes;
static unsigned pool_next;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_pool(void) { pthread_mutex_lock(&pool_lock); }

static void unlock_pool(void) { pthread_mutex_unlock(&pool_lock); }

/* A forked child has only the thread that forked: no other thread may hold the lock at fork. */
__attribute__((constructor)) static void survive_fork(void) { pthread_atfork(lock_pool, unlock_pool, unlock_pool); }

/* The smallest kept buffer of at least room bytes and less than twice as many; NULL if there is none. */
static uint8_t *pool_take(size_t room, size_t *got) {
    int best = -1;
    if (room < POOL_SMALLEST) return NULL;
    lock_pool();
    for (int i = 0; i < KW_POOL_SLOTS; i++)
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
    struct kept dropped[KW_POOL_SLOTS];
    int drops = 0;
    if (room < POOL_SMALLEST || room > KW_POOL_BYTES) {
        drop(data, room);
        return;
    }
    lock_pool();
    int slot = -1;
    for (int i = 0; i < KW_POOL_SLOTS && slot < 0; i++)
        if (!pool[i].data) slot = i;
    while (slot < 0 || pool_bytes + room > KW_POOL_BYTES) { /* free the oldest */
        unsigned i = pool_next++ % KW_POOL_SLOTS;
        if (!pool[i].data) continue;
        dropped[drops++] = pool[i];
        pool_bytes -= pool[i].room;
        pool[i].data = NULL;
        slot = (int)i;
    }
    pool[slot].data = data;
    pool[slot].room = room;
    pool_bytes += room;
    unlock_pool();
    while (drops--) drop(dropped[drops].data, dropped[drops].room);
}

#define MOST (SIZE_MAX / 4) /* the largest buffer: the sum of two sizes does not overflow */

int kw_buffer_grow(kw_buffer *buffer, size_t need, size_t wish) {
    if (need > MOST) return 0;
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
    uint8_t *grown = resize(buffer->data, buffer->size, buffer->room, &room);
    if (!grown) grown = resize(buffer->data, buffer->size, buffer->room, (room = need, &room));
    if (!grown) return 0;
    buffer->data = grown;
    buffer->room = room;
    return 1;
}

int kw_buffer_reserve(kw_buffer *buffer, size_t more) {
    if (KW_LIKELY(more <= buffer->room - buffer->size)) return 1;
    if (more > MOST) return 0;
    return kw_buffer_grow(buffer, buffer->size + more, 0);
}

void kw_buffer_free(kw_buffer *buffer) {
    if (buffer->data) pool_give(buffer->data, buffer->room);
    buffer->data = NULL;
    buffer->size = buffer->room = 0;
}
