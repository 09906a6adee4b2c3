"""__cluster_metadata of a fleet on disk: the batches of its metadata log, from which it, or a broker, starts again."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from kwire.errors import CorruptBatchError, KwireError
from kwire.fleet.disk.node_folder import NodeWriter
from kwire.fleet.disk.segment_store import EPOCHS_FILE, MOST_SEGMENT
from kwire.fleet.disk.whole_files import write_whole
from kwire.fleet.errors import certainly
from kwire.storage.metadata.image import ClusterImage
from kwire.storage.metadata.snapshots import snapshot_id
from kwire.storage.side_files.checkpoints import LeaderEpoch, leader_epoch_checkpoint, read_leader_epochs

TOPIC = "__cluster_metadata"


class MetadataStore:
    """The folder of a metadata log. It is made if it is not there, and read.

    place: the log directory that it is in; reopened: called after its segments were opened, which lets go of the
    directory's .lock. image: what it says; has_open_transaction: whether a metadata transaction (KIP-866) is open at
    its end. Raises OSError, KwireError.
    """

    def __init__(self, place: str, reopened: Callable[[], None]) -> None:
        self._place, self._reopened = place, reopened
        writer = self._opened()
        self._writer: NodeWriter | None = writer
        self.path = writer.folder
        path = writer.path or os.path.join(self.path, f"{0:020}.log")
        self._file = path, os.path.getsize(path) if writer.path else 0  # the segment with the last batch, its size
        try:
            is_new = not writer.next_offset and not self._snapshot_names()
            self.image = ClusterImage() if is_new else ClusterImage.read(self.path)
            self.has_open_transaction = writer.next_offset > self.image.offset + 1
            self.image.offset = max(self.image.offset, writer.next_offset - 1)
            self._epochs = self._known_epochs()
        except BaseException:
            self.abandon()
            raise

    def _opened(self) -> NodeWriter:
        """The writer, which has cut off what a kill or an error left half written."""
        writer = NodeWriter(self._place, TOPIC, 0, segment_bytes=MOST_SEGMENT, sync=False)
        self._reopened()
        return writer

    def _known_epochs(self) -> list[LeaderEpoch]:
        with suppress(FileNotFoundError, KwireError):
            return [one for one in read_leader_epochs(os.path.join(self.path, EPOCHS_FILE))
                    if one.epoch <= self.image.epoch]
        return []

    def append(self, base_offset: int, epoch: int, data: bytes) -> None:
        """Write a batch: all of it or nothing. Raises OSError, KwireError."""
        if self._writer is None:
            self._take_back()
            self._writer = self._opened()
        if self._writer.next_offset > base_offset:
            raise CorruptBatchError(f"the metadata log ends at {self._writer.next_offset}", offset=base_offset)
        if not self._epochs or epoch > self._epochs[-1].epoch:
            self._begin_epoch(LeaderEpoch(epoch, base_offset))
        try:
            self._writer.append(data)
            assert self._writer.path is not None
            self._file = self._writer.path, os.path.getsize(self._writer.path)
        except BaseException:
            certainly(self.abandon)
            try:  # noqa: SIM105 - suppress() takes memory
                certainly(self._take_back)
            except OSError:
                pass
            raise

    def _take_back(self) -> None:
        """What was refused stays refused: now, or where the disk cannot, before the next batch."""
        with suppress(FileNotFoundError):
            os.truncate(*self._file)

    def _begin_epoch(self, epoch: LeaderEpoch) -> None:
        epochs = [*self._epochs, epoch]
        write_whole(os.path.join(self.path, EPOCHS_FILE), leader_epoch_checkpoint(epochs))
        self._epochs = epochs

    def snapshots(self) -> dict[str, bytes]:
        """The snapshots in the folder: name -> content, oldest first. Raises OSError."""
        found = {}
        for name in self._snapshot_names():
            with suppress(FileNotFoundError), open(os.path.join(self.path, name), "rb") as file:  # an old one goes
                found[name] = file.read()
        return found

    def _snapshot_names(self) -> list[str]:
        return sorted(one.name for one in os.scandir(self.path) if snapshot_id(one.name) and one.is_file())

    def keep_snapshot(self, name: str, content: bytes, most: int) -> None:
        """Write a snapshot; only so many newest ones stay. Raises OSError."""
        write_whole(os.path.join(self.path, name), content)
        for old in self._snapshot_names()[:-most]:
            with suppress(OSError):
                os.unlink(os.path.join(self.path, old))

    def close(self) -> None:
        """End the log as a clean shutdown does. Raises OSError."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def abandon(self) -> None:
        """Close the files as they are; the next batch opens them again."""
        writer = self._writer
        if writer is not None:
            with suppress(OSError, ValueError):
                writer.__exit__(OSError, None, None)
            self._writer = None
