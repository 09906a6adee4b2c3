"""Records of Kafka's internal topics decoded: commits of offsets, groups, transactions, the cluster's metadata."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from kwire import messages
from kwire.codec.arguments import check_choice, check_type
from kwire.codec.json import to_json
from kwire.codec.messages import decode
from kwire.codec.record_serdes import decode_coordinator_record, decode_metadata_record, decode_remote_log_record
from kwire.codec.records import Record
from kwire.errors import DecodeError, KwireError, UnsupportedVersionError
from kwire.schema.definitions import snake
from kwire.schema.record_type_ids import record_type
from kwire.shared_iterator import shared, unshared
from kwire.storage.places.filesystem import located
from kwire.storage.reading.read_plan import ReadPlans
from kwire_c.errors import alone
from kwire_c.plan import message_of
from kwire_c.printable import brief

if TYPE_CHECKING:
    from kwire.storage.reading.directory import LogDirectory, Partition
    from kwire.storage.reading.read_options import Span
    from kwire.storage.reading.segment import LogSegment
    from kwire_c.message_class import Message

# topic -> the kind of its records, as record_types() names it
INTERNAL_TOPICS = {
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__share_group_state": "share",
    "__remote_log_metadata": "remote_log",
    "__cluster_metadata": "metadata",
}
_KINDS = tuple(INTERNAL_TOPICS.values())
_UNKEYED = {"metadata": decode_metadata_record, "remote_log": decode_remote_log_record}

# the id of a TransactionState in TransactionLogValue -> its name (org.apache.kafka.coordinator.transaction)
TRANSACTION_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
_SNIFFED = 5  # batches and records of a file that tell what it holds
_CONSUMER = "consumer"  # the protocol type of the groups whose members' bytes are of Kafka's ConsumerProtocol
_COMMITS = ("OFFSET_COMMIT", "LEGACY_OFFSET_COMMIT")


class InternalRecord(NamedTuple):
    """A record of an internal topic. offset, timestamp (milliseconds): those of the record in the log.

    kind: "group" "transaction" "share" "remote_log" "metadata". type: Kafka's name of the record's type, as
    "OFFSET_COMMIT" and "TOPIC_RECORD", None for an unknown one; type_id: its number. version: of the value, None where
    there is none. key, value: messages; key None where the kind has none, value None: a tombstone. error: why the
    record cannot be decoded, None if it can; then key and value are bytes.
    """

    kind: str
    offset: int
    timestamp: int
    type: str | None
    type_id: int | None
    version: int | None
    key: Message | bytes | None
    value: Message | bytes | None
    error: KwireError | None = None

    @property
    def is_unknown(self) -> bool:
        """Is it of a type or version that the schema lacks, as a newer Kafka may have written?"""
        return isinstance(self.error, UnsupportedVersionError)

    def key_json(self) -> dict[str, Any] | None:
        """The key as kafka-dump-log's decoders print it, {"type": "1", "data": {...}}; None where there is none."""
        if self.error is not None or self.key is None:
            return None
        return {"type": str(self.type_id), "data": to_json(_message(self.key), 0)}

    def value_json(self) -> dict[str, Any] | None:
        """The value as kafka-dump-log's decoders print it; None for a tombstone, and where there is an error.

        {"version": "4", "data": {...}}; of a kind without keys {"type": "TOPIC_RECORD", "version": 0, "data": {...}}.
        """
        data = self.data()
        if data is None:
            return None
        if self.kind in _UNKEYED:
            return {"type": self.type, "version": self.version, "data": data}
        return {"version": str(self.version), "data": data}

    def data(self) -> dict[str, Any] | None:
        """The value alone as JSON, the subscriptions and assignments in it decoded; None as in value_json()."""
        if self.error is not None or self.value is None:
            return None
        assert self.version is not None
        value = _message(self.value)
        data = to_json(value, self.version)
        if isinstance(value, messages.GroupMetadataValue) and value.protocol_type == _CONSUMER:
            for member, shown in zip(value.members, data["members"], strict=True):
                for field, name in (("subscription", "ConsumerProtocolSubscription"),
                                    ("assignment", "ConsumerProtocolAssignment")):
                    shown[field] = _inner(name, getattr(member, field), shown[field])
        return data


def _message(part: Message | bytes | None) -> Message:
    """The key or value of a record that was decoded."""
    assert part is not None and not isinstance(part, bytes)
    return part


class CommittedOffset(NamedTuple):
    """An offset that a group committed; offset, leader_epoch, metadata and commit_timestamp are None in a tombstone.

    leader_epoch: -1 if it is unknown; commit_timestamp: milliseconds.
    """

    group: str
    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp: int | None


class TransactionRow(NamedTuple):
    """The state of a transactional id; all but transactional_id is None in a tombstone.

    state: TransactionState's name ("Ongoing", "CompleteCommit"); partitions: (topic, partition), None as in the record.
    """

    transactional_id: str
    producer_id: int | None
    producer_epoch: int | None
    state: str | None
    timeout_ms: int | None
    partitions: list[tuple[str, int]] | None


def internal_kind(log: LogSegment | Partition) -> str | None:
    """The kind of the records of a log, None if it is of no internal topic.

    By the topic; of a file outside of a topic's folder by its first records.
    """
    _check_log(log)
    if log.topic is not None:
        return INTERNAL_TOPICS.get(log.topic)
    return next(filter(None, map(_kind_by_content, getattr(log, "segments", [log]))), None)


def _kind_by_content(segment: LogSegment) -> str | None:
    """The one kind as which the first records can all be decoded. Only the metadata log has KRaft's control records."""
    kinds, seen = set(_KINDS), 0
    try:
        for batch in islice(segment.batches(), _SNIFFED):
            if batch.is_control:
                if any(record.control_type not in ("COMMIT", "ABORT") for record in islice(batch, 1)):
                    return "metadata"
                continue
            for record in islice(batch, _SNIFFED):
                kinds = {kind for kind in kinds if decode_internal_record(kind, record).error is None}
                seen += 1
            if not kinds or seen >= _SNIFFED:
                break
    except KwireError:  # of a damaged batch: the reader of the segment reports it
        return None
    return kinds.pop() if seen and len(kinds) == 1 else None


def decode_internal_record(kind: str, record: Record) -> InternalRecord:
    """A Record of an internal topic decoded, its error in .error. kind: as internal_kind() gives it.

    An unknown type or version is an UnsupportedVersionError, which a log of a newer Kafka has; else a DecodeError.
    Raises UnsupportedVersionError for an unknown kind.
    """
    check_type(record, Record, "record", "a Record")
    return decode_parts(kind, record.offset, record.timestamp, record.key, record.value)


def decode_parts(
    kind: str, offset: int, timestamp: int, key: bytes | None, value: bytes | None
) -> InternalRecord:
    """decode_internal_record() of the parts of a record."""
    if kind not in _KINDS:
        raise UnsupportedVersionError(
            f"unknown kind of record {brief(kind)}: expected one of {', '.join(_KINDS)}", api=kind)
    number = None
    try:
        if kind in _UNKEYED:
            if value is None:
                raise DecodeError(f"{kind} record without a value")
            message, version = _UNKEYED[kind](value)
            number = message_of(message).schema.api_key
            assert number is not None
            return InternalRecord(kind, offset, timestamp, _type_name(kind, number), number, version, None, message)
        if key is None:
            raise DecodeError(f"{kind} record without a key")
        if len(key) >= 2:
            number = int.from_bytes(key[:2], "big", signed=True)
        decoded = decode_coordinator_record(kind, key, value)
        if decoded.name is None:
            raise UnsupportedVersionError(f"unknown {kind} record type {decoded.type}", api=decoded.type)
        return InternalRecord(kind, offset, timestamp, _type_name(kind, decoded.type), decoded.type,
                              decoded.value_version, decoded.key, decoded.value)
    except KwireError as error:
        name = None if number is None else _type_name(kind, number)
        key, value = (None if data is None else bytes(data) for data in (key, value))
        return InternalRecord(kind, offset, timestamp, name, number, None, key, value, alone(error))


@shared
def read_internal_topic(
    log: LogSegment | Partition | LogDirectory,
    *,
    kind: str | None = None,
    errors: str = "raise",
    **span: Unpack[Span],
) -> Iterator[InternalRecord]:
    """The records of a log of an internal topic, decoded, in order; control records are left out.

    log: a LogSegment, a Partition or a LogDirectory, of which the internal topics are read. kind: of the records, by
    default that of the topic. span: start_offset and so on, committed, as LogSegment.read takes them. errors="keep":
    a record that cannot be decoded is given with its .error; else it is raised, with .file and .record_offset. Raises
    ValueError for a log that is of no internal topic, and as LogSegment.read for damaged batches.
    """
    check_choice(errors, ("raise", "keep"), "errors")
    plans = ReadPlans()
    for segment in internal_segments(log, kind):
        known = internal_kind(segment) if kind is None else kind
        assert known is not None
        for record in unshared(segment.read(control=False, **plans.options(segment, {**span}))):
            decoded = decode_internal_record(known, record)
            if decoded.error is not None and errors == "raise":
                raise undecodable(decoded, segment.path)
            yield decoded


def undecodable(record: InternalRecord, path: str) -> KwireError:
    """The error of a record, with the file and the offset of the record in its text."""
    error = record.error
    assert error is not None
    error.record_offset = record.offset  # type: ignore[attr-defined]
    error.args = (f"record at offset {record.offset}: {error.args[0]}", *error.args[1:])
    return located(error, path)


def committed_offset(record: InternalRecord) -> CommittedOffset | None:
    """The committed offset in a record of __consumer_offsets, None for a record of another type or with an error."""
    check_type(record, InternalRecord, "record", "an InternalRecord")
    if record.type not in _COMMITS or record.error is not None:
        return None
    key: Any = record.key
    value: Any = record.value
    if value is None:
        return CommittedOffset(key.group, key.topic, key.partition, None, None, None, None)
    epoch = -1 if record.type_id == 0 else value.leader_epoch
    return CommittedOffset(
        key.group, key.topic, key.partition, value.offset, epoch, value.metadata, value.commit_timestamp)


def transaction_row(record: InternalRecord) -> TransactionRow | None:
    """The transaction in a record of __transaction_state, None for a record of another type or with an error."""
    check_type(record, InternalRecord, "record", "an InternalRecord")
    if record.type != "TRANSACTION_LOG" or record.error is not None:
        return None
    key, value = record.key, record.value
    assert isinstance(key, messages.TransactionLogKey)
    name = key.transactional_id
    if value is None:
        return TransactionRow(name, None, None, None, None, None)
    assert isinstance(value, messages.TransactionLogValue)
    partitions = value.transaction_partitions
    return TransactionRow(
        name, value.producer_id, value.producer_epoch, transaction_state(value.transaction_status),
        value.transaction_timeout_ms,
        None if partitions is None else [(item.topic, number) for item in partitions for number in item.partition_ids],
    )


def transaction_state(number: int) -> str:
    """The name of a transaction's state, the number itself where it is unknown."""
    return TRANSACTION_STATES[number] if 0 <= number < len(TRANSACTION_STATES) else str(number)


@cache
def _type_name(kind: str, number: int) -> str | None:
    """Kafka's name of a record type, as its enums MetadataRecordType and CoordinatorRecordType have it."""
    known = record_type(kind, number)
    if known is None:
        return None
    return snake(known.value if kind in _UNKEYED else known.name).upper()


def _inner(name: str, data: bytes, shown: Any) -> Any:
    """A subscription or assignment as JSON, shown (base64) if it is none. As Kafka: trailing bytes are ignored."""
    if len(data) < 2:
        return shown
    version = int.from_bytes(data[:2], "big", signed=True)
    version = max(0, min(version, message_of(name).last))
    try:
        return to_json(decode(name, version, memoryview(data)[2:], lenient=True), version)
    except KwireError:
        return shown


def _check_log(log: object) -> None:
    if not hasattr(log, "read") or not hasattr(log, "column_batches"):
        raise TypeError(f"log must be a LogSegment, a Partition or a LogDirectory, not {type(log).__name__}")


def internal_segments(log: LogSegment | Partition | LogDirectory, kind: str | None = None) -> list[LogSegment]:
    """The segments of a log that are of internal topics; with a kind, all. Raises ValueError if there are none."""
    _check_log(log)
    check_type(kind, (str, NoneType), "kind", "a str")
    segments: list[LogSegment] = getattr(log, "segments", [log])
    chosen = segments if kind is not None else [one for one in segments if internal_kind(one) is not None]
    if segments and not chosen:
        raise ValueError(f"{log!r} is of no internal topic: give the kind of its records")
    return chosen
