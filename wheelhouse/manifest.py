"""The list of the files made: manifest.json (size, hash and tests of each) and SHA256SUMS (for sha256sum --check)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(folder: Path, entries: Mapping[str, Mapping[str, Any]], left_out: Mapping[str, str]) -> None:
    """Write both files beside the wheels.

    entries: further keys of a file's entry, by its name; left_out: why a target has no wheel, by the target's name.
    """
    files = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    rows = [
        {
            "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size,
            **entries.get(path.name, {}),
        }
        for path in files
    ]  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps({"files": rows, "left_out": dict(left_out)}, indent=2) + "\n")
    (folder / "SHA256SUMS").write_text("".join(f"{row['sha256']}  {row['file']}\n" for row in rows))
