"""decode and decode_from: bytes to messages."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from kwire_c.errors import DecodeError
from kwire_c.report import decode_error

from kwire_c.message_class cimport kw_new_instance
from kwire_c.integers cimport clipped
from kwire_c.plan cimport KW_PYTHON, KW_TRAILING, Message, find, kw_cursor_set, kw_fail, kw_plan
from kwire_c.reader cimport Walk, raise_set, read_struct

cdef extern from "Python.h":
    void raw_decref "Py_DECREF"(PyObject *)


cdef object walk(Message message, const kw_plan *plan, const uint8_t *data, Py_ssize_t size, Py_ssize_t position,
                 bint lenient, bint views, object owner, Py_ssize_t *end):
    """The message at a position; end: where it stops. NULL: it must stop at the end of the data (unless lenient)."""
    cdef Walk w
    kw_cursor_set(&w.c, data, size)
    w.c.at += position
    w.f.why, w.f.depth, w.lenient, w.views, w.known, w.raised = 0, 0, lenient, views, 0, NULL
    w.owner = NULL if owner is None else <PyObject *>owner
    cdef PyObject *made = kw_new_instance(plan.cls)
    if made == NULL:
        raise MemoryError
    result = <object>made
    raw_decref(made)
    if read_struct(&w, plan, <char *>made) < 0:
        raise failed(&w, message, plan)
    if end != NULL:
        end[0] = w.c.at - w.c.base
    elif w.c.at != w.c.end and not lenient:
        kw_fail(&w.f, &w.c, KW_TRAILING, w.c.end - w.c.at)
        raise failed(&w, message, plan)
    return result


cdef object failed(Walk *w, Message message, const kw_plan *plan):
    """The error of a failed walk, with its path."""
    cdef int i
    if w.f.why == KW_PYTHON:
        if w.raised == NULL:
            raise_set()
        error = <object>w.raised
        raw_decref(w.raised)
        return error
    pieces = []
    for i in range(w.f.depth):
        piece = w.f.path[i]
        pieces.append(f"[{piece.index}]" if piece.field == NULL else f".{<object>piece.field.name}")
    path = "".join(reversed(pieces))
    return decode_error(w.f.why, w.f.number, w.f.left, w.f.offset, path, f"{message.name} v{plan.version}")


def decode(message, version, data, *, bint lenient=False, bint views=False):
    """Decodes one message; it must fill the data.

    message: its name ("FetchRequest") or class; version: int; data: bytes or any other contiguous buffer.
    lenient: accepts whatever Kafka 4.4's own classes accept (trailing bytes, overlong varints, bad UTF-8, ...), where
    strict decoding accepts only what is written back byte for byte.
    views: bytes and records fields are memoryviews over data, which they keep alive.
    Raises DecodeError (offset, path, reason) and UnsupportedVersionError.
    """
    cdef Message found = find(message)
    return over(found, found.at(version), data, 0, lenient, views, NULL)


def decode_from(message, version, data, position=0, *, bint lenient=False, bint views=False):
    """Decodes the message that starts at a position: (message, position behind it). Else as decode."""
    cdef Message found = find(message)
    cdef Py_ssize_t end = 0
    made = over(found, found.at(version), data, position, lenient, views, &end)
    return made, end


cdef object over(Message found, const kw_plan *plan, object data, object position, bint lenient, bint views,
                 Py_ssize_t *end):
    cdef Py_buffer buffer
    cdef Py_ssize_t at = clipped(position)
    owner = memoryview(data) if views else data if type(data) is bytes else None
    if type(data) is bytes:
        check_position(at, PyBytes_GET_SIZE(data))
        return walk(found, plan, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), at, lenient,
                    views, owner, end)
    # views count from the bytes that their owner has: asked again, an object may give others
    PyObject_GetBuffer(owner if views else data, &buffer, PyBUF_SIMPLE)
    try:
        check_position(at, buffer.len)
        return walk(found, plan, <const uint8_t *>buffer.buf, buffer.len, at, lenient, views, owner, end)
    finally:
        PyBuffer_Release(&buffer)


cdef int check_position(Py_ssize_t at, Py_ssize_t size) except -1:
    if at < 0 or at > size:
        raise DecodeError(f"position {at} is outside the {size} bytes", offset=at)
    return 0
