"""build_info: versions, compiler, libraries and limits of this build."""

from __future__ import annotations

from typing import Any

from kwire import compression
from kwire.defaults import MAX_BATCH_BYTES, MAX_FRAME_BYTES
from kwire.version import __version__
from kwire_c.crc32c import variants
from kwire_c.record_batch import COMPILER


def build_info() -> dict[str, Any]:
    """Version, compiler, which CRC-32C and which codec libraries are in use, and the default limits in bytes."""
    return {
        "version": __version__,
        "compiler": COMPILER,
        "crc32c": variants()[0],
        "codecs": compression.libraries(),
        "limits": {"max_batch_bytes": MAX_BATCH_BYTES, "max_frame_bytes": MAX_FRAME_BYTES},
    }
