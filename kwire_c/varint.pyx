"""Varints of Kafka's ByteUtils, one at a time, for tests and tools; the fast paths use cursor.h directly."""

from kwire_c.errors import DecodeError

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from kwire_c.core cimport (
    KW_OK, KW_OVERLONG, KW_SHORT, KW_VARINT_LONG, kw_cursor, kw_cursor_set, kw_has, kw_read_uvarint32,
    kw_read_uvarint32_strict, kw_read_uvarint64, kw_read_varint32, kw_read_varint64, kw_status, kw_uvarint_size,
    kw_write_uvarint, kw_zigzag32, kw_zigzag64,
)
from kwire_c.integers cimport clipped

cdef dict REASONS = {
    KW_SHORT: "the input ends inside the varint",
    KW_VARINT_LONG: "varint longer than 5 bytes (varlong: 10)",
    KW_OVERLONG: "overlong varint",
}


cdef enum kind:
    UNSIGNED32
    SIGNED32
    UNSIGNED64
    SIGNED64


cdef read(data, position, kind number_kind, bint strict):
    cdef Py_ssize_t at = clipped(position)
    cdef Py_buffer view
    cdef kw_cursor cursor
    cdef kw_status status = KW_SHORT
    cdef uint32_t u32 = 0
    cdef int32_t i32 = 0
    cdef uint64_t u64 = 0
    cdef int64_t i64 = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        kw_cursor_set(&cursor, <const uint8_t *>view.buf, view.len)
        if not kw_has(&cursor, at):
            raise DecodeError(f"position is outside the {view.len} bytes", offset=at)
        cursor.at += at
        if number_kind == UNSIGNED32:
            status = kw_read_uvarint32_strict(&cursor, &u32) if strict else kw_read_uvarint32(&cursor, &u32)
        elif number_kind == SIGNED32:
            status = kw_read_varint32(&cursor, &i32)
        elif number_kind == UNSIGNED64:
            status = kw_read_uvarint64(&cursor, &u64)
        else:
            status = kw_read_varint64(&cursor, &i64)
        if status != KW_OK:
            raise DecodeError(REASONS[status], offset=at)
        end = cursor.at - cursor.base
    finally:
        PyBuffer_Release(&view)
    if number_kind == UNSIGNED32:
        return u32, end
    if number_kind == SIGNED32:
        return i32, end
    if number_kind == UNSIGNED64:
        return u64, end
    return i64, end


cdef bytes write(uint64_t value):
    cdef uint8_t room[10]
    cdef uint8_t *end = kw_write_uvarint(room, value)
    return (<char *>room)[:end - room]


def read_unsigned_varint(data, position=0, *, bint strict=False):
    """An unsigned 32-bit varint at position: (value, end). Raises DecodeError.

    As in Kafka, overlong forms are accepted and bits above the 32nd dropped; strict refuses both.
    """
    return read(data, position, UNSIGNED32, strict)


def read_varint(data, position=0):
    """A zigzag 32-bit varint at position: (value, end). Raises DecodeError."""
    return read(data, position, SIGNED32, False)


def read_unsigned_varlong(data, position=0):
    """An unsigned 64-bit varint at position: (value, end). Raises DecodeError."""
    return read(data, position, UNSIGNED64, False)


def read_varlong(data, position=0):
    """A zigzag 64-bit varint at position: (value, end). Raises DecodeError."""
    return read(data, position, SIGNED64, False)


def write_unsigned_varint(uint32_t value):
    """The 1 to 5 bytes of value (0 to 2**32 - 1, else OverflowError)."""
    return write(value)


def write_varint(int32_t value):
    """The 1 to 5 zigzag bytes of value (int32, else OverflowError)."""
    return write(kw_zigzag32(value))


def write_unsigned_varlong(uint64_t value):
    """The 1 to 10 bytes of value (0 to 2**64 - 1, else OverflowError)."""
    return write(value)


def write_varlong(int64_t value):
    """The 1 to 10 zigzag bytes of value (int64, else OverflowError)."""
    return write(kw_zigzag64(value))


def size_of_unsigned_varint(uint32_t value):
    """The size of write_unsigned_varint's output in bytes: 1 to 5."""
    return kw_uvarint_size(value)


def size_of_varint(int32_t value):
    """The size of write_varint's output in bytes: 1 to 5."""
    return kw_uvarint_size(kw_zigzag32(value))


def size_of_unsigned_varlong(uint64_t value):
    """The size of write_unsigned_varlong's output in bytes: 1 to 10."""
    return kw_uvarint_size(value)


def size_of_varlong(int64_t value):
    """The size of write_varlong's output in bytes: 1 to 10."""
    return kw_uvarint_size(kw_zigzag64(value))
