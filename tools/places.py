"""Where things are: the tree and the data in it; and outside of it, by content, what is downloaded or unpacked."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
VECTORS = DATA / "vectors"


def cache() -> Path:
    """The folder for downloads and compiled files: $KWIRE_CACHE, else ~/.cache/kwire."""
    place = os.environ.get("KWIRE_CACHE")
    root = Path(place) if place else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kwire"
    root.mkdir(parents=True, exist_ok=True)
    return root


def digest(*parts: bytes) -> str:
    """16 hex digits of SHA-256, for names of files in the cache."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def golden() -> Path:
    """Unpacks tests/data/golden.tar.xz once; the folder of data/, old-brokers/, dump-log/. Read only: copy, then write.

    data/kafka-RELEASE/dataN: log directories that brokers 2.2.2, 2.8.2, 4.3.0 (one and three nodes) left after a
    clean stop; old-brokers/RELEASE: partitions of 0.9.0.1 (magic 0) and 0.10.2.2 (magic 1); dump-log: texts of
    kafka-dump-log 4.3.0.
    """
    archive = DATA / "golden.tar.xz"
    target = cache() / f"golden-{digest(archive.read_bytes())}"
    if not target.exists():
        fresh = Path(tempfile.mkdtemp(dir=cache(), prefix="golden-"))
        with tarfile.open(archive) as tar:
            tar.extractall(fresh, filter="data")
        try:
            fresh.rename(target)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    return target
