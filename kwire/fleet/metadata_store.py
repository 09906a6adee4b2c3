"""__cluster_metadata of a fleet on disk: the records from which a KRaft broker, and the fleet itself, starts again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from kwire import messages, schema
from kwire.codec.messages import encode
from kwire.codec.record_serdes import encode_metadata_record
from kwire.codec.records import build_batch
from kwire.fleet.segment_store import EPOCHS_FILE
from kwire.output import new_file
from kwire.schema.feature_levels import KRAFT_VERSION, METADATA_VERSION
from kwire.storage.checkpoints import LeaderEpoch, leader_epoch_checkpoint
from kwire.storage.formatting.dynamic_voters import DynamicVoter, voters_record
from kwire.storage.formatting.formatter import METADATA_SNAPSHOT
from kwire.storage.formatting.snapshots import quorum_snapshot
from kwire.storage.metadata.image import ClusterImage
from kwire.storage.metadata.levels import ELIGIBLE_REPLICAS, Writer
from kwire.storage.metadata.tables import Topic as TopicRecords
from kwire.storage.segment_writer import SegmentWriter

TOPIC = "__cluster_metadata"
CONTROLLER = 1  # the node that has the metadata log
_TOPIC_RESOURCE = 2  # ConfigResource.Type
_LEADER_CHANGE = b"\0\0\0\2"  # the key of the control record (ControlRecordType.LEADER_CHANGE)
_BATCH_RECORDS = 1000
_LISTENER, _PORT = "CONTROLLER", 9093  # of the voter, until the broker that starts says its own


class MetadataStore:
    """The metadata log in a folder, in the layout of a level of metadata.version. It is made if it is not there.

    Raises OSError, KwireError.
    """

    def __init__(self, folder: str, now: int) -> None:
        self._writer = SegmentWriter(folder, TOPIC, 0, sync=False)  # it cuts off what a kill left half written
        self.path = self._writer.folder
        self.image: ClusterImage | None = None
        try:
            if self._writer.next_offset:
                self.image = ClusterImage.read(self.path)
            self._epoch = self.image.epoch if self.image is not None else 1
            if self.image is None:
                self._begin(now)
        except BaseException:
            self.abandon()
            raise

    def _begin(self, now: int) -> None:
        voter = messages.LeaderChangeMessage.Voter(voter_id=CONTROLLER)
        change = messages.LeaderChangeMessage(leader_id=CONTROLLER, voters=[voter], granting_voters=[voter])
        self._append([(now, _LEADER_CHANGE, encode(change, 0))], control=True)
        with new_file(os.path.join(self.path, EPOCHS_FILE), force=True, sync=False) as file:
            file.write(leader_epoch_checkpoint([LeaderEpoch(self._epoch, 0)]))

    def make_dynamic(self, kraft_version: int, directory_id: UUID, now: int) -> None:
        """Let node 1 be the one voter of a dynamic quorum (KIP-853), if the log has no snapshot. Raises OSError.

        So brokers start with controller.quorum.bootstrap.servers as with controller.quorum.voters.
        """
        if any(name.endswith(".checkpoint") for name in os.listdir(self.path)):
            return
        voters = voters_record({CONTROLLER: DynamicVoter(CONTROLLER, "localhost", _PORT, directory_id)}, _LISTENER)
        with new_file(os.path.join(self.path, os.path.basename(METADATA_SNAPSHOT)), sync=False) as file:
            file.write(quorum_snapshot(kraft_version, voters, None, now))

    def use(self, levels: Mapping[str, int]) -> None:
        """The finalized levels, by which records are written from now on."""
        self._levels = dict(levels)
        known = levels.get(METADATA_VERSION)
        row = schema.metadata_versions()[-1] if known is None else schema.metadata_version(known)
        self._write = Writer(row, levels.get(ELIGIBLE_REPLICAS, 0) > 0)

    def write(self, records: Iterable[Any], now: int) -> None:
        """Append records, those of one call in one batch as long as they are few. now: ms. Raises OSError, KwireError.
        """
        values = []
        for record in records:
            made = self._write(record)
            if isinstance(made, tuple):
                values.append(encode_metadata_record(*made[:2]))
        for at in range(0, len(values), _BATCH_RECORDS):
            self._append([(now, None, value) for value in values[at : at + _BATCH_RECORDS]])

    def _append(self, rows: list[tuple[int, bytes | None, bytes]], control: bool = False) -> None:
        self._writer.append(build_batch(
            rows, base_offset=self._writer.next_offset, partition_leader_epoch=self._epoch, control=control))

    def set_levels(self, levels: Mapping[str, int], now: int) -> None:
        """Write the levels that are not written yet. Raises OSError, KwireError."""
        before = self._levels, self._write
        self.use(levels)
        try:
            self._write_levels(before[0], levels, now)
        except BaseException:
            self._levels, self._write = before
            raise

    def _write_levels(self, before: Mapping[str, int], levels: Mapping[str, int], now: int) -> None:
        names = sorted(set(levels) | set(before), key=lambda name: (name != METADATA_VERSION, name))
        records = [  # also of level 1, of which Kafka writes none: the next fleet goes on at it
            messages.FeatureLevelRecord(name=name, feature_level=levels.get(name, 0)) for name in names
            if name != KRAFT_VERSION and levels.get(name, 0) != before.get(name, 0)]
        if records:
            self._append([(now, None, encode_metadata_record(record, 0)) for record in records])

    def close(self) -> None:
        """End the log as a clean shutdown does. Raises OSError."""
        self._writer.close()

    def abandon(self) -> None:
        """Close the files as they are."""
        with suppress(OSError, ValueError):
            self._writer.__exit__(OSError, OSError(), None)


def topic_records(topic: Any) -> list[Any]:
    """The records that make a topic (kwire.fleet.cluster.Topic), with its partitions and configs."""
    return [
        messages.TopicRecord(name=topic.name, topic_id=topic.id),
        *(partition_record(topic, partition) for partition in topic.partitions),
        *config_records(topic.name, {}, topic.configs),
    ]


def partition_record(topic: Any, partition: Any) -> Any:
    """The record of a partition. Its first replica leads, and alone is in sync: it has the log."""
    home = partition.replicas[0]
    return messages.PartitionRecord(
        partition_id=partition.index, topic_id=topic.id, replicas=list(partition.replicas), isr=[home], leader=home,
        leader_epoch=partition.leader_epoch, partition_epoch=0)


def leader_record(topic: Any, partition: Any) -> Any:
    """The record of a new leader epoch."""
    return messages.PartitionChangeRecord(
        partition_id=partition.index, topic_id=topic.id, leader=partition.replicas[0])


def config_records(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[Any]:
    """The records of a topic's configs that changed; one that is gone has no value."""
    return [
        messages.ConfigRecord(resource_type=_TOPIC_RESOURCE, resource_name=name, name=key, value=now.get(key))
        for key in sorted({*before, *now}) if before.get(key) != now.get(key)]


def configs_of(image: ClusterImage, topic: TopicRecords) -> dict[str, str]:
    """The configs of a topic."""
    return image.configs.get((_TOPIC_RESOURCE, topic.name), {})
