/* Buffers: what they hold while they grow, by moving and in place; memory that falls short; which freed ones come back.
   The system's calls for pages are replaced (-Dmmap=told_mmap and so on), so that each can be made to fail. */
#define _GNU_SOURCE /* mremap */
#undef mmap
#undef mremap
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../must.h"
#include "buffer.h"

#define MIB ((size_t)1 << 20)

/* A child of fork that ends has its parent's other threads unjoined. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

static int no_pages, no_place, no_move; /* what fails: mapping, growing in place, moving */
static int aligned;                     /* mappings begin where a huge page does */
static long mapped, stayed, went;       /* how often each was done */

void *told_mmap(void *at, size_t size, int access, int flags, int file, off_t from) {
    if (no_pages) return MAP_FAILED;
    mapped++;
    const size_t spare = 64 * MIB; /* free space behind, so that growing in place can be had */
    uint8_t *all = mmap(at, size + spare, access, flags, file, from);
    MUST(all != MAP_FAILED);
    const size_t before = aligned ? -(size_t)all & (2 * MIB - 1) : 4096;
    if (before) munmap(all, before);
    munmap(all + before + size, spare - before);
    return all + before;
}

void *told_mremap(void *at, size_t size, size_t wanted, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    if (flags & MREMAP_FIXED ? no_move : no_place) return MAP_FAILED;
    ++*(flags & MREMAP_FIXED ? &went : &stayed);
    return mremap(at, size, wanted, flags, to);
}

static uint8_t sign(size_t at) { return (uint8_t)(at * 2654435761u >> 24); }

/* Writes up to size; what stands before must be as it was written. */
static void fill(kw_buffer *buffer, size_t size) {
    MUST(buffer->room >= size);
    for (size_t at = 0; at < buffer->size; at += 509) MUST(buffer->data[at] == sign(at));
    for (size_t at = buffer->size / 509 * 509; at < size; at += 509) buffer->data[at] = sign(at);
    buffer->size = size;
}

static kw_buffer made(size_t room) {
    kw_buffer buffer = {0};
    MUST(kw_buffer_grow(&buffer, room, 0) && buffer.room >= room);
    return buffer;
}

static void growing(void) {
    kw_buffer buffer = {0};
    for (size_t size = 10; size < 100 * MIB; size = size * 2 + 7) {
        MUST(kw_buffer_reserve(&buffer, size - buffer.size));
        fill(&buffer, size);
        aligned = !aligned;
        no_place = size > 30 * MIB;
    }
    MUST(mapped > 1 && stayed > 0 && went > 0);
    no_place = 0;
    MUST(kw_buffer_grow(&buffer, KW_POOL_BYTES + 1, 0)); /* more than the pool keeps */
    kw_buffer_free(&buffer);
    MUST(!buffer.data && !buffer.size && !buffer.room);
    kw_buffer_free(&buffer); /* of nothing */
}

/* Growing from so many bytes to so many fails: nothing has changed, and with memory again it is done. */
static void short_of(int *what, size_t from, size_t to) {
    kw_buffer buffer = made(from);
    fill(&buffer, from);
    const kw_buffer before = buffer;
    *what = no_place = 1;
    MUST(!kw_buffer_grow(&buffer, to, 2 * to));
    MUST(buffer.data == before.data && buffer.size == before.size && buffer.room == before.room);
    *what = no_place = 0;
    MUST(kw_buffer_grow(&buffer, to, 2 * to));
    fill(&buffer, to);
    kw_buffer_free(&buffer);
}

static void memory_falls_short(void) {
    short_of(&no_pages, MIB, 131 * MIB);
    short_of(&no_pages, 9 * MIB, 141 * MIB);
    short_of(&no_move, 10 * MIB, 151 * MIB);
    kw_buffer buffer = made(100);
    MUST(!kw_buffer_reserve(&buffer, SIZE_MAX) && !kw_buffer_reserve(&buffer, SIZE_MAX / 4 + 1));
    MUST(!kw_buffer_grow(&buffer, SIZE_MAX - 5, 0));
    kw_buffer_free(&buffer);
}

/* The pool keeps KW_POOL_SLOTS buffers and KW_POOL_BYTES: of more the oldest go. */
static void freed_ones_come_back(void) {
    enum { MANY = KW_POOL_SLOTS + 1 };
    kw_buffer many[MANY], one, other;
    for (int i = 0; i < MANY; i++) many[i] = made(100000 + (size_t)i * 100000);
    const uint8_t *last = many[MANY - 1].data;
    const size_t most = 100000 * (size_t)MANY;
    for (int i = 0; i < MANY; i++) kw_buffer_free(&many[i]); /* the first goes */
    one = made(most - 50000);
    MUST(one.data == last && one.room >= most);
    other = made(50001); /* under 64 KiB: new */
    MUST(other.room == 50001);
    kw_buffer_free(&other);
    other = made(90000); /* the smallest left is 200,000 bytes: too large for this */
    MUST(other.room == 90000);
    kw_buffer_free(&other);
    other = made(150000);
    MUST(other.room == 200000);
    fill(&other, 150000);
    MUST(kw_buffer_reserve(&other, 60000)); /* twice the room or more: one of the freed */
    MUST(other.room == 400000);
    fill(&other, 210000);
    kw_buffer_free(&other);
    kw_buffer_free(&one);

    for (int i = 0; i < 3; i++) many[i] = made(100 * MIB); /* mapped, never written */
    for (int i = 0; i < 3; i++) kw_buffer_free(&many[i]);
    const long before = mapped;
    one = made(100 * MIB), other = made(100 * MIB);
    MUST(mapped == before); /* two were kept */
    many[0] = made(100 * MIB);
    MUST(mapped == before + 1); /* not three */
    many[1] = made(KW_POOL_BYTES + MIB);
    kw_buffer_free(&many[1]);
    many[1] = made(KW_POOL_BYTES + MIB);
    MUST(mapped == before + 3); /* more than the pool holds at all */
    kw_buffer_free(&many[1]);
    kw_buffer_free(&many[0]);
    kw_buffer_free(&one);
    kw_buffer_free(&other);
}

/* A buffer belongs to one thread: nobody else writes into it. */
static void *worker(void *number) {
    const uint8_t mine = (uint8_t)(size_t)number;
    for (int round = 0; round < 20000; round++) {
        kw_buffer buffer = made(65536 + (size_t)(round % 7) * 4096);
        memset(buffer.data, mine, 64);
        for (int at = 0; at < 64; at++) MUST(((volatile uint8_t *)buffer.data)[at] == mine);
        kw_buffer_free(&buffer);
    }
    return NULL;
}

/* Forked while others take and give, a child has the pool for itself: it must not wait for them. */
static void fork_often(void) {
    for (int i = 0; i < 50; i++) {
        const pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            alarm(20);
            for (int j = 0; j < 100; j++) {
                kw_buffer buffer = made(65536 + (size_t)j * 1000);
                buffer.data[0] = 1;
                kw_buffer_free(&buffer);
            }
            _exit(0);
        }
        int status = -1;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void threads(void) {
    pthread_t running[4];
#ifdef __SANITIZE_ADDRESS__ /* its own allocator may be locked by another thread at a fork, and stays so in the child */
    fork_often();
#endif
    for (size_t i = 0; i < 4; i++) MUST(!pthread_create(&running[i], NULL, worker, (void *)(i + 1)));
#ifndef __SANITIZE_ADDRESS__
    fork_often();
#endif
    for (size_t i = 0; i < 4; i++) MUST(!pthread_join(running[i], NULL));
}

int main(void) {
    growing(); /* first: nothing is kept yet, nor after it */
    freed_ones_come_back();
    memory_falls_short();
    threads();
    puts("sound");
    return 0;
}
