"""Clients at work against real brokers behind the recording proxy: what wire, pcap and golden have in common."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools import clients
from tools.kafka import broker

ROOT = Path(__file__).parents[1]
HEAP = "512m"


class NotRecorded(Exception):
    """The proxy did not start, or a client saw no broker."""


def free_range(count: int) -> int:
    """The first of some ports in a row that nothing listens on."""
    for _ in range(100):
        (first,) = broker.free_ports(1)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind((broker.HOST, port))
            return first
    raise NotRecorded(f"no {count} free ports in a row")


class Cluster:
    """Brokers of a release with a second listener each, whose advertised address is the proxy's."""

    def __init__(self, release: str, nodes: int, folder: Path, zookeeper: bool = False) -> None:
        base = free_range(2 * nodes)
        self.pairs = [(base + nodes + i, base + i) for i in range(nodes)]  # (the proxy's port, the broker's)
        listener = f"PROXY:PLAINTEXT:{base}:{base + nodes}"
        options = broker.Options(release, folder, nodes, heap=HEAP, zookeeper=zookeeper, extra_listeners=[listener])
        self.folder, self.state = folder, broker.start(options)

    @property
    def bootstrap(self) -> str:
        """The proxy's addresses."""
        return ",".join(f"{broker.HOST}:{listen}" for listen, _ in self.pairs)

    @property
    def direct(self) -> str:
        """The brokers' own addresses."""
        return self.state.bootstrap

    def stop(self) -> None:
        """A clean stop: the log directories are complete after it."""
        broker.stop(self.folder)


@contextlib.contextmanager
def brokers(release: str, nodes: int, zookeeper: bool = False) -> Iterator[Cluster]:
    """Running brokers in a folder of their own, stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix=f"kafka-{release}-") as place:
        cluster = Cluster(release, nodes, Path(place), zookeeper)
        try:
            yield cluster
        finally:
            cluster.stop()


@contextlib.contextmanager
def recorded(cluster: Cluster, prefix: Path) -> Iterator[None]:
    """The proxy while something runs through it; PREFIX.jsonl and PREFIX.bin are complete afterwards."""
    pairs = [part for listen, target in cluster.pairs for part in ("--pair", f"{listen}:{target}")]
    command = [sys.executable, "-m", "tools.kafka.proxy", *pairs, "--out", str(prefix), "--max-hex", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise NotRecorded(f"the proxy ended with {process.wait()}")
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def work(name: str, command: list[str], bootstrap: str, prefix: str) -> None:
    """One client's workload, with what failed of it told on stderr."""
    print(f"{name}: working", file=sys.stderr, flush=True)
    for line in clients.run(command, bootstrap, prefix):
        print(f"{name}: {line}", file=sys.stderr)


def arguments(name: str, about: str, into: Path) -> argparse.ArgumentParser:
    """The options that the three commands share."""
    parser = argparse.ArgumentParser(
        f"python -m tools.{name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", required=True, help="a patch release of the brokers, such as 4.4.0")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--zk", action="store_true", help="ZooKeeper mode on 2.8 to 3.9")
    parser.add_argument("--clients", nargs="+", default=list(clients.CLIENTS), metavar="CLIENT",
                        help=f"some of {' '.join(clients.CLIENTS)} (default: all)")  # fmt: skip
    parser.add_argument("--prefix", default="alpha", help="the first part of names of topics, groups and client ids")
    parser.add_argument("--into", type=Path, default=into, help=f"the archive (default {into.name} of tests/data)")
    return parser


def label(release: str, nodes: int, zookeeper: bool = False) -> str:
    """The name of a cluster in the archives: 4.3.0, 4.3.0-3nodes, 3.9.1zk."""
    return f"{release}{'zk' if zookeeper else ''}{f'-{nodes}nodes' if nodes > 1 else ''}"
