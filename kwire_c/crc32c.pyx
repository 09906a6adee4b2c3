"""CRC-32C (Castagnoli), the checksum of record batches since magic 2."""

from libc.stdint cimport uint8_t, uint32_t


cdef extern from "crc32c.h" nogil:
    uint32_t kw_crc32c(uint32_t value, const uint8_t *data, size_t size)


cdef uint32_t crc32c_update(uint32_t value, const uint8_t *data, size_t size) noexcept nogil:
    return kw_crc32c(value, data, size)


def crc32c(const uint8_t[::1] data not None, uint32_t value=0):
    """CRC-32C of data (any buffer of bytes), continued from value."""
    cdef uint32_t result = value
    cdef size_t size = data.shape[0]
    if size:
        with nogil:
            result = kw_crc32c(value, &data[0], size)
    return result
