"""tar.xz archives of test data: one folder replaced, the rest kept, the same bytes for the same files."""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path


def read(path: Path) -> dict[str, bytes]:
    """The files of an archive; {} when there is none yet."""
    if not path.exists():
        return {}
    found = {}
    with tarfile.open(path) as archive:
        for item in archive:
            data = archive.extractfile(item) if item.isfile() else None
            if data is not None:
                found[item.name] = data.read()
    return found


def write(path: Path, files: dict[str, bytes]) -> None:
    """Writes files by name, without times and owners."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            item = tarfile.TarInfo(name)
            item.size = len(data)
            archive.addfile(item, io.BytesIO(data))
    path.write_bytes(lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def replace(path: Path, under: str, files: dict[str, bytes]) -> None:
    """Puts files (names below the folder `under`) in place of what the archive has in that folder."""
    kept = {name: data for name, data in read(path).items() if not name.startswith(f"{under}/")}
    write(path, kept | {f"{under}/{name}": data for name, data in files.items()})


def folder(path: Path, left_out: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The files below a folder, less those whose path has one of some words."""
    found = {str(one.relative_to(path)): one for one in sorted(path.rglob("*")) if one.is_file()}
    return {name: one.read_bytes() for name, one in found.items() if not any(word in name for word in left_out)}
