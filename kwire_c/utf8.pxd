# Text of bytes that are no sound UTF-8, as Java reads them.
from libc.stdint cimport uint8_t


cdef extern from "utf8.h" nogil:
    size_t kw_utf8_clean(const uint8_t *data, size_t size, uint8_t *out)


cdef extern from "Python.h":
    object PyBytes_FromStringAndSize(const char *data, Py_ssize_t size)
    char *PyBytes_AS_STRING(object data)
    object PyUnicode_DecodeUTF8(const char *data, Py_ssize_t size, const char *errors)


cdef inline object java_text(const uint8_t *data, Py_ssize_t size):
    """The string that Java's String(bytes, UTF_8) makes."""
    clean = PyBytes_FromStringAndSize(NULL, 3 * size)
    cdef char *start = PyBytes_AS_STRING(clean)
    return PyUnicode_DecodeUTF8(start, kw_utf8_clean(data, size, <uint8_t *> start), NULL)
