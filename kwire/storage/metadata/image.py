"""ClusterImage: what a cluster is at an offset of its metadata log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire import messages
from kwire.codec.arguments import check_each, check_int, check_ints, check_type
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.metadata.downgrade import Downgrade, downgraded
from kwire.storage.metadata.errors import MetadataLogError
from kwire.storage.metadata.image_diff import Change, changes
from kwire.storage.metadata.image_json import as_json
from kwire.storage.metadata.levels import Loss, Writer, eligible_replicas, known_level, written
from kwire.storage.metadata.metadata_log import read_log
from kwire.storage.metadata.quorum import Quorum
from kwire.storage.metadata.snapshots import write_snapshot
from kwire.storage.metadata.tables import Entity, Tables, Topic

if TYPE_CHECKING:
    from kwire_c.message_class import Message


@dataclass(eq=False)
class ClusterImage:
    """The metadata of a cluster at an offset: Kafka's MetadataImage, and the voters beside it.

    offset: the last one that is in it (-1: none); a metadata transaction that is open there is not in it, and offset
    is then the last one before it. epoch, timestamp (ms): of that offset. quorum: what the control records say. tables:
    the records, one for each thing that exists; the properties give them by name. files: that it was read from. Two
    images are == if they have the same content, whatever their offsets.
    """

    offset: int = -1
    epoch: int = 0
    timestamp: int = 0
    quorum: Quorum = field(default_factory=Quorum)
    tables: Tables = field(default_factory=Tables, repr=False)
    files: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("offset", "epoch", "timestamp"):
            check_int(getattr(self, name), name)
        check_type(self.quorum, Quorum, "quorum", "a Quorum")
        check_type(self.tables, Tables, "tables", "Tables")
        check_each(self.files, str, "files", "paths")

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        offset: int | None = None,
        release: str | None = None,
        *,
        options: dict[str, Any] | None = None,
    ) -> ClusterImage:
        """The image of a metadata log: its newest snapshot at or below an offset, then the log up to the offset.

        path: a __cluster_metadata-0 folder, the log directory that it is in, one .log file that begins at offset 0, or
        another file, which is a snapshot (the image is then what it holds; its name says the offset, which is -1 for
        other names); a local path or an fsspec URL, with options as its keywords. Local segments and snapshots may be
        compressed as .gz. offset: the last one to read (inclusive), by default the last one of the log; the log on disk
        may hold records that were never committed. release: of the software that wrote the log, needed for records that
        the releases before 3.6 wrote in another layout.

        Raises FileNotFoundError where there is no metadata log; MetadataLogError for a log that is torn, has a gap or
        does not reach the offset, for a snapshot without its footer, and for a record that fits nothing before it;
        CorruptBatchError, DecodeError and LimitError (.file) for damaged bytes; UnsupportedVersionError for records
        that no known release has, and for those of 2.8. Memory is a multiple of the image and of one open transaction.
        Source: KIP-630, KIP-866; Kafka's MetadataLoader.
        """
        check_ints(offset=offset)
        state = read_log(path, offset, release, options)
        return cls(state.offset, state.epoch, state.timestamp, state.quorum, state.tables, tuple(state.files))

    def __repr__(self) -> str:  # the records are many, and may hold secrets
        return (f"ClusterImage(offset={self.offset}, epoch={self.epoch}, metadata_version={self.metadata_version}, "
                f"brokers={len(self.tables.brokers)}, controllers={len(self.tables.controllers)}, "
                f"topics={len(self.tables.topics)}, voters={len(self.voters)})")

    def with_tables(self, tables: Tables) -> ClusterImage:
        """An image at the same offset with other tables."""
        return replace(self, tables=tables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClusterImage):
            return NotImplemented
        return next(changes(self, other), None) is None

    __hash__ = None  # type: ignore[assignment]

    # content

    @property
    def metadata_version(self) -> int | None:
        """The level of metadata.version; None where no record says it, as in logs of 3.0 to 3.2."""
        return self.features.get(METADATA_VERSION)

    @property
    def features(self) -> dict[str, int]:
        """Feature -> finalized level, metadata.version too; not kraft.version, which is in control records."""
        records = self.tables.features.items()
        return {name: record.feature_level for name, record in records if record.feature_level}

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version: 0 for a static quorum."""
        return self.quorum.kraft_version

    @property
    def voters(self) -> tuple[messages.VotersRecord.Voter, ...]:
        """The voters (VotersRecord.Voter) of a dynamic quorum."""
        return self.quorum.voters

    @property
    def brokers(self) -> Mapping[int, messages.RegisterBrokerRecord]:
        """Broker id -> RegisterBrokerRecord: fencing, controlled shutdown, log directories as they are now."""
        return self.tables.brokers

    @property
    def controllers(self) -> Mapping[int, messages.RegisterControllerRecord]:
        """Controller id -> RegisterControllerRecord (from 3.7 on)."""
        return self.tables.controllers

    @property
    def topics(self) -> dict[str, Topic]:
        """Topic name -> Topic: its record, and partition -> PartitionRecord as it is now."""
        return {topic.name: topic for topic in self.tables.topics.values()}

    @property
    def topics_by_id(self) -> Mapping[UUID, Topic]:
        """Topic id -> Topic."""
        return self.tables.topics

    @property
    def configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """(resource type, name) -> dynamic configs. Types as in Kafka's ConfigResource: 2 topic, 4 broker, ..."""
        return {
            resource: {name: record.value for name, record in settings.items() if record.value is not None}
            for resource, settings in self.tables.configs.items()
        }

    @property
    def quotas(self) -> dict[Entity, dict[str, float]]:
        """Entity, ((type, name or None for the default), ...), -> quotas."""
        return {
            entity: {name: record.value for name, record in values.items()}
            for entity, values in self.tables.quotas.items()
        }

    @property
    def acls(self) -> Mapping[UUID, messages.AccessControlEntryRecord]:
        """Id -> AccessControlEntryRecord."""
        return self.tables.acls

    @property
    def scram(self) -> Mapping[tuple[str, int], messages.UserScramCredentialRecord]:
        """(user, mechanism) -> UserScramCredentialRecord; mechanism 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512."""
        return self.tables.scram

    @property
    def delegation_tokens(self) -> Mapping[str, messages.DelegationTokenRecord]:
        """Token id -> DelegationTokenRecord."""
        return self.tables.tokens

    @property
    def next_producer_id(self) -> int | None:
        """The first producer id that is not given away yet; None if none ever was."""
        record = self.tables.producer_ids
        return None if record is None else record.next_producer_id

    # what can be made of it

    def records(self) -> Iterator[tuple[Message, int]]:
        """(message, version) of each record, in the order and the versions in which Kafka's MetadataImage.write has it.

        Raises UnsupportedVersionError for an unknown metadata.version, MetadataLogError for a record or a field that
        the image's own level does not have.
        """
        writer = Writer(known_level(self.tables), eligible_replicas(self.tables))
        for made in written(self.tables, writer):
            lost = [made] if isinstance(made, Loss) else made[2]
            if lost:
                what = type(lost[0].record).__name__ + (f" .{lost[0].field}" if lost[0].field else "")
                raise MetadataLogError(f"{what} does not exist at the image's own metadata.version "
                                       f"{writer.level.level} ({writer.level.name})")
            assert not isinstance(made, Loss)
            yield made[:2]

    def diff(self, other: ClusterImage) -> list[Change]:
        """What is added, removed or changed from this image to the other, in the order of the records."""
        check_type(other, ClusterImage, "other", "a ClusterImage")
        return list(changes(self, other))

    def to_json(self) -> dict[str, Any]:
        """The image as JSON values; secrets (SCRAM keys, values of configs that hold one) are left out."""
        return as_json(self)

    def write_snapshot(self, path: str | os.PathLike[str], *, force: bool = False) -> str:
        """Write the image as a snapshot, as Kafka's RecordsSnapshotWriter, and return the name of the file.

        path: a new file, or a folder, in which it gets Kafka's name: the offset after its last one, and the epoch. The
        file appears when it is whole and synced to disk; it never replaces a file that the image was read from, and
        another one only with force. Raises FileExistsError, OSError, what records() raises, and MetadataLogError for a
        folder if the offset is not known.
        """
        check_type(path, (str, os.PathLike), "path", "a str or os.PathLike")
        return write_snapshot(self, path, force)

    def downgrade(self, metadata_version: int | str, unsafe: bool = False) -> Downgrade:
        """(the image at a lower metadata.version, what it has lost); nothing is written.

        metadata_version: a level, or a name as "4.2-IV1". A lossless downgrade changes the FeatureLevelRecord of
        metadata.version alone. It is lossy if a level above the target changed the records: then what the target does
        not have is left out (Loss) and records are in their older versions. Features that need a higher
        metadata.version are lowered, see .lowered of what is returned. Both need unsafe.

        Raises DowngradeError (.losses, .lowered) for a lossy one without unsafe, even if nothing of this image would
        be lost, and for a level above the image's; UnsupportedVersionError for an unknown level.
        Source: KIP-778; Kafka's MetadataImage.write with ImageWriterOptions.
        """
        return downgraded(self, metadata_version, unsafe)
