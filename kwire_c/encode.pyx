"""encode: messages to bytes."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from kwire_c.report import encode_error

from kwire_c.integers cimport brief
from kwire_c.plan cimport Message, find, kw_plan
from kwire_c.reader cimport raise_set
from kwire_c.writer cimport Out, grow, let_go, put_struct

cdef extern from "Python.h":
    object PyBytes_FromStringAndSize(const char *data, Py_ssize_t size)
    void raw_decref "Py_DECREF"(PyObject *)


# One buffer is kept between calls. Who encodes takes it, so a call within a call, or another thread, makes its own.
cdef uint8_t *_spare = NULL
cdef size_t _spare_size = 0
cdef size_t KEEP = 1 << 20


cdef object written(Message message, const kw_plan *plan, PyObject *self, bytes before):
    """The bytes of a message, behind those of `before`."""
    global _spare, _spare_size
    cdef Out o
    cdef size_t size = _spare_size
    cdef int status = 0
    o.start = o.at = _spare
    o.end, o.reason, o.raised, o.f.depth = o.start + size, NULL, NULL, 0
    o.long_bytes, o.n_pieces, o.inside_tag = 0, 0, 0
    _spare, _spare_size = NULL, 0
    if before is not None:
        status = grow(&o, PyBytes_GET_SIZE(before))
        if status == 0:
            memcpy(o.at, PyBytes_AS_STRING(before), PyBytes_GET_SIZE(before))
            o.at += PyBytes_GET_SIZE(before)
    if status == 0:
        status = put_struct(&o, plan, <char *>self)
    try:
        if status < 0:
            raise failed(&o, message, plan)
        return gathered(&o) if o.n_pieces else PyBytes_FromStringAndSize(<const char *>o.start, o.at - o.start)
    finally:
        let_go(&o)
        size = o.end - o.start
        if size <= KEEP and size > _spare_size:
            free(_spare)
            _spare, _spare_size = o.start, size
        else:
            free(o.start)


cdef object gathered(Out *o):
    """The result, with the long pieces where they belong."""
    cdef size_t used = o.at - o.start, at = 0
    cdef int i
    result = PyBytes_FromStringAndSize(NULL, used + o.long_bytes)
    cdef char *to = PyBytes_AS_STRING(result)
    for i in range(o.n_pieces):
        memcpy(to, o.start + at, o.pieces[i].at - at)
        to += o.pieces[i].at - at
        memcpy(to, o.pieces[i].data, o.pieces[i].size)
        to += o.pieces[i].size
        at = o.pieces[i].at
    memcpy(to, o.start + at, used - at)
    return result


cdef object failed(Out *o, Message message, const kw_plan *plan):
    cdef int i
    if o.raised != NULL:
        error = <object>o.raised
        raw_decref(o.raised)
        return error
    if o.reason == NULL:
        raise_set()
    reason = <object>o.reason
    raw_decref(o.reason)
    pieces = []
    for i in range(o.f.depth):
        piece = o.f.path[i]
        pieces.append(f"[{piece.index}]" if piece.field == NULL else f".{<object>piece.field.name}")
    return encode_error(reason, "".join(reversed(pieces)), f"{message.name} v{plan.version}")


def encode(message, version):
    """The bytes of a message at a version.

    A field that the version lacks is dropped where it holds its default or may be ignored.
    Raises EncodeError (path, reason) for what the version cannot carry, UnsupportedVersionError.
    """
    cdef Message found = find(message)
    if isinstance(message, (str, type)):
        raise TypeError(f"expected a message, got {brief(message)}")
    return written(found, found.at(version), <PyObject *>message, None)


def encode_behind(bytes before not None, message, version):
    """The bytes of a message behind those of its header."""
    cdef Message found = find(message)
    if isinstance(message, (str, type)):
        raise TypeError(f"expected a message, got {brief(message)}")
    return written(found, found.at(version), <PyObject *>message, before)
