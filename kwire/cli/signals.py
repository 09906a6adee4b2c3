"""SIGINT, SIGTERM and SIGHUP for commands that run until they are stopped."""

from __future__ import annotations

import asyncio
import signal


def stopped() -> asyncio.Event:
    """An event that SIGINT, SIGTERM and SIGHUP set; called in the running loop.

    Those that the caller ignores stay ignored (nohup; SIGINT of what a script runs in the background).
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    return stop
