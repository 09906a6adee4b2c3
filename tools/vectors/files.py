"""Files with the same bytes in every run: gzip and zip without the time of day."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DAWN = (1980, 1, 2, 0, 0, 0)  # a zip's date, the same in every run


def line(row: dict[str, Any]) -> str:
    """One row of a file: compact JSON in ASCII."""
    return json.dumps(row, separators=(",", ":")) + "\n"


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Writes rows as JSON lines, compressed; how many there were."""
    count, out = 0, io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as file:
        for row in rows:
            file.write(line(row).encode())
            count += 1
    path.write_bytes(out.getvalue())
    return count


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of such a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for text in lines:
            yield json.loads(text)


def write_json(path: Path, value: Any) -> None:
    """Writes one indented JSON value."""
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_zip(path: Path, files: dict[str, bytes]) -> None:
    """Writes files in order."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, DAWN), data, zipfile.ZIP_DEFLATED, 9)
