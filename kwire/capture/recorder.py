"""Frames that a proxy forwards, written to frame files without secrets while the connections last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import time_ns

from kwire import messages
from kwire.capture.credentials import Credentials
from kwire.capture.exchange import Connection, Direction, Exchange, Frame, Lost
from kwire.capture.frame_files import FrameWriter
from kwire.capture.framing import MOST_HELD, Conversation
from kwire.capture.redaction import may_have_secrets
from kwire.codec.frames import decode_request
from kwire.errors import KwireError, LimitError

_MOST_DECODED = 1 << 20  # bytes of the largest frame that is decoded whole, which blocks all connections


class Recording:
    """The recording of one connection: takes the bytes of both directions, writes the frames without secrets."""

    def __init__(self, connection: Connection, writer: FrameWriter) -> None:
        self.connection, self.writer = connection, writer
        self.conversation = Conversation(connection, seen=self._write, most_decoded=_MOST_DECODED)
        self._reported = False
        self._credentials = Credentials()

    @property
    def held(self) -> int:
        """Bytes of unfinished frames."""
        return self.conversation.held

    def feed(self, direction: Direction, data: bytes) -> None:
        """Take bytes that were forwarded."""
        self.conversation.feed(direction, data, time_ns() // 1000)
        self._note()

    def give_up(self, reason: str) -> None:
        """Stop recording this connection."""
        self.conversation.give_up(reason)
        self._note()

    def close(self) -> None:
        """End the connection."""
        if not self._reported:
            self.conversation.close()  # which reports also why it is unreadable
            self._reported = True
            self._note()

    def _note(self) -> None:
        for event in self.conversation.take_events():
            if isinstance(event, Lost):
                event.reason = self._without_credentials(event.reason)
                self.writer.note(event)
        reason = self.conversation.pairing.unreadable
        if reason is not None and not self._reported:
            self._reported = True
            self.writer.note(Lost("", self._without_credentials(reason), self.connection))

    def _without_credentials(self, reason: str) -> str:
        repeated = self._credentials.are_in(reason.encode("utf-8", "replace"))
        return "a loss whose text repeats the client's credentials" if repeated else reason

    def _write(self, frame: Frame, exchange: Exchange | None) -> None:
        if exchange is None:  # a raw SASL token, or a frame that cannot be read: its bytes may be a secret
            if frame.direction == "request" and self.conversation.pairing.takes_tokens:
                self._credentials.add(frame.data, self.conversation.pairing.mechanism)
            return
        kind = "Request" if frame.direction == "request" else "Response"
        if may_have_secrets(f"{exchange.api}{kind}", exchange.version, frame.data):
            try:
                if len(frame.data) > _MOST_DECODED:
                    raise LimitError("the frame is too large to be decoded by the tap", limit=_MOST_DECODED)
                if (kind, exchange.api) == ("Request", "SaslAuthenticate"):
                    message = decode_request(frame.data, lenient=True).message
                    assert isinstance(message, messages.SaslAuthenticateRequest)
                    self._credentials.add(message.auth_bytes, self.conversation.pairing.mechanism)
                decoded = exchange.decode_request() if kind == "Request" else exchange.decode_response()
                assert decoded is not None
                frame = Frame(frame.direction, decoded.to_bytes(), frame.time, frame.missing)
            except KwireError:
                reason = f"a {exchange.api} {kind.lower()} whose secrets cannot be removed, as it cannot be read"
                self._leave_out(frame, exchange, reason)
                return
        client_id = (exchange.client_id or "").encode("utf-8", "replace")
        if self._credentials.are_in(frame.data) or self._credentials.are_in(client_id):
            self._leave_out(frame, exchange, f"a {frame.direction} that repeats the client's credentials")
            return
        self.writer.write(self.connection, frame, exchange)

    def _leave_out(self, frame: Frame, exchange: Exchange, reason: str) -> None:
        """Note that a frame is not recorded; of a response its correlation id is, as the request was answered."""
        self.writer.note(Lost("", reason, self.connection, frame.direction, len(frame.data), frame.time))
        if frame.direction == "response":
            missing = len(frame.data) - 4 + frame.missing
            self.writer.write(self.connection, Frame("response", frame.data[:4], frame.time, missing), exchange)


class Recorder:
    """The frame files of a proxy, in a running loop: open(), record() and end() a connection, close() at last.

    name: of the frame files. say: called with one line if the recording stops. The files are flushed every second, so
    that a killed process loses one second at most, and are complete after close(). Raises OSError if it cannot write.
    """

    def __init__(self, name: str, say: Callable[[str], None] = lambda line: None) -> None:
        self.name, self.say = name, say
        self.writer = FrameWriter(name)
        self.connections = 0
        self.failed: OSError | None = None  # why nothing more is recorded
        self.recordings: set[Recording] = set()
        self._held = 0
        self._flusher = asyncio.ensure_future(self._flush())

    def open(self, client: str, broker: str) -> Recording:
        """Begin a connection between two addresses, host:port."""
        recording = Recording(Connection(self.name, self.connections, client, broker), self.writer)
        self.connections += 1
        self.recordings.add(recording)
        return recording

    def record(self, recording: Recording, direction: Direction, data: bytes) -> None:
        """Take bytes that were forwarded. A full disk ends the recording, not the connections."""
        if self.failed is not None or recording not in self.recordings:  # it ended, where the recorder was closed
            return
        self._held -= recording.held
        self._guard(lambda: recording.feed(direction, data))
        if self._held + recording.held > MOST_HELD:
            reason = f"more than {MOST_HELD >> 20} MiB of unfinished frames in memory: not recorded"
            self._guard(lambda: recording.give_up(reason))
        self._held += recording.held

    def end(self, recording: Recording) -> None:
        """End a connection."""
        self.recordings.discard(recording)
        self._held -= recording.held
        if self.failed is None:
            self._guard(recording.close)

    async def close(self) -> None:
        """End all connections and complete the files."""
        self._flusher.cancel()
        try:
            await asyncio.gather(self._flusher, return_exceptions=True)
        finally:  # also where this is cancelled
            for recording in list(self.recordings):
                self.end(recording)
            self._guard(self.writer.close)

    async def _flush(self) -> None:
        """Flush the files every second if frames were added."""
        written = 0
        while True:
            await asyncio.sleep(1)
            if self.writer.frames != written and self.failed is None:
                written = self.writer.frames
                self._guard(self.writer.flush)

    def _guard(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            if self.failed is None:
                self.failed = error
                self.say(f"{self.name}: {error.strerror or error}: recording stopped")
