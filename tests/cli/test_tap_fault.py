"""`kwire tap --fault`: as a process before a fleet, until SIGINT."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RLIMIT_FSIZE, setrlimit
from typing import Any

import pytest

from kwire import messages
from kwire.capture import read_capture
from kwire.fleet import Fleet
from kwire.net import BrokerConnectionError, connect_sync

pytestmark = pytest.mark.quick
METADATA = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="t")])


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A tap, and where it listens; it is killed if the test has not ended it."""
    process = subprocess.Popen(tap(*arguments), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield process, process.stderr.readline().split("listening on ")[1].split(" ")[0]
    finally:
        process.kill()
        process.communicate()


def tap(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kwire", "tap", "--listen", "127.0.0.1:0", *arguments]


def test_a_full_disk_where_nobody_reads_standard_error_ends_no_connection(tmp_path: Path) -> None:
    """Standard error may be a file on that disk, or a pipe whose reader is gone."""
    request = messages.ApiVersionsRequest()
    with Fleet("3.9") as fleet:
        command = tap("--target", fleet.bootstrap, "--out", str(tmp_path / "taken"))
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: setrlimit(RLIMIT_FSIZE, (100, 100)))
        try:
            assert process.stderr is not None
            address = process.stderr.readline().split("listening on ")[1].split(" ")[0]
            process.stderr.close()
            with connect_sync(address, client_id="x" * 30_000) as connection:
                for _ in range(30):  # more than the tap holds back
                    connection.send(request, 0)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 1
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("records", [True, False])
def test_faults_before_a_cluster(tmp_path: Path, records: bool) -> None:
    out = ["--out", str(tmp_path / "taken")] if records else []
    rules = ["--fault", "Metadata error=LEADER_NOT_AVAILABLE times=2 topic=t", "--fault", "Fetch close"]
    with (
        Fleet("3.9", 2, topics={"t": 1}) as fleet,
        running("--target", fleet.nodes[1].address, *rules, *out) as (process, address),
    ):
        with connect_sync(address) as connection:
            answers: list[Any] = [connection.send(METADATA, 8) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
    assert [answer.topics[0].error_code for answer in answers] == [5, 5, 0]
    own = {f"{row.host}:{row.port}" for row in answers[2].brokers}
    assert len(own) == 2 and not own & set(fleet.bootstrap.split(","))
    assert lines[:2] == [
        "kwire tap: Metadata error=LEADER_NOT_AVAILABLE times=2 topic=t: 2 times", "kwire tap: Fetch close: 0 times"]
    if records:
        taken = [one.api for one in read_capture(str(tmp_path / "taken.jsonl.gz"))]
        assert lines[2].startswith(f"kwire tap: {2 * len(taken)} frames of 1 connections in ")
        assert taken.count("Metadata") == 3
    else:
        assert len(lines) == 2


@pytest.mark.parametrize(("arguments", "reason"), [
    (["--target", "a:1"], "Missing option '--out'"),
    (["--target", "a:1", "--fault", "Produze close"], "Invalid value for --fault: unknown API 'Produze'"),
    (["--target", "a:1", "--fault", "Produce"], "without an effect"),
    (["--target", "a:1", "--fault", "Produce error=\x1b[31m"], "unknown error code"),
    (["--target", "a:1", "--fault", "close", "--out", "-"], "the beginning of two file names"),
])
def test_slips(arguments: list[str], reason: str) -> None:
    done = subprocess.run(tap(*arguments), capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and reason in done.stderr and not done.stdout
    assert "\x1b" not in done.stderr and done.stderr.count("\n") == 1


def test_files_that_are_there_already(tmp_path: Path) -> None:
    (tmp_path / "taken.jsonl.gz").write_bytes(b"")
    done = subprocess.run(
        tap("--target", "127.0.0.1:1", "--fault", "close", "--out", str(tmp_path / "taken")),
        capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "taken.jsonl.gz: File exists" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("how", ["--out", "--fault"])
def test_a_host_that_is_not_known_is_named(tmp_path: Path, how: str) -> None:
    value = str(tmp_path / "taken") if how == "--out" else "Fetch close"
    done = subprocess.run(
        tap("--listen", "no-such-host.invalid:0", "--target", "127.0.0.1:1", how, value),
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("kwire: no-such-host.invalid:0: ")
    assert done.stderr.count("\n") == 1 and not list(tmp_path.iterdir())


def test_a_cluster_that_is_not_there() -> None:
    with Fleet() as fleet:
        gone = fleet.bootstrap
    with running("--target", gone, "--fault", "Fetch close") as (process, address):
        with pytest.raises(BrokerConnectionError), connect_sync(address, timeout=20):
            pass
        assert process.stderr is not None
        assert process.stderr.readline() == f"kwire tap: {gone}: Connection refused\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
