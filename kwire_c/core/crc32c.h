/* CRC-32C (Castagnoli, reflected 0x82f63b78) with the best instructions that the processor has. Pure C. */
#ifndef KWIRE_CRC32C_H
#define KWIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* A way to compute it. run takes and returns the raw state: the complement of the checksum. */
typedef struct {
    const char *name;
    uint32_t (*run)(uint32_t state, const uint8_t *data, size_t size);
    int (*usable)(void); /* does this processor have the instructions? */
} kw_crc32c_variant;

/* The checksum of size bytes, continued from value (0 to begin). Any thread may call it at any time. */
uint32_t kw_crc32c(uint32_t value, const uint8_t *data, size_t size);

/* The variants that this processor can run, best first, the table last; null when index is past the last.
   Number 0 is the one that kw_crc32c uses. */
const kw_crc32c_variant *kw_crc32c_usable(size_t index);

/* For crc32c.c alone: what the build knows, best first, ended by a null name. */
extern const kw_crc32c_variant kw_crc32c_x86[], kw_crc32c_arm[];

#endif
