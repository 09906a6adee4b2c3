"""Declarations of the walker that reads."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from kwire_c.plan cimport kw_cursor, kw_failure, kw_plan


cdef extern from *:
    """
    /* The exception that is set comes out of the caller; where there is none, memory was short. */
    static inline int kw_raise_set(void) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    """
    int raise_set "kw_raise_set"() except -1


# Arrays of int32 that were read last: replicas repeat from partition to partition, so their tuples are shared.
cdef enum:
    ARRAYS = 16
    LONG = 4096  # bytes of a field that is copied only when looked at


cdef struct Known:
    const uint8_t *data
    int64_t count
    PyObject *made  # borrowed from the message that is being made


cdef struct Walk:
    kw_cursor c
    kw_failure f
    int lenient
    PyObject *owner  # what keeps the bytes alive that are not copied; NULL: all are
    bint views       # whether none are, or only long ones, until somebody looks at them
    PyObject *raised  # with KW_PYTHON: the exception, or NULL where it is the one that is set
    int known        # whether the arrays below are set up
    Known[ARRAYS] arrays


cdef int read_struct(Walk *w, const kw_plan *plan, char *self) noexcept
