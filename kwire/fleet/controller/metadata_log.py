"""The metadata log of a fleet: records that are replayed into an image, and the snapshots of it (KIP-595, KIP-630)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from kwire import messages
from kwire.codec.messages import encode
from kwire.codec.record_serdes import encode_metadata_record
from kwire.codec.records import build_batch
from kwire.fleet.clock import Clock
from kwire.fleet.controller.acls import Acl
from kwire.fleet.errors import ApiError, StorageErrors, certainly
from kwire.schema.feature_levels import KRAFT_VERSION
from kwire.storage.metadata.image import ClusterImage
from kwire.storage.metadata.levels import Loss, Writer, eligible_replicas, known_level, written
from kwire.storage.metadata.quorum import LEADER_CHANGE, VERSION, VOTERS, control_key
from kwire.storage.metadata.replay import Replay
from kwire.storage.metadata.snapshots import image_batches, snapshot_name
from kwire.storage.metadata.tables import Entity, Tables, Topic

if TYPE_CHECKING:
    from kwire.fleet.disk.metadata_store import MetadataStore

MOST_SNAPSHOTS = 100  # the older ones are deleted
Row = tuple[bytes | None, bytes]  # key, value


class Waiting(NamedTuple):
    """A batch that the folder has not taken yet."""

    base_offset: int
    epoch: int
    data: bytes


class MetadataLog:
    """What a cluster's records say: an image of them is in memory, and a folder's store keeps their batches.

    offset: of the last record (-1: none); epoch: of the leader.

    append() is for changes, which an ApiError refuses as a whole when the store cannot take them. note() is for what
    has happened, so that nobody can refuse it (a broker is down, another one leads): such batches wait in memory until
    the store takes them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._store: MetadataStore | None = None
        self._waiting: list[Waiting] = []
        self._begin(ClusterImage())

    def _begin(self, image: ClusterImage) -> None:
        self.offset, self.epoch, self._timestamp = image.offset, image.epoch, image.timestamp
        self._snapshots: dict[str, bytes] = {}  # that no store keeps
        self._quorum = image.quorum
        self._load(image.tables)

    def _load(self, tables: Tables) -> None:
        self._tables, self._replay = tables, Replay(tables)
        self.acl_set = set(map(Acl.of, tables.acls.values()))  # without their ids
        self._levels_changed()

    def _levels_changed(self) -> None:
        self._writer = Writer(known_level(self._tables), eligible_replicas(self._tables))
        levels = {name: record.feature_level for name, record in self._tables.features.items() if record.feature_level}
        if self.kraft_version:
            levels[KRAFT_VERSION] = self.kraft_version
        self.levels = levels  # feature -> finalized level, kraft.version too

    # where it is kept

    def open(self, store: MetadataStore) -> None:
        """Go on with what a store has, and let it keep what is appended. Raises ApiError."""
        self._store, self._waiting = store, []
        self._begin(store.image)
        if store.has_open_transaction:  # whoever wrote it is gone: as a controller that becomes active
            self._take([(None, encode_metadata_record(messages.AbortTransactionRecord(reason="not ended"), 0))])
        self._rewrite()

    def close(self) -> None:
        """The store is closed after this; what still waits for it is lost, as with a kill."""
        with suppress(ApiError):
            self._flush()
        self._store, self._waiting = None, []

    def _take(self, rows: Sequence[Row], *, control: bool = False, certain: bool = False) -> None:
        """Let the store have a batch of rows, and count them. Raises ApiError, unless certain."""
        self._timestamp, end = self._clock.now_ms(), self.offset + len(rows)
        if self._store is not None:
            data = build_batch(
                [(self._timestamp, *row) for row in rows], base_offset=self.offset + 1,
                partition_leader_epoch=self.epoch, control=control)
            self._waiting.append(Waiting(self.offset + 1, self.epoch, data))
            try:
                self._flush()
            except (ApiError, MemoryError):
                if not certain:
                    self._waiting.pop()
                    raise
        self.offset = end

    def _flush(self) -> None:
        while self._store is not None and self._waiting:
            with StorageErrors(self._store.path):
                self._store.append(*self._waiting[0])
            del self._waiting[0]

    # what it says

    @property
    def has_levels(self) -> bool:
        """Whether a FeatureLevelRecord was in the log."""
        return bool(self._tables.features)

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
    def topics(self) -> dict[UUID, Topic]:
        """Topic id -> its records."""
        return self._tables.topics

    @property
    def acls(self) -> dict[UUID, messages.AccessControlEntryRecord]:
        """Id -> ACL, in the order in which they came."""
        return self._tables.acls

    @property
    def scram(self) -> dict[tuple[str, int], messages.UserScramCredentialRecord]:
        """(user, ScramMechanism) -> credential."""
        return self._tables.scram

    @property
    def quotas(self) -> dict[Entity, dict[str, messages.ClientQuotaRecord]]:
        """Entity, its (type, name or None) in order -> key -> quota."""
        return self._tables.quotas

    @property
    def next_producer_id(self) -> int:
        """The first producer id that was not given away."""
        record = self._tables.producer_ids
        return 0 if record is None else record.next_producer_id

    def configs_of(self, resource_type: int, name: str) -> dict[str, str]:
        """The dynamic configs of a resource (ConfigResource.Type)."""
        records = self._tables.configs.get((resource_type, name), {})
        return {name: record.value for name, record in records.items() if record.value is not None}

    def names_with_configs(self, resource_type: int) -> list[str]:
        """The names of the resources of a type that have configs."""
        return [name for kind, name in self._tables.configs if kind == resource_type]

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

    # what is added to it

    def append(self, *records: Any) -> None:
        """Append records in one batch, written as the metadata.version has them.

        What the level has no records for is left out: software of that level would not know it either. Raises ApiError,
        KAFKA_STORAGE_ERROR, and nothing is appended, if the store cannot take them.
        """
        self._append(records, certain=False)

    def note(self, *records: Any) -> None:
        """As append(), of what has happened: it is in the log from now on, whatever the store can take now."""
        self._append(records, certain=True)

    def _append(self, records: Iterable[Any], certain: bool) -> None:
        made = [one for one in map(self._made, records) if one is not None]
        if not made:
            return
        rows: list[Row] = [(None, encode_metadata_record(*one) if self._store is not None else b"") for one in made]
        works = (self._count_acl, self._replay)
        steps: list[Callable[[], None]] = []
        steps += [partial(work, copy.copy(record)) for record, _ in made for work in works]
        if any(isinstance(record, messages.FeatureLevelRecord) for record, _ in made):
            steps.append(self._levels_changed)
        each = iter(steps)
        self._take(rows, certain=certain)
        for step in each:
            certainly(step)

    def _count_acl(self, record: Any) -> None:
        if isinstance(record, messages.AccessControlEntryRecord):
            self.acl_set.add(Acl.of(record))
        elif isinstance(record, messages.RemoveAccessControlEntryRecord):
            self.acl_set.discard(Acl.of(self._tables.acls[record.id]))

    def _made(self, record: Any) -> tuple[Any, int] | None:
        """(record, version) as it is written. A level is written at any level: also below the first one with them."""
        if isinstance(record, messages.FeatureLevelRecord):
            return record, 0
        made = self._writer(record)
        return None if made is None or isinstance(made, Loss) else made[:2]

    def begin_epoch(self, leader: int, voters: Iterable[int]) -> None:
        """A leader was elected: its LeaderChange is the first record of its epoch. leader, voters: ids."""
        self.epoch += 1
        row = messages.LeaderChangeMessage.Voter
        rows = [row(voter_id=voter) for voter in voters]
        change = messages.LeaderChangeMessage(leader_id=leader, voters=rows, granting_voters=rows)
        self._take([(control_key(LEADER_CHANGE), encode(change, 0))], control=True, certain=True)

    def set_quorum(self, kraft_version: int, voters: messages.VotersRecord, certain: bool = True) -> None:
        """The control records of kraft.version, where it is new, and of the voters of a dynamic quorum (KIP-853).

        Raises ApiError, unless certain.
        """
        records: list[tuple[str, Any]] = [(VOTERS, voters)]
        if kraft_version != self.kraft_version:
            records.insert(0, (VERSION, messages.KRaftVersionRecord(kraft_version=kraft_version)))
        values = [(kind, record, encode(record, 0)) for kind, record in records]
        self._take([(control_key(kind), value) for kind, _, value in values], control=True, certain=certain)
        for kind, record, value in values:
            certainly(partial(self._quorum.note, kind, record, value))
        certainly(self._levels_changed)

    # snapshots

    @property
    def snapshots(self) -> dict[str, bytes]:
        """Name, as Kafka's OFFSET-EPOCH.checkpoint, -> content, oldest first. Raises OSError."""
        return dict(self._snapshots) if self._store is None else self._store.snapshots()

    def take_snapshot(self) -> str:
        """Keep a snapshot of the state at the last offset; its name. Raises ApiError."""
        name = snapshot_name(self.offset, self.epoch)
        content = b"".join(image_batches(self._image(self._tables)))
        if self._store is not None:
            self._flush()
            with StorageErrors(self._store.path):
                self._store.keep_snapshot(name, content, MOST_SNAPSHOTS)
            return name
        self._snapshots[name] = content
        if len(self._snapshots) > MOST_SNAPSHOTS:
            del self._snapshots[next(iter(self._snapshots))]
        return name

    def rewrite(self) -> list[Loss]:
        """Write all of the state at the present metadata.version and read it again; what was lost by it.

        What a folder lost must not come back when it is read again: a snapshot says so.
        Source: KIP-778, "Metadata Version Change Implementation"; MetadataImage.write.
        """
        losses = self._rewrite()
        if losses and self._store is not None:
            with suppress(ApiError):
                self.take_snapshot()
        return losses

    def _rewrite(self) -> list[Loss]:
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
