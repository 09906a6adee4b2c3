"""Locks on folders: one writer at a time, and none while a broker runs."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import Any

LOCK_FILE = ".lock"  # of a log directory, held by its broker (Kafka's FileLock)
_TAKEN = (errno.EAGAIN, errno.EACCES)
_BY_BROKER = "a broker that runs has locked it (.lock)"
_held: set[tuple[int, int, int]] = set()  # (process, device, inode) of each .lock that this process holds


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

    The lock is the process's: it ends when any descriptor of the file is closed. End it with unlock_as_broker().
    """
    _lock(fcntl.lockf, descriptor, _BY_BROKER, directory)
    _held.add(_identity(os.fstat(descriptor)))


def unlock_as_broker(descriptor: int) -> None:
    """Close the descriptor of a .lock, which ends the lock."""
    _held.discard(_identity(os.fstat(descriptor)))
    os.close(descriptor)


def check_no_broker(directory: str) -> None:
    """Raise OSError if a broker runs on a log directory, or a Fleet of this process.

    A .lock that this process holds is not opened: the lock would end when it is closed.
    """
    path = os.path.join(directory, LOCK_FILE)
    try:
        is_ours = _identity(os.stat(path)) in _held
        descriptor = -1 if is_ours else os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    if is_ours:
        raise OSError(errno.EBUSY, "a Fleet of this process has locked it (.lock)", directory)
    try:
        _lock(fcntl.lockf, descriptor, _BY_BROKER, directory)
    finally:
        os.close(descriptor)


def _identity(place: os.stat_result) -> tuple[int, int, int]:
    return os.getpid(), place.st_dev, place.st_ino


def _lock(lock: Any, descriptor: int, by: str, folder: str) -> None:
    """What a file system without locks says is no error."""
    try:
        lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise OSError(errno.EBUSY, by, folder) from None
