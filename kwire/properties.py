"""Properties files as java.util.Properties reads and writes them, in linear time for any input."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from kwire_c.errors import LimitError
from kwire_c.printable import printable

MOST_BYTES = 16 << 20  # of a file of a configuration
JOINT = "\\\n"  # where a line was continued by the next one
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*+", re.S)
_SEPARATOR = re.compile(r"[ \t\f]*+[=:]?[ \t\f]*+")
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.S)
_HEX = re.compile(r"u[0-9a-fA-F]{4}")
_MEANINGS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", **{sign: f"\\{sign}" for sign in "=:#!"}}


def configuration_bytes(path: str | os.PathLike[str], what: str = "properties file") -> bytes:
    """The bytes of a file of a configuration. what: it is, for the error.

    Raises OSError, LimitError for more than 16 MiB, ValueError for a NUL in its name.
    """
    name = os.fspath(path)
    if "\0" in name:
        raise ValueError("Nul character not allowed")
    with open(name, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise LimitError(f"{printable(name)}: too large for a {what}", limit=MOST_BYTES)
    return data


class Properties(dict[str, str]):
    """Key -> value. continued: key -> its lines as written, with JOINT between them, if several."""

    def __init__(self) -> None:
        super().__init__()
        self.continued: dict[str, str] = {}


def parse_properties(text: str) -> Properties:
    """Key -> value. Raises ValueError for a backslash and u without four hexadecimal digits."""
    properties = Properties()
    for written in _logical_lines(text):
        line = written.replace(JOINT, "")
        key = _KEY.match(line)
        assert key is not None
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        name = unescaped(key[0])
        properties[name] = unescaped(line[separator.end() :])
        properties.continued.pop(name, None)
        if len(line) < len(written):
            properties.continued[name] = written
    return properties


def _logical_lines(text: str) -> list[str]:
    """The lines without blank ones and comments, those that a backslash continues joined by JOINT."""
    lines: list[str] = []
    parts: list[str] = []
    begun = False  # whether they hold anything
    for natural in _LINE_ENDS.split(text):
        line = natural.lstrip(_BLANKS)
        if not begun and (not line or line[0] in "#!"):  # also after lines of nothing but a backslash
            parts = []
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if continued else line)
        begun = begun or parts[-1] != ""
        if not continued:
            lines.append(JOINT.join(parts))
            parts, begun = [], False
    if parts:
        lines.append(JOINT.join(parts))
    return [line for line in lines if line.replace(JOINT, "")]


def unescaped(text: str) -> str:
    """A key or a value as it is meant. Raises ValueError for a backslash and u without four hexadecimal digits."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_meaning, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two escapes may be one character


def _meaning(escape: re.Match[str]) -> str:
    sign = escape[1]
    if not sign.startswith("u"):
        return _MEANINGS.get(sign, sign)
    if not _HEX.fullmatch(sign):
        raise ValueError("Malformed \\uxxxx encoding.")
    return chr(int(sign[1:], 16))


def properties_text(properties: Mapping[str, str]) -> str:
    """The lines of these properties as Properties.store writes them; keys are written as they are."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    """A value as Properties.store writes it: a space is escaped only at the beginning."""
    text = "".join(_ESCAPES.get(sign, sign) for sign in value)
    return f"\\{text}" if text.startswith(" ") else text
