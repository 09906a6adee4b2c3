"""Unmodified clients of other people on fleets of old and new releases: produce, read in a group, commit, go on."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwire.fleet import Fleet
from tests.fleet.clients import CLIENTS, CODECS, Client
from tools.kafka.maven import MissingTool
from tools.kafka.releases import version
from tools.places import ROOT

RELEASES = ("0.10.2", "1.1", "2.2", "2.8", "3.9", "4.4")
PARTITIONS = 6
RECORDS = 10_000  # with each codec
PATIENCE = 120  # seconds for one program
_FIRST_WITH_ZSTD, _FIRST_WITH_TRANSACTIONS = (2, 1), (0, 11)


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.timeout(900)
@pytest.mark.parametrize("data", [None, "data"], ids=["memory", "disk"])
@pytest.mark.parametrize(
    ("name", "release"), [(name, release) for name in CLIENTS for release in RELEASES if CLIENTS[name].is_for(release)])
def test_a_client_produces_and_a_group_reads(name: str, release: str, data: str | None, tmp_path: Path) -> None:
    with Fleet(release, 3, data=None if data is None else str(tmp_path / data)) as fleet:
        scenario(CLIENTS[name], fleet, release, RECORDS, tmp_path)


def scenario(client: Client, fleet: Fleet, release: str, records: int, folder: Path) -> None:
    """What a client does in a working life: topics, each codec, a group of two, a restart, transactions."""
    program = Program(client, fleet, release, folder)
    codecs = CODECS if version(release) >= _FIRST_WITH_ZSTD else CODECS[:-1]
    program.run("admin", "t", str(PARTITIONS))
    assert len(fleet.cluster.topics["t"].partitions) == PARTITIONS
    with program.consuming() as first:
        for codec in codecs[:2]:
            program.run("produce", "t", codec, str(records))
        until(lambda: len(first.names) > 0, first)
        with program.consuming() as second:
            until(lambda: members(fleet) == 2, first, second)
            for codec in codecs[2:]:
                program.run("produce", "t", codec, str(records))
            sent = {f"{codec}-{at}" for codec in codecs for at in range(records)}
            until(lambda: sent <= {*first.names, *second.names}, first, second)
            assert second.names, "the second member was given nothing"
    assert {*first.names, *second.names} == sent
    written = [record for at in range(PARTITIONS) for record in fleet.records("t", at)]
    assert {record.value.split(b" ")[0].decode() for record in written} == sent
    program.run("produce", "t", "gzip", "1000")
    words = {f"gzip-{at}" for at in range(1000)}
    if client.transactions and version(release) >= _FIRST_WITH_TRANSACTIONS:
        program.run("transactions", "t", "500")
        words |= {f"committed-{at}" for at in range(500)}
    with program.consuming() as third:  # where the group left off, and no aborted record
        until(lambda: words <= set(third.names), third)
    assert Counter(third.names) == Counter(words)


def members(fleet: Fleet) -> int:
    """The members of the group g, 0 while they join."""
    group = fleet.cluster.groups.classic("g")
    return len(group.members) if group is not None and group.state == "Stable" else 0


class Program:
    """A client as a program, on a fleet."""

    def __init__(self, client: Client, fleet: Fleet, release: str, folder: Path) -> None:
        try:
            self._command = client.command()
        except MissingTool as missing:
            pytest.fail(str(missing), pytrace=False)
        self._arguments = [fleet.bootstrap, release]
        self._folder, self._members = folder, 0

    def run(self, *arguments: str) -> None:
        """Run a command that must succeed."""
        done = subprocess.run(
            [*self._command, *self._arguments, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-1000:]}{done.stderr[-4000:]}"

    @contextmanager
    def consuming(self) -> Iterator[Consumer]:
        """A member of the group g, which commits and leaves at the end."""
        self._members += 1
        errors = self._folder / f"member-{self._members}.txt"
        consumer = Consumer([*self._command, *self._arguments, "consume", "t", "g"], errors)
        try:
            yield consumer
            consumer.leave()
        finally:
            consumer.kill()


class Consumer:
    """A running member of a group. names: of the records that it read so far."""

    def __init__(self, command: list[str], errors: Path) -> None:
        self.names: list[str] = []
        self._errors = errors
        with open(errors, "wb") as file:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True)
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.names.append(line.strip())

    def check(self) -> None:
        """Is it still there?"""
        assert self._process.poll() is None, self.said()

    def said(self) -> str:
        """The end of its standard error."""
        return f"{len(self.names)} records, exit {self._process.poll()}: {self._errors.read_text()[-4000:]}"

    def leave(self) -> None:
        """Let it commit and leave."""
        self.check()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(PATIENCE) == 0, self.said()
        except subprocess.TimeoutExpired:
            pytest.fail(f"it does not leave: {self.said()}")
        self._reading.join()

    def kill(self) -> None:
        """End it, if it runs."""
        self._process.kill()
        self._process.wait()
        self._reading.join()


def until(met: Callable[[], bool], *consumers: Consumer) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not met():
        for one in consumers:
            one.check()
        assert time.monotonic() < end, "\n".join(one.said() for one in consumers)
        time.sleep(0.05)
