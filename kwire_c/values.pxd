"""Declarations of the checks that a value passes on its way into a field."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from kwire_c.plan cimport kw_field


cdef object take_bytes(const kw_field *field, object value)
cdef object take_ints(const kw_field *field, object value)
cdef object take_list(const kw_field *field, object value)
cdef dict take_tags(str label, object value)
cdef list tags_list(PyObject *item)
cdef dict tags_dict(PyObject *item)
cdef int unknown_equal(PyObject *a, PyObject *b) except -1
cdef int place_number(const kw_field *field, int kind, object value, uint8_t *place) except -1
