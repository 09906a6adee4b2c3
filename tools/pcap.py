"""Captures the packets between clients and brokers of a release into tests/data/pcap.tar.xz.

    python -m tools.pcap --release 4.4.0                 tcpdump on loopback: needs its rights (root or cap_net_raw)
    python -m tools.pcap --release 4.4.0 --synthetic     packets made from the frames that the proxy saw

Adds pcap/broker-RELEASE-CLIENT.pcap, or pcap/synthetic-RELEASE-CLIENT.pcap, whose packets no kernel has seen.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import archives, clients, recording, wire
from tools.kafka import broker, maven
from tools.places import DATA

START = 1_700_000_000  # the first packet of a synthetic capture
SEGMENT = 1448  # most bytes of a TCP segment
SYN, FIN, PUSH, ACK = 2, 1, 8, 16


def tcpdump() -> str:
    """The path of tcpdump, if it may capture on loopback."""
    path = maven.need("tcpdump", "tcpdump")
    why_not = _may_capture(path)
    if why_not:
        raise maven.MissingTool(f"tcpdump may not capture on loopback ({why_not}): run as root, or use --synthetic")
    return path


def _may_capture(path: str) -> str:
    """Why tcpdump may not open loopback; "" when it may."""
    process = subprocess.Popen([path, "-i", "lo", "-w", os.devnull], stderr=subprocess.PIPE, text=True)
    try:
        _, said = process.communicate(timeout=1)
    except subprocess.TimeoutExpired:  # it listens
        process.terminate()
        process.communicate()
        return ""
    return said.strip().splitlines()[-1] if said.strip() else f"exit {process.returncode}"


@contextlib.contextmanager
def captured(path: str, ports: list[int], out: Path) -> Iterator[None]:
    """tcpdump while something runs."""
    ports_of = " or ".join(f"port {port}" for port in ports)
    process = subprocess.Popen([path, "-i", "lo", "-U", "-s", "0", "-w", str(out), f"tcp and ({ports_of})"],
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    time.sleep(1)
    try:
        yield
    finally:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


class Connection:
    """One TCP connection of a synthetic capture, packet by packet."""

    def __init__(self, number: int, port: int) -> None:
        self.ports = {"c2s": (40_000 + number, port), "s2c": (port, 40_000 + number)}
        self.sequence = {"c2s": 1000 + number, "s2c": 5_000_000 + number}

    def packet(self, way: str, flags: int, data: bytes = b"") -> bytes:
        """An Ethernet frame; the sequence number moves on."""
        import dpkt

        back = "s2c" if way == "c2s" else "c2s"
        tcp = dpkt.tcp.TCP(
            sport=self.ports[way][0], dport=self.ports[way][1], seq=self.sequence[way] % 2**32,
            ack=self.sequence[back] % 2**32 if flags & ACK else 0, flags=flags, data=data, win=65535,
        )  # fmt: skip
        address = socket.inet_aton("127.0.0.1")
        ip = dpkt.ip.IP(src=address, dst=address, p=dpkt.ip.IP_PROTO_TCP, data=tcp, ttl=64)
        ip.len = len(ip)
        self.sequence[way] += len(data) + bool(flags & (SYN | FIN))
        return bytes(dpkt.ethernet.Ethernet(src=bytes(6), dst=bytes(6), type=dpkt.ethernet.ETH_TYPE_IP, data=ip))


def synthetic(lines: str, data: bytes) -> bytes:
    """A capture of what the proxy saw: every connection opened, its frames in segments, and closed."""
    import dpkt

    out = io.BytesIO()
    writer = dpkt.pcap.Writer(out)
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines.splitlines()]
    connections: dict[int, Connection] = {}
    last = 0.0
    for row in rows:
        last = START + row["us"] / 1e6
        one = connections.get(row["conn"])
        if one is None:
            one = connections[row["conn"]] = Connection(row["conn"], row["port"])
            for way, flags in (("c2s", SYN), ("s2c", SYN | ACK), ("c2s", ACK)):
                writer.writepkt(one.packet(way, flags), last)
        frame = data[row["off"] : row["off"] + row["len"]]
        for at in range(0, len(frame), SEGMENT):
            writer.writepkt(one.packet(row["dir"], PUSH | ACK, frame[at : at + SEGMENT]), last)
    for one in connections.values():
        for way, flags in (("c2s", FIN | ACK), ("s2c", FIN | ACK), ("c2s", ACK)):
            writer.writepkt(one.packet(way, flags), last)
    return out.getvalue()


def capture(cluster: recording.Cluster, commands: dict[str, list[str]], prefix: str, given: Any) -> dict[str, bytes]:
    """Name -> capture of each client's work."""
    name = recording.label(given.release, given.nodes, given.zk)
    if given.synthetic:
        seen = wire.record(cluster, commands, prefix)
        return {
            f"synthetic-{name}-{client}.pcap": synthetic(seen[f"{client}.jsonl"].decode(), seen[f"{client}.bin"])
            for client in commands
        }
    path, files = tcpdump(), {}
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)  # tcpdump gives up root's rights before it writes
        for client, command in commands.items():
            out = Path(place) / "out.pcap"
            with captured(path, cluster.state.ports, out):
                recording.work(client, command, cluster.direct, prefix)
            files[f"broker-{name}-{client}.pcap"] = out.read_bytes()
            out.unlink()
    return files


def main(given_arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = recording.arguments("pcap", __doc__ or "", DATA / "pcap.tar.xz")
    parser.add_argument("--synthetic", action="store_true", help="without tcpdump: packets made of the proxy's frames")
    given = parser.parse_args(given_arguments)
    try:
        if not given.synthetic:
            tcpdump()
        commands = clients.commands(given.clients)
        with recording.brokers(given.release, given.nodes, given.zk) as cluster:
            files = capture(cluster, commands, given.prefix, given)
    except (maven.MissingTool, broker.NotStarted, recording.NotRecorded) as error:
        print(f"pcap: {error}", file=sys.stderr)
        return 2
    kept = archives.read(given.into)
    archives.write(given.into, kept | {f"pcap/{name}": data for name, data in files.items()})
    for name, data in files.items():
        print(f"pcap/{name}: {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
