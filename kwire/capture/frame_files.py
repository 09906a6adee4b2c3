"""Frame files: NAME.jsonl.gz, one line a frame, beside NAME.bin.gz with the bytes; any prefix of them is readable."""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock
from time import time_ns
from types import NoneType
from typing import Any
from weakref import WeakSet

from kwire.capture.exchange import Connection, Direction, Exchange, Frame, Lost
from kwire.capture.framing import MOST_HELD, MOST_WAITING
from kwire.capture.pairing import Pairing
from kwire.codec.arguments import check_choice, check_type
from kwire.codec.frames import pack_frame
from kwire.defaults import MAX_FRAME_BYTES
from kwire.errors import DecodeError, LimitError
from kwire.held_lock import holding
from kwire.output import disown
from kwire.storage.places import filesystem
from kwire_c.printable import brief, printable

MAX_LINE = 1 << 20  # bytes of a line
MAX_HEX = 16 << 10  # bytes of the largest frame whose line holds it as hex
_BLOCK = 1 << 16
_MEMBER = 1 << 18  # bytes that are compressed together
_HEADER = gzip.compress(b"", mtime=0)[:10]  # of a member
_MOST_CONNECTIONS = 50_000
_MOST_TEXT = 500  # characters of a text in a line
_DIRECTIONS: dict[str, Direction] = {"c2s": "request", "s2c": "response"}
_NAMES: dict[Direction | None, str] = {direction: name for name, direction in _DIRECTIONS.items()}


def is_frame_file(path: str) -> bool:
    """Whether a path is named like one of a pair of frame files: NAME.jsonl or NAME.bin, also with .gz."""
    stem, kind = _parts(path)
    return bool(kind) and not stem.endswith(".ops")


def pair_of(path: str) -> tuple[str, str]:
    """(the .jsonl file, the .bin file) of a pair, by either of them. Raises FileNotFoundError if one is missing."""
    stem, _ = _parts(path)
    files = []
    for kind in (".jsonl", ".bin"):
        name = next((name for name in (f"{stem}{kind}.gz", f"{stem}{kind}") if os.path.exists(name)), None)
        if name is None:
            raise FileNotFoundError(2, f"No such file, needed beside {printable(path)}", f"{stem}{kind}.gz")
        files.append(name)
    return files[0], files[1]


def _parts(path: str) -> tuple[str, str]:
    """(stem, ".jsonl" or ".bin"), or (path, "") for any other name."""
    name = path.removesuffix(".gz")
    for kind in (".jsonl", ".bin"):
        if name.endswith(kind):
            return name[: -len(kind)], kind
    return path, ""


class _Packed:
    """A file, gzip or plain, read forward in bounded blocks; .broken says why it ended early."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = open(path, "rb")  # noqa: SIM115 (closed by close)
        packed = self._file.peek(2)[:2] == b"\x1f\x8b"
        self._stream: Any = gzip.GzipFile(fileobj=self._file) if packed else self._file
        self._rest = b""
        self.position = 0  # of the next byte that take or lines gives
        self.broken: str | None = None
        self._packed, self._unpacked = packed, 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _block(self) -> bytes:
        if self.broken is not None:
            return b""
        try:
            block = bytes(self._stream.read1(_BLOCK))
            self._unpacked += len(block)
            if self._packed and self._unpacked > filesystem.MOST_UNPACKED:
                reason = f"{self.path}: the gzip stream holds too many bytes"
                raise LimitError(reason, limit=filesystem.MOST_UNPACKED, offset=self.position)
            return block
        except EOFError:
            self.broken = f"{self.path}: truncated gzip stream, the last frames are missing"
        except (OSError, zlib.error) as error:
            self.broken = f"{self.path}: corrupt file: {' '.join(str(error).split())}"
        return b""

    def lines(self) -> Iterator[bytes]:
        """Every complete line. Raises LimitError for one over 1 MiB."""
        line = bytearray()
        while block := self._rest or self._block():
            at = block.find(b"\n")
            line += block if at < 0 else block[:at]
            self._rest = b"" if at < 0 else block[at + 1 :]
            if len(line) > MAX_LINE:
                raise LimitError(f"{self.path}: line too long", limit=MAX_LINE, offset=self.position)
            if at >= 0:
                self.position += len(line) + 1
                yield bytes(line)
                line.clear()
        if line.strip() and self.broken is None:
            self.broken = f"{self.path}: truncated inside a line"

    def take(self, start: int, size: int) -> bytes | None:
        """Bytes [start, start + size), None if the file ends before; start must not decrease."""
        while self.position < start:
            if not self._part(start - self.position):
                return None
        pieces, missing = [], size
        while missing:
            part = self._part(missing)
            if not part:
                return None
            pieces.append(part)
            missing -= len(part)
        return b"".join(pieces)

    def _part(self, most: int) -> bytes:
        """The next bytes, up to most; b"" at the end."""
        self._rest = self._rest or self._block()
        part, self._rest = self._rest[:most], self._rest[most:]
        self.position += len(part)
        return part


def read_frame_file(path: str) -> Iterator[Exchange | Lost]:
    """The exchanges of a pair of frame files, and what is lost: lines without bytes, a missing end.

    Raises FileNotFoundError, DecodeError for invalid lines, LimitError.
    """
    text, data = pair_of(path)
    pairings: OrderedDict[Any, Pairing] = OrderedDict()  # whose first is found at once
    held = 0
    lines, frames = _Packed(text), _Packed(data)
    try:
        for number, line in enumerate(lines.lines(), 1):
            row = _row(line, text, number)
            pairing = pairings.get(row["conn"])
            if pairing is None:
                if len(pairings) >= _MOST_CONNECTIONS:
                    _, oldest = pairings.popitem(last=False)
                    held -= oldest.held
                    yield from _closed(oldest)
                connection = Connection(text, len(pairings), row.get("client"), row.get("server"))
                if isinstance(row["conn"], int):
                    connection.number = row["conn"]
                pairing = pairings[row["conn"]] = Pairing(connection)
            before = pairing.held
            _take(pairing, row, frames, text, number)
            if pairing.held > MOST_WAITING:
                pairing.relieve()
            held += pairing.held - before
            if held > MOST_HELD:
                for largest in sorted(pairings.values(), key=lambda pairing: -pairing.held):
                    if held <= MOST_HELD * 3 // 4:
                        break
                    held -= largest.held
                    largest.relieve()
                    yield from largest.take_events()
            yield from pairing.take_events()
        for pairing in pairings.values():
            yield from _closed(pairing)
        for broken in (lines.broken, frames.broken):
            if broken:
                yield Lost(text, broken)
    finally:
        lines.close()
        frames.close()


def _closed(pairing: Pairing) -> list[Exchange | Lost]:
    pairing.close()
    return pairing.events


def _row(line: bytes, text: str, number: int) -> dict[str, Any]:
    """A line with its fields checked. Raises DecodeError."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    wanted = {"conn": (int, str), "off": (int,), "len": (int,)}
    if not isinstance(row, dict) or any(type(row.get(name)) not in kinds for name, kinds in wanted.items()):
        raise DecodeError("invalid line of a frame file: expected conn, dir, off and len",
                          what=f"{text}, line {number}")
    valid = row["len"] == 0 or (row.get("dir") in ("c2s", "s2c") and 4 <= row["len"] <= MAX_FRAME_BYTES + 4)
    if not valid or row["off"] < 0:
        found = ", ".join(f"{name} {brief(row.get(name))}" for name in ("dir", "off", "len"))
        raise DecodeError(f"invalid frame: {found}", what=f"{text}, line {number}")
    row["dir"] = row.get("dir") if isinstance(row.get("dir"), str) else None
    if not isinstance(row["conn"], int) or abs(row["conn"]) >= 1 << 62:
        row["conn"] = str(row["conn"])[:_MOST_TEXT]
    for name in ("client", "server", "lost"):
        row[name] = _text(row[name]) if isinstance(row.get(name), str) else None
    if not isinstance(row.get("time"), int) or abs(row["time"]) >= 1 << 62:
        row["time"] = None
    return row


def _text(value: str) -> str:
    """A text of a line, on one line that any encoding and any terminal can show."""
    line = " ".join(value[:_MOST_TEXT].encode("utf-8", "replace").decode().split())
    return printable(line)[:_MOST_TEXT]


def _take(pairing: Pairing, row: dict[str, Any], frames: _Packed, text: str, number: int) -> None:
    if row["len"] == 0:  # a note: the frame seen here is not in the recording
        size = row.get("lost_bytes")
        pairing.lose(row["lost"] or "a frame that was not recorded", _DIRECTIONS.get(row["dir"]),
                     size if type(size) is int and 0 <= size < 1 << 62 else None, row["time"])
        return
    direction = _DIRECTIONS[row["dir"]]
    if row["off"] < frames.position:
        raise DecodeError(f"off {row['off']} is before {frames.position}, where the previous frame ends",
                          what=f"{text}, line {number}")
    data = frames.take(row["off"], row["len"])
    if data is None:
        pairing.lose(f"{frames.path} does not have the frame of line {number}", direction, row["len"], row["time"])
        pairing.broken(direction)
        return
    if int.from_bytes(data[:4], "big") != len(data) - 4:
        raise DecodeError(f"frame size {int.from_bytes(data[:4], 'big')} does not match len {len(data)} of its line",
                          offset=row["off"], what=f"{frames.path} (line {number} of {text})")
    missing = row.get("missing")
    frame = Frame(direction, data[4:], row["time"],
                  missing if type(missing) is int and 0 <= missing <= MAX_FRAME_BYTES else 0)
    if direction == "request":
        pairing.request(frame)
    else:
        pairing.response(frame)


class _GzipWriter:
    """A new gzip file: each flush writes a member, followed by the header of the next one until the file is closed.

    A file that was not closed therefore ends in a truncated member, which readers report. After a call that was
    interrupted, or that found the disk full, the next flush writes the same member again at the same place.
    (gzip.GzipFile loses bytes there, or since Python 3.12 writes them twice.)
    """

    def __init__(self, path: str) -> None:
        self.file = open(path, "xb", buffering=0)  # noqa: SIM115
        self._state: tuple[int, list[bytes]] = 0, []  # bytes of the members, and what is to come: replaced in one step
        self._held = 0

    def write(self, data: bytes) -> None:
        """Take bytes, which are written by the next flush, or when there are many."""
        self._state[1].append(data)
        self._held += len(data)
        if self._held >= _MEMBER:
            self.flush()

    def flush(self) -> None:
        """Hand all that was taken to the operating system."""
        if self._state[1]:
            self._add_member()

    def close(self) -> None:
        """Flush, and close the file; a second time it does nothing."""
        if self.file.closed:
            return
        try:
            if self._state[1] or not self._state[0]:
                self._add_member()
            self._cut(self._state[0])
        finally:
            self.file.close()

    def _add_member(self) -> None:
        end, pieces = self._state
        member = gzip.compress(b"".join(pieces), 1, mtime=0)
        self._cut(end)  # the header, and what an earlier try wrote of this member
        done, data = 0, memoryview(member + _HEADER)
        while done < len(data):
            done += os.pwrite(self.file.fileno(), data[done:], end + done)
        self._state, self._held = (end + len(member), []), 0

    def _cut(self, end: int) -> None:
        if os.fstat(self.file.fileno()).st_size > end:
            self.file.truncate(end)

    def __del__(self) -> None:
        """Complete a file that is forgotten."""
        if hasattr(self, "_held"):
            with suppress(OSError):
                self.close()


@dataclass(slots=True, eq=False, weakref_slot=True)
class FrameWriter:
    """Writes NAME.jsonl.gz and NAME.bin.gz; after flush the files hold all frames so far, even if the process dies.

    Threads may share it; in a child of fork it raises OSError, and close() does nothing. Raises FileExistsError if one
    of the files exists, OSError also after a frame was written only in part (an interrupt, a full disk), RuntimeError
    in a finalizer that runs inside another call, ValueError once it is closed. Use it with `with`, or close it.
    """

    name: str
    frames: int = 0
    flushed: int = 0  # of them that are in the files for sure
    _start: int = field(default_factory=time_ns)
    _offset: int = 0
    _lines: Any = None
    _bytes: Any = None
    _guard: Any = field(default_factory=RLock)
    _process: int = field(default_factory=os.getpid)
    _partial: bool = False

    def __post_init__(self) -> None:
        check_type(self.name, (str, os.PathLike), "name", "a str")
        bytes_file, lines_file = f"{self.name}.bin.gz", f"{self.name}.jsonl.gz"
        if os.path.exists(lines_file):
            raise FileExistsError(17, "File exists", lines_file)
        self._bytes = _GzipWriter(bytes_file)
        try:
            self._lines = _GzipWriter(lines_file)
        except BaseException:  # its name may be too long, or the file may be there meanwhile
            try:
                with suppress(OSError):  # a full disk does not take the end of the gzip stream
                    self._bytes.close()
            finally:
                os.unlink(bytes_file)
            raise
        _ALL.add(self)

    def __enter__(self) -> FrameWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, connection: Connection, frame: Frame, exchange: Exchange | None) -> None:
        """Add a frame; exchange: the one it belongs to, None where unknown.

        Raises LimitError for a frame over 100 MiB, and where its line, with the names of client and server, is over 1
        MiB.
        """
        check_type(connection, Connection, "connection", "a Connection")
        check_type(frame, Frame, "frame", "a Frame")
        check_choice(frame.direction, tuple(_DIRECTIONS.values()), "direction")
        check_type(exchange, (Exchange, NoneType), "exchange", "an Exchange or None")
        self._alone(lambda: self._write(connection, frame, exchange))

    def _write(self, connection: Connection, frame: Frame, exchange: Exchange | None) -> None:
        row = self._row(connection, frame.direction, frame.time)
        at = 4 if frame.direction == "request" else 0
        if len(frame.data) >= at + 4:
            row["corr"] = int.from_bytes(frame.data[at : at + 4], "big", signed=True)
        if exchange is not None:
            row |= {"api_key": exchange.api_key, "api_version": exchange.version}
            if frame.direction == "request":
                row["client_id"] = exchange.client_id
        if len(frame.data) > MAX_FRAME_BYTES:  # which readers refuse, and all that follows
            raise LimitError(
                "frame is too large to be recorded", limit=MAX_FRAME_BYTES, needed=len(frame.data), offset=None)
        packed = pack_frame(frame.data)
        row["len"] = len(packed)
        if frame.missing:
            row["missing"] = frame.missing
        if len(frame.data) <= MAX_HEX:
            row["hex"] = frame.data.hex()
        line = _line(row)
        self._begin()
        self._bytes.write(packed)
        self._add(line)
        self._offset += len(packed)
        self._partial = False

    def note(self, lost: Lost) -> None:
        """Add a line for what is not recorded: its len is 0, lost is the reason, lost_bytes how many bytes it had."""
        check_type(lost, Lost, "lost", "a Lost")
        of = lost.connection
        if of is not None:
            self._alone(lambda: self._note(of, lost))

    def _note(self, connection: Connection, lost: Lost) -> None:
        row = self._row(connection, lost.direction, lost.time)
        line = _line(row | {"len": 0, "lost": lost.reason, "lost_bytes": lost.bytes})
        self._begin()
        self._add(line)
        self._partial = False

    def flush(self) -> None:
        """Write everything out, the bytes before the lines that refer to them."""
        self._alone(self._flush)

    def _flush(self) -> None:
        self._begin()
        for stream in (self._bytes, self._lines):
            stream.flush()
        self.flushed, self._partial = self.frames, False

    def _alone(self, work: Callable[[], None]) -> None:
        """Do work, one thread at a time.

        Raises OSError in a child of fork (the files are the parent's), RuntimeError in a finalizer.
        """
        if self._process != os.getpid():
            raise OSError(1, "another process writes this recording", self.name)
        if self._guard._is_owned():
            raise RuntimeError("a finalizer writes to this recording inside another of its calls")
        holding(self._guard, work)

    def _begin(self) -> None:
        """Start a write; if it does not complete, nothing more is written, as later offsets would be wrong."""
        if self._bytes.file.closed:
            raise ValueError("the FrameWriter is closed")
        if self._partial:
            raise OSError(5, "a frame was written only in part: the recording ends there", self.name)
        self._partial = True

    def close(self) -> None:
        """Write everything out and close the files."""
        if self._process != os.getpid():
            return
        if sys.is_finalizing():  # where Python ends, no other thread lets go of the lock
            self._close()
        else:
            self._alone(self._close)

    def _close(self) -> None:
        if self._bytes.file.closed:
            return
        try:
            self._lines.close()
        finally:
            self._bytes.close()
        self.flushed = self.frames

    def _row(self, connection: Connection, direction: Direction | None, time: int | None) -> dict[str, Any]:
        if type(connection.number) not in (int, str):  # a line that readers refuse, and all that follows
            raise TypeError(f"number must be an int or a str, not {type(connection.number).__name__}")
        now = time_ns() // 1000 if time is None else time
        text = (connection.server or "").rpartition(":")[2]
        port = int(text) if len(text) < 10 and text.isascii() and text.isdigit() else None
        return {
            "seq": self.frames, "us": max(0, now - self._start // 1000), "time": now, "conn": connection.number,
            "client": connection.client, "server": connection.server, "port": port,
            "dir": _NAMES.get(direction), "off": self._offset,
        }

    def _add(self, line: bytes) -> None:
        self._lines.write(line)
        self.frames += 1


def _line(row: dict[str, Any]) -> bytes:
    """Raises before anything of the frame is written: TypeError for values that JSON does not have, LimitError."""
    line = json.dumps(row).encode()
    if len(line) > MAX_LINE:  # which readers refuse, and all that follows
        raise LimitError("line of a recording is too long", limit=MAX_LINE, needed=len(line), offset=None)
    return line + b"\n"


_ALL: WeakSet[FrameWriter] = WeakSet()


def _disown_all() -> None:
    """Run in a child of fork: a file that is forgotten is completed, which must not reach the parent's."""
    disown(stream.file for writer in list(_ALL) for stream in (writer._lines, writer._bytes))


os.register_at_fork(after_in_child=_disown_all)
