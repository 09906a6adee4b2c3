"""What kafka-dump-log prints of batches and records, and the same as JSON values."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Any

from kwire.cli.dump_decoders import Decoder, NotDecoded, java_json
from kwire.cli.dump_dialects import Dialect
from kwire.cli.terminal import BATCH_FIELDS
from kwire.codec.control import control_json
from kwire.compression import decompress
from kwire.defaults import MAX_BATCH_BYTES
from kwire.errors import CorruptBatchError, DecodeError
from kwire.storage.batches.batch_header import BatchHeader, parse_header
from kwire.storage.side_files.checkpoints import ProducerState
from kwire_c.codecs import CODECS
from kwire_c.record_batch import (
    CODEC_MASK,
    LEGACY_CRC_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    Record,
    RecordBatch,
    readable_records,
)

TIMESTAMP_TYPES = {"none": "NoTimestampType", "create": "CreateTime", "log_append": "LogAppendTime"}
_MARKERS = ("COMMIT", "ABORT")
# how a message in a control record is introduced
_CONTROL = {"LEADER_CHANGE": "LeaderChange:", "SNAPSHOT_HEADER": "SnapshotHeader", "SNAPSHOT_FOOTER": "SnapshotFooter",
            "KRAFT_VERSION": "KRaftVersion", "KRAFT_VOTERS": "KRaftVoters"}  # fmt: skip
_MOST_SEQUENCE = (1 << 31) - 1
_ENTRY_START = Struct(">qiIb").unpack_from  # of an entry of magic 0 or 1: offset, length, checksum, magic


def truth(value: bool) -> str:
    """A bool as Java prints it."""
    return "true" if value else "false"


def _base_and_count(batch: RecordBatch | BatchHeader) -> tuple[int, int]:
    """(base offset, number of records) of a batch of magic 2 as its header has them, even if the number is negative."""
    try:
        return batch.base_offset, batch.count
    except CorruptBatchError:
        assert isinstance(batch, RecordBatch)
        header = parse_header(memoryview(batch.raw), 0, 0)
        return header.base_offset, header.count


def _is_valid(batch: RecordBatch | BatchHeader) -> bool:
    """Whether the checksum matches: of a large batch where it does not, FileBatches gives the header alone."""
    return isinstance(batch, RecordBatch) and batch.is_valid()


def last_sequence(batch: RecordBatch | BatchHeader) -> int:
    """The sequence of the last record, which wraps after 2^31 - 1; -1 if there is none."""
    if batch.base_sequence == -1:
        return -1
    first, more = batch.base_sequence, batch.last_offset - _base_and_count(batch)[0]
    if first > _int32(_MOST_SEQUENCE - more):  # DefaultRecordBatch.incrementSequence, of damaged numbers too
        return _int32(more - (_MOST_SEQUENCE - first) - 1)
    return _int32(first + more)


def _int32(value: int) -> int:
    """A sum as an int in Java, which overflows."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def optional_long(value: int | None) -> str:
    """An OptionalLong as Java prints it."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def batch_line(batch: RecordBatch | BatchHeader) -> str:
    """The line of a batch. Raises CorruptBatchError for an unknown codec, as the tool does."""
    codec = batch.codec
    if codec not in CODECS:
        reason = f"Unknown compression type id: {codec}"
        raise CorruptBatchError(reason, position=batch.position, offset=batch.base_offset)
    if batch.magic == 2:
        base, count = _base_and_count(batch)
        start = (
            f"baseOffset: {base} lastOffset: {batch.last_offset} count: {count} "
            f"baseSequence: {batch.base_sequence} lastSequence: {last_sequence(batch)} "
            f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
            f"partitionLeaderEpoch: {batch.partition_leader_epoch} isTransactional: {truth(batch.is_transactional)} "
            f"isControl: {truth(batch.is_control)} deleteHorizonMs: {optional_long(batch.delete_horizon)}"
        )
    else:
        start = f"offset: {batch.last_offset}"
    return (
        f"{start} position: {batch.position} {TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp} "
        f"size: {batch.size} magic: {batch.magic} compresscodec: {codec} crc: {batch.crc} "
        f"isvalid: {truth(_is_valid(batch))}"
    )


def batch_values(batch: RecordBatch | BatchHeader) -> dict[str, Any]:
    """A batch as a JSON object; what its format lacks is left out."""
    if batch.magic < 2:
        names = ("position", "size", "magic", "codec", "last_offset", "crc", "timestamp_type", "max_timestamp")
        return {name: getattr(batch, name) for name in names} | {"is_valid": _is_valid(batch)}
    values: dict[str, Any] = dict.fromkeys(BATCH_FIELDS)
    values["base_offset"], values["count"] = _base_and_count(batch)
    values |= {name: getattr(batch, name) for name in BATCH_FIELDS if values[name] is None}
    return values | {"last_sequence": last_sequence(batch), "is_valid": _is_valid(batch)}


def record_lines(
    batch: RecordBatch, decoder: Decoder | None, metadata: bool, dialect: Dialect
) -> Iterator[tuple[int, str]]:
    """(offset, line) of each of a batch's records.

    decoder: of keys and values, None if they are not printed; metadata: offset, sizes and so on are printed, and
    control records.
    """
    parse = None if decoder is None or batch.is_control else decoder.text
    stamp = TIMESTAMP_TYPES[batch.timestamp_type]
    checksums = entry_checksums(batch) if batch.magic < 2 and metadata else None
    for record in _records(batch):
        line = ""
        if metadata:
            key, value = record.key, record.value
            line = (f"| offset: {record.offset} {stamp}: {record.timestamp} keySize: {-1 if key is None else len(key)} "
                    f"valueSize: {-1 if value is None else len(value)}")
            if checksums is None:
                headers = record.headers
                names = ",".join([name for name, _ in headers]) if headers else ""
                line += f" sequence: {record.sequence} headerKeys: [{names}]"
            else:
                crc, valid = next(checksums)
                line += f" isValid: {truth(valid)} crc: {crc}{dialect.closing}"
            if batch.is_control:
                line += _control_text(record, dialect)
        if parse is not None:
            try:
                line += _content_text(parse(record), " " if metadata else "| ", dialect)
            except NotDecoded:
                yield record.offset, line
                raise
        yield record.offset, line


def _records(batch: RecordBatch) -> Iterator[Record]:
    """The records of a batch; of a corrupt one those before the damage, then its error."""
    try:
        records = iter(batch)
    except CorruptBatchError:
        yield from readable_records(batch)
        raise
    yield from records


def _content_text(decoded: tuple[Any, Any], prefix: str, dialect: Dialect) -> str:
    key, payload = decoded
    text = ""
    if key is not None:
        text = f"{prefix}key: {key if type(key) is str else java_json(key)}"
    if key is not None or not dialect.in_java:
        prefix = " "
    if payload is not None:
        text += f"{prefix}payload: {payload if type(payload) is str else java_json(payload)}"
    return text


def record_values(
    batch: RecordBatch, decoder: Decoder | None, metadata: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(offset, JSON object) of each of a batch's records; the arguments are those of record_lines."""
    parse = None if decoder is None or batch.is_control else decoder.values
    checksums = entry_checksums(batch) if batch.magic < 2 else None
    for record in _records(batch):
        values: dict[str, Any] = {}
        if metadata:
            key, value = record.key, record.value
            values = {
                "offset": record.offset, "timestamp_type": record.timestamp_type, "timestamp": record.timestamp,
                "key_size": -1 if key is None else len(key), "value_size": -1 if value is None else len(value),
            }
            if checksums is None:
                values |= {"sequence": record.sequence, "header_keys": [name for name, _ in record.headers]}
            else:
                values["crc"], values["is_valid"] = next(checksums)
            if batch.is_control:
                values |= _control_values(record)
        if parse is not None:
            values["key"], values["payload"] = parse(record)
        yield record.offset, values


def producer_line(producer: ProducerState, dialect: Dialect) -> str:
    """The line of a producer in a .snapshot file."""
    ongoing, (none, some) = producer.current_transaction_first_offset, dialect.first_offset
    line = (f"producerId: {producer.producer_id} producerEpoch: {producer.producer_epoch} "
            f"coordinatorEpoch: {producer.coordinator_epoch} "
            f"currentTxnFirstOffset: {none if ongoing < 0 else some % ongoing} "
            f"lastTimestamp: {producer.timestamp}")
    if producer.last_offset < 0:
        return line + dialect.after_producer
    first = producer.last_sequence - producer.offset_delta
    first += (1 << 31) if first < 0 <= producer.last_sequence else 0
    return (f"{line} firstSequence: {first} lastSequence: {producer.last_sequence} "
            f"lastOffset: {producer.last_offset} offsetDelta: {producer.offset_delta} timestamp: {producer.timestamp}")


def _control(record: Record) -> tuple[str | int | None, Any]:
    """(type, the marker's message or the message as a JSON value, None if the type is unknown)."""
    try:
        kind, message = record.control_type, record.control
    except DecodeError as error:
        raise CorruptBatchError(f"record at offset {record.offset}: {error.reason}", offset=record.offset) from None
    if message is None or kind in _MARKERS:
        return kind, message
    return kind, control_json(message, record.value or b"")


def _control_text(record: Record, dialect: Dialect) -> str:
    kind, message = _control(record)
    if message is None:
        return f" controlType: UNKNOWN({kind})"
    if kind in dialect.control_types:
        return f" controlType: {dialect.control_types[kind]}"
    if kind in _MARKERS:
        return f" endTxnMarker: {kind} coordinatorEpoch: {message.coordinator_epoch}"
    assert isinstance(kind, str)
    return f" {_CONTROL[kind]} {java_json(message)}"


def _control_values(record: Record) -> dict[str, Any]:
    kind, message = _control(record)
    if kind in _MARKERS:
        message = {"coordinatorEpoch": message.coordinator_epoch}
    return {"control_type": kind, "control": message}


def entry_checksums(batch: RecordBatch) -> Iterator[tuple[int, bool]]:
    """(CRC-32, whether it matches) of each entry of a batch of magic 0 or 1; of a wrapper: of the entries in it."""
    if batch.codec == "none":
        yield batch.crc, batch.is_valid()
        return
    data = memoryview(decompress(batch.codec, _wrapped(batch.raw), limit=MAX_BATCH_BYTES, magic=batch.magic)).cast("B")
    at = 0
    while at + LEGACY_CRC_OFFSET + 4 <= len(data):
        _, length, crc, _ = _ENTRY_START(data, at)
        end = at + LOG_OVERHEAD + length
        yield crc, zlib.crc32(data[at + MAGIC_OFFSET : end]) == crc
        at = end


def _wrapped(raw: bytes) -> memoryview:
    """The value of a wrapper: after checksum, magic, attributes, time (magic 1), key and its size."""
    assert raw[MAGIC_OFFSET + 1] & CODEC_MASK
    at = MAGIC_OFFSET + 2 + (8 if raw[MAGIC_OFFSET] else 0)
    for part in range(2):
        size = int.from_bytes(raw[at : at + 4], "big", signed=True)
        at += 4
        if not part:
            at += max(0, size)
    return memoryview(raw)[at : at + size]

