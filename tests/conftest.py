"""Fixtures for every folder of tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.reads import Read, Reads
from tools import places
from tools.kafka.maven import MissingTool
from tools.kafka.oracle import NEWEST, OLD, Oracle

JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # Spark's runs are short: what starts them soonest
os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # `make test &`: the commands of tests would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that with several workers none of them is left alone at the end."""
    slow = {item.path for item in items if item.get_closest_marker("quick") is None}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def golden() -> Path:
    """The unpacked golden data (read only): data/, old-brokers/, dump-log/."""
    return places.golden()


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of vectors that Apache Kafka's own classes wrote."""
    return places.VECTORS


@contextmanager
def started(release: str) -> Iterator[Oracle]:
    """A running oracle; a failed test, not a skipped one, where Java or Maven is missing."""
    try:
        running = Oracle(release)
    except MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """The newest release's own classes."""
    with started(NEWEST) as running:
        yield running


@pytest.fixture(scope="session")
def old_oracle() -> Iterator[Oracle]:
    """3.9's own classes (messages only), for the versions that 4.0 removed."""
    with started(OLD) as running:
        yield running


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """The reads of local files by kwire.storage, as they happen."""
    from kwire.storage.places import filesystem
    from kwire_c.log_scan import read_piece

    done = Reads()

    def reading(file: int, start: int, end: int, before: Any = b"") -> memoryview:
        piece: memoryview = read_piece(file, start, end, before)
        done.append(Read(start, len(piece) - len(memoryview(before))))
        return piece

    monkeypatch.setattr(filesystem, "read_piece", reading)
    return done
