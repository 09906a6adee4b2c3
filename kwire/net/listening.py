"""Servers of asyncio whose process may run out of files."""

from __future__ import annotations

import asyncio

# asyncio's backlog says how many clients wait, and how often a turn tries to accept one. Where no more files can be
# opened each try that fails begins a timer, which tries as often again a second later: with 100 no turn ever ends.
ACCEPTED_AT_ONCE = 1
_WAITING = 1024


def let_clients_wait(server: asyncio.Server) -> None:
    """Let clients wait at a server that was started with backlog=ACCEPTED_AT_ONCE. Raises OSError."""
    for one in server.sockets:
        with one.dup() as listener:
            listener.listen(_WAITING)
