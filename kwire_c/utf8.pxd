# Bytes that are not valid UTF-8 as a string, as Java reads them.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t

from kwire_c.core cimport kw_utf8_clean


cdef inline object java_text(const uint8_t *data, Py_ssize_t size):
    """The string that Java's new String(bytes, UTF_8) gives."""
    clean = PyBytes_FromStringAndSize(NULL, 3 * size)
    cdef char *start = PyBytes_AS_STRING(clean)
    return PyUnicode_DecodeUTF8(start, kw_utf8_clean(data, size, <uint8_t *> start), NULL)
