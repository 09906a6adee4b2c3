"""Where the bytes of a segment come from: local files by mmap in windows, other stores by ranged reads of fsspec."""

from __future__ import annotations

import glob
import mmap
import os
from typing import Any, Protocol, TypeVar

from kwire_c.failure import CorruptBatchError

E = TypeVar("E", bound=Exception)
_GRAIN = mmap.ALLOCATIONGRANULARITY


class Source(Protocol):
    """A file's bytes by position; nothing of it stays in memory but the views handed out."""

    path: str

    def size(self) -> int:
        """Bytes of the file as it is now."""

    def view(self, start: int, end: int) -> memoryview:
        """Bytes [start, end) (inside the file), in one piece of their own that goes away with its last view."""

    def read(self, start: int, end: int) -> bytes:
        """A copy of bytes [start, end), cut at the file's end; for small pieces."""


class LocalSource:
    """A local file. Each view is an mmap of its own; the file must not be truncated while views live.

    (A page of a view that the file has no more of ends the process with SIGBUS. Reading into memory instead of mapping
    costs 10 ns a record of 100 bytes, half of what all else does.)
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def size(self) -> int:
        """Bytes of the file as it is now."""
        return os.stat(self.path).st_size

    def view(self, start: int, end: int) -> memoryview:
        """Bytes [start, end) as one mmap. Raises CorruptBatchError (.file) where the file has become shorter."""
        if end <= start:
            return memoryview(b"")
        aligned = start - start % _GRAIN
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            if size < end:
                reason = f"the file was cut to {size} bytes while it was read"
                raise located(CorruptBatchError(reason, position=start), self.path)
            window = mmap.mmap(descriptor, end - aligned, access=mmap.ACCESS_READ, offset=aligned)
        finally:
            os.close(descriptor)
        return memoryview(window)[start - aligned :]

    def read(self, start: int, end: int) -> bytes:
        """A copy of bytes [start, end), cut at the file's end."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, max(0, end - start), start)
        finally:
            os.close(descriptor)


class RemoteSource:
    """A file of any store that fsspec knows: each view is one ranged read."""

    def __init__(self, path: str, options: dict[str, Any] | None = None) -> None:
        self.path = path
        self._options = options or {}
        self._opened: tuple[Any, str] | None = None

    def _store(self) -> tuple[Any, str]:
        if self._opened is None:
            self._opened = store_of(self.path, self._options)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_options": self._options, "_opened": None}

    def size(self) -> int:
        """Bytes of the object as it is now."""
        store, path = self._store()
        store.invalidate_cache(store._parent(path))
        return int(store.info(path)["size"])

    def view(self, start: int, end: int) -> memoryview:
        """Bytes [start, end), fetched."""
        return memoryview(self.read(start, end))

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end), fetched; cut at the object's end."""
        if end <= start:
            return b""
        store, path = self._store()
        return bytes(store.cat_file(path, start=start, end=end))


def located(error: E, path: str) -> E:
    """The error, its text now naming the file first; .file is the path."""
    if getattr(error, "file", None) is None:
        error.file = path  # type: ignore[attr-defined]
        error.args = (f"{path}: {error.args[0] if error.args else error}", *error.args[1:])
    return error


def is_url(path: str) -> bool:
    """Is path a URL for fsspec (not a local path, nor file://)?"""
    return "://" in path and not path.startswith("file://")


def plain(path: str | os.PathLike[str]) -> str:
    """Path as text; file:// and local:// URLs as the local paths they are."""
    text = os.fspath(path)
    for scheme in ("file://", "local://"):
        if text.startswith(scheme):
            return text[len(scheme) :]
    return text


def store_of(path: str, options: dict[str, Any] | None = None) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it. ImportError names the extra when it is missing."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"{path}: reading URLs needs fsspec: pip install 'kwire[remote]'") from error
    store, inner = url_to_fs(path, **(options or {}))
    return store, inner


def open_source(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> Source:
    """The Source of a path or URL; nothing is opened yet. options: keywords for the fsspec file system."""
    text = plain(path)
    return RemoteSource(text, options) if is_url(text) else LocalSource(text)


class Folder(Protocol):
    """What discovery asks of a file system."""

    def entries(self, path: str) -> list[tuple[str, bool, int]]:
        """(full path, is a folder, bytes) of what stands in a folder, sorted."""

    def kind(self, path: str) -> str | None:
        """"file", "folder", or None where nothing is there."""

    def glob(self, pattern: str) -> list[str]:
        """Full paths that match, sorted."""


class LocalFolder:
    """Folders of the local file system."""

    def entries(self, path: str) -> list[tuple[str, bool, int]]:
        """(full path, is a folder, bytes), sorted by name; files that vanish meanwhile are left out."""
        found = []
        with os.scandir(path) as items:
            for item in items:
                try:
                    found.append((item.path, item.is_dir(), 0 if item.is_dir() else item.stat().st_size))
                except FileNotFoundError:
                    continue
        return sorted(found)

    def kind(self, path: str) -> str | None:
        """"file", "folder" or None."""
        return "folder" if os.path.isdir(path) else "file" if os.path.exists(path) else None

    def glob(self, pattern: str) -> list[str]:
        """Matches of a shell pattern, ** included."""
        return sorted(glob.glob(pattern, recursive=True))


class RemoteFolder:
    """Folders (key prefixes) of an fsspec store."""

    def __init__(self, url: str, options: dict[str, Any] | None = None) -> None:
        self._options = options
        self._store, _ = store_of(url, options)
        self._scheme = url.split("://", 1)[0]

    def _inner(self, path: str) -> str:
        return str(self._store._strip_protocol(path))

    def _url(self, inner: str) -> str:
        return str(self._store.unstrip_protocol(inner)) if "://" not in inner else inner

    def entries(self, path: str) -> list[tuple[str, bool, int]]:
        """(URL, is a folder, bytes), sorted by name."""
        inner = self._inner(path)
        self._store.invalidate_cache(inner)
        listed = self._store.ls(inner, detail=True)
        return sorted(
            (f"{path.rstrip('/')}/{item['name'].rstrip('/').rpartition('/')[2]}", item["type"] == "directory",
             int(item.get("size") or 0))
            for item in listed
            if item["name"].rstrip("/") != inner.rstrip("/")
        )

    def kind(self, path: str) -> str | None:
        """"file", "folder" or None."""
        inner = self._inner(path)
        self._store.invalidate_cache(inner)
        if self._store.isdir(inner):
            return "folder"
        return "file" if self._store.exists(inner) else None

    def glob(self, pattern: str) -> list[str]:
        """Matches of fsspec's own glob."""
        return sorted(self._url(name) for name in self._store.glob(self._inner(pattern)))


def open_folder(path: str, options: dict[str, Any] | None = None) -> Folder:
    """The Folder operations of the file system that path stands in."""
    return RemoteFolder(path, options) if is_url(path) else LocalFolder()
