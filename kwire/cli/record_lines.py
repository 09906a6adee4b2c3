"""How `kwire log show` writes records: a table that fits the terminal, JSON lines, or a format string as of kcat -f."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

from kwire.cli.log import segment_name
from kwire.cli.terminal import as_json, as_text, shown_json, terminal_columns, when
from kwire_c.printable import brief, printable
from kwire_c.record_text import RecordText

if TYPE_CHECKING:
    from kwire.storage import LogSegment

Piece = tuple[str, str, dict[str, Any]]  # of RecordText

_KEY_CELLS = 20
_PARTITION_CELLS, _OFFSET_CELLS = 24, 10  # where the output is no terminal
_VALUE_CELLS = 16  # that a terminal must have left for values, or other columns are cut and dropped
_TIMES = {23: (0, 23), 19: (0, 19), 8: (11, 19)}  # width of a timestamp -> its part of 2023-11-14 22:13:20.000


class Decode(Protocol):
    """Decodes a record of a segment for the output; None for a record whose bytes are shown."""

    def __call__(
        self, segment: LogSegment, offset: int, timestamp: int, key: bytes | None, value: bytes | None, control: bool
    ) -> DecodedRecord | None:
        """The record, decoded."""


class DecodedRecord(NamedTuple):
    """A record as it is shown instead of its bytes: as text, and for JsonLines as JSON values.

    key, value: as text, None where the bytes are shown; note: follows the text of the value; has_json: json_key and
    json_value replace the bytes in JSON; more: further members of the JSON object.
    """

    key: str | None
    value: str | None
    note: str = ""
    has_json: bool = False
    json_key: Any = None
    json_value: Any = None
    more: Mapping[str, Any] = {}


class Lines(Protocol):
    """A format of the output: Table, JsonLines or Format."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns that it needs, by their names in columns()."""

    @property
    def raw(self) -> bool:
        """Are bytes written as they are?"""

    def header(self) -> str:
        """The line above the records, empty for none."""

    def title(self, segment: LogSegment) -> str:
        """The line above the records of a segment, empty for none."""

    def writer(self, segment: LogSegment, states: Mapping[int, str], decode: Decode | None, every: bool) -> RecordText:
        """The writer of the records of a segment.

        states: position of a batch -> the state of its transaction; decode: None where all records are shown as bytes;
        every: decode is called for every record, not only for control records.
        """


def _decoder(
    segment: LogSegment, decode: Decode | None, render: Callable[..., tuple[bytes, ...]]
) -> Callable[..., tuple[bytes, ...] | None] | None:
    if decode is None:
        return None

    def decoded(offset: int, timestamp: int, key: bytes | None, value: bytes | None, control: bool) -> Any:
        found = decode(segment, offset, timestamp, key, value, control)
        return None if found is None else render(key, value, found)

    return decoded


def _encoded(text: str) -> bytes:
    """Text as UTF-8. Bytes of file names that are not UTF-8 stay as they are, other lone surrogates are escaped."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


# the table


class Layout(NamedTuple):
    """The columns of the table and their widths in cells; 0: the column is dropped. total: of a line, 0: no limit."""

    partition: int
    offset: int
    time: int
    key: int
    total: int

    @property
    def value(self) -> int:
        """Cells left for values, 0: no limit."""
        return max(1, self.total - sum(self.starts)) if self.total else 0

    @property
    def starts(self) -> list[int]:
        """The cells of each column before the value, with the space after it."""
        return [self.partition + 1 if self.partition else 0, *(
            width + 2 for width in (self.offset, self.time, self.key) if width)]


def fitted(cells: int, partition: int, offset: int) -> Layout:
    """The layout for a terminal that is `cells` wide. partition, offset: widths of these columns in cells.

    Until the value has room, this is cut or dropped, in this order: the milliseconds of the timestamp, half of the key,
    the partition (which gets a line of its own), the date, the timestamp, the key.
    """
    half = _KEY_CELLS // 2
    layouts = [
        Layout(partition, offset, 23, _KEY_CELLS, cells), Layout(partition, offset, 19, _KEY_CELLS, cells),
        Layout(partition, offset, 19, half, cells), Layout(0, offset, 19, half, cells),
        Layout(0, offset, 8, half, cells), Layout(0, offset, 0, half, cells), Layout(0, offset, 0, 0, cells),
    ]
    return next((layout for layout in layouts if cells - sum(layout.starts) >= _VALUE_CELLS), layouts[-1])


def table_layout(segments: Sequence[LogSegment]) -> Layout:
    """The layout for standard output: fitted to a terminal; for files and pipes always the same, and nothing is cut."""
    if not sys.stdout.isatty():
        return Layout(_PARTITION_CELLS, _OFFSET_CELLS, 23, _KEY_CELLS, 0)
    names = max((_cells(segment_name(segment)) for segment in segments), default=0)
    offsets = max((len(str(segment.named_offset or 0)) for segment in segments), default=0)
    return fitted(terminal_columns(), max(names, len("partition")), max(offsets, len("offset")))


class Table:
    """Records as a table. width: characters of a value at most, None: as many as the terminal has room for."""

    fields = ("offset", "timestamp", "key", "value", "headers", "is_control", "batch_position")
    raw = False

    def __init__(self, layout: Layout, width: int | None) -> None:
        self.layout, self.width = layout, width or 0
        self._last = ""

    def header(self) -> str:
        """The names of the columns."""
        layout = self.layout
        names = f"{'partition':{layout.partition}} " if layout.partition else ""
        names += f"{'offset':>{layout.offset}}  "
        if layout.time:
            names += f"{'time' if layout.time == 8 else 'timestamp (UTC)':{layout.time}}  "
        return f"{names}{f'''{'key':{layout.key}}  ''' if layout.key else ''}value\n"

    def writer(self, segment: LogSegment, states: Mapping[int, str], decode: Decode | None, every: bool) -> RecordText:
        """See Lines."""
        layout = self.layout
        key_cells, limit = layout.key, self.width or layout.total
        if every and layout.total and key_cells:  # decoded keys say more
            key_cells = max(key_cells, (layout.value + key_cells) // 2)
        most = key_cells if layout.total else 0

        def key_text(data: bytes | None) -> bytes:
            return _encoded(_padded(_cut(as_text(data, 4 * most), most), key_cells))

        def rendered(key: bytes | None, value: bytes | None, found: DecodedRecord) -> tuple[bytes, ...]:
            shown = as_text(key, 4 * most) if found.key is None else printable(found.key)
            text = as_text(value, limit) if found.value is None else printable(found.value)
            if self.width and len(text) > self.width:
                text = text[: self.width - 1] + "…"
            return _encoded(_padded(_cut(shown, most), key_cells)), _encoded(text + printable(found.note))

        name = segment_name(segment)
        pieces: list[Piece] = []
        if layout.partition:
            start = _padded(_cut(name, layout.partition if layout.total else 0), layout.partition) + " "
            pieces.append(("literal", "", {"texts": (_encoded(start),)}))
        pieces += [
            ("number", "offset", {"width": layout.offset}),
            ("literal", "", {"texts": (b"  ",)}),
        ]
        if layout.time:
            begin, end = _TIMES[layout.time]
            pieces += [
                ("time", "timestamp", {
                    "width": layout.time, "begin": begin, "end": end,
                    "call": lambda time: _encoded(f"{when(time):{layout.time}}")}),
                ("literal", "", {"texts": (b"  ",)}),
            ]
        if layout.key:
            pieces += [
                ("plain", "key", {"texts": (b"null",), "width": key_cells, "limit": most, "decoded": 0,
                                  "call": key_text}),
                ("literal", "", {"texts": (b"  ",)}),
            ]
        pieces += [
            ("plain", "value", {"texts": (b"null",), "limit": limit, "decoded": 1,
                                "call": lambda data: _encoded(as_text(data, limit))}),
            ("headers", "headers", {"texts": (b" | ", b" ", b"null"), "call": lambda headers: _encoded(
                " | " + " ".join(f"{as_text(header)}={as_text(value)}" for header, value in headers))}),
            ("literal", "", {"texts": (b"\n",)}),
        ]
        return RecordText(pieces, decode=_decoder(segment, decode, rendered), every=every, cells=layout.total,
                          fit=self._fit)

    def _fit(self, line: bytes) -> bytes:
        return _encoded(_cut(line.decode("utf-8", "surrogateescape").removesuffix("\n"), self.layout.total) + "\n")

    def title(self, segment: LogSegment) -> str:
        """A line with the name of the partition, where it has no column and was not written yet."""
        name = segment_name(segment)
        if self.layout.partition or name == self._last:
            return ""
        self._last = name
        return _cut(f"{name}:", self.layout.total) + "\n"


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def _cut(text: str, cells: int) -> str:
    """The text in at most so many cells (0: no limit), with an ellipsis where it was longer."""
    if not cells or (len(text) <= cells // 2 and not text.isascii()):
        return text
    if text.isascii():
        return text if len(text) <= cells else text[: cells - 1] + "…"
    from rich.cells import cell_len, set_cell_size

    head = text[: 8 * cells]  # signs without a width are not shown without end
    if len(head) == len(text) and cell_len(text) <= cells:
        return text
    return set_cell_size(head, cells - 1).rstrip(" ") + "…"


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - _cells(text))


# JSON


class JsonLines:
    """Records as JSON objects, one a line."""

    fields = ("offset", "timestamp", "timestamp_type", "key", "value", "headers", "is_control", "batch_position",
              "producer_id", "producer_epoch", "sequence")
    raw = False

    def header(self) -> str:
        """No line."""
        return ""

    def title(self, segment: LogSegment) -> str:
        """No line."""
        return ""

    def writer(self, segment: LogSegment, states: Mapping[int, str], decode: Decode | None, every: bool) -> RecordText:
        """See Lines."""

        def content(data: bytes | None) -> bytes:
            return _encoded(shown_json(as_json(data)))

        def headers(listed: Sequence[tuple[bytes, bytes | None]]) -> bytes:
            return _encoded(shown_json([[as_text_of(name), as_json(value)] for name, value in listed]))

        def rendered(key: bytes | None, value: bytes | None, found: DecodedRecord) -> tuple[bytes, ...]:
            more = "".join(f", {shown_json(name)}: {shown_json(item)}" for name, item in found.more.items())
            if found.has_json:
                shown = shown_json(found.json_key), shown_json(found.json_value)
            else:
                shown = shown_json(as_json(key)), shown_json(as_json(value))
            return *map(_encoded, shown), _encoded(more)

        def literal(text: str) -> Piece:
            return "literal", "", {"texts": (_encoded(text),)}

        topic, partition = shown_json(segment.topic), shown_json(segment.partition)
        pieces: list[Piece] = [
            literal(f'{{"topic": {topic}, "partition": {partition}, "offset": '), ("number", "offset", {}),
            literal(', "timestamp": '), ("number", "timestamp", {}),
            literal(', "timestamp_type": "'),
            ("name", "timestamp_type", {"texts": (b"none", b"create", b"log_append")}),
            literal('", "key": '), ("json", "key", {"decoded": 0, "call": content}),
            literal(', "value": '), ("json", "value", {"decoded": 1, "call": content}),
            literal(', "headers": '), ("headers_json", "headers", {"call": headers}),
            literal(', "producer_id": '), ("number", "producer_id", {}),
            literal(', "producer_epoch": '), ("number", "producer_epoch", {}),
            literal(', "sequence": '), ("number", "sequence", {}),
            literal(', "transaction": ' + ("" if states else "null")),
        ]
        if states:
            pieces.append(("call", "batch_position", {"call": lambda at: _STATES[states.get(at)]}))
        pieces += [("literal", "", {"texts": (b"",), "decoded": 2}), literal("}\n")]
        return RecordText(pieces, decode=_decoder(segment, decode, rendered), every=every)


_STATES: dict[str | None, bytes] = {
    None: b"null", "committed": b'"committed"', "aborted": b'"aborted"', "open": b'"open"'}


def as_text_of(name: bytes) -> str:
    """The name of a header; columns hold valid UTF-8."""
    return name.decode("utf-8", "replace")


# formats

_FIELDS = {  # token -> kind and column of a piece: as bytes, and as text on a terminal
    "s": ("raw", "plain", "value"), "S": ("size", "size", "value"), "R": ("size_binary", "size_binary", "value"),
    "k": ("raw", "plain", "key"), "K": ("size", "size", "key"), "o": ("number", "number", "offset"),
    "T": ("number", "number", "timestamp"), "h": ("headers_raw", "headers", "headers"),
}  # fmt: skip
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r"}


class Format:
    """Records by a format string, as of kcat -f. Nothing is written between records but what the format has.

    On a terminal keys, values and headers are escaped; elsewhere their bytes are written as they are. Raises
    click.BadParameter for an unknown token.
    """

    def __init__(self, text: str) -> None:
        if not text:
            raise click.BadParameter("the format is empty", param_hint="'--format'")
        if "%" not in text and "\\" not in text:  # --format json
            raise click.BadParameter(f"{brief(text)} has no token such as %s; --json prints JSON, kwire log export "
                                     "writes CSV", param_hint="'--format'")
        self._parts = list(_parsed(text))
        self.raw = not sys.stdout.isatty()
        columns = [_FIELDS[part][2] for part in self._parts if isinstance(part, str) and part in _FIELDS]
        self.fields = tuple(dict.fromkeys([*columns, "offset", "timestamp", "key", "value", "is_control",
                                           "batch_position"]))

    def header(self) -> str:
        """No line."""
        return ""

    def title(self, segment: LogSegment) -> str:
        """No line."""
        return ""

    def writer(self, segment: LogSegment, states: Mapping[int, str], decode: Decode | None, every: bool) -> RecordText:
        """See Lines."""
        raw = self.raw

        def content(data: bytes | None) -> bytes:
            return b"" if data is None else _encoded(as_text(data))

        def headers(listed: Sequence[tuple[bytes, bytes | None]]) -> bytes:
            return _encoded(",".join(
                f"{as_text(name)}={'NULL' if value is None else as_text(value)}" for name, value in listed))

        def rendered(key: bytes | None, value: bytes | None, found: DecodedRecord) -> tuple[bytes, ...]:
            shown = []
            for text, data in ((found.key, key), (found.value, value)):
                if text is None:
                    shown.append((data or b"") if raw else content(data))
                else:
                    shown.append(_encoded(text if raw else printable(text)))
            return tuple(shown)

        topic = segment.topic or ""
        pieces: list[Piece] = []
        for part in self._parts:
            if isinstance(part, bytes):
                pieces.append(("literal", "", {"texts": (part,)}))
            elif part == "t":
                pieces.append(("literal", "", {"texts": (_encoded(topic if raw else printable(topic)),)}))
            elif part == "p":
                number = -1 if segment.partition is None else segment.partition
                pieces.append(("literal", "", {"texts": (b"%d" % number,)}))
            else:
                kind, column = _FIELDS[part][0 if raw else 1], _FIELDS[part][2]
                options: dict[str, Any] = {"call": headers if column == "headers" else content}
                options["texts"] = (b"", b",", b"NULL") if column == "headers" else (b"",)
                if part in "sk":
                    options["decoded"] = "ks".index(part)
                pieces.append((kind, column, options))
        return RecordText(pieces, decode=_decoder(segment, decode, rendered), every=every)


def _parsed(text: str) -> Iterator[bytes | str]:
    """The literals of a format as bytes, its tokens as one character."""
    literal = b""
    for match in re.finditer(r"%(?P<token>.?)|\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|(?P<octal>[0-7]{1,3})|(?P<other>.))"
                             r"|(?P<plain>.)", text, re.DOTALL):
        token, other = match["token"], match["other"]
        if token is None:
            if match["hex"] or match["octal"]:
                literal += bytes([int(match["hex"] or match["octal"], 16 if match["hex"] else 8) & 0xFF])
            else:
                literal += _ESCAPES.get(other or "", b"") or _encoded(other or match["plain"])
        elif token == "%":
            literal += b"%"
        elif (token and token in "tp") or token in _FIELDS:
            if literal:
                yield literal
            literal = b""
            yield token
        else:
            what = f"unknown token %{printable(token)}" if token else "% at the end (%% is a percent sign)"
            raise click.BadParameter(f"{what}: expected %t %p %o %k %s %h %T %K %S %R or %%", param_hint="'--format'")
    if literal:
        yield literal
