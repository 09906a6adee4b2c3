"""Small files that are written whole: checkpoints, meta.properties, snapshots."""

from __future__ import annotations

from kwire.fleet.errors import certainly
from kwire.output import new_file


def write_whole(path: str, data: bytes) -> None:
    """Write a file, in the place of one that is there: all of it or nothing. Raises OSError.

    Where memory is short it is written again: nobody could say whether it had its name already.
    """
    def write() -> None:
        with new_file(path, force=True, sync=False) as file:
            file.write(data)

    certainly(write)
