"""The bytes of one connection split into frames and paired; after a gap only from a proven start of a frame."""

from __future__ import annotations

from collections.abc import Callable

from kwire import schema
from kwire.capture.exchange import Connection, Direction, Exchange, Frame, Lost
from kwire.capture.pairing import Pairing, decode_first
from kwire.codec.frames import decode_response
from kwire.defaults import MAX_FRAME_BYTES
from kwire.errors import KwireError

_PROOF_LIMIT = 16 << 20  # bytes of the largest frame that is waited for to prove where frames begin
_MOST_UNDECIDED = 32  # segments that may begin a frame, which more bytes or requests will decide
MOST_WAITING = 64 << 20  # bytes of frames of one connection that wait for their request or response
MOST_HELD = 256 << 20  # bytes of all connections
_VERSIONS = {row.key: row.versions for row in schema.apis()}


class FrameSplitter:
    """Splits the bytes of one direction into frames.

    emit: called with each frame; lose: called with (reason, bytes) for each loss; proves: whether a frame, or its first
    four bytes, certainly belongs to this direction (None: undecided yet), asked while the start of frames is unknown.
    """

    def __init__(self, direction: Direction, emit: Callable[[Frame], object], lose: Callable[[str, int], None],
                 proves: Callable[[bytes], bool | None], max_frame: int = MAX_FRAME_BYTES) -> None:
        self.direction, self.max_frame = direction, max_frame
        self._emit, self._lose, self._proves = emit, lose, proves
        self._buffer = bytearray()
        self._lacking = 0  # bytes of the current frame from its first gap on, which are not in the buffer
        self._size: int | None = None  # of the current frame, once its four bytes were read
        self._searching = False
        self._starts: list[int] = []  # while searching: where segments begin in the buffer
        self._skipped = 0
        self.wrong: str | None = None  # what the bytes are if they are not frames

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._buffer)

    def search(self) -> None:
        """Search for the start of a frame, unknown from here on."""
        self._searching, self._size, self._lacking = True, None, 0
        self._skipped += len(self._buffer)
        self._buffer.clear()
        self._starts.clear()

    def feed(self, data: bytes, time: int | None, boundary: bool = True) -> None:
        """Take the next bytes; boundary: a TCP segment begins with them."""
        if self._searching:
            self._search(data, time, boundary)
        else:
            self._split(data, time)

    def hole(self, size: int, time: int | None) -> None:
        """Take a gap of size bytes that the capture lacks."""
        if self._searching:
            self.search()
            return
        if self._size is None or size > self._rest():
            if self._size is not None:
                self._lacking += self._rest()
                self._done(time)
            self.search()
            return
        self._lacking += size
        if not self._rest():
            self._done(time)

    def end(self) -> None:
        """End the stream: bytes left over are reported as lost."""
        left = len(self._buffer) + self._skipped
        if left and self._searching:
            self._lose("bytes in which no start of a frame could be proven", left)
        elif left or self._size is not None:
            self._lose("a frame truncated by the end of the stream", left)
            if self._size is not None:
                self._lacking += self._rest()
                self._done(None)
        self._buffer.clear()
        self._skipped = 0

    def _rest(self) -> int:
        """Bytes of the current frame that are still to come."""
        return (self._size or 0) - len(self._buffer) - self._lacking

    def _split(self, data: bytes, time: int | None) -> None:
        at = 0
        while self.wrong is None:
            if self._size is None:
                needed = 4 - len(self._buffer)
                self._buffer += data[at : at + needed]
                at += needed
                if len(self._buffer) < 4:
                    return
                size = int.from_bytes(self._buffer, "big", signed=True)
                if not 0 <= size <= self.max_frame:
                    self.wrong = _protocol(bytes(self._buffer))
                    return
                self._size = size
                self._buffer.clear()
            rest = self._rest()
            part = data[at : at + rest]
            at += len(part)
            if self._lacking:
                self._lacking += len(part)
            else:
                self._buffer += part
            if len(part) < rest:
                return
            self._done(time)

    def _done(self, time: int | None) -> None:
        frame = Frame(self.direction, bytes(self._buffer), time, self._lacking)
        self._buffer.clear()
        self._size, self._lacking = None, 0
        self._emit(frame)

    def _search(self, data: bytes, time: int | None, boundary: bool) -> None:
        """Wait for a segment that begins with a whole frame beyond doubt; continue from there."""
        if boundary:
            self._starts.append(len(self._buffer))
        elif not self._starts:
            self._skipped += len(data)
            return
        self._buffer += data
        self.retry(time)

    def retry(self, time: int | None) -> None:
        """Search again, now that proves may decide otherwise."""
        if not self._starts:
            return
        undecided = []
        for start in self._starts:
            verdict = self._verdict(start)
            if verdict:
                self._found(start, time)
                return
            if verdict is None and len(self._buffer) - start <= _PROOF_LIMIT:
                undecided.append(start)
        del undecided[:-_MOST_UNDECIDED]
        keep = undecided[0] if undecided else len(self._buffer)
        self._skipped += keep
        del self._buffer[:keep]
        self._starts = [start - keep for start in undecided]

    def _found(self, start: int, time: int | None) -> None:
        frames, skipped = bytes(self._buffer[start:]), self._skipped + start
        self._buffer.clear()
        self._starts.clear()
        self._searching, self._skipped = False, 0
        if skipped:
            self._lose("bytes before the first proven start of a frame", skipped)
        self._split(frames, time)

    def _verdict(self, start: int) -> bool | None:
        """Whether a frame begins here in the buffer; None: undecided until more bytes come."""
        at, data = start + 4, self._buffer  # no view of it: what a profiler holds would keep it from growing
        if len(data) < start + 8:
            return None
        size = int.from_bytes(data[start:at], "big", signed=True)
        if not 4 < size <= min(self.max_frame, _PROOF_LIMIT):  # no frame has four bytes, which alone prove nothing
            return False
        verdict = self._proves(bytes(data[at : at + 4]))
        if not verdict or len(data) < at + size:
            return verdict and None
        return self._proves(bytes(data[at : at + size]))


class Conversation:
    """Both directions of one connection.

    seen: called with each frame once it is paired, and its exchange (None if the frame cannot be read). Exchanges and
    losses are kept until take_events. most_decoded: as in Pairing.
    """

    def __init__(self, connection: Connection, max_frame: int = MAX_FRAME_BYTES,
                 seen: Callable[[Frame, Exchange | None], None] | None = None, most_decoded: int = 1 << 31) -> None:
        self.connection = connection
        self.pairing = Pairing(connection, most_decoded=most_decoded)
        self._seen = seen
        self.requests_late = False  # responses came first: their requests may still come
        self.splitters: dict[Direction, FrameSplitter] = {
            "request": FrameSplitter("request", self._take_request, self._loser("request"), is_request, max_frame),
            "response": FrameSplitter(
                "response", self._take_response, self._loser("response"), self._answers, max_frame),
        }

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return self.pairing.held + sum(splitter.held for splitter in self.splitters.values())

    def take_events(self) -> list[Exchange | Lost]:
        """The exchanges and losses since the last call, in order."""
        return self.pairing.take_events()

    def feed(self, direction: Direction, data: bytes, time: int | None, boundary: bool = True) -> None:
        """Take the next bytes of a direction; time as in Frame; boundary: a TCP segment begins with them."""
        if self.pairing.unreadable is not None:
            self.pairing.count_unread(len(data))
            return
        splitter = self.splitters[direction]
        splitter.feed(data, time, boundary)
        if splitter.wrong is not None:
            self.give_up(splitter.wrong)
        elif self.pairing.unreadable is not None:
            self._discard()
        elif self.pairing.held > MOST_WAITING:
            self.pairing.relieve()

    def hole(self, direction: Direction, size: int, time: int | None, why: str) -> None:
        """Take a gap of size bytes that the capture lacks."""
        if self.pairing.unreadable is not None:
            return
        self.pairing.lose(why, direction, size, time)
        self.splitters[direction].hole(size, time)
        self.pairing.broken(direction)

    def begin_anywhere(self, direction: Direction) -> None:
        """Search for the start of a frame: the capture begins inside this direction's stream."""
        self.splitters[direction].search()
        self.pairing.broken(direction)

    def give_up(self, reason: str) -> None:
        """Stop reading this connection; responses that it still waits for are lost."""
        self.pairing.broken("request")
        self.pairing.broken("response")
        self.pairing.give_up(reason)
        self._discard()

    def _discard(self) -> None:
        """Free the buffers of a connection that is not read any more; their bytes count as unread."""
        for splitter in self.splitters.values():
            self.pairing.count_unread(splitter.held)
            splitter.search()

    def requests_came(self, all_of_them: bool, time: int | None) -> None:
        """Search the responses again after new requests; all_of_them: no earlier request is still to come."""
        self.requests_late = not all_of_them
        self.splitters["response"].retry(time)

    def close(self) -> None:
        """End the connection, or the capture."""
        self.requests_came(True, None)
        if self.pairing.unreadable is None:
            for splitter in self.splitters.values():
                splitter.end()
        self.pairing.close()

    def _take_request(self, frame: Frame) -> None:
        exchange = self.pairing.request(frame)
        if self._seen is not None:
            self._seen(frame, exchange)

    def _take_response(self, frame: Frame) -> None:
        exchange = self.pairing.response(frame)
        if self._seen is not None:
            self._seen(frame, exchange)

    def _loser(self, direction: Direction) -> Callable[[str, int], None]:
        return lambda reason, size: self.pairing.lose(reason, direction, size)

    def _answers(self, data: bytes) -> bool | None:
        """Whether a response frame (or its first four bytes) answers a waiting request; None: perhaps a later one."""
        correlation_id = int.from_bytes(data[:4], "big", signed=True)
        exchange = self.pairing.waits_for(correlation_id)
        if exchange is None:
            return None if self.requests_late and correlation_id > self.pairing.newest else False
        if len(data) == 4:
            return True
        try:
            decode_response(data, api=exchange.api_key, version=exchange.version)
        except KwireError:
            return False
        return True


def is_request(data: bytes) -> bool:
    """Whether a frame is a request with no byte left over, or its first four bytes an API key and a valid version."""
    if len(data) == 4:
        versions = _VERSIONS.get(int.from_bytes(data[:2], "big", signed=True))
        return versions is not None and int.from_bytes(data[2:], "big", signed=True) in versions
    try:
        decode_first(data)
    except KwireError:
        return False
    return True


def begins_request(data: bytes) -> bool:
    """Whether a segment looks like the start of a request: size, API key and version, client id."""
    if len(data) < 15 or not 10 <= int.from_bytes(data[:4], "big", signed=True) <= MAX_FRAME_BYTES:
        return False
    size = int.from_bytes(data[12:14], "big", signed=True)
    name = data[14 : 14 + size]
    return is_request(data[4:8]) and 0 < size < 256 and len(name) == size and name.isascii() and not name.count(0)


def _protocol(head: bytes) -> str:
    """Which protocol a stream is, by its first four bytes; not by more of them, as they may be of a secret."""
    if head[0] in (0x14, 0x15, 0x16, 0x17) and head[1] == 3 and head[2] <= 4:
        return "TLS: not readable"
    if head[:4] in (b"GET ", b"POST", b"PUT ", b"HEAD", b"HTTP", b"PRI ", b"OPTI", b"CONN", b"DELE"):
        return "HTTP, not the Kafka protocol"
    return f"not the Kafka protocol: {head.hex(' ')} is not the size of a frame"
