"""LogDirectory and Partition, and the discovery of segments from paths, globs, comma lists and folders."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kwire.storage.segment import LogSegment


class SegmentFile(NamedTuple):
    """A segment as discovery finds it; plain data, pickles. topic and partition: from the folder name or the labels given.

    base_offset: from the file name, -1 where the file is named otherwise.
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int
    size: int


def discover(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    options: dict[str, Any] | None = None,
) -> list[SegmentFile]:
    """The segments behind paths, sorted by topic, partition, base offset.

    paths: a segment, a partition folder, a log directory (every topic-N folder in it), a glob, a comma list of these, or
    a list; local or fsspec URLs. topics, partitions: select among topic-N folders; for a file outside of such a folder a
    single topic (partition) labels. .deleted, .cleaned, .swap and .checkpoint files are no segments.
    Raises FileNotFoundError for a path that does not exist.
    """
    raise NotImplementedError


class Partition:
    """The segments of one partition in order of offsets, read as one log."""

    topic: str | None
    partition: int | None
    segments: list[LogSegment]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        raise NotImplementedError


class LogDirectory:
    """A Kafka log directory (log.dirs), or one partition folder. path: a local folder or an fsspec URL."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Partition]:
        raise NotImplementedError
