# The records that a batch is built of, for kwire_c.build.
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from kwire_c.records cimport Record


cdef struct Row:
    # one record to write; sizes of -1 are null
    int64_t offset
    int64_t stamp
    const uint8_t *key
    const uint8_t *value
    int32_t key_size
    int32_t value_size
    int32_t headers
    int32_t headers_size  # in Rows.scratch
    uint8_t attributes


cdef class Rows:
    cdef list records       # the user's, or a copy of it
    cdef bint is_copy
    cdef PyObject *current  # the row that is read
    cdef object held        # the same, from the copy on
    cdef list kept          # what the spans of the row read last point into
    cdef uint8_t *scratch   # its headers, as they go on the wire
    cdef Py_ssize_t room
    cdef int64_t offset     # of the next row that has none
    cdef int64_t max_stamp  # of the rows read

    cdef int read(self, Py_ssize_t index, Row *row) except -1
    cdef int copy(self) except -1
    cdef int read_tuple(self, Py_ssize_t index, PyObject *item, Row *row) except -1
    cdef int read_record(self, Record record, Row *row) except -1
    cdef int read_headers(self, Py_ssize_t index, object headers, Row *row) except -1
    cdef int reserve(self, Py_ssize_t size) except -1
    cdef int32_t span(self, PyObject *value, const uint8_t **data, Py_ssize_t index) except -2
