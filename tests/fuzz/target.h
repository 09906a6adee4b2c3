/* What every target needs: checks that stop the fuzzer, and a use for what is read. */
#ifndef TARGET_H
#define TARGET_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../must.h"

static volatile uint32_t sink; /* what is read is used, so that no read is optimised away */

static inline void touch(const uint8_t *at, int64_t size) {
    if (size > 0) sink += at[0] + at[size - 1];
}

/* A copy that ends where it ends, so that a read behind it is seen. */
static inline uint8_t *exact(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size + !size);
    if (size) memcpy(copy, data, size);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void each_input(const uint8_t *data, size_t size); /* what alone.c's main does with an input */

extern uint32_t digest; /* of what the target made of its input, where it makes anything */
extern int starved;     /* for short.c: how often it was told that memory is short */

#endif
