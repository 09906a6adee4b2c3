"""Declarations of the instances of message classes: made, read and written by offset."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint8_t

from kwire_c.plan cimport kw_class, kw_field



cdef extern from *:
    """
    #define KW_SLOT(self, at) (*(PyObject **)((char *)(self) + (at)))
    #define KW_PLACE(self, at) ((uint8_t *)(self) + (at))
    #define KW_UNKNOWN_AT ((uint32_t)sizeof(PyObject))
    """
    PyObject *KW_SLOT(void *self, size_t at) nogil
    uint8_t *KW_PLACE(void *self, size_t at) nogil
    const size_t KW_UNKNOWN_AT


cdef class Struct:
    """What all message classes have in common."""


cdef class Span:
    """A part of a buffer that stays alive, not yet looked at: what views=True leaves in bytes fields."""
    cdef object owner
    cdef const uint8_t *data
    cdef Py_ssize_t size, position


cdef PyObject *new_instance(const kw_class *cls) noexcept
cdef PyObject *blank(const kw_class *cls) except NULL
cdef PyObject *fallback(const kw_field *field) except NULL
cdef int is_equal(PyObject *a, PyObject *b, const kw_class *cls) except -1
cdef int slot_equal(const kw_field *field, PyObject *a, PyObject *b) except -1
cdef object read_native(int kind, const uint8_t *place)
cdef void put(PyObject *self, size_t at, object value) noexcept
cdef bint is_default_slot(const kw_field *field, PyObject *self) except? True
cdef object make_uuid(const uint8_t *data)
cdef object make_type(kw_class *cls, str label, tuple names, str doc, list docs)
cdef kw_class *class_of(object value) except? NULL


cdef extern from *:
    """
    static inline void *kw_closure(PyTypeObject *type) {
        return type->tp_getset == NULL ? NULL : type->tp_getset[0].closure;
    }
    """
    void *kw_closure(PyTypeObject *type)
