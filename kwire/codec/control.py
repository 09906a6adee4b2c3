"""Control records: the transaction marker or KRaft message in a record of a control batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.codec.json import to_json
from kwire.codec.messages import decode
from kwire.errors import DecodeError
from kwire.schema.record_type_ids import record_types
from kwire_c.plan import message_of

if TYPE_CHECKING:
    from kwire_c.message_class import Message


def decode_control(key: bytes | None, value: bytes | None) -> tuple[str | int, Message | None]:
    """(control type, message) of a control record. An unknown type gives its number and None.

    A message of a version newer than the schema is read as the newest known version; its further bytes are ignored.
    Raises DecodeError for a key or value that is too short or has an invalid version.
    Source: Kafka's ControlRecordType and ControlRecordUtils.
    """
    if key is None or len(key) < 4:
        raise DecodeError(f"control record key: expected at least 4 bytes, got {0 if key is None else len(key)}")
    if key[0] & 0x80:
        raise DecodeError(f"control record key: invalid version {_int16(key)}")
    number = int.from_bytes(key[2:4], "big", signed=True)
    record_type = record_types("control").get(number)
    if record_type is None:
        return number, None
    kind, name = record_type.name, record_type.value
    if value is None or len(value) < 2:
        size = 0 if value is None else len(value)
        raise DecodeError(f"value of a {kind} control record: expected at least 2 bytes, got {size}")
    version = _int16(value)
    if version < 0:
        raise DecodeError(f"value of a {kind} control record: invalid version {version}")
    # a marker's version precedes the message; in the other types the version is the first field
    version = min(version, message_of(name).last)
    return kind, decode(name, version, value[2:] if number < 2 else value, lenient=True)


def control_json(message: Message, value: bytes) -> dict[str, Any]:
    """The message of a control record as a JSON value, in the version of its bytes (at most the newest known)."""
    return to_json(message, min(_int16(value), message_of(message).last))


def _int16(data: bytes) -> int:
    return int.from_bytes(data[:2], "big", signed=True)
