"""What the Python processes that Spark starts need: set-up that is done once in each, and errors in one line."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar, cast

from kwire.errors import KwireError

DAEMON = "pyspark.daemon"
F = TypeVar("F", bound=Callable[..., Any])


@cache
def settle() -> None:
    """Exclude all objects so far from garbage collection in a process that pyspark.daemon forked; else do nothing.

    Such a process collects all generations after every task, and visits all modules each time: 20 ms, in which
    500,000 records could be decoded.
    """
    if _program() == DAEMON:
        gc.freeze()


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
