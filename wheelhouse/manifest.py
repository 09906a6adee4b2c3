"""What landed: manifest.json (size, hash and tests of each file) and SHA256SUMS (for sha256sum --check)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(folder: Path, facts: Mapping[str, Mapping[str, Any]], left_out: Mapping[str, str]) -> None:
    """Writes both files beside the wheels.

    facts: what else there is to say of a file, by its name; left_out: why a target has no wheel, by the target's name.
    """
    files = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    rows = [
        {
            "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size,
            **facts.get(path.name, {}),
        }
        for path in files
    ]  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps({"files": rows, "left_out": dict(left_out)}, indent=2) + "\n")
    (folder / "SHA256SUMS").write_text("".join(f"{row['sha256']}  {row['file']}\n" for row in rows))
