"""The steps of a workload: each may fail, since an old broker has not every API, and none stops the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = [("trace-id", b"7"), ("empty", b"")]


def attempt(name: str, step: Callable[[], Any]) -> Any:
    """Does one step; a failure goes to stderr as "failed NAME: why", and the result is None."""
    try:
        return step()
    except Exception as error:  # whatever the client raises
        print(f"failed {name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return None


def records(count: int) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Keys and values, nulls among them."""
    for i in range(count):
        yield (None if i % 5 == 4 else b"key-%d" % (i % 7)), (None if i % 11 == 10 else b"value-%d " % i * (1 + i % 6))
