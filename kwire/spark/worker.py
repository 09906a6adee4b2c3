"""What the Python processes that Spark starts need: set-up that is done once in each, and errors in one line."""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from typing import Any, TypeVar, cast

from kwire.errors import KwireError

DAEMON = "pyspark.daemon"
F = TypeVar("F", bound=Callable[..., Any])


@cache
def settle() -> None:
    """Make a process that pyspark.daemon forked fast at short tasks, once; in other processes do nothing.

    Objects so far are excluded from garbage collection: such a process collects all generations after every task, and
    visits all modules each time, 20 ms in which 500,000 records could be decoded. What it sends to Spark's JVM goes out
    at once (TCP_NODELAY): else the end of a short answer waits until the JVM has acknowledged the beginning.
    """
    if _program() == DAEMON:
        gc.freeze()
        _set_on_connections(socket.TCP_NODELAY)


class SentToWorkers:
    """A reader of tasks, which acknowledges in a process that pyspark.daemon forked that it has come there.

    Spark's JVM sends a task's function, with the reader in it, and then what it is to read. Nagle's algorithm keeps the
    latter back until the function is acknowledged, and Linux delays that by 40 ms.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if sys.platform == "linux" and _program() == DAEMON:
            _set_on_connections(socket.TCP_QUICKACK)


@cache
def _connections() -> tuple[int, ...]:
    """The descriptors of this process's TCP connections: in a worker those to the JVM."""
    found = []
    for name in os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ():
        with suppress(OSError):  # the descriptor by which /dev/fd was listed
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as connection:
                    if connection.family in (socket.AF_INET, socket.AF_INET6):
                        found.append(int(name))
    return tuple(found)


def _set_on_connections(option: int) -> None:
    for descriptor in _connections():
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=os.dup(descriptor)) as one:
            one.setsockopt(socket.IPPROTO_TCP, option, 1)


def in_one_line(method: F) -> F:
    """Make a method's errors that say all in their text reach the user in one line, without a Python traceback.

    Spark puts the worker's whole report into its own error; the traceback comes first in it, and what is wrong last, on
    Spark Connect before the stack of the JVM. PySpark leaves the traceback out where SPARK_HIDE_TRACEBACK is set: it is
    set here in the process that has failed, which ends with its report. Other errors keep their traceback.
    """

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        with _reported():
            result = method(*arguments, **options)
        return _items(result) if isinstance(result, Iterator) else result

    return cast(F, call)


def _items(iterator: Iterator[Any]) -> Iterator[Any]:
    with _reported():
        yield from iterator


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # not ValueError's other subclasses: UnicodeDecodeError and pyarrow's say too little
        says_all = isinstance(error, KwireError | OSError | ImportError) or type(error) is ValueError
        if says_all and _program().startswith("pyspark."):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def _program() -> str:
    """The module that this process was started with, "" if it is a script."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return "" if main is None else str(main.name)
