"""Locks that Ctrl-C does not leave taken: what came in Python 3.14 between a lock and the block of its `with`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from kwire.capture import FrameWriter
from kwire.fleet import Fleet
from kwire.held_lock import holding
from kwire.messages import MetadataRequest
from kwire.net import connect_sync

pytestmark = pytest.mark.quick


class Interrupted:
    """An RLock; Ctrl-C comes when it was taken (after), or just before."""

    def __init__(self, after: bool) -> None:
        self._lock, self._after, self.left = threading.RLock(), after, 1

    def acquire(self) -> bool:
        if self.left and not self._after:
            self.left = 0
            raise KeyboardInterrupt
        self._lock.acquire()
        if self.left:
            self.left = 0
            raise KeyboardInterrupt
        return True

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def release(self) -> None:
        self._lock.release()

    def _is_owned(self) -> bool:
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]


def in_another_thread(work: Any) -> None:
    """Do work, which must not wait for this thread."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and not errors, errors


@pytest.mark.parametrize("after", [True, False])
def test_a_lock_is_released(after: bool) -> None:
    lock = Interrupted(after)
    with pytest.raises(KeyboardInterrupt):
        holding(lock, lambda: pytest.fail("it does not hold the lock"))
    assert holding(lock, lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        holding(lock, lambda: 1 // 0)
    in_another_thread(lambda: holding(lock, lambda: None))


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("name", ["_guard", "_ending"])
def test_a_connection(after: bool, name: str) -> None:
    with Fleet() as fleet:
        connection: Any = connect_sync(fleet.bootstrap, timeout=20)
        setattr(connection, name, Interrupted(after))
        with pytest.raises(KeyboardInterrupt):
            connection.open()
        in_another_thread(lambda: connection.send(MetadataRequest(topics=[])))
        getattr(connection, name).left = 1
        with pytest.raises(KeyboardInterrupt):
            connection.close()
        in_another_thread(connection.close)


@pytest.mark.parametrize("after", [True, False])
def test_a_recording(after: bool, tmp_path: Path) -> None:
    writer: Any = FrameWriter(str(tmp_path / "t"))
    writer._guard = Interrupted(after)
    with pytest.raises(KeyboardInterrupt):
        writer.flush()
    in_another_thread(writer.flush)
    writer.close()
