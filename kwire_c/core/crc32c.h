/* CRC-32C (Castagnoli, reflected 0x82f63b78) with the best instructions of the processor. Pure C. */
#ifndef KWIRE_CRC32C_H
#define KWIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* A variant of the computation. run takes and returns the raw state: the complement of the checksum. */
typedef struct {
    const char *name;
    uint32_t (*run)(uint32_t state, const uint8_t *data, size_t size);
    int (*usable)(void); /* whether this processor has the instructions */
} kw_crc32c_variant;

/* The checksum of size bytes, continued from value (0 to begin). Thread-safe. */
uint32_t kw_crc32c(uint32_t value, const uint8_t *data, size_t size);

/* The same of CRC-32 (IEEE 802.3), the checksum of magic 0 and 1. */
uint32_t kw_crc32(uint32_t value, const uint8_t *data, size_t size);

/* The variants that this processor can run, best first, the table last; NULL if index is past the last.
   Number 0 is the one that kw_crc32c uses. */
const kw_crc32c_variant *kw_crc32c_usable(size_t index);

/* Only for crc32c.c: the variants of this build, best first, terminated by a NULL name. */
extern const kw_crc32c_variant kw_crc32c_x86[], kw_crc32c_arm[];

#endif
