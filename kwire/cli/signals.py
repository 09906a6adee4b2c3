"""SIGINT, SIGTERM and SIGHUP for commands that run until they are stopped."""

from __future__ import annotations

import asyncio
import signal


def stopped() -> asyncio.Event:
    """An event that SIGINT or SIGTERM sets, and SIGHUP unless it is ignored (nohup); called in the running loop."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    return stop
