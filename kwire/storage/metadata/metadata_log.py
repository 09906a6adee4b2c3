"""Reads a metadata log: a snapshot, then the batches after it, record by record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kwire.defaults import MAX_BATCH_BYTES
from kwire.errors import CorruptBatchError, DecodeError, LimitError, UnsupportedVersionError
from kwire.storage.metadata.errors import MetadataLogError
from kwire.storage.metadata.quorum import FOOTER, HEADER, Quorum
from kwire.storage.metadata.record_reader import RecordReader
from kwire.storage.metadata.replay import Replay
from kwire.storage.metadata.snapshots import snapshot_id
from kwire.storage.metadata.tables import Tables
from kwire.storage.places.discovery import Listing, SegmentFile, each_once
from kwire.storage.places.file_kinds import uncompressed_name
from kwire.storage.places.filesystem import is_url, located, plain, shown
from kwire.storage.reading.segment import LogSegment

FOLDER = "__cluster_metadata-0"
_EARLY_FOLDER = "@metadata-0"
_SEGMENT = ".log"
MOST_COMPRESSED = MAX_BATCH_BYTES  # bytes of all records in compressed batches: Kafka compresses no metadata log


@dataclass
class LogState:
    """What was read so far. offset: the last one that is in it; files: that were read."""

    offset: int = -1
    epoch: int = 0
    timestamp: int = 0
    quorum: Quorum = field(default_factory=Quorum)
    tables: Tables = field(default_factory=Tables)
    files: list[str] = field(default_factory=list)


def read_log(
    path: str | os.PathLike[str], offset: int | None, release: str | None, options: dict[str, Any] | None
) -> LogState:
    """The state at an offset of the metadata log at a path. Arguments and errors: see ClusterImage.read."""
    if offset is not None and offset < -1:
        raise ValueError(f"offset {offset}: expected -1 or more")
    reader = _Reader(RecordReader(release), offset, options)
    snapshot, segments = _files(plain(path), offset, Listing(options))
    if snapshot is not None:
        reader.read_snapshot(snapshot)
    reader.read_segments(segments)
    return reader.state


def _files(path: str, offset: int | None, listing: Listing) -> tuple[str | None, list[str]]:
    """(the snapshot to begin with, the segments in order) of a path."""
    named = listing.look([path])[0]
    if named is None:
        raise FileNotFoundError(2, "No such file or directory", shown(path))
    if not named.is_folder:
        return (None, [path]) if path.removesuffix(".gz").endswith(_SEGMENT) else (path, [])
    for place in (f"{path.rstrip('/')}/{FOLDER}", path):  # a log directory may have stray files beside its folder
        found = listing.look([place])[0]
        if found is None or not found.is_folder:
            continue
        segments = [file for file in each_once(listing.segments(place)) if file.base_offset >= 0]
        snapshots = {file.path: name for file in listing.entries(place)
                     if not file.is_folder and (name := _snapshot_id(file.path))}
        if segments or snapshots:
            fitting = [file for file in snapshots if offset is None or snapshots[file][0] - 1 <= offset]
            # of one beside its compressed forms one that can be read, itself first
            newest = max(fitting, key=lambda file: (snapshots[file], _unreadable(file) is None), default=None)
            reason = None if newest is None else _unreadable(newest)
            if newest is not None and reason is not None:  # else the state would be an older one
                raise MetadataLogError(reason, file=shown(newest))
            return newest, _needed(segments, snapshots[newest][0] if newest else 0)
    if listing.look([f"{path.rstrip('/')}/{_EARLY_FOLDER}"])[0] is not None:
        raise UnsupportedVersionError(
            f"{shown(path)}: {_EARLY_FOLDER} is the metadata log of the early preview in Kafka 2.8, not supported")
    raise FileNotFoundError(
        2, f"no metadata log: expected segments or snapshots of {FOLDER} in it or in its folder {FOLDER}", shown(path))


def _snapshot_id(path: str) -> tuple[int, int] | None:
    """snapshot_id() of a file that may be compressed."""
    return snapshot_id(uncompressed_name(path)[0])


def _unreadable(snapshot: str) -> str | None:
    """Why a snapshot with this name cannot be read; None if it can."""
    ending = uncompressed_name(snapshot)[1]
    if ending not in ("", "gz"):
        return f"compressed as .{ending}: decompress it first, or compress it as .gz"
    return "compressed as .gz, which is read of local paths only" if ending and is_url(snapshot) else None


def _needed(segments: list[SegmentFile], start: int) -> list[str]:
    """The segments in order, without those that end before an offset."""
    segments = sorted(segments, key=lambda file: file.base_offset)
    first = max((at for at, file in enumerate(segments) if file.base_offset <= start), default=0)
    return [file.path for file in segments[first:]]


class _Reader:
    """Reads files into a state. offset: where to stop, inclusive; None: at the end."""

    def __init__(self, records: RecordReader, offset: int | None, options: dict[str, Any] | None) -> None:
        self.state = LogState()
        self._reader, self._until, self._options = records, offset, options
        self._replay = Replay(self.state.tables)
        self._compressed = 0

    def read_snapshot(self, path: str) -> None:
        """Read a whole snapshot. Raises MetadataLogError for one without header or footer, or that ends too late."""
        state, name = self.state, _snapshot_id(path)
        offset, ended = 0, False
        for batch in self._batches(path):
            if batch.base_offset != offset:
                raise self._error(f"expected a batch at offset {offset} of the snapshot, found {batch.base_offset}",
                                  path)
            for record, kind in self._records(batch, path):
                if ended:
                    raise self._error("the snapshot goes on after its footer", path, record.offset)
                if (record.offset == 0) != (kind == HEADER):
                    raise self._error("expected the snapshot header, and it alone, at offset 0", path, record.offset)
                ended = kind == FOOTER
                self._take(batch, record, path)
            offset, state.epoch = batch.last_offset + 1, batch.partition_leader_epoch
        if not ended:
            raise self._error("the snapshot has no footer: it is not whole", path)
        if self._replay.waiting is not None:
            raise self._error("a metadata transaction is open at the end of the snapshot", path)
        state.timestamp = state.quorum.records[HEADER].last_contained_log_timestamp
        if name is not None:
            state.offset, state.epoch = name[0] - 1, name[1]
        if self._until is not None and self._until < state.offset:
            raise self._error(f"the snapshot holds offsets up to {state.offset}, past {self._until}", path)

    def read_segments(self, segments: list[str]) -> None:
        """Read the log after the snapshot. Raises MetadataLogError for a gap, a torn tail and an end before offset."""
        state, until = self.state, self._until
        following, last = state.offset + 1, ""
        before = (state.offset, state.epoch, state.timestamp)  # the transaction that is open
        for segment in segments:
            last = segment
            if until is not None and following > until:
                break
            for batch in self._batches(segment):
                if batch.last_offset < following:
                    continue
                if batch.base_offset > following:
                    raise self._error(f"expected offset {following}, found {batch.base_offset}: records are missing",
                                      segment, batch.base_offset)
                for record, _ in self._records(batch, segment):
                    if record.offset < following:
                        continue
                    if until is not None and record.offset > until:
                        break
                    waited = self._replay.waiting is not None
                    self._take(batch, record, segment)
                    if self._replay.waiting is not None and not waited:
                        before = (record.offset - 1, state.epoch, state.timestamp)
                    state.offset, state.epoch = record.offset, batch.partition_leader_epoch
                    state.timestamp = batch.max_timestamp
                following = batch.last_offset + 1
                if until is not None and following > until:
                    break
                state.offset = batch.last_offset
        if until is not None and following <= until:
            reason = f"offset {until} is past its end: the last one is {following - 1}"
            raise self._error(reason, last or (state.files[-1] if state.files else ""))
        if self._replay.waiting is not None:
            state.offset, state.epoch, state.timestamp = before

    def _batches(self, path: str) -> Iterator[Any]:
        """The batches of a file. Raises MetadataLogError for a partial last batch, when it is reached."""
        self.state.files.append(path)
        batches = LogSegment(path, options=self._options).batches()
        yield from batches
        if batches.tail is not None:
            position, left = batches.tail
            last = self.state.offset  # -1 in a snapshot, which is read whole or not at all
            advice = "" if last < 0 else f" (read up to offset {last} to leave them out)"
            raise self._error(f"torn: the {left} bytes after byte {position} are no whole batch{advice}", path)

    def _records(self, batch: Any, path: str) -> Iterator[tuple[Any, str | int | None]]:
        """(record, its type if it is a control record) of a batch. Errors of damaged ones name the file."""
        try:
            for record in batch:
                try:
                    kind = record.control_type
                except DecodeError as error:
                    raise self._error(str(error), path, record.offset) from None
                if batch.codec != "none":
                    self._compressed += len(record.value or b"")
                    if self._compressed > MOST_COMPRESSED:
                        raise LimitError("too many bytes in compressed batches of a metadata log",
                                         limit=MOST_COMPRESSED, offset=batch.position)
                yield record, kind
        except (CorruptBatchError, DecodeError, LimitError) as error:
            raise located(error, path) from error.__cause__

    def _take(self, batch: Any, record: Any, path: str) -> None:
        """Apply one record. Errors raised name the file and the offset."""
        try:
            if batch.is_control:
                self.state.quorum.note(record.control_type, record.control, record.value)
            else:
                self._replay(self._reader.read(record))
        except MetadataLogError as error:
            raise self._error(error.reason, path, record.offset) from None
        except DecodeError as error:
            raise self._error(str(error), path, record.offset) from None
        except LimitError as error:
            raise located(error, path) from None
        except UnsupportedVersionError as error:
            reason = f"{shown(path)}, offset {record.offset}: {error.reason}"
            raise UnsupportedVersionError(reason, api=error.api, needed=error.needed, offered=error.offered) from None

    def _error(self, reason: str, path: str, offset: int = -1) -> MetadataLogError:
        return MetadataLogError(reason, file=shown(path), offset=offset)
