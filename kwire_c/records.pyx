"""Record batches of magic 0, 1 and 2 as objects: reading."""

import zlib

from kwire_c.cursor import write_varint
from kwire_c.failure import CorruptBatchError, LimitError
from kwire_c.text import decode_replacing

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc

cimport cython

from kwire_c.batch cimport (
    KW_ATTR_CONTROL,
    KW_ATTR_DELETE_HORIZON,
    KW_ATTR_TRANSACTIONAL,
    KW_BATCH_CODEC,
    KW_BATCH_LEGACY_CODEC,
    KW_BATCH_OK,
    KW_BATCH_TRAILING,
    KW_BATCH_WRAPPER_NULL,
    kw_batch,
    kw_batch_count,
    kw_batch_reason,
    kw_batch_status,
    kw_header_read,
    kw_legacy_entry,
    kw_legacy_inner,
    kw_record,
    kw_records_read,
    kw_sequence,
    kw_timestamp,
)
from kwire_c.block cimport Block, pin
from kwire_c.crc32c cimport crc32c_update

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMESTAMP_TYPES = ("none", "create", "log_append")  # by type + 1

# Set by kwire.codec: what these rooms need from above, handed down.
cdef object _decompress = None
cdef object _decode_control = None


def set_decompressor(function):
    """Install decompress(codec id, data, *, limit, magic) -> buffer."""
    global _decompress
    _decompress = function


def set_control_decoder(function):
    """Install decode(key: bytes or None, value: bytes or None) -> (control type, message or None)."""
    global _decode_control
    _decode_control = function


cdef object corrupt(kw_batch_status status, Py_ssize_t position, const kw_batch *head, object where=None):
    reason = kw_batch_reason(status).decode()
    if where is not None:
        reason = f"{reason}, at byte {where} of the {'records' if head.codec else 'batch'}"
    return CorruptBatchError(reason, position=position, offset=head.base_offset if head != NULL else -1)


cdef bint checksum_holds(const uint8_t *data, const kw_batch *head):
    """Is the stored checksum that of the bytes? CRC-32C from the attributes on, CRC-32 from the magic on before v2."""
    if head.magic == 2:
        return crc32c_update(0, data + 21, head.size - 21) == head.crc
    return zlib.crc32(PyMemoryView_FromMemory(<char *> data + 16, head.size - 16, PyBUF_READ)) == head.crc


cdef Block unpack(const uint8_t *data, const kw_batch *head, Py_ssize_t limit, Py_ssize_t position):
    """The decompressed payload of a compressed batch: at most limit bytes."""
    cdef kw_record wrapper
    cdef kw_batch_status status
    cdef const uint8_t *start = data + head.payload
    cdef Py_ssize_t size = <Py_ssize_t> head.size - head.payload
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
    try:
        return pin(_decompress(head.codec, PyMemoryView_FromMemory(<char *> start, size, PyBUF_READ), limit=limit,
                               magic=head.magic))
    except CorruptBatchError as error:
        raise CorruptBatchError(error.reason, position=position, offset=head.base_offset) from None
    except LimitError as error:
        raise LimitError(error.reason, limit=error.limit, needed=error.needed, offset=position) from None


cdef Py_ssize_t read_heads(const uint8_t *data, const kw_batch *head, Block payload, kw_record **records,
                           Py_ssize_t *room, Py_ssize_t position) except -1:
    """Parse every record's head into records (grown as needed); returns how many. payload: of a compressed batch."""
    cdef kw_batch_status status
    cdef uint32_t where = 0, count = 0, size
    cdef const uint8_t *block = data
    cdef uint32_t start = head.payload
    if payload is not None:
        if payload.size > 0x7fffffff:
            raise corrupt(KW_BATCH_CODEC, position, head, payload.size)
        block = payload.data
        start = 0
        size = <uint32_t> payload.size
    else:
        size = head.size
    if head.magic == 2:
        status = kw_batch_count(head, size - start)
        if status != KW_BATCH_OK:
            raise corrupt(status, position, head)
        _reserve(records, room, head.count)
        with nogil:
            where = start
            status = kw_records_read(block, &where, size, head, records[0], <uint32_t> head.count)
            if status == KW_BATCH_OK and where != size and head.count:
                status = KW_BATCH_TRAILING
        count = head.count
    elif payload is None:
        _reserve(records, room, 1)
        status = kw_legacy_entry(block, size, records[0])
        count = 1
    else:
        with nogil:
            status = kw_legacy_inner(block, size, head, records[0], <uint32_t> room[0], &count, &where)
        if status == KW_BATCH_OK and count > room[0]:
            _reserve(records, room, count)
            status = kw_legacy_inner(block, size, head, records[0], <uint32_t> room[0], &count, &where)
    if status != KW_BATCH_OK:
        raise corrupt(status, position, head, where)
    return count


cdef int _reserve(kw_record **records, Py_ssize_t *room, Py_ssize_t count) except -1:
    cdef void *grown
    if count > room[0]:
        grown = realloc(records[0], count * sizeof(kw_record))
        if grown == NULL:
            raise MemoryError
        records[0] = <kw_record *> grown
        room[0] = count
    return 0


cdef tuple _headers(const uint8_t *data, uint32_t size, const kw_record *head):
    """The headers of a record: (str, bytes or None) pairs. Checked anew: the input may be mutable."""
    cdef uint32_t at = head.headers_at, key_at = 0, value_at = 0
    cdef int32_t key_size = 0, value_size = 0
    cdef kw_batch_status status
    if head.headers <= 0:
        return ()
    found = []
    for _ in range(head.headers):
        status = kw_header_read(data, size, &at, &key_at, &key_size, &value_at, &value_size)
        if status != KW_BATCH_OK:
            raise corrupt(status, 0, NULL)
        try:
            key = PyUnicode_DecodeUTF8(<const char *> data + key_at, key_size, NULL)
        except UnicodeDecodeError:
            key = decode_replacing(PyBytes_FromStringAndSize(<const char *> data + key_at, key_size))
        value = None
        if value_size >= 0:
            value = PyBytes_FromStringAndSize(<const char *> data + value_at, value_size)
        found.append((key, value))
    return tuple(found)


@cython.final
@cython.freelist(512)
@cython.no_gc
cdef class Record:
    """One record. Key, value and headers are made when they are read; the input stays alive until then.

    offset: int; timestamp: int, milliseconds since 1970 (-1: none); timestamp_type: "none", "create" or "log_append";
    key, value: bytes or None; headers: tuple of (str, bytes or None); sequence: int (-1: none); attributes: int.
    Source: Kafka's DefaultRecord and LegacyRecord.
    """

    def __init__(self, offset=-1, timestamp=-1, key=None, value=None, headers=(), *, timestamp_type="create",
                 sequence=-1, attributes=0):
        packed = bytearray()
        self.head.offset = offset
        self.head.stamp = self.reported = timestamp
        self.head.attributes = attributes
        self.head.timestamp_type = _timestamp_type(timestamp_type)
        self.sequence_number = sequence
        self.head.key_size = self.head.value_size = -1
        if key is not None:
            packed += key
            self.head.key_size = <int32_t> len(packed)
        if value is not None:
            self.head.value_at = <uint32_t> len(packed)
            packed += value
            self.head.value_size = <int32_t> (len(packed) - self.head.value_at)
        self.head.headers_at = <uint32_t> len(packed)
        for name, content in headers:
            name = name.encode()
            packed += write_varint(len(name)) + name
            packed += write_varint(-1) if content is None else write_varint(len(content)) + bytes(content)
            self.head.headers += 1
        self.block = pin(bytes(packed))
        self.data = self.block.data
        self.size = <uint32_t> len(packed)

    @property
    def offset(self):
        """Absolute offset in the partition."""
        return self.head.offset

    @property
    def timestamp(self):
        """Milliseconds since 1970; the batch's where the broker set it; -1 where there is none."""
        return self.reported

    @property
    def timestamp_type(self):
        """"none", "create" or "log_append"."""
        return TIMESTAMP_TYPES[self.head.timestamp_type + 1]

    @property
    def key(self):
        """The key: bytes or None."""
        if self.head.key_size < 0:
            return None
        return PyBytes_FromStringAndSize(<const char *> self.data + self.head.key_at, self.head.key_size)

    @property
    def value(self):
        """The value: bytes or None (a tombstone)."""
        if self.head.value_size < 0:
            return None
        return PyBytes_FromStringAndSize(<const char *> self.data + self.head.value_at, self.head.value_size)

    @property
    def headers(self):
        """Tuple of (str, bytes or None); bad UTF-8 in a key reads as U+FFFD, as in Kafka."""
        if self.head.headers == 0:
            return ()
        return _headers(self.data, self.size, &self.head)

    @property
    def sequence(self):
        """Sequence number of an idempotent producer, -1 without one."""
        return self.sequence_number

    @property
    def attributes(self):
        """The record's own attributes byte, unused by Kafka so far."""
        return self.head.attributes

    @property
    def own_timestamp(self):
        """The timestamp that stands in the record, also where the broker's append time is reported instead."""
        return self.head.stamp

    @property
    def control_type(self):
        """Type of a control record: "COMMIT", "ABORT", ... or the number of an unknown one; None for data."""
        return _decode_control(self.key, self.value)[0] if self.is_control else None

    @property
    def control(self):
        """The message in a control record, None if its type is unknown, and for data."""
        return _decode_control(self.key, self.value)[1] if self.is_control else None

    cdef tuple content(self):
        return (self.head.offset, self.reported, self.key, self.value, self.headers)

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return self.content() == (<Record> other).content() and self.head.timestamp_type == (
            <Record> other).head.timestamp_type and self.sequence_number == (<Record> other).sequence_number

    def __hash__(self):
        return hash(self.content())

    def __repr__(self):
        rest = "".join(
            f", {name}={value!r}" for name, value, default in (
                ("headers", self.headers, ()), ("timestamp_type", self.timestamp_type, "create"),
                ("sequence", self.sequence, -1), ("attributes", self.attributes, 0),
            ) if value != default
        )
        return (f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
                f"value={self.value!r}{rest})")

    def __reduce__(self):
        return _rebuild_record, (self.offset, self.timestamp, self.key, self.value, self.headers, self.timestamp_type,
                                 self.sequence, self.attributes, self.own_timestamp, self.is_control)


def _rebuild_record(offset, timestamp, key, value, headers, timestamp_type, sequence, attributes, own, is_control):
    cdef Record record = Record(offset, timestamp, key, value, headers, timestamp_type=timestamp_type,
                                sequence=sequence, attributes=attributes)
    record.head.stamp = own
    record.is_control = is_control
    return record


cdef int _timestamp_type(object name) except -2:
    if name == "create":
        return 0
    if name == "log_append":
        return 1
    if name == "none":
        return -1
    raise ValueError(f"timestamp_type is 'none', 'create' or 'log_append', not {name!r}")


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class RecordBatch:
    """One record batch (magic 2), or one entry, plain or a compressed wrapper (magic 0 and 1).

    Iteration gives Records; len() their number. A damaged record raises CorruptBatchError when records are first
    read. position: byte of the input; size: bytes, the 12 in front included; times in milliseconds.
    Source: Kafka's DefaultRecordBatch and AbstractLegacyRecordBatch.
    """

    def __dealloc__(self):
        free(self.records)

    cdef int load(self) except -1:
        """Parse every record's head, once."""
        cdef Py_ssize_t room = 0
        if self.loaded >= 0:
            return 0
        cdef Block payload = None
        if self.head.codec and self.head.count != 0:
            payload = unpack(self.data, &self.head, self.limit, self.at)
        self.loaded = read_heads(self.data, &self.head, payload, &self.records, &room, self.at)
        self.payload = payload
        return 0

    def __len__(self):
        if self.head.count >= 0:
            return self.head.count
        self.load()
        return self.loaded

    def __iter__(self):
        self.load()
        cdef RecordIterator iterator = RecordIterator.__new__(RecordIterator)
        iterator.batch = self
        if self.payload is not None:
            iterator.block = self.payload
            iterator.data = self.payload.data
            iterator.size = <uint32_t> self.payload.size
        else:
            iterator.block = self.block
            iterator.data = self.data
            iterator.size = self.head.size
        return iterator

    def extent(self):
        """(smallest timestamp, largest, first misplaced record), over the records; -1 where there is none.

        Misplaced: its offset does not rise, or lies outside of the batch's base and last offset.
        """
        cdef Py_ssize_t i, misplaced = -1
        cdef int64_t stamp, smallest = -1, largest = -1, before = 0
        self.load()
        for i in range(self.loaded):
            stamp = kw_timestamp(&self.head, self.records + i)
            if i == 0 or stamp < smallest:
                smallest = stamp
            if i == 0 or stamp > largest:
                largest = stamp
            if misplaced < 0 and ((i and self.records[i].offset <= before)
                                  or self.records[i].offset > self.head.last_offset
                                  or (self.head.magic == 2 and self.records[i].offset < self.head.base_offset)):
                misplaced = i
            before = self.records[i].offset
        return smallest, largest, misplaced

    @property
    def plain_size(self):
        """Bytes that the batch would have without compression; decompresses it."""
        self.load()
        if self.payload is None:
            return self.head.size
        return self.payload.size + (61 if self.head.magic == 2 else 0)

    def is_valid(self):
        """Does the checksum hold? (RecordBatch.isValid)"""
        return checksum_holds(self.data, &self.head)

    @property
    def raw(self):
        """The batch's bytes, a copy."""
        return PyBytes_FromStringAndSize(<const char *> self.data, self.head.size)

    @property
    def position(self):
        """Byte of the input at which the batch begins."""
        return self.at

    @property
    def size(self):
        """Bytes of the batch, base offset and length included."""
        return self.head.size

    @property
    def magic(self):
        """Format: 0, 1 or 2."""
        return self.head.magic

    @property
    def codec(self):
        """"none", "gzip", "snappy", "lz4" or "zstd"; the number of an unknown codec as text."""
        return CODECS[self.head.codec] if self.head.codec < 5 else str(self.head.codec)

    @property
    def base_offset(self):
        """Offset of the first record, whether or not compaction left it (magic 0, 1: of the first entry)."""
        if self.head.count >= 0:
            return self.head.base_offset
        self.load()
        return self.records[0].offset

    @property
    def last_offset(self):
        """Offset of the last record, whether or not compaction left it."""
        return self.head.last_offset

    @property
    def partition_leader_epoch(self):
        """Epoch of the leader that appended the batch, -1 before magic 2."""
        return self.head.partition_leader_epoch

    @property
    def crc(self):
        """The stored checksum, unsigned: CRC-32C in magic 2, CRC-32 before."""
        return self.head.crc

    @property
    def attributes(self):
        """The attributes as they stand in the batch, unsigned."""
        return self.head.attributes

    @property
    def timestamp_type(self):
        """"none", "create" or "log_append"."""
        return TIMESTAMP_TYPES[self.head.timestamp_type + 1]

    @property
    def base_timestamp(self):
        """Milliseconds, as it stands in the batch: the delete horizon where there is one."""
        return self.head.base_timestamp

    @property
    def max_timestamp(self):
        """Milliseconds: the largest timestamp, or the append time."""
        return self.head.max_timestamp

    @property
    def is_transactional(self):
        """Does the batch belong to a transaction?"""
        return self.head.magic == 2 and (self.head.attributes & KW_ATTR_TRANSACTIONAL) != 0

    @property
    def is_control(self):
        """Does the batch hold control records?"""
        return self.head.magic == 2 and (self.head.attributes & KW_ATTR_CONTROL) != 0

    @property
    def delete_horizon(self):
        """Milliseconds at which tombstones of a compacted batch may go (KIP-534), None without one."""
        if self.head.magic == 2 and self.head.attributes & KW_ATTR_DELETE_HORIZON:
            return self.head.base_timestamp
        return None

    @property
    def producer_id(self):
        """Producer id, -1 without one."""
        return self.head.producer_id

    @property
    def producer_epoch(self):
        """Producer epoch, -1 without one."""
        return self.head.producer_epoch

    @property
    def base_sequence(self):
        """Sequence number of the first record, -1 without one."""
        return self.head.base_sequence

    @property
    def count(self):
        """Number of records."""
        return len(self)

    def __repr__(self):
        count = self.head.count if self.head.count >= 0 else "?"
        return (f"<RecordBatch magic={self.head.magic} codec={self.codec!r} offset={self.head.base_offset}"
                f"..{self.head.last_offset} count={count} position={self.at} size={self.head.size}>")


@cython.final
@cython.freelist(16)
@cython.no_gc
cdef class RecordIterator:
    """The records of one batch in order."""

    cdef RecordBatch batch
    cdef Block block
    cdef const uint8_t *data
    cdef uint32_t size
    cdef Py_ssize_t next

    def __iter__(self):
        return self

    def __length_hint__(self):
        return self.batch.loaded - self.next

    def __next__(self):
        cdef RecordBatch batch = self.batch
        if self.next >= batch.loaded:
            raise StopIteration
        cdef Record record = Record.__new__(Record)
        cdef const kw_record *head = batch.records + self.next
        self.next += 1
        record.head = head[0]
        record.block = self.block
        record.data = self.data
        record.size = self.size
        record.reported = kw_timestamp(&batch.head, head)
        record.sequence_number = -1
        if batch.head.base_sequence >= 0:
            record.sequence_number = kw_sequence(
                batch.head.base_sequence, <int32_t> (head.offset - batch.head.base_offset))
        record.is_control = batch.head.magic == 2 and batch.head.attributes & KW_ATTR_CONTROL
        return record
