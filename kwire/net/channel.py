"""One TCP (or TLS) connection: requests out, responses matched to them by correlation id."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import re
import socket
import ssl
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakSet

from kwire import messages, schema
from kwire.codec.frames import FrameReader, decode_response, encode_request, pack_frame
from kwire.defaults import MAX_FRAME_BYTES
from kwire.errors import DecodeError, LimitError
from kwire.net.address import Address
from kwire.net.dialing import dial
from kwire.net.errors import BrokerConnectionError, FrameSizeError
from kwire.net.streams import write
from kwire.schema import api_keys
from kwire_c.plan import message_of

if TYPE_CHECKING:
    from kwire_c.message_class import Message, RequestMessage

R = TypeVar("R")  # the response of a request

_CHUNK = 1 << 16
_MOST_KINDS = 1000
_CLOSING = 1.0  # seconds that a clean close may take
_LAST_TO_DELAY = "1.1"  # the last release whose brokers delay the response; later ones mute the connection after it

# the first bytes of other protocols, where the first frame should begin
_OTHER_PROTOCOLS = (
    (b"HTTP", "answers in HTTP: not a Kafka broker"),
    (b"\x15\x03", "answers in TLS: this port needs tls=True (security.protocol=SSL)"),
    (b"\x16\x03", "answers in TLS: this port needs tls=True (security.protocol=SSL)"),
    (b"SSH-", "answers in SSH: not a Kafka broker"),
    (b"220 ", "answers in SMTP or FTP: not a Kafka broker"),
)


class Tolerated:
    """Counts what lenient reading accepted although Kafka does not write it so: .counts, at most 1,000 kinds."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, deviation: str) -> None:
        """Count one deviation."""
        kind = re.sub(r"\[\d+\]", "[]", deviation)  # one kind for all elements of an array
        if kind not in self.counts and len(self.counts) >= _MOST_KINDS:
            kind = "(other kinds)"
        self.counts[kind] += 1


class Channel:
    """One open connection. Once it has failed or the peer has closed it, .lost says why and every call raises it."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
        *, client_id: str | None, max_frame: int, tolerated: Tolerated | None = None,
    ) -> None:  # fmt: skip
        self.address = address
        self.client_id = client_id
        self.tolerated = tolerated
        self.lost: BrokerConnectionError | None = None
        self._reader, self._writer = reader, writer
        if not self.has_tls and not writer.is_closing():  # whose buffer asyncio cannot wait for to be empty
            writer.transport.set_write_buffer_limits(high=0)  # what is drained is the system's, also where this closes
        self._frames = FrameReader(max_frame)
        self._started = False  # whether a whole frame was received
        self._correlation_id = 0
        self._waiting: dict[int, tuple[asyncio.Future[Any], int, int]] = {}  # id -> (answer, api key, version)
        # id -> when its caller was cancelled, api key, version: its response is dropped
        self._cancelled: dict[int, tuple[float, int, int]] = {}
        self._throttled_until = -math.inf  # by the loop's clock: the broker reads nothing before
        self._token: asyncio.Future[bytes] | None = None  # waits for a frame without header (old SASL)
        # not create_task: an eager task factory would begin to read before there is a task to end
        self._task = asyncio.Task(self._read(), loop=asyncio.get_running_loop(), name=f"kwire reads {address}")
        _ALL.add(self)

    @classmethod
    async def open(
        cls, address: Address, *, tls: ssl.SSLContext | None = None, client_id: str | None = None,
        max_frame: int = MAX_FRAME_BYTES, timeout: float = 30, tolerated: Tolerated | None = None,
    ) -> Channel:  # fmt: skip
        """Connect, with tls after a TLS handshake. timeout: seconds for both. Raises BrokerConnectionError.

        tolerated: counts what only lenient reading accepts in responses; None: reading is strict.
        """
        secure: dict[str, Any] = {}
        if tls is not None:
            secure = {"ssl": tls, "server_hostname": address.host, "ssl_handshake_timeout": max(timeout, 0.01),
                      "ssl_shutdown_timeout": _CLOSING}  # fmt: skip
        try:
            reader, writer = await dial(address.host, address.port, timeout, limit=4 * _CHUNK, **secure)
        except OSError as error:
            raise BrokerConnectionError(_reason(error, tls is not None), address=str(address)) from None
        except (ValueError, OverflowError):  # a host name that IDNA refuses, a port out of range in Metadata
            raise BrokerConnectionError("invalid host name or port", address=str(address)) from None
        with contextlib.suppress(OSError, AttributeError):  # uvloop has no socket where it has just ended
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(address, reader, writer, client_id=client_id, max_frame=max_frame, tolerated=tolerated)

    @property
    def has_tls(self) -> bool:
        """Whether this is a connection with TLS."""
        return self._writer.get_extra_info("ssl_object") is not None

    def send(self, message: RequestMessage[R], version: int) -> asyncio.Future[R] | None:
        """Write a request; return the future of its response, None where there is none (a Produce with acks=0).

        Nothing is awaited here: what one caller writes between two awaits stays together.
        """
        self._check()
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        number = self._correlation_id
        frame = encode_request(message, version, correlation_id=number, client_id=self.client_id)
        write(self._writer, pack_frame(frame))
        definition = message_of(message).schema
        is_produce = definition.api_key == api_keys.PRODUCE  # first: the class is made only for it
        if is_produce and isinstance(message, messages.ProduceRequest) and message.acks == 0:
            return None
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (answer, definition.api_key, version)
        answer.add_done_callback(lambda _: self._forget(number))
        return answer

    async def request(self, message: RequestMessage[R], version: int) -> R:
        """Send one request and return its response, None where there is none."""
        answer = self.send(message, version)
        try:
            await self.drain()
        except asyncio.CancelledError:
            if answer is not None:
                answer.cancel()
            raise
        return cast(R, None) if answer is None else await answer

    async def exchange_token(self, token: bytes) -> bytes:
        """Send a frame without header and read one: SASL below 1.0 (SaslHandshake v0). One at a time."""
        self._check()
        self._token = asyncio.get_running_loop().create_future()
        write(self._writer, pack_frame(token))
        return await self._token

    async def drain(self) -> None:
        """Wait until the peer has read enough of what was written."""
        try:
            await self._writer.drain()
        except OSError as error:
            self.fail(self._error(f"connection lost: {_os_text(error)}"))
            self._check()

    def fail(self, error: BrokerConnectionError, cause: BaseException | None = None) -> None:
        """Close the connection at once: requests in flight fail with this error, or with its cause."""
        if self.lost is None:
            self.lost = error
        self._writer.transport.abort()
        self._task.cancel()
        if self._token is not None:
            self._fail(self._token, cause)
        for number, (answer, _, _) in list(self._waiting.items()):
            self._fail(answer, cause)
            self._waiting.pop(number, None)  # so that each is failed once, where many callers fail the connection

    def _fail(self, answer: asyncio.Future[Any], cause: BaseException | None) -> None:
        if not answer.done():
            answer.set_exception(cause or cast(BrokerConnectionError, self.lost))
            answer.exception()  # retrieved: no "exception was never retrieved" where the caller was cancelled

    async def close(self) -> None:
        """Close the connection: what was written is still sent, requests in flight fail."""
        try:
            if self.lost is None:
                self._writer.close()
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(_CLOSING):
                        await self._writer.wait_closed()
        finally:
            self.abort()  # also where this is cancelled
        await asyncio.wait([self._task])

    def abort(self) -> None:
        """Close the connection at once, without waiting: requests in flight fail."""
        self.fail(self._error("the connection was closed"))

    def disown(self, null: int) -> None:
        """Replace the socket's descriptor by null, a descriptor of /dev/null, in this process only."""
        connected = self._writer.get_extra_info("socket")
        if connected is not None and connected.fileno() >= 0:  # else it has ended
            os.dup2(null, connected.fileno(), inheritable=False)

    @property
    def throttled(self) -> float:
        """Seconds for which the broker still reads no requests of this connection, as a quota is exceeded (KIP-219)."""
        left = self._throttled_until - self._task.get_loop().time()
        return max(0.0, left) if self.lost is None else 0.0

    async def until_read(self) -> bool:
        """Wait while the broker throttles this client, or until the connection is lost; whether there was a wait."""
        left = self.throttled
        if left:
            await asyncio.wait([self._task], timeout=left)
        return left > 0

    def _error(self, reason: str) -> BrokerConnectionError:
        return BrokerConnectionError(reason, address=str(self.address))

    def _check(self) -> None:
        if self.lost is not None:
            raise self.lost

    def _forget(self, number: int) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None and self.lost is None:  # before its response was received
            self._cancelled[number] = self._task.get_loop().time(), *waiting[1:]

    def is_silent(self, seconds: float) -> bool:
        """Whether a request has no answer so long after its caller was cancelled; later ones will have none either.

        Brokers answer in order: while the caller of an earlier request waits, it decides how long.
        """
        number, (since, *_) = next(iter(self._cancelled.items()), (0, (math.inf, 0, 0)))
        return self._task.get_loop().time() - since > seconds and next(iter(self._waiting), number) >= number

    async def _read(self) -> None:
        head = b""
        try:
            while data := await self._reader.read(_CHUNK):
                head = head if self._started else (head + data)[:8]
                for frame in self._frames.feed(data):
                    self._take(frame)
                self._frames.feed(b"")  # raises for an invalid size after them
            self.fail(self._error(self._ended()))
        except BrokerConnectionError as error:
            self.fail(error)
        except OSError as error:
            self.fail(self._error(f"connection lost: {_os_text(error)}"))
        except (LimitError, DecodeError) as error:
            self.fail(self._not_kafka(head, error))
        except MemoryError as error:
            self.fail(self._error("connection closed: out of memory"), error)
        finally:
            self.fail(self._error("the connection was closed"))  # unless there is a reason already

    def _ended(self) -> str:
        if self._frames.pending:
            return "closed the connection in the middle of a response"
        in_flight = f", {len(self._waiting)} requests in flight" if self._waiting else ""
        return f"closed the connection{in_flight}"

    def _not_kafka(self, head: bytes, error: LimitError | DecodeError) -> BrokerConnectionError:
        if not self._started:
            for begin, reason in _OTHER_PROTOCOLS:
                if head.startswith(begin):
                    return self._error(reason)
        if isinstance(error, LimitError):
            reason = f"frame of {error.needed} bytes exceeds max_frame ({error.limit}): not a Kafka broker?"
            return FrameSizeError(reason, address=str(self.address), limit=error.limit, needed=error.needed)
        return self._error(f"not a Kafka frame: {error}")

    def _take(self, frame: bytes) -> None:
        if self._token is not None and not self._token.done():
            self._token.set_result(frame)
            return
        number = int.from_bytes(frame[:4], "big", signed=True) if len(frame) >= 4 else None
        if number in self._cancelled:
            _, key, version = self._cancelled.pop(number)
            with suppress(ValueError, MemoryError):
                self._heed(decode_response(frame, api=key, version=version, lenient=True).message, key, version)
            return
        if number is None or number not in self._waiting:
            raise self._error(f"response with correlation id {number}, which no request in flight has")
        self._started = True
        answer, key, version = self._waiting.pop(number)
        if answer.done():  # its caller was just cancelled
            return
        try:
            message = self._read_answer(frame, key, version)
            self._heed(message, key, version)
            answer.set_result(message)
        except (ValueError, MemoryError) as error:
            answer.set_exception(error)

    def _heed(self, message: Message, key: int, version: int) -> None:
        """Note for how long the broker reads nothing more, if an answer says so."""
        throttled = getattr(message, "throttle_time_ms", 0) / 1000
        if throttled > 0 and _answers_before_it_throttles(key, version):
            self._throttled_until = max(self._throttled_until, self._task.get_loop().time() + throttled)

    def _read_answer(self, frame: bytes, key: int, version: int) -> Message:
        try:
            return decode_response(frame, api=key, version=version).message
        except DecodeError as error:
            if self.tolerated is None:
                raise
            response = decode_response(frame, api=key, version=version, lenient=True)
            self.tolerated.add(f"{response.name}Response v{response.version} {error.path}: {error.reason}")
            return response.message


@lru_cache(None)
def _answers_before_it_throttles(key: int, version: int) -> bool:
    """Whether a broker answers such a request at once, and then reads no more: KIP-219 made a new version of each."""
    before = dict(schema.api_by_release(key)).get(_LAST_TO_DELAY)
    return before is None or version > before.max_version


_ALL: WeakSet[Channel] = WeakSet()


def _disown_all() -> None:
    """Run in a child of fork: the open connections, and the epoll that watches them, belong to the parent.

    Finalizers in the child, and writes by mistake, then do not reach them.
    """
    inherited = list(_ALL)
    if inherited:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for channel in inherited:
            channel.disown(null)
        os.close(null)


os.register_at_fork(after_in_child=_disown_all)


def _os_text(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {_ssl_text(error)}"
    if error.errno and str(error.strerror).startswith("Connect call failed"):  # asyncio's, which says not why
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def _ssl_text(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


def _reason(error: OSError, tls: bool) -> str:
    """Why a connection could not be opened."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        text = _ssl_text(error)
        if "alert" in text and ("certificate" in text or "handshake failure" in text):
            return f"TLS: {text} (is a client certificate wanted, or another one?)"
        return f"TLS: {text}" + (" (a port without TLS?)" if "wrong version number" in text else "")
    if isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error):  # one of several
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return f"unknown host: {_os_text(error)}"
    if tls and isinstance(error, ConnectionError):
        hint = "a port without TLS, or is a client certificate wanted?"
        return f"TLS: closed during the handshake: {_os_text(error)} ({hint})"
    return f"cannot connect: {_os_text(error)}"
