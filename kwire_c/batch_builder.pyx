"""Record batches of magic 0, 1 and 2: writing, as Kafka's MemoryRecordsBuilder does."""

import zlib

from kwire_c import codecs
from kwire_c.errors import EncodeError

from cpython.buffer cimport PyBUF_READ
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cimport cython

from kwire_c.arrow_rows cimport (
    KW_FILL_FULL,
    KW_FILL_OK,
    KW_FILL_ROOM,
    ArrowRows,
    kw_fill,
    kw_fill_status,
)
from kwire_c.batch cimport (
    KW_ATTR_CONTROL,
    KW_ATTR_DELETE_HORIZON,
    KW_ATTR_LOG_APPEND,
    KW_ATTR_TRANSACTIONAL,
    KW_HEADER_V2,
    KW_LOG_OVERHEAD,
)
from kwire_c.crc32c cimport crc32c_update
from kwire_c.varint cimport kw_store16, kw_store32, kw_store64, kw_uvarint_size, kw_zigzag64
from kwire_c.integers cimport bounded, brief
from kwire_c.rows cimport Row, Rows, kw_body_size, kw_offset_fits, kw_write_plain_rows, kw_write_record
from kwire_c.sealed cimport seal


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
        if not kw_offset_fits(row.offset, base, &delta):
            raise EncodeError(f"offset {row.offset} is too far from the base offset {base}",
                              path=f"records[{i}].offset")
        stamp = kw_zigzag64(<int64_t> (<uint64_t> row.stamp - <uint64_t> base_stamp[0]))
        body = kw_body_size(&row, stamp, delta)
        out.reserve(body + kw_uvarint_size(<uint64_t> body << 1), count - i, i)
        out.at = kw_write_record(out.at, &row, body, stamp, delta, rows.scratch)
        i = kw_write_plain_rows(<PyObject *> rows.records, i + 1, count, &out.at, out.end, base, base_stamp[0],
                                &rows.offset, &rows.max_stamp, rows.scratch, rows.room)
    return 0


ctypedef struct Form:
    # what all batches of a call have in common
    int magic, codec
    bint log_append
    bint takes_stamp  # the first record's timestamp is the batch's base
    uint16_t attributes
    int64_t base_stamp, producer, epoch, sequence, leader


cdef int _read_form(Form *form, magic, codec, timestamp_type, producer_id, producer_epoch, base_sequence, transactional,
                    control, partition_leader_epoch, delete_horizon, base_timestamp) except -1:
    memset(form, 0, sizeof(Form))
    number = _CODEC_NUMBERS.get(codec)
    if number is None:
        raise EncodeError(f"unknown compression codec {brief(codec)}", path="codec")
    form.log_append = timestamp_type == "log_append"
    if timestamp_type != "create" and not form.log_append and (timestamp_type != "none" or magic != 0):
        raise EncodeError(f"magic {brief(magic)} has no timestamp type {brief(timestamp_type)}", path="timestamp_type")
    if magic not in (0, 1, 2):
        raise EncodeError(f"magic is 0, 1 or 2, not {brief(magic)}", path="magic")
    form.magic, form.codec, form.base_stamp = magic, number, -1
    if magic != 2:
        if (producer_id, producer_epoch, base_sequence, partition_leader_epoch) != (-1, -1, -1, -1) or (
            transactional or control or delete_horizon is not None
        ):
            raise EncodeError(f"magic {magic} has no producers, transactions, control batches, leader epochs or "
                              "horizons")
        if codec == "zstd":
            raise EncodeError(f"magic {magic} has no codec zstd", path="codec")
        return 0
    form.attributes = number
    form.takes_stamp = delete_horizon is None and base_timestamp is None
    if delete_horizon is not None:
        form.base_stamp = bounded(delete_horizon, "delete_horizon", INT64_MIN, INT64_MAX)
        if base_timestamp is not None and base_timestamp != delete_horizon:
            raise EncodeError("with a delete horizon the base timestamp is the horizon", path="base_timestamp")
        form.attributes |= KW_ATTR_DELETE_HORIZON
    elif base_timestamp is not None:
        form.base_stamp = bounded(base_timestamp, "base_timestamp", INT64_MIN, INT64_MAX)
    if form.log_append:
        form.attributes |= KW_ATTR_LOG_APPEND
    if transactional:
        form.attributes |= KW_ATTR_TRANSACTIONAL
    if control:
        form.attributes |= KW_ATTR_CONTROL
    form.producer = bounded(producer_id, "producer_id", INT64_MIN, INT64_MAX)
    form.epoch = bounded(producer_epoch, "producer_epoch", -32768, 32767)
    form.sequence = bounded(base_sequence, "base_sequence", -INT32_MAX - 1, INT32_MAX)
    form.leader = bounded(partition_leader_epoch, "partition_leader_epoch", -INT32_MAX - 1, INT32_MAX)
    return 0


cdef Output _body(const Form *form, Py_ssize_t count):
    """Where the records go: behind room for the header, but for those that are compressed."""
    cdef Output out = Output()
    if not form.codec or not count:
        out.skip(KW_HEADER_V2)
    return out


cdef bytes _finish(Output out, const Form *form, level, Py_ssize_t count, int64_t base, int64_t base_stamp,
                   int64_t newest, int32_t delta):
    """The batch of these records: magic 2. delta: how far the last offset is from the base offset."""
    cdef bytes payload
    if form.codec and count:
        payload = _compress(form.codec, out.finish(), level=level, magic=2)
        out = Output()
        out.skip(KW_HEADER_V2 + len(payload))
        memcpy(out.start + KW_HEADER_V2, <const uint8_t *> payload, len(payload))
    kw_store64(out.start, base)
    kw_store32(out.start + 8, <uint32_t> (out.at - out.start - KW_LOG_OVERHEAD))
    kw_store32(out.start + 12, <uint32_t> form.leader)
    out.start[16] = 2
    kw_store16(out.start + 21, form.attributes)
    kw_store32(out.start + 23, <uint32_t> delta)
    kw_store64(out.start + 27, base_stamp)
    kw_store64(out.start + 35, newest)
    kw_store64(out.start + 43, form.producer)
    kw_store16(out.start + 51, <uint16_t> form.epoch)
    kw_store32(out.start + 53, <uint32_t> form.sequence)
    kw_store32(out.start + 57, <uint32_t> count)
    kw_store32(out.start + 17, crc32c_update(0, out.start + 21, out.at - out.start - 21))
    return out.finish()


cdef bytes _build_v2(list records, Form *form, level, base_offset, max_timestamp, last_offset):
    """One batch of magic 2."""
    cdef int64_t base = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t newest = -1, last = base
    cdef int32_t delta = 0
    cdef Py_ssize_t count = len(records)
    cdef Rows rows = Rows(records, base)
    cdef Output out = _body(form, count)
    _write(rows, out, count, base, &form.base_stamp, form.takes_stamp)
    if max_timestamp is not None:
        newest = bounded(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    elif count:
        newest = rows.max_stamp
    if last_offset is not None:
        last = bounded(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    elif count:
        last = <int64_t> (<uint64_t> rows.offset - 1)
    if not kw_offset_fits(last, base, &delta):
        raise EncodeError(f"{last} is too far from the base offset {base}", path="last_offset")
    return _finish(out, form, level, count, base, form.base_stamp, newest, delta)


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


cdef bytes _wrapped(bytes entries, const Form *form, level, int64_t last, int64_t stamp):
    """Entries of magic 0 or 1, compressed, in the one wrapper that has the last one's offset."""
    cdef bytes payload = _compress(form.codec, entries, level=level, magic=form.magic)
    cdef Output out = Output()
    out.reserve(34 + len(payload), 1, 0)
    out.at = _entry(out.at, form.magic, last, stamp, (KW_ATTR_LOG_APPEND if form.log_append and form.magic else 0)
                    | form.codec, NULL, -1, <const uint8_t *> payload, <int32_t> len(payload))
    return out.finish()


cdef int _add_entry(Output out, const Form *form, const Row *row, int64_t base, int64_t stamp, Py_ssize_t left,
                    Py_ssize_t index) except -1:
    """Writes a record of magic 0 or 1, behind which there are so many."""
    cdef int64_t offset = row.offset
    cdef int64_t size = (34 if form.magic else 26) + <int64_t> max(row.key_size, 0) + <int64_t> max(row.value_size, 0)
    if row.headers:
        raise EncodeError(f"magic {form.magic} has no headers", path=f"records[{index}].headers")
    out.reserve(size, left, index)
    if form.codec and form.magic:  # entries of a wrapper count from its first (KIP-31)
        offset = <int64_t> (<uint64_t> row.offset - <uint64_t> base)
    out.at = _entry(out.at, form.magic, offset, stamp, KW_ATTR_LOG_APPEND if form.log_append and form.magic else 0,
                    row.key, row.key_size, row.value, row.value_size)
    return 0


cdef bytes _build_legacy(list records, const Form *form, level, base_offset, max_timestamp, last_offset):
    """Entries of magic 0 or 1, in one wrapper where there is a codec."""
    cdef int64_t base = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t newest, last
    cdef bint are_appended = form.log_append and max_timestamp is not None
    cdef Py_ssize_t i, count = len(records)
    cdef Rows rows = Rows(records, base)
    cdef Output out = Output()
    cdef Row row
    if not count:
        raise EncodeError("magic 0 and 1 have no empty batches", path="records")
    newest = 0 if max_timestamp is None else bounded(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    rows.copy()  # a checksum lets other threads go on
    for i in range(count):
        rows.read(i, &row)
        _add_entry(out, form, &row, base, newest if are_appended else row.stamp, count - i, i)
    if not form.codec:
        return out.finish()
    last = row.offset if last_offset is None else bounded(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    return _wrapped(out.finish(), form, level, last, rows.max_stamp if max_timestamp is None else newest)


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
    cdef Form form
    _read_form(&form, magic, codec, timestamp_type, producer_id, producer_epoch, base_sequence, transactional, control,
               partition_leader_epoch, delete_horizon, base_timestamp)
    if form.magic == 2:
        return _build_v2(listed, &form, level, base_offset, max_timestamp, last_offset)
    return _build_legacy(listed, &form, level, base_offset, max_timestamp, last_offset)


cdef int64_t _next_sequence(int64_t sequence, int64_t records) noexcept:
    """As Kafka's DefaultRecordBatch.incrementSequence: 0 comes after 2^31 - 1."""
    return sequence if sequence < 0 else (sequence + records) & INT32_MAX


cdef bint _keeps_much = False


cdef void _keep_much() noexcept:
    """Teaches glibc to keep 32 MiB of freed memory, where it gives back all but 128 KiB: a call's batches are freed
    together, and to get their pages again would cost more than to write the next ones. (It takes the size of a freed
    block for that of what the program works on: mallopt(3), M_MMAP_THRESHOLD.)"""
    global _keeps_much
    cdef void *block
    if not _keeps_much:
        block = PyMem_RawMalloc(16 << 20)
        PyMem_RawFree(block)
        _keeps_much = True


@cython.final
cdef class Batches:
    """Batches in the making, of records in Arrow arrays."""

    cdef ArrowRows rows
    cdef Form form
    cdef kw_fill fill
    cdef object level
    cdef Output out    # of the open batch
    cdef list made
    cdef int64_t first    # the open batch's first row
    cdef int64_t written  # bytes

    cdef int open(self) except -1:
        self.out = Output() if self.form.magic != 2 else _body(&self.form, 1)
        self.fill.head = KW_HEADER_V2 if self.form.magic == 2 and self.form.codec else 0
        self.fill.count = 0
        self.first = self.rows.first + self.fill.at
        return 0

    cdef int close(self) except -1:
        """Ends the open batch, if it has records."""
        cdef bytes batch
        cdef int32_t delta = 0
        if not self.fill.count:
            return 0
        if self.form.magic == 2:
            kw_offset_fits(<int64_t> (<uint64_t> self.fill.next - 1), self.fill.base, &delta)
            batch = _finish(self.out, &self.form, self.level, self.fill.count, self.fill.base, self.fill.base_stamp,
                            self.fill.max_stamp, delta)
            self.form.sequence = _next_sequence(self.form.sequence, <int64_t> delta + 1)
        else:
            batch = self.out.finish()
            if self.form.codec:
                batch = _wrapped(batch, &self.form, self.level, <int64_t> (<uint64_t> self.fill.next - 1),
                                 self.fill.max_stamp)
        self.made.append((batch, self.first, self.fill.count))
        self.written += len(batch)
        if self.written > 1 << 20:
            _keep_much()
        self.out = None
        return PyErr_CheckSignals()

    cdef int add(self) except -1:
        """The rows of the arrays at hand."""
        cdef kw_fill_status status = KW_FILL_ROOM
        while status != KW_FILL_OK:
            if self.out is None:
                self.open()
            self.fill.start, self.fill.out, self.fill.end = self.out.start, self.out.at, self.out.end
            status = self.rows.fill(&self.fill)
            self.out.at = self.fill.out
            if status == KW_FILL_ROOM:
                self.out.grow(self.fill.need, self.fill.most_bytes - (self.out.at - self.out.start))
            elif status == KW_FILL_FULL:
                self.close()
            elif status != KW_FILL_OK:
                raise self.rows.error(status, &self.fill)
        return 0

    cdef int add_legacy(self) except -1:
        """The same in magic 0 and 1."""
        cdef Row row
        cdef int64_t size
        while self.fill.at < self.rows.c.rows:
            self.rows.read(&self.fill, &row)
            size = (34 if self.form.magic else 26) + <int64_t> max(row.key_size, 0) + <int64_t> max(row.value_size, 0)
            if self.out is not None and (size > self.fill.most_bytes - (self.out.at - self.out.start)
                                         or self.fill.count >= self.fill.most_rows):
                self.close()
            if self.out is None:
                self.open()
                self.fill.base = row.offset
            _add_entry(self.out, &self.form, &row, self.fill.base, row.stamp, 1, self.rows.first + self.fill.at)
            if self.fill.count == 0 or row.stamp > self.fill.max_stamp:
                self.fill.max_stamp = row.stamp
            self.fill.next = <int64_t> (<uint64_t> row.offset + 1)
            self.fill.has_next = True
            self.fill.count += 1
            self.fill.at += 1
        return 0


@cython.binding(True)
@cython.embedsignature(False)
def build_batches(
    columns, *, batch_bytes=16384, batch_records=None, magic=2, codec="none", level=None, base_offset=0,
    timestamp_type="create", producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False, control=False,
    partition_leader_epoch=-1, delete_horizon=None,
):
    """Record batches of the rows of a table: a list of (bytes of the batch, its first row, rows in it).

    columns: what has __arrow_c_stream__ or __arrow_c_array__ (tables of pyarrow, polars, pandas, DuckDB, what
    kwire.columns gives). Its columns by name: value (binary or string; null is a tombstone), and as it likes key (the
    same), timestamp (int64 milliseconds, or a timestamp; where it is null or missing, -1, which is none), headers (a
    list of structs of key and value, or a map) and offset (int64, rising; without it offsets rise from base_offset
    on). Other columns are not looked at, and no Python object is made of a record.

    batch_bytes: a batch takes rows until it would be larger, before compression; one row always fits.
    batch_records: the most rows in a batch. The other keywords are build_batch's; base_sequence is that of the first
    batch. Batches go into the call's memory: pass a large table piece by piece.
    Raises EncodeError for what the format cannot carry, TypeError for what has no Arrow interface.
    Source: Kafka's MemoryRecordsBuilder, DefaultRecordBatch.incrementSequence.
    """
    cdef Batches batches = Batches.__new__(Batches)
    _read_form(&batches.form, magic, codec, timestamp_type, producer_id, producer_epoch, base_sequence, transactional,
               control, partition_leader_epoch, delete_horizon, None)
    batches.fill.most_bytes = bounded(batch_bytes, "batch_bytes", 1, MOST)
    batches.fill.most_rows = INT32_MAX
    if batch_records is not None:
        batches.fill.most_rows = bounded(batch_records, "batch_records", 1, INT32_MAX)
    batches.fill.next = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    batches.fill.takes_stamp = batches.form.takes_stamp
    batches.fill.base_stamp = batches.form.base_stamp
    batches.level = level
    batches.made = []
    batches.rows = ArrowRows(columns)
    while batches.rows.next():
        batches.fill.at = 0
        if not batches.rows.c.offset.values:
            batches.fill.has_next = True
        elif batches.fill.next and not batches.fill.has_next:
            raise EncodeError("the rows have offsets: there is no base offset to give", path="base_offset")
        if batches.form.magic == 2:
            batches.add()
        else:
            batches.add_legacy()
    batches.close()
    return batches.made


seal(Batches)
