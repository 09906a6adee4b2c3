# Checks of the buffers that callers pass.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_CheckBuffer
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from kwire_c.core cimport raise_set, raw_get_buffer


cdef inline int take_buffer(object data, Py_buffer *view, str name) except -1:
    """The contiguous buffer of an argument. Raises TypeError if it has none, BufferError if it is not contiguous."""
    if raw_get_buffer(<PyObject *>data, view, PyBUF_SIMPLE) < 0:
        return refuse_buffer(data, name)
    if view.itemsize != 1:
        refuse_objects(data, view, name)
    return 0


cdef inline int refuse_objects(object data, Py_buffer *view, str name) except -1:
    """Release the buffer and raise TypeError if it holds addresses of Python objects, as numpy's of dtype object."""
    try:
        if not holds_objects(data):
            return 0
    except BaseException:
        PyBuffer_Release(view)
        raise
    PyBuffer_Release(view)
    raise TypeError(f"{name} must be bytes or another buffer, not an array of objects")


cdef inline bint holds_objects(object data) except -1:
    """Whether the items of a buffer are Python objects."""
    try:
        letters = memoryview(data).format
        return "O" in letters and "O" in "".join(letters.split(":")[::2])  # the :name: of a field may have one
    except (BufferError, TypeError, ValueError):  # a format that Python cannot say, as numpy's of dates
        return False


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
    """A memoryview of an argument. Raises TypeError if it has none, BufferError for items that Python cannot read."""
    if not PyObject_CheckBuffer(data):
        raise TypeError(f"{name} must be bytes or another buffer, not {type(data).__name__}")
    try:
        return memoryview(data)
    except (BufferError, ValueError) as error:  # of numpy's dates, and of what was released
        raise BufferError(f"{name} must be a contiguous buffer: {error}") from None


cdef inline bint is_no_row(object value) except -1:
    """Whether it is an array that iter() refuses: numpy's of no dimensions, a memoryview of none or several."""
    if isinstance(value, memoryview):
        return value.ndim != 1
    return PyObject_CheckBuffer(value) and getattr(value, "ndim", 1) == 0


cdef inline int fill_buffer(Py_buffer *view, object owner, void *data, Py_ssize_t size, bint readonly,
                            int flags) except -1:
    """PyBuffer_FillInfo in a __getbuffer__. Raises BufferError for flags that the bytes do not have."""
    PyBuffer_FillInfo(view, owner, data, size, readonly, flags)
    Py_DECREF(None)  # to which Cython has put a reference into the view, which was just overwritten
    return 0
