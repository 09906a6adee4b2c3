"""What a command reads, as people type it: paths, topics, partitions, and ranges of offsets and timestamps."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.terminal import LONG, when
from kwire.output import check_standard_output
from kwire_c.printable import brief, printable

if TYPE_CHECKING:
    from kwire.storage import LogDirectory, LogSegment
    from kwire.storage.places.selection import Selection

OFFSET = click.IntRange(0, (1 << 63) - 1)
_MOST_NAMED = 5  # topics
_MOST_PARTITION = (1 << 31) - 1
_MOST_PARTITIONS = 100_000  # in one range
_SECONDS = 100_000_000, 100_000_000_000  # a number between these two is in seconds: 1973 to 5138
_LATEST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_RELATIVE = re.compile(r"-(\d{1,9}(?:\.\d{1,3})?)\s?(ms|s|m|h|d|w)")
_NUMBER = re.compile(r"(\d{1,19})(?:(\.\d{1,9})s?|(ms|s))?")
_DATE = re.compile(r"(?:19[7-9]|2\d\d)\d[01]\d[0-3]\d")


class Moment(int):
    """A timestamp in milliseconds. read_as: what was typed and how it was read, for the user."""

    read_as: str

    def __new__(cls, milliseconds: int, text: str, how: str) -> Moment:
        """The time, and how its text was read."""
        moment = super().__new__(cls, milliseconds)
        moment.read_as = f"{printable(text)} is {when(milliseconds)} UTC ({how})"
        return moment


class Time(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A time as a Moment: seconds or milliseconds since 1970, ISO 8601 (UTC without a time zone), or -1h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The time in milliseconds."""
        if isinstance(value, int):
            return value
        text = value.strip()
        try:
            milliseconds, how = _time(text)
        except (ValueError, OverflowError):
            self.fail(f"{brief(value)} is not a time: expected 2026-01-31T12:00:00Z, seconds or milliseconds "
                      "since 1970, or -90s, -30m, -1h, -2d, -1w before now", param, ctx)
        if milliseconds > _LATEST and not text.endswith("ms"):
            self.fail(f"{brief(value)} is after the year 9999: expected seconds or milliseconds since 1970, not micro- "
                      "or nanoseconds (with ms at its end it is taken as it is)", param, ctx)
        return Moment(int(LONG.convert(milliseconds, param, ctx)), text, how)


def _time(text: str) -> tuple[int, str]:
    """(milliseconds since 1970, how the text was read). Raises ValueError."""
    if text.lower() == "now":
        return round(time.time() * 1000), "now"
    match = _RELATIVE.fullmatch(text)
    if match is not None:
        return round(time.time() * 1000 - float(match[1]) * _UNITS[match[2]]), "before now"
    match = _NUMBER.fullmatch(text)
    if match is not None and not _DATE.fullmatch(text):
        number, fraction, unit = int(match[1]), match[2], match[3]
        if fraction is not None or unit == "s" or (unit is None and _SECONDS[0] <= number < _SECONDS[1]):
            return number * 1000 + round(float(fraction or 0) * 1000), "seconds since 1970"
        return number, "milliseconds since 1970"
    moment = datetime.fromisoformat(text)
    how = "ISO 8601" if moment.tzinfo else "ISO 8601 without a time zone: UTC"
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000), how


class Partitions(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Numbers of partitions as a tuple: 3, a comma list, a range as 0-3."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The numbers."""
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for part in value.split(","):
            match = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
            if not first <= last <= min(_MOST_PARTITION, first + _MOST_PARTITIONS):
                self.fail(f"{brief(value)} is not a partition (0 to {_MOST_PARTITION}), a comma list of them, "
                          "or a range such as 0-3", param, ctx)
            found += range(first, last + 1)
        return tuple(found)


class Topics(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A topic, a glob or a comma list of them; not nothing, as of a variable that is not set."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text."""
        if not value.replace(",", "").strip():
            self.fail("the name is empty", param, ctx)
        return str(value)


TOPIC = click.option(
    "--topic", "topics", multiple=True, type=Topics(), metavar="TOPIC,...",
    help="Only these topics: names, globs such as 'orders-*', a comma list, or TOPIC-PARTITION (may be repeated).")
PARTITION = click.option(
    "--partition", "partitions", multiple=True, type=Partitions(), metavar="N,...",
    callback=lambda ctx, param, values: tuple(number for numbers in values for number in numbers),
    help="Only these partitions: 3, 0,2 or 0-3 (may be repeated).")


def selected(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PATH..., --topic and --partition to a command, which gets paths, topics and partitions."""

    @click.argument("paths", nargs=-1, required=True, metavar="PATH...")
    @TOPIC
    @PARTITION
    @wraps(command)
    def selecting(*args: Any, **options: Any) -> Any:
        if "" in options["paths"]:
            raise click.UsageError("a PATH is empty: a variable that is not set?")
        return command(*args, **options)

    return selecting


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PATH..., --topic and --partition to a command, which gets them as one LogDirectory."""

    @selected
    @wraps(command)
    def selecting(paths: tuple[str, ...], topics: tuple[str, ...], partitions: tuple[int, ...], **options: Any) -> Any:
        if "output" in options and options["output"] is None:
            paths, options["output"] = _split_output(paths)
        return command(segments_at(paths, topics, partitions), **options)

    return selecting


def segments_at(paths: Sequence[str], topics: Sequence[str], partitions: Sequence[int]) -> LogDirectory:
    """The segments at paths; empty topics or partitions: all.

    Raises FileNotFoundError where there are none, which says what there is, WrongFileError for other files, and
    FileExistsError if standard output is one of them.
    """
    from kwire.storage import LogDirectory
    from kwire.storage.places.filesystem import shown
    from kwire.storage.places.path_patterns import PatternError
    from kwire.storage.places.selection import Selection, nearby

    chosen = Selection(topics, partitions)
    paths = without_side_files(paths)
    at = " ".join(map(shown, paths))
    try:
        directory = LogDirectory(paths, selection=chosen)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}{nearby(_missing(paths))}") from None
    except LookupError as error:
        raise FileNotFoundError(f"{at}: {error.args[0]}") from None
    except PatternError as error:
        raise click.UsageError(str(error)) from None
    if not directory.segments:
        which = " of the selected topics and partitions" if chosen else ""
        raise FileNotFoundError(f"{at}: no log segments found{which}{nearby(paths[0])}")
    _check(directory, chosen)
    check_not_output([segment.path for segment in directory.segments])
    return directory


def check_not_output(paths: Sequence[str]) -> None:
    """Raise FileExistsError if standard output is one of the files, or one that is read with them."""
    check_standard_output(_read_with(paths))


def _read_with(paths: Sequence[str]) -> Iterator[str]:
    """The files, then the files of logs in their folders: indexes, producer snapshots, other segments."""
    from kwire.storage.places.discovery import offset_in_name
    from kwire.storage.places.file_kinds import kind_by_name
    from kwire.storage.places.filesystem import is_url

    yield from paths
    local = [path for path in paths if path != "-" and not is_url(path)]
    stems = {os.path.basename(path).partition(".")[0] for path in local}

    def is_read(name: str) -> bool:
        stem, _, ending = name.partition(".")
        of_segment = ending in ("index", "timeindex", "txnindex", "snapshot", "checkpoint")
        return offset_in_name(name) >= 0 or (kind_by_name(name) is not None and (
            not of_segment or stem in stems or stem.replace("-", "").isdigit()))

    for folder in dict.fromkeys(os.path.dirname(path) or "." for path in local):
        with suppress(OSError):
            for entry in os.scandir(folder):
                if is_read(entry.name):
                    yield entry.path


def without_side_files(paths: Sequence[str]) -> Sequence[str]:
    """The paths without the indexes and checkpoints that a shell puts among them for FOLDER/*, as kwire's own globs."""
    from kwire.storage.places.file_kinds import kind_by_name

    left = [path for path in paths if kind_by_name(path) is None]
    folders = {path.rstrip("/").rpartition("/")[0] for path in left}
    return [path for path in paths if kind_by_name(path) is None or path.rpartition("/")[0] not in folders]


def names_of(directory: LogDirectory) -> str:
    """What was read, for a title: the paths, and which topics of them where these are a few."""
    from kwire.storage.places.filesystem import shown

    given: Any = directory.path
    topics = sorted({segment.topic or "" for segment in directory.segments})
    names = " ".join(shown(str(path)) for path in given)
    return names if topics == [""] or len(topics) > _MOST_NAMED else f"{names}: {', '.join(topics)}"


def _missing(paths: Sequence[str]) -> str:
    """The first of the paths at which nothing is."""
    from kwire.storage import discover

    for path in paths:
        try:
            discover(path)
        except FileNotFoundError:
            return path
    return paths[0]


def segments_in(directory: LogDirectory, span: Mapping[str, Any]) -> list[LogSegment]:
    """The segments that may hold offsets of a range, by their names. span: the options of span()."""
    from kwire.storage.reading.directory import in_range

    return [segment for partition in directory
            for segment in in_range(partition.segments, span["start_offset"], span["end_offset"])]


def _check(directory: LogDirectory, chosen: Selection) -> None:
    """Refuse files that are no segments, and a choice that says nothing of a file outside of TOPIC-PARTITION."""
    from kwire.errors import WrongFileError
    from kwire.storage.places.file_kinds import check_segment
    from kwire.storage.places.filesystem import located, shown

    for segment in directory.segments:
        if chosen.patterns and segment.topic is None:
            raise click.UsageError(f"{shown(segment.path)} is not in a folder TOPIC-PARTITION: --topic takes one name "
                                   "there, which is then its topic")
        if segment.named_offset is None:
            check_segment(segment.path, segment.file)
            if not segment.size and not segment.path.endswith(".log"):
                raise located(WrongFileError("empty, expected a log segment"), segment.path)


def _split_output(paths: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """(paths to read, file to write): the last path if it is - or ends in .parquet, else a name after the first."""
    if len(paths) > 1 and (paths[-1] == "-" or paths[-1].endswith(".parquet")):
        return paths[:-1], paths[-1]
    name = "stdin" if paths[0] == "-" else paths[0].rstrip("/").rpartition("/")[2]
    name = name.removesuffix(".gz").removesuffix(".log")
    several = len(paths) > 1 or re.search(r"[*?,\[{]", paths[0]) or not name.strip(".")
    return paths, "log.parquet" if several else f"{name}.parquet"


def span(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a range of offsets and timestamps, as keywords of read() and columns().

    How a timestamp was read is shown on stderr.
    """

    @click.option("--start-offset", type=OFFSET, help="The first offset.")
    @click.option("--end-offset", type=OFFSET, help="The offset to stop before (exclusive).")
    @click.option("--start-timestamp", type=Time(),
                  help="The first timestamp: ISO 8601, seconds or milliseconds since 1970, or -1h.")
    @click.option("--end-timestamp", type=Time(), help="The timestamp to stop before (exclusive).")
    @click.option("--committed", is_flag=True, help="Skip aborted and open transactions.")
    @wraps(command)
    def spanning(*args: Any, **options: Any) -> Any:
        for kind in ("offset", "timestamp"):
            start, end = (options[f"{side}_{kind}"] for side in ("start", "end"))
            for side, moment in (("start", start), ("end", end)):
                if isinstance(moment, Moment):
                    click.echo(f"kwire: --{side}-{kind} {moment.read_as}", err=True)
            if start is not None and end is not None and start > end:
                raise click.UsageError(f"--start-{kind} {start} is after --end-{kind} {end}: nothing is between them")
        return command(*args, **options)

    return spanning
