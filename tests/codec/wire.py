"""Frames that real clients and brokers exchanged."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tools.places import DATA

ARCHIVE = DATA / "wire.tar.xz"


@lru_cache(1)
def _files() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {item.name: archive.extractfile(item).read() for item in archive}  # type: ignore[union-attr]


def captures() -> list[str]:
    """The names of all captures, as "broker-4.3.0/librdkafka"."""
    return sorted(name.removesuffix(".jsonl") for name in _files() if name.endswith(".jsonl"))


def frames(capture: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """(description of a frame, the frame without its size), in order."""
    data = _files()[f"{capture}.bin"]
    for line in _files()[f"{capture}.jsonl"].splitlines():
        frame = json.loads(line)
        yield frame, data[frame["off"] + 4 : frame["off"] + frame["len"]]
