"""Record batches of magic 0, 1 and 2: writing, as Kafka's MemoryRecordsBuilder does."""

import zlib

from kwire_c.failure import EncodeError

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from cpython.tuple cimport PyTuple_CheckExact
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

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
    kw_store16,
    kw_store32,
    kw_store64,
    kw_uvarint_size,
    kw_write_uvarint,
    kw_zigzag32,
    kw_zigzag64,
)
from kwire_c.records cimport Record


cdef extern from *:
    """
    /* memcpy without a call where keys and small values are short. */
    static inline void kw_copy(uint8_t *to, const uint8_t *from, size_t size) {
        if (size > 32) {
            memcpy(to, from, size);
        } else if (size >= 16) {
            memcpy(to, from, 16);
            memcpy(to + size - 16, from + size - 16, 16);
        } else if (size >= 8) {
            memcpy(to, from, 8);
            memcpy(to + size - 8, from + size - 8, 8);
        } else {
            for (size_t i = 0; i < size; i++) to[i] = from[i];
        }
    }
    """
    void kw_copy(uint8_t *to, const uint8_t *source, size_t size) noexcept nogil

cdef extern from "Python.h":
    Py_ssize_t PyTuple_GET_SIZE(object item)
    void *PyTuple_GET_ITEM(object item, Py_ssize_t index)  # borrowed
    long PyLong_AsLong(object value) except? -1  # 64 bits on Linux; quicker than AsLongLong
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef object _compress = None


def set_compressor(function):
    """Install compress(codec id, data, *, level, magic) -> bytes."""
    global _compress
    _compress = function


cdef struct Piece:
    # one record to write; sizes of -1 are null
    int64_t offset
    int64_t stamp
    const uint8_t *key
    const uint8_t *value
    Py_ssize_t key_size
    Py_ssize_t value_size
    Py_ssize_t headers_at  # in Pieces.scratch
    Py_ssize_t headers_size
    Py_ssize_t body
    int32_t headers
    uint8_t attributes


cdef class Pieces:
    """The records of one batch, gathered: spans over the user's objects, which stay alive until it is written."""

    cdef Piece *items
    cdef Py_ssize_t count, at
    cdef uint8_t *scratch   # headers, as they go on the wire
    cdef Py_ssize_t used, room
    cdef list kept
    cdef int64_t max_stamp

    def __dealloc__(self):
        free(self.items)
        free(self.scratch)

    cdef int gather(self, list records, int64_t base_offset) except -1:
        """Spans and headers of all records."""
        try:
            return self.gather_all(records, base_offset)
        except OverflowError:
            raise EncodeError("timestamp does not fit 64 bits", path=f"records[{self.at}].timestamp") from None

    cdef int gather_all(self, list records, int64_t base_offset) except -1:
        cdef Py_ssize_t i
        cdef Piece *piece
        cdef Record record
        cdef object item
        cdef int64_t previous = INT64_MIN
        self.kept = []
        self.count = len(records)
        self.max_stamp = INT64_MIN
        self.items = <Piece *> malloc((self.count or 1) * sizeof(Piece))
        if self.items == NULL:
            raise MemoryError
        for i in range(self.count):
            item = records[i]
            self.at = i
            piece = self.items + i
            piece.headers = 0
            piece.headers_at = self.used
            piece.headers_size = 0
            piece.attributes = 0
            if PyTuple_CheckExact(item):
                self.gather_tuple(piece, item, i)
                piece.offset = base_offset if i == 0 else previous + 1
            elif isinstance(item, Record):
                record = <Record> item
                self.gather_record(piece, record)
                if piece.offset == -1:  # made without one
                    piece.offset = base_offset if i == 0 else previous + 1
                if piece.offset <= previous:
                    raise EncodeError(f"offset {piece.offset} does not rise above {previous}",
                                      path=f"records[{i}].offset")
            else:
                item = tuple(item)
                self.kept.append(item)
                self.gather_tuple(piece, item, i)
                piece.offset = base_offset if i == 0 else previous + 1
            if piece.key_size > INT32_MAX or piece.value_size > INT32_MAX:
                raise EncodeError("key or value is over 2 GiB", path=f"records[{i}]")
            previous = piece.offset
            if piece.stamp > self.max_stamp:
                self.max_stamp = piece.stamp
        return 0

    cdef int gather_tuple(self, Piece *piece, object item, Py_ssize_t index) except -1:
        """(timestamp, key, value[, headers]); the tuple stays alive in the user's list."""
        cdef Py_ssize_t width = PyTuple_GET_SIZE(item)
        if width != 3 and width != 4:
            raise EncodeError(f"a record is (timestamp, key, value[, headers]), not {width} values",
                              path=f"records[{index}]")
        piece.stamp = PyLong_AsLong(<object> PyTuple_GET_ITEM(item, 0))
        self.span(<object> PyTuple_GET_ITEM(item, 1), &piece.key, &piece.key_size)
        self.span(<object> PyTuple_GET_ITEM(item, 2), &piece.value, &piece.value_size)
        if width == 4:
            headers = <object> PyTuple_GET_ITEM(item, 3)
            if headers:
                self.gather_headers(piece, headers, index)
        return 0

    cdef int gather_record(self, Piece *piece, Record record) except -1:
        cdef const kw_heads *home = &record.batch.heads
        cdef uint32_t at = record.head.headers_at, key_at = 0, value_at = 0
        cdef int32_t key_size = 0, value_size = 0
        piece.offset = record.head.offset
        piece.stamp = record.head.stamp
        piece.attributes = <uint8_t> record.head.attributes
        piece.key = home.block + record.head.key_at
        piece.key_size = record.head.key_size
        piece.value = home.block + record.head.value_at
        piece.value_size = record.head.value_size
        piece.headers = record.head.headers
        for _ in range(record.head.headers):
            if kw_header_read(home.block, home.size, &at, &key_at, &key_size, &value_at, &value_size) != KW_BATCH_OK:
                raise EncodeError("headers changed under the record", path="records.headers")
        piece.headers_size = at - record.head.headers_at
        if piece.headers_size:
            self.append(home.block + record.head.headers_at, piece.headers_size)
        return 0

    cdef int gather_headers(self, Piece *piece, object headers, Py_ssize_t index) except -1:
        cdef const char *text
        cdef const uint8_t *content
        cdef Py_ssize_t text_size = 0, size = 0
        cdef uint8_t small[5]
        cdef uint8_t *end
        if isinstance(headers, dict):
            headers = headers.items()
        for name, value in headers:
            if not isinstance(name, str):
                raise TypeError(f"a header key is a str, not {type(name).__name__}")
            try:
                text = PyUnicode_AsUTF8AndSize(name, &text_size)
            except UnicodeEncodeError:
                raise EncodeError("header key is no valid text", path=f"records[{index}].headers") from None
            self.span(value, &content, &size)
            if text_size > INT32_MAX or size > INT32_MAX:
                raise EncodeError("a header is over 2 GiB", path=f"records[{index}].headers")
            end = kw_write_uvarint(small, kw_zigzag32(<int32_t> text_size))
            self.append(small, end - small)
            self.append(<const uint8_t *> text, text_size)
            end = kw_write_uvarint(small, kw_zigzag32(<int32_t> size))
            self.append(small, end - small)
            if size > 0:
                self.append(content, size)
            piece.headers += 1
        piece.headers_size = self.used - piece.headers_at
        return 0

    cdef int append(self, const uint8_t *data, Py_ssize_t size) except -1:
        cdef void *grown
        if size > self.room - self.used:
            self.room = 2 * (self.used + size) + 256
            grown = realloc(self.scratch, self.room)
            if grown == NULL:
                raise MemoryError
            self.scratch = <uint8_t *> grown
        memcpy(self.scratch + self.used, data, size)
        self.used += size
        return 0

    cdef inline int span(self, object value, const uint8_t **data, Py_ssize_t *size) except -1:
        """Where the bytes of value lie; None is null."""
        cdef Block block
        if PyBytes_CheckExact(value):
            data[0] = <const uint8_t *> PyBytes_AS_STRING(value)
            size[0] = PyBytes_GET_SIZE(value)
        elif value is None:
            data[0] = NULL
            size[0] = -1
        else:
            block = pin(value)
            self.kept.append(block)
            data[0] = block.data
            size[0] = block.size
        return 0

    cdef int64_t measure(self, int64_t base_offset, int64_t base_stamp) except -1:
        """Sizes of all records of magic 2; their sum."""
        cdef Py_ssize_t i
        cdef Piece *piece
        cdef int64_t total = 0, delta
        for i in range(self.count):
            piece = self.items + i
            delta = <int64_t> (<uint64_t> piece.offset - <uint64_t> base_offset)
            if delta > INT32_MAX or delta < -INT32_MAX - 1 or (piece.offset < base_offset) != (delta < 0):
                raise EncodeError(f"offset {piece.offset} is too far from the base offset {base_offset}",
                                  path=f"records[{i}].offset")
            piece.body = (
                1 + kw_uvarint_size(kw_zigzag64(<int64_t> (<uint64_t> piece.stamp - <uint64_t> base_stamp)))
                + kw_uvarint_size(kw_zigzag32(<int32_t> delta))
                + kw_uvarint_size(kw_zigzag32(<int32_t> piece.key_size)) + max(piece.key_size, 0)
                + kw_uvarint_size(kw_zigzag32(<int32_t> piece.value_size)) + max(piece.value_size, 0)
                + kw_uvarint_size(kw_zigzag32(piece.headers)) + piece.headers_size)
            if piece.body > INT32_MAX:
                raise EncodeError("record is over 2 GiB", path=f"records[{i}]")
            total += piece.body + kw_uvarint_size(kw_zigzag32(<int32_t> piece.body))
            if total > INT32_MAX - KW_HEADER_V2:
                raise EncodeError("batch is over 2 GiB", path=f"records[{i}]")
        return total

    cdef void write(self, uint8_t *p, int64_t base_offset, int64_t base_stamp) noexcept nogil:
        """All records of magic 2 to p, which has room for what measure said."""
        cdef Py_ssize_t i
        cdef Piece *piece
        for i in range(self.count):
            piece = self.items + i
            p = kw_write_uvarint(p, kw_zigzag32(<int32_t> piece.body))
            p[0] = piece.attributes
            p = kw_write_uvarint(p + 1, kw_zigzag64(<int64_t> (<uint64_t> piece.stamp - <uint64_t> base_stamp)))
            p = kw_write_uvarint(p, kw_zigzag32(<int32_t> (<uint64_t> piece.offset - <uint64_t> base_offset)))
            p = kw_write_uvarint(p, kw_zigzag32(<int32_t> piece.key_size))
            if piece.key_size > 0:
                kw_copy(p, piece.key, piece.key_size)
                p += piece.key_size
            p = kw_write_uvarint(p, kw_zigzag32(<int32_t> piece.value_size))
            if piece.value_size > 0:
                kw_copy(p, piece.value, piece.value_size)
                p += piece.value_size
            p = kw_write_uvarint(p, kw_zigzag32(piece.headers))
            if piece.headers_size:
                memcpy(p, self.scratch + piece.headers_at, piece.headers_size)
                p += piece.headers_size


cdef int64_t _number(object value, str name, int64_t low, int64_t high) except? -2:
    """value as an integer of that field's width."""
    cdef int64_t number
    try:
        number = value
        if low <= number <= high:
            return number
    except OverflowError:
        pass
    raise EncodeError(f"{value} is not between {low} and {high}", path=name)


def build_v2(list records, int codec, level, base_offset, bint log_append, producer_id, producer_epoch,
             base_sequence, bint transactional, bint control, partition_leader_epoch, delete_horizon, base_timestamp,
             max_timestamp, last_offset):
    """One batch of magic 2; see kwire.build_batch."""
    cdef int64_t base = _number(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t stamp, newest, last, total, last_delta
    cdef Pieces pieces = Pieces()
    cdef bytes out, payload
    cdef uint8_t *data
    cdef uint16_t attributes = codec
    pieces.gather(records, base)
    if delete_horizon is not None:
        stamp = _number(delete_horizon, "delete_horizon", INT64_MIN, INT64_MAX)
        if base_timestamp is not None and base_timestamp != delete_horizon:
            raise EncodeError("with a delete horizon the base timestamp is the horizon", path="base_timestamp")
        attributes |= KW_ATTR_DELETE_HORIZON
    elif base_timestamp is not None:
        stamp = _number(base_timestamp, "base_timestamp", INT64_MIN, INT64_MAX)
    else:
        stamp = pieces.items[0].stamp if pieces.count else -1
    if max_timestamp is not None:
        newest = _number(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    else:
        newest = pieces.max_stamp if pieces.count else -1
    if last_offset is not None:
        last = _number(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    else:
        last = pieces.items[pieces.count - 1].offset if pieces.count else base
    last_delta = <int64_t> (<uint64_t> last - <uint64_t> base)
    if last_delta > INT32_MAX or last_delta < -INT32_MAX - 1 or (last < base) != (last_delta < 0):
        raise EncodeError(f"{last} is too far from the base offset {base}", path="last_offset")
    if log_append:
        attributes |= KW_ATTR_LOG_APPEND
    if transactional:
        attributes |= KW_ATTR_TRANSACTIONAL
    if control:
        attributes |= KW_ATTR_CONTROL
    cdef int64_t producer = _number(producer_id, "producer_id", INT64_MIN, INT64_MAX)
    cdef int64_t epoch = _number(producer_epoch, "producer_epoch", -32768, 32767)
    cdef int64_t sequence = _number(base_sequence, "base_sequence", -INT32_MAX - 1, INT32_MAX)
    cdef int64_t leader = _number(partition_leader_epoch, "partition_leader_epoch", -INT32_MAX - 1, INT32_MAX)

    total = pieces.measure(base, stamp)
    if codec and pieces.count:
        payload = PyBytes_FromStringAndSize(NULL, total)
        data = <uint8_t *> PyBytes_AS_STRING(payload)
        with nogil:
            pieces.write(data, base, stamp)
        payload = _compress(codec, payload, level=level, magic=2)
        total = len(payload)
        if total > INT32_MAX - KW_HEADER_V2:
            raise EncodeError("batch is over 2 GiB", path="records")
        out = PyBytes_FromStringAndSize(NULL, KW_HEADER_V2 + total)
        data = <uint8_t *> PyBytes_AS_STRING(out)
        memcpy(data + KW_HEADER_V2, PyBytes_AS_STRING(payload), total)
    else:
        out = PyBytes_FromStringAndSize(NULL, KW_HEADER_V2 + total)
        data = <uint8_t *> PyBytes_AS_STRING(out)
        pieces.write(data + KW_HEADER_V2, base, stamp)
    kw_store64(data, base)
    kw_store32(data + 8, <uint32_t> (KW_HEADER_V2 + total - KW_LOG_OVERHEAD))
    kw_store32(data + 12, <uint32_t> leader)
    data[16] = 2
    kw_store16(data + 21, attributes)
    kw_store32(data + 23, <uint32_t> last_delta)
    kw_store64(data + 27, stamp)
    kw_store64(data + 35, newest)
    kw_store64(data + 43, producer)
    kw_store16(data + 51, <uint16_t> epoch)
    kw_store32(data + 53, <uint32_t> sequence)
    kw_store32(data + 57, <uint32_t> pieces.count)
    kw_store32(data + 17, crc32c_update(0, data + 21, KW_HEADER_V2 - 21 + total))
    return out


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


def build_legacy(list records, *, int magic, int codec, level, base_offset, bint log_append, max_timestamp,
                 last_offset):
    """Entries of magic 0 or 1, in one wrapper where there is a codec; see kwire.build_batch."""
    cdef int64_t base = _number(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t total = 0, newest, last
    cdef int attributes = KW_ATTR_LOG_APPEND if log_append and magic else 0
    cdef Pieces pieces = Pieces()
    cdef Piece *piece
    cdef Py_ssize_t i
    cdef bytes out, payload
    cdef uint8_t *p
    pieces.gather(records, base)
    if not pieces.count:
        raise EncodeError("magic 0 and 1 have no empty batches", path="records")
    newest = pieces.max_stamp
    if max_timestamp is not None:
        newest = _number(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    for i in range(pieces.count):
        piece = pieces.items + i
        if piece.headers:
            raise EncodeError(f"magic {magic} has no headers", path=f"records[{i}].headers")
        total += (34 if magic else 26) + max(piece.key_size, 0) + max(piece.value_size, 0)
        if total > INT32_MAX - 64:
            raise EncodeError("batch is over 2 GiB", path=f"records[{i}]")
    payload = PyBytes_FromStringAndSize(NULL, total)
    p = <uint8_t *> PyBytes_AS_STRING(payload)
    for i in range(pieces.count):
        piece = pieces.items + i
        # entries of a wrapper count from its first in magic 1 (KIP-31), stand as they are in magic 0
        p = _entry(p, magic, piece.offset - base if codec and magic else piece.offset,
                   newest if log_append and max_timestamp is not None else piece.stamp, attributes,
                   piece.key, piece.key_size, piece.value, piece.value_size)
    if not codec:
        return payload
    last = pieces.items[pieces.count - 1].offset
    if last_offset is not None:
        last = _number(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    payload = _compress(codec, payload, level=level, magic=magic)
    if len(payload) > INT32_MAX - 64:
        raise EncodeError("batch is over 2 GiB", path="records")
    out = PyBytes_FromStringAndSize(NULL, (34 if magic else 26) + len(payload))
    _entry(<uint8_t *> PyBytes_AS_STRING(out), magic, last, newest, attributes | codec, NULL, -1,
           <const uint8_t *> PyBytes_AS_STRING(payload), len(payload))
    return out
