# Checks of the buffers that callers pass.
from cpython.buffer cimport PyBUF_SIMPLE, PyObject_CheckBuffer
from cpython.object cimport PyObject

from kwire_c.core cimport raise_set, raw_get_buffer


cdef inline int take_buffer(object data, Py_buffer *view, str name) except -1:
    """The contiguous buffer of an argument. Raises TypeError if it has none, BufferError if it is not contiguous."""
    if raw_get_buffer(<PyObject *>data, view, PyBUF_SIMPLE) < 0:
        return refuse_buffer(data, name)
    return 0


cdef inline int refuse_buffer(object data, str name) except -1:
    """Raise the error that is set, of an argument that gave no buffer, with the argument's name."""
    try:
        raise_set()
    except TypeError:
        if PyObject_CheckBuffer(data):
            raise
        raise TypeError(f"{name} must be bytes or another buffer, not {type(data).__name__}") from None
    except (BufferError, ValueError) as error:
        raise BufferError(f"{name} must be a contiguous buffer: {error}") from None


cdef inline object take_view(object data, str name):
    """A memoryview of an argument. Raises TypeError if it has no buffer."""
    if not PyObject_CheckBuffer(data):
        raise TypeError(f"{name} must be bytes or another buffer, not {type(data).__name__}")
    return memoryview(data)
