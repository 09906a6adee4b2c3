"""A connection to one broker that negotiates API versions whenever it is opened."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from kwire.codec.arguments import check_int, check_seconds, check_type
from kwire.defaults import MAX_FRAME_BYTES
from kwire.net import negotiation
from kwire.net.address import Address, address
from kwire.net.api_versions import FinalizedLevels, NodeApiVersions, assumed_versions
from kwire.net.channel import Channel, Tolerated
from kwire.net.errors import BrokerConnectionError, BrokerTimeoutError
from kwire.net.negotiation import Chooser
from kwire.net.sasl import Credentials, TokenCallback, credentials
from kwire.net.tls import tls_context
from kwire.schema import api_keys

if TYPE_CHECKING:
    from kwire_c.message_class import RequestMessage

R = TypeVar("R")  # the response of a request

_LEAST_SESSION = 0.2  # seconds between two authentications, however short the broker's session lifetime is


class Options(TypedDict, total=False):
    """The keywords of connect(), connect_sync() and Cluster; connect() describes them."""

    client_id: str | None
    timeout: float
    probe_timeout: float
    tls: bool | ssl.SSLContext
    sasl: tuple[str, str, str] | TokenCallback | Credentials | None
    assume_release: str | None
    deny: Mapping[int | str, Collection[int]] | None
    unstable: bool
    max_frame: int
    strict: bool


def _check(client_id: object, deny: object, max_frame: int) -> None:
    """Raise TypeError for a keyword of the wrong type, which names it."""
    check_type(client_id, (str, NoneType), "client_id", "a str or None")
    check_type(deny, (Mapping, NoneType), "deny", "a mapping of APIs to versions")
    check_int(max_frame, "max_frame")


class Connection:
    """A connection to one broker, for asyncio. Made by connect(); opened by `async with` or by the first send.

    Concurrent requests are pipelined. When the connection is lost, requests in flight fail with BrokerConnectionError;
    the next send opens it again, negotiates again (the broker may have been upgraded) and authenticates.
    """

    def __init__(
        self, where: str | Address, *,
        client_id: str | None = "kwire", timeout: float = 30, probe_timeout: float = 5,
        tls: bool | ssl.SSLContext = False,
        sasl: tuple[str, str, str] | TokenCallback | Credentials | None = None, assume_release: str | None = None,
        deny: Mapping[int | str, Collection[int]] | None = None, unstable: bool = False,
        max_frame: int = MAX_FRAME_BYTES, strict: bool = False,
        cluster_levels: Callable[[], FinalizedLevels] | None = None,
    ) -> None:  # fmt: skip
        _check(client_id, deny, max_frame)
        self.address = where if isinstance(where, Address) else address(where)
        self.client_id = client_id
        self.timeout = check_seconds(timeout, "timeout")
        self.probe_timeout = check_seconds(probe_timeout, "probe_timeout")
        self._tls = tls_context(tls)
        self._sasl: Credentials | None = credentials(sasl)
        self._assumed = None if assume_release is None else assumed_versions(assume_release)
        self._deny, self._unstable, self._max_frame = deny, unstable, max_frame
        self._cluster_levels = cluster_levels  # by which versions are chosen; None: the levels of this broker's answer
        self._tolerated = None if strict else Tolerated()
        self._chooser: Chooser | None = None
        self._closed = False
        self._begin(None)

    def _begin(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start unopened, bound to that event loop and this process."""
        self._loop, self._process = loop, os.getpid()
        self._lock = asyncio.Lock()  # held while opening or re-authenticating: no request is written then
        self._turns = asyncio.Lock()  # held while the broker throttles this client: requests keep their order
        self._asking = asyncio.Lock()  # held while levels are asked for again
        self._channel: Channel | None = None
        self._renewal: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        if not hasattr(self, "_channel"):  # in the traceback of a wrong argument, with its locals
            return "<kwire.net.Connection, not made>"
        state = "closed" if self._closed else "open" if self.is_open else "not open"
        return f"<kwire.net.Connection {self.address}, {state}>"

    async def __aenter__(self) -> Connection:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent without opening the connection again."""
        return self._channel is not None and self._channel.lost is None and self._process == os.getpid()

    @property
    def api_versions(self) -> NodeApiVersions:
        """The API versions, negotiated or assumed, of the last time that the connection was opened."""
        return self._chosen().api_versions

    @property
    def versions(self) -> dict[str, tuple[int, int]]:
        """API name -> (min, max) that the broker supports, both included; follows every renegotiation."""
        return self.api_versions.versions()

    @property
    def levels(self) -> dict[str, int]:
        """Feature -> level that the broker says is finalized (KIP-584); a feature at level 0 is left out.

        As of the last time that the connection was opened or refreshed. Empty where the levels are unknown.
        """
        return dict(self.api_versions.finalized)

    @property
    def levels_epoch(self) -> int:
        """The epoch of the levels, in KRaft an offset of the metadata log; -1 where they are unknown."""
        return self.api_versions.epoch

    @property
    def finalized_levels(self) -> FinalizedLevels:
        """The levels with their epoch; unknown before the connection is opened."""
        return FinalizedLevels() if self._chooser is None else self._chooser.api_versions.finalized_levels

    @property
    def assumed(self) -> str | None:
        """The release whose table is used because the broker did not answer ApiVersions, else None."""
        return self.api_versions.assumed

    @property
    def tolerated(self) -> dict[str, int]:
        """What responses had that Kafka does not write but its clients accept -> how often; empty if strict."""
        return {} if self._tolerated is None else dict(self._tolerated.counts)

    def newest(self, api: int | str) -> int:
        """The newest common version of an API. Raises UnsupportedVersionError if there is none."""
        return self._chosen().newest(api)

    def version_for(self, message: RequestMessage[object]) -> int:
        """The version that send would use for this request. Raises UnsupportedVersionError."""
        return self._chosen().version_for(message)

    async def open(self) -> None:
        """Connect, negotiate and authenticate, unless the connection is open. Raises BrokerConnectionError."""
        self._closed = False
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                await self._opened()
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._timed_out(self.timeout) from None

    async def send(
        self, message: RequestMessage[R], version: int | None = None, *, timeout: float | None = None
    ) -> R:
        """Send a request and return the response message, None for a Produce with acks=0 once it is written.

        version: by default the newest common version that has every field that the request sets, and that the finalized
        feature levels allow. timeout: seconds, by default the connection's. Raises UnsupportedVersionError (nothing is
        sent then), BrokerConnectionError, BrokerTimeoutError (the connection is closed then), DecodeError.

        A client that exceeds a quota waits as the broker says (KIP-219); where that is longer than the timeout, nothing
        is sent, and the connection stays open.

        With TLS the last 64 KiB that are written may be lost where a connection to a slow broker is closed.

        A call that is cancelled leaves the connection open; if its answer does not come within the connection's
        timeout, the next send opens it again.

        After error 35 (UNSUPPORTED_VERSION) in a response the levels are asked for again in the time that is left, for
        the requests to come. The same request is not sent again: a broker that answers EndTxn so may have begun to end
        the transaction.
        """
        negotiation.check_request(message)
        seconds = self.timeout if timeout is None else check_seconds(timeout, "timeout")
        limit = asyncio.timeout(seconds)
        channel: Channel | None = None
        try:
            async with limit:
                channel = await self._ready()
                # no await from here until it is written: no request goes between the frames of a re-authentication
                known = self.api_versions
                answer = await channel.request(message, self._chosen().version_for(message, version))
        except TimeoutError:
            if not limit.expired():
                raise
            error = self._timed_out(seconds, sent=channel is not None)
            if channel is not None:
                channel.fail(error)
            raise error from None
        if negotiation.is_refused(answer):
            with suppress(TimeoutError):
                async with asyncio.timeout_at(limit.when()):
                    await self._ask_again(known)
        return answer

    async def refresh(self) -> None:
        """Ask the broker again for its API versions and the finalized levels; open the connection if it is not open.

        An assumed release stays assumed until the connection is opened again. Raises BrokerConnectionError.
        """
        limit = asyncio.timeout(self.timeout)
        before, channel = self._chooser, None
        try:
            async with limit:
                channel = await self._ready()
                chooser = self._chosen()
                if chooser is not before or chooser.api_versions.assumed is not None:
                    return  # it was opened just now, or would not answer
                version = max(chooser.usable(api_keys.API_VERSIONS).high, 0)
                chooser.api_versions = await negotiation.ask(channel, self._probe_timeout, version)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._timed_out(self.timeout, sent=channel is not None) from None

    async def close(self) -> None:
        """Close the connection: requests in flight fail. Only open() opens it again."""
        self._bind()
        self._closed = True
        await self._drop()

    def refuse_closed(self) -> None:
        """Raise BrokerConnectionError if close() was called, and open() not since."""
        if self._closed:
            raise self.was_closed()

    async def _ask_again(self, known: NodeApiVersions) -> None:
        """Ask for the levels, unless that was done since these were known. What fails is left to the next request."""
        with suppress(BrokerConnectionError):
            async with self._asking:
                if self.api_versions is known and self.is_open:
                    await self.refresh()

    def was_closed(self) -> BrokerConnectionError:
        """What a call raises during or after close()."""
        return BrokerConnectionError("the connection was closed", address=str(self.address))

    @property
    def _probe_timeout(self) -> float:
        """Seconds to wait for an ApiVersions response."""
        return min(self.probe_timeout, self.timeout / 2)

    def _chosen(self) -> Chooser:
        if self._chooser is None:
            raise BrokerConnectionError("not opened yet: no API versions negotiated", address=str(self.address))
        return self._chooser

    def _timed_out(self, seconds: float, sent: bool = True) -> BrokerTimeoutError:
        left = 0.0 if self._channel is None else self._channel.throttled
        reason = f"no answer within {seconds:g} s" if sent or not left else f"not sent within {seconds:g} s"
        if left:
            reason += f": the broker throttles this client for {left:.1f} s more, as it exceeds a quota"
        return BrokerTimeoutError(reason, address=str(self.address), throttled=0.0 if sent else left)

    def _bind(self) -> None:
        """Bind to the running event loop; forget what a parent process or a closed loop left open."""
        loop = asyncio.get_running_loop()
        if self._process != os.getpid() or self._loop is None or self._loop.is_closed():
            self._begin(loop)
        elif self._loop is not loop:
            raise BrokerConnectionError("the connection belongs to another event loop", address=str(self.address))

    async def _ready(self) -> Channel:
        """The open channel, when the broker reads from it; for one caller after the other, as they came."""
        self._bind()
        async with self._turns:
            while True:
                channel = await self._opened()
                # no await where the broker reads: what the caller writes is not between the frames of a login
                if not await channel.until_read():
                    return channel

    async def _opened(self) -> Channel:
        """The channel, opened again if it was lost."""
        self._bind()
        async with self._lock:
            self.refuse_closed()
            if self._channel is not None and self._channel.is_silent(self.timeout):
                self._channel.fail(self._timed_out(self.timeout))
            if self._channel is None or self._channel.lost is not None:
                await self._drop()
                await self._open()
            if self._channel is None:
                raise self.was_closed()
            return self._channel

    async def _open(self) -> None:
        try:
            try:
                channel = await self._connect()
                api_versions = await negotiation.ask(channel, self._probe_timeout)
            except negotiation.NoAnswer:
                if self._assumed is None:
                    raise
                await self._drop()
                channel, api_versions = await self._connect(), self._assumed
            self._chooser = Chooser(
                api_versions, where=str(self.address), deny=self._deny, unstable=self._unstable,
                levels=self._cluster_levels,
            )  # fmt: skip
            if self._sasl is not None:
                lifetime = await self._sasl.authenticate(channel, self._chooser)
                if lifetime and self._channel is channel:  # not closed in the meantime
                    self._renewal = asyncio.create_task(self._renew(channel, lifetime))
        except BaseException:
            if self._channel is not None:
                self._channel.fail(BrokerConnectionError("the connection was not opened", address=str(self.address)))
            await self._drop()
            raise

    async def _connect(self) -> Channel:
        self._channel = await Channel.open(
            self.address, tls=self._tls, client_id=self.client_id, max_frame=self._max_frame, timeout=self.timeout,
            tolerated=self._tolerated,
        )
        self.refuse_closed()  # closed in the meantime
        return self._channel

    async def _renew(self, channel: Channel, lifetime: float) -> None:
        """Re-authenticate before the session's lifetime (seconds) ends, while the channel is open (KIP-368)."""
        assert self._sasl is not None
        while lifetime:
            await asyncio.sleep(max(lifetime * 0.8, _LEAST_SESSION))
            while await channel.until_read():  # a broker that throttles reads no token either
                pass
            async with self._lock:
                if channel.lost is not None:
                    return
                try:
                    async with asyncio.timeout(self.timeout):
                        lifetime = await self._sasl.authenticate(channel, self._chosen())
                except TimeoutError:
                    channel.fail(BrokerTimeoutError("no answer to re-authentication", address=str(self.address)))
                    return
                except Exception as error:
                    channel.fail(self._sasl.failure(error, self.address))
                    return

    async def _drop(self) -> None:
        renewal, self._renewal = self._renewal, None
        if renewal is not None and renewal is not asyncio.current_task():
            renewal.cancel()
            try:
                await asyncio.wait([renewal])
            except asyncio.CancelledError:
                self._abort()
                raise
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def abort(self) -> None:
        """Close the connection at once, without waiting: for where close() is cancelled, also before it began."""
        self._closed = True  # what is being opened ends, too
        self._abort()

    def _abort(self) -> None:
        """Drop what is open at once."""
        renewal, self._renewal = self._renewal, None
        if renewal is not None:
            renewal.cancel()
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.abort()


async def close_all(connections: Collection[Connection]) -> None:
    """Close connections; where that is cancelled, none stays open."""
    try:
        await asyncio.gather(*(connection.close() for connection in connections))
    except asyncio.CancelledError:
        for connection in connections:
            connection.abort()
        raise


def connect(where: str | Address, **keywords: Unpack[Options]) -> Connection:
    """A connection to the broker at "host:9092", for `async with`.

    client_id: sent with every request ("kwire"). timeout: seconds for opening, and for each send (30). probe_timeout:
    seconds to wait for the ApiVersions response (5). tls: True (the system's trusted certificates) or an
    ssl.SSLContext. sasl: (mechanism, user, password) with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, or for OAUTHBEARER a
    function that returns the token (or an awaitable of it). assume_release: the release to assume if the broker does
    not answer ApiVersions (brokers before 0.10 do not). deny: API -> versions never to use. unstable: also use unstable
    versions. max_frame: bytes of the largest response (100 MiB). strict: refuse responses that no Kafka broker writes
    although Kafka's clients accept them; by default they are read, and counted in .tolerated.
    """
    return Connection(where, **keywords)
