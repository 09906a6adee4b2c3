"""Limits that tests put on work which took minutes once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def processor_time(most: float) -> Iterator[None]:
    """Fails where the block takes more seconds of the processor; choose them many times what it needs."""
    begun = time.process_time()
    yield
    taken = time.process_time() - begun
    assert taken < most, f"{taken:.1f} s, expected at most {most} s"
