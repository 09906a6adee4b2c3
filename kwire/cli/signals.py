"""SIGINT and SIGTERM for commands that run until they are stopped."""

from __future__ import annotations

import asyncio
import signal


def stopped() -> asyncio.Event:
    """An event that SIGINT or SIGTERM sets; called in the running loop."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
