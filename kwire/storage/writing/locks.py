"""Locks on folders: one writer at a time, and none while a broker runs."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import Any

LOCK_FILE = ".lock"  # of a log directory, held by its broker (Kafka's FileLock)
_TAKEN = (errno.EAGAIN, errno.EACCES)


def locked_folder(folder: str, by: str) -> int:
    """A descriptor of a folder that only one holder has at a time; by: says who has it now. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(fcntl.flock, descriptor, by, folder)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def unlock_folder(descriptor: int, process: int) -> None:
    """Let go of locked_folder(). process: that locked it; a child of fork neither keeps the lock nor takes it away."""
    try:
        if os.getpid() == process:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def lock_as_broker(descriptor: int, directory: str) -> None:
    """Hold the .lock of a log directory, which was opened, as a broker that runs does. Raises OSError if one does.

    The lock is the process's: it ends when any descriptor of the file is closed.
    """
    _lock(fcntl.lockf, descriptor, "a broker that runs has locked it (.lock)", directory)


def _lock(lock: Any, descriptor: int, by: str, folder: str) -> None:
    """What a file system without locks says is no error."""
    try:
        lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise OSError(errno.EBUSY, by, folder) from None
