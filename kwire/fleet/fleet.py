"""Fleet: brokers of any release in this process, for tests of clients."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from kwire import schema
from kwire.codec.records import read_batches
from kwire.fleet.clock import Clock, ManualClock
from kwire.fleet.cluster import ClusterState
from kwire.fleet.faults import Fault, Faults
from kwire.fleet.loop_thread import LoopThread
from kwire.fleet.node import Node
from kwire.fleet.releases import offer
from kwire.fleet.users import Users
from kwire.schema.error_codes import ErrorCode


class Fleet:
    """Brokers on loopback that speak as brokers of a release do, with their data in memory.

    release: of all nodes ("0.9.0" to the newest), or releases: one a node; nodes: how many. topics: {name: partitions},
    made at the start. data: None, in memory; rules: "released", what released controllers do. levels: finalized feature
    levels that differ from the release's own. sasl: {user: password}, for PLAIN and SCRAM; without it nobody logs in.
    tls: a server's SSLContext. seed: of ids, and of faults with a probability. clock: a ManualClock for tests of time,
    a simulation's clock in one. port: of the first node, the others follow (0: free ones).

    A context manager, sync (the nodes run in a thread of their own) or async (they run in this loop). Raises
    UnsupportedVersionError for an unknown release, OSError if a port is taken.
    """

    def __init__(
        self, release: str | None = None, nodes: int | None = None, *, releases: Sequence[str] | None = None,
        data: str | None = None, rules: str = "released", levels: Mapping[str, int] | None = None,
        topics: Mapping[str, int] | None = None, sasl: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None, seed: int = 0, clock: Clock | None = None, port: int = 0,
    ) -> None:
        if data is not None:
            raise ValueError("data= is not there yet: a Fleet keeps its data in memory")
        if rules != "released":
            raise ValueError(f"unknown rules {rules!r}: expected 'released' (those of KIP-778 are not there yet)")
        if release is not None and releases is not None:
            raise ValueError("give release or releases, not both")
        count = len(releases) if releases is not None else 1
        count = count if nodes is None else nodes
        if count < 1 or (releases is not None and len(releases) != count):
            raise ValueError(f"nodes must be at least 1 and as many as releases, got {count}")
        if not 0 <= port <= 65_536 - count:
            raise ValueError(f"port must be 0 to {65_536 - count} for {count} nodes, got {port}")
        names = list(releases) if releases is not None else [release or schema.releases()[-1]] * count
        self.clock = clock or Clock()
        self.cluster = ClusterState(self.clock, seed)
        self._faults = Faults(self.clock, self.cluster.random, self.cluster.topic_name)
        self.nodes = [
            Node(self.cluster, number + 1, name, self._faults, port=port + number if port else 0, tls=tls,
                 users=None if sasl is None else Users(sasl))
            for number, name in enumerate(names)]
        self.cluster.nodes = self.nodes
        oldest = min(names, key=lambda name: schema.releases(old=True).index(schema.release_name(name)))
        self.cluster.levels = {**offer(oldest).levels, **(levels or {})}
        self.cluster.levels_epoch = 0
        self._topics = dict(topics or {})
        self._thread: LoopThread | None = None

    def __repr__(self) -> str:
        return f"Fleet({', '.join(map(repr, self.nodes))})"

    # what tests ask and do

    @property
    def bootstrap(self) -> str:
        """bootstrap.servers: host:port of each node, comma separated."""
        return ",".join(node.address for node in self.nodes)

    @property
    def controller(self) -> Node | None:
        """The node that is the active controller, None while none is up."""
        return self.cluster.node(self.cluster.controller_id)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened, oldest first: requests with their faults, nodes that came and went."""
        return list(self._faults.events)

    def records(self, topic: str, partition: int = 0) -> list[Any]:
        """The records of a partition, without control records; those of aborted transactions too. Raises ApiError."""
        log = self.cluster.partition(topic, partition).log
        data = log.read(log.start_offset, 1 << 62, log.end_offset, True)
        return [
            record for batch in read_batches(data) if not batch.is_control for record in batch
            if record.offset >= log.start_offset]

    def fault(self, api: str | None = None, *, error: str | int | ErrorCode | None = None, **what: Any) -> Fault:
        """Let requests fail by a rule: see Fault for which ones and what happens.

        fleet.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=3). Raises UnsupportedVersionError, ValueError.
        """
        return self._faults.add(api, error, **what)

    def advance(self, seconds: float) -> None:
        """Move the fleet's ManualClock."""
        if not isinstance(self.clock, ManualClock):
            raise ValueError("the fleet has no ManualClock")
        move = partial(self.clock.advance, seconds)
        if self._thread is None:
            move()
        else:
            self._thread.call(move)

    # life

    async def __aenter__(self) -> Fleet:
        try:
            for node in self.nodes:
                node.start()
            for name, partitions in self._topics.items():
                self.cluster.create_topic(name, partitions)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        self.cluster.groups.close()
        self.cluster.transactions.close()
        for node in self.nodes:
            node.stop()
        for node in self.nodes:
            await node.closed()

    def __enter__(self) -> Fleet:
        if self._thread is not None:
            raise ValueError("the Fleet runs already")
        self._thread = LoopThread("kwire-fleet")
        try:
            self._thread.run(self.__aenter__())
        except BaseException:
            self._end_thread()
            raise
        for node in self.nodes:
            node.in_loop = self._thread.call
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            raise ValueError("the Fleet does not run")
        for node in self.nodes:
            node.in_loop = _at_once
        try:
            self._thread.run(self._close())
        finally:
            self._end_thread()

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()


def _at_once(work: Callable[[], None]) -> None:
    work()
