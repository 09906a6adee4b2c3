"""Files put into directories together: all of them, or none that a later command would take for a formatted one."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from kwire.output import sync_folder

_LAST = "meta.properties"  # a directory is formatted once it has this file
_PARTIAL = re.compile(r"\.([^/]+)\.[0-9a-f]{16}\.partial")


class Staging:
    """Directories written beside their places, which commit() moves there; use it with `with`.

    A directory that does not exist is made whole under another name and renamed. Into one that exists, the files are
    written under other names and renamed one after another, meta.properties last. Whatever ends the block before
    commit() has returned, what was written is removed again. What a killed process left is removed by the next one.
    """

    def __init__(self, directories: list[str]) -> None:
        self._undo: list[Callable[[], None]] = []
        self._moves: list[Callable[[], None]] = []
        self._left: dict[str, dict[str, list[str]]] = {}  # folder -> name -> partial files
        above = {str(parent) for one in directories for parent in Path(os.path.abspath(one)).parents}
        self._outer = {one for one in directories if os.path.abspath(one) in above}

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        for undo in reversed(self._undo):
            with suppress(OSError):
                undo()

    def add(self, directory: str, files: Mapping[str, bytes]) -> None:
        """Write a directory's files, names with at most one folder in front. Raises OSError."""
        place = os.path.realpath(directory) if os.path.isdir(directory) else os.path.abspath(directory)
        if os.path.lexists(place) and not os.path.isdir(place):
            raise FileExistsError(17, "File exists", directory)
        if directory in self._outer:  # another of the directories is in it
            self._make_folder(place)
        if os.path.isdir(place):
            self._into(place, files)
        else:
            self._as_new(place, files)

    def commit(self) -> None:
        """Move everything to its place. Raises OSError."""
        for move in self._moves:
            move()
        self._undo.clear()

    def _as_new(self, place: str, files: Mapping[str, bytes]) -> None:
        parent = os.path.dirname(place)
        self._make_folder(parent)
        self._remove_partials(place)
        partial = os.path.join(parent, _partial_name(os.path.basename(place)))
        self._undo.append(lambda: shutil.rmtree(partial))
        os.mkdir(partial)
        for name, data in files.items():
            path = os.path.join(partial, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _write(path, data)
            sync_folder(os.path.dirname(path))
        sync_folder(partial)

        def move() -> None:
            os.rename(partial, place)
            self._undo.append(lambda: shutil.rmtree(place))
            sync_folder(parent)

        self._moves.append(move)

    def _into(self, place: str, files: Mapping[str, bytes]) -> None:
        for name in sorted(files, key=lambda name: name == _LAST):
            path = os.path.join(place, name)
            folder = os.path.dirname(path)
            self._make_folder(folder)
            self._remove_partials(path)
            partial = os.path.join(folder, _partial_name(os.path.basename(path)))
            self._undo.append(lambda partial=partial: os.unlink(partial))  # type: ignore[misc]
            _write(partial, files[name])

            def move(partial: str = partial, path: str = path, folder: str = folder) -> None:
                new = not os.path.lexists(path)
                os.replace(partial, path)
                if new:
                    self._undo.append(lambda: os.unlink(path))
                sync_folder(folder)

            self._moves.append(move)

    def _remove_partials(self, path: str) -> None:
        """Remove what killed processes left of a file or directory. Each folder is listed once."""
        folder, name = os.path.split(path)
        if folder not in self._left:
            self._left[folder] = _partials(folder)
        for left in self._left[folder].pop(name, ()):
            with suppress(OSError):
                shutil.rmtree(left) if os.path.isdir(left) and not os.path.islink(left) else os.unlink(left)

    def _make_folder(self, folder: str) -> None:
        """Make a folder and those above it; they are removed again if they stay empty."""
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for one in reversed(missing):
            self._undo.append(lambda one=one: os.rmdir(one))  # type: ignore[misc]
            os.mkdir(one)
            sync_folder(os.path.dirname(one))


def _partial_name(name: str) -> str:
    return f".{name}.{secrets.token_hex(8)}.partial"


def final_name(path: str) -> str:
    """The path that a file or directory has after commit()."""
    return _PARTIAL.sub(r"\1", path)


def _partials(folder: str) -> dict[str, list[str]]:
    """What killed processes left in a folder, by the name that it would have got."""
    found: dict[str, list[str]] = {}
    with suppress(OSError):
        for name in os.listdir(folder):
            match = _PARTIAL.fullmatch(name)
            if match is not None:
                found.setdefault(match[1], []).append(os.path.join(folder, name))
    return found


def _write(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
