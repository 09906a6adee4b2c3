/* CRC-32C (Castagnoli, reflected 0x82f63b78) with the best instructions that the processor has. Pure C. */
#ifndef KWIRE_CRC32C_H
#define KWIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of size bytes, continued from value (0 to begin). */
uint32_t kw_crc32c(uint32_t value, const uint8_t *data, size_t size);

#endif
