"""Packets inside tunnels: traffic mirrors and overlay networks."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capture.making import Talk, hello, metadata, outcomes_of, read, welcome, write_pcap

OUTSIDE = socket.inet_aton("192.0.2.1") + socket.inet_aton("192.0.2.2")


def ipv4(protocol: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 9, flags, 64, protocol, 0) + OUTSIDE + payload


def ipv6(protocol: int, payload: bytes) -> bytes:
    return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + payload


def ethernet(payload: bytes, kind: int | None = None) -> bytes:
    return bytes(12) + struct.pack(">H", kind or (0x86DD if payload[0] >> 4 == 6 else 0x0800)) + payload


def udp(port: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", 50000, port, 8 + len(payload), 0) + payload


def gre(content: bytes) -> bytes:
    return ethernet(ipv4(47, content))


def vxlan(packet: bytes) -> bytes:
    return b"\x08\0\0\0\0\0\7\0" + ethernet(packet)


def pppoe(packet: bytes) -> bytes:
    kind = 0x57 if packet[0] >> 4 == 6 else 0x21
    return struct.pack(">BBHHH", 0x11, 0, 1, 2 + len(packet), kind) + packet


# name -> an Ethernet frame that carries an IP packet
TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "IP in IP": lambda packet: ethernet(ipv4(41 if packet[0] >> 4 == 6 else 4, packet)),
    "IP in IPv6": lambda packet: ethernet(ipv6(41 if packet[0] >> 4 == 6 else 4, packet)),
    "GRE": lambda packet: gre(b"\0\0" + ethernet(packet)[12:]),
    "GRE with key and sequence": lambda packet: gre(b"\x30\0" + ethernet(packet)[12:14] + bytes(8) + packet),
    "GRE with Ethernet": lambda packet: gre(b"\0\0\x65\x58" + ethernet(packet)),
    "ERSPAN I": lambda packet: gre(b"\0\0\x88\xbe" + ethernet(packet)),
    "ERSPAN II": lambda packet: gre(b"\x10\0\x88\xbe" + bytes(4) + b"\x10" + bytes(7) + ethernet(packet)),
    "ERSPAN III": lambda packet: gre(b"\x10\0\x22\xeb" + bytes(4) + b"\x20" + bytes(11) + ethernet(packet)),
    "ERSPAN III, longer": lambda packet: gre(
        b"\x10\0\x22\xeb" + bytes(4) + b"\x20" + bytes(10) + b"\1" + bytes(8) + ethernet(packet)),
    "VXLAN": lambda packet: ethernet(ipv4(17, udp(4789, vxlan(packet)))),
    "VXLAN of flannel": lambda packet: ethernet(ipv4(17, udp(8472, vxlan(packet)))),
    "VXLAN over IPv6": lambda packet: ethernet(ipv6(17, udp(4789, vxlan(packet)))),
    "VXLAN with a VLAN": lambda packet: ethernet(ipv4(17, udp(4789, b"\x08" + bytes(7) + ethernet(
        b"\0\7" + ethernet(packet)[12:], 0x8100)))),
    "Geneve": lambda packet: ethernet(ipv4(17, udp(6081, b"\2\0\x65\x58" + bytes(12) + ethernet(packet)))),
    "Geneve with IP": lambda packet: ethernet(
        ipv4(17, udp(6081, b"\0\0" + ethernet(packet)[12:14] + bytes(4) + packet))),
    "PPPoE": lambda packet: ethernet(pppoe(packet), 0x8864),
    "three": lambda packet: ethernet(ipv4(17, udp(4789, vxlan(ipv4(4, ipv4(47, b"\0\0" + ethernet(packet)[12:])))))),
}  # fmt: skip


@pytest.mark.quick
@pytest.mark.parametrize("inside", ["10.0.0.7", "fd00::7"])
@pytest.mark.parametrize("tunnel", TUNNELS)
def test_what_a_tunnel_carries_is_read(tunnel: str, inside: str, tmp_path: Path) -> None:
    """With segments that are larger than the part of a packet in which headers are looked for."""
    talk = Talk(client=(inside, 51234), server=(inside[:-1] + "1", 9092)).open().exchange(hello(), welcome())
    talk.exchange(*metadata(1, topics=900)).close()
    packets = [TUNNELS[tunnel](packet) for packet in talk.bytes("raw")]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert outcomes_of(exchanges) == [("ApiVersions", 3, 0, "answered"), ("Metadata", 9, 1, "answered")]
    assert not lost and inside in exchanges[0].connection.client


@pytest.mark.quick
def test_fragments_of_tunnels_are_counted(tmp_path: Path) -> None:
    packet = Talk().open().bytes("raw")[0]
    first, later = (0x2000, 0x0003)
    packets = [ethernet(ipv4(17, udp(4789, vxlan(packet)), first)), ethernet(ipv4(4, packet, first)),
               ethernet(ipv4(4, packet, later)), ethernet(ipv4(17, udp(53, b"not of a tunnel"), first))]  # fmt: skip
    _, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert [(one.reason, one.count) for one in lost] == [("IP fragments, which are not reassembled", 3)]


@pytest.mark.quick
@pytest.mark.parametrize("tunnel", TUNNELS)
def test_tunnels_that_are_cut(tunnel: str, tmp_path: Path) -> None:
    """At every byte; and what is like a tunnel, but carries something else, is no damage."""
    whole = TUNNELS[tunnel](Talk().open().bytes("raw")[0])
    read(write_pcap(tmp_path / "a.pcap", [whole[:size] for size in range(len(whole))]))


@pytest.mark.quick
def test_what_is_no_tunnel_is_no_damage(tmp_path: Path) -> None:
    other = b"", b"x", b"other words than those", bytes(60), b"\x08" + bytes(7) + ethernet(b"\1", 0x0806)
    packets = [ethernet(ipv4(17, udp(port, data))) for port in (4789, 8472, 6081) for data in other]
    nested = Talk().open().bytes("raw")[0]
    for _ in range(20):
        nested = ipv4(4, nested)
    _, lost = read(write_pcap(tmp_path / "a.pcap", [*packets, ethernet(nested)]))
    assert not lost
