"""Makes captures: TCP packets of connections, on any link layer, to be split, reordered, repeated and left out."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpkt

import kwire
from kwire import messages, schema
from kwire.capture import Exchange, Lost, read_capture

SYN, FIN, RST, PUSH, ACK = 2, 1, 4, 8, 16
START = 1_700_000_000


@dataclass
class Talk:
    """One TCP connection, packet by packet: (sequence number, acknowledgement, flags, data) from either side."""

    client: tuple[str, int] = ("10.0.0.7", 51234)
    server: tuple[str, int] = ("10.0.0.1", 9092)
    first: int = 1000  # the client's initial sequence number; the server's is 7 more
    packets: list[tuple[bool, int, int, int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seq = {True: self.first, False: self.first + 7}

    def _add(self, from_client: bool, flags: int, data: bytes = b"") -> None:
        seq, ack = self.seq[from_client], self.seq[not from_client]
        self.packets.append((from_client, seq % 2**32, ack % 2**32 if flags & ACK else 0, flags, data))
        self.seq[from_client] += len(data) + bool(flags & (SYN | FIN))

    def open(self) -> Talk:
        self._add(True, SYN)
        self._add(False, SYN | ACK)
        self._add(True, ACK)
        return self

    def say(self, from_client: bool, data: bytes, size: int = 1 << 15) -> Talk:
        """Send bytes in segments of size, the last with PUSH, and have them acknowledged."""
        for at in range(0, len(data), size):
            self._add(from_client, PUSH | ACK, data[at : at + size])
        self._add(not from_client, ACK)
        return self

    def exchange(self, request: bytes, response: bytes | None, size: int = 1 << 15) -> Talk:
        """A request frame and, when there is one, its response frame."""
        self.say(True, kwire.pack_frame(request), size)
        return self if response is None else self.say(False, kwire.pack_frame(response), size)

    def close(self) -> Talk:
        for side in (True, False):
            self._add(side, FIN | ACK)
            self._add(not side, ACK)
        return self

    def bytes(self, link: str = "ethernet") -> list[bytes]:
        """The packets as a link layer carries them."""
        return [self.packet(one, link) for one in self.packets]

    def packet(self, one: tuple[bool, int, int, int, bytes], link: str = "ethernet") -> bytes:
        from_client, seq, ack, flags, data = one
        source, target = (self.client, self.server) if from_client else (self.server, self.client)
        tcp = dpkt.tcp.TCP(sport=source[1], dport=target[1], seq=seq, ack=ack, off=5, data=data)
        tcp.flags = flags
        if ":" in source[0]:
            packet = dpkt.ip6.IP6(src=socket.inet_pton(socket.AF_INET6, source[0]),
                                  dst=socket.inet_pton(socket.AF_INET6, target[0]), nxt=6, hlim=64, data=tcp)
            packet.plen = len(tcp)
            packet.extension_hdrs, packet.all_extension_headers = {}, []
            kind, family = 0x86DD, 30
        else:
            packet = dpkt.ip.IP(src=socket.inet_aton(source[0]), dst=socket.inet_aton(target[0]), p=6, data=tcp)
            packet.len = len(packet)
            kind, family = 0x0800, 2
        return LINKS[link][1](bytes(packet), kind, family)


# name -> (link type, what puts the layer in front of an IP packet of an Ethernet type and a BSD family)
LINKS: dict[str, tuple[int, Any]] = {
    "ethernet": (1, lambda packet, kind, _: bytes(12) + struct.pack(">H", kind) + packet),
    "vlan": (1, lambda packet, kind, _: bytes(12) + struct.pack(">HHH", 0x8100, 7, kind) + packet),
    "two vlans": (1, lambda packet, kind, _: bytes(12) + struct.pack(">HHHHH", 0x88A8, 9, 0x8100, 7, kind) + packet),
    "padded ethernet": (1, lambda packet, kind, _: (bytes(12) + struct.pack(">H", kind) + packet).ljust(60, b"\0")),
    "cooked": (113, lambda packet, kind, _: struct.pack(">HHH8sH", 0, 1, 6, bytes(8), kind) + packet),
    "cooked v2": (276, lambda packet, kind, _: struct.pack(">HHiHBB8s", kind, 0, 1, 1, 0, 6, bytes(8)) + packet),
    "cooked vlan": (113, lambda packet, kind, _: struct.pack(">HHH8sHHH", 0, 1, 6, bytes(8), 0x8100, 7, kind) + packet),
    "null": (0, lambda packet, _, family: struct.pack("<I", family) + packet),
    "null, big": (0, lambda packet, _, family: struct.pack(">I", family) + packet),
    "loop": (108, lambda packet, _, family: struct.pack(">I", family) + packet),
    "raw": (101, lambda packet, *_: packet),
}


def write_pcap(path: Path, packets: Iterable[bytes], link: str = "ethernet", **options: Any) -> Path:
    """A pcap file with a packet every millisecond."""
    with open(path, "wb") as file:
        writer = dpkt.pcap.Writer(file, snaplen=262144, linktype=LINKS[link][0], **options)
        for number, packet in enumerate(packets):
            writer.writepkt(packet, START + number / 1000)
    return path


def read(path: Path) -> tuple[list[Exchange], list[Lost]]:
    """(exchanges, what is lost) of a capture."""
    events = list(read_capture(path))
    return [one for one in events if isinstance(one, Exchange)], [one for one in events if isinstance(one, Lost)]


def outcomes_of(exchanges: Iterable[Exchange]) -> list[tuple[str, int, int, str]]:
    """(API, version, correlation id, outcome) of each."""
    return [(one.api, one.version, one.correlation_id, one.outcome) for one in exchanges]


def hello(correlation_id: int = 0, client_id: str = "me", software: str = "made", version: int = 3) -> bytes:
    """An ApiVersions request."""
    known = {"client_software_name": software, "client_software_version": "1.0"} if version >= 3 else {}
    return kwire.encode_request(messages.ApiVersionsRequest(**known), version, correlation_id=correlation_id,
                                client_id=client_id)


def welcome(correlation_id: int = 0, version: int = 3) -> bytes:
    """The response to it."""
    return kwire.encode_response(messages.ApiVersionsResponse(), version, correlation_id=correlation_id)


def metadata(correlation_id: int, topics: int = 1) -> tuple[bytes, bytes]:
    """A Metadata v9 request and its response, about 30 bytes a topic."""
    names = [messages.MetadataRequest.MetadataRequestTopic(name=f"topic-{number:08}") for number in range(topics)]
    found = [messages.MetadataResponse.MetadataResponseTopic(name=f"topic-{number:08}") for number in range(topics)]
    return (
        kwire.encode_request(messages.MetadataRequest(topics=names), 9, correlation_id=correlation_id, client_id="me"),
        kwire.encode_response(messages.MetadataResponse(topics=found), 9, correlation_id=correlation_id),
    )


def produce(correlation_id: int, acks: int, records: bytes = b"") -> bytes:
    """A Produce v7 request."""
    kind = messages.ProduceRequest
    partition = kind.PartitionProduceData(index=0, records=records)
    topic = kind.TopicProduceData(name="t", partition_data=[partition])
    return kwire.encode_request(kind(acks=acks, timeout_ms=1, topic_data=[topic]), 7, correlation_id=correlation_id,
                                client_id="me")


def every_version(release: str) -> Iterator[tuple[schema.Api, int, bytes, bytes]]:
    """(API, version, request, response) of every API version of a release, correlation ids ascending from 0."""
    number = 0
    for api in schema.apis(release):
        for version in api.versions.all():
            request, response = getattr(messages, api.request)(), getattr(messages, api.response)()
            if api.name == "Produce":
                request.acks = -1
            yield (
                api, version, kwire.encode_request(request, version, correlation_id=number, client_id="every"),
                kwire.encode_response(response, version, correlation_id=number),
            )
            number += 1
