"""TCP segments from pcap and pcapng files of any common link type."""

from __future__ import annotations

import gzip
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, NamedTuple, cast

from kwire.capture.tunnels import carried, is_fragment, is_of_tunnel
from kwire.errors import LimitError, WrongFileError
from kwire.storage.places import filesystem
from kwire.storage.places.file_kinds import SNIFFED, check_capture
from kwire.storage.places.filesystem import Rejoined, located

MAX_PACKET = 16 << 20  # bytes of one packet or block
_HEAD = 2048  # bytes of a packet that hold all its headers: dpkt copies its input once a header
_MOST_INTERFACES = 10_000  # of one section
_LATEST = 1 << 62  # microseconds
_MOST_PIECE = 256 << 10  # bytes of the largest segment that is not split
_MODIFIED = b"\x34\xcd\xb2\xa1"  # of Kuznetsov: longer records
_LITTLE = (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1", _MODIFIED)
_NANOSECONDS = (b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1")
_PCAP = (b"\xa1\xb2\xc3\xd4", *_NANOSECONDS, *_LITTLE)
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_GZIP = b"\x1f\x8b"
_LINK_TYPE = 0x03FF_FFFF  # as libpcap: the bits above say whether packets end in a checksum of the link layer
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED, _OLD_PACKET = 0x0A0D0D0A, 1, 3, 6, 2
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16


class TcpSegment(NamedTuple):
    """One TCP segment.

    time: microseconds since 1970, None where unknown; source, target: "host:port"; seq: sequence number of its first
    byte; ack: None without the ACK flag; data: the captured bytes; size: bytes on the wire.
    """

    time: int | None
    source: str
    target: str
    seq: int
    ack: int | None
    syn: bool
    fin: bool
    rst: bool
    data: bytes
    size: int


@dataclass(slots=True)
class Unread:
    """Counts of packets that were not read, by reason, and why the file ended early.

    foreign: packets by unsupported link type; read: packets of a supported one.
    """

    damaged: int = 0
    fragments: int = 0
    looped: int = 0  # from an address and port to itself: which side sent them is not known
    foreign: Counter[int] = field(default_factory=Counter)  # by link type
    read: int = 0
    end: str | None = None


def read_segments(path: str, unread: Unread) -> Iterator[TcpSegment]:
    """The TCP segments of a pcap or pcapng file (also with gzip, also a pipe), in file order; unread counts the rest.

    Raises WrongFileError for any other file, LimitError for a packet over 16 MiB; without dpkt ImportError, which names
    the extra to install.
    """
    with open(path, "rb") as file:
        head, stream = _unpacked(file)
        if head not in _PCAP and head != _PCAPNG:
            with suppress(OSError, EOFError, zlib.error):
                head += stream.read(SNIFFED)
            check_capture(path, head)
            reason = "not a capture: expected pcap, pcapng, or NAME.jsonl.gz with NAME.bin.gz"
            raise located(WrongFileError(reason), path)
        try:
            import dpkt
        except ModuleNotFoundError as error:
            raise ImportError(f"{path}: reading packets needs dpkt: pip install 'kwire[capture]'") from error
        link_layers = _link_layers(dpkt)
        malformed = (dpkt.Error, struct.error, ValueError, LookupError, TypeError, AttributeError)
        for time, link, packet in _packets(dpkt, head, _Bounded(head, stream, path, stream is not file), unread):
            layer = link_layers.get(link)
            if layer is None:
                unread.foreign[link] += 1
                continue
            unread.read += 1
            parse = partial(_parsed, dpkt, time, layer, packet, unread)
            try:
                try:
                    segment = parse()
                except RecursionError:  # a hundred layers, or few frames are left to the caller
                    with ThreadPoolExecutor(1) as thread:  # which has a whole stack
                        segment = thread.submit(parse).result()
            except malformed:
                unread.damaged += 1
                continue
            if segment is None:
                continue
            if segment.source == segment.target:
                unread.looped += 1
            else:
                yield from _pieces(segment)


def _parsed(
    dpkt: Any, time: int | None, layer: Callable[[bytes], Any], packet: bytes, unread: Unread
) -> TcpSegment | None:
    """The TCP segment in a packet, None for other protocols."""
    return _segment(dpkt, time, carried(dpkt, layer(packet[:_HEAD])), packet, unread)


def _pieces(segment: TcpSegment) -> Iterator[TcpSegment]:
    """Split a segment that is larger than TCP allows, so that the frames of one piece are taken before the next."""
    data, at = segment.data, 0
    while len(data) - at > _MOST_PIECE:
        piece = data[at : at + _MOST_PIECE]
        seq = (segment.seq + at + (segment.syn and at > 0)) % (1 << 32)
        yield segment._replace(seq=seq, syn=segment.syn and at == 0, fin=False, data=piece, size=len(piece))
        at += _MOST_PIECE
    if at:
        segment = segment._replace(seq=(segment.seq + at + segment.syn) % (1 << 32), syn=False, data=data[at:],
                                   size=segment.size - at)
    yield segment


class _Bounded(Rejoined):
    """A file that refuses reads larger than a packet may be, and knows its position."""

    def __init__(self, head: bytes, stream: IO[bytes], path: str, packed: bool) -> None:
        super().__init__(head, stream)
        self.path, self.position, self.packed = path, 0, packed

    def read(self, size: int = -1) -> bytes:
        """Up to size bytes. Raises LimitError for a size above that of any packet."""
        if not 0 <= size <= MAX_PACKET:
            raise LimitError(f"{self.path}: packet too large", limit=MAX_PACKET, needed=size, offset=self.position)
        data = super().read(size)
        self.position += len(data)
        if self.packed and self.position > filesystem.MOST_UNPACKED:
            raise LimitError(f"{self.path}: the gzip stream holds too many bytes", limit=filesystem.MOST_UNPACKED)
        return data


def _unpacked(file: IO[bytes]) -> tuple[bytes, Any]:
    """(the first four bytes, the stream after them), decompressed if it is gzip; also of a pipe, which cannot seek."""
    head = file.read(4)
    if head[:2] != _GZIP:
        return head, file
    stream = gzip.GzipFile(fileobj=cast(Any, Rejoined(head, file)))
    try:
        return stream.read(4), stream
    except (OSError, EOFError, zlib.error):
        return b"", stream


def _packets(dpkt: Any, head: bytes, bounded: _Bounded, unread: Unread) -> Iterator[tuple[int | None, int, bytes]]:
    """(microseconds since 1970 or None, link type, packet) of each packet, up to one that is truncated or corrupt."""
    try:
        yield from _blocks(dpkt, bounded) if head == _PCAPNG else _records(dpkt, bounded)
    except LimitError as error:
        if not bounded.position:
            raise
        unread.end = str(error)
    except dpkt.NeedData:
        unread.end = f"truncated: the file ends inside a packet, at byte {bounded.position}"
    except (dpkt.Error, struct.error, ValueError, LookupError, ArithmeticError, EOFError, zlib.error,
            gzip.BadGzipFile) as error:
        unread.end = f"the file cannot be read after byte {bounded.position}: {' '.join(str(error).split())}"


def _records(dpkt: Any, file: _Bounded) -> Iterator[tuple[int | None, int, bytes]]:
    """The packets in the records of a pcap file."""
    header = _exactly(dpkt, file, 24)
    magic = header[:4]
    order = "<" if magic in _LITTLE else ">"
    ticks = 1000 if magic in _NANOSECONDS else 1  # a microsecond
    (link,) = struct.unpack_from(order + "I", header, 20)
    record = struct.Struct(order + ("IIIIIHBB" if magic == _MODIFIED else "IIII"))
    while head := file.read(record.size):
        if len(head) < record.size:
            raise dpkt.NeedData
        seconds, fraction, captured, *_ = record.unpack(head)
        yield seconds * 1_000_000 + fraction // ticks, link & _LINK_TYPE, _exactly(dpkt, file, captured)


def _blocks(dpkt: Any, file: _Bounded) -> Iterator[tuple[int | None, int, bytes]]:
    """The packets in pcapng blocks: several sections and interfaces, each with its own link type and clock."""
    order = "<"
    interfaces: list[tuple[int, int, int, int]] = []  # link type, ticks a second, seconds to add, snap length
    while head := file.read(8):
        if len(head) < 8:
            raise dpkt.NeedData
        if head[:4] == _PCAPNG:
            order = "<" if _exactly(dpkt, file, 4) == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces.clear()
            (size,) = struct.unpack(order + "I", head[4:])
            if size < 28:
                raise ValueError(f"invalid section header block of {size} bytes")
            _exactly(dpkt, file, size - 12)
            continue
        kind, size = struct.unpack(order + "II", head)
        if size < 12 or size % 4:
            raise ValueError(f"invalid block of {size} bytes")
        body = _exactly(dpkt, file, size - 8)[:-4]
        if kind == _INTERFACE:
            link, _, snap = struct.unpack_from(order + "HHI", body)
            if len(interfaces) == _MOST_INTERFACES:
                raise ValueError(f"more than {_MOST_INTERFACES} interfaces in one section")
            interfaces.append((link, *_clock(order, body[8:]), snap))
        elif kind in (_ENHANCED, _OLD_PACKET):
            number, high, low, captured, _ = struct.unpack_from(order + "IIIII", body)
            if kind == _OLD_PACKET:
                (number,) = struct.unpack_from(order + "H", body)
            if number >= len(interfaces):
                raise ValueError(f"packet of interface {number} without an interface description block")
            link, ticks, offset, _ = interfaces[number]
            time = ((high << 32 | low) * 1_000_000) // ticks + offset * 1_000_000
            yield max(-_LATEST, min(time, _LATEST)), link, body[20 : 20 + captured]
        elif kind == _SIMPLE:
            if not interfaces:
                raise ValueError("packet of interface 0 without an interface description block")
            link, _, _, snap = interfaces[0]
            (size,) = struct.unpack_from(order + "I", body)
            yield None, link, body[4 : 4 + min(size, snap or size)]


def _exactly(dpkt: Any, file: _Bounded, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise dpkt.NeedData
    return data


def _clock(order: str, options: bytes) -> tuple[int, int]:
    """(ticks a second, seconds to add) from the options of an interface description block."""
    ticks, offset, at = 1_000_000, 0, 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from(order + "HH", options, at)
        value = options[at + 4 : at + 4 + size]
        if len(value) < size:
            break
        if code == 9 and size == 1:
            ticks = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
        elif code == 14 and size == 8:
            (offset,) = struct.unpack(order + "q", value)
        elif code == 0:
            break
        at += 4 + (size + 3) // 4 * 4
    return ticks, offset


def _link_layers(dpkt: Any) -> dict[int, Callable[[bytes], Any]]:
    """Link type -> a function from a packet to the IP packet in it (an object of dpkt, anything else if not IP)."""
    pcap = dpkt.pcap

    def network(packet: bytes) -> Any:
        return dpkt.ip6.IP6(packet) if packet[0] >> 4 == 6 else dpkt.ip.IP(packet)

    def inside(layer: Any) -> Callable[[bytes], Any]:
        return lambda packet: _untagged(dpkt, layer(packet))

    raw = (pcap.DLT_RAW, 12, 14, 101, 228, 229)
    return {
        pcap.DLT_EN10MB: inside(dpkt.ethernet.Ethernet),
        pcap.DLT_LINUX_SLL: inside(dpkt.sll.SLL),
        276: inside(dpkt.sll2.SLL2),
        pcap.DLT_NULL: lambda packet: network(packet[4:]),
        108: lambda packet: network(packet[4:]),
        **dict.fromkeys(raw, network),
    }


def _untagged(dpkt: Any, packet: Any) -> Any:
    """The packet in that of a link layer, after VLAN tags that dpkt leaves, LLC/SNAP and an Ethernet frame in MPLS.

    Raises as dpkt for what should be an IP packet, and is cut or malformed.
    """
    while isinstance(packet.data, dpkt.ethernet.Ethernet):
        packet = packet.data
    payload, kind = packet.data, getattr(packet, "ethtype", getattr(packet, "_next_type", 0))
    while isinstance(payload, bytes) and kind in (0x8100, 0x88A8, 0x9100) and len(payload) >= 4:
        (kind,) = struct.unpack_from(">H", payload, 2)
        payload = payload[4:]
    if isinstance(payload, bytes) and kind in (0x0800, 0x86DD):
        return dpkt.ip.IP(payload) if kind == 0x0800 else dpkt.ip6.IP6(payload)
    return payload.data if isinstance(payload, dpkt.llc.LLC) else payload


def _segment(dpkt: Any, time: int | None, packet: Any, whole_packet: bytes, unread: Unread) -> TcpSegment | None:
    """The TCP segment in an IP packet, None for other protocols. whole_packet: all bytes, with the link header."""
    if isinstance(packet, dpkt.ip.IP):
        family = socket.AF_INET
        ip_size = packet.len - packet.hl * 4 if packet.len else None
    elif isinstance(packet, dpkt.ip6.IP6):
        family = socket.AF_INET6
        headers = sum(header.length for header in packet.all_extension_headers)
        ip_size = packet.plen - headers if packet.plen else None
    else:
        return None
    if packet.p != dpkt.ip.IP_PROTO_TCP and not is_of_tunnel(dpkt, packet):
        return None
    if is_fragment(packet):
        unread.fragments += 1
        return None
    if packet.p != dpkt.ip.IP_PROTO_TCP:  # a tunnel that carries something else
        return None
    tcp = packet.data
    if not isinstance(tcp, dpkt.tcp.TCP):
        unread.damaged += 1
        return None
    data = bytes(tcp.data)
    tcp_size = None if ip_size is None else ip_size - tcp.off * 4
    if len(whole_packet) > _HEAD and (tcp_size is None or tcp_size > len(data)):  # the data goes on after _HEAD bytes
        start = _HEAD - len(data)
        data = whole_packet[start:] if tcp_size is None else whole_packet[start : start + tcp_size]
    size = len(data) if tcp_size is None else max(len(data), tcp_size)
    flags = tcp.flags
    return TcpSegment(
        time, _endpoint(family, packet.src, tcp.sport), _endpoint(family, packet.dst, tcp.dport), tcp.seq,
        tcp.ack if flags & _ACK else None, bool(flags & _SYN), bool(flags & _FIN), bool(flags & _RST), data, size,
    )


def _endpoint(family: int, address: bytes, port: int) -> str:
    host = socket.inet_ntop(family, address)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
