"""Finds the segments of paths, folders, globs, comma lists and URLs; topic and partition from the folder's name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from kwire.storage.filesystem import SpooledFile, is_url, open_file, open_folder, plain, shown
from kwire.storage.path_patterns import alternatives
from kwire_c.printable import printable

_PARTITION = re.compile(r"(.+)-(\d+)")
_DROPPED = re.compile(r".+-\d+\.\w+-(delete|future|stray)")  # folders that the broker renamed before deletion
_SEGMENTS = (".log", ".log.gz")
_BESIDE = (
    ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint", ".deleted", ".cleaned", ".swap", ".lock",
    ".metadata", ".properties", ".kafka_cleanshutdown", "-checkpoint", "quorum-state",
)  # fmt: skip


class SegmentFile(NamedTuple):
    """A segment that discover() found; plain data, pickles. topic and partition: from the folder, or the labels given.

    base_offset: from the file name, -1 where it has none. size: bytes, -1 for a pipe and a .gz, whose size is known
    only after they are read.
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int
    size: int

    def __repr__(self) -> str:
        rest = f"{self.topic!r}, {self.partition}, {self.base_offset}, {self.size}"
        return f"SegmentFile({shown(self.path)!r}, {rest})"


def discover(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    options: dict[str, Any] | None = None,
) -> list[SegmentFile]:
    """The segments at paths, sorted by topic, partition, base offset.

    paths: a segment, a partition folder, a log directory (every topic-N folder in it), a glob (*, **, ?, [a-c], [^a],
    {a,b}; a backslash escapes), a comma list of these, or a list; local or fsspec URLs. topics, partitions: select
    among topic-N folders; a file outside of such a folder gets a single topic (partition) as its label. Files that end
    in .deleted, .cleaned, .swap or .checkpoint are read only where they are named. Raises FileNotFoundError for a path
    that does not exist and a glob without a match, ValueError for {a,b} that stand for too many paths.
    """
    given = [paths] if isinstance(paths, str | bytes | os.PathLike) else list(paths)
    files: dict[str, SegmentFile] = {}
    for item in given:
        for path in _split(plain(item), options):
            for file in _resolve(path, options):
                selected = _select(file, topics, partitions)
                if selected is not None:
                    files[selected.path] = selected
    return sorted(files.values(), key=lambda file: (
        file.topic or "", -1 if file.partition is None else file.partition, file.path.rpartition("/")[0],
        file.base_offset, file.path))


def place_of(path: str) -> tuple[str | None, int | None]:
    """(topic, partition) from the folder `topic-N` that a segment is in, else (None, None)."""
    folder = path.rpartition("/")[0] if is_url(path) else os.path.dirname(os.path.abspath(path))
    return _partition_of(folder.rpartition("/")[2]) or (None, None)


def _partition_of(folder: str) -> tuple[str, int] | None:
    """(topic, partition) from the name of a folder, None if it is not a partition's (N has at most 31 bits)."""
    match = _PARTITION.fullmatch(folder)
    number = -1 if match is None or len(match[2]) > 10 else int(match[2])
    return (match[1], number) if match and 0 <= number <= 0x7FFFFFFF else None


def offset_in_name(path: str) -> int:
    """The base offset in a segment's file name (20 digits in Kafka), -1 if there is none."""
    stem, _, kind = path.rpartition("/")[2].removesuffix(".gz").partition(".")
    return int(stem) if kind == "log" and stem.isascii() and stem.isdigit() else -1


def beside(path: str, kind: str) -> str:
    """The path of the index (.index, .timeindex, .txnindex) that belongs to a segment."""
    return path.removesuffix(".gz").removesuffix(".log") + kind


def later_segments(path: str, options: dict[str, Any] | None = None) -> list[str]:
    """The paths of the segments after this one in its folder, in order; none if its name has no base offset."""
    base = offset_in_name(path)
    if base < 0:
        return []
    folder = path.rpartition("/")[0] if "/" in path else "."
    names = [name for name, is_folder, _ in open_folder(folder, options).entries(folder) if not is_folder]
    return sorted((name for name in names if offset_in_name(name) > base), key=offset_in_name)


def _split(path: str, options: dict[str, Any] | None) -> list[str]:
    parts = alternatives(path)
    if parts == [path] or open_folder(parts[0] if parts else path, options).kind(path) is not None:
        return [path]
    return [plain(part) for part in parts]


def _resolve(path: str, options: dict[str, Any] | None) -> Iterator[SegmentFile]:
    folder = open_folder(path, options)
    kind = folder.kind(path)
    if kind == "file":
        yield _file(path, _size(path, options))
    elif kind == "folder":
        yield from _in_folder(path, options)
    elif any(sign in path for sign in "*?["):
        matches = folder.glob(path)
        if not matches:
            raise FileNotFoundError(f"{printable(shown(path))}: no file matches")
        for match in matches:
            if any(_DROPPED.fullmatch(part) for part in match.split("/")[-2:]):
                continue
            if folder.kind(match) == "folder":
                yield from _in_folder(match, options)
            elif not match.endswith(_BESIDE):
                yield _file(match, _size(match, options))
    else:
        raise FileNotFoundError(f"{printable(shown(path))}: no such file or folder")


def _in_folder(path: str, options: dict[str, Any] | None) -> Iterator[SegmentFile]:
    folder = open_folder(path, options)
    for name, is_folder, size in folder.entries(path):
        if not is_folder:
            if name.endswith(_SEGMENTS):
                yield _file(name, -1 if name.endswith(".gz") else size)
        elif _partition_of(name.rpartition("/")[2]):
            for inner, inner_folder, inner_size in folder.entries(name):
                if inner.endswith(_SEGMENTS) and not inner_folder:
                    yield _file(inner, -1 if inner.endswith(".gz") else inner_size)


def _size(path: str, options: dict[str, Any] | None) -> int:
    file = open_file(path, options)
    return -1 if isinstance(file, SpooledFile) else file.size()


def _file(path: str, size: int) -> SegmentFile:
    return SegmentFile(path, *place_of(path), offset_in_name(path), size)


def _select(
    file: SegmentFile, topics: Collection[str] | None, partitions: Collection[int] | None
) -> SegmentFile | None:
    if file.topic is None:
        if topics is not None and len(topics) == 1:
            file = file._replace(topic=next(iter(topics)))
        if partitions is not None and len(partitions) == 1:
            file = file._replace(partition=next(iter(partitions)))
        return file
    if (topics is not None and file.topic not in topics) or (
        partitions is not None and file.partition not in partitions
    ):
        return None
    return file
