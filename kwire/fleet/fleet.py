"""Fleet: brokers of any release in this process, for tests of clients."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any

from kwire import schema
from kwire.codec.arguments import check_choice, check_each, check_ints, check_type
from kwire.codec.records import Record, read_batches
from kwire.fleet.clock import Clock, ManualClock
from kwire.fleet.cluster import MOST_PARTITIONS, ClusterState
from kwire.fleet.controller.controller import QuorumController
from kwire.fleet.controller.rules import RULES, Kip778, supported_by, unsupported
from kwire.fleet.disk.disk_storage import DiskStorage
from kwire.fleet.errors import ApiError
from kwire.fleet.faults import Fault, Faults
from kwire.fleet.logs.partition_log import PartitionLog
from kwire.fleet.logs.retention import compact, retain
from kwire.fleet.loop_thread import InThread
from kwire.fleet.node import BOTH_ROLES, Node
from kwire.fleet.users import Users
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.metadata.image import ClusterImage
from kwire_c.printable import brief

MOST_NODES = 1000


class Fleet(InThread):
    """Brokers on loopback that speak as brokers of a release do, with their data in memory or in a folder.

    release: of all nodes ("0.9.0" to the newest), or releases: one a node; nodes: how many. roles: of each node, as
    process.roles: "broker", "controller" or, by default, "broker,controller". topics: {name: partitions}, made at the
    start if they are not there. data: None, in memory, or a folder: new, empty, or of an earlier Fleet that goes on
    (docs/fleet.md). rules: of the controller: "released", or "kip-778" as that document has them. levels: finalized
    feature levels that differ from those that the oldest release formats with. sasl: {user: password}, for PLAIN and
    SCRAM; without it nobody logs in. tls: a server's SSLContext. seed: of ids, and of faults with a probability. clock:
    a ManualClock for tests of time, a simulation's clock in one. port: of the first node, the others follow (0: free
    ones). keep_events: False leaves .events empty, for a fleet that runs for long.

    A context manager, sync (the nodes run in a thread of their own) or async (they run in this loop). Raises
    UnsupportedVersionError for an unknown release, ValueError for levels that no node supports, OSError if a port is
    taken.
    """

    def __init__(
        self, release: str | None = None, nodes: int | None = None, *, releases: Sequence[str] | None = None,
        data: str | os.PathLike[str] | None = None, rules: str = "released", levels: Mapping[str, int] | None = None,
        topics: Mapping[str, int] | None = None, sasl: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None, seed: int = 0, clock: Clock | None = None, port: int = 0,
        roles: Sequence[str] | None = None, keep_events: bool = True,
    ) -> None:
        check_choice(rules, tuple(RULES), "rules")
        if release is not None and releases is not None:
            raise ValueError("give release or releases, not both")
        _check_arguments(nodes, releases, data, levels, topics, sasl, seed, clock, port, roles, tls)
        count = len(releases) if releases is not None else 1
        count = count if nodes is None else nodes
        if not 1 <= count <= MOST_NODES or (releases is not None and len(releases) != count):
            raise ValueError(f"nodes must be 1 to {MOST_NODES} and as many as releases, got {count}")
        if not 0 <= port <= 65_536 - count:
            raise ValueError(f"port must be 0 to {65_536 - count} for {count} nodes, got {port}")
        names = list(releases) if releases is not None else [release or schema.releases()[-1]] * count
        self.clock = clock or Clock()
        self.cluster = ClusterState(self.clock, seed)
        if data is not None:
            self.cluster.storage = DiskStorage(data, levels or {})
        self._users = None if sasl is None else Users(sasl, lambda: self.cluster.scram)
        self._faults = Faults(self.clock, self.cluster.random, self.cluster.topic_name, keep_events)
        self.nodes = [
            Node(self.cluster, number + 1, name, self._faults, port=port + number if port else 0, tls=tls,
                 users=self._users, roles=role, rules=RULES[rules])
            for number, (name, role) in enumerate(zip(names, _roles(roles, count), strict=True))]
        for node in self.nodes:
            node.in_loop = self._in_loop
        self.cluster.nodes = self.nodes
        self.cluster.controller = self._controller(levels or {}, RULES[rules], seed)
        if roles is not None and not self.cluster.controller.kraft:
            raise ValueError("roles= is for KRaft: with ZooKeeper all nodes are brokers")
        self._topics, self._tls = dict(topics or {}), tls is not None

    def _controller(self, levels: Mapping[str, int], rules: Kip778, seed: int) -> QuorumController:
        """The controllers of directories that the oldest of the releases has formatted."""
        if levels.get(METADATA_VERSION, 1) < 1:
            raise ValueError(f"levels must have a {METADATA_VERSION} of 1 or more, got {levels[METADATA_VERSION]}")
        oldest = min((node.offer for node in self.nodes), key=lambda one: schema.releases(old=True).index(one.release))
        chosen = {name: level for name, level in {**oldest.levels, **levels}.items() if level > 0}
        kraft = rules.uses_metadata_version(oldest)
        if chosen and not kraft:
            raise ValueError(f"levels= is for KRaft: Kafka {oldest.release} has no feature levels")
        if kraft and all(unsupported(supported_by(node.offer), chosen) for node in self.nodes):
            reason = unsupported(supported_by(self.nodes[0].offer), chosen)
            raise ValueError(f"no node supports the levels to begin with: {reason}")
        return QuorumController(self.cluster, rules, self._faults, chosen or None, kraft, seed)

    def __repr__(self) -> str:
        return f"Fleet({', '.join(map(repr, self.nodes))})"

    # what tests ask and do

    @property
    def bootstrap(self) -> str:
        """bootstrap.servers: host:port of each broker, comma separated."""
        return ",".join(node.address for node in self.nodes if node.is_broker)

    @property
    def bootstrap_controllers(self) -> str:
        """bootstrap.controllers: host:port of each controller, comma separated; "" with ZooKeeper."""
        return ",".join(node.controller_address for node in self.nodes if node.is_controller)

    @property
    def controller(self) -> Node | None:
        """The node that is the active controller, None while none is up."""
        return self.cluster.controller.active

    @property
    def image(self) -> ClusterImage:
        """The metadata of the cluster as it is now. Raises ValueError with ZooKeeper."""
        return self._in_loop(lambda: self.nodes[0].image)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened, oldest first: requests with their faults, nodes that came and went."""
        return list(self._faults.events)

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """The records of a partition, without control records; those of aborted transactions too. Raises ApiError."""
        def read() -> tuple[int, bytes]:
            log = self.cluster.partition(topic, partition).log
            return log.start_offset, log.read(log.start_offset, 1 << 62, log.end_offset, True)

        start, data = self._in_loop(read)
        return [
            record for batch in read_batches(data) if not batch.is_control for record in batch
            if record.offset >= start]

    def fault(self, api: str | None = None, *, error: str | int | ErrorCode | None = None, **what: Any) -> Fault:
        """Let requests fail by a rule: see Fault for which ones and what happens.

        fleet.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=3). Raises UnsupportedVersionError, ValueError.
        """
        return self._faults.add(api, error, **what)

    def retain(self, topic: str | None = None) -> int:
        """Delete the oldest segments of a topic (None: of all) by its retention.ms and retention.bytes; how many.

        A broker does so every five minutes, a Fleet only here. Raises ApiError.
        """
        return sum(self._each_log(topic, partial(retain, now=self.clock.now_ms())))

    def compact(self, topic: str) -> int:
        """Compact a topic whose cleanup.policy has compact, all that was written before; the bytes that it saved.

        Raises ApiError, INVALID_CONFIG for another topic.
        """
        policy = self.cluster.topic(topic).configs.get("cleanup.policy", "delete")
        if "compact" not in (part.strip() for part in policy.split(",")):
            raise ApiError(
                ErrorCode.INVALID_CONFIG, f"cleanup.policy of {topic} is {policy}: expected one with compact")
        return sum(self._each_log(topic, partial(compact, now=self.clock.now_ms())))

    def _each_log(self, topic: str | None, work: Callable[[PartitionLog], int]) -> list[int]:
        """What work returns for each log, run where the nodes run."""
        def each() -> list[int]:
            topics = [self.cluster.topic(topic)] if topic is not None else list(self.cluster.topics.values())
            return [work(partition.log) for one in topics for partition in one.partitions]

        return self._in_loop(each)

    def advance(self, seconds: float) -> None:
        """Move the fleet's ManualClock."""
        if not isinstance(self.clock, ManualClock):
            raise ValueError("the fleet has no ManualClock")
        self._in_loop(partial(self.clock.advance, seconds))

    # life

    async def __aenter__(self) -> Fleet:
        loop = asyncio.get_running_loop()
        if self._tls and not isinstance(loop, asyncio.BaseEventLoop):  # uvloop reads before TLS can begin
            raise ValueError(f"tls= needs an event loop of asyncio here, not {type(loop).__module__}; or use `with`")
        try:
            self.cluster.storage.open(self.cluster)
            for node in self.nodes:
                node.start()
            self.cluster.storage.restore(self.cluster)
            self.cluster.elect()
            if self._users is not None:
                self.cluster.add_users(self._users)
            for name, partitions in self._topics.items():
                if name not in self.cluster.topics:
                    self.cluster.create_topic(name, partitions)
        except BaseException:
            await self._close()
            raise
        return self

    async def _close(self) -> None:
        self.cluster.groups.close()
        self.cluster.transactions.close()
        try:
            self.cluster.controller.close()
            self.cluster.storage.close()
        finally:
            for node in self.nodes:
                node.stop()
            for node in self.nodes:
                await node.closed()


def _check_arguments(
    nodes: object, releases: object, data: object, levels: Any, topics: Any, sasl: Any, seed: object, clock: object,
    port: object, roles: object, tls: object,
) -> None:
    """Raise TypeError for an argument of a Fleet that is of another type, ValueError for too many partitions."""
    check_ints(nodes=nodes, seed=seed, port=port)
    for name, value, kinds, expected in (
        ("data", data, (str, os.PathLike), "a path"), ("clock", clock, Clock, "a Clock"),
        ("tls", tls, ssl.SSLContext, "an SSLContext"),
    ):
        if value is not None:
            check_type(value, kinds, name, expected)
    for name, value in (("releases", releases), ("roles", roles)):
        if value is not None:
            check_each(value, str, name, "str")
    for name, value, kind in (("levels", levels, Integral), ("topics", topics, Integral), ("sasl", sasl, str)):
        if value is None:
            continue
        expected = f"a dict of str and {'str' if kind is str else 'int'}"
        check_type(value, Mapping, name, expected)
        for key, one in value.items():
            check_type(key, str, name, expected)
            check_type(one, kind, name, expected)
    for topic, partitions in (topics or {}).items():
        if partitions > MOST_PARTITIONS:
            raise ValueError(
                f"topics: {brief(topic)} must have at most {MOST_PARTITIONS} partitions, not {brief(partitions)}")


def _roles(roles: Sequence[str] | None, count: int) -> list[frozenset[str]]:
    """The roles of each node, as in process.roles. Raises ValueError."""
    if roles is None:
        return [BOTH_ROLES] * count
    chosen = [frozenset(text.replace(" ", "").split(",")) for text in roles]
    if len(chosen) != count or not all(one <= BOTH_ROLES for one in chosen) or not any(
            "controller" in one for one in chosen):
        raise ValueError(
            f"roles must be 'broker', 'controller' or 'broker,controller' for each of {count} nodes, with at least one "
            f"controller, got {list(roles)}")
    return chosen
