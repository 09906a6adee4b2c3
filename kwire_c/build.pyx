"""Record batches of magic 0, 1 and 2: writing, as Kafka's MemoryRecordsBuilder does."""

import zlib

from kwire_c import codecs
from kwire_c.failure import EncodeError

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cimport cython

from kwire_c.batch cimport (
    KW_ATTR_CONTROL,
    KW_ATTR_DELETE_HORIZON,
    KW_ATTR_LOG_APPEND,
    KW_ATTR_TRANSACTIONAL,
    KW_HEADER_V2,
    KW_LOG_OVERHEAD,
)
from kwire_c.crc32c cimport crc32c_update
from kwire_c.cursor cimport kw_store16, kw_store32, kw_store64, kw_uvarint_size, kw_zigzag64
from kwire_c.integers cimport bounded, brief
from kwire_c.rows cimport Row, Rows, kw_body_size, kw_write_plain_rows, kw_write_record


cdef extern from "Python.h":
    # a bytes object in the making, whose reference is counted by hand
    char *PyBytes_AS_STRING(PyObject *value)
    PyObject *PyBytes_FromStringAndSize(char *content, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **content, Py_ssize_t size) except -1
    void Py_XDECREF(PyObject *item)

cdef enum:
    MOST = 2147483647 - 64  # bytes of a batch

cdef object _compress = None
cdef dict _CODEC_NUMBERS = {name: number for number, name in enumerate(codecs.CODECS)}


def set_compressor(function):
    """Install compress(codec id, data, *, level, magic) -> bytes."""
    global _compress
    _compress = function


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
    cdef Py_ssize_t i = 0
    cdef Row row
    cdef int64_t body
    cdef int32_t delta = 0
    cdef uint64_t stamp
    while i < count:
        rows.read(i, &row)
        if i == 0 and takes_stamp:
            base_stamp[0] = row.stamp
        if not _fits(row.offset, base, &delta):
            raise EncodeError(f"offset {row.offset} is too far from the base offset {base}",
                              path=f"records[{i}].offset")
        stamp = kw_zigzag64(<int64_t> (<uint64_t> row.stamp - <uint64_t> base_stamp[0]))
        body = kw_body_size(&row, stamp, delta)
        out.reserve(body + kw_uvarint_size(<uint64_t> body << 1), count - i, i)
        out.at = kw_write_record(out.at, &row, body, stamp, delta, rows.scratch)
        i = kw_write_plain_rows(<PyObject *> rows.records, i + 1, count, &out.at, out.end, base, base_stamp[0],
                                &rows.offset, &rows.max_stamp, rows.scratch, rows.room)
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
        raise EncodeError(f"unknown compression codec {brief(codec)}", path="codec")
    if timestamp_type != "create" and not log_append and (timestamp_type != "none" or magic != 0):
        raise EncodeError(f"magic {brief(magic)} has no timestamp type {brief(timestamp_type)}", path="timestamp_type")
    if magic == 2:
        return _build_v2(listed, number, level, base_offset, log_append, producer_id, producer_epoch, base_sequence,
                         transactional, control, partition_leader_epoch, delete_horizon, base_timestamp, max_timestamp,
                         last_offset)
    if magic not in (0, 1):
        raise EncodeError(f"magic is 0, 1 or 2, not {brief(magic)}", path="magic")
    if (producer_id, producer_epoch, base_sequence, partition_leader_epoch) != (-1, -1, -1, -1) or (
        transactional or control or delete_horizon is not None
    ):
        raise EncodeError(f"magic {magic} has no producers, transactions, control batches, leader epochs or horizons")
    if codec == "zstd":
        raise EncodeError(f"magic {magic} has no codec zstd", path="codec")
    return _build_legacy(listed, magic, number, level, base_offset, log_append, max_timestamp, last_offset)
