"""What is done once in each of the Python processes that Spark forks."""

from __future__ import annotations

import gc
import sys
from functools import cache

DAEMON = "pyspark.daemon"


@cache
def settle() -> None:
    """Take what is loaded by now out of garbage collection, in a process that pyspark.daemon forked; else do nothing.

    Such a process collects all generations after every task, and walks through the same modules each time: 20 ms, in
    which 500,000 records are decoded.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == DAEMON:
        gc.freeze()
