"""Calls near the end of Python's stack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def with_frames_left(frames: int, call: Callable[[], Any]) -> Any:
    """What a call gives that may go so many frames deep. Raises RecursionError if they are too few."""
    return _below(sys.getrecursionlimit() - _depth() - frames, call)


def _depth() -> int:
    """Frames of this thread."""
    frame, frames = sys._getframe(), 0
    while frame := frame.f_back:  # type: ignore[assignment]
        frames += 1
    return frames


def _below(levels: int, call: Callable[[], Any]) -> Any:
    """What a call gives, so many frames below this one."""
    return _below(levels - 1, call) if levels > 0 else call()
