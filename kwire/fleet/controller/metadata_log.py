"""The metadata log of a fleet: records that were replayed into an image, and the snapshots of it (KIP-630)."""

from __future__ import annotations

import copy
from typing import Any

from kwire import messages
from kwire.codec.messages import encode
from kwire.fleet.clock import Clock
from kwire.fleet.controller.topic_records import TOPIC
from kwire.schema.feature_levels import KRAFT_VERSION
from kwire.storage.metadata.image import ClusterImage
from kwire.storage.metadata.levels import Loss, Writer, eligible_replicas, known_level, written
from kwire.storage.metadata.quorum import VERSION, VOTERS, Quorum
from kwire.storage.metadata.replay import Replay
from kwire.storage.metadata.snapshots import image_batches, snapshot_name
from kwire.storage.metadata.tables import Tables

MOST_SNAPSHOTS = 100  # the older ones are deleted


class MetadataLog:
    """Only its image is kept, and snapshots. offset: of the last record (-1: none); epoch: of the leader.

    snapshots: name, as Kafka's OFFSET-EPOCH.checkpoint, -> content, oldest first.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset, self.epoch, self._timestamp = -1, 0, 0
        self._quorum = Quorum()
        self._load(Tables())
        self.snapshots: dict[str, bytes] = {}

    def _load(self, tables: Tables) -> None:
        self._tables, self._replay = tables, Replay(tables)
        self._writer = Writer(known_level(tables), eligible_replicas(tables))

    @property
    def has_levels(self) -> bool:
        """Whether a FeatureLevelRecord was in the log."""
        return bool(self._tables.features)

    @property
    def levels(self) -> dict[str, int]:
        """Feature -> finalized level, kraft.version too."""
        levels = {name: record.feature_level for name, record in self._tables.features.items() if record.feature_level}
        return {**levels, KRAFT_VERSION: self._quorum.kraft_version} if self._quorum.kraft_version else levels

    @property
    def can(self) -> dict[str, Any]:
        """What the metadata.version allows, by the methods of Kafka's MetadataVersion."""
        return self._writer.level.can

    @property
    def brokers(self) -> dict[int, messages.RegisterBrokerRecord]:
        """Broker id -> its registration, fenced ones too."""
        return self._tables.brokers

    @property
    def controllers(self) -> dict[int, messages.RegisterControllerRecord]:
        """Controller id -> its registration."""
        return self._tables.controllers

    @property
    def topics(self) -> dict[Any, Any]:
        """Topic id -> its records."""
        return self._tables.topics

    def configs_of(self, topic: str) -> dict[str, str]:
        """The dynamic configs of a topic."""
        records = self._tables.configs.get((TOPIC, topic), {})
        return {name: record.value for name, record in records.items() if record.value is not None}

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""
        return self._quorum.kraft_version

    @property
    def voters(self) -> tuple[Any, ...]:
        """The voters of a dynamic quorum."""
        return self._quorum.voters

    def image(self) -> ClusterImage:
        """What the log says now; later records do not change it."""
        tables = Tables()
        replay = Replay(tables)
        for _, record in self._tables:
            replay(copy.copy(record))
        return self._image(tables)

    def _image(self, tables: Tables) -> ClusterImage:
        return ClusterImage(self.offset, self.epoch, self._timestamp, copy.deepcopy(self._quorum), tables)

    def append(self, *records: Any) -> int:
        """Append records, written as the metadata.version has them; the offset of the last one.

        What the level has no records for is left out: software of that level would not know it either.
        """
        for record in records:
            made = self._writer(record)
            if isinstance(record, messages.FeatureLevelRecord):
                made = record, 0, []
            if made is not None and not isinstance(made, Loss):
                self._replay(copy.copy(made[0]))
                self._took_one()
                if isinstance(record, messages.FeatureLevelRecord):
                    self._writer = Writer(known_level(self._tables), eligible_replicas(self._tables))
        return self.offset

    def _took_one(self) -> None:
        self.offset += 1
        self._timestamp = self._clock.now_ms()

    def begin_epoch(self) -> None:
        """A leader was elected: its LeaderChange is the first record of its epoch."""
        self.epoch += 1
        self._took_one()

    def set_quorum(self, kraft_version: int, voters: messages.VotersRecord) -> None:
        """The control records of kraft.version, where it is new, and of the voters of a dynamic quorum (KIP-853)."""
        if kraft_version != self.kraft_version:
            record = messages.KRaftVersionRecord(kraft_version=kraft_version)
            self._quorum.note(VERSION, record, encode(record, 0))
            self._took_one()
        self._quorum.note(VOTERS, voters, encode(voters, 0))
        self._took_one()

    def take_snapshot(self) -> str:
        """Keep a snapshot of the state at the last offset; its name."""
        name = snapshot_name(self.offset, self.epoch)
        self.snapshots[name] = b"".join(image_batches(self._image(self._tables)))
        if len(self.snapshots) > MOST_SNAPSHOTS:
            del self.snapshots[next(iter(self.snapshots))]
        return name

    def rewrite(self) -> list[Loss]:
        """Write all of the state at the present metadata.version and read it again; what was lost by it.

        Source: KIP-778, "Metadata Version Change Implementation"; MetadataImage.write.
        """
        features = dict(self._tables.features)
        eligible = eligible_replicas(self._tables)
        tables, losses = Tables(), list[Loss]()
        replay = Replay(tables)
        for made in written(self._tables, Writer(known_level(self._tables), eligible, eligible)):
            if isinstance(made, Loss):
                losses.append(made)
                continue
            losses += made[2]
            replay(made[0])
        tables.features.update(features)
        self._load(tables)
        return losses
