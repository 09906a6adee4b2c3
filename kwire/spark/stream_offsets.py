"""The offsets of a stream as its checkpoint holds them: JSON by topic and partition, whatever the path was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kwire.errors import KwireError
from kwire.storage import SegmentFile
from kwire.storage.places.discovery import offset_in_name, place_of
from kwire.storage.places.filesystem import is_url, shown
from kwire.storage.reading.log_follower import LogOffset
from kwire_c.printable import printable

VERSION = 4
_READ = (2, 3, 4)  # 2 has no leader epochs, 3 no topic ids

# topic and partition; without a topic-N folder the folder's name and ""
Key = tuple[str, str]


class StreamOffsets(dict[Key, LogOffset]):
    """The place of each partition. complete: partitions that it lacks were added to the logs later.

    begun: of the end of a query's first micro-batch, where the query began; else None.
    """

    complete = False
    begun: StreamOffsets | None = None

    def to_json(self) -> dict[str, Any]:
        """{"v": 4, "topics": {"orders": {"0": fields}}}, and with begun its topics as "begun".

        Those of LogOffset, without the zeros at the end; of a place at which nothing was read, the offset alone.
        """
        tree = {"v": VERSION, "topics": self._topics()}
        return tree if self.begun is None else {**tree, "begun": self.begun._topics()}

    def _topics(self) -> dict[str, dict[str, list[Any]]]:
        topics: dict[str, dict[str, list[Any]]] = {}
        for (topic, partition), place in sorted(self.items(), key=lambda item: _order(item[0])):
            fields = [place.offset] if place.segment is None and not place.log_start else list(place)
            while len(fields) > 1 and fields[-1] == 0:
                fields.pop()
            topics.setdefault(topic, {})[partition] = fields
        return topics

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> StreamOffsets:
        """The offsets of a checkpoint, of this version of kwire or an older one. Raises KwireError for other JSON."""
        offsets = cls()
        try:
            if "v" not in tree:
                offsets._read_folders(tree)
                return offsets
            if tree["v"] not in _READ:
                raise KwireError(f"the checkpoint has offsets of version {tree['v']}, this version of kwire reads "
                                 f"{VERSION}: it was written by a newer one")
            offsets._read_topics(tree["topics"])
            if "begun" in tree:
                offsets.begun = cls()
                offsets.begun._read_topics(tree["begun"])
        except KwireError:
            raise
        except (NotImplementedError, AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            found = printable(str(tree)[:200])
            raise KwireError(f"the checkpoint does not hold offsets of kwire, but {found}") from error
        return offsets

    def _read_topics(self, topics: Mapping[str, Any]) -> None:
        for topic, partitions in topics.items():
            for partition, fields in partitions.items():
                self[topic, partition] = _checked(LogOffset(*fields))
        self.complete = True

    def _read_folders(self, folders: Mapping[str, Any]) -> None:
        """Offsets of version 1: {folder: {"segment": file name, "position": byte, "offset": the next}}."""
        for folder, at in folders.items():
            key = key_of(place_of(f"{folder}/{at['segment']}"), folder)
            base = offset_in_name(at["segment"])
            place = LogOffset(int(at["offset"]), at["segment"] if base < 0 else base, int(at["position"]))
            if self.setdefault(key, _checked(place)) != place:
                raise KwireError(printable(f"the checkpoint names two folders for {partition_name(key)}, one of them "
                                           f"{shown(folder)}: begin with a new checkpoint"))


def _checked(place: LogOffset) -> LogOffset:
    """The place. Raises TypeError or ValueError if its fields cannot be those of one."""
    if not all(type(field) is int for field in (place.offset, *place[2:])):
        raise TypeError
    if place.segment is not None and not isinstance(place.segment, int | str):
        raise TypeError
    if min(place[2:]) < 0 or max(map(abs, (place.offset, *place[2:]))) >> 64 or place.size > place.position:
        raise ValueError
    return place


def key_of(place: tuple[str | None, int | None], folder: str) -> Key:
    """Topic and partition, else the folder's name and ""."""
    topic, partition = place
    return topic or folder.rstrip("/").rpartition("/")[2], "" if partition is None else str(partition)


def partition_name(key: Key) -> str:
    """A partition as Kafka writes it, topic-0; a folder without a partition by its name."""
    return f"{key[0]}-{key[1]}" if key[1] else key[0]


def real_folder(file: SegmentFile) -> str:
    """The folder of a segment, without symbolic links and dots: a URL as it is."""
    folder = file.path.rpartition("/")[0]
    return folder if is_url(file.path) else os.path.realpath(folder)


def _order(key: Key) -> tuple[str, int, str]:
    return key[0], int(key[1]) if key[1].isdigit() else -1, key[1]
