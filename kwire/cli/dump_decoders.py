"""The decoders of kafka-dump-log: what is in a record of an internal topic, as the tool prints it and as JSON values.

A decoder takes a Record and gives its (key, payload): text, a dict to print as JSON, None where nothing is printed.
Source: the message parsers of Kafka's DumpLogSegments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from re import compile
from typing import Any, NamedTuple

from kwire.cli.terminal import as_json
from kwire.codec.json import java_double, json_text, to_json
from kwire.codec.messages import decode, decode_from
from kwire.errors import DecodeError, KwireError, UnsupportedVersionError
from kwire.schema import record_types
from kwire.schema.definitions import Field, snake
from kwire_c.json import strict_base64
from kwire_c.plan import message_of
from kwire_c.printable import brief
from kwire_c.record_batch import Record, java_string

Decoded = tuple[Any, Any]
_SHORT = compile(r"(\d+) bytes needed, (\d+) remaining")
_COUNT = compile(r"array of (\d+) elements exceeds the (\d+) bytes remaining")
_INDEX = compile(r"\[\d+\]")


class Decoder(NamedTuple):
    """text: what the tool prints of a record; values: the same as JSON values."""

    text: Callable[[Record], Decoded]
    values: Callable[[Record], Decoded]


class NotDecoded(KwireError):
    """A record that ends the dump, because the decoder cannot be used for it."""


def java_json(value: Any) -> str:
    """A JSON value as Jackson's JsonNode.toString() gives it; the unknown tags in messages are left out, as in Java."""
    return json_text(value, unknown_tags=False)


# plain keys and values


def _string(data: bytes) -> str:
    return java_string(data)


def _integer(size: int) -> Callable[[bytes], int]:
    def number(data: bytes) -> int:
        if len(data) < size:
            raise DecodeError(f"expected {size} bytes of an integer, found {len(data)}")
        return int.from_bytes(data[:size], "big", signed=True)

    return number


def _hex(data: bytes) -> str:
    return f"0x{data.hex()}"


# Kafka's classes (tools-api); DefaultDecoder's arrays are printed by Java as their identity, which says nothing
_CLASSES: dict[str, Callable[[bytes], str | int]] = {
    "StringDecoder": _string, "DefaultDecoder": _hex, "IntegerDecoder": _integer(4), "LongDecoder": _integer(8),
}  # fmt: skip
_PACKAGES = ("org.apache.kafka.tools.api.", "kafka.serializer.")
STRING_DECODER = f"{_PACKAGES[0]}StringDecoder"


def value_decoder(name: str) -> Callable[[bytes], Any]:
    """The decoder of keys or values with this name: one of Kafka's classes, or MODULE:FUNCTION in Python.

    A Python function takes the bytes and returns what to print. Raises ValueError for an unknown name.
    """
    for package in _PACKAGES:
        if name.startswith(package) and name.removeprefix(package) in _CLASSES:
            return _CLASSES[name.removeprefix(package)]
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"unknown decoder class {brief(name)}: expected {_PACKAGES[0]}{{{','.join(_CLASSES)}}}, or a "
                         "Python function as MODULE:FUNCTION")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"decoder {brief(name)} cannot be loaded: {error}") from None
    if not callable(found):
        raise ValueError(f"decoder {brief(name)} is not callable")
    return _guarded(name, found)


def _guarded(name: str, function: Callable[[bytes], Any]) -> Callable[[bytes], str]:
    """A function of the user's; its failure is an error that names it."""

    def call(data: bytes) -> str:
        try:
            return str(function(data))
        except Exception as error:
            raise NotDecoded(f"decoder {name} failed: {type(error).__name__}: {error}") from error

    return call


def plain_decoder(key_class: str | None, value_class: str | None) -> Decoder:
    """Keys and values by decoder classes, by default as text. Raises ValueError for an unknown class.

    As JSON values, keys and values without a class of their own keep their bytes: {"base64": ...} if not UTF-8.
    """
    key_text, value_text = (value_decoder(name or STRING_DECODER) for name in (key_class, value_class))
    key_value = as_json if key_class is None else key_text
    value_value = as_json if value_class is None else value_text

    def decoder(decode_key: Callable[[bytes], Any], decode_value: Callable[[bytes], Any]) -> Callable[..., Decoded]:
        def decoded(record: Record) -> Decoded:
            key, value = record.key, record.value
            try:
                return None if key is None else decode_key(key), None if value is None else decode_value(value)
            except DecodeError as error:
                raise NotDecoded(f"record at offset {record.offset}: {error.reason}") from None

        return decoded

    return Decoder(decoder(key_text, value_text), decoder(key_value, value_value))


# coordinators: __consumer_offsets, __transaction_state, __share_group_state


class _Failure(Exception):
    """Why a record is skipped, in the tool's words."""


def _coordinator(kind: str) -> Decoder:
    """Source: Kafka's CoordinatorRecordSerde."""
    types = record_types(kind)

    def values(record: Record) -> Decoded:
        key, value = record.key, record.value
        if key is None:
            raise NotDecoded(f"Failed to decode message at offset {record.offset} using the specified decoder "
                             "(message had a missing key)")
        try:
            number, key_data = _version(key, "key")
            known = types.get(number)
            if known is None or known.key is None:
                return f"Unknown record type {number} at offset {record.offset}, skipping.", None
            key_message = _message(known.key, 0, key_data, number, "key")
            decoded_key = {"type": str(number), "data": to_json(key_message, 0)}
            if value is None:
                return decoded_key, "<DELETE>"
            version, value_data = _version(value, "value")
            if version != _layout(known.value, version):
                raise _Failure(f"Found an unknown record version {version} for {number} type")
            message = _message(known.value, version, value_data, version, "value")
        except _Failure as failure:
            return f"Error at offset {record.offset}, skipping. {failure}", None
        data = to_json(message, version)
        if known.value == "GroupMetadataValue" and data.get("protocolType") == "consumer":
            for member in data["members"]:
                _inner(member, "subscription", "ConsumerProtocolSubscription")
                _inner(member, "assignment", "ConsumerProtocolAssignment")
        return decoded_key, {"version": str(version), "data": data}

    return Decoder(values, values)


def _version(data: bytes, part: str) -> tuple[int, bytes]:
    """(the int16 at the start, the rest)."""
    if len(data) < 2:
        raise _Failure(f"Could not read version from {part}'s buffer.")
    return int.from_bytes(data[:2], "big", signed=True), data[2:]


def _layout(name: str, version: int) -> int:
    """The version by which Kafka reads a message of that version: a newer one than it knows as the newest."""
    message = message_of(name)
    return min(max(version, message.first), message.last)


def _check_structs(message: Any, version: int, layout: int) -> None:
    """In a message of a version above those that Kafka knows it reads no structs. Raises UnsupportedVersionError."""
    if version <= layout:
        return
    for value in to_json(message, layout).values():
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            name = message_of(message).name
            raise UnsupportedVersionError(f"cannot read version {version} of a struct in {name}", needed=version)


def _message(name: str, layout: int, data: bytes, version: int, part: str) -> Any:
    try:
        return decode(name, layout, data, lenient=True)
    except DecodeError as error:
        reason = _java_reason(name, error)
        raise _Failure(
            f"Could not read record with version {version} from {part}'s buffer due to: {reason}.") from None


def _java_reason(name: str, error: DecodeError) -> str:
    """Why a message cannot be read, in Kafka's words; a number that is cut off has "null" there."""
    field = _field(name, error.path)
    if short := _SHORT.fullmatch(error.reason):
        needed, left = map(int, short.groups())
        if field is not None and field.type.removeprefix("[]") in ("string", "bytes") and needed > 2:
            return f"Error reading byte array of {needed} byte(s): only {left} byte(s) available"
        return "null"
    if count := _COUNT.fullmatch(error.reason):
        number, left = map(int, count.groups())
        if number <= left:  # Kafka fails later, at the end of the bytes
            return "null"
        return f"Tried to allocate a collection of size {number}, but there are only {left} bytes remaining."
    if error.reason.startswith("null in a field") and field is not None:
        return f"non-nullable field {field.json_name} was serialized as null"
    return error.reason


def _field(name: str, path: str) -> Field | None:
    """The field of a message at the path that an error gives."""
    found, fields = None, message_of(name).schema.fields
    for part in _INDEX.sub("", path).strip(".").split("."):
        found = next((field for field in fields if field.snake_name == part), None)
        fields = () if found is None else found.fields
    return found


def _inner(member: dict[str, Any], field: str, name: str) -> None:
    """Replace the bytes of a member's field by the message in them; bytes that are none are kept."""
    if not isinstance(member.get(field), str):
        return
    data = strict_base64(member[field])
    if len(data) < 2:
        return
    version = int.from_bytes(data[:2], "big", signed=True)
    layout = _layout(name, version)
    try:
        message = decode(name, layout, data[2:], lenient=True)
        _check_structs(message, version, layout)
        member[field] = to_json(message, layout)
    except KwireError:
        return


# __cluster_metadata and __remote_log_metadata: frame version, type, version, message


def _framed(kind: str, data: bytes | None) -> tuple[Any, int, int]:
    """(message, version, the version it was read by). Source: Kafka's AbstractApiMessageSerde."""
    data = data or b""  # Kafka reads a null value as an empty one
    frame, at = _varint(data, 0, "frame version")
    if frame == 0:
        raise _Failure("Could not deserialize metadata record with frame version 0. Note that upgrades from the "
                       "preview release of KRaft in 2.8 to newer versions are not supported.")
    if frame != 1:
        raise _Failure(f"Could not deserialize metadata record due to unknown frame version {frame}(only frame version "
                       "1 is supported)")
    number, at = _varint(data, at, "type")
    version, at = _varint(data, at, "version")
    known = record_types(kind).get(number)
    if known is None:
        raise _Failure(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {number}")
    layout = _layout(known.value, version)
    try:
        message, end = decode_from(known.value, layout, data, at, lenient=True)
        _check_structs(message, version, layout)
    except KwireError:
        raise _Failure(f"Failed to deserialize record with type {number}") from None
    if end < len(data):
        raise _Failure(f"Found {len(data) - end} byte(s) of garbage after {number}")
    return message, version, layout


def _varint(data: bytes, at: int, entity: str) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(at + 5, len(data))):
        value |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            value &= 0xFFFFFFFF
            value -= (value & 0x80000000) << 1  # an int in Java
            if value > 0x7FFF:
                raise _Failure(f"Value for {entity} was too large.")
            return (value + 0x8000) % 0x10000 - 0x8000, place + 1
        shift += 7
    raise _Failure(f"Error while reading {entity}")


def _framed_values(kind: str, record: Record) -> dict[str, Any]:
    message, version, layout = _framed(kind, record.value)
    name = message_of(message).name
    return {"type": snake(name).upper(), "version": version, "data": to_json(message, layout)}


def _metadata(record: Record) -> Decoded:
    try:
        return None, _framed_values("metadata", record)
    except _Failure as failure:
        return None, f"Error at {record.offset}, skipping. {failure}"


def _remote_values(record: Record) -> Decoded:
    try:
        return None, _framed_values("remote_log", record)
    except _Failure as failure:
        return None, f"Error at offset {record.offset}, skipping. {failure}"


_SEGMENT_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
_PARTITION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def _remote_text(record: Record) -> Decoded:
    try:
        message, _, layout = _framed("remote_log", record.value)
        return None, _REMOTE[message_of(message).name](message, to_json(message, layout))
    except _Failure as failure:
        return None, f"Error at offset {record.offset}, skipping. {failure}"


def _segment_metadata(message: Any, data: dict[str, Any]) -> str:
    """RemoteLogSegmentMetadata.toString."""
    return (f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(data)}, {_offsets(data)}, "
            f"brokerId={data['brokerId']}, maxTimestampMs={data['maxTimestampMs']}, "
            f"eventTimestampMs={data['eventTimestampMs']}, {_segment_rest(message, data)}}}")


def _segment_snapshot(message: Any, data: dict[str, Any]) -> str:
    """RemoteLogSegmentMetadataSnapshot.toString: of any offsets."""
    return (f"RemoteLogSegmentMetadataSnapshot{{segmentId={data['segmentId']}, startOffset={data['startOffset']}, "
            f"endOffset={data['endOffset']}, maxTimestampMs={data['maxTimestampMs']}, {_segment_rest(message, data)}}}")


def _segment_update(message: Any, data: dict[str, Any]) -> str:
    """RemoteLogSegmentMetadataUpdate.toString."""
    return (f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(data)}, "
            f"customMetadata={_custom(message)}, state={_state(_SEGMENT_STATES, data['remoteLogSegmentState'])}, "
            f"eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}")


def _partition_delete(_: Any, data: dict[str, Any]) -> str:
    """RemotePartitionDeleteMetadata.toString."""
    return (f"RemotePartitionDeleteMetadata{{topicPartition={_topic_partition(data)}, "
            f"state={_state(_PARTITION_STATES, data['remotePartitionDeleteState'], 'null')}, "
            f"eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}")


_REMOTE: dict[str, Callable[[Any, dict[str, Any]], str]] = {
    "RemoteLogSegmentMetadataRecord": _segment_metadata,
    "RemoteLogSegmentMetadataUpdateRecord": _segment_update,
    "RemotePartitionDeleteMetadataRecord": _partition_delete,
    "RemoteLogSegmentMetadataSnapshotRecord": _segment_snapshot,
}


def _segment_id(data: dict[str, Any]) -> str:
    segment = data["remoteLogSegmentId"]
    return f"RemoteLogSegmentId{{topicIdPartition={_topic_partition(segment)}, id={segment['id']}}}"


def _topic_partition(data: dict[str, Any]) -> str:
    place = data["topicIdPartition"]
    return f"{place['id']}:{place['name']}-{place['partition']}"


def _offsets(data: dict[str, Any]) -> str:
    start, end = data["startOffset"], data["endOffset"]
    if start < 0:
        raise _Failure(f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative")
    if end < start:
        raise _Failure(f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset "
                       f"= {start}")
    return f"startOffset={start}, endOffset={end}"


def _segment_rest(message: Any, data: dict[str, Any]) -> str:
    state = _state(_SEGMENT_STATES, data["remoteLogSegmentState"])
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in data["segmentLeaderEpochs"]}
    if not epochs:
        raise _Failure("segmentLeaderEpochs can not be null or empty")
    listed = ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(epochs.items()))
    return (f"segmentLeaderEpochs={{{listed}}}, segmentSizeInBytes={data['segmentSizeInBytes']}, "
            f"customMetadata={_custom(message)}, state={state}, "
            f"txnIdxEmpty={'true' if message.txn_index_empty else 'false'}")


def _custom(message: Any) -> str:
    custom = message.custom_metadata
    return "Optional.empty" if custom is None else f"Optional[CustomMetadata{{{len(custom)} bytes}}]"


def _state(names: tuple[str, ...], number: int, unknown: str = "state can not be null") -> str:
    if not 0 <= number < len(names):
        raise _Failure(unknown)
    return names[number]


def _metadata_values(record: Record) -> Decoded:
    """As _metadata; numbers that JSON lacks are text, as Jackson writes them."""
    _, decoded = _metadata(record)
    if isinstance(decoded, dict):
        data = decoded["data"]
        data |= {name: java_double(value) for name, value in data.items()
                 if isinstance(value, float) and not math.isfinite(value)}
    return None, decoded


METADATA = Decoder(_metadata, _metadata_values)


def remote_log_decoder(transaction_index: bool) -> Decoder:
    """The decoder of __remote_log_metadata. transaction_index: print also whether a transaction index is empty."""
    return Decoder(_remote_text if transaction_index else _without_transaction_index, _remote_values)


def _without_transaction_index(record: Record) -> Decoded:
    key, text = _remote_text(record)
    return key, compile(r", txnIdxEmpty=(true|false)\}$").sub("}", text)


def coordinator_decoder(kind: str) -> Decoder:
    """The decoder of a coordinator's topic: "group", "transaction" or "share"."""
    return _coordinator(kind)
