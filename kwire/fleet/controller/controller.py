"""The quorum of controllers of a fleet: who is active, who is registered, which levels are finalized."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire import messages
from kwire.fleet.controller.metadata_log import MetadataLog
from kwire.fleet.controller.rules import Kip778, Range, Update, supported_by, unsupported
from kwire.fleet.controller.sessions import BrokerSessions
from kwire.fleet.errors import ApiError
from kwire.fleet.releases import FIRST_KRAFT
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import KRAFT_VERSION, METADATA_VERSION
from kwire.storage.formatting.levels import bootstrap_metadata
from kwire.storage.metadata.levels import Loss, lowered_features

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState
    from kwire.fleet.faults import Faults
    from kwire.fleet.node import Node

_FENCE, _UNFENCE = 1, -1  # BrokerRegistrationFencingChange
LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "CONTROLLER"


class QuorumController:
    """The controllers of a fleet, one log for all of them: what the active one writes, the others have at once.

    kraft: whether there are any; else the cluster uses ZooKeeper, and metadata.version is ignored. local_file: the
    levels in bootstrap.checkpoint, None in a directory of a preview release. active: the node that is the active
    controller. log: the metadata log. losses: what the last lossy downgrade has lost.
    """

    def __init__(
        self, cluster: ClusterState, rules: Kip778, faults: Faults, local_file: Mapping[str, int] | None, kraft: bool,
        seed: int,
    ) -> None:
        self.cluster, self.rules, self.kraft = cluster, rules, kraft
        self._faults, self._local_file, self._random = faults, local_file, Random(seed)
        self.active: Node | None = None
        self.log = MetadataLog(cluster.clock)
        self.losses: list[Loss] = []
        self._sessions = BrokerSessions(cluster.clock, self._session_ended)
        self._directories: dict[int, UUID] = {}  # of the voters
        self._unread_kraft_version = 0  # where the rules say that the level of kraft.version is not known

    # what is known

    @property
    def levels(self) -> dict[str, int]:
        """The finalized levels; {} with ZooKeeper, and while only preview software has run. Not to be changed."""
        return self.log.levels

    @property
    def levels_epoch(self) -> int:
        """FinalizedFeaturesEpoch: the offset of the metadata log; with ZooKeeper 0."""
        return self.log.offset if self.kraft else 0

    def voters(self) -> list[Node]:
        """The nodes that are controllers, up or not."""
        return [node for node in self.cluster.nodes if node.is_controller]

    def registered_brokers(self) -> Iterator[tuple[int, dict[str, Range], bool]]:
        """(id, supported levels, whether it is fenced) of each registered broker."""
        for broker_id, record in self.log.brokers.items():
            yield broker_id, _levels_of(record.features), record.fenced

    def registered_controllers(self) -> Iterator[tuple[int, dict[str, Range]]]:
        """(id, supported levels) of each registered controller."""
        for controller_id, record in self.log.controllers.items():
            yield controller_id, _levels_of(record.features)

    def is_in_service(self, node: Node) -> bool:
        """Whether a broker is registered and not fenced."""
        record = self.log.brokers.get(node.id)
        return record is not None and not record.fenced

    # nodes that come and go

    def node_started(self, node: Node) -> None:
        """A node is up: its controller replicates the log, its broker registers."""
        if not self.kraft:
            self._elect_with_zookeeper()
            return
        with self._renegotiating():
            if node.is_controller:
                self._join(node)
            if node.is_broker and node.alive:
                self._register(node)
            self._register_all()

    def node_stopped(self, node: Node) -> None:
        """A node is down: another controller becomes active, its broker is fenced."""
        if not self.kraft:
            self._elect_with_zookeeper()
            return
        with self._renegotiating():
            if self.active is node:
                self.resign(node)
            if self.is_in_service(node):
                self._set_fenced(node.id, True)

    @contextmanager
    def _renegotiating(self) -> Iterator[None]:
        """What happens in it may change what clients have negotiated; then their connections end, if the rules say."""
        if not self.rules.drops_connections_at_change():
            yield
            return
        before = {node.id: node.negotiated() for node in self.cluster.nodes if node.alive}
        yield
        for node in self.cluster.nodes:
            if node.alive and node.id in before and node.negotiated() != before[node.id]:
                node.drop_connections()

    def _elect_with_zookeeper(self) -> None:
        if self.active is None or not self.active.alive:
            self.active = min(self.cluster.alive(), key=lambda node: node.id, default=None)

    def _join(self, node: Node) -> None:
        """Source: KRaft; "a controller running old software will join the quorum and begin replicating"."""
        reason = unsupported(supported_by(node.offer), self.levels)
        if reason is not None:
            self.rules.inactive_controller_meets_unsupported_level(self, node, reason)
            return
        if self.active is None:
            self._activate(node)
        self._update_voters()
        self._register_controller(node)

    def resign(self, node: Node) -> None:
        """Another controller that is up becomes active, in a new epoch."""
        self.active = None
        others = (one for one in self.voters() if one is not node and one.alive)
        able = (one for one in others if unsupported(supported_by(one.offer), self.levels) is None)
        successor = next(able, None)
        if successor is not None:
            self._activate(successor)

    def _activate(self, node: Node) -> None:
        """Source: KafkaRaftClient's LeaderChange, ActivationRecordsGenerator."""
        self.active = node
        voters = [voter.id for voter in self._log_voters()]
        self.log.begin_epoch(node.id if node.id in voters else voters[0], voters)
        self._faults.note("active controller", node=node.id, epoch=self.log.epoch)
        self._take_over_brokers()
        if self.log.has_levels:
            return
        levels = self.rules.initial_levels(node.offer, self._local_file)
        if levels:
            if levels.get(KRAFT_VERSION):
                self.log.set_quorum(levels[KRAFT_VERSION], self._voters_record())
            self.log.note(*(record for record, _ in bootstrap_metadata(levels, []).records))
            self._publish()

    def _take_over_brokers(self) -> None:
        """Of the brokers in service, fence those of nodes that are down: the fleet was killed, and they did not come
        again. Others that registered by the wire have a session from now on (ClusterControlManager.activate)."""
        nodes = {node.id: node for node in self.cluster.nodes}
        lost = []
        for broker_id, record in self.log.brokers.items():
            if broker_id not in nodes and not record.fenced:
                self._sessions.touch(broker_id)
            elif not record.fenced and not nodes[broker_id].alive:
                lost.append(broker_id)
        self.log.note(*(self._fencing(broker_id, True) for broker_id in lost))

    def close(self) -> None:
        """The fleet ends: its brokers are fenced, so that others may start with their ids at once."""
        self._sessions.close()
        serving = [node.id for node in self.cluster.nodes if node.alive and self.is_in_service(node)]
        self.log.note(*(self._fencing(broker_id, True) for broker_id in serving))

    def _log_voters(self) -> list[Node]:
        """The voters as the metadata log says, of which each has a copy of it."""
        return self.cluster.storage.voters(self.voters())

    def _voters_record(self) -> messages.VotersRecord:
        """The voters as they are now; the endpoint of one that has never run is not known, and has port 0."""
        voter, endpoint = messages.VotersRecord.Voter, messages.VotersRecord.Endpoint
        features = messages.VotersRecord.KRaftVersionFeature(max_supported_version=1)
        return messages.VotersRecord(voters=[
            voter(voter_id=one.id, voter_directory_id=self._directory_id(one.id),
                  endpoints=[endpoint(name=CONTROLLER_LISTENER, host=one.host, port=one.controller_port)],
                  kraft_version_feature=features)
            for one in self._log_voters()])

    def _directory_id(self, node_id: int) -> UUID:
        kept = self.cluster.storage.directory_id(node_id)
        return self._directories.setdefault(node_id, self._new_id()) if kept is None else kept

    def _update_voters(self) -> None:
        """A voter that has another endpoint now says so (UpdateRaftVoter of KIP-853)."""
        if self.log.kraft_version and self.log.voters != tuple(self._voters_record().voters):
            self.log.set_quorum(self.log.kraft_version, self._voters_record())

    def _new_id(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)

    # registrations

    def _register(self, node: Node) -> None:
        """Register the broker of a node and let it serve; or it stays fenced, and tries again at other levels."""
        directory = self.cluster.storage.directory_id(node.id)
        try:
            self.log.note(self._registration(
                node.id, supported_by(node.offer), [(LISTENER, node.host, node.port)], node.rack, self._new_id(),
                () if directory is None else (directory,)))
        except ApiError as error:
            if node.refused != error.message:
                self._faults.note("registration refused", node=node.id, reason=error.message)
            node.refused = error.message
            return
        node.refused = None
        self._set_fenced(node.id, False)
        self._sessions.forget(node.id)  # a node of the fleet lives as long as it is up

    def register_broker(
        self, broker_id: int, supported: Mapping[str, Range], listeners: Iterable[tuple[str, str, int]],
        rack: str | None, incarnation: UUID, directories: Iterable[UUID] = (),
    ) -> int:
        """Register a broker, fenced; its epoch.

        Raises ApiError: UNSUPPORTED_VERSION, NOT_CONTROLLER, KAFKA_STORAGE_ERROR.
        """
        record = self._registration(broker_id, supported, listeners, rack, incarnation, directories)
        self.log.append(record)
        return int(record.broker_epoch)

    def _registration(
        self, broker_id: int, supported: Mapping[str, Range], listeners: Iterable[tuple[str, str, int]],
        rack: str | None, incarnation: UUID, directories: Iterable[UUID],
    ) -> messages.RegisterBrokerRecord:
        self.check_active()
        reason = self.rules.registration_refusal(supported, self.levels)
        if reason is not None:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, reason)
        made = messages.RegisterBrokerRecord
        return made(
            broker_id=broker_id, incarnation_id=incarnation, broker_epoch=self.log.offset + 1, rack=rack, fenced=True,
            log_dirs=list(directories),
            end_points=[made.BrokerEndpoint(name=name, host=host, port=port) for name, host, port in listeners],
            features=_rows(made.BrokerFeature, supported))

    def check_active(self) -> Node:
        """The active controller. Raises ApiError: NOT_CONTROLLER."""
        if self.active is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return self.active

    def heartbeat(self, broker_id: int, epoch: int, serves: bool | None) -> None:
        """A registered broker lives. serves: whether it is to be in service, None: as it is now.

        Raises ApiError: STALE_BROKER_EPOCH, KAFKA_STORAGE_ERROR.
        """
        self.check_epoch(broker_id, epoch)
        self._sessions.touch(broker_id)
        if serves is not None and serves == self.log.brokers[broker_id].fenced:
            self.log.append(self._fencing(broker_id, not serves))
            self._elect_without(broker_id)

    def _elect_without(self, broker_id: int) -> None:
        """Other leaders for its partitions: only the fleet's own brokers have some."""
        if any(node.id == broker_id for node in self.cluster.nodes):
            self.cluster.elect()

    def check_incarnation(self, broker_id: int, incarnation: UUID) -> None:
        """May a broker register that is perhaps another one with the same id?

        Raises ApiError: DUPLICATE_BROKER_REGISTRATION. Source: ClusterControlManager.registerBroker.
        """
        known = self.log.brokers.get(broker_id)
        lives = known is not None and self._sessions.is_valid(broker_id) and (
            not known.fenced or self.check_active().offer.at_least("4.0"))
        if broker_id in (node.id for node in self.cluster.alive()) or (
                lives and known is not None and known.incarnation_id != incarnation):
            raise ApiError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)

    def _session_ended(self, broker_id: int) -> None:
        """Source: ReplicationControlManager.maybeFenceReplicas."""
        record = self.log.brokers.get(broker_id)
        if record is not None and not record.fenced and broker_id not in (node.id for node in self.cluster.alive()):
            self._faults.note("session ended", node=broker_id)
            self._set_fenced(broker_id, True)
            self._elect_without(broker_id)

    def check_epoch(self, broker_id: int, epoch: int) -> None:
        """Is it the broker's present epoch? Raises ApiError: STALE_BROKER_EPOCH."""
        record = self.log.brokers.get(broker_id)
        if record is None:
            raise ApiError(
                ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if record.broker_epoch != epoch:
            raise ApiError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Expected broker epoch {record.broker_epoch}, but got broker epoch {epoch}")

    def _set_fenced(self, broker_id: int, fenced: bool) -> None:
        self.log.note(self._fencing(broker_id, fenced))

    def _fencing(self, broker_id: int, fenced: bool) -> Any:
        """The record by which a registered broker is fenced, or is not any more."""
        epoch = self.log.brokers[broker_id].broker_epoch
        if self.log.can.get("isBrokerRegistrationChangeRecordSupported"):
            return messages.BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=epoch, fenced=_FENCE if fenced else _UNFENCE)
        record = messages.FenceBrokerRecord if fenced else messages.UnfenceBrokerRecord
        return record(id=broker_id, epoch=epoch)

    def unregister_broker(self, broker_id: int, certain: bool = False) -> None:
        """Forget a broker, if it is registered. Raises ApiError, KAFKA_STORAGE_ERROR, unless certain."""
        record = self.log.brokers.get(broker_id)
        if record is not None:
            write = self.log.note if certain else self.log.append
            write(messages.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=record.broker_epoch))

    def _register_controller(self, node: Node) -> None:
        if node.offer.at_least(FIRST_KRAFT) and self.log.can.get("isControllerRegistrationSupported"):
            self.log.note(_controller_record(
                node.id, supported_by(node.offer), [(CONTROLLER_LISTENER, node.host, node.controller_port)],
                self._new_id()))

    def register_controller(
        self, controller_id: int, supported: Mapping[str, Range], listeners: Iterable[tuple[str, str, int]],
        incarnation: UUID,
    ) -> None:
        """Register a controller. Raises ApiError: UNSUPPORTED_VERSION before 3.7-IV0, KAFKA_STORAGE_ERROR."""
        self.check_active()
        if not self.log.can.get("isControllerRegistrationSupported"):
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The current MetadataVersion is too old to support controller registrations.")
        self.log.append(_controller_record(controller_id, supported, listeners, incarnation))

    # levels

    def update_features(self, updates: list[Update], validate_only: bool) -> dict[str, ApiError]:
        """Finalize levels; the error of each update that is refused. Up to 3.9 the others are carried out, from 4.0 on
        all or none, and the first error ends it. Raises ApiError: NOT_CONTROLLER.

        Source: FeatureControlManager.updateFeatures.
        """
        active = self.check_active().offer
        before = {**self.levels}
        if not self.rules.knows_kraft_version(active):
            before[KRAFT_VERSION] = self._unread_kraft_version
        proposed = {**before, **{update.feature: update.level for update in updates}}
        changes, errors = {}, {}
        for update in updates:
            update.have, update.proposed = before.get(update.feature, 0), proposed
            try:
                self.rules.check_update(self, active, update)
                changes[update.feature] = update.level
            except ApiError as error:
                errors[update.feature] = error
                if active.at_least("4.0"):
                    return errors
        if validate_only:
            return errors
        if not self.rules.knows_kraft_version(active) and KRAFT_VERSION in changes:
            level = changes.pop(KRAFT_VERSION)
            self._unread_kraft_version = 0 if active.at_least("4.0") else level
        if changes:
            self.change_levels(changes)
        return errors

    def change_levels(self, changes: Mapping[str, int]) -> None:
        """Write levels to the metadata log, as it is done once they are validated; every node follows. Raises ApiError.

        Source: KIP-778, "Metadata Version Change Implementation".
        """
        before, log, snapshot = self.levels, self.log, None
        new = self._with_dependents({**before, **changes})
        with self._renegotiating():
            if METADATA_VERSION in changes and self.rules.takes_snapshot_before_change():
                snapshot = log.take_snapshot()
            first = log.offset + 1
            self._write_levels({
                name: level for name, level in new.items() if name in changes or level != before.get(name)})
            records = log.offset + 1 - first
            losses = log.rewrite() if METADATA_VERSION in changes and self.rules.rewrites_state_at_change() else []
            self.losses = losses or self.losses
            self._faults.note(
                "levels", levels=self.levels, epoch=self.levels_epoch, records=records, snapshot=snapshot,
                losses=len(losses))
            self._publish()
            self._register_all()
        self.cluster.elect()

    def _with_dependents(self, levels: dict[str, int]) -> dict[str, int]:
        if METADATA_VERSION in levels and self.rules.lowers_dependent_features():
            return levels | lowered_features(levels)
        return levels

    def _write_levels(self, levels: Mapping[str, int]) -> None:
        records = [
            messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in sorted(levels.items())
            if name != KRAFT_VERSION]
        self.log.append(*sorted(records, key=lambda record: record.name != METADATA_VERSION))
        if levels.get(KRAFT_VERSION, 0) > self.log.kraft_version:  # not refused once the others are written
            self.log.set_quorum(levels[KRAFT_VERSION], self._voters_record(), certain=bool(records))

    def _publish(self) -> None:
        """Each node that runs sees the levels that are in the log now, and renegotiates or ends by them."""
        for node in self.cluster.nodes:
            if not node.alive:
                continue
            reason = unsupported(supported_by(node.offer), self.levels)
            if reason is not None:
                self._meets_unsupported_level(node, reason)

    def _meets_unsupported_level(self, node: Node, reason: str) -> None:
        if node.is_broker and self.is_in_service(node):
            self.rules.broker_meets_unsupported_level(self, node, reason)
        if node.is_controller and node is self.active:
            self.rules.active_controller_meets_unsupported_level(self, node, reason)
        elif node.is_controller:
            self.rules.inactive_controller_meets_unsupported_level(self, node, reason)

    def _register_all(self) -> None:
        """At other levels, or another active controller, those register that could not."""
        for node in self.cluster.nodes:
            if node.alive and node.is_controller and self.active is not None and node.id not in self.log.controllers:
                self._register_controller(node)
            if node.alive and node.refused is not None:
                self._register(node)

    def terminate(self, node: Node, reason: str) -> None:
        """End a node that cannot run at the finalized levels."""
        if node.alive:
            self._faults.note("terminated", node=node.id, reason=reason)
            node.terminate(reason)


def _controller_record(
    controller_id: int, supported: Mapping[str, Range], listeners: Iterable[tuple[str, str, int]], incarnation: UUID,
) -> messages.RegisterControllerRecord:
    made = messages.RegisterControllerRecord
    return made(
        controller_id=controller_id, incarnation_id=incarnation,
        end_points=[made.ControllerEndpoint(name=name, host=host, port=port) for name, host, port in listeners],
        features=_rows(made.ControllerFeature, supported))


def _rows(row: Any, supported: Mapping[str, Range]) -> list[Any]:
    return [
        row(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in sorted(supported.items())]


def _levels_of(features: Iterable[Any]) -> dict[str, Range]:
    return {one.name: (one.min_supported_version, one.max_supported_version) for one in features}
