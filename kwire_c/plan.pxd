"""The registry of messages."""

from kwire_c.core cimport kw_class, kw_plan


cdef class Message:
    """One message: its schema, its classes, and a plan for each version, made at the first use of the version."""
    cdef readonly str name
    cdef readonly object schema
    cdef readonly object root
    cdef readonly int first, last
    cdef kw_class *top
    cdef dict classes
    cdef dict renamed  # (label, JSON name) -> ((old JSON name, versions), ...)
    cdef const kw_plan **plans

    cdef int make(self, schema) except -1
    cdef kw_class *declare(self, int count) except NULL
    cdef int lay_out(self, kw_class *cls, tuple fields) except -1
    cdef bint spread(self, kw_class *cls) except? True
    cdef object name_type(self, kw_class *cls, str label, tuple fields)
    cdef const kw_plan *at(self, object version) except NULL


cdef Message find(object message)
cdef Message of_instance(object message)
