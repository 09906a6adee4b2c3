# The records that a batch is built of, for kwire_c.batch_builder.
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kwire_c.record_batch cimport Record


cdef extern from *:
    """
    #include "rows.h"

    static inline int kw_plain_bytes(PyObject *value, const uint8_t **data, int32_t *size) {
        if (value == Py_None) {
            *size = -1;
            return 1;
        }
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) > INT32_MAX) return 0;
        *data = (const uint8_t *)PyBytes_AS_STRING(value);
        *size = (int32_t)PyBytes_GET_SIZE(value);
        return 1;
    }

    /* A row (timestamp, key, value[, headers]) of exact ints, bytes, ASCII strs, tuples and lists, whose headers fit
       into room bytes: 1. Nothing is called that could run Python code, and no reference is counted: to count is to
       write to every object of every row. 0: it is another row, which is read with care. */
    static inline int kw_plain_row(PyObject *item, kw_row *row, uint8_t *scratch, Py_ssize_t room) {
        if (!PyTuple_CheckExact(item)) return 0;
        const Py_ssize_t width = PyTuple_GET_SIZE(item);
        int overflow;
        if (width != 3 && width != 4) return 0;
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(item, 0))) return 0;
        row->stamp = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(item, 0), &overflow);
        if (overflow || !kw_plain_bytes(PyTuple_GET_ITEM(item, 1), &row->key, &row->key_size) ||
            !kw_plain_bytes(PyTuple_GET_ITEM(item, 2), &row->value, &row->value_size))
            return 0;
        row->headers = row->headers_size = 0;
        row->attributes = 0;
        if (width == 3) return 1;
        PyObject *headers = PyTuple_GET_ITEM(item, 3);
        if (headers == Py_None) return 1;
        if (!PyList_CheckExact(headers)) return 0;
        uint8_t *at = scratch, *end = scratch + room;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(headers); i++) {
            PyObject *pair = PyList_GET_ITEM(headers, i);
            if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return 0;
            PyObject *name = PyTuple_GET_ITEM(pair, 0);
            const uint8_t *content = NULL;
            int32_t size;
            if (!PyUnicode_CheckExact(name) || !PyUnicode_IS_COMPACT_ASCII(name) ||
                !kw_plain_bytes(PyTuple_GET_ITEM(pair, 1), &content, &size))
                return 0;
            const int64_t length = PyUnicode_GET_LENGTH(name), bytes = size > 0 ? size : 0;
            if (length + bytes + 10 > end - at) return 0;
            at = kw_write_uvarint(at, kw_zigzag32((int32_t)length));
            kw_copy(at, PyUnicode_DATA(name), (size_t)length);
            at = kw_write_uvarint(at + length, kw_zigzag32(size));
            if (bytes) kw_copy(at, content, (size_t)bytes);
            at += bytes;
        }
        row->headers = (int32_t)PyList_GET_SIZE(headers);
        row->headers_size = (int32_t)(at - scratch);
        return 1;
    }

    static inline uint8_t *kw_write_record(uint8_t *p, const kw_row *row, int64_t body, uint64_t stamp, int32_t delta,
                                           const uint8_t *headers) {
        p = kw_write_row(p, row, body, stamp, delta);
        if (row->headers_size) kw_copy(p, headers, (size_t)row->headers_size);
        return p + row->headers_size;
    }

    /* Plain rows from index on, as long as they are that and there is room: the index of the first not written.
       next: the offset that it gets; the offsets up to then are within 31 bits of base. */
    static inline Py_ssize_t kw_write_plain_rows(PyObject *rows, Py_ssize_t index, Py_ssize_t count, uint8_t **at,
                                                 const uint8_t *end, int64_t base, int64_t base_stamp,
                                                 int64_t *next, int64_t *max_stamp, uint8_t *scratch,
                                                 Py_ssize_t room) {
        kw_row row = {0};
        for (; index < count && index < PyList_GET_SIZE(rows); index++) {
            const int64_t far = (int64_t)((uint64_t)*next - (uint64_t)base);
            if (*next < base || far < 0 || far >= INT32_MAX) break;
            if (!kw_plain_row(PyList_GET_ITEM(rows, index), &row, scratch, room)) break;
            const uint64_t stamp = kw_zigzag64((int64_t)((uint64_t)row.stamp - (uint64_t)base_stamp));
            const int64_t body = kw_body_size(&row, stamp, (int32_t)far);
            if (body + 10 > end - *at) break;
            *at = kw_write_record(*at, &row, body, stamp, (int32_t)far, scratch);
            *next = (int64_t)((uint64_t)*next + 1);
            if (row.stamp > *max_stamp) *max_stamp = row.stamp;
        }
        return index;
    }
    """
    ctypedef struct Row "kw_row":
        int64_t offset
        int64_t stamp
        const uint8_t *key
        const uint8_t *value
        int32_t key_size
        int32_t value_size
        int32_t headers
        int32_t headers_size
        uint8_t attributes

    bint kw_offset_fits(int64_t offset, int64_t base, int32_t *delta)
    bint kw_plain_row(PyObject *item, Row *row, uint8_t *scratch, Py_ssize_t room)
    int64_t kw_body_size(const Row *row, uint64_t stamp, int32_t delta)
    uint8_t *kw_write_record(uint8_t *p, const Row *row, int64_t body, uint64_t stamp, int32_t delta,
                             const uint8_t *headers)
    Py_ssize_t kw_write_plain_rows(PyObject *rows, Py_ssize_t index, Py_ssize_t count, uint8_t **at, const uint8_t *end,
                                   int64_t base, int64_t base_stamp, int64_t *next, int64_t *max_stamp,
                                   uint8_t *scratch, Py_ssize_t room)


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
