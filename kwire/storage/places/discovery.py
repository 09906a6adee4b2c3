"""Finds the segments of paths, folders, globs, comma lists and URLs; topic and partition from the folder's name.

Each folder is listed once, many at a time, and a listing says all that planning needs: sizes, and what is beside a
segment. Nothing is asked for a single file but for one that is named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kwire.codec.arguments import can_iterate
from kwire.storage.places.file_kinds import check_compressed, check_name
from kwire.storage.places.filesystem import Entry, is_url, open_folder, plain, shown, without_slash
from kwire.storage.places.path_patterns import PatternError, alternatives
from kwire.storage.places.selection import ExactSelection, Selection, choice_of
from kwire_c.printable import printable

T = TypeVar("T")
R = TypeVar("R")
PartitionKey: TypeAlias = tuple[str | None, int | None, str]  # topic, partition, folder

THREADS = 32  # that ask a file system at the same time: an object store answers in tens of milliseconds
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PARTITION = re.compile(r"(.+)-(\d+)")
_DROPPED = re.compile(r".+-\d+\.\w+-(delete|future|stray)")  # folders that the broker renamed before deletion
_MAGIC = re.compile(r"[*?[]")  # in a glob
_MOST_SIGNS = 4096  # of a pattern for one name, which has 1,024 at most; Python takes cubic time for some
_SEGMENTS = (".log", ".log.gz")
_MOST_OFFSET = (1 << 63) - 1
_BESIDE = (
    ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint", ".deleted", ".cleaned", ".swap", ".lock",
    ".metadata", ".properties", ".kafka_cleanshutdown", "-checkpoint", "quorum-state",
)  # fmt: skip


class SideFiles(NamedTuple):
    """Bytes of the files beside a segment, as a listing gave them; -1: there is no such file."""

    offset_index: int = -1
    time_index: int = -1
    transaction_index: int = -1
    snapshot: int = -1

    def of(self, kind: str) -> int:
        """Bytes of the file whose name ends in kind: .index, .timeindex, .txnindex, .snapshot."""
        return self[_KINDS.index(kind)]


_KINDS = (".index", ".timeindex", ".txnindex", ".snapshot")
_NONE_BESIDE = SideFiles()


class SegmentFile(NamedTuple):
    """A segment that discover() found; plain data, pickles. topic and partition: from the folder, or the labels given.

    base_offset: from the file name, -1 where it has none. size: bytes, -1 for a pipe and a .gz, whose size is known
    only after they are read, and where a store does not list sizes. stored: bytes of a .gz as it is, else the same as
    size. beside: the files beside it, None where no listing said (a file that was named).
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int
    size: int
    stored: int = -1
    beside: SideFiles | None = None

    def __repr__(self) -> str:
        rest = f"{self.topic!r}, {self.partition}, {self.base_offset}, {self.size}"
        return f"SegmentFile({shown(self.path)!r}, {rest})"


def discover(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    selection: ExactSelection | Selection | None = None,
    options: dict[str, Any] | None = None,
) -> list[SegmentFile]:
    """The segments at paths, sorted by topic, partition, base offset.

    paths: a segment, a partition folder, a log directory (every topic-N folder in it), a glob (*, **, ?, [a-c], [^a],
    {a,b}; a backslash escapes), a comma list of these, or a list; local or fsspec URLs. topics, partitions: select
    among topic-N folders, by name and number; a file outside of such a folder gets a single topic (partition) as its
    label. selection: instead of them, as people type it. Files that end in .deleted, .cleaned, .swap or .checkpoint are
    read only where they are named; a .log.gz is left out where its .log is read, too. Raises FileNotFoundError for a
    path that does not exist and a glob without a match, WrongFileError (.file) for a named file that is another one of
    a log directory by its name, and for a .log.zst and the like in a folder that does not have it as .log or .log.gz,
    LookupError for a selection as people type it that matches nothing (topics and
    partitions that match nothing give none), ValueError for {a,b} that stand for too many paths and for a pattern that
    is too long.
    """
    given = _listed("paths", paths)
    chosen = choice_of(topics, partitions, selection)
    return sorted(each_once(_segments(Listing(options), [plain(item) for item in given], chosen)), key=lambda file: (
        file.topic or "", -1 if file.partition is None else file.partition, file.path.rpartition("/")[0],
        file.base_offset, file.path))


def each_once(files: Iterable[SegmentFile]) -> list[SegmentFile]:
    """Each segment once: gzip leaves a .log beside its .log.gz until that is complete, or for ever (-k)."""
    found = {file.path: file for file in files}
    return [file for path, file in found.items() if not (path.endswith(".log.gz") and path[:-3] in found)]


def by_partition(files: Iterable[SegmentFile]) -> dict[PartitionKey, list[SegmentFile]]:
    """The segments of each partition, in the order of files. Folders of one topic and number are partitions each."""
    groups: dict[PartitionKey, list[SegmentFile]] = {}
    for file in files:
        groups.setdefault((file.topic, file.partition, file.path.rpartition("/")[0]), []).append(file)
    return groups


def _listed(name: str, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Any]:
    """The paths of an argument that is one or a list of them. Raises TypeError."""
    if isinstance(paths, str | bytes | os.PathLike):
        return [paths]
    if not can_iterate(paths):
        raise TypeError(f"{name} must be a path or a list of paths, not {type(paths).__name__}")
    return list(paths)


class Listing:
    """The folders that one discovery looks at: each is listed once. options: keywords for fsspec."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        self._options = options
        self._entries: dict[str, list[Entry]] = {}
        self._beside: dict[str, dict[str, SideFiles] | None] = {}

    def look(self, paths: Sequence[str]) -> list[Entry | None]:
        """What is at each path, None where nothing is; many are looked at at a time."""
        return in_threads(lambda path: open_folder(path, self._options).entry(path), paths)

    def gather(self, folders: Iterable[str]) -> None:
        """List the folders that were not listed yet, many at a time; one that does not exist is empty."""
        missing = [folder for folder in dict.fromkeys(folders) if folder not in self._entries]
        self._entries.update(zip(missing, in_threads(self._listed, missing), strict=True))

    def entries(self, folder: str) -> list[Entry]:
        """What is in a folder, sorted by name."""
        self.gather([folder])
        return self._entries[folder]

    def _listed(self, folder: str) -> list[Entry]:
        try:
            return open_folder(folder, self._options).entries(folder)
        except (FileNotFoundError, NotADirectoryError):  # deleted meanwhile
            return []

    def segments(self, folder: str) -> list[SegmentFile]:
        """The segments in a folder. Raises WrongFileError (.file) for one that is compressed otherwise than as .gz."""
        files = [entry for entry in self.entries(folder) if not entry.is_folder]
        found = [entry for entry in files if entry.path.endswith(_SEGMENTS)]
        if len(found) < len(files):
            names = {entry.path.rpartition("/")[2] for entry in found}
            for entry in files:
                check_compressed(entry.path, names)
        return [self.segment(entry) for entry in found]

    def segment(self, entry: Entry) -> SegmentFile:
        """The segment of a file; what is beside it is known if its folder was listed."""
        folder = entry.path.rpartition("/")[0]
        beside = None
        if folder in self._entries:
            if folder not in self._beside:
                self._beside[folder] = _side_files(self._entries[folder])
            listed = self._beside[folder]
            beside = None if listed is None else listed.get(_stem(entry.path), _NONE_BESIDE)
        size = -1 if entry.path.endswith(".gz") else entry.size
        return SegmentFile(entry.path, *place_of(entry.path), offset_in_name(entry.path), size, entry.size, beside)

    def glob(self, pattern: str) -> list[Entry]:
        """The files and folders that match a shell pattern (** is any number of folders)."""
        first = _MAGIC.search(pattern)
        assert first is not None
        base = pattern[: pattern.rfind("/", 0, first.start()) + 1]
        *parts, last = pattern[len(base) :].rstrip("/").split("/")
        if max(map(len, (*parts, last))) > _MOST_SIGNS:
            reason = f"a name in it has more than {_MOST_SIGNS} characters"
            raise PatternError(f"{printable(shown(pattern)[:200])}: {reason}")
        folders = [without_slash(base)]
        for part in parts:
            if part == "**":
                folders = self._below(folders)
            elif _MAGIC.search(part):
                folders = [entry.path for entry in self._matches(folders, part) if entry.is_folder]
            else:
                folders = [os.path.join(folder, part) for folder in folders]
        if last == "**":
            return [Entry(folder, True, 0) for folder in self._below(folders)]
        return self._matches(folders, last)

    def _matches(self, folders: list[str], part: str) -> list[Entry]:
        self.gather(folders)
        return [
            entry for folder in folders for entry in self.entries(folder)
            if fnmatchcase(name := entry.path.rpartition("/")[2], part) and (name[0] != "." or part[0] == ".")
        ]

    def _below(self, folders: list[str]) -> list[str]:
        """The folders and all folders in them, each once: a link may lead back to a folder above it."""
        found: dict[Any, str] = {}
        while folders:
            known = len(found)
            for folder in folders:
                found.setdefault(_identity(folder), folder)
            folders = [entry.path for entry in self._matches([*found.values()][known:], "*") if entry.is_folder]
        return [*found.values()]


def _identity(folder: str) -> Any:
    """What is the same for a folder by whatever links it is reached."""
    try:
        place = None if is_url(folder) else os.stat(folder)
    except OSError:  # deleted meanwhile
        place = None
    return folder if place is None else (place.st_dev, place.st_ino)


def in_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The function of each item, in order; many at a time, as each waits for a file system.

    One after the other where threads cannot be started (ulimit -u, ulimit -v).
    """
    if len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(THREADS, len(items))) as pool:
        try:
            found = pool.map(function, items)
        except RuntimeError:
            pool.shutdown(cancel_futures=True)
            return [function(item) for item in items]
        return list(found)


def is_without_gaps(topic: str | None) -> bool:
    """Does the log of a topic have each offset from its first one on? KRaft's has: it is never compacted."""
    return topic == "__cluster_metadata"


def is_topic_name(name: str) -> bool:
    """Whether it is a name that Kafka allows for a topic (Topic.validate)."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


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
    """The base offset in a segment's file name (20 digits in Kafka), -1 if there is none of at most 63 bits."""
    stem, _, kind = path.rpartition("/")[2].removesuffix(".gz").partition(".")
    return parsed_offset(stem) if kind == "log" else -1


def parsed_offset(stem: str) -> int:
    """The offset that a file is named after, -1 if its name is no number of at most 63 bits."""
    digits = stem.lstrip("0")
    is_number = stem.isascii() and stem.isdigit() and len(digits) <= len(str(_MOST_OFFSET))
    offset = int(digits or "0") if is_number else -1
    return offset if offset <= _MOST_OFFSET else -1


def beside(path: str, kind: str) -> str:
    """The path of the index (.index, .timeindex, .txnindex) that belongs to a segment."""
    return path.removesuffix(".gz").removesuffix(".log") + kind


def later_segments(path: str, options: dict[str, Any] | None = None) -> list[SegmentFile]:
    """The segments after this one in its folder, in order; none if its name has no base offset."""
    base = offset_in_name(path)
    return [] if base < 0 else [file for file in siblings(path, options) if file.base_offset > base]


def siblings(path: str, options: dict[str, Any] | None = None) -> list[SegmentFile]:
    """The segments of the folder that a segment is in, itself included, in order of their base offsets."""
    listing = Listing(options)
    entries = listing.entries(path.rpartition("/")[0])
    files = (listing.segment(entry) for entry in entries if not entry.is_folder and offset_in_name(entry.path) >= 0)
    return sorted(each_once(files), key=lambda file: file.base_offset)


def unfinished_swaps(names: Collection[str]) -> list[str]:
    """Of the names in a partition's folder, .log.swap files that hold what no .log holds: a compaction was interrupted.

    A broker renames them to .log at its start; those from the first .cleaned file on it deletes (LogLoader).
    """
    segments = {parsed_offset(name.partition(".")[0]) for name in names if name.endswith(_SEGMENTS)}
    cleaned = [parsed_offset(name.partition(".")[0]) for name in names if name.endswith(".cleaned")]
    first = min((offset for offset in cleaned if offset >= 0), default=_MOST_OFFSET + 1)
    swaps = [(parsed_offset(name.partition(".")[0]), name) for name in names if name.endswith(".log.swap")]
    return sorted(name for offset, name in swaps if 0 <= offset < first and offset not in segments)


def _segments(listing: Listing, paths: list[str], choice: ExactSelection | Selection) -> Iterator[SegmentFile]:
    """The segments at paths that are chosen; of the folders in a folder only those that are chosen are listed."""
    folders, files = [], []
    for entry in _found(listing, paths):
        if entry.is_folder:
            folders.append(entry.path)
        else:
            files.append(listing.segment(entry))
    listing.gather(folders)
    inside = {entry.path: place for folder in folders for entry in listing.entries(folder)
              if entry.is_folder and (place := _partition_of(entry.path.rpartition("/")[2])) is not None}
    named = [place_of(f"{folder}/x") for folder in folders] + [(file.topic, file.partition) for file in files]
    wanted = choice.chosen({*inside.values(), *(
        (topic, partition) for topic, partition in named if topic is not None and partition is not None)})
    inside = {path: place for path, place in inside.items() if place in wanted}
    listing.gather(inside)
    files += [file for folder in (*folders, *inside) for file in listing.segments(folder)]
    topic, partition = choice.label
    for file in files:
        if file.topic is None:
            yield file._replace(topic=topic, partition=partition)
        elif (file.topic, file.partition) in wanted:
            yield file


def _found(listing: Listing, paths: list[str]) -> Iterator[Entry]:
    """The files and folders that paths, comma lists and globs name. Raises FileNotFoundError."""
    paths = [without_slash(path) for path in paths]
    looked = dict(zip(paths, listing.look(paths), strict=True))
    for path in paths:
        parts = [path] if looked[path] is not None else [plain(part) for part in alternatives(path)]
        if parts != [path]:  # a comma list or {a,b}, not a name with these
            yield from _found(listing, parts)
        else:
            yield from _matching(listing, path, looked[path])


def _matching(listing: Listing, path: str, entry: Entry | None) -> Iterator[Entry]:
    if entry is not None:
        if not entry.is_folder:
            check_name(entry.path)
        yield entry
        return
    if not _MAGIC.search(path):
        raise FileNotFoundError(f"{printable(shown(path))}: no such file or folder")
    matches = listing.glob(path)
    if not matches:
        raise FileNotFoundError(f"{printable(shown(path))}: no file matches")
    for match in matches:
        if any(_DROPPED.fullmatch(part) for part in match.path.split("/")[-2:]):
            continue
        if match.is_folder or not match.path.endswith(_BESIDE):
            yield match


def _stem(path: str) -> str:
    """The name that a segment shares with the files beside it."""
    return path.rpartition("/")[2].removesuffix(".gz").removesuffix(".log")


def _side_files(entries: list[Entry]) -> dict[str, SideFiles] | None:
    """Name without kind -> the files beside a segment of that name; None where the listing has no sizes."""
    found: dict[str, list[int]] = {}
    for entry in entries:
        stem, dot, kind = entry.path.rpartition("/")[2].rpartition(".")
        if dot + kind in _KINDS and not entry.is_folder:
            if entry.size < 0:
                return None
            found.setdefault(stem, [-1] * len(_KINDS))[_KINDS.index(dot + kind)] = entry.size
    return {stem: SideFiles(*sizes) for stem, sizes in found.items()}
