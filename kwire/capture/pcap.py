"""TCP segments out of pcap and pcapng files, whatever link layer they were captured on."""

from __future__ import annotations

import gzip
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple, cast

from kwire.errors import DecodeError, LimitError
from kwire.storage import filesystem
from kwire.storage.filesystem import Rejoined

MAX_PACKET = 16 << 20  # bytes of one packet or block
_HEAD = 2048  # bytes of a packet in which all its headers stand: dpkt copies what it is given with each of them
_MOST_INTERFACES = 10_000  # of one section
_LATEST = 1 << 62  # microseconds
_MOST_PIECE = 256 << 10  # bytes of a segment that is handed on whole
_PCAP = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1", b"\x34\xcd\xb2\xa1")
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_GZIP = b"\x1f\x8b"
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED, _OLD_PACKET = 0x0A0D0D0A, 1, 3, 6, 2
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16


class TcpSegment(NamedTuple):
    """One TCP segment.

    time: microseconds since 1970; source, target: "host:port"; seq: of its first byte; ack: None without one;
    data: what was captured; size: bytes that it had on the wire.
    """

    time: int
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
    """What a capture has beside TCP segments that could be read: counts of packets, and why the file ended early."""

    damaged: int = 0
    fragments: int = 0
    foreign: Counter[int] = field(default_factory=Counter)  # by the link type that kwire does not read
    read: int = 0
    end: str | None = None


def read_segments(path: str, unread: Unread) -> Iterator[TcpSegment]:
    """The TCP segments of a pcap or pcapng file (gzip too, and pipes), in its order; unread counts what is not read.

    Raises DecodeError for a file that is neither, LimitError for a packet beyond 16 MiB; ImportError names the extra.
    """
    with open(path, "rb") as file:
        head, stream = _unpacked(file)
        if head not in _PCAP and head != _PCAPNG:
            reason = "no capture: neither pcap, pcapng nor NAME.jsonl.gz with NAME.bin.gz"
            raise DecodeError(reason, what=path)
        try:
            import dpkt
        except ImportError as error:
            raise ImportError(f"{path}: reading packets needs dpkt: pip install 'kwire[capture]'") from error
        link_layers = _link_layers(dpkt)
        wrong = (dpkt.Error, struct.error, ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError)
        for time, link, packet in _packets(dpkt, head, _Bounded(head, stream, path, stream is not file), unread):
            layer = link_layers.get(link)
            if layer is None:
                unread.foreign[link] += 1
                continue
            unread.read += 1
            try:
                segment = _segment(dpkt, time, layer(packet[:_HEAD]), packet, unread)
            except wrong:
                unread.damaged += 1
                continue
            if segment is not None:
                yield from _pieces(segment)


def _pieces(segment: TcpSegment) -> Iterator[TcpSegment]:
    """A segment that is larger than TCP's are, in pieces: what each gives is taken before the next comes."""
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
    """A file of which no read asks for more than a packet may have, and that tells where it is."""

    def __init__(self, head: bytes, stream: IO[bytes], path: str, packed: bool) -> None:
        super().__init__(head, stream)
        self.path, self.position, self.packed = path, 0, packed

    def read(self, size: int = -1) -> bytes:
        """Up to size bytes; LimitError for what no packet has."""
        if not 0 <= size <= MAX_PACKET:
            raise LimitError(f"{self.path}: a packet is too large", limit=MAX_PACKET, needed=size,
                                   offset=self.position)
        data = super().read(size)
        self.position += len(data)
        if self.packed and self.position > filesystem.MOST_UNPACKED:
            raise LimitError(f"{self.path}: the gzip stream gives too much", limit=filesystem.MOST_UNPACKED)
        return data


def _unpacked(file: IO[bytes]) -> tuple[bytes, Any]:
    """(the first four bytes, what stands behind them), unpacked where it is gzip; a pipe need not go back."""
    head = file.read(4)
    if head[:2] != _GZIP:
        return head, file
    stream = gzip.GzipFile(fileobj=cast(Any, Rejoined(head, file)))
    try:
        return stream.read(4), stream
    except (OSError, EOFError, zlib.error):
        return b"", stream


def _packets(dpkt: Any, head: bytes, bounded: _Bounded, unread: Unread) -> Iterator[tuple[int, int, bytes]]:
    """(microseconds since 1970, link type, packet). A file that ends, or breaks, inside a packet ends here."""
    try:
        if head == _PCAPNG:
            yield from _blocks(dpkt, bounded)
        else:
            reader = dpkt.pcap.Reader(bounded)
            for time, packet in reader:
                yield int(time * 1_000_000), reader.datalink(), packet
    except LimitError as error:
        if not bounded.position:
            raise
        unread.end = str(error)
    except dpkt.NeedData:
        unread.end = f"the file ends inside a packet, at byte {bounded.position}"
    except (dpkt.Error, struct.error, ValueError, LookupError, ArithmeticError, EOFError, zlib.error,
            gzip.BadGzipFile) as error:
        unread.end = f"the file cannot be read behind byte {bounded.position}: {' '.join(str(error).split())}"


def _blocks(dpkt: Any, file: _Bounded) -> Iterator[tuple[int, int, bytes]]:
    """The packets of pcapng's blocks: several sections, several interfaces, each with its link type and clock."""
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
                raise ValueError(f"a section header of {size} bytes")
            _exactly(dpkt, file, size - 12)
            continue
        kind, size = struct.unpack(order + "II", head)
        if size < 12 or size % 4:
            raise ValueError(f"a block of {size} bytes")
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
                raise ValueError(f"a packet of interface {number}, which is not described")
            link, ticks, offset, _ = interfaces[number]
            time = ((high << 32 | low) * 1_000_000) // ticks + offset * 1_000_000
            yield max(-_LATEST, min(time, _LATEST)), link, body[20 : 20 + captured]
        elif kind == _SIMPLE:
            if not interfaces:
                raise ValueError("a packet of interface 0, which is not described")
            link, _, _, snap = interfaces[0]
            (size,) = struct.unpack_from(order + "I", body)
            yield 0, link, body[4 : 4 + min(size, snap or size)]


def _exactly(dpkt: Any, file: _Bounded, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise dpkt.NeedData
    return data


def _clock(order: str, options: bytes) -> tuple[int, int]:
    """(ticks a second, seconds to add) by an interface's options."""
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
    """Link type -> what takes a packet and gives the IP packet in it (an object of dpkt, or what is none)."""
    pcap = dpkt.pcap

    def network(packet: bytes) -> Any:
        return dpkt.ip6.IP6(packet) if packet[0] >> 4 == 6 else dpkt.ip.IP(packet)

    def inside(layer: Any) -> Callable[[bytes], Any]:
        return lambda packet: _below_tags(dpkt, layer(packet))

    raw = (pcap.DLT_RAW, 12, 14, 101, 228, 229)
    return {
        pcap.DLT_EN10MB: inside(dpkt.ethernet.Ethernet),
        pcap.DLT_LINUX_SLL: inside(dpkt.sll.SLL),
        276: inside(dpkt.sll2.SLL2),
        pcap.DLT_NULL: lambda packet: network(packet[4:]),
        108: lambda packet: network(packet[4:]),
        **dict.fromkeys(raw, network),
    }


def _below_tags(dpkt: Any, packet: Any) -> Any:
    """What stands behind the VLAN tags that cooked captures keep in front of the packet."""
    found, kind = packet.data, getattr(packet, "ethtype", 0)
    while isinstance(found, bytes) and kind in (0x8100, 0x88A8, 0x9100) and len(found) >= 4:
        (kind,) = struct.unpack_from(">H", found, 2)
        found = found[4:]
        if kind == 0x0800:
            return dpkt.ip.IP(found)
        if kind == 0x86DD:
            return dpkt.ip6.IP6(found)
    return found


def _segment(dpkt: Any, time: int, packet: Any, whole_packet: bytes, unread: Unread) -> TcpSegment | None:
    """The TCP segment in an IP packet; None for other protocols. whole_packet: all of what packet was read from."""
    if isinstance(packet, dpkt.ip.IP):
        family, protocol = socket.AF_INET, packet.p
        fragment = bool(packet.mf or packet.offset)
        whole = packet.len - packet.hl * 4 if packet.len else None
    elif isinstance(packet, dpkt.ip6.IP6):
        family, protocol = socket.AF_INET6, packet.p
        fragment = any(getattr(header, "frag_off", 0) or getattr(header, "m_flag", 0)
                       for header in packet.all_extension_headers)
        headers = sum(header.length for header in packet.all_extension_headers)
        whole = packet.plen - headers if packet.plen else None
    else:
        return None
    if protocol != dpkt.ip.IP_PROTO_TCP:
        return None
    if fragment:
        unread.fragments += 1
        return None
    tcp = packet.data
    if not isinstance(tcp, dpkt.tcp.TCP):
        unread.damaged += 1
        return None
    data = bytes(tcp.data)
    told = None if whole is None else whole - tcp.off * 4
    if len(whole_packet) > _HEAD and (told is None or told > len(data)):  # it goes on behind the head
        start = _HEAD - len(data)
        data = whole_packet[start:] if told is None else whole_packet[start : start + told]
    size = len(data) if told is None else max(len(data), told)
    flags = tcp.flags
    return TcpSegment(
        time, _endpoint(family, packet.src, tcp.sport), _endpoint(family, packet.dst, tcp.dport), tcp.seq,
        tcp.ack if flags & _ACK else None, bool(flags & _SYN), bool(flags & _FIN), bool(flags & _RST), data, size,
    )


def _endpoint(family: int, address: bytes, port: int) -> str:
    host = socket.inet_ntop(family, address)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
