"""All brokers of a cluster: what they have in common, and sending to one of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import TracebackType
from typing import Any, NamedTuple, Unpack

from kwire import messages
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.net.address import Address, addresses
from kwire.net.api_versions import NodeApiVersions, api_name, intersection
from kwire.net.connection import Connection, Options
from kwire.net.errors import AuthenticationError, BrokerConnectionError, BrokerTimeoutError
from kwire.net.features import Feature, feature
from kwire.net.sasl import credentials
from kwire.net.tls import tls_context

MOST_BROKERS = 10_000
_AT_ONCE = 32  # connections that are opened at a time


class Broker(NamedTuple):
    """A broker as Metadata tells of it. rack: None where it has none, or where the version does not say."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        """Its host and port."""
        return Address(self.host, self.port)


class Cluster:
    """The brokers behind a bootstrap list, for `async with`; each has a Connection of its own.

    partial: a broker that cannot be reached stands in .unreachable instead of failing the opening. The other keywords
    are those of connect(). Metadata that names more than 10,000 brokers is refused with a LimitError.
    """

    def __init__(self, bootstrap: str, *, partial: bool = False, **keywords: Unpack[Options]) -> None:
        self.bootstrap = addresses(bootstrap)
        self.partial, self._keywords = partial, keywords.copy()
        self._keywords["tls"] = tls_context(keywords.get("tls", False)) or False  # one for all: each takes long to make
        self._keywords["sasl"] = credentials(keywords.get("sasl"))
        self.brokers: list[Broker] = []
        self.controller: int | None = None
        self.unreachable: dict[int, KwireError] = {}
        self._connections: dict[int, Connection] = {}
        self._timeout = keywords.get("timeout", 30.0)
        self._turn = 0
        self._stale = False
        Connection(self.bootstrap[0], **self._keywords)  # keywords that are wrong fail now

    def __repr__(self) -> str:
        return f"<kwire.net.Cluster {','.join(map(str, self.bootstrap))}, {len(self.brokers)} brokers>"

    async def __aenter__(self) -> Cluster:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Find the brokers and connect to each. Raises BrokerConnectionError, within the timeout."""
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                await self._find()
                await self._reach()
        except TimeoutError:
            if not limit.expired():
                raise
            where = ",".join(map(str, self.bootstrap))
            raise BrokerTimeoutError(f"no answer within {self._timeout:g} s", address=where) from None

    async def close(self) -> None:
        """Close every connection."""
        connections, self._connections = list(self._connections.values()), {}
        await asyncio.gather(*(connection.close() for connection in connections))

    def connection(self, node: int) -> Connection:
        """The connection to a broker. Raises BrokerConnectionError for a node that the cluster lacks."""
        if node not in self._connections:
            there = ", ".join(str(broker.id) for broker in self.brokers) or "none"
            raise BrokerConnectionError(f"no broker {node} in the cluster: there are {there}")
        return self._connections[node]

    @property
    def api_versions(self) -> dict[int, NodeApiVersions]:
        """Node id -> what that broker offers, of those that were reached."""
        return {node: self._connections[node].api_versions for node in self._reached()}

    @property
    def versions(self) -> dict[str, tuple[int, int]]:
        """API name -> (min, max) that all brokers offer; follows the renegotiations of each connection."""
        tables = [node.ranges for node in self.api_versions.values()]
        return {api_name(key): (span.low, span.high) for key, span in intersection(tables).items()}

    @property
    def tolerated(self) -> dict[str, int]:
        """What answers of any broker had that Kafka does not write; as Connection.tolerated."""
        counts: Counter[str] = Counter()
        for connection in self._connections.values():
            counts.update(connection.tolerated)
        return dict(counts)

    def can(self, wanted: Feature | str) -> bool:
        """Whether all brokers can do it: a Feature of one's own, or the name of a built-in one (see FEATURES)."""
        return (wanted if isinstance(wanted, Feature) else feature(wanted)).usable(self.versions)

    async def send(
        self, message: Any, to: int | str = "any", version: int | None = None, *, timeout: float | None = None
    ) -> Any:
        """One broker's answer to a request. to: a node id, "controller", or "any" (each in its turn)."""
        if self._stale:
            await self.refresh()
        if to == "any":
            reached = self._reached()
            self._turn += 1
            node = reached[self._turn % len(reached)]
        elif to == "controller":
            if self.controller is None:
                raise UnsupportedVersionError(
                    "these brokers do not tell who their controller is: that needs Metadata version 1 or newer",
                    api="Metadata", needed=(1, 1), offered=self.versions.get("Metadata"),
                )
            node = self.controller
        elif isinstance(to, int):
            node = to
        else:
            raise ValueError(f'to is a node id, "controller" or "any", not {to!r}')
        try:
            return await self.connection(node).send(message, version, timeout=timeout)
        except BrokerConnectionError:
            self._stale = True  # who is there, and who is the controller, may have changed
            raise

    async def refresh(self) -> None:
        """Ask anew which brokers there are, and connect to those that are new. Raises BrokerConnectionError."""
        failed: BrokerConnectionError | None = None
        for connection in list(self._connections.values()):
            try:
                await self._learn(connection)
                await self._reach()
                return
            except BrokerConnectionError as error:
                failed = error
            finally:
                if connection not in self._connections.values():  # that broker is gone, or is another node now
                    await connection.close()
        await self._find(failed)
        await self._reach()

    def _reached(self) -> list[int]:
        nodes = [node for node in self._connections if node not in self.unreachable]
        if not nodes:
            raise BrokerConnectionError("the cluster is not open", address=",".join(map(str, self.bootstrap)))
        return nodes

    async def _find(self, failed: BrokerConnectionError | None = None) -> None:
        told: list[BrokerConnectionError] = []
        for where in self.bootstrap:
            connection = Connection(where, **self._keywords)
            try:
                await self._learn(connection)
            except AuthenticationError:
                raise
            except BrokerConnectionError as error:
                told.append(error)
                continue
            finally:
                if connection not in self._connections.values():
                    await connection.close()
            return
        if len(told) == 1:
            raise told[0]
        raise BrokerConnectionError("no bootstrap server can be used: " + "; ".join(map(str, told))) from None

    async def _learn(self, connection: Connection) -> None:
        try:
            answer = await connection.send(messages.MetadataRequest(topics=[]))
        except DecodeError as error:
            told = f"answers Metadata with what is none: {error}"
            raise BrokerConnectionError(told, address=str(connection.address)) from None
        if not answer.brokers:
            raise BrokerConnectionError("names no brokers in its Metadata", address=str(connection.address))
        if len(answer.brokers) > MOST_BROKERS:
            told = f"{connection.address} names too many brokers in its Metadata"
            raise LimitError(told, limit=MOST_BROKERS, needed=len(answer.brokers))
        self.brokers = sorted((Broker(row.node_id, row.host, row.port, row.rack) for row in answer.brokers),
                              key=lambda broker: (*broker[:3], broker.rack or ""))
        self.controller = answer.controller_id if answer.controller_id >= 0 else None
        self._stale = False
        there = {broker.id: broker.address for broker in self.brokers}
        kept = {node: old for node, old in self._connections.items() if there.get(node) == old.address}
        gone = [old for node, old in self._connections.items() if node not in kept]
        for node, where in there.items():
            if node not in kept:
                kept[node] = connection if where == connection.address else Connection(where, **self._keywords)
        self._connections = kept
        await asyncio.gather(*(old.close() for old in gone if old is not connection))

    async def _reach(self) -> None:
        async def reach(node: int, connection: Connection) -> None:
            try:
                await connection.open()
                self.unreachable.pop(node, None)
            except KwireError as error:
                self.unreachable[node] = error
                if not self.partial:
                    raise

        async def reach_each() -> None:
            for node, connection in left:
                await reach(node, connection)
                await asyncio.sleep(0)  # a connection that is refused at once waits for nothing

        left = iter(list(self._connections.items()))
        outcomes = await asyncio.gather(*(reach_each() for _ in range(_AT_ONCE)), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        self.unreachable = {node: error for node, error in self.unreachable.items() if node in self._connections}
