"""The records that a batch is built of, as the user gave them: read one after another."""

from kwire_c.errors import EncodeError

from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cimport cython

from kwire_c.batch cimport KW_BATCH_OK, kw_header_read, kw_heads
from kwire_c.block cimport Block, pin
from kwire_c.varint cimport kw_copy, kw_write_uvarint, kw_zigzag32
from kwire_c.record_batch cimport Record


cdef extern from "Python.h":
    # with borrowed references: to count them is to write to every object of every row
    PyObject *Py_None
    bint PyBytes_CheckExact(PyObject *value)
    bint PyList_CheckExact(PyObject *items)
    bint PyLong_CheckExact(PyObject *value)
    long long PyLong_AsLongLongAndOverflow(PyObject *value, int *overflow) except? -1
    bint PyTuple_CheckExact(PyObject *items)
    char *PyBytes_AS_STRING(PyObject *value)
    Py_ssize_t PyBytes_GET_SIZE(PyObject *value)
    PyObject *PyList_GET_ITEM(PyObject *items, Py_ssize_t index)
    Py_ssize_t PyList_GET_SIZE(PyObject *items)
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t index)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items)
    const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size)
    void PyErr_Clear()


@cython.final
cdef class Rows:
    """The records of one batch, read in order."""

    def __cinit__(self, list records, int64_t base_offset):
        self.records = records
        self.kept = []
        self.offset = base_offset
        self.max_stamp = INT64_MIN
        self.reserve(256)

    def __dealloc__(self):
        free(self.scratch)

    cdef int read(self, Py_ssize_t index, Row *row) except -1:
        """The row at index; rows are read in order. Its spans hold until the next one is read."""
        cdef PyObject *item
        if index >= PyList_GET_SIZE(<PyObject *> self.records):
            raise EncodeError("records changed while they were read", path="records")
        if self.is_copy:
            self.kept.clear()
        self.current = item = PyList_GET_ITEM(<PyObject *> self.records, index)
        if index and self.offset == INT64_MIN:
            raise EncodeError("no offset is left behind 2^63 - 1", path=f"records[{index}].offset")
        row.offset = self.offset
        if kw_plain_row(item, row, self.scratch, self.room):
            self.offset = <int64_t> (<uint64_t> row.offset + 1)
            self.max_stamp = max(self.max_stamp, row.stamp)
            return 0
        row.headers = 0
        row.headers_size = 0
        row.attributes = 0
        if PyTuple_CheckExact(item):
            self.read_tuple(index, item, row)
        elif isinstance(<object> item, Record):
            self.read_record(<Record> item, row)
            if row.offset == -1:  # made without one
                row.offset = self.offset
            if index and row.offset < self.offset:
                raise EncodeError(f"offset {row.offset} does not rise above {self.offset - 1}",
                                  path=f"records[{index}].offset")
        else:
            self.copy()
            self.kept.append(tuple(<object> item))
            self.read_tuple(index, PyList_GET_ITEM(<PyObject *> self.kept, 0), row)
        self.offset = <int64_t> (<uint64_t> row.offset + 1)
        self.max_stamp = max(self.max_stamp, row.stamp)
        return 0

    cdef int copy(self) except -1:
        """Before anybody else's code runs, which could take rows out of the user's list. (So can a finalizer, here.)"""
        if not self.is_copy:
            self.held = <object> self.current if self.current != NULL else None
            self.records = list(self.records)
            self.is_copy = True
        return 0

    cdef int read_tuple(self, Py_ssize_t index, PyObject *item, Row *row) except -1:
        """(timestamp, key, value[, headers])"""
        cdef Py_ssize_t width = PyTuple_GET_SIZE(item)
        cdef PyObject *field
        cdef int overflow = 0
        if width != 3 and width != 4:
            raise EncodeError(f"a record is (timestamp, key, value[, headers]), not {width} values",
                              path=f"records[{index}]")
        field = PyTuple_GET_ITEM(item, 0)
        if not PyLong_CheckExact(field):
            self.copy()
        row.stamp = PyLong_AsLongLongAndOverflow(field, &overflow)
        if overflow:
            raise EncodeError("timestamp does not fit 64 bits", path=f"records[{index}].timestamp")
        row.key_size = self.span(PyTuple_GET_ITEM(item, 1), &row.key, index)
        row.value_size = self.span(PyTuple_GET_ITEM(item, 2), &row.value, index)
        if width == 4:
            field = PyTuple_GET_ITEM(item, 3)
            if field != Py_None and (not PyList_CheckExact(field) or PyList_GET_SIZE(field)):
                self.read_headers(index, <object> field, row)
        return 0

    cdef int read_record(self, Record record, Row *row) except -1:
        cdef const kw_heads *home = &record.batch.heads
        cdef uint32_t at = record.head.headers_at, key_at = 0, value_at = 0
        cdef int32_t key_size = 0, value_size = 0
        row.offset = record.head.offset
        row.stamp = record.head.stamp
        row.attributes = <uint8_t> record.head.attributes
        row.key = home.block + record.head.key_at
        row.key_size = record.head.key_size
        row.value = home.block + record.head.value_at
        row.value_size = record.head.value_size
        row.headers = record.head.headers
        for _ in range(record.head.headers):
            if kw_header_read(home.block, home.size, &at, &key_at, &key_size, &value_at, &value_size) != KW_BATCH_OK:
                raise EncodeError("headers changed under the record", path="records.headers")
        row.headers_size = at - record.head.headers_at
        if row.headers_size:
            self.reserve(row.headers_size)
            memcpy(self.scratch, home.block + record.head.headers_at, row.headers_size)
        return 0

    cdef int read_headers(self, Py_ssize_t index, object headers, Row *row) except -1:
        """Pairs of (str, buffer or None), to scratch."""
        cdef const char *text
        cdef const uint8_t *content = NULL
        cdef Py_ssize_t text_size = 0, used = 0
        cdef int32_t size
        cdef uint8_t *end
        if not PyList_CheckExact(<PyObject *> headers):
            self.copy()
            headers = list(headers.items() if isinstance(headers, dict) else headers or ())
        for pair in headers:
            if not PyTuple_CheckExact(<PyObject *> pair):
                self.copy()
            name, value = pair
            if not isinstance(name, str):
                raise TypeError(f"a header key is a str, not {type(name).__name__}")
            text = PyUnicode_AsUTF8AndSize(<PyObject *> name, &text_size)
            if text == NULL:
                PyErr_Clear()
                raise EncodeError("header key is no valid text", path=f"records[{index}].headers")
            size = self.span(<PyObject *> value, &content, index)
            if used + text_size + max(size, 0) > INT32_MAX - 10:
                raise EncodeError("headers are over 2 GiB", path=f"records[{index}].headers")
            self.reserve(used + 10 + text_size + max(size, 0))
            end = kw_write_uvarint(self.scratch + used, kw_zigzag32(<int32_t> text_size))
            kw_copy(end, <const uint8_t *> text, text_size)
            end = kw_write_uvarint(end + text_size, kw_zigzag32(size))
            if size > 0:
                kw_copy(end, content, size)
                end += size
            used = end - self.scratch
            row.headers += 1
        row.headers_size = <int32_t> used
        return 0

    cdef int reserve(self, Py_ssize_t size) except -1:
        """Room for so many bytes of headers."""
        cdef void *grown
        if size > self.room:
            grown = realloc(self.scratch, 2 * size + 256)
            if grown == NULL:
                raise MemoryError
            self.scratch = <uint8_t *> grown
            self.room = 2 * size + 256
        return 0

    cdef inline int32_t span(self, PyObject *value, const uint8_t **data, Py_ssize_t index) except -2:
        """Where the bytes of a key, value or header lie, and their size; -1 for None, which is null."""
        cdef Py_ssize_t size
        cdef Block block
        if PyBytes_CheckExact(value):
            data[0] = <const uint8_t *> PyBytes_AS_STRING(value)
            size = PyBytes_GET_SIZE(value)
        elif value == Py_None:
            data[0] = NULL
            size = -1
        else:
            self.copy()
            block = pin(<object> value)
            self.kept.append(block)
            data[0] = block.data
            size = block.size
        if size > INT32_MAX:
            raise EncodeError("key, value or header is over 2 GiB", path=f"records[{index}]")
        return <int32_t> size
