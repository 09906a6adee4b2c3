"""Requests paired with their responses on one connection, by correlation id; losses are reported, not guessed."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from kwire import messages
from kwire.capture.exchange import Connection, Direction, Exchange, Frame, Lost, shortened
from kwire.codec.frames import Request, decode_request, decode_request_header
from kwire.codec.messages import encode
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.schema import api_keys

_NAMELESS = (7, 0)  # ControlledShutdown v0, whose header has no client id
_MOST_TRAILING = 16  # bytes that may follow the first request of a connection
_MECHANISM = re.compile(r"[A-Z0-9_-]{1,20}")  # the name of one (RFC 4422): any other text is not repeated
_OVERHEAD = 1024  # bytes that a held frame costs beside its own
_MOST_KINDS = 1000  # of losses between two calls of take_events
_MOST_KEY, _MOST_VERSION = 1000, 100  # up to these, an API unknown to kwire may be a newer one; above, it is not Kafka


@dataclass(slots=True)
class _Tokens:
    """Raw SASL tokens after a SaslHandshake v0. waiting: tokens without an answer yet; seen: tokens; bytes: of all."""

    mechanism: str
    waiting: int = 0
    seen: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Pairing:
    """Pairs the frames of one connection. Exchanges and losses are kept in .events, in order, until they are taken.

    held: bytes of frames that wait for their request or response; most_decoded: bytes of the largest request that is
    decoded whole; of larger ones only the header is.
    """

    connection: Connection
    events: list[Exchange | Lost] = field(default_factory=list)
    held: int = 0
    readable: bool = False  # a request was read: this is Kafka
    unreadable: str | None = None  # why nothing more of this connection is read
    newest: int = -1  # correlation id of the last request
    mechanism: str | None = None  # of the client's last SaslHandshake
    most_decoded: int = 1 << 31
    _losses: dict[tuple[str, Direction | None], Lost] = field(default_factory=dict)  # among the events
    _waiting: dict[int, deque[Exchange]] = field(default_factory=dict)
    _early: OrderedDict[int, deque[Frame]] = field(default_factory=OrderedDict)  # whose first is found at once
    _broken: set[Direction] = field(default_factory=set)
    _tokens: _Tokens | None = None
    _unread: int = 0

    def request(self, frame: Frame) -> Exchange | None:
        """Take the client's next frame; return the exchange that it begins, None if it cannot be read."""
        if self.unreadable is not None:
            self.count_unread(len(frame.data) + frame.missing + 4)
            return None
        if not frame.data and self.readable and self._tokens is None:
            reason = "a request of which the capture has the size only" if frame.missing else "an empty request"
            self.lose(reason, "request", frame.missing, frame.time)
            return None
        try:
            exchange = self._read(frame)
        except KwireError as error:
            if self._tokens is not None:
                self._tokens.waiting += 1
                self._token(frame)
                if self._early:  # the server's token was seen before the client's
                    self.response(self._take_early(next(iter(self._early))))
                return None
            if not self.readable:
                reason = f"not the Kafka protocol: {_first_bytes(frame.data)}"
                if isinstance(error, LimitError):
                    reason = str(error)
                elif frame.missing:
                    reason = "the first request is cut inside its header: the connection cannot be read"
                self.give_up(reason)
                self.count_unread(len(frame.data) + frame.missing + 4)
                return None
            self.lose(f"a request that cannot be read: {error}", "request", len(frame.data), frame.time)
            return None
        self.readable, self.newest = True, exchange.correlation_id
        if self._tokens is not None and exchange.api_key != api_keys.SASL_HANDSHAKE:
            self._end_tokens()
        if exchange.outcome == "one-way":
            self.events.append(exchange)
            return exchange
        if exchange.correlation_id in self._early:
            self._answer(exchange, self._take_early(exchange.correlation_id))
        else:
            self._waiting.setdefault(exchange.correlation_id, deque()).append(exchange)
            self.held += len(frame.data) + _OVERHEAD
        return exchange

    def response(self, frame: Frame) -> Exchange | None:
        """Take the server's next frame; return the exchange that it completes, None if that is not (yet) known."""
        if self.unreadable is not None:
            self.count_unread(len(frame.data) + frame.missing + 4)
            return None
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        waiting = self._waiting.get(correlation_id) if len(frame.data) >= 4 else None
        if self._tokens is not None and self._tokens.waiting and not waiting:
            self._tokens.waiting -= 1
            self._token(frame)
            return None
        if len(frame.data) < 4 and self._tokens is None:
            self.lose("a response that cannot be read: it has no header", "response", len(frame.data), frame.time)
            return None
        if waiting:
            exchange = waiting.popleft()
            if not waiting:
                del self._waiting[correlation_id]
            self.held -= len(exchange.request.data) + _OVERHEAD
            self._answer(exchange, frame)
            return exchange
        if "request" in self._broken and correlation_id <= self.newest:
            self._orphan(frame)  # its request was in the gap: a later one of that id is another
        else:
            self._early.setdefault(correlation_id, deque()).append(frame)
            self.held += len(frame.data) + _OVERHEAD
        return None

    def _take_early(self, correlation_id: int) -> Frame:
        frames = self._early[correlation_id]
        frame = frames.popleft()
        if not frames:
            del self._early[correlation_id]
        self.held -= len(frame.data) + _OVERHEAD
        return frame

    def waits_for(self, correlation_id: int) -> Exchange | None:
        """The exchange that waits for a response with this correlation id, or None."""
        waiting = self._waiting.get(correlation_id)
        return waiting[0] if waiting else None

    def broken(self, direction: Direction) -> None:
        """Note that frames of that direction are missing from here on."""
        self._broken.add(direction)

    def lose(self, reason: str, direction: Direction | None = None, size: int | None = None,
             time: int | None = None) -> None:
        """Report a loss on this connection; equal ones between two calls of take_events are counted as one."""
        if (reason, direction) not in self._losses and len(self._losses) >= _MOST_KINDS:
            reason = "further losses, not listed"
        known = self._losses.get((reason, direction))
        if known is None:
            known = Lost(self.connection.capture, reason, self.connection, direction, size, time)
            self._losses[reason, direction] = known
            self.events.append(known)
            return
        known.count += 1
        if size is not None:
            known.bytes = (known.bytes or 0) + size

    def take_events(self) -> list[Exchange | Lost]:
        """The exchanges and losses since the last call, in order."""
        events, self.events = self.events, []
        self._losses.clear()
        return events

    def give_up(self, reason: str) -> None:
        """Stop reading this connection; the bytes that follow are counted, and reported when it closes."""
        if self.unreadable is None:
            self._finish()
            self.unreadable = reason

    def count_unread(self, size: int) -> None:
        """Count bytes of a connection that is not read."""
        self._unread += size

    def relieve(self) -> None:
        """Stop waiting for the requests or responses of held frames: with so many, one direction must be missing."""
        self.lose(f"{self.held >> 20} MiB of frames whose requests or responses are not in the capture")
        self._broken |= {"request", "response"}
        self._finish()

    def close(self) -> None:
        """End the connection, or the capture: waiting requests are unanswered, or lost if bytes are missing."""
        self._finish()
        if self.unreadable is not None:
            self.lose(self.unreadable, size=self._unread)
            self._unread = 0

    def _finish(self) -> None:
        self._end_tokens()
        waiting = [exchange for exchanges in self._waiting.values() for exchange in exchanges]
        for exchange in waiting:
            exchange.outcome = "lost" if "response" in self._broken or exchange.request.missing else "unanswered"
        self.events += waiting
        self._waiting.clear()
        self._drop_early()
        self.held = 0

    def _drop_early(self) -> None:
        for frames in self._early.values():
            for frame in frames:
                self.held -= len(frame.data) + _OVERHEAD
                self._orphan(frame)
        self._early.clear()

    def _orphan(self, frame: Frame) -> None:
        self.lose("a response whose request is not in the capture", "response", len(frame.data), frame.time)

    def _answer(self, exchange: Exchange, response: Frame) -> None:
        exchange.response = response
        exchange.outcome = "lost" if exchange.request.missing or response.missing else "answered"
        self.events.append(exchange)

    def _read(self, frame: Frame) -> Exchange:
        """The exchange that a request begins. Raises KwireError if the bytes are not a request."""
        large = len(frame.data) > self.most_decoded
        if large and not self.readable:
            raise LimitError("the first request is too large to be checked", limit=self.most_decoded)
        try:
            if frame.missing or large:
                header, request = decode_request_header(frame.data, lenient=True), None
            else:
                request = decode_request(frame.data, lenient=True) if self.readable else decode_first(frame.data)
                header = request.header
        except UnsupportedVersionError as error:
            header, request = error.header, None
            key, version = header.request_api_key, header.request_api_version
            if self._tokens is not None or not (0 <= key <= _MOST_KEY and 0 <= version <= _MOST_VERSION):
                raise
        key, version = header.request_api_key, header.request_api_version
        client_id = None if (key, version) == _NAMELESS else header.client_id
        exchange = Exchange(self.connection, key, version, header.correlation_id, client_id, frame)
        if request is not None:
            if not request.has_response:
                exchange.outcome = "one-way"
            elif isinstance(message := request.message, messages.ApiVersionsRequest) and request.version >= 3:
                software = f"{message.client_software_name} {message.client_software_version}".strip()
                self.connection.software = shortened(software or None)
            elif isinstance(message, messages.SaslHandshakeRequest):
                self.mechanism = message.mechanism
                if request.version == 0:
                    self._end_tokens()
                    known = _MECHANISM.fullmatch(message.mechanism)
                    self._tokens = _Tokens(message.mechanism if known else "the mechanism has no valid name")
        elif large and key == api_keys.PRODUCE and _acks(frame.data, header) == 0:
            exchange.outcome = "one-way"
        return exchange

    @property
    def takes_tokens(self) -> bool:
        """Whether the client's next frame may be a raw SASL token."""
        return self._tokens is not None

    def _token(self, frame: Frame) -> None:
        assert self._tokens is not None
        self._tokens.seen += 1
        self._tokens.bytes += len(frame.data) + frame.missing

    def _end_tokens(self) -> None:
        if self._tokens is not None and self._tokens.seen:
            tokens = f"{self._tokens.seen} raw SASL tokens ({self._tokens.mechanism})"
            self.lose(f"{tokens} after SaslHandshake v0: not readable", size=self._tokens.bytes)
        self._tokens = None


def _acks(data: bytes, header: Any) -> int:
    """The acks of a Produce request of which only the header was decoded."""
    version = header.request_api_version
    at = len(encode(header, 2 if version >= 9 else 1))
    if version >= 9:
        size = shift = 0
        while at < len(data) and shift < 35:
            size |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        at += max(0, size - 1)
    elif version >= 3:
        at += 2 + max(0, int.from_bytes(data[at : at + 2], "big", signed=True))
    return int.from_bytes(data[at : at + 2], "big", signed=True)


def decode_first(data: bytes) -> Request:
    """Decode the first request of a connection, which may be another protocol.

    A few bytes may follow it: librdkafka 0.9 to 1.3 begins with an ApiVersions v0 that has four bytes too many, and
    later versions have a few after Metadata; brokers ignore them. Raises DecodeError, UnsupportedVersionError.
    """
    try:
        return decode_request(data)
    except DecodeError:
        request = decode_request(data, lenient=True)
    if len(request.trailing) > _MOST_TRAILING or not (request.client_id or "").isprintable():
        what = f"{request.name} v{request.version}"
        raise DecodeError(f"{len(request.trailing)} bytes remaining after the message", what=what)
    return request


def _first_bytes(data: bytes) -> str:
    """Four of them: they may be of a secret."""
    return f"the connection begins with {data[:4].hex(' ')}" if data else "the connection begins with an empty frame"
