"""Record batches of magic 0, 1 and 2: their headers, their records as objects, and bytes that are not a batch."""

import sys
from types import GenericAlias

from kwire_c.codecs import codec_name
from kwire_c.errors import CorruptBatchError, DecodeError, EncodeError, KwireError, LimitError, MissingCodecError
from kwire_c.hooks import handed
from kwire_c.varint import write_varint

from cpython.buffer cimport PyBuffer_Release, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject_GenericGetAttr
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, int8_t, uint32_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

cimport cython

from kwire_c.buffers cimport fill_buffer, holds_objects, is_no_row, take_buffer, take_view
from kwire_c.core cimport (
    KWIRE_COMPILER, KW_ATTRIBUTES_OFFSET, KW_ATTR_CODEC, KW_ATTR_CONTROL, KW_ATTR_DELETE_HORIZON, KW_ATTR_LOG_APPEND,
    KW_ATTR_TRANSACTIONAL, KW_BATCH_CODEC, KW_BATCH_CRC, KW_BATCH_FORMAT, KW_BATCH_LEGACY_CODEC, KW_BATCH_OK,
    KW_BATCH_TAIL, KW_BATCH_WRAPPER_NULL, KW_CRC_OFFSET, KW_HEADER_UP_TO_MAGIC, KW_LEGACY_ATTRIBUTES_OFFSET,
    KW_LEGACY_CRC_OFFSET, KW_LEGACY_FORMAT, KW_LOG_OVERHEAD, KW_MAGIC_OFFSET, KW_MAX_LENGTH, KW_MIN_LENGTH, KW_PORTION,
    KW_RECORD_BATCH_OVERHEAD, kw_batch, kw_batch_count, kw_batch_read, kw_batch_reason, kw_batch_status,
    kw_batch_trusted_size, kw_claim, kw_claimed, kw_header_read, kw_heads, kw_heads_check, kw_heads_next,
    kw_legacy_entry, kw_record, kw_sequence, kw_smallest_batch, kw_timestamp, seal,
)
from kwire_c.crc32c cimport crc32_update, crc32c_update
from kwire_c.integers cimport bounded, brief, clipped
from kwire_c.utf8 cimport java_text

COMPILER = KWIRE_COMPILER.decode()

# The layout of a batch, for Python code that reads headers: see core/batch_layout.h.
LOG_OVERHEAD, MAGIC_OFFSET, HEADER_UP_TO_MAGIC = KW_LOG_OVERHEAD, KW_MAGIC_OFFSET, KW_HEADER_UP_TO_MAGIC
CRC_OFFSET, ATTRIBUTES_OFFSET, RECORD_BATCH_OVERHEAD = KW_CRC_OFFSET, KW_ATTRIBUTES_OFFSET, KW_RECORD_BATCH_OVERHEAD
LEGACY_CRC_OFFSET, LEGACY_ATTRIBUTES_OFFSET = KW_LEGACY_CRC_OFFSET, KW_LEGACY_ATTRIBUTES_OFFSET
MIN_LENGTH, MAX_LENGTH = KW_MIN_LENGTH, KW_MAX_LENGTH
SMALLEST_BATCHES = (kw_smallest_batch(0), kw_smallest_batch(1), kw_smallest_batch(2))  # by magic
BATCH_FORMAT, LEGACY_FORMAT = KW_BATCH_FORMAT.decode(), KW_LEGACY_FORMAT.decode()  # of the struct module
CODEC_MASK, LOG_APPEND_FLAG = KW_ATTR_CODEC, KW_ATTR_LOG_APPEND
TRANSACTIONAL_FLAG, CONTROL_FLAG = KW_ATTR_TRANSACTIONAL, KW_ATTR_CONTROL
DELETE_HORIZON_FLAG = KW_ATTR_DELETE_HORIZON


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class Block:
    """A contiguous buffer, kept exported as long as records or columns point into it."""

    def __cinit__(self, data, str name="data"):
        take_buffer(data, &self.view, name)
        self.data = <const uint8_t *> self.view.buf
        self.size = self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        fill_buffer(buffer, self, <void *> self.data, self.size, 1, flags)


cdef Block pin(object data, str name="data"):
    """A Block over the buffer of an argument. Raises TypeError if it has none, BufferError if it is not contiguous."""
    return Block.__new__(Block, data, name)


cdef object _decompress = None  # kwire.compression.decompress_view, from its first use on


cdef object corrupt(kw_batch_status status, Py_ssize_t position, const kw_batch *head, object where=None):
    reason = kw_batch_reason(status).decode()
    if where is not None:
        reason = f"{reason}, at byte {where} of the {'records' if head.codec else 'batch'}"
    return CorruptBatchError(reason, position=position, offset=head.base_offset if head != NULL else -1)


cdef object partial_batch(const uint8_t *data, Py_ssize_t left, Py_ssize_t position):
    """The error of an input that ends inside its last batch, of which it has `left` bytes."""
    cdef kw_batch head
    head.size = 0
    head.base_offset = -1
    kw_batch_read(data, left, &head)
    reason = kw_batch_reason(KW_BATCH_TAIL).decode()
    return CorruptBatchError(f"{reason}: {left} bytes left, {head.size or 'more'} needed",
                             position=position, offset=head.base_offset)


cdef bint checksum_holds(const uint8_t *data, const kw_batch *head) noexcept:
    """Does the stored checksum match? Magic 2: CRC-32C from the attributes on; magic 0, 1: CRC-32 from the magic on."""
    if head.magic == 2:
        return crc32c_update(0, data + KW_ATTRIBUTES_OFFSET, head.size - KW_ATTRIBUTES_OFFSET) == head.crc
    return crc32_update(0, data + KW_MAGIC_OFFSET, head.size - KW_MAGIC_OFFSET) == head.crc


cdef Block unpack(Block block, const uint8_t *data, const kw_batch *head, Py_ssize_t limit, Py_ssize_t position):
    """The decompressed payload, at most limit bytes, of the compressed batch at data in block."""
    global _decompress
    cdef kw_record wrapper
    cdef kw_batch_status status
    cdef const uint8_t *start = data + head.payload
    cdef Py_ssize_t at, size = <Py_ssize_t> head.size - head.payload
    limit = min(limit, INT32_MAX)  # positions in a block are int32, as in Kafka
    if head.codec > 4:
        raise corrupt(KW_BATCH_CODEC, position, head)
    if head.magic < 2:
        if head.codec == 4:
            raise corrupt(KW_BATCH_LEGACY_CODEC, position, head)
        status = kw_legacy_entry(data, head.size, &wrapper)
        if status != KW_BATCH_OK:
            raise corrupt(status, position, head)
        if wrapper.value_size < 0:
            raise corrupt(KW_BATCH_WRAPPER_NULL, position, head)
        start = data + wrapper.value_at
        size = wrapper.value_size
    at = start - block.data
    if _decompress is None:
        _decompress = handed("decompress")
    try:
        return pin(_decompress(head.codec, memoryview(block)[at:at + size], limit=limit, magic=head.magic))
    except CorruptBatchError as error:
        failed = CorruptBatchError(error.reason, position=position, offset=head.base_offset)
    except LimitError as error:
        failed = LimitError(error.reason, limit=error.limit, needed=error.needed, offset=position)
    raise failed  # out here: the codec's error as its context would keep what was decompressed, and all callers


cdef int check_heads(kw_heads *heads, const uint8_t *data, const kw_batch *head, Block payload, kw_record *first,
                     uint32_t room, Py_ssize_t position) except -1:
    """Check every record of a batch. heads is then at the first one; the first `room` heads are in first.

    data: the batch; payload: the decompressed records, if it is compressed; position: of the batch, for errors.
    """
    cdef kw_batch_status status
    heads.batch = head
    if payload is None:
        heads.block = data
        heads.at = head.payload
        heads.size = head.size
    else:
        heads.block = payload.data
        heads.at = 0
        heads.size = <uint32_t> payload.size
    if head.magic == 2:
        status = kw_batch_count(head, heads.size - heads.at)
        if status != KW_BATCH_OK:
            raise corrupt(status, position, head)
    with nogil:
        status = kw_heads_check(heads, first, room)
    if status != KW_BATCH_OK:
        raise corrupt(status, position, head, heads.at)
    return 0


cdef Py_ssize_t read_heads(const uint8_t *data, const kw_batch *head, Block payload, kw_record **records,
                           Py_ssize_t *room, Py_ssize_t position) except -1:
    """Read the heads of all records into records (grown as needed); return their number."""
    cdef kw_heads heads
    cdef kw_batch_status status
    cdef uint32_t count = 0
    cdef void *grown
    check_heads(&heads, data, head, payload, NULL, 0, position)
    if heads.left > room[0]:
        grown = realloc(records[0], heads.left * sizeof(kw_record))
        if grown == NULL:
            raise MemoryError
        records[0] = <kw_record *> grown
        room[0] = heads.left
    with nogil:
        status = kw_heads_next(&heads, records[0], heads.left, &count)
    if status != KW_BATCH_OK:
        raise corrupt(status, position, head, heads.at)
    return count


def java_string(data):
    """The text that Java's new String(bytes, UTF_8) gives: U+FFFD for what is not UTF-8, one for a surrogate."""
    cdef Block block = pin(data)
    return java_text(block.data, block.size)


TIMESTAMP_TYPES = ("none", "create", "log_append")  # by type + 1

cdef object _OFFSET = sys.intern("offset"), _TIMESTAMP = sys.intern("timestamp")
cdef object _KEY = sys.intern("key"), _VALUE = sys.intern("value")
cdef object _decode_control = None  # kwire.codec.control.decode_control, from its first use on


cdef tuple _headers(const uint8_t *data, uint32_t size, const kw_record *head):
    """The headers of a record: (str, bytes or None) pairs. Bounds are checked again: the input may be mutable."""
    cdef uint32_t at = head.headers_at, key_at = 0, value_at = 0
    cdef int32_t key_size = 0, value_size = 0
    cdef kw_batch_status status
    if head.headers <= 0:
        return ()
    headers = []
    for _ in range(head.headers):
        status = kw_header_read(data, size, &at, &key_at, &key_size, &value_at, &value_size)
        if status != KW_BATCH_OK:
            raise corrupt(status, 0, NULL)
        try:
            key = PyUnicode_DecodeUTF8(<const char *> data + key_at, key_size, NULL)
        except UnicodeDecodeError:
            key = java_text(data + key_at, key_size)
        value = None
        if value_size >= 0:
            value = PyBytes_FromStringAndSize(<const char *> data + value_at, value_size)
        headers.append((key, value))
    return tuple(headers)


cdef inline object _part(Record record, uint32_t at, int32_t size):
    """A key or value as bytes, or None."""
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *> record.batch.heads.block + at, size)


cdef int64_t _last_stamp = -1
cdef object _last_timestamp = -1  # as an object, which consecutive records often share


cdef inline object _timestamp(Record record):
    """The timestamp as an int."""
    global _last_stamp, _last_timestamp
    cdef int64_t stamp = kw_timestamp(&record.batch.head, &record.head)
    if stamp != _last_stamp:
        _last_timestamp = stamp
        _last_stamp = stamp
    return _last_timestamp


cdef object _control(Record record):
    """(control type, message or None) of a control record."""
    global _decode_control
    if _decode_control is None:
        _decode_control = handed("decode_control")
    return _decode_control(record.key, record.value)


cdef tuple _content(Record record):
    return (record.offset, record.timestamp, record.key, record.value, record.headers)


@cython.final
@cython.freelist(512)
@cython.no_gc
cdef class Record:
    """One record. Key, value and headers are created each time they are read.

    It keeps the input alive, and what its batch was decompressed to: copy.copy(record) holds its own bytes alone.

    offset: int; timestamp: int, milliseconds since 1970 (-1: none); timestamp_type: "none", "create" or "log_append";
    key, value: bytes or None; headers: tuple of (str, bytes or None); sequence: int (-1: none); attributes: int.
    Raises EncodeError for a number out of range. Source: Kafka's DefaultRecord and LegacyRecord.
    """

    def __cinit__(self):
        self.batch = NOWHERE

    def __init__(self, offset=-1, timestamp=-1, key=None, value=None, headers=(), *, timestamp_type="create",
                 sequence=-1, attributes=0):
        cdef RecordBatch batch = RecordBatch.__new__(RecordBatch), _before
        cdef kw_record head
        packed = bytearray()
        memset(&head, 0, sizeof(head))
        head.offset = bounded(offset, "offset", INT64_MIN, INT64_MAX)
        head.stamp = bounded(timestamp, "timestamp", INT64_MIN, INT64_MAX)
        head.attributes = <int8_t> bounded(attributes, "attributes", -128, 127)
        head.timestamp_type = _timestamp_type(timestamp_type)
        head.key_size = head.value_size = -1
        if key is not None:
            packed += _bytes_of(key, "key")
            head.key_size = <int32_t> len(packed)
        if value is not None:
            head.value_at = <uint32_t> len(packed)
            packed += _bytes_of(value, "value")
            head.value_size = <int32_t> (len(packed) - head.value_at)
        head.headers_at = <uint32_t> len(packed)
        for pair in header_list(headers, ""):
            if type(pair) is tuple and len(<tuple> pair) == 2:
                name, content = <tuple> pair
            else:
                name, content = header_pair(pair, f"header {head.headers}")
            name = _encoded(name, head.headers)
            packed += write_varint(len(name)) + name
            if content is None:
                packed += write_varint(-1)
            else:
                content = _bytes_of(content, "value", head.headers)
                packed += write_varint(len(content)) + content
            head.headers += 1
        if len(packed) > INT32_MAX:
            raise EncodeError("key, value and headers exceed 2 GiB", path="value")
        # set together with its head: an error above leaves the record unchanged
        batch.head.magic = 2
        batch.head.base_offset = head.offset
        batch.head.base_sequence = <int32_t> bounded(sequence, "sequence", -INT32_MAX - 1, INT32_MAX)
        batch.head.max_timestamp = head.stamp
        batch.block = pin(bytes(packed))
        batch.heads.block = batch.block.data
        batch.heads.size = <uint32_t> len(packed)
        batch.is_loaded = True
        _before = self.batch  # dropped last: freeing it may run Python code, which must see the new one
        self.head = head
        self.batch = batch

    @property
    def offset(self):
        """The absolute offset in the partition."""
        return self.head.offset

    @property
    def timestamp(self):
        """Milliseconds since 1970; the append time if timestamp_type is "log_append"; -1 if there is none."""
        return _timestamp(self)

    @property
    def timestamp_type(self):
        """"none", "create" or "log_append"."""
        return TIMESTAMP_TYPES[self.head.timestamp_type + 1]

    @property
    def key(self):
        """The key: bytes or None."""
        return _part(self, self.head.key_at, self.head.key_size)

    @property
    def value(self):
        """The value: bytes or None (a tombstone)."""
        return _part(self, self.head.value_at, self.head.value_size)

    @property
    def headers(self):
        """Tuple of (str, bytes or None); invalid UTF-8 in a header key becomes U+FFFD, as in Kafka."""
        cdef RecordBatch batch = self.batch  # held: making objects may run finalizers, which may call __init__
        cdef kw_record head = self.head
        if head.headers == 0:
            return ()
        return _headers(batch.heads.block, batch.heads.size, &head)

    @property
    def sequence(self):
        """The sequence number of an idempotent producer, -1 if there is none."""
        return kw_sequence(&self.batch.head, self.head.offset)

    @property
    def attributes(self):
        """The record's own attributes byte, unused by Kafka so far."""
        return self.head.attributes

    @property
    def own_timestamp(self):
        """The create time stored in the record, even if timestamp_type is "log_append"."""
        return self.head.stamp

    @property
    def control_type(self):
        """The type of a control record: "COMMIT", "ABORT", ... or the number if unknown; None for a data record."""
        return _control(self)[0] if self.batch.is_control else None

    @property
    def control(self):
        """The message in a control record; None if its type is unknown, and for a data record."""
        return _control(self)[1] if self.batch.is_control else None

    def __getattribute__(self, name):
        # the common attributes, by interned name: twice as fast as the property lookup
        if name is _VALUE:
            return _part(self, self.head.value_at, self.head.value_size)
        if name is _KEY:
            return _part(self, self.head.key_at, self.head.key_size)
        if name is _OFFSET:
            return self.head.offset
        if name is _TIMESTAMP:
            return _timestamp(self)
        return PyObject_GenericGetAttr(self, name)

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return _content(self) == _content(other) and self.head.timestamp_type == (
            <Record> other).head.timestamp_type and self.sequence == other.sequence

    def __hash__(self):
        return hash(_content(self))

    def __repr__(self):
        headers = self.headers
        rest = f", headers={_headers_text(headers)}" if headers else ""
        rest += "".join(
            f", {name}={value!r}" for name, value, default in (
                ("timestamp_type", self.timestamp_type, "create"), ("sequence", self.sequence, -1),
                ("attributes", self.attributes, 0),
            ) if value != default
        )
        return (f"Record(offset={self.offset}, timestamp={self.timestamp}, key={_bytes_text(self.key)}, "
                f"value={_bytes_text(self.value)}{rest})")

    def __reduce__(self):
        return _rebuild_record, (self.offset, self.timestamp, self.key, self.value, self.headers, self.timestamp_type,
                                 self.sequence, self.attributes, self.own_timestamp, self.batch.is_control)


cdef enum:
    MOST_BYTES = 64   # of a key, value or header that a repr shows
    MOST_HEADERS = 8  # that it shows


cdef str _bytes_text(object data):
    """The repr of a key or value, cut."""
    if data is None or len(data) <= MOST_BYTES:
        return repr(data)
    return f"{data[:MOST_BYTES]!r}... ({len(data)} bytes)"


cdef str _headers_text(tuple headers):
    """The repr of headers, cut."""
    pairs = [f"({name[:MOST_BYTES]!r}, {_bytes_text(value)})" for name, value in headers[:MOST_HEADERS]]
    if len(headers) > MOST_HEADERS:
        pairs.append(f"... {len(headers) - MOST_HEADERS} more")
    return f"({', '.join(pairs)}{',' if len(pairs) == 1 else ''})"


def _rebuild_record(offset, timestamp, key, value, headers, timestamp_type, sequence, attributes, own, is_control):
    cdef Record record = Record(offset, timestamp, key, value, headers, timestamp_type=timestamp_type,
                                sequence=sequence, attributes=attributes)
    record.head.stamp = own
    if is_control:
        record.batch.head.attributes = KW_ATTR_CONTROL
    return record


cdef str _which(str what, Py_ssize_t header):
    """What an error names: a part of a record or, from 0 on, of its header of that number."""
    return what if header < 0 else f"header {header}: {what}"


cdef bytes _bytes_of(object data, str what, Py_ssize_t header=-1):
    """The bytes of a buffer, of a record or (header >= 0) of a header. Raises TypeError, EncodeError above 2 GiB."""
    cdef bytes content
    if type(data) is bytes:
        content = data
    elif PyObject_CheckBuffer(data) and not holds_objects(data):
        content = take_view(data, _which(what, header)).tobytes()
    else:
        raise TypeError(f"{_which(what, header)} must be bytes, not {type(data).__name__}")
    if len(content) > INT32_MAX:
        what = _which(what, header)
        raise EncodeError(f"{what} exceeds 2 GiB", path=what)
    return content


cdef bint is_iterable(object value) except -1:
    """Whether it can hold rows or pairs; a memoryview holds numbers, and of several dimensions it cannot be read."""
    if isinstance(value, memoryview) or is_no_row(value):
        return False
    if getattr(type(value), "__iter__", None) is not None:  # not called here: what it raises is the caller's
        return True
    try:
        iter(value)
    except TypeError:
        return False
    return True


cdef list header_list(object headers, str place):
    """The headers of a record: pairs, a dict of them, or None. place: before their name in the error, or ""."""
    if isinstance(headers, dict):
        return list(headers.items())
    if headers is not None and not is_iterable(headers):
        raise TypeError(f"{place}headers must be pairs (key, value), not {type(headers).__name__}")
    return [] if headers is None else list(headers)


cdef tuple header_pair(object pair, str what):
    """A header as (key, value). what: which one, for the error. Raises TypeError, EncodeError for another length."""
    cdef tuple parts
    if isinstance(pair, (str, bytes, bytearray, memoryview)) or not is_iterable(pair):
        raise TypeError(f"{what} must be a pair (key, value), not {type(pair).__name__}")
    parts = tuple(pair)
    if len(parts) != 2:
        raise EncodeError(f"expected (key, value), got {len(parts)} values", path=what)
    return parts


cdef bytes _encoded(object name, Py_ssize_t header):
    """The key of the header of that number as UTF-8. Raises TypeError, EncodeError."""
    if not isinstance(name, str):
        raise TypeError(f"{_which('key', header)} must be str, not {type(name).__name__}")
    try:
        return str.encode(name)
    except UnicodeEncodeError:
        raise EncodeError("a lone surrogate cannot be encoded as UTF-8", path="headers") from None


cdef int _timestamp_type(object name) except -2:
    if isinstance(name, str):  # an array would be compared item by item
        text = str.__str__(name)
        if text == "create":
            return 0
        if text == "log_append":
            return 1
        if text == "none":
            return -1
    raise ValueError(f"timestamp_type must be 'none', 'create' or 'log_append', not {brief(name)}")


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class RecordBatch:
    """One record batch (magic 2), or one entry, plain or a compressed wrapper (magic 0 and 1).

    Iteration gives its Records, len() their number. A corrupt record raises CorruptBatchError when the records are
    first read. position: byte of the input; size: in bytes, with base offset and length; timestamps in milliseconds.
    Source: Kafka's DefaultRecordBatch and AbstractLegacyRecordBatch.
    """

    cdef int load(self, kw_record *first=NULL, uint32_t room=0) except -1:
        """Decompress and check all records, once. 1: the first `room` heads are in first; 0: already done."""
        cdef Block payload = None
        cdef kw_heads heads
        if self.is_loaded:
            return 0
        if self.head.codec and self.head.count != 0:
            payload = unpack(self.block, self.data, &self.head, self.limit, self.at)
        check_heads(&heads, self.data, &self.head, payload, first, room, self.at)
        if self.is_loaded:  # another thread was first, as the check runs without the GIL: its payload is used
            return 0
        self.heads, self.payload, self.is_loaded = heads, payload, True
        return 1

    def __len__(self):
        if self.head.count >= 0:
            return self.head.count
        self.load()
        return self.heads.left

    def __iter__(self):
        cdef RecordIterator iterator = RecordIterator.__new__(RecordIterator)
        iterator.batch = self
        iterator.begin()
        return iterator

    def extent(self):
        """(minimum timestamp, maximum timestamp, index of the first misplaced record), each -1 if there is none.

        Misplaced: its offset is not above the previous one, or is outside the batch's base and last offset.
        """
        cdef Py_ssize_t i = 0, misplaced = -1
        cdef int64_t stamp, smallest = -1, largest = -1, before = 0
        cdef RecordIterator iterator = iter(self)
        cdef kw_record *head = iterator.step()
        while head != NULL:
            stamp = kw_timestamp(&self.head, head)
            if i == 0 or stamp < smallest:
                smallest = stamp
            if i == 0 or stamp > largest:
                largest = stamp
            if misplaced < 0 and ((i and head.offset <= before) or head.offset > self.head.last_offset
                                  or (self.head.magic == 2 and head.offset < self.head.base_offset)):
                misplaced = i
            before = head.offset
            i += 1
            head = iterator.step()
        return smallest, largest, misplaced

    @property
    def plain_size(self):
        """The size in bytes of the batch without compression; decompresses it."""
        self.load()
        if self.payload is None:
            return self.head.size
        return self.payload.size + (KW_RECORD_BATCH_OVERHEAD if self.head.magic == 2 else 0)

    def is_valid(self):
        """Whether the checksum matches (RecordBatch.isValid)."""
        return checksum_holds(self.data, &self.head)

    @property
    def raw(self):
        """The bytes of the batch, a copy."""
        return PyBytes_FromStringAndSize(<const char *> self.data, self.head.size)

    @property
    def position(self):
        """The byte of the input at which the batch begins."""
        return self.at

    @property
    def size(self):
        """The size in bytes, with base offset and length."""
        return self.head.size

    @property
    def magic(self):
        """The format version: 0, 1 or 2."""
        return self.head.magic

    @property
    def codec(self):
        """"none", "gzip", "snappy", "lz4" or "zstd"; the number of an unknown codec as text."""
        return codec_name(self.head.codec)

    @property
    def base_offset(self):
        """The offset of the first record, even if compaction removed it (magic 0, 1: of the first entry)."""
        if self.head.count >= 0:
            return self.head.base_offset
        cdef RecordIterator iterator = iter(self)
        return iterator.step().offset

    @property
    def last_offset(self):
        """The offset of the last record, even if compaction removed it."""
        return self.head.last_offset

    @property
    def partition_leader_epoch(self):
        """The epoch of the leader that appended the batch, -1 in magic 0 and 1."""
        return self.head.partition_leader_epoch

    @property
    def crc(self):
        """The stored checksum, unsigned: CRC-32C in magic 2, CRC-32 in magic 0 and 1."""
        return self.head.crc

    @property
    def attributes(self):
        """The stored attributes, unsigned."""
        return self.head.attributes

    @property
    def timestamp_type(self):
        """"none", "create" or "log_append"."""
        return TIMESTAMP_TYPES[self.head.timestamp_type + 1]

    @property
    def base_timestamp(self):
        """The stored base timestamp in milliseconds; the delete horizon if there is one."""
        return self.head.base_timestamp

    @property
    def max_timestamp(self):
        """The largest timestamp, or the append time, in milliseconds."""
        return self.head.max_timestamp

    @property
    def is_transactional(self):
        """Whether the batch is part of a transaction."""
        return self.head.magic == 2 and (self.head.attributes & KW_ATTR_TRANSACTIONAL) != 0

    @property
    def is_control(self):
        """Whether the batch holds control records."""
        return self.head.magic == 2 and (self.head.attributes & KW_ATTR_CONTROL) != 0

    @property
    def delete_horizon(self):
        """The time in milliseconds from which compaction may remove tombstones and markers (KIP-534), or None."""
        if self.head.magic == 2 and self.head.attributes & KW_ATTR_DELETE_HORIZON:
            return self.head.base_timestamp
        return None

    @property
    def producer_id(self):
        """The producer id, -1 if there is none."""
        return self.head.producer_id

    @property
    def producer_epoch(self):
        """The producer epoch, -1 if there is none."""
        return self.head.producer_epoch

    @property
    def base_sequence(self):
        """The sequence number of the first record, -1 if there is none."""
        return self.head.base_sequence

    @property
    def count(self):
        """The number of records."""
        return len(self)

    def __repr__(self):
        count = self.head.count if self.head.count >= 0 else "?"
        return (f"<RecordBatch magic={self.head.magic} codec={self.codec!r} offset={self.head.base_offset}"
                f"..{self.head.last_offset} count={count} position={self.at} size={self.head.size}>")


@cython.final
@cython.freelist(16)
@cython.no_gc
cdef class RecordIterator:
    """An iterator over the records of one batch, which holds the heads of one portion of them at a time."""

    cdef RecordBatch batch
    cdef kw_heads heads       # of the records after the portion
    cdef kw_record *portion
    cdef uint32_t room, next, end

    def __dealloc__(self):
        free(self.portion)

    cdef int begin(self) except -1:
        """Go to the first record of the batch."""
        cdef RecordBatch batch = self.batch
        cdef bint filled
        self.room = KW_PORTION if batch.head.count < 0 else min(batch.head.count, KW_PORTION)
        self.portion = <kw_record *> malloc((self.room or 1) * sizeof(kw_record))
        if self.portion == NULL:
            raise MemoryError
        filled = batch.load(self.portion, self.room)
        self.heads = batch.heads
        if filled and self.heads.left <= self.room:  # the check has left all heads in the portion
            self.end = self.heads.left
            self.heads.left = 0
        return 0

    cdef kw_record *step(self) except? NULL:
        """The next record's head, NULL after the last."""
        cdef kw_batch_status status
        if self.next == self.end:
            if not self.heads.left:
                return NULL
            self.next = self.end = 0
            status = kw_heads_next(&self.heads, self.portion, self.room, &self.end)
            if status != KW_BATCH_OK:
                raise corrupt(status, self.batch.at, &self.batch.head, self.heads.at)
        self.next += 1
        return self.portion + (self.next - 1)

    def __iter__(self):
        return self

    def __length_hint__(self):
        return self.end - self.next + self.heads.left

    def __next__(self):
        cdef Record record = Record.__new__(Record)
        cdef const kw_record *head = self.step()
        if head == NULL:
            raise StopIteration
        record.batch = self.batch
        record.head = head[0]
        return record


def readable_records(RecordBatch batch not None):
    """The records of a corrupt batch before the first one that cannot be read, as an iterator.

    None of a compressed batch and of magic 0 and 1, as in Kafka. Source: DefaultRecordBatch.iterator.
    """
    cdef RecordBatch holder = new_batch()  # these records are not the batch's own
    cdef kw_record head
    cdef uint32_t count = 0
    cdef Record record
    if batch.head.magic != 2 or batch.head.codec:
        return
    holder.head, holder.block, holder.data, holder.at = batch.head, batch.block, batch.data, batch.at
    holder.heads.batch = &holder.head
    holder.heads.block, holder.heads.size, holder.heads.at = batch.data, batch.head.size, batch.head.payload
    holder.heads.left = <uint32_t> max(batch.head.count, 0)
    holder.is_loaded = True
    while kw_heads_next(&holder.heads, &head, 1, &count) == KW_BATCH_OK and count:
        record = Record.__new__(Record)
        record.batch = holder
        record.head = head
        yield record


cdef RecordBatch new_batch():
    """An empty RecordBatch, to be filled before it is used."""
    return RecordBatch.__new__(RecordBatch)


cdef RecordBatch NOWHERE = new_batch()  # of a Record that was not initialised
cdef Block NO_BYTES = pin(b"")

seal(RecordBatch)
seal(RecordIterator)


@cython.final
@cython.trashcan(True)  # a user may make a chain of them, each the error of the next
cdef class BadBatch:
    """Bytes that are not a valid batch, with errors="keep".

    position: byte of the input; raw: the bytes; error: the KwireError; source: the index of the input, if there are
    several.
    """

    cdef readonly Py_ssize_t position
    cdef readonly bytes raw
    cdef readonly object error
    cdef readonly int source

    def __cinit__(self, position, bytes raw not None, error, source=0):
        self.position = bounded(position, "position", 0, INT64_MAX)
        self.raw = raw
        self.error = error
        self.source = <int> bounded(source, "source", 0, INT32_MAX)

    def __repr__(self):
        return f"<BadBatch position={self.position} size={len(self.raw)}: {str(self.error)[:500]}>"

    def __reduce__(self):
        return BadBatch, (self.position, self.raw, self.error, self.source)


@cython.final
@cython.no_gc
cdef class BatchIterator:
    """An iterator over the batches of one input. At its end, tail is (position, bytes left) of a partial last batch.

    Threads may share it: each batch is returned once. Checksums and decompression run without the GIL, so a batch is
    checked first and returned only if no other thread has returned it meanwhile.
    """

    cdef Block block
    cdef Py_ssize_t at, limit, origin
    cdef bint verify_crc, keep, strict_tail
    cdef readonly object tail
    __class_getitem__ = classmethod(GenericAlias)  # of what it gives

    def __cinit__(self, data, verify_crc, errors, limit, strict_tail, position=0):
        if not isinstance(errors, str) or errors not in ("raise", "keep"):
            raise ValueError(f"errors must be 'raise' or 'keep', not {brief(errors)}")
        self.block = NO_BYTES  # until there are some: code of the caller may run, and find this object
        self.block = pin(data)
        self.verify_crc = verify_crc
        self.keep = errors == "keep"
        self.limit = clipped(limit, "max_batch_bytes")
        self.origin = clipped(position, "position")
        if not 0 <= self.origin <= INT64_MAX - self.block.size:
            raise DecodeError(f"invalid file position {self.origin}", offset=self.origin)
        self.strict_tail = strict_tail

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t at, end, after
        while True:
            at = end = kw_claimed(&self.at)
            if at >= self.block.size:
                raise StopIteration
            batch = self.look(at, &end)
            after = end if self.keep or type(batch) is RecordBatch else self.block.size  # nothing follows an error
            if not kw_claim(&self.at, at, after):
                continue  # another thread has returned this batch meanwhile
            return batch if type(batch) is RecordBatch else self.strange(at, end, batch)

    cdef object look(self, Py_ssize_t at, Py_ssize_t *end):
        """(the batch at byte `at`, its end): a RecordBatch, an error for a bad batch, None for a partial one.

        The iterator itself does not move.
        """
        cdef const uint8_t *data = self.block.data + at
        cdef Py_ssize_t left = self.block.size - at, position = self.origin + at, trusted
        cdef RecordBatch batch = new_batch()
        cdef kw_batch_status status = kw_batch_read(data, left, &batch.head)
        trusted = kw_batch_trusted_size(data, left)
        end[0] = at + (trusted or left)
        if status == KW_BATCH_TAIL:
            end[0] = self.block.size
            return None
        if status != KW_BATCH_OK:
            return corrupt(status, position, &batch.head)
        batch.block = self.block
        batch.data = data
        batch.at = position
        batch.limit = self.limit
        if self.verify_crc and not checksum_holds(data, &batch.head):
            return corrupt(KW_BATCH_CRC, position, &batch.head)
        if self.keep:
            try:
                batch.load()
            except MissingCodecError:
                raise
            except KwireError as error:
                if self.verify_crc:  # the checksum covers the length too
                    end[0] = at + batch.head.size
                error.__traceback__ = None  # there may be one for every 26 bytes
                return error
        end[0] = at + batch.head.size
        return batch

    cdef object strange(self, Py_ssize_t at, Py_ssize_t end, object error):
        """Return the bytes from at to end as a BadBatch, or raise their error; None for a partial last batch."""
        cdef Py_ssize_t position = self.origin + at
        if error is None:
            self.tail = (position, end - at)
            if not self.strict_tail:
                raise StopIteration
            error = partial_batch(self.block.data + at, end - at, position)
        if not self.keep:
            raise error
        return BadBatch(position, PyBytes_FromStringAndSize(<const char *> self.block.data + at, end - at), error)
