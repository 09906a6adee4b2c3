/* A processor with less than this one has: cpuid tells nothing of what $LACKS names, " 1c20 " is bit 20 of leaf 1's ecx,
   " 7- " all of leaf 7. */
#if defined(__x86_64__)
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int lacks(unsigned leaf, const char *name, int bit) {
    char what[16];
    snprintf(what, sizeof what, bit < 0 ? " %u%s " : " %u%s%d ", leaf, name, bit);
    return getenv("LACKS") && strstr(getenv("LACKS"), what);
}

static inline int told(unsigned leaf, unsigned *a, unsigned *b, unsigned *c, unsigned *d) {
    if (lacks(leaf, "-", -1) || !__get_cpuid_count(leaf, 0, a, b, c, d)) return 0;
    for (int bit = 0; bit < 32; bit++) {
        if (lacks(leaf, "b", bit)) *b &= ~(1u << bit);
        if (lacks(leaf, "c", bit)) *c &= ~(1u << bit);
    }
    return 1;
}

#define __get_cpuid(leaf, a, b, c, d) told(leaf, a, b, c, d)
#define __get_cpuid_count(leaf, part, a, b, c, d) told(leaf, a, b, c, d)
#endif
