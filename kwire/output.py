"""Output of commands: files and folders, written completely or not at all, never over an input or, unasked, a file."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple

_STDIN, _STDOUT = "/dev/stdin", "/dev/stdout"
_ACLS = ("system.posix_acl_access", "system.posix_acl_default")


@contextmanager
def new_file(
    path: str | os.PathLike[str], *, inputs: Iterable[str] = (), force: bool = False, sync: bool = True
) -> Iterator[IO[bytes]]:
    """A binary file to write to, which appears as path when the block ends without an exception.

    It is written beside path under a temporary name, synced to disk, then renamed; a partial file is removed. A
    symbolic link is followed. "-" is standard output; a pipe, a terminal and /dev/null are written to directly.
    inputs: files that the block reads; sync: False for a file that is easily made again. Raises FileExistsError for an
    existing file (unless force) and for an input (always), OSError for a folder and for other devices.
    """
    name = os.fspath(path)
    if name == "-":
        check_standard_output(inputs)
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not name:  # os.path.realpath("") is the current folder
        raise FileNotFoundError(2, "the name of the output file is empty", name)
    check_local(name)
    kind = _kind(name)
    for source in inputs:
        if is_same(source, name):
            raise FileExistsError(17, "is an input of this command, not overwritten", name)
    if kind == "file" and not force:
        raise FileExistsError(17, "File exists (--force replaces it)", name)
    try:
        if kind == "stream":
            with open(name, "wb") as stream:
                yield stream
        else:
            yield from _beside(os.path.realpath(name), force, sync)
    except OSError as error:
        if error.filename is None and error.errno is not None:  # errors of write do not name the file
            error.filename = name
        raise


def write_new(path: str, data: bytes, *, sync: bool = True, access: Access | None = None) -> None:
    """Write a file that must not exist, directly. access: of the file that it replaces; None: as the umask has it.

    Raises OSError that names it; what was written of it stays then.
    """
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o666 if access is None else access.mode & stat.S_IRWXU)
        with open(descriptor, "wb", buffering=0) as file:  # a buffer fails again when it is closed
            if access is not None:
                give_access(descriptor, access)
            view = memoryview(data)
            while len(view):
                view = view[file.write(view) :]
            if sync:
                os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[str]:
    """The path of an empty folder to fill, which appears as path when the block ends without an exception.

    It is made beside path under a temporary name; all that is in it is synced to disk, then it is renamed; a partial
    one is removed. Owner, group and permissions of an empty folder that is there are kept. Raises FileExistsError if
    path exists and is not an empty folder, OSError.
    """
    if not os.fspath(path):  # os.path.realpath("") is the current folder
        raise FileNotFoundError(2, "the name of the output folder is empty", os.fspath(path))
    check_local(os.fspath(path))
    target = os.path.realpath(path)
    _check_free(target, os.fspath(path))
    with scratch_folder(path, access_of(target)) as partial:
        yield partial
        for folder, _, files in os.walk(partial):
            for file in files:
                _sync_file(os.path.join(folder, file))
            sync_folder(folder)
        try:
            os.rename(partial, target)
        except OSError:
            _check_free(target, os.fspath(path))  # another process was faster
            raise
    sync_folder(os.path.dirname(target))


@contextmanager
def scratch_folder(
    path: str | os.PathLike[str], access: Access | None = None, private: bool = False
) -> Iterator[str]:
    """The path of an empty folder beside path, which is removed when the block ends. An OSError names path for it.

    So does one without a name, as of write: it is taken for one of a file in the folder. access: of the folder, and its
    owner may use it; None: as the umask has it, or, if it is private, the owner's alone.
    """
    name = os.fspath(path)
    check_local(name)
    parent, last = os.path.split(os.path.realpath(name))
    if not os.path.isdir(parent):
        raise FileNotFoundError(2, "No such file or directory", parent)
    partial = _partial(parent, last)
    try:
        os.mkdir(partial, 0o777 if access is None and not private else stat.S_IRWXU)
        if access is not None:
            give_access(partial, access._replace(mode=access.mode | stat.S_IRWXU))
        yield partial
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(partial):
            error.filename = name + error.filename[len(partial) :]
        elif error.filename is None and error.errno is not None:
            error.filename = name
        raise
    finally:
        remove(partial)


class Access(NamedTuple):
    """Who may use a file or folder. acls: its POSIX access control lists, by the names of their attributes."""

    mode: int
    owner: int
    group: int
    acls: dict[str, bytes]


def access_of(path: str | int) -> Access | None:
    """Who may use a file or folder that will be replaced, None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    acls = {}
    for name in _ACLS if sys.platform == "linux" else ():
        with suppress(OSError):
            acls[name] = os.getxattr(path, name)
    return Access(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, acls)


def give_access(place: str | int, access: Access) -> None:
    """Let a new file or folder, the owner's alone so far, be used by those who may use the one that it replaces.

    place: its path or descriptor. What cannot be given leaves less: who is not in the old group has the rights of all.
    """
    before = access_of(place)
    if before is None:
        return
    if before.group != access.group:
        with suppress(OSError):
            os.chown(place, -1, access.group)
    if before.owner != access.owner:
        with suppress(OSError):
            os.chown(place, access.owner, -1)
    if sys.platform == "linux" and before.acls != access.acls:
        for name in _ACLS:
            with suppress(OSError):
                if name in access.acls:
                    os.setxattr(place, name, access.acls[name])
                else:
                    os.removexattr(place, name)
    after, mode = access_of(place), access.mode
    if after is None or after.group != access.group or after.acls != access.acls:
        mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    with suppress(OSError):
        os.chmod(place, mode)


def check_standard_output(inputs: Iterable[str]) -> None:
    """Raise FileExistsError if standard output is one of the files that a command reads, as `>>` makes it."""
    if os.path.isfile(_STDOUT) and any(is_same(_STDIN if name == "-" else name, _STDOUT) for name in inputs):
        raise FileExistsError(17, "is an input of this command, not written to", "standard output")


def check_local(name: str) -> None:
    """Raise FileNotFoundError for a URL, which is shown without its secrets."""
    if "://" in name and not os.path.isdir(os.path.dirname(name)):
        raise FileNotFoundError(2, "is a URL: files are written to local paths only", _without_secrets(name))


def _without_secrets(url: str) -> str:
    """A URL without user, password, query and fragment: its scheme alone where an @ may be of a password or a query."""
    scheme, _, rest = url.partition("://")
    place = re.split("[?#]", rest, maxsplit=1)[0]
    return f"{scheme}://..." if "@" in rest[len(place):] else f"{scheme}://{place.rpartition('@')[2]}"


def _check_free(target: str, path: str) -> None:
    try:
        taken = bool(os.listdir(target))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        taken = True
    if taken:
        raise FileExistsError(17, "exists and is not an empty folder", path)


def _partial(folder: str, name: str) -> str:
    """A temporary name beside the final one."""
    return os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:100])}.{secrets.token_hex(8)}.partial")


def _beside(target: str, force: bool, sync: bool) -> Iterator[IO[bytes]]:
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, f"No such file or directory (there is no folder {folder})", None)
    partial, access = _partial(folder, name), access_of(target) if force else None
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(partial, flags, 0o666 if access is None else access.mode & stat.S_IRWXU)
        with open(descriptor, "w+b") as file:
            if access is not None:  # never readable by more than the old one
                give_access(descriptor, access)
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        _rename(partial, target, force)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename == partial:
            error.filename = None  # new_file names the file that was asked for
        remove(partial)
        raise
    if sync:
        sync_folder(folder)


def remove(partial: str) -> None:
    """Remove a file or a folder, as far as that is possible. Ctrl-C in the middle of it is raised when it is done."""
    def removed() -> None:
        with suppress(OSError):
            if os.path.isdir(partial):
                shutil.rmtree(partial, ignore_errors=True)
            else:
                os.unlink(partial)

    to_the_end(removed)


def disown(files: Iterable[IO[bytes]]) -> None:
    """In a child of fork: let what open files of the parent hold, and what comes, go nowhere.

    A file that the child forgets or closes would write what was buffered at the fork a second time.
    """
    numbers = [file.fileno() for file in files if not file.closed]
    if numbers:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for number in numbers:
            os.dup2(null, number, inheritable=False)
        os.close(null)


def to_the_end(work: Callable[[], None]) -> None:
    """Do work that Ctrl-C may not stop: it begins again, goes on where it was, and Ctrl-C is raised when it is done."""
    interruption: BaseException | None = None
    while True:
        try:
            work()
            break
        except (KeyboardInterrupt, SystemExit) as error:
            interruption = error
    if interruption is not None:
        raise interruption


def _rename(partial: str, target: str, force: bool) -> None:
    """Give the file its name; without force only if the name is still free."""
    if not force:
        try:
            os.link(partial, target)
        except FileExistsError:
            raise FileExistsError(17, "File exists (--force replaces it)", target) from None
        except OSError:  # a file system without links
            if os.path.lexists(target):
                raise FileExistsError(17, "File exists (--force replaces it)", target) from None
        else:
            with suppress(OSError):  # the file has its name
                os.unlink(partial)
            return
    os.replace(partial, target)


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: str) -> None:
    """Make a folder and those above it that are missing, whose names are synced to disk. Raises OSError."""
    missing, above = [], os.path.realpath(folder)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
        missing.append(above)
    os.makedirs(folder, exist_ok=True)
    for above in missing:
        sync_folder(above)


def sync_folder(folder: str) -> None:
    """Sync the names in a folder to disk, if the file system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_same(one: str, other: str) -> bool:
    """Are these two names of one file?"""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _kind(name: str) -> str:
    """"none", "file", or "stream". Raises OSError for a folder, a socket or another device."""
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        if name.endswith("/"):  # os.path.realpath drops it
            raise IsADirectoryError(21, "is the name of a folder, expected that of a file", name) from None
        return "none"
    if stat.S_ISREG(mode):
        if not is_same(os.path.realpath(name), name):  # it is open, as /dev/stdout may be, and has no name any more
            raise FileNotFoundError(2, "is an open file that was deleted, not replaced", name)
        return "file"
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", name)
    if stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and (is_same(name, os.devnull) or _is_terminal(name))):
        return "stream"
    raise OSError(22, "is a device or a socket, not written to", name)


def _is_terminal(path: str) -> bool:
    with open(path, "wb", buffering=0) as device:
        return device.isatty()
