"""Asking an event loop from another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def post(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> bool:
    """Have a loop run work, from any thread; False if it is closed.

    Raises RecursionError where the stack of the caller ends: the loop may not know of the work.
    """
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:
        if not loop.is_closed():
            raise
        return False
    return True
