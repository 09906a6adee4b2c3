"""Terminal input and output of commands: progress on stderr, JSON, bytes as text, numbers as parameters."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from kwire.codec.json import without_nan
from kwire_c.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

LONG = click.IntRange(-(1 << 63), (1 << 63) - 1)  # an offset or a timestamp
LAST_OFFSET = click.IntRange(-1, (1 << 63) - 1)  # the last offset to read; -1: nothing
VERSION = click.IntRange(-(1 << 15), (1 << 15) - 1)
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


_MOST_COLUMNS = 10_000  # of a terminal; COLUMNS may say anything
_SMALL_NUMBER = re.compile("[0-9]{1,4}")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30}  # of the units of a Size
# of batches, as log show --batches and log dump show them in JSON
BATCH_FIELDS = (
    "position", "size", "magic", "codec", "base_offset", "last_offset", "count", "partition_leader_epoch", "crc",
    "attributes", "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional", "is_control",
    "delete_horizon", "producer_id", "producer_epoch", "base_sequence",
)  # fmt: skip


class Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number of bytes: 65536, 64k, 64KiB, 1M."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,12})\s?([kmg]?)(?:i?b)?", value.lower())
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is not a number of bytes such as 65536, 64KiB or 1M", param, ctx)
        return int(match[1]) << _SHIFTS[match[2]]


def when(milliseconds: int) -> str:
    """A timestamp as text: UTC to the millisecond, "-" for a negative one."""
    if milliseconds < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}"


def amount(size: int) -> str:
    """A number of bytes as text: 17 B, 1.5 MiB."""
    scaled, unit = float(size), 0
    while scaled >= 1024 and unit < len(UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{scaled:.1f} {UNITS[unit]}"


def counted(count: int, name: str, plural: str = "") -> str:
    """A number of things as text: 1 segment, 1,234 segments. plural: where it is not the name with an s."""
    return f"{count:,} {name if count == 1 else plural or name + 's'}"


def api_of(text: str) -> int | str:
    """An API's key, or its name."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def as_text(data: bytes | None, limit: int = 0) -> str:
    """Bytes as one line of text: as they are if they are UTF-8, else as hex; limit: characters (0: all)."""
    if data is None:
        return "null"
    piece = data[: limit * 4] if limit else data
    try:
        text = piece.decode() if piece is data else piece.decode(errors="ignore")
    except UnicodeDecodeError:
        text = "0x" + (piece[: limit or None]).hex()
    text = printable(text)
    return text[: limit - 1] + "…" if limit and len(text) > limit else text


def as_json(data: bytes | None) -> Any:
    """Bytes as a JSON value without loss: a string if they are UTF-8, else {"base64": ...}; null stays null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print one JSON value to stdout, on one line unless indent is given."""
    sys.stdout.write(shown_json(value, indent=indent) + "\n")


def shown_json(value: Any, *, indent: int | None = None) -> str:
    """A JSON value as print_json prints it, without the line end."""
    encode = _encoder(sys.stdout.encoding, indent)
    try:
        text = encode(value)
    except ValueError:  # NaN is no JSON
        text = encode(without_nan(value))
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


@cache
def _encoder(encoding: str | None, indent: int | None) -> Callable[[Any], str]:
    """Values to JSON, in ASCII unless the encoding is UTF-8."""
    plain = (encoding or "utf-8").lower().replace("-", "").replace("_", "")
    return json.JSONEncoder(indent=indent, ensure_ascii=plain != "utf8", allow_nan=False).encode


def _escaped(line: str) -> str:
    """A line of JSON with control characters escaped; its value is the same."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def not_to_terminal(path: str, what: str) -> None:
    """Refuse binary data on standard output ("-") where that is a terminal. what: the option, for the error."""
    if path == "-" and sys.stdout.isatty():
        raise click.UsageError(f"{what} writes binary data: redirect standard output to a file or a pipe")


def console(*, stderr: bool = False) -> Console:
    """A rich console on stdout or stderr; if that is not a terminal, tables are as wide as they need to be."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich ends the process with code 1

    stream = sys.stderr if stderr else sys.stdout
    # rich takes the first two for numbers whatever they are
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("COLUMNS", "LINES") or _SMALL_NUMBER.fullmatch(value)}
    # no markup, no emoji: the text holds names from the wire
    return Ours(file=stream, highlight=False, markup=False, emoji=False, width=None if stream.isatty() else 240,
                _environ=environment)


def terminal_columns() -> int:
    """The cells of a line of the terminal."""
    return min(shutil.get_terminal_size().columns, _MOST_COLUMNS)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr if that is a terminal. Yields a function to call with the bytes done since the last call."""
    if not sys.stderr.isatty() or total < 1 << 20:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(),
               TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, advance=done)


_TEXT_COLUMNS = ("partition", "segment", "codecs", "codec", "epochs", "batch size", "")


def table(title: str, columns: list[str], rows: list[list[str]], total: Sequence[list[str]] = ()) -> Any:
    """A rich table; on a narrow terminal only text columns shrink, numbers are never cut."""
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        text = column in _TEXT_COLUMNS
        width = max(len(cell) for cell in (column, *(row[at] for row in (*rows, *total))))
        table.add_column(column, justify="left" if text else "right", no_wrap=True, min_width=None if text else width)
    for row in rows:
        table.add_row(*row)
    for row in total:
        table.add_section()
        table.add_row(*row, style="bold")
    return table
