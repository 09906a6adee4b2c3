# Positions and limits of callers, who may pass any int.
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


cdef inline int64_t clipped(object number) except? -1:
    """The number, or what comes nearest in 64 bits; TypeError for what is no integer."""
    cdef int overflow = 0
    cdef int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow)
    return value if overflow == 0 else INT64_MAX if overflow > 0 else INT64_MIN
