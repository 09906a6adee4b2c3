"""Where the bytes of a segment come from: local files, pipes, and object stores by ranged reads through fsspec."""

from __future__ import annotations

import errno
import gzip
import os
import re
import stat
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

from kwire.errors import CorruptBatchError, DecodeError, KwireError, LimitError, WrongFileError
from kwire.suggestions import did_you_mean
from kwire_c.log_scan import HeldFile, read_piece
from kwire_c.printable import printable

if TYPE_CHECKING:
    from typing_extensions import Buffer

E = TypeVar("E", bound=Exception)
_SEEK_DATA: int | None = getattr(os, "SEEK_DATA", None)  # not on Windows
_PIECE = 1 << 20  # bytes of a pipe that are read at a time
MOST_UNPACKED = 16 << 30  # bytes of a pipe, or of a decompressed .gz
_LOCAL = re.compile(r"(?:file|local)://(?:localhost(?=/))?|file:(?=/)")
# of a URL: user and password, also a password with / ? # in it (what follows the colon is no port); a signature
_SECRETS = re.compile(r"(?<=://)(?:[^/?#]*@|(?!\[)[^/?#@:]*:(?!:|\d*(?:[/?#]|$)).*@)|\?.*=.*", re.DOTALL)
# where a password begins
_PASSWORD = re.compile(r"(?<=://)(?!\[)[^/?#@:]*:(?!:|\d*(?:[/?#]|$))")
_BETWEEN = re.compile("[:@]|[?&][^=&]*=")  # the parts of a secret
# names of a store's keywords whose values are secrets, and what is between the parts of a value
_NAMED_SECRET = re.compile(r"pass|pwd|secret|token|key|cred|auth|sas|signature|cookie|connection_string", re.IGNORECASE)
_OF_VALUES = re.compile(r"[\s;:,@&]+|(?<=\w)=(?=\S)")
_SHORTEST = 4  # characters of a part that no error may have
_QUERY = re.compile(r"(?<=://)([^?]*)(\?.*)", re.DOTALL)
_ROOTS = ("://", ":///")  # what URLs of a whole store end in
# in a text: in quotes, also with spaces in it, or alone
_URL = re.compile(r"""(?<=')[A-Za-z][\w+.-]*://[^'\n]*(?='(?:\W|$))|[A-Za-z][\w+.-]*://\S*?(?=['"):;,.\]}>`]*(?:\s|$))""")
# in a word without @: the beginning of a password that is cut off there; PORT: of texts that say what is expected
_CUT = re.compile(r"""(?<=\w://)[^/?#:]*:(?!:|PORT\b|-?\d*(?:[/?#'"):;,.]|[]}>`]+['"):;,.]*$|$))""")
_WEB = re.compile(r"https?://", re.IGNORECASE)  # where ? begins a query, and is no sign of a pattern


class File(Protocol):
    """A file's bytes by position; nothing of it stays in memory but the views handed out.

    The bytes are read, not mapped: if another process truncates the file meanwhile (a broker does so on a leader
    change, and when it closes a preallocated file), a read raises an error, and this process gets no SIGBUS.
    """

    path: str

    def size(self) -> int:
        """Bytes of the file as it is now."""

    def view(self, start: int, end: int, before: Buffer = b"") -> memoryview:
        """Bytes [start, end) (inside the file), in a buffer of their own that is freed with its last view.

        before: the bytes of the file just before start, already in memory: the buffer begins with them. Raises
        CorruptBatchError (.file) if the file has become shorter.
        """

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end), fewer at the file's end; for small reads."""

    def after_hole(self, position: int) -> int:
        """The end of the hole that a byte is in, the byte itself if it is in none; holes read as zeros.

        Where the file system does not tell, no byte is in a hole.
        """

    def held(self) -> File:
        """The file as it is now, held open for one pass: the same file even if it is replaced or deleted meanwhile."""


def _opened(path: str) -> IO[bytes]:
    """A file, open. Raises OSError for a pipe or device that has come in its place, rather than wait for it."""
    def nonblocking(name: str, flags: int) -> int:
        try:
            return os.open(name, flags | os.O_NONBLOCK)
        except BlockingIOError:  # another process has a lease of the file, and gives it back
            if not stat.S_ISREG(os.stat(name).st_mode):
                raise
            return os.open(name, flags)

    file = open(path, "rb", buffering=0, opener=nonblocking)  # noqa: SIM115 (the caller closes it)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "is no file any more, but a pipe or a device", path)
    return file


class LocalFile:
    """A local file, opened for each read. listed: it was found in a folder, and is gone if it is not there."""

    def __init__(self, path: str, listed: bool = False) -> None:
        self.path, self._listed = path, listed

    def size(self) -> int:
        """Bytes of the file as it is now."""
        with self._said_if_gone():
            return os.stat(self.path).st_size

    def view(self, start: int, end: int, before: Buffer = b"") -> memoryview:
        """Bytes [start, end). Raises CorruptBatchError (.file) if the file has become shorter."""
        return self.held().view(start, end, before)

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end), fewer at the file's end."""
        return self.held().read(start, end)

    def after_hole(self, position: int) -> int:
        """The end of the hole that a byte is in, the byte itself if it is in none."""
        return self.held().after_hole(position)

    def held(self) -> File:
        """The file, open until the returned object is freed."""
        with self._said_if_gone():
            file = _opened(self.path)
        with file:
            return _OpenFile(self.path, file)

    @contextmanager
    def _said_if_gone(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            if not self._listed:
                raise
            raise FileNotFoundError(2, "deleted since its folder was listed", self.path) from None


class _OpenFile:
    """A file that stays open until this object is freed.

    path: the name by which it was opened; file: what the caller closes.
    """

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self.path, self._file = path, HeldFile(file.fileno())

    def size(self) -> int:
        """Bytes of the file as it is now."""
        return os.fstat(self._file.descriptor).st_size

    def view(self, start: int, end: int, before: Buffer = b"") -> memoryview:
        """Bytes [start, end). Raises CorruptBatchError (.file) if the file has become shorter."""
        data = self._piece(start, end, before)
        if len(data) < len(memoryview(before)) + end - start:
            reason = f"the file was truncated to {self.size()} bytes while it was read"
            raise located(CorruptBatchError(reason, position=start), self.path)
        return data

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end), fewer at the file's end."""
        return self._piece(start, end, b"").tobytes()

    def _piece(self, start: int, end: int, before: Buffer) -> memoryview:
        try:
            return read_piece(self._file.descriptor, start, end, before)
        except OSError as error:  # it names no file: the read was by descriptor
            error.filename = self.path
            raise

    def after_hole(self, position: int) -> int:
        """The end of the hole that a byte is in, the byte itself if it is in none."""
        if _SEEK_DATA is None:
            return position
        try:
            return os.lseek(self._file.descriptor, position, _SEEK_DATA)
        except OSError as error:  # ENXIO: no data follows; else the file system has no such call
            return max(position, self.size()) if error.errno == errno.ENXIO else position

    def held(self) -> File:
        """The file itself."""
        return self


class SpooledFile:
    """A stream that can only be read from its beginning: a pipe, a terminal, a .gz. It is copied to a temporary file.

    once: it can be read only once, by one thread, so its temporary file lives as long as this object; that of a .gz is
    deleted with its last reader, and made again when needed.
    """

    def __init__(self, path: str, once: bool) -> None:
        self.path, self.once = path, once
        self._kept: _OpenFile | None = None
        self._open: weakref.ref[_OpenFile] | None = None
        self._size: int | None = None
        self._turns = [True]  # taken by the one thread that may read the stream

    def __getstate__(self) -> Any:
        if self._kept is not None:
            raise TypeError(f"{self.path} was read in this process: it cannot be read again in another")
        return self.__dict__ | {"_open": None}

    def size(self) -> int:
        """Bytes of the stream, decompressed; reads all of it."""
        if self._size is None:
            self.held()
        assert self._size is not None
        return self._size

    def view(self, start: int, end: int, before: Buffer = b"") -> memoryview:
        """Bytes [start, end)."""
        return self.held().view(start, end, before)

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end), fewer at the end."""
        return self.held().read(start, end)

    def after_hole(self, position: int) -> int:
        """The end of the hole that a byte is in, the byte itself if it is in none."""
        return self.held().after_hole(position)

    def held(self) -> File:
        """The temporary file.

        Raises DecodeError or LimitError (.file) for a .gz that is damaged, or too large; ValueError for a pipe that
        another thread is reading, or that was partly read: the rest would look like the whole.
        """
        spool = None if self._open is None else self._open()
        if spool is None:
            if self.once and not vars(self).pop("_turns", None):
                if self._kept is not None:  # the other thread has just finished
                    return self._kept
                raise ValueError(f"{self.path}: another thread is reading it, or it was partly read")
            with tempfile.TemporaryFile(prefix="kwire-") as file:
                try:
                    stream = open(self.path, "rb") if self.once else _opened(self.path)  # noqa: SIM115 (closed below)
                except OSError:
                    self._turns = [True]
                    raise
                with stream:
                    _copy(stream, file, self.path)
                file.flush()
                spool = _OpenFile(self.path, file)
            self._open, self._size = weakref.ref(spool), spool.size()
            self._kept = spool if self.once else None
        return spool


def _copy(stream: IO[bytes], file: IO[bytes], path: str) -> None:
    """Copy a stream into a file, decompressed if it is gzip."""
    head = stream.read(2)
    while len(head) == 1 and (more := stream.read(1)):
        head += more
    plain: Any = Rejoined(head, stream)
    if head == b"\x1f\x8b":
        plain = gzip.GzipFile(fileobj=plain)
    try:
        while piece := plain.read(_PIECE):
            file.write(piece)
            if file.tell() > MOST_UNPACKED:
                kind = "gzip stream" if head == b"\x1f\x8b" else "pipe"
                raise located(LimitError(f"the {kind} holds too many bytes", limit=MOST_UNPACKED), path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = f"the gzip stream is damaged: {' '.join(str(error).split())}"
        raise located(DecodeError(reason, offset=file.tell()), path) from None


class Rejoined:
    """A stream, preceded by the bytes that were read from it to look at."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self.head, self.stream = head, stream

    def read(self, size: int = -1) -> bytes:
        """Bytes of the stream, as a file's read."""
        if not self.head:
            return self.stream.read(size)
        taken, self.head = (self.head, b"") if size < 0 else (self.head[:size], self.head[size:])
        return taken + self.stream.read(size if size < 0 else size - len(taken))


class RemoteFile:
    """A file of any store that fsspec supports: each view is one ranged read.

    size: bytes, as a listing gave them: the store is not asked again; -1: not known.
    """

    def __init__(self, path: str, options: dict[str, Any] | None = None, size: int = -1) -> None:
        self.path = path
        self._options = options or {}
        self._listed = size
        self._opened: tuple[Any, str] | None = None
        self._process = 0

    def _store(self) -> tuple[Any, str]:
        if self._opened is None or self._process != os.getpid():  # after a fork the store is the parent's
            self._opened, self._process = store_of(self.path, self._options), os.getpid()
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None, "_process": 0}

    def size(self) -> int:
        """Bytes of the object: as listed, else as it is now."""
        if self._listed >= 0:
            return self._listed
        with _without_secrets(self.path, self._options):
            store, path = self._store()
            store.invalidate_cache(store._parent(path))
            size = _size_in(_info(store, path, self.path))
            if size < 0:
                raise ValueError("its size is not known")
            return size

    def view(self, start: int, end: int, before: Buffer = b"") -> memoryview:
        """Bytes [start, end), fetched. Raises CorruptBatchError (.file) if the object has become shorter."""
        data = self.read(start, end)
        if len(data) < end - start:
            reason = f"the object was truncated while it was read: expected {end - start} bytes, found {len(data)}"
            raise located(CorruptBatchError(reason, position=start), self.path)
        return memoryview(b"".join((before, data)) if before else data)

    def read(self, start: int, end: int) -> bytes:
        """Bytes [start, end), fetched; fewer at the object's end."""
        if end <= start:
            return b""
        with _without_secrets(self.path, self._options):
            store, path = self._store()
            data = bytes(memoryview(store.cat_file(path, start=start, end=end)))
        if len(data) <= end - start:
            return data
        if len(data) == self.size():  # of a web server that does not read ranges
            return data[start:end]
        found = f"the object store gave {len(data)} bytes for a range of {end - start}"
        raise OSError(printable(f"{shown(self.path)}: {found}"))

    def after_hole(self, position: int) -> int:
        """The byte itself: no store tells of holes."""
        return position

    def held(self) -> File:
        """The file itself: an object of a store is replaced, never changed."""
        return self


def located(error: E, path: str) -> E:
    """The error with the file first in its text; .file is the path, without the secrets of a URL."""
    if getattr(error, "file", None) is None:
        error.file = shown(path)  # type: ignore[attr-defined]
        error.args = (f"{printable(shown(path))}: {error.args[0] if error.args else error}", *error.args[1:])
    return error


def shown(path: str) -> str:
    """A path as it may be shown: a URL without user, password and query (a signature)."""
    if not is_url(path):
        return path
    unclear = _unclear(path)
    if unclear >= 0:
        return f"{path[:unclear]}..."
    path = _SECRETS.sub("", path)
    return _QUERY.sub(r"\1", path) if _WEB.search(path) else path


def _unclear(url: str) -> int:
    """Where the part of a URL begins that may be of a password or a query to its end, -1 if there is none.

    After a password there are two @ or more, and / ? or # before the last one: any of them may be its end.
    """
    password = _PASSWORD.search(url)
    before, at, _ = url[password.end() :].rpartition("@") if password else ("", "", "")
    return password.start() if password and at and "@" in before and re.search("[/?#]", before) else -1


def _secrets_in(url: str) -> list[str]:
    """The parts of a URL that shown() leaves out."""
    unclear = _unclear(url)
    return [url[unclear:]] if unclear >= 0 else [secret for secret in _SECRETS.findall(url) if secret]


def shown_text(text: str) -> str:
    """A text in which each URL is as it may be shown."""
    return _URL.sub(lambda url: shown(url[0]), _without_cut(text)) if "://" in text else text


def _without_cut(text: str) -> str:
    """A text in which URLs end where their passwords begin, if these are not whole: one with a space, a part of a URL.

    Where an @ comes later, a password may go on up to the last one.
    """
    pieces, at, last = [], 0, text.rfind("@")
    for word in re.finditer(r"\S+", text):
        cut = None if word.start() < at or "@" in word[0] else _CUT.search(word[0])
        if cut is not None:
            pieces.append(f"{text[at : word.start() + cut.start()]}...")
            is_whole = word.end() > last
            at = word.start() + len(word[0].rstrip("'\"):;,.]}>`")) if is_whole else last + len(text[last:].split()[0])
    return "".join((*pieces, text[at:]))


def _secret_values(options: Any, is_secret: bool = False) -> Iterator[str]:
    """The texts in a store's keywords that are secrets by their names, or by those of what they are in."""
    if isinstance(options, Mapping):
        for name, value in options.items():
            yield from _secret_values(value, is_secret or _NAMED_SECRET.search(str(name)) is not None)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from _secret_values(value, is_secret)
    elif isinstance(options, str):
        if is_secret:
            yield options
        yield from (secret.strip("@?") for secret in _secrets_in(options))
    elif isinstance(options, bytes) and is_secret:
        yield options.decode(errors="replace")


@contextmanager
def _without_secrets(path: str, options: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Raise a store's error as an OSError that names the URL, without its secrets; a missing package by its name.

    options: keywords of the store; the values of those that are named like secrets are secrets, too.
    """
    secrets = _secrets_in(path)
    if _WEB.search(path):
        secrets += [match[2] for match in _QUERY.finditer(path)]
    parts = {secret.strip("@?") for secret in secrets}
    parts |= {part for secret in secrets for part in _BETWEEN.split(secret) if len(part) >= _SHORTEST}
    parts |= {part for secret in _secret_values(options) for part in (secret, *_OF_VALUES.split(secret))
              if len(part) >= _SHORTEST and part not in shown(path)}
    try:
        yield
    except Exception as error:
        text = f"{error} {error!r}"
        is_secret = any(part in text or part in unquote(text) for part in parts)
        if isinstance(error, ImportError):
            raise _missing_package(path, error) from None
        if not is_secret and isinstance(error, KwireError | MemoryError):
            raise
        if not is_secret and isinstance(error, OSError):
            unnamed = isinstance(error, ConnectionError | TimeoutError | PermissionError) or type(error) is OSError
            if (not unnamed or shown(path) in str(error)) and str(error).isprintable():
                raise
            if not isinstance(error, FileNotFoundError):
                kind = next((kind for kind in _KINDS if isinstance(error, kind)), OSError)
                raise kind(printable(f"{shown(path)}: {_said(error) or type(error).__name__}")) from error
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(2, "no such file or folder", shown(path)) from None
        if str(error).startswith("Protocol not known"):
            raise _unknown_scheme(path) from None
        text = type(error).__name__
        if not is_secret:  # a store's own exceptions: no credentials, no such host, a protocol that fsspec lacks
            text += f": {_said(error)}"
        raise OSError(printable(f"{shown(path)}: the object store failed to read it: {text}")) from None


def _said(error: Exception) -> str:
    """What a store's error says, in one line of at most 1,000 characters: some list all places they looked in."""
    text = " ".join(str(error).split())
    return printable(text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}…")


_MOST_SAID = 1000
_KINDS = (PermissionError, IsADirectoryError, NotADirectoryError)

# the package that fsspec needs for URLs with this scheme
_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
    "http": "aiohttp", "https": "aiohttp", "hdfs": "pyarrow", "sftp": "paramiko", "ssh": "paramiko",
}  # fmt: skip


def _unknown_scheme(path: str) -> WrongFileError:
    from fsspec import available_protocols

    scheme = path.partition("://")[0]
    if scheme == "kafka":
        return located(WrongFileError("segments are read from files, not from brokers"), path)
    near = did_you_mean(scheme, available_protocols())
    return located(WrongFileError(f"unknown kind of URL, {scheme}://{near}"), path)


def _missing_package(path: str, error: ImportError) -> ImportError:
    scheme = path.partition("://")[0].lower()
    package = _PACKAGES.get(scheme) or (error.name or "").partition(".")[0]
    how = f"{package}: pip install {package}" if package else " ".join(str(error).split())
    return ImportError(printable(f"{shown(path)}: reading {scheme}:// URLs needs {how}"))


def is_url(path: str) -> bool:
    """Is path a URL for fsspec (not a local path, nor file://)?"""
    return "://" in path and not path.startswith("file://")


def without_slash(path: str) -> str:
    """A path without slashes at its end, but for those of a root: /, memory:///."""
    head = path.rstrip("/")
    is_root = path.endswith(_ROOTS) or (head.endswith(":") and is_url(path))
    return path if is_root else head or path


def plain(path: str | os.PathLike[str]) -> str:
    """Path as text: a local path for file:/x, file:///x and local:// URLs, /dev/stdin for -."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"path must be a str or os.PathLike, not {type(path).__name__}")
    text = os.fsdecode(path)
    if text == "-":
        return "/dev/stdin"
    scheme = _LOCAL.match(text)
    return text[scheme.end() :] if scheme else text


_STORES: dict[tuple[int, str, str], Any] = {}  # of this process, by host or bucket and options
_MOST_STORES = 64  # tokens among the options may change each hour


def store_of(path: str, options: dict[str, Any] | None = None) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it. ImportError names the extra to install.

    fsspec opens a store again in each thread: where threads may share one (asynchronous stores), they do.
    """
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as error:
        raise ImportError(f"{shown(path)}: reading URLs needs fsspec: pip install 'kwire[remote]'") from error
    place = os.getpid(), "/".join(path.split("/", 3)[:3]), repr(options or {})
    with _without_secrets(path, options):
        known = _STORES.get(place)
        if known is not None:
            return known, str(known._strip_protocol(path))
        if path.startswith(("s3://", "s3a://")):
            store, inner = url_to_fs(path, **{"skip_instance_cache": True, **(options or {})})
            _leave_dates(store)
        else:
            store, inner = url_to_fs(path, **(options or {}))
    if getattr(store, "async_impl", False) and "::" not in path:
        for oldest in list(_STORES)[: 1 - _MOST_STORES]:
            _STORES.pop(oldest, None)  # who reads from it holds it
        store = _STORES.setdefault(place, store)
    return store, inner


def _leave_dates(store: Any) -> None:
    """Let an S3 store leave dates as text: reading them takes most of the time of a listing.

    The AWS CLI does so too. Nothing here asks for a date, and other users of fsspec do not get this store.
    """
    if getattr(store, "session", store) is None:  # s3fs, which else makes its own
        from aiobotocore.session import AioSession

        store.session = AioSession(**store.kwargs)
        store.session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)


def open_file(path: str | os.PathLike[str], options: dict[str, Any] | None = None, size: int = -1) -> File:
    """The File of a path or URL; nothing is opened yet. options: keywords for the fsspec file system.

    size: bytes, as a listing gave them (-1: not known), so that a store is not asked for them. It was a file then: a
    pipe that has come in its place is an error of the first read.
    """
    text = plain(path)
    if is_url(text):
        return RemoteFile(text, options, size)
    once = size < 0 and _is_stream(text)
    return SpooledFile(text, once) if once or text.endswith(".gz") else LocalFile(text, size >= 0)


def is_stream(path: str) -> bool:
    """Whether a path is a pipe, a terminal or standard input, which have no name that says what is in them."""
    text = plain(path)
    if is_url(text) or os.path.isdir(text):
        return False
    return text == "/dev/stdin" or (os.path.exists(text) and _is_stream(text))


def open_unnamed(path: str, options: dict[str, Any] | None = None, size: int = -1) -> File:
    """As open_file, for a file that the user did not name. Raises FileNotFoundError for a pipe: it may never end."""
    file = open_file(path, options, size)
    if isinstance(file, SpooledFile) and file.once:
        raise FileNotFoundError(2, "is a pipe, which is read only where it is named", path)
    return file


def _is_stream(path: str) -> bool:
    """Whether a path is a pipe, a socket or a terminal. Raises OSError for a folder, and for a device."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", path)
    if stat.S_ISCHR(mode):
        with open(path, "rb", buffering=0) as device:
            if device.isatty() or os.path.samefile(path, os.devnull):
                return True
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        raise OSError(19, "is a device, not a file of record batches", path)
    return not stat.S_ISREG(mode)


class Entry(NamedTuple):
    """A file or folder as a listing gives it. path: in full; size: bytes as stored, -1 where not known (a pipe)."""

    path: str
    is_folder: bool
    size: int


class Folder(Protocol):
    """The operations of a file system that discovery needs."""

    def entries(self, path: str) -> list[Entry]:
        """What is in a folder, sorted. Raises FileNotFoundError if the folder does not exist."""

    def entry(self, path: str) -> Entry | None:
        """What is at a path, None if nothing is."""


_MISSING = (404, 410)  # what a web server answers for a file that is not there
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)  # the last: of a long comma list


class LocalFolder:
    """Folders of the local file system."""

    def entries(self, path: str) -> list[Entry]:
        """What is in a folder, sorted by name; path "": the current folder.

        Files that are deleted meanwhile are left out, as are pipes and devices (those are read only if named) and
        symbolic links that lead nowhere, through a file, to themselves or to a name that is too long. So
        NotADirectoryError is of the path itself.
        """
        entries = []
        with os.scandir(path or ".") as items:
            for item in items:
                try:
                    if item.is_dir():
                        entries.append(Entry(os.path.join(path, item.name), True, 0))
                    elif item.is_file():
                        entries.append(Entry(os.path.join(path, item.name), False, item.stat().st_size))
                except OSError as error:
                    if error.errno not in _NOTHING_THERE:
                        raise
        return sorted(entries)

    def entry(self, path: str) -> Entry | None:
        """What is at a path, None if nothing is. Raises OSError for a device, and where it may not be looked at."""
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except ValueError:  # a name with a null byte
            return None
        except OSError as error:
            if error.errno not in _NOTHING_THERE:
                raise
            return None
        if is_folder:
            return Entry(path, True, 0)
        file = open_file(path)
        return Entry(path, False, -1 if isinstance(file, SpooledFile) and file.once else os.path.getsize(path))


class RemoteFolder:
    """Folders (key prefixes) of an fsspec store. Nothing stays in the store's own cache: it is never bounded."""

    def __init__(self, url: str, options: dict[str, Any] | None = None) -> None:
        self._store, _ = store_of(url, options)
        self._options = options

    def _inner(self, path: str) -> str:
        return str(self._store._strip_protocol(path))

    def entries(self, path: str) -> list[Entry]:
        """What is in a folder, sorted by name."""
        inner = self._inner(path)
        with _without_secrets(path, self._options):
            self._store.invalidate_cache(inner)
            listed = self._store.ls(inner, detail=True)
            self._store.invalidate_cache(inner)
            base = path if path.endswith(_ROOTS) else without_slash(path) + "/"
            return sorted(
                Entry(base + item["name"].rstrip("/").rpartition("/")[2], item["type"] == "directory", _size_in(item))
                for item in listed
                if item["name"].rstrip("/") not in ("", inner.rstrip("/"))
            )

    def entry(self, path: str) -> Entry | None:
        """What is at a path, None if nothing is: one question to the store, two for a folder of S3."""
        inner = self._inner(path)
        with _without_secrets(path, self._options):
            self._store.invalidate_cache(inner)
            try:
                info = _info(self._store, inner, path)
                is_folder = info["type"] == "directory" or (  # a web server calls a page of links a file, too
                    "http" in self._store.protocol and not path.endswith((".log", ".gz")) and self._store.isdir(inner))
                size = _size_in(info)
            except FileNotFoundError:
                return None
        return Entry(path, is_folder, size)


def _info(store: Any, inner: str, path: str) -> Any:
    """What a store says of a file. Raises FileNotFoundError only where it says that none is there.

    To fsspec's web client a file whose server is not found, does not answer or fails (503) is missing, too.
    """
    try:
        return store.info(inner)
    except FileNotFoundError as error:
        cause = error.__cause__
        missing = cause is None or isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) in _MISSING
        if missing or not (isinstance(cause, OSError) or "http" in store.protocol):
            raise
        raise OSError(f"{shown(path)}: {printable(' '.join(str(cause).split())) or type(cause).__name__}") from None


def _size_in(info: dict[str, Any]) -> int:
    """Bytes by fsspec's info; -1 where it does not say, as listings of web servers do not."""
    size = info.get("size")
    if size is None:
        return -1
    if int(size) != size:
        raise ValueError(f"a file of {size!r} bytes")
    return int(size)


def open_folder(path: str, options: dict[str, Any] | None = None) -> Folder:
    """The Folder operations of the file system that path is in."""
    return RemoteFolder(path, options) if is_url(path) else LocalFolder()
