"""Records of Kafka's internal topics: cluster metadata, coordinators, remote log metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire import messages
from kwire.codec.arguments import byte_view, check_int, schema_of
from kwire.errors import DecodeError, EncodeError, UnsupportedVersionError
from kwire.schema import record_type, record_types
from kwire_c.decode import decode
from kwire_c.encode import encode
from kwire_c.message_class import Message
from kwire_c.plan import message_of
from kwire_c.printable import brief
from kwire_c.varint import write_unsigned_varint

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "CoordinatorRecord", "decode_coordinator_record", "decode_metadata_record", "decode_remote_log_record",
    "encode_coordinator_record", "encode_metadata_record", "encode_remote_log_record",
]

assert messages
_FOLDERS = {"metadata": "metadata", "remote_log": "storage"}
_COORDINATORS = ("group", "transaction", "share")


class CoordinatorRecord(NamedTuple):
    """A record of __consumer_offsets, __transaction_state or __share_group_state.

    type: the int16 at the start of the key; name: "OffsetCommit", None for an unknown type; key, value: the messages,
    or bytes for an unknown type; value None is a tombstone; value_version: None if the value is not a message.
    """

    type: int
    name: str | None
    key: Message | bytes
    value: Message | bytes | None
    value_version: int | None


def decode_metadata_record(data: Buffer, *, lenient: bool = False) -> tuple[Message, int]:
    """(message, version) of a record of the cluster metadata log: frame version 1, type, version, body.

    Type 14, once QuotaRecord's, is read as ClientQuotaRecord. Raises DecodeError, UnsupportedVersionError.
    """
    return _decode_framed("metadata", data, lenient)


def encode_metadata_record(message: Message, version: int) -> bytes:
    """The bytes of a record of the cluster metadata log. Raises EncodeError, UnsupportedVersionError."""
    return _encode_framed("metadata", message, version)


def decode_remote_log_record(data: Buffer, *, lenient: bool = False) -> tuple[Message, int]:
    """(message, version) of a record of __remote_log_metadata. Raises DecodeError, UnsupportedVersionError."""
    return _decode_framed("remote_log", data, lenient)


def encode_remote_log_record(message: Message, version: int) -> bytes:
    """The bytes of a record of __remote_log_metadata. Raises EncodeError, UnsupportedVersionError."""
    return _encode_framed("remote_log", message, version)


def _decode_framed(kind: str, data: Buffer, lenient: bool) -> tuple[Message, int]:
    view = byte_view(data, "data")
    frame, at = _uvarint(view, 0, lenient)
    number, at = _uvarint(view, at, lenient)
    version, at = _uvarint(view, at, lenient)
    if frame != 1:
        raise UnsupportedVersionError(f"unknown frame version {frame} of a {kind} record: expected 1", needed=frame)
    known_type = record_type(kind, number)
    if known_type is None:
        raise UnsupportedVersionError(f"unknown {kind} record type {number}", api=number)
    try:
        return decode(known_type.value, version, view[at:], lenient=lenient), version
    except DecodeError as error:
        what = f"{known_type.value} v{version}"
        raise DecodeError(error.reason, offset=error.offset + at, path=error.path, what=what) from None


def _encode_framed(kind: str, message: Message, version: int) -> bytes:
    definition = schema_of(message)
    if definition.api_key is None or definition.type != "metadata" or definition.folder != _FOLDERS[kind]:
        raise TypeError(f"message must be a {kind} record, not {definition.name}")
    body = encode(message, version)
    return b"\x01" + write_unsigned_varint(definition.api_key) + write_unsigned_varint(version) + body


def _uvarint(data: memoryview, at: int, lenient: bool) -> tuple[int, int]:
    start, value = at, 0
    while True:
        if at >= len(data):
            raise DecodeError("1 bytes needed, 0 remaining", offset=at)
        byte = data[at]
        value |= (byte & 0x7F) << 7 * (at - start)
        at += 1
        if byte < 0x80:
            break
        if at - start == 5:
            raise DecodeError("varint longer than 5 bytes", offset=start)
    if not lenient and (value > 0xFFFFFFFF or (byte == 0 and at - start > 1)):
        raise DecodeError("overlong varint", offset=start)
    return value & 0xFFFFFFFF, at


def _kind(kind: str) -> str:
    known = str.__str__(kind) if isinstance(kind, str) else ""  # a str of the caller's class may equal any
    if known not in _COORDINATORS:
        names = ", ".join(_COORDINATORS)
        raise UnsupportedVersionError(f"kind: unknown coordinator {brief(kind)}: expected one of {names}", api=kind)
    return known


def decode_coordinator_record(
    kind: str, key: Buffer, value: Buffer | None, *, lenient: bool = False
) -> CoordinatorRecord:
    """The record of a coordinator's topic. kind: "group" "transaction" "share".

    Up to 4.0 the int16 at the start of the key is its version, from 4.1 on its type: the bytes are the same. An
    unknown type gives key and value as bytes. Raises DecodeError, UnsupportedVersionError.
    """
    types = record_types(_kind(kind))
    view = byte_view(key, "key")
    body = None if value is None else byte_view(value, "value")
    if len(view) < 2:
        raise DecodeError(f"2 bytes needed, {len(view)} remaining", what=f"key of a {kind} record")
    number = int.from_bytes(view[:2], "big", signed=True)
    known_type = types.get(number)
    if known_type is None or known_type.key is None:
        return CoordinatorRecord(number, None, bytes(view), None if body is None else bytes(body), None)
    key_message = _after_version(known_type.key, 0, view, lenient)
    if body is None:
        return CoordinatorRecord(number, known_type.name, key_message, None, None)
    if len(body) < 2:
        raise DecodeError(f"2 bytes needed, {len(body)} remaining", what=known_type.value)
    version = int.from_bytes(body[:2], "big", signed=True)
    value_message = _after_version(known_type.value, version, body, lenient)
    return CoordinatorRecord(number, known_type.name, key_message, value_message, version)


def _after_version(name: str, version: int, data: memoryview, lenient: bool) -> Message:
    try:
        return decode(name, version, data[2:], lenient=lenient)
    except DecodeError as error:
        raise DecodeError(error.reason, offset=error.offset + 2, path=error.path, what=f"{name} v{version}") from None


def encode_coordinator_record(
    kind: str, key: Message | Buffer, value: Message | Buffer | None, value_version: int | None = None
) -> tuple[bytes, bytes | None]:
    """(key bytes, value bytes) of a coordinator record; value None is a tombstone.

    Keys and values that are bytes already (of an unknown type) are returned as they are.
    Raises EncodeError, UnsupportedVersionError.
    """
    types = record_types(_kind(kind))
    if not isinstance(key, Message):
        plain = bytes(byte_view(key, "key"))
        if isinstance(value, Message):
            raise TypeError(f"value must be bytes like the key, not {type(value).__name__}")
        return plain, None if value is None else bytes(byte_view(value, "value"))
    name = message_of(key).name
    known_type = next((row for row in types.values() if row.key == name), None)
    if known_type is None:
        raise TypeError(f"key must be the key of a {kind} record, not {name}")
    front = known_type.type.to_bytes(2, "big") + encode(key, 0)
    if value is None:
        return front, None
    if not isinstance(value, Message) or message_of(value).name != known_type.value:
        raise TypeError(f"value must be a {known_type.value}, not {type(value).__name__}")
    if value_version is None:
        raise EncodeError("value_version is required", what=known_type.value)
    version = check_int(value_version, "value_version")
    body = encode(value, version)
    return front, version.to_bytes(2, "big") + body
