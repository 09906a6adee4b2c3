"""The start script for real brokers: newest, an old one with ZooKeeper, the way back, and the recording proxy."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tools.kafka import broker
from tools.places import ROOT

pytestmark = pytest.mark.java


@pytest.mark.parametrize("release", ["0.9.0.1", "4.4.0"])
def test_starts_answers_and_stops(release: str, tmp_path: Path) -> None:
    with broker.start(broker.Options(release, tmp_path, heap="256m", c1=True)) as state:
        assert broker.brokers_seen(state.ports[0], release) == 1
        assert state.mode == ("kraft" if release == "4.4.0" else "zookeeper")
        assert broker.Running.load(tmp_path) == state
    assert not any(broker.alive(pid) for pid in [*state.pids, state.zookeeper_pid or 0])
    assert list((tmp_path / "data1").iterdir())


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    wrong = broker.Options("4.4.0", tmp_path, heap="256m", c1=True, properties={"num.network.threads": "none"})
    with pytest.raises(broker.NotStarted, match=r"num\.network\.threads"):
        broker.start(wrong)


def test_proxy_records_frames(tmp_path: Path) -> None:
    """Against a socket that answers one request with one response."""
    with socket.create_server((broker.HOST, 0)) as server:
        listen, target = broker.free_ports(1)[0], server.getsockname()[1]
        out = tmp_path / "frames"
        proxy = subprocess.Popen(
            [sys.executable, "-m", "tools.kafka.proxy", "--pair", f"{listen}:{target}", "--out", str(out)],
            stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        try:
            assert proxy.stdout is not None and proxy.stdout.readline() == "ready\n"
            request = struct.pack(">hhih", 18, 3, 7, 2) + b"me"
            with socket.create_connection((broker.HOST, listen)) as client:
                client.sendall(struct.pack(">i", len(request)) + request)
                peer, _ = server.accept()
                with peer:
                    assert peer.recv(100) == struct.pack(">i", len(request)) + request
                    peer.sendall(struct.pack(">ii", 4, 7))
                    assert client.recv(100) == struct.pack(">ii", 4, 7)
        finally:
            os.kill(proxy.pid, signal.SIGTERM)
            proxy.wait(20)
            assert proxy.stdout is not None
            proxy.stdout.close()
    told = [json.loads(line) for line in (tmp_path / "frames.jsonl").read_text().splitlines()]
    seen = [(t["dir"], t["api_key"], t["api_version"], t["corr"]) for t in told]
    assert seen == [("c2s", 18, 3, 7), ("s2c", 18, 3, 7)]
    assert told[0]["client_id"] == "me" and told[0]["hex"] == request.hex()
    assert (tmp_path / "frames.bin").stat().st_size == sum(t["len"] for t in told)
