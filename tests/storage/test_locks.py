"""Locks on folders: one holder, also after a fork."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path

import pytest

from kwire.storage import SegmentWriter
from kwire.storage.writing.locks import LOCK_FILE, lock_as_broker, locked_folder, unlock_folder

pytestmark = pytest.mark.quick


def is_free(folder: Path) -> bool:
    try:
        descriptor = locked_folder(str(folder), "somebody has it")
    except OSError as error:
        assert "somebody has it" in str(error) and error.filename == str(folder)
        return False
    unlock_folder(descriptor, os.getpid())
    return True


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    held = locked_folder(str(tmp_path), "")
    assert not is_free(tmp_path)
    unlock_folder(held, os.getpid())
    assert is_free(tmp_path)
    with pytest.raises(FileNotFoundError):
        locked_folder(str(tmp_path / "none"), "")


def test_a_child_neither_keeps_a_lock_nor_takes_it_away(tmp_path: Path) -> None:
    held, process = locked_folder(str(tmp_path), ""), os.getpid()
    if not (child := os.fork()):
        unlock_folder(held, process)
        os._exit(0)
    os.waitpid(child, 0)
    assert not is_free(tmp_path)
    end, begin = os.pipe()
    if not (child := os.fork()):
        os.close(begin)
        os.read(end, 1)
        os._exit(0)
    unlock_folder(held, process)
    assert is_free(tmp_path)
    os.close(begin)
    os.waitpid(child, 0)


def test_a_running_broker_has_the_log_directory(tmp_path: Path) -> None:
    file = os.open(tmp_path / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    lock_as_broker(file, str(tmp_path))
    if not (child := os.fork()):  # another process: the lock is the process's
        try:
            lock_as_broker(os.open(tmp_path / LOCK_FILE, os.O_RDWR), str(tmp_path))
        except OSError as error:
            os._exit(7 if "a broker that runs has locked it" in str(error) else 8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    os.close(file)


def test_a_link_to_a_partition_of_a_running_broker(tmp_path: Path) -> None:
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    (tmp_path / "t-0").symlink_to("data/t-0")
    file = os.open(tmp_path / "data" / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    if not (child := os.fork()):
        fcntl.lockf(file, fcntl.LOCK_EX)
        (tmp_path / "locked").touch()
        signal.pause()
    try:
        while not (tmp_path / "locked").exists():
            time.sleep(0.01)
        for folder in (tmp_path / "t-0", tmp_path / "data"):
            with pytest.raises(OSError, match="a broker that runs has locked it"):
                SegmentWriter(folder, "t", 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(file)
    SegmentWriter(tmp_path / "t-0", "t", 0).close()
