# Integers of callers, who may pass any int.
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t


cdef inline int64_t clipped(object number) except? -1:
    """The number, or what comes nearest in 64 bits; TypeError for anything but an integer."""
    cdef int overflow = 0
    cdef int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow)
    return value if overflow == 0 else INT64_MAX if overflow > 0 else INT64_MIN


cdef inline int64_t bounded(object value, str name, int64_t low, int64_t high) except? -2:
    """A field's value, of the width that it has on the wire; EncodeError for any other number."""
    cdef int overflow = 0
    cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if not overflow and low <= number <= high:
        return number
    from kwire_c.errors import EncodeError

    found = "a number past 64 bits" if overflow else brief(value)
    raise EncodeError(f"{found} is not between {low} and {high}", path=name)


cdef inline str brief(object value):
    """A value for an error's text: see kwire_c.printable."""
    from kwire_c.printable import brief as said

    return said(value)
