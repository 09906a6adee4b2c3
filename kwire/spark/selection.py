"""The segments that the options of a read choose, and the errors that say what there is where they choose nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from kwire.spark.options import INTERNAL_KINDS, Options, as_typed
from kwire.storage import SegmentFile, discover
from kwire.storage.places.filesystem import plain, shown
from kwire.storage.places.path_patterns import alternatives
from kwire.storage.places.selection import nearby
from kwire.suggestions import there as listed
from kwire_c.printable import printable

_SHOWN = 10  # names of what there is
_ALLOWED = '(option allowEmpty "true" allows it)'


def segments(options: Options) -> list[SegmentFile]:
    """Return the segments that the options choose, by topic and partition.

    Raises FileNotFoundError for a path that does not exist, which says what is beside it. With allowEmpty such a path
    has no segments.
    """
    try:
        return _discovered(options.paths, options)
    except FileNotFoundError as error:
        parts = [part for path in options.paths
                 for part in ([path] if _exists(path, options) else alternatives(plain(path)))]
        there = [part for part in parts if _exists(part, options)]
        if options.allow_empty:
            return _discovered(there, options) if there else []
        missing = next((part for part in parts if part not in there), options.paths[0])
        raise FileNotFoundError(f"{error}{nearby(missing, options.storage_options)} {_ALLOWED}") from None


def check_chosen(files: Collection[SegmentFile], options: Options) -> None:
    """Raise an error for a topic or a partition that no segment is of, and for paths without a segment.

    files: what segments() returned. ValueError for an option, FileNotFoundError for paths; each says what there is.
    With allowEmpty nothing is an error.
    """
    if options.allow_empty:
        return
    topics, partitions = {file.topic for file in files}, {file.partition for file in files}
    lacking = not topics >= set(options.topics or ()) or not partitions >= set(options.partitions or ())
    if lacking and None not in topics | partitions:  # a file outside of a topic-N folder may be of any
        every = _discovered(options.paths, options, every=True)
        _check_values("topic", options.topics, {file.topic for file in every}, options)
        _check_values("partition", options.partitions, {
            file.partition for file in every if options.topics is None or file.topic in options.topics}, options)
    if not files:
        raise FileNotFoundError(f"{_shown_paths(options)}: no segments (*.log, there or in folders TOPIC-PARTITION)"
                                f"{nearby(options.paths[0], options.storage_options)} {_ALLOWED}")


def check_offsets(files: Collection[SegmentFile], options: Options) -> None:
    """Raise ValueError for offsets of a partition that is not there: with its name misspelt it would be read whole.

    Offsets of partitions that topic and partition leave out are allowed, but not those of such partitions alone.
    """
    there = {(file.topic, file.partition) for file in files}
    if options.allow_empty or any(None in place for place in there):
        return
    for name, bound in (("startingOffsets", options.starting), ("endingOffsets", options.ending)):
        for topic, partition in bound if isinstance(bound, dict) else ():
            read = (options.topics is None or topic in options.topics) and (
                options.partitions is None or partition in options.partitions)
            if read and (topic, partition) not in there:
                places = [f"{topic}-{partition}" for topic, partition in sorted(there, key=str)]
                raise ValueError(f"option {name}: no partition {as_typed(topic)}-{partition} in "
                                 f"{_shown_paths(options)}; there {listed(places, 'partition')} {_ALLOWED}")
        if isinstance(bound, dict) and bound and there.isdisjoint(bound):
            places = [f"{topic}-{partition}" for topic, partition in sorted(there, key=str)]
            raise ValueError(f"option {name}: none of its partitions is read; "
                             f"there {listed(places, 'partition')} {_ALLOWED}")


def _discovered(paths: Sequence[str], options: Options, every: bool = False) -> list[SegmentFile]:
    topics, partitions = (None, None) if every else (options.topics, options.partitions)
    files: list[SegmentFile] = discover(
        list(paths), topics=topics, partitions=partitions, options=options.storage_options)
    return files


def _exists(path: str, options: Options) -> bool:
    try:
        _discovered([path], options)
    except FileNotFoundError:
        return False
    return True


def _check_values(name: str, chosen: Sequence[Any] | None, there: Collection[Any], options: Options) -> None:
    missing = [value for value in chosen or () if value not in there]
    if missing and there:
        values = sorted(value for value in there if value is not None)
        wrong = ", ".join(f'"{as_typed(str(value))}"' for value in missing[:_SHOWN])
        near = get_close_matches(str(missing[0]), [str(value) for value in values], n=1) if name == "topic" else []
        hint = "".join(f'; did you mean "{printable(value)}"?' for value in near)
        which = f"option {name}"
        if name == "topic" and missing[0] == INTERNAL_KINDS.get(options.kind):
            which, hint = f'kind "{options.kind}"', "; the option topic names a copy of it"
        raise ValueError(f"{which}: no {name} {wrong} in {_shown_paths(options)}{hint}; "
                         f"there {listed(values, name)} {_ALLOWED}")


def _shown_paths(options: Options) -> str:
    more = ", ..." if len(options.paths) > _SHOWN else ""
    return ", ".join(printable(shown(path)) for path in options.paths[:_SHOWN]) + more

