"""The words of errors: what a walker's code and numbers say."""

from __future__ import annotations

from kwire_c.errors import DecodeError, EncodeError

# as kw_status in core/cursor.h and kw_why in core/plan.h
_READING = {
    1: "need {number} bytes, {left} left",
    2: "a varint of more than 5 bytes",
    3: "an overlong varint",
    16: "negative length {number}",
    17: "null where the version allows none",
    18: "a string of {number} bytes, more than 32767",
    19: "bool byte {number}, neither 0 nor 1",
    20: "no valid UTF-8",
    21: "null mark {number}",
    22: "{number} elements cannot stand in the {left} bytes left",
    23: "tag {number} behind a higher one",
    24: "tag {number} comes twice",
    25: "declared size {number} of the tagged field is wrong",
    26: "tag {number} is written although it holds its default",
    27: "tag {number} does not belong to this version",
    28: "{number} tagged fields cannot stand in the {left} bytes left",
    29: "{number} bytes left over",
    30: "{number} is no tag number",
}


def decode_error(why: int, number: int, left: int, offset: int, path: str, what: str) -> DecodeError:
    """The error of a failed decode: path (".topics[3].name"), what ("FetchRequest v12"), offset in bytes."""
    return DecodeError(_READING[why].format(number=number, left=left), offset=offset, path=path, what=what)


def encode_error(reason: str, path: str, what: str) -> EncodeError:
    """The error of a failed encode."""
    return EncodeError(reason, path=path, what=what)
