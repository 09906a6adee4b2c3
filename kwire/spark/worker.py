"""Set-up that is done once in each Python process that Spark forks."""

from __future__ import annotations

import gc
import sys
from functools import cache

DAEMON = "pyspark.daemon"


@cache
def settle() -> None:
    """Exclude all objects so far from garbage collection in a process that pyspark.daemon forked; else do nothing.

    Such a process collects all generations after every task, and visits all modules each time: 20 ms, in which
    500,000 records could be decoded.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == DAEMON:
        gc.freeze()
