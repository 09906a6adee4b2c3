"""The decoders of kafka-dump-log before it printed JSON: of offsets up to 3.7, of transactions up to 4.0.

Source: formatRecordKeyAndValue of Kafka's GroupMetadataManager and TransactionLog. Both keep what they print in Scala's
hash tables, whose order is that of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kwire.cli.dump_decoders import Decoded, NotDecoded, java_json
from kwire.codec.messages import decode
from kwire.errors import KwireError
from kwire.java_semantics import java_hash, scala_order, topic_partition_hash
from kwire.storage.internal.internal_topics import TRANSACTION_STATES
from kwire_c.plan import message_of
from kwire_c.record_batch import Record


def _part(data: bytes, what: str) -> tuple[int, bytes]:
    """(the int16 at the start, the rest)."""
    if len(data) < 2:
        raise NotDecoded(f"{what} of {len(data)} bytes: its version alone has 2")
    return int.from_bytes(data[:2], "big", signed=True), data[2:]


def _read(name: str, version: int, data: bytes, unknown: str) -> Any:
    """A message. unknown: what the tool says of a version that it does not know."""
    message = message_of(name)
    if not message.first <= version <= message.last:
        raise NotDecoded(unknown)
    try:
        return decode(name, version, data, lenient=True)
    except KwireError as error:
        raise NotDecoded(str(error)) from None


def transaction_text(record: Record) -> Decoded:
    """A record of __transaction_state. Raises NotDecoded, which ends the dump as in the tool."""
    number, data = _part(record.key or b"", f"key of the record at offset {record.offset}")
    if number != 0:
        return f"unknown::version={number}", None
    transactional_id = _read("TransactionLogKey", 0, data, "").transactional_id
    key = f"transaction_metadata::transactionalId={transactional_id}"
    if record.value is None:
        return key, "<DELETE>"
    version, data = _part(record.value, f"value of the record at offset {record.offset}")
    value = _read("TransactionLogValue", version, data,
                  f"Unknown version {version} from the transaction log message value")
    status = value.transaction_status
    if not 0 <= status < len(TRANSACTION_STATES):
        raise NotDecoded(f"Unknown transaction state id {status} from the transaction status message")
    partitions: list[tuple[str, int]] = []
    groups = []
    for topic in value.transaction_partitions or () if status else ():
        own = list(dict.fromkeys((topic.topic, number) for number in topic.partition_ids))
        groups.append(len(own))
        partitions += own
    ordered = scala_order(partitions, lambda item: topic_partition_hash(*item), groups)
    listed = ",".join(f"{topic}-{number}" for topic, number in ordered)
    state = TRANSACTION_STATES[status]
    return key, (f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},state={state},"
                 f"partitions=[{listed}],txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
                 f"txnTimeoutMs={value.transaction_timeout_ms}")


def offsets_text(record: Record) -> Decoded:
    """A record of __consumer_offsets. Raises NotDecoded, which ends the dump as in the tool."""
    if record.key is None:
        raise NotDecoded("Failed to decode message using offset topic decoder (message had a missing key)")
    number, data = _part(record.key, f"key of the record at offset {record.offset}")
    if number in (0, 1):
        key = _read("OffsetCommitKey", 0, data, "")
        return (f"offset_commit::group={key.group},partition={key.topic}-{key.partition}",
                _offset(record) if record.value is not None else "<DELETE>")
    if number == 2:
        key = _read("GroupMetadataKey", 0, data, "")
        return (f"group_metadata::group={key.group}", _group(record) if record.value is not None else "<DELETE>")
    return f"unknown::version={number}", None


def _offset(record: Record) -> str:
    version, data = _part(record.value or b"", f"value of the record at offset {record.offset}")
    value = _read("OffsetCommitValue", version, data, f"Unknown offset message version: {version}")
    return f"offset={value.offset}" + (f",metadata={value.metadata}" if value.metadata else "")


def _group(record: Record) -> str:
    version, data = _part(record.value or b"", f"value of the record at offset {record.offset}")
    value = _read("GroupMetadataValue", version, data, f"Unknown group metadata message version: {version}")
    assign: Callable[[bytes], str] = _assigned if value.protocol_type == "consumer" else _hex
    members = {member.member_id: bytes(member.assignment) for member in value.members}
    listed = ",".join(f"{member}={assign(members[member])}" for member in scala_order(members, java_hash))
    return java_json({
        "protocolType": value.protocol_type, "protocol": value.protocol, "generationId": value.generation,
        "assignment": f"{{{listed}}}",
    })  # fmt: skip


def _assigned(data: bytes) -> str:
    """The partitions in a ConsumerProtocolAssignment, and its user data in hex."""
    version, body = _part(data, "assignment")
    name = "ConsumerProtocolAssignment"
    if version < 0:
        raise NotDecoded(f"Unsupported assignment version: {version}")
    assignment = _read(name, min(version, message_of(name).last), body, "")
    partitions: Iterable[str] = (
        f"{topic.topic}-{number}" for topic in assignment.assigned_partitions for number in topic.partitions
    )
    user_data = _hex(bytes(assignment.user_data or b""))
    return f"[{', '.join(partitions)}]" + (f":{user_data}" if user_data else "")


def _hex(data: bytes) -> str:
    return f"{int.from_bytes(data, 'big'):X}" if data else ""
