"""Snapshots of the metadata log: their names, and how one is written (KIP-630)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from kwire.codec.record_serdes import encode_metadata_record
from kwire.codec.records import build_batch
from kwire.output import new_file
from kwire.storage.metadata.errors import MetadataLogError
from kwire.storage.places.filesystem import is_url, shown

if TYPE_CHECKING:
    from kwire.storage.metadata.image import ClusterImage
    from kwire.storage.metadata.quorum import Quorum

_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_BATCH_RECORDS = 1024  # SnapshotEmitter.DEFAULT_BATCH_SIZE
_BATCH_BYTES = 8 << 20  # KafkaRaftClient.MAX_BATCH_SIZE_BYTES


def snapshot_id(name: str) -> tuple[int, int] | None:
    """(offset after the last one that is in it, epoch) by the name of a snapshot file, None for another name."""
    match = _NAME.fullmatch(name.rpartition("/")[2])
    return None if match is None else (int(match[1]), int(match[2]))


def snapshot_name(offset: int, epoch: int) -> str:
    """The name of the snapshot whose last offset is this one."""
    return f"{offset + 1:020d}-{epoch:010d}.checkpoint"


def write_snapshot(image: ClusterImage, path: str | os.PathLike[str], force: bool = False) -> str:
    """Write an image as a snapshot. Raises as ClusterImage.write_snapshot. Source: Kafka's RecordsSnapshotWriter."""
    name = os.fspath(path)
    if is_url(name):
        raise FileNotFoundError(2, "is a URL: a snapshot is written to a local path", shown(name))
    if os.path.isdir(name):
        if image.offset < 0 < image.epoch:
            raise MetadataLogError("the offset of the image is not known, because it was read from a file without the "
                                   "name of a snapshot: expected a file to write to, found a folder", file=name)
        name = os.path.join(name, snapshot_name(image.offset, image.epoch))
    with new_file(name, inputs=image.files, force=force) as file:
        for batch in image_batches(image):
            file.write(batch)
    return name


def snapshot_batches(
    quorum: Quorum, groups: Iterable[list[bytes]], time: int, *, last_timestamp: int, epoch: int = 0
) -> Iterator[bytes]:
    """The batches of a snapshot: control records, a batch of metadata records for each group, the footer.

    groups: the bytes of metadata records; time: milliseconds, of every record; last_timestamp: of the last record that
    is in the snapshot, as its header says; epoch: of the leader. Source: RecordsSnapshotWriter, BatchFileWriter.
    """
    batches: Iterator[tuple[list[tuple[Any, ...]], bool]] = chain(
        [([(time, *row) for row in quorum.header(last_timestamp)], True)],
        (([(time, None, value) for value in group], False) for group in groups),
        [([(time, *quorum.footer())], True)],
    )
    offset = 0
    for rows, control in batches:
        yield build_batch(rows, base_offset=offset, partition_leader_epoch=epoch, control=control)
        offset += len(rows)


def image_batches(image: ClusterImage) -> Iterator[bytes]:
    """The batches of a snapshot. All times are that of the image's last record, so it always gives the same bytes."""
    groups = _grouped(encode_metadata_record(record, version) for record, version in image.records())
    time, epoch = max(image.timestamp, 0), max(image.epoch, 0)
    return snapshot_batches(image.quorum, groups, time, last_timestamp=image.timestamp, epoch=epoch)


def _grouped(values: Iterator[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    size = 0
    for value in values:
        if group and (len(group) == _BATCH_RECORDS or size + len(value) > _BATCH_BYTES):
            yield group
            group, size = [], 0
        group.append(value)
        size += len(value)
    if group:
        yield group
