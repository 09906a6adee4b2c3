"""Record batches in Spark: callables for mapPartitions, functions over binary columns, the data source "kwire"."""

from __future__ import annotations

import sys

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.spark.functions import decode_records as decode_records
    from kwire.spark.functions import records as records
    from kwire.spark.messages import decode_frames as decode_frames
    from kwire.spark.messages import decode_messages as decode_messages
    from kwire.spark.messages import from_wire as from_wire
    from kwire.spark.source import KwireDataSource as KwireDataSource
    from kwire.spark.source import describe as describe
    from kwire.spark.source import register as register



def _check_installed() -> None:
    """Raise ImportError that names the extra, where a package is missing; nothing is imported for it."""
    import importlib.util

    for package in ("pyspark", "pyarrow"):
        try:
            is_there = package in sys.modules or importlib.util.find_spec(package) is not None
        except (ImportError, ValueError):
            is_there = False
        if not is_there:
            raise ImportError(f"kwire.spark needs {package}: pip install 'kwire[spark]'", name=package)


_check_installed()

# module -> its public names; imported at first use, as Spark starts a new Python for each step of planning
_NAMES = {
    "kwire.spark.functions": ("decode_records", "records"),
    "kwire.spark.messages": ("decode_frames", "decode_messages", "from_wire"),
    "kwire.spark.source": ("KwireDataSource", "describe", "register"),
}

__getattr__, __dir__, __all__ = attach(__name__, _NAMES)
