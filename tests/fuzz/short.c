/* Inputs with memory that falls short. Of the allocations that the C core makes for an input, each fails once, so that
   the smaller second try gets the memory and nobody is told; and each fails with its second try, which must be told,
   once. Then there is memory again, and what the target makes of the input in the end (its digest) must be the same. */
#define _GNU_SOURCE /* mremap */
#undef realloc /* the build puts the functions below in their place */
#undef mmap
#undef mremap
#include <stdarg.h>
#include <sys/mman.h>

#include "buffer.h"
#include "target.h"

static long count, first, failing; /* allocations so far; which of them fail: `failing` from `first` on */

static int fails(void) {
    long number = count++;
    return number >= first && number < first + failing;
}

void *short_realloc(void *data, size_t size) { return fails() ? NULL : realloc(data, size); }

void *short_mmap(void *at, size_t size, int access, int flags, int file, off_t from) {
    return fails() ? MAP_FAILED : mmap(at, size, access, flags, file, from);
}

/* Growing in place costs no memory to speak of: it may fail without a word, the pages then move. */
void *short_mremap(void *at, size_t size, size_t wanted, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    return !(flags & MREMAP_FIXED) || fails() ? MAP_FAILED : mremap(at, size, wanted, flags, to);
}

/* Small buffers in all places of the pool, so that large ones are allocated anew. */
static void flush_pool(void) {
    kw_buffer small[48] = {0};
    for (int i = 0; i < 48; i++) MUST(kw_buffer_grow(&small[i], 1 << 16, 0));
    for (int i = 0; i < 48; i++) kw_buffer_free(&small[i]);
}

static void run(const uint8_t *data, size_t size, long from, long how_many) {
    if (size > 1 << 16) failing = 0, flush_pool();
    count = 0, starved = 0, digest = 0;
    first = from, failing = how_many;
    LLVMFuzzerTestOneInput(data, size);
}

void each_input(const uint8_t *data, size_t size) {
    run(data, size, 0, 0);
    const uint32_t expected = digest;
    long all = count;
    MUST(!starved);
    for (long from = 0; from < all; from++) {
        run(data, size, from, 1);
        MUST(!starved && digest == expected);
        run(data, size, from, 2);
        MUST(starved == (count > from) && digest == expected); /* kept buffers may have made some needless */
    }
}
