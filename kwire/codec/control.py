"""Control records: the marker or Raft message that a record of a control batch holds."""

from __future__ import annotations

from typing import Any

from kwire.codec.messages import decode
from kwire.schema.kinds import record_types
from kwire_c.errors import DecodeError
from kwire_c.plan import message_of


def decode_control(key: bytes | None, value: bytes | None) -> tuple[str | int, Any]:
    """(control type, message) of a control record: its name, or its number with None where it is not known.

    A message newer than the facts is read as their newest version, its further bytes left out.
    Raises DecodeError for a key or value that is too short or contradicts itself.
    """
    if key is None or len(key) < 4:
        raise DecodeError(f"the key of a control record has 4 bytes, not {0 if key is None else len(key)}")
    if key[0] & 0x80:
        raise DecodeError(f"the key of a control record has version {_int16(key)}")
    number = int.from_bytes(key[2:4], "big", signed=True)
    found = record_types("control").get(number)
    if found is None:
        return number, None
    kind, name = found.name, found.value
    if value is None or len(value) < 2:
        raise DecodeError(f"the value of a {kind} record has no version")
    version = _int16(value)
    if version < 0:
        raise DecodeError(f"the value of a {kind} record has version {version}")
    # the version of a marker stands in front of it, that of the others is their first field
    version = min(version, message_of(name).last)
    return kind, decode(name, version, value[2:] if number < 2 else value, lenient=True)


def _int16(data: bytes) -> int:
    return int.from_bytes(data[:2], "big", signed=True)
