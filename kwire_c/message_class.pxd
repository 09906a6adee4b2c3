"""Instances of message classes, and the checks of a value that is stored in a field."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from kwire_c.core cimport kw_class, kw_field


cdef class Struct:
    """Base class of all message classes."""


cdef class Span:
    """A part of a buffer, which it keeps alive: the content of a bytes field until it is read, with views=True."""
    cdef object owner
    cdef const uint8_t *data
    cdef Py_ssize_t size, position
    cdef bint viewed  # whether the field reads as a memoryview, else as bytes


cdef Span new_span()  # to be filled
cdef PyObject *blank(const kw_class *cls) except NULL
cdef PyObject *fallback(const kw_field *field) except NULL
cdef int is_equal(PyObject *a, PyObject *b, const kw_class *cls) except -1
cdef int slot_equal(const kw_field *field, PyObject *a, PyObject *b) except -1
cdef object read_native(int kind, const uint8_t *place)
cdef void put(PyObject *self, size_t at, object value) noexcept
cdef bint is_default_slot(const kw_field *field, PyObject *self) except? True
cdef object make_uuid(const uint8_t *data)
cdef bint is_uuid(object value) except? True
cdef int take_uuid(object value, uint8_t *to) except -1
cdef object make_type(kw_class *cls, str label, tuple names, str doc, list docs, str kind)
cdef kw_class *class_of(object value) except? NULL
cdef object take_bytes(const kw_field *field, object value)
cdef object take_ints(const kw_field *field, object value)
cdef object take_list(const kw_field *field, object value)
cdef dict take_tags(str label, object value)
cdef list tags_list(PyObject *item)
cdef dict tags_dict(PyObject *item)
cdef int unknown_equal(PyObject *a, PyObject *b) except -1
cdef int place_number(const kw_field *field, int kind, object value, uint8_t *place) except -1
