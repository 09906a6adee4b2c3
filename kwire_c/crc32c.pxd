# CRC-32C (Castagnoli), and the CRC-32 of magic 0 and 1, for the other extensions: cimport these.
from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t crc32c_update(uint32_t value, const uint8_t *data, size_t size) noexcept nogil
cdef uint32_t crc32_update(uint32_t value, const uint8_t *data, size_t size) noexcept nogil
