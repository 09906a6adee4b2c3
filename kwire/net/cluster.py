"""All brokers of a cluster: the versions that they have in common, and requests to one of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Unpack

from kwire import messages, schema
from kwire.codec.arguments import check_int, check_seconds
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.net.address import Address, addresses
from kwire.net.api_versions import FinalizedLevels, NodeApiVersions, api_name, intersection, newest_levels
from kwire.net.connection import Connection, Options, close_all
from kwire.net.errors import AuthenticationError, BrokerConnectionError, BrokerTimeoutError, RequestRefusedError
from kwire.net.feature_updates import (
    FeatureMetadata,
    FeatureUpdate,
    FeatureUpdateError,
    describe_features,
    update_features,
)
from kwire.net.features import Feature, feature
from kwire.net.sasl import credentials
from kwire.net.tls import tls_context
from kwire.net.waiting import NoneAnswered, first_answer, within
from kwire_c.printable import brief

if TYPE_CHECKING:
    from kwire_c.message_class import RequestMessage

R = TypeVar("R")  # the response of a request

MOST_BROKERS = 10_000
_AT_ONCE = 32  # connections that are opened at a time
_SHARE = 0.9  # of the time that is left, for one connection: what comes after it has some, too
_CONTROLLERS = 2  # DescribeCluster's endpoint type


class Broker(NamedTuple):
    """A broker as Metadata lists it. rack: None where it has none, or where the version lacks the field."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        """The broker's host and port."""
        return Address(self.host, self.port)


class Cluster:
    """The brokers of the cluster that a bootstrap list leads to, for `async with`; each has its own Connection.

    partial: a broker that cannot be reached is listed in .unreachable; without it, open() fails. lazy: open() connects
    to one bootstrap server only, and to each broker at the first request to it; until then .versions and can() leave it
    out. controllers: the bootstrap list names controllers of a KRaft quorum (KIP-919, from 3.7 on): .brokers are the
    controllers, .controller is the active one. The other keywords are those of connect(). Metadata with more than
    10,000 brokers is refused with a LimitError.
    """

    def __init__(
        self, bootstrap: str, *, partial: bool = False, lazy: bool = False, controllers: bool = False,
        **keywords: Unpack[Options],
    ) -> None:  # fmt: skip
        self.bootstrap = addresses(bootstrap)
        self.controllers = controllers
        self.partial, self._lazy, self._keywords = partial, lazy, keywords.copy()
        self._keywords["tls"] = tls_context(keywords.get("tls", False)) or False  # shared: it takes long to make one
        self._keywords["sasl"] = credentials(keywords.get("sasl"))
        self.brokers: list[Broker] = []
        self.controller: int | None = None
        self.unreachable: dict[int, KwireError] = {}
        self._connections: dict[int, Connection] = {}
        self._closed = False
        self._turn = self._asked = 0  # requests to any broker; times that the brokers were asked for again
        self._stale = False
        self._begin()
        self.timeout = self._connection_to(self.bootstrap[0]).timeout  # invalid keywords fail now

    def __repr__(self) -> str:
        if not hasattr(self, "brokers"):
            return "<kwire.net.Cluster, not made>"
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

    def _begin(self) -> None:
        """Start with nobody looking for the brokers again."""
        self._looking = asyncio.Lock()  # held while a request looks for them
        self._looks = 0  # of requests, that came to an end
        self._not_found: KwireError | None = None  # what came of the last one

    async def open(self) -> None:
        """Find the brokers and connect to each. Raises BrokerConnectionError, within the timeout."""
        self._closed = False
        self._begin()  # perhaps in another event loop than before
        async with within(self.timeout, self._where) as end:
            await self._find(self.timeout)
            await self._reach(end)

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        connections, self._connections = list(self._connections.values()), {}
        await close_all(connections)

    def connection(self, node: int) -> Connection:
        """The connection to a broker. Raises BrokerConnectionError for a node id that the cluster does not have."""
        if check_int(node, "node") not in self._connections:
            known = ", ".join(str(broker.id) for broker in self.brokers) or "none"
            raise BrokerConnectionError(f"no broker {node} in the cluster, which has: {known}")
        return self._connections[node]

    @property
    def api_versions(self) -> dict[int, NodeApiVersions]:
        """Node id -> the API versions of that broker, for those that were reached (lazy: that are connected)."""
        reached = {node: self._connections[node] for node in self._reached()}
        return {node: one.api_versions for node, one in reached.items() if one.is_open or not self._lazy}

    @property
    def versions(self) -> dict[str, tuple[int, int]]:
        """API name -> (min, max) that all brokers support; follows every renegotiation of a connection."""
        tables = [node.ranges for node in self.api_versions.values()]
        return {api_name(key): (span.low, span.high) for key, span in intersection(tables).items()}

    @property
    def levels(self) -> dict[str, int]:
        """Feature -> finalized level (KIP-584): what the broker with the newest epoch says; level 0 is left out.

        Versions of requests are chosen by these for all brokers.
        """
        self._reached()
        return dict(self._finalized().levels)

    @property
    def levels_epoch(self) -> int:
        """The epoch of the levels, in KRaft an offset of the metadata log; -1 where they are unknown."""
        self._reached()
        return self._finalized().epoch

    def _finalized(self) -> FinalizedLevels:
        """The newest finalized levels of open connections, for which alone they are valid, else of those before."""
        known = self._connections.values()
        still_open = [connection for connection in known if connection.is_open]
        return newest_levels(connection.finalized_levels for connection in still_open or known)

    @property
    def tolerated(self) -> dict[str, int]:
        """As Connection.tolerated, for the responses of all brokers."""
        counts: Counter[str] = Counter()
        for connection in self._connections.values():
            counts.update(connection.tolerated)
        return dict(counts)

    def can(self, wanted: Feature | str) -> bool:
        """Whether all brokers support a feature, and the levels that it needs are finalized.

        wanted: a Feature, or the name of a built-in one (see FEATURES). Unknown levels count as 0.
        Raises KeyError for another name, whose text lists the known ones.
        """
        return (wanted if isinstance(wanted, Feature) else feature(wanted)).usable(self.versions, self.levels)

    async def send(
        self, message: RequestMessage[R], to: int | str = "any", version: int | None = None, *,
        timeout: float | None = None,
    ) -> R:  # fmt: skip
        """Send a request to one broker and return its response; as Connection.send.

        to: a node id, "controller", or "any" (the brokers in turn). After a request that failed, and where no broker
        could be reached, the next one asks for the brokers again, within its own timeout.
        """
        if self._stale or self._none_reached:
            seconds = self.timeout if timeout is None else check_seconds(timeout, "timeout")
            end = asyncio.get_running_loop().time() + seconds
            await self._look_again(seconds)
            timeout = max(0.0, end - asyncio.get_running_loop().time())
        if to == "any":
            reached = self._reached()
            self._turn += 1
            node = reached[self._turn % len(reached)]
        elif to == "controller":
            if self.controller is None:
                raise UnsupportedVersionError(
                    "the controller is unknown: the brokers do not support Metadata version 1 or newer",
                    api="Metadata", needed=(1, 1), offered=self.versions.get("Metadata"),
                )
            node = self.controller
        elif isinstance(to, int):
            node = to
        else:
            raise ValueError(f'to must be a node id, "controller" or "any", not {brief(to)}')
        try:
            return await self.connection(node).send(message, version, timeout=timeout)
        except BrokerConnectionError as error:
            if not getattr(error, "throttled", 0.0):  # else nothing was sent, which says nothing of the brokers
                self._stale = True  # the brokers or the controller may have changed
            raise

    async def describe_features(self, node: int | None = None) -> FeatureMetadata:
        """The finalized and supported levels of all features, asked for now (KIP-584).

        node: the id of the broker (or controller) to ask; by default any broker, or the active controller. Raises
        BrokerConnectionError; UnsupportedVersionError for a node before 2.7, which has no features.
        """
        return await describe_features(self, node)

    async def update_features(
        self, updates: Mapping[str, FeatureUpdate], *, dry_run: bool = False
    ) -> dict[str, FeatureUpdateError | None]:
        """Change levels of features (KIP-584, KIP-778): feature -> None, or the error that the controller gave.

        From 4.0 on (UpdateFeatures v2) either all updates are made or none. dry_run: the controller only checks them.
        Raises UnsupportedVersionError, before anything is sent, for a level name that is not known, and where the
        controller cannot do what is asked: a dry run and UNSAFE need UpdateFeatures v1 (3.3). Raises ValueError without
        updates, BrokerConnectionError if no controller takes the request within the timeout.
        """
        self._check_open()
        return await update_features(self, updates, dry_run)

    async def refresh(self) -> None:
        """Ask for the brokers again, connect to new ones, and ask all for their API versions and finalized levels.

        Raises BrokerConnectionError.
        """
        before = {connection for connection in self._connections.values() if connection.is_open}
        await self._find_again(self.timeout)
        asked = {node: connection for node, connection in self._connections.items() if connection in before}
        outcomes = await asyncio.gather(
            *(connection.refresh() for connection in asked.values()), return_exceptions=True
        )
        for node, outcome in zip(asked, outcomes, strict=True):
            if self.partial and isinstance(outcome, KwireError):
                self.unreachable[node] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome

    async def _look_again(self, seconds: float) -> None:
        """Find the brokers again for a request; those that come meanwhile wait for what comes of it."""
        looks = self._looks
        async with within(seconds, self._where) as end, self._looking:
            if self._looks == looks:
                try:
                    await self._find_again(end - asyncio.get_running_loop().time())
                    self._not_found = None
                except BrokerTimeoutError:  # others may have more time
                    raise
                except KwireError as error:
                    self._not_found = error
                self._looks += 1
            if self._not_found is not None:
                raise self._not_found.with_traceback(None)  # others raised it too

    async def _find_again(self, seconds: float) -> None:
        """Ask for the brokers again, of known brokers first, each time another, and connect to new ones."""
        self._check_open()
        known = list(self._connections.values())
        self._asked += 1
        begin = self._asked % len(known) if known else 0
        known = sorted(known[begin:] + known[:begin], key=lambda connection: not connection.is_open)
        async with within(seconds, self._where) as end:
            await self._find(seconds, known)
            await self._reach(end)

    def _check_open(self) -> None:
        if self._closed:
            raise BrokerConnectionError("the cluster was closed", address=self._where)

    @property
    def _where(self) -> str:
        """The bootstrap list, for errors."""
        return ",".join(map(str, self.bootstrap))

    def _connection_to(self, where: Address) -> Connection:
        return Connection(where, cluster_levels=self._finalized, **self._keywords)

    @property
    def _none_reached(self) -> bool:
        """Whether brokers are known, and none of them could be reached."""
        return bool(self._connections) and self._connections.keys() <= self.unreachable.keys()

    def _reached(self) -> list[int]:
        if self._none_reached:
            first = next(iter(self.unreachable.values()))
            raise BrokerConnectionError(f"no broker of the cluster can be reached: {first}", address=self._where)
        nodes = [node for node in self._connections if node not in self.unreachable]
        if not nodes:
            raise BrokerConnectionError("the cluster is not open", address=self._where)
        return nodes

    async def _find(self, seconds: float, known: Sequence[Connection] = ()) -> None:
        """Learn the brokers from the first connection that answers: of known ones, then of bootstrap servers."""
        fresh = [self._connection_to(where) for where in self.bootstrap]

        def is_final(connection: Connection, error: BrokerConnectionError) -> bool:
            refused = isinstance(error, RequestRefusedError) and not error.code.retriable
            return connection in fresh and (refused or isinstance(error, AuthenticationError))

        try:
            connection, found = await first_answer([*known, *fresh], self._ask, seconds, is_final)
            self._check_open()
            await self._take(connection, *found)
        except NoneAnswered as none:
            errors = [error for connection, error in none.errors if connection in fresh]
            if len(errors) == 1:
                raise errors[0] from None
            reasons = "; ".join(map(str, errors))
            raise BrokerConnectionError(f"no bootstrap server can be used: {reasons}") from None
        finally:
            kept = set(self._connections.values())  # a known one may be gone, or another broker has its address
            await close_all([connection for connection in (*known, *fresh) if connection not in kept])

    async def _listed(self, connection: Connection) -> tuple[int, list[Broker]]:
        """The controller's id, and the brokers (or controllers), as the other side lists them."""
        if self.controllers:
            answer = await connection.send(messages.DescribeClusterRequest(endpoint_type=_CONTROLLERS))
            if answer.error_code:
                code = schema.ErrorCode(answer.error_code)
                text = answer.error_message or code.message
                reason = f"refuses DescribeCluster: {code.name}: {text}"
                if code == schema.ErrorCode.MISMATCHED_ENDPOINT_TYPE:
                    reason = "a broker, not a controller"
                raise RequestRefusedError(reason, code, text, address=str(connection.address))
            listed = [Broker(row.broker_id, row.host, row.port, row.rack) for row in answer.brokers]
            return answer.controller_id, listed
        try:
            metadata = await connection.send(messages.MetadataRequest(topics=[]))
        except UnsupportedVersionError:
            if "Vote" not in connection.versions:  # which controllers have, and no broker
                raise
            raise RequestRefusedError(
                "a controller, not a broker", schema.ErrorCode.UNSUPPORTED_VERSION,
                "The node does not support METADATA", address=str(connection.address),
            ) from None  # fmt: skip
        nodes = [Broker(row.node_id, row.host, row.port, row.rack) for row in metadata.brokers]
        return metadata.controller_id, nodes

    async def _ask(self, connection: Connection) -> tuple[int, list[Broker]]:
        """The same, checked. Raises BrokerConnectionError, LimitError for too many brokers."""
        api = "DescribeCluster" if self.controllers else "Metadata"
        try:
            controller, brokers = await self._listed(connection)
        except DecodeError as error:
            reason = f"invalid {api} response: {error}"
            raise BrokerConnectionError(reason, address=str(connection.address)) from None
        if not brokers:
            raise BrokerConnectionError(f"{api} response without brokers", address=str(connection.address))
        if len(brokers) > MOST_BROKERS:
            reason = f"{connection.address}: {api} response with too many brokers"
            raise LimitError(reason, limit=MOST_BROKERS, needed=len(brokers), offset=None)
        return controller, brokers

    async def _take(self, connection: Connection, controller: int, brokers: list[Broker]) -> None:
        """Keep a connection for each of these brokers; connection: the one that listed them."""
        self.brokers = sorted(brokers, key=lambda broker: (*broker[:3], broker.rack or ""))
        self.controller = controller if controller >= 0 else None
        self._stale = False
        listed = {broker.id: broker.address for broker in self.brokers}
        kept = {node: old for node, old in self._connections.items() if listed.get(node) == old.address}
        removed = [old for node, old in self._connections.items() if node not in kept]
        is_free = connection not in kept.values()
        for node, where in listed.items():
            if node not in kept:
                takes = is_free and where == connection.address  # not two of one address: one of them may move
                kept[node] = connection if takes else self._connection_to(where)
                is_free = is_free and not takes
        self._connections = kept
        await close_all([old for old in removed if old is not connection])

    async def _reach(self, end: float) -> None:
        """Connect to the brokers. end: the loop's time by which a broker that does not answer must have failed."""
        if self._lazy:
            return

        async def reach(node: int, connection: Connection) -> None:
            left = end - asyncio.get_running_loop().time()
            try:
                async with within(_SHARE * left, connection.address):
                    await connection.open()
                self.unreachable.pop(node, None)
            except KwireError as error:
                self.unreachable[node] = error
                if not self.partial:
                    raise

        async def reach_next() -> None:
            for node, connection in pending:
                if self._connections.get(node) is connection:  # not of a cluster that was closed meanwhile
                    await reach(node, connection)
                await asyncio.sleep(0)  # let others run: a connection that is refused at once never waits

        pending = iter(list(self._connections.items()))
        outcomes = await asyncio.gather(*(reach_next() for _ in range(_AT_ONCE)), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        self.unreachable = {node: error for node, error in self.unreachable.items() if node in self._connections}
