"""Fixtures for every folder of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.upstream import places


@pytest.fixture(scope="session")
def golden() -> Path:
    """The unpacked golden data (read only): data/, old-brokers/, dump-log/."""
    return places.golden()


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of vectors that Apache Kafka's own classes wrote."""
    return places.VECTORS
