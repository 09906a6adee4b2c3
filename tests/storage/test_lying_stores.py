"""Object stores that lie: listings, sizes, bytes and errors of any kind; a value, or an error of kwire's."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from kwire.cli import main
from kwire.errors import KwireError
from kwire.storage import LogDirectory, LogSegment, discover, read_side_file
from tests.cli.test_log import run
from tests.storage.making import batch

pytestmark = pytest.mark.quick
ROOT = "memory://lies"
FILE = f"{ROOT}/t-0/{0:020}.log"
WAYS: dict[str, Callable[[], Any]] = {
    "discover": lambda: discover(f"{ROOT}/*/*.log"), "below": lambda: discover(f"{ROOT}/**/*.log"),
    "read": lambda: list(LogDirectory(ROOT).read(errors="keep")),
    "verify": lambda: LogDirectory(ROOT).verify(),
    "seek": lambda: LogSegment(FILE).seek(5),
    "split": lambda: LogSegment(FILE).split(200),
    "index": lambda: read_side_file(f"{ROOT}/t-0/{0:020}.index"),
}
LISTED: tuple[Any, ...] = (
    None, 5, "x", [None], [{}], [{"name": 1, "type": "file", "size": 1}], [{"name": "lies/t-0", "size": 1}],
    [{"name": "lies/t-0", "type": "directory", "size": float("nan")}], [("a",)],
    [{"name": "", "type": "file", "size": 1}, {"name": "", "type": "directory", "size": 0}],
)  # fmt: skip
BYTES: tuple[Callable[[bytes], Any], ...] = (
    lambda data: data[: len(data) // 2], lambda data: data[:14], lambda data: data + b"more", lambda data: b"",
    lambda data: None, lambda data: 10**12, lambda data: "text", lambda data: [300], lambda data: bytes(len(data)),
    lambda data: b"\xff" * len(data),
)  # fmt: skip


@pytest.fixture(autouse=True)
def stored() -> None:
    store = MemoryFileSystem()
    store.pipe(f"/lies/t-0/{0:020}.log", b"".join(batch(3 * at) for at in range(4)))
    store.pipe(f"/lies/t-0/{0:020}.index", bytes(16))


def tried(way: str) -> None:
    try:
        WAYS[way]()
    except (KwireError, OSError) as error:
        assert str(error).isprintable(), repr(str(error))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["ls", "info"])
def test_listings(way: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for listed in LISTED:
        found = listed if name == "ls" else (listed[0] if isinstance(listed, list) else listed)
        monkeypatch.setattr(MemoryFileSystem, name, lambda *_, found=found, **__: found)
        tried(way)


@pytest.mark.parametrize("way", WAYS)
def test_bytes(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also such that differ from read to read."""
    real, dice = MemoryFileSystem.cat_file, random.Random(3)
    for share in (0.0, 0.5):
        for change in BYTES:
            def cat_file(self: Any, *args: Any, share: float = share, change: Any = change, **options: Any) -> Any:
                data = real(self, *args, **options)
                return data if dice.random() < share else change(data)

            with monkeypatch.context() as patch:
                patch.setattr(MemoryFileSystem, "cat_file", cat_file)
                tried(way)
                code, _, err = run_ls()
                assert code in (0, 1, 2) and "unexpected" not in err


def test_a_part_of_an_index_is_not_taken_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    real = MemoryFileSystem.cat_file

    def half(self: Any, *args: Any, **options: Any) -> bytes:
        data: bytes = real(self, *args, **options)
        return data[: len(data) // 2]

    assert LogSegment(FILE).index is not None
    monkeypatch.setattr(MemoryFileSystem, "cat_file", half)
    assert LogSegment(FILE).index is None


def run_ls() -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["log", "ls", ROOT])
    return code, out.getvalue(), err.getvalue()


def test_an_error_that_a_terminal_would_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (OSError("\x1b[31m"), ConnectionResetError("\x1b[2J"), RuntimeError("\x9b31m")):
        def fail(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(MemoryFileSystem, "info", fail)
        with pytest.raises(OSError, match="memory://lies") as caught:
            discover(ROOT)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("error", [
    FileNotFoundError, IsADirectoryError, NotADirectoryError, BlockingIOError, InterruptedError, PermissionError,
    OSError, ConnectionError, RuntimeError, ImportError,
])  # fmt: skip
def test_a_name_that_a_terminal_would_obey(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed by the store, and in its own error."""
    folder, name = "\x1b[31m\u202e-0", f"{0:020}.log"

    def ls(_: Any, path: str, *__: Any, **___: Any) -> list[dict[str, Any]]:
        files = {"name": f"/lies/{folder}/{name}", "type": "file", "size": 100}
        return [files if folder in path else {"name": f"/lies/{folder}", "type": "directory", "size": 0}]

    def fail(_: Any, path: str, *__: Any, **___: Any) -> Any:
        raise error(path)

    monkeypatch.setattr(MemoryFileSystem, "ls", ls)
    monkeypatch.setattr(MemoryFileSystem, "cat_file", fail)
    kept = FileNotFoundError | IsADirectoryError | NotADirectoryError | ImportError
    with pytest.raises(error if issubclass(error, kept) else OSError) as caught:
        list(LogDirectory(ROOT).read())
    assert str(caught.value).isprintable() and "x1b" in str(caught.value), repr(str(caught.value))


def test_a_size_that_the_store_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a web server that streams: never taken for an empty log."""
    info = {"name": FILE.removeprefix("memory:/"), "type": "file", "size": None}
    monkeypatch.setattr(MemoryFileSystem, "info", lambda *_, **__: info)
    with pytest.raises(OSError, match=r"memory://lies/.*its size is not known"):
        list(LogSegment(FILE).read())


def test_a_root() -> None:
    MemoryFileSystem().pipe(f"/roots-0/{0:020}.log", batch(0))
    for path in ("memory://", "memory:///", "memory:///roots-0", "memory:///roots-*/*.log"):
        assert [file.topic for file in discover(path) if file.topic == "roots"] == ["roots"], path


def test_segments_that_come_between_two_listings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, calls = MemoryFileSystem.ls, []

    def ls(self: Any, path: str, **options: Any) -> Any:
        calls.append(path)
        return [] if len(calls) == 1 else real(self, path, **options)

    monkeypatch.setattr(MemoryFileSystem, "ls", ls)
    code, _, err = run(capsys, "log", "ls", ROOT)
    assert code == 0 and "0 segments" in err
