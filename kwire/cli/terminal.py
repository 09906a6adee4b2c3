"""What commands share on a terminal: progress on stderr, JSON and bytes as text, times as parameters."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from kwire_c.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

LONG = click.IntRange(-(1 << 63), (1 << 63) - 1)  # what an offset or a time can be
VERSION = click.IntRange(-(1 << 15), (1 << 15) - 1)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Time(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Milliseconds since 1970, or a date and time as ISO 8601 has it (UTC where no zone is named)."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The time in milliseconds."""
        if isinstance(value, int):
            return value
        try:
            number = int(value)
        except ValueError:
            pass
        else:
            return LONG.convert(number, param, ctx)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is neither milliseconds nor a time such as 2026-01-31T12:00:00Z", param, ctx)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def when(milliseconds: int) -> str:
    """A timestamp for people: UTC to the millisecond, "-" where there is none."""
    if milliseconds < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}"


def amount(size: int) -> str:
    """Bytes for people: 17 B, 1.5 MiB."""
    scaled, unit = float(size), 0
    while scaled >= 1024 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{scaled:.1f} {_UNITS[unit]}"


def api_of(text: str) -> int | str:
    """An API's key, or its name."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def as_text(data: bytes | None, limit: int = 0) -> str:
    """Bytes for people on one line: text where they are UTF-8, else hex; limit: characters (0: all)."""
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
    """Bytes for JSON without loss: a string where they are UTF-8, else {"base64": ...}; null stays null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def print_json(value: Any, *, indent: int | None = None) -> None:
    """One JSON value on stdout, on one line unless indent is given."""
    encoding = (sys.stdout.encoding or "utf-8").lower().replace("-", "").replace("_", "")
    text = json.dumps(value, indent=indent, ensure_ascii=encoding != "utf8")
    sys.stdout.write("\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n")) + "\n")


def _escaped(line: str) -> str:
    """A line of JSON in which what a terminal might obey is escaped: the value is the same."""
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in line)


def console(*, stderr: bool = False) -> Console:
    """A rich console on stdout or stderr; tables are as wide as they need to be where that is no terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # no markup, no emoji: what is shown are names of others
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=None if stream.isatty() else 240)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr where that is a terminal. Yields a function that takes the bytes done since the last call."""
    if not sys.stderr.isatty() or total < 1 << 20:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(),
               TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, advance=done)
