"""CRC-32C (Castagnoli), the checksum of record batches since magic 2."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.stdint cimport uint32_t, uint8_t

from kwire_c.buffers cimport take_buffer
from kwire_c.core cimport kw_crc32, kw_crc32c, kw_crc32c_usable, kw_crc32c_variant

# From this size on the GIL is released: below, releasing it costs more than the checksum.
cdef enum:
    UNLOCK_FROM = 32768


cdef uint32_t crc32c_update(uint32_t value, const uint8_t *data, size_t size) noexcept nogil:
    return kw_crc32c(value, data, size)


cdef uint32_t crc32_update(uint32_t value, const uint8_t *data, size_t size) noexcept nogil:
    return kw_crc32(value, data, size)


cdef object _ZERO = 0


cdef uint32_t checksum(object value) except? 0xffffffff:
    """The checksum of the preceding bytes. Raises TypeError, OverflowError."""
    if not PyIndex_Check(value):
        raise TypeError(f"value must be an int, not {type(value).__name__}")
    try:
        return PyNumber_Index(value)
    except TypeError as error:  # of an array
        raise TypeError(f"value must be an int, not {type(value).__name__}") from error
    except OverflowError:
        raise OverflowError("value must be a checksum, 0 to 2**32 - 1") from None


def crc32c(data, value=0):
    """CRC-32C of data, continued from value.

    data: any C-contiguous buffer of any format. value: the checksum of the preceding bytes (0 to begin). Returns an
    int from 0 to 2**32 - 1. Raises TypeError if data is not a buffer (a str) or value is not an int,
    OverflowError if value is not in 0 to 2**32 - 1, BufferError if the buffer is not contiguous.
    """
    cdef uint32_t result = 0 if value is _ZERO else checksum(value)
    cdef Py_buffer view
    if type(data) is bytes and PyBytes_GET_SIZE(data) < UNLOCK_FROM:
        return kw_crc32c(result, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    take_buffer(data, &view, "data")
    if view.len < UNLOCK_FROM:
        result = kw_crc32c(result, <const uint8_t *>view.buf, view.len)
    else:
        with nogil:
            result = kw_crc32c(result, <const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return result


def variants():
    """The names of the variants that this processor supports, best first; the first is in use."""
    names = []
    while kw_crc32c_usable(len(names)) is not NULL:
        names.append(kw_crc32c_usable(len(names)).name.decode())
    return tuple(names)


def crc32c_with(str variant not None, data, value=0):
    """crc32c by the named variant. KeyError if this processor lacks it. For tests and benchmarks."""
    cdef uint32_t state = value
    cdef Py_buffer view
    cdef const kw_crc32c_variant *chosen = NULL
    for index, name in enumerate(variants()):
        if name == variant:
            chosen = kw_crc32c_usable(index)
    if chosen is NULL:
        raise KeyError(variant)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    state = ~chosen.run(~state, <const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return state
