"""Declarations of the walker that writes."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from kwire_c.plan cimport kw_failure, kw_plan


cdef enum:
    LONG = 2048   # bytes of a field that go straight into the result
    PIECES = 128


cdef struct Piece:
    size_t at     # where it belongs among the bytes written so far
    const void *data
    size_t size
    PyObject *owner  # of the data: held until it is copied


cdef struct Out:
    uint8_t *start
    uint8_t *at
    uint8_t *end
    size_t long_bytes
    int n_pieces
    int inside_tag  # a tag's size counts all bytes written: no pieces then
    Piece[PIECES] pieces
    kw_failure f
    PyObject *reason  # why it failed: a str, or NULL
    PyObject *raised  # the exception that came instead; NULL for the one that is set


cdef int grow(Out *o, size_t need) noexcept
cdef int put_struct(Out *o, const kw_plan *plan, char *self) noexcept
cdef void let_go(Out *o) noexcept
