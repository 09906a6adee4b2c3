/* Include Python.h first. Rows of plain Python objects, read without running any Python code. */
#ifndef KWIRE_PLAIN_ROWS_H
#define KWIRE_PLAIN_ROWS_H

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
   into room bytes: 1. No Python code is run and no reference is counted, as counting writes to every object of
   every row. 0: another row, for the general reader. */
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

/* Writes plain rows from index on, while they are plain and there is room; returns the index of the first row not
   written. next: the offset that it gets; the offsets before it are within 31 bits of base. */
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

#endif
