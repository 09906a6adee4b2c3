"""Which partitions people mean: names, globs and comma lists of topics, TOPIC-PARTITION, and numbers of partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from numbers import Integral
from types import NoneType
from typing import Any

from kwire.codec.arguments import can_iterate, check_type
from kwire.storage.places.filesystem import open_folder, plain, shown
from kwire.suggestions import did_you_mean, there
from kwire_c.printable import printable

Place = tuple[str, int]  # topic and partition

_MAGIC = re.compile(r"[*?[]")  # none of which the name of a topic may have
_PARTITION = re.compile(r"(.+)-(\d{1,10})")


class Selection:
    """The partitions that topics and partitions choose, as people type them.

    topics: names, globs (`orders-*`, `[ab]?`) and comma lists of these; what matches no topic is tried as
    TOPIC-PARTITION (`orders-0`). partitions: numbers. Both together choose what both name; without any: everything.
    strict: each must be there.
    """

    def __init__(self, topics: Iterable[str] = (), partitions: Iterable[int] = (), strict: bool = True) -> None:
        self._strict = strict
        parts = [part.strip() for text in topics for part in text.split(",")]
        self.patterns = tuple(dict.fromkeys(part for part in parts if part))
        self.partitions = tuple(dict.fromkeys(partitions))

    def __bool__(self) -> bool:
        return bool(self.patterns or self.partitions)

    @property
    def label(self) -> tuple[str | None, int | None]:
        """The topic and the partition of a file outside of a folder TOPIC-PARTITION; None where several are chosen."""
        topic = self.patterns[0] if len(self.patterns) == 1 and not _MAGIC.search(self.patterns[0]) else None
        return topic, self.partitions[0] if len(self.partitions) == 1 else None

    def chosen(self, places: Collection[Place]) -> set[Place]:
        """Those of the places that are chosen.

        If strict, raises LookupError for a topic or a partition that none of them is; it names the nearest, and what
        there is.
        """
        found = set() if self.patterns else set(places)
        for pattern in self.patterns if places else ():
            matching = _matching(pattern, places)
            if self._strict and not matching:
                raise _no_match(pattern, places)
            found |= matching
        if not self.partitions or not found:
            return found
        if self._strict:
            _check_partitions(self.partitions, found)
        return {place for place in found if place[1] in self.partitions}


class ExactSelection:
    """The partitions with one of these topics and one of these numbers; None: any. strict: each must be there."""

    def __init__(
        self, topics: Collection[str] | None, partitions: Collection[int] | None, strict: bool = False
    ) -> None:
        self._topics, self._partitions, self._strict = topics, partitions, strict

    @property
    def label(self) -> tuple[str | None, int | None]:
        """As of a Selection."""
        topics = () if self._topics is None else self._topics
        partitions = () if self._partitions is None else self._partitions
        return (next(iter(topics)) if len(topics) == 1 else None,
                next(iter(partitions)) if len(partitions) == 1 else None)

    def chosen(self, places: Collection[Place]) -> set[Place]:
        """As of a Selection. Raises LookupError only if strict, and not where there is no place at all."""
        found = {place for place in places if self._topics is None or place[0] in self._topics}
        if self._strict and places:
            names = {topic for topic, _ in places}
            for topic in self._topics or ():
                if topic not in names:
                    raise _no_topic(topic, names)
            _check_partitions(self._partitions or (), found)
        return {place for place in found if self._partitions is None or place[1] in self._partitions}


def choice_of(
    topics: Collection[str] | None,
    partitions: Collection[int] | None,
    selection: ExactSelection | Selection | None,
    strict: bool = False,
) -> ExactSelection | Selection:
    """What the arguments of these names choose together. Raises TypeError for one of another type."""
    for name, wanted, kind in (("topics", topics, str), ("partitions", partitions, Integral)):
        if wanted is not None and (isinstance(wanted, str | bytes | bytearray) or not (
                isinstance(wanted, Collection) and can_iterate(wanted))):
            raise TypeError(f"{name} must be a list or a set, not {type(wanted).__name__}")
        for one in () if wanted is None else wanted:
            check_type(one, kind, name, f"a list or a set of {kind.__name__}s")
    check_type(selection, (ExactSelection, Selection, NoneType), "selection", "a Selection")
    return ExactSelection(topics, partitions, strict) if selection is None else selection


def _matching(pattern: str, places: Collection[Place]) -> set[Place]:
    """The places of the topics that a pattern matches; where there is none, of the folders TOPIC-PARTITION."""
    found = {place for place in places if fnmatchcase(place[0], pattern)}
    return found or {place for place in places if fnmatchcase(f"{place[0]}-{place[1]}", pattern)}


def _no_match(pattern: str, places: Collection[Place]) -> LookupError:
    """The error of a pattern that matches none of the places."""
    names = sorted({topic for topic, _ in places})
    split = _PARTITION.fullmatch(pattern)
    if split is not None and split[1] in names:
        numbers = sorted(partition for topic, partition in places if topic == split[1])
        return LookupError(f"no partition {split[2]} of topic {printable(split[1])}; "
                           f"there {there(numbers, 'partition')}")
    return _no_topic(pattern, names)


def _no_topic(pattern: str, names: Collection[str]) -> LookupError:
    """The error of a name or a glob that none of the topics has."""
    what = "no topic matches" if _MAGIC.search(pattern) else "no topic"
    return LookupError(f'{what} "{printable(pattern)}"{did_you_mean(pattern, names)}; '
                       f"there {there(sorted(names), 'topic')}")


def _check_partitions(partitions: Collection[int], places: Collection[Place]) -> None:
    """Raise LookupError for a number that none of the partitions has."""
    numbers = {partition for _, partition in places}
    for partition in partitions:
        if partition not in numbers:
            raise LookupError(f"no partition {partition}; there {there(sorted(numbers), 'partition')}")


def chosen_partitions(patterns: Iterable[str], places: Collection[Place]) -> dict[str, set[int]]:
    """The topics that patterns choose, in their order, each with its chosen partitions, as topics of a Selection.

    Raises LookupError.
    """
    found: dict[str, set[int]] = {}
    for pattern in Selection(patterns).patterns:
        matching = _matching(pattern, places)
        if not matching:
            raise _no_match(pattern, places)
        for topic, partition in sorted(matching):
            found.setdefault(topic, set()).add(partition)
    return found


def nearby(path: str, options: dict[str, Any] | None = None) -> str:
    """The end of an error about a path that has nothing to read: what is in its folder, or in the nearest above it."""
    folder, name = plain(path).rstrip("/"), ""
    top = "/" if folder.startswith("/") else ""  # "": the current folder
    while True:
        try:
            listed = open_folder(folder or top, options).entries(folder or top)
        except Exception:  # this only adds to the text of an error
            listed = []
        names = [entry.path.rpartition("/")[2] for entry in listed]
        if names:
            where = printable(shown(folder or top)) or "the current folder"
            near = "" if not name or name in names or _MAGIC.search(name) else did_you_mean(name, names)
            return f"{near}; in {where} there {there(names, 'entry', 'entries')}"
        if not folder or folder.endswith(":"):
            return ""
        folder, _, name = folder.rpartition("/")
        folder = folder.rstrip("/")
