# Checks of the integers that callers pass, which may be of any size.
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.number cimport PyIndex_Check
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t


cdef inline int64_t clipped(object number, str name="number") except? -1:
    """The number clipped to 64 bits. name: of the argument. Raises TypeError if it is not an integer."""
    cdef int overflow = 0
    cdef int64_t value
    if not PyIndex_Check(number):
        raise TypeError(f"{name} must be an int, not {type(number).__name__}")
    try:
        value = PyLong_AsLongLongAndOverflow(number, &overflow)
    except TypeError as error:  # of an array
        raise TypeError(f"{name} must be an int, not {type(number).__name__}") from error
    return value if overflow == 0 else INT64_MAX if overflow > 0 else INT64_MIN


cdef inline int64_t bounded(object value, str name, int64_t low, int64_t high) except? -2:
    """The number, if it is between low and high. Raises EncodeError else, TypeError if it is not an integer."""
    cdef int overflow = 0
    cdef int64_t number
    if not PyIndex_Check(value):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    try:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
    except TypeError as error:  # of an array
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from error
    if not overflow and low <= number <= high:
        return number
    from kwire_c.errors import EncodeError

    text = "a number past 64 bits" if overflow else brief(value)
    raise EncodeError(f"{text} is not between {low} and {high}", path=name)


cdef inline str brief(object value):
    """A value for an error's text: see kwire_c.printable."""
    from kwire_c.printable import brief as brief_text

    return brief_text(value)
