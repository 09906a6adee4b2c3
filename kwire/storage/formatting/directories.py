"""Files put into directories together: all of them, or none that a later command would take for a formatted one."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from kwire.output import access_of, sync_folder, to_the_end, write_new
from kwire.storage.writing.locks import locked_folder, unlock_folder

_LAST = "meta.properties"  # a directory is formatted once it has this file
_PARTIAL = re.compile(r"\.([^/]+)\.[0-9a-f]{16}\.partial")
_WAIT = 10  # seconds for another process that formats: it takes a fraction of one
_Identity: TypeAlias = tuple[int, int] | None  # device and inode; None: nothing is there
_MOST_NAME = 200  # bytes of a name that is part of a partial one as it is: a file system allows 255


class Staging:
    """Directories written beside their places, which commit() moves there; use it with `with`.

    A directory that does not exist is made whole under another name and renamed. Into one that exists, the files are
    written under other names and renamed one after another, meta.properties last. Whatever ends the block before
    commit() has returned, what was written is removed again, and what was replaced is put back. What a killed process
    left is removed by the next one. Processes that use the same directories take turns: the first one formats them.
    Entering raises OSError if another one does not end.
    """

    def __init__(self, directories: list[str]) -> None:
        self._undo: list[Callable[[], None]] = []
        self._moves: list[Callable[[], None]] = []
        self._left: dict[str, dict[str, list[str]]] = {}  # folder -> short name -> partial files
        self._final: dict[str, str] = {}  # partial path -> the one after commit()
        self._replaced: set[str] = set()  # partial names of files that were there, and are no longer needed
        self._directories, self._locks = directories, ExitStack()
        above = {str(parent) for one in directories for parent in Path(_place(one)).parents}
        self._outer = {one for one in directories if _place(one) in above}

    def __enter__(self) -> Staging:
        with ExitStack() as locks:
            for folder in sorted({os.path.realpath(one) for one in self._directories if os.path.isdir(one)}):
                _lock(folder, locks)
            self._locks = locks.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._locks:
            to_the_end(self._clean)

    def _clean(self) -> None:
        while self._undo:
            with suppress(OSError):
                self._undo[-1]()
            self._undo.pop()
        for old in self._replaced:
            with suppress(OSError):
                os.unlink(old)

    def add(self, directory: str, files: Mapping[str, bytes]) -> None:
        """Write a directory's files, names with at most one folder in front.

        Raises OSError, whose filename is the path after commit().
        """
        with self._final_names():
            self._add(directory, files)

    def commit(self) -> None:
        """Move everything to its place. Raises OSError as add() does."""
        with self._final_names():
            for move in self._moves:
                move()
        self._undo.clear()

    def _add(self, directory: str, files: Mapping[str, bytes]) -> None:
        if _is_above_nothing(directory):
            raise FileNotFoundError(2, "No such file or directory", directory)
        place = _place(directory)
        if os.path.lexists(place) and not os.path.isdir(place):
            raise FileExistsError(17, "File exists", directory)
        if directory in self._outer:  # another of the directories is in it
            self._make_folder(place)
        if not os.path.isdir(place):
            self._remove_partials(place)
        if os.path.isdir(place):
            self._into(place, files)
        else:
            self._as_new(place, files)

    def _as_new(self, place: str, files: Mapping[str, bytes]) -> None:
        parent = os.path.dirname(place)
        self._make_folder(parent)
        partial = self._partial(place)
        self._undo.append(lambda: shutil.rmtree(partial))
        os.mkdir(partial)
        made = _identity(partial)
        _lock(partial, self._locks)  # else another process takes it for one that was left
        for name, data in files.items():
            path = os.path.join(partial, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_new(path, data)
            sync_folder(os.path.dirname(path))
        sync_folder(partial)

        def undo() -> None:
            if _identity(place) == made:  # it was renamed; Ctrl-C may come before the rename has returned
                shutil.rmtree(place)

        def move() -> None:
            self._undo.append(undo)
            os.rename(partial, place)
            sync_folder(parent)

        self._moves.append(move)

    def _into(self, place: str, files: Mapping[str, bytes]) -> None:
        if _LAST in files and os.path.lexists(last := os.path.join(place, _LAST)):  # another process was first
            raise FileExistsError(17, "File exists", last)
        for name in sorted(files, key=lambda name: name == _LAST):
            path = os.path.join(place, name)
            folder = os.path.dirname(path)
            self._make_folder(folder)
            self._remove_partials(path)
            partial = self._partial(path)
            self._undo.append(lambda partial=partial: os.unlink(partial))  # type: ignore[misc]
            write_new(partial, files[name], access=access_of(path))
            self._moves.append(functools.partial(self._move, partial, path, _identity(partial)))

    def _move(self, partial: str, path: str, made: _Identity) -> None:
        """Give a partial file its name. made: its identity."""
        old = self._partial(path) if os.path.isfile(path) or os.path.islink(path) else None

        def undo() -> None:
            if old is not None:
                self._replaced.discard(old)  # if it cannot be put back, it stays as it is
                os.rename(old, path)
            elif _identity(path) == made:
                os.unlink(path)

        self._undo.append(undo)
        if old is not None:
            self._replaced.add(old)
            os.rename(path, old)
        os.replace(partial, path)
        sync_folder(os.path.dirname(path))

    def _remove_partials(self, path: str) -> None:
        """Remove what killed processes left of a file or directory, wait for one that makes the directory now.

        Each folder is listed once. Raises OSError if the other process does not end.
        """
        folder, name = os.path.split(path)
        if folder not in self._left:
            self._left[folder] = _partials(folder)
        for left in self._left[folder].pop(_short(name), ()):
            if os.path.isdir(left) and not os.path.islink(left):
                with ExitStack() as locks:
                    _lock(left, locks)
                    shutil.rmtree(left, ignore_errors=True)
                continue
            with suppress(OSError):
                os.unlink(left)

    def _partial(self, path: str) -> str:
        """The name under which a file or directory is written first, beside its own."""
        folder, name = os.path.split(path)
        partial = os.path.join(folder, f".{_short(name)}.{secrets.token_hex(8)}.partial")
        self._final[partial] = path
        return partial

    @contextmanager
    def _final_names(self) -> Iterator[None]:
        """Let an OSError name what would have been there after commit()."""
        try:
            yield
        except OSError as error:
            for partial, final in self._final.items():
                if isinstance(error.filename, str) and f"{error.filename}/".startswith(f"{partial}/"):
                    error.filename = final + error.filename[len(partial) :]
            raise

    def _make_folder(self, folder: str) -> None:
        """Make a folder and those above it; they are removed again if they stay empty."""
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for one in reversed(missing):
            self._undo.append(lambda one=one: os.rmdir(one))  # type: ignore[misc]
            try:
                os.mkdir(one)
            except FileExistsError:  # made by another process, for another directory in it
                self._undo.pop()
                if not os.path.isdir(one):
                    raise
            sync_folder(os.path.dirname(one))


def _place(directory: str) -> str:
    """The path of a directory without links in it; one that is not there may itself be a link, which stays."""
    folder, name = os.path.split(directory.rstrip("/"))
    if os.path.isdir(directory) or name in ("", ".", ".."):
        return os.path.realpath(directory)
    return os.path.join(os.path.realpath(folder), name)


def _identity(path: str) -> _Identity:
    """What tells a file or directory from another one that has its name now; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_above_nothing(directory: str) -> bool:
    """Is a .. in a path after a folder that is not there? A broker does not find it, whatever is made at its end."""
    parts = directory.split("/")
    return any(part == ".." and at and not os.path.isdir("/".join(parts[:at]) or "/") for at, part in enumerate(parts))


def _lock(folder: str, locks: ExitStack) -> None:
    """Lock a folder until the stack is closed. Raises OSError if another process does not let go of it."""
    until = time.monotonic() + _WAIT
    while True:
        try:
            descriptor = locked_folder(folder, "another process formats it")
        except OSError as error:
            if error.errno != errno.EBUSY:  # what may not be read may still be written to
                return
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            locks.callback(unlock_folder, descriptor, os.getpid())
            return


def _short(name: str) -> str:
    """A name that is short enough to be part of another one: a long one with the hash of what is left out."""
    data = os.fsencode(name)
    if len(data) <= _MOST_NAME:
        return name
    return f"{os.fsdecode(data[:100])}-{hashlib.sha256(data).hexdigest()[:32]}"


def _partials(folder: str) -> dict[str, list[str]]:
    """What killed processes left in a folder, by the short name of what it would have become."""
    found: dict[str, list[str]] = {}
    with suppress(OSError):
        for name in os.listdir(folder):
            match = _PARTIAL.fullmatch(name)
            if match is not None:
                found.setdefault(match[1], []).append(os.path.join(folder, name))
    return found
