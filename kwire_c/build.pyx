"""Record batches of magic 0, 1 and 2: writing, as Kafka's MemoryRecordsBuilder does."""

import zlib

from kwire_c import codecs
from kwire_c.failure import EncodeError

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cimport cython

from kwire_c.batch cimport (
    KW_ATTR_CONTROL,
    KW_ATTR_DELETE_HORIZON,
    KW_ATTR_LOG_APPEND,
    KW_ATTR_TRANSACTIONAL,
    KW_BATCH_OK,
    KW_HEADER_V2,
    KW_LOG_OVERHEAD,
    kw_header_read,
    kw_heads,
)
from kwire_c.block cimport Block, pin
from kwire_c.crc32c cimport crc32c_update
from kwire_c.cursor cimport (
    kw_copy,
    kw_store16,
    kw_store32,
    kw_store64,
    kw_uvarint_size,
    kw_write_uvarint,
    kw_zigzag32,
    kw_zigzag64,
)
from kwire_c.records cimport Record, bounded


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
    PyObject *PyBytes_FromStringAndSize(char *content, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **content, Py_ssize_t size) except -1
    PyObject *PyList_GET_ITEM(PyObject *items, Py_ssize_t index)
    Py_ssize_t PyList_GET_SIZE(PyObject *items)
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t index)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items)
    const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size)
    void PyErr_Clear()
    void Py_XDECREF(PyObject *item)

cdef enum:
    MOST = 2147483647 - 64  # bytes of a batch

cdef object _compress = None
cdef dict _CODEC_NUMBERS = {name: number for number, name in enumerate(codecs.CODECS)}


def set_compressor(function):
    """Install compress(codec id, data, *, level, magic) -> bytes."""
    global _compress
    _compress = function


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


@cython.final
cdef class Rows:
    """The records of one batch, read in order."""

    cdef list records       # the user's, or a copy of it
    cdef bint is_copy
    cdef PyObject *current  # the row that is read
    cdef object held        # the same, from the copy on
    cdef list kept          # what the spans of the row read last point into
    cdef uint8_t *scratch   # its headers, as they go on the wire
    cdef Py_ssize_t room
    cdef int64_t offset     # of the next row that has none
    cdef int64_t max_stamp  # of the rows read

    def __cinit__(self, list records, int64_t base_offset):
        self.records = records
        self.kept = []
        self.offset = base_offset
        self.max_stamp = INT64_MIN

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


@cython.final
@cython.no_gc
cdef class Output:
    """Bytes in the making."""

    cdef PyObject *content
    cdef uint8_t *start
    cdef uint8_t *at   # where to write on
    cdef uint8_t *end

    def __dealloc__(self):
        Py_XDECREF(self.content)

    cdef inline int reserve(self, int64_t size, Py_ssize_t times, Py_ssize_t index) except -1:
        """Room for so many bytes more, which are record index; about so many records of this size are to come."""
        if size > self.end - self.at:
            if size > MOST - (self.at - self.start):
                raise EncodeError("batch is over 2 GiB", path=f"records[{index}]")
            self.grow(size, times * (size + 2))
        return 0

    cdef int grow(self, Py_ssize_t need, Py_ssize_t wish) except -1:
        cdef Py_ssize_t used = self.at - self.start
        cdef Py_ssize_t room = used + max(need, min(wish, used + (1 << 20)))
        if self.content == NULL:
            self.content = PyBytes_FromStringAndSize(NULL, room)
        else:
            _PyBytes_Resize(&self.content, room)
        self.start = <uint8_t *> PyBytes_AS_STRING(self.content)
        self.at = self.start + used
        self.end = self.start + room
        return 0

    cdef int skip(self, Py_ssize_t size) except -1:
        """Leaves room for what is written later."""
        self.reserve(size, 1, 0)
        self.at += size
        return 0

    cdef bytes finish(self):
        """The bytes; nothing can be written after this."""
        if self.content == NULL:
            return b""
        _PyBytes_Resize(&self.content, self.at - self.start)
        return <bytes> self.content


cdef inline bint _fits(int64_t offset, int64_t base, int32_t *delta) noexcept:
    """Whether an offset is near enough to the base offset: how far it is goes to delta."""
    cdef int64_t far = <int64_t> (<uint64_t> offset - <uint64_t> base)
    delta[0] = <int32_t> far
    return delta[0] == far and (offset < base) == (far < 0)


cdef int _write(Rows rows, Output out, Py_ssize_t count, int64_t base, int64_t *base_stamp,
                bint takes_stamp) except -1:
    """The records in the form of magic 2. With takes_stamp the first one's timestamp becomes the batch's base."""
    cdef Py_ssize_t i
    cdef Row row
    cdef int64_t body, size
    cdef int32_t delta = 0
    cdef uint64_t stamp
    cdef uint8_t *p
    for i in range(count):
        rows.read(i, &row)
        if i == 0 and takes_stamp:
            base_stamp[0] = row.stamp
        if not _fits(row.offset, base, &delta):
            raise EncodeError(f"offset {row.offset} is too far from the base offset {base}",
                              path=f"records[{i}].offset")
        stamp = kw_zigzag64(<int64_t> (<uint64_t> row.stamp - <uint64_t> base_stamp[0]))
        body = (1 + kw_uvarint_size(stamp) + kw_uvarint_size(kw_zigzag32(delta))
                + kw_uvarint_size(kw_zigzag32(row.key_size)) + <int64_t> max(row.key_size, 0)
                + kw_uvarint_size(kw_zigzag32(row.value_size)) + <int64_t> max(row.value_size, 0)
                + kw_uvarint_size(kw_zigzag32(row.headers)) + <int64_t> row.headers_size)
        size = body + kw_uvarint_size(<uint64_t> body << 1)
        out.reserve(size, count - i, i)
        p = kw_write_uvarint(out.at, <uint64_t> body << 1)
        p[0] = row.attributes
        p = kw_write_uvarint(p + 1, stamp)
        p = kw_write_uvarint(p, kw_zigzag32(delta))
        p = kw_write_uvarint(p, kw_zigzag32(row.key_size))
        if row.key_size > 0:
            kw_copy(p, row.key, row.key_size)
            p += row.key_size
        p = kw_write_uvarint(p, kw_zigzag32(row.value_size))
        if row.value_size > 0:
            kw_copy(p, row.value, row.value_size)
            p += row.value_size
        p = kw_write_uvarint(p, kw_zigzag32(row.headers))
        if row.headers_size:
            kw_copy(p, rows.scratch, row.headers_size)
            p += row.headers_size
        out.at = p
    return 0


cdef bytes _build_v2(list records, int codec, level, base_offset, bint log_append, producer_id, producer_epoch,
                     base_sequence, bint transactional, bint control, partition_leader_epoch, delete_horizon,
                     base_timestamp, max_timestamp, last_offset):
    """One batch of magic 2."""
    cdef int64_t base = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t newest, last
    cdef int32_t delta = 0
    cdef Py_ssize_t count = len(records)
    cdef bytes payload
    cdef int64_t base_stamp = -1
    cdef Rows rows = Rows(records, base)
    cdef Output out = Output()
    cdef uint16_t attributes = codec
    if delete_horizon is not None:
        base_stamp = bounded(delete_horizon, "delete_horizon", INT64_MIN, INT64_MAX)
        if base_timestamp is not None and base_timestamp != delete_horizon:
            raise EncodeError("with a delete horizon the base timestamp is the horizon", path="base_timestamp")
        attributes |= KW_ATTR_DELETE_HORIZON
    elif base_timestamp is not None:
        base_stamp = bounded(base_timestamp, "base_timestamp", INT64_MIN, INT64_MAX)
    if log_append:
        attributes |= KW_ATTR_LOG_APPEND
    if transactional:
        attributes |= KW_ATTR_TRANSACTIONAL
    if control:
        attributes |= KW_ATTR_CONTROL
    cdef int64_t producer = bounded(producer_id, "producer_id", INT64_MIN, INT64_MAX)
    cdef int64_t epoch = bounded(producer_epoch, "producer_epoch", -32768, 32767)
    cdef int64_t sequence = bounded(base_sequence, "base_sequence", -INT32_MAX - 1, INT32_MAX)
    cdef int64_t leader = bounded(partition_leader_epoch, "partition_leader_epoch", -INT32_MAX - 1, INT32_MAX)

    if not codec or not count:
        out.skip(KW_HEADER_V2)
    _write(rows, out, count, base, &base_stamp, base_timestamp is None and delete_horizon is None)
    if codec and count:
        payload = _compress(codec, out.finish(), level=level, magic=2)
        out = Output()
        out.skip(KW_HEADER_V2 + len(payload))
        memcpy(out.start + KW_HEADER_V2, <const uint8_t *> payload, len(payload))
    newest, last = -1, base
    if max_timestamp is not None:
        newest = bounded(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    elif count:
        newest = rows.max_stamp
    if last_offset is not None:
        last = bounded(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    elif count:
        last = <int64_t> (<uint64_t> rows.offset - 1)
    if not _fits(last, base, &delta):
        raise EncodeError(f"{last} is too far from the base offset {base}", path="last_offset")
    kw_store64(out.start, base)
    kw_store32(out.start + 8, <uint32_t> (out.at - out.start - KW_LOG_OVERHEAD))
    kw_store32(out.start + 12, <uint32_t> leader)
    out.start[16] = 2
    kw_store16(out.start + 21, attributes)
    kw_store32(out.start + 23, <uint32_t> delta)
    kw_store64(out.start + 27, base_stamp)
    kw_store64(out.start + 35, newest)
    kw_store64(out.start + 43, producer)
    kw_store16(out.start + 51, <uint16_t> epoch)
    kw_store32(out.start + 53, <uint32_t> sequence)
    kw_store32(out.start + 57, <uint32_t> count)
    kw_store32(out.start + 17, crc32c_update(0, out.start + 21, out.at - out.start - 21))
    return out.finish()


cdef uint8_t *_entry(uint8_t *p, int magic, int64_t offset, int64_t stamp, int attributes, const uint8_t *key,
                     Py_ssize_t key_size, const uint8_t *value, Py_ssize_t value_size) except NULL:
    """One entry of magic 0 or 1 to p; returns one past it."""
    cdef uint8_t *start = p
    cdef Py_ssize_t size = (22 if magic else 14) + max(key_size, 0) + max(value_size, 0)
    kw_store64(p, offset)
    kw_store32(p + 8, <uint32_t> size)
    p[16] = <uint8_t> magic
    p[17] = <uint8_t> attributes
    p += 18
    if magic:
        kw_store64(p, stamp)
        p += 8
    kw_store32(p, <uint32_t> key_size)
    p += 4
    if key_size > 0:
        memcpy(p, key, key_size)
        p += key_size
    kw_store32(p, <uint32_t> value_size)
    p += 4
    if value_size > 0:
        memcpy(p, value, value_size)
        p += value_size
    kw_store32(start + 12, zlib.crc32(PyMemoryView_FromMemory(<char *> start + 16, p - start - 16, PyBUF_READ)))
    return p


cdef bytes _build_legacy(list records, int magic, int codec, level, base_offset, bint log_append, max_timestamp,
                         last_offset):
    """Entries of magic 0 or 1, in one wrapper where there is a codec."""
    cdef int64_t base = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t newest, last, offset, size
    cdef int attributes = KW_ATTR_LOG_APPEND if log_append and magic else 0
    cdef bint are_appended = log_append and max_timestamp is not None
    cdef Py_ssize_t i, count = len(records)
    cdef bytes payload
    cdef Rows rows = Rows(records, base)
    cdef Output out = Output()
    cdef Row row
    if not count:
        raise EncodeError("magic 0 and 1 have no empty batches", path="records")
    newest = 0 if max_timestamp is None else bounded(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    rows.copy()  # a checksum lets other threads go on
    for i in range(count):
        rows.read(i, &row)
        if row.headers:
            raise EncodeError(f"magic {magic} has no headers", path=f"records[{i}].headers")
        size = (34 if magic else 26) + <int64_t> max(row.key_size, 0) + <int64_t> max(row.value_size, 0)
        out.reserve(size, count - i, i)
        if codec and magic:  # entries of a wrapper count from its first (KIP-31)
            offset = <int64_t> (<uint64_t> row.offset - <uint64_t> base)
        else:
            offset = row.offset
        out.at = _entry(out.at, magic, offset, newest if are_appended else row.stamp, attributes, row.key,
                        row.key_size, row.value, row.value_size)
    if not codec:
        return out.finish()
    last = row.offset if last_offset is None else bounded(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    payload = _compress(codec, out.finish(), level=level, magic=magic)
    out = Output()
    out.reserve(34 + len(payload), 1, 0)
    out.at = _entry(out.at, magic, last, rows.max_stamp if max_timestamp is None else newest, attributes | codec, NULL,
                    -1, <const uint8_t *> payload, <int32_t> len(payload))
    return out.finish()


@cython.binding(True)
@cython.embedsignature(False)
def build_batch(
    records, *, magic=2, codec="none", level=None, base_offset=0, timestamp_type="create", producer_id=-1,
    producer_epoch=-1, base_sequence=-1, transactional=False, control=False, partition_leader_epoch=-1,
    delete_horizon=None, base_timestamp=None, max_timestamp=None, last_offset=None,
):
    """One record batch of these records (magic 0 and 1: entries, in one wrapper where there is a codec).

    records: Record objects, or tuples (timestamp in milliseconds, key, value[, headers]) that get rising offsets from
    base_offset on; key and value are any buffer or None, headers pairs of (str, buffer or None). base_timestamp,
    max_timestamp and last_offset rebuild what others wrote: compacted and empty batches too. With
    timestamp_type="log_append", max_timestamp is the append time, and Records keep the times of their own.
    Raises EncodeError for what the format cannot carry. Source: Kafka's MemoryRecordsBuilder.
    """
    cdef list listed = records if type(records) is list else list(records)
    cdef bint log_append = timestamp_type == "log_append"
    number = _CODEC_NUMBERS.get(codec)
    if number is None:
        raise EncodeError(f"unknown compression codec {codec!r}", path="codec")
    if timestamp_type != "create" and not log_append and (timestamp_type != "none" or magic != 0):
        raise EncodeError(f"magic {magic} has no timestamp type {timestamp_type!r}", path="timestamp_type")
    if magic == 2:
        return _build_v2(listed, number, level, base_offset, log_append, producer_id, producer_epoch, base_sequence,
                         transactional, control, partition_leader_epoch, delete_horizon, base_timestamp, max_timestamp,
                         last_offset)
    if magic not in (0, 1):
        raise EncodeError(f"magic is 0, 1 or 2, not {magic!r}", path="magic")
    if (producer_id, producer_epoch, base_sequence, partition_leader_epoch) != (-1, -1, -1, -1) or (
        transactional or control or delete_horizon is not None
    ):
        raise EncodeError(f"magic {magic} has no producers, transactions, control batches, leader epochs or horizons")
    if codec == "zstd":
        raise EncodeError(f"magic {magic} has no codec zstd", path="codec")
    return _build_legacy(listed, magic, number, level, base_offset, log_append, max_timestamp, last_offset)
