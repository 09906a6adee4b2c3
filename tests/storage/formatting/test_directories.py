"""Directories are formatted or not, never half: killed, interrupted, on a full or read-only disk."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.storage.formatting import Formatter, FormatterError, ServerConfig, directories, storage_info
from kwire.storage.formatting.directories import Staging
from kwire.storage.writing.locks import locked_folder
from tests.storage.formatting.runs import run

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir")
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def config(folder: Path, dirs: str = "new,there,deep/down,deep/meta", release: str = "4.3") -> ServerConfig:
    names = ",".join(str(folder / name) for name in dirs.split(","))
    return ServerConfig({
        "process.roles": "broker,controller", "node.id": "1", "log.dirs": names,
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
    }, release=release)  # fmt: skip


def prepare(folder: Path) -> None:
    (folder / "there").mkdir(parents=True)
    (folder / "there" / "lost+found").mkdir()


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def in_child(work: Callable[[], object], at: int, act: Callable[[], object]) -> int:
    """Do the work in a forked process, and act when it touches files for the at-th time; the wait status."""
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(event: str, arguments: object) -> None:
            nonlocal seen
            if event in EVENTS:
                seen += 1
                if seen == at:
                    act()

        gc.disable()  # what it frees of other tests touches files, too
        try:
            sys.addaudithook(hook)
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def check_whole_or_nothing(folder: Path, node: ServerConfig) -> int:
    """How many directories are formatted; each that says so has all its files."""
    count = 0
    for number, directory in enumerate(node.log_dirs):
        files = {"meta.properties", "bootstrap.checkpoint"} | ({SNAPSHOT} if number == 0 else set())
        if os.path.exists(os.path.join(directory, "meta.properties")):
            count += 1
            for name in files:
                assert (Path(directory) / name).stat().st_size > 0, (directory, name)
    return count


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it has written; a sync only takes time here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.parametrize("length", [228, 229, 240, 255])
@pytest.mark.parametrize("there", [False, True])
def test_long_names(length: int, there: bool, tmp_path: Path) -> None:
    names = ["d" * (length - 1) + letter for letter in "ab"]
    for name in names if there else ():
        (tmp_path / name).mkdir()
    mine, another = (tmp_path / f".{name}.{'0' * 16}.partial" for name in (directories._short(names[0]), "x" * 9))
    mine.mkdir()
    another.mkdir()
    node = config(tmp_path, ",".join(names))
    assert len(Formatter(node, CLUSTER, standalone=True).run().directories) == 2
    assert not storage_info(node).problems
    assert another.exists() and mine.exists() == there  # what a killed process left of it


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(FormatterError, match="No available log directories"):  # as Kafka's tool
        Formatter(config(tmp_path, "d" * 256), CLUSTER, standalone=True).run()
    assert tree(tmp_path) == set()


def test_a_killed_process_leaves_no_half_formatted_directory(tmp_path: Path, unsynced: None) -> None:
    counts = set()
    for at in range(1, 1000):
        folder = tmp_path / str(at)
        prepare(folder)
        node = config(folder)
        status = in_child(Formatter(node, CLUSTER, standalone=True).run, at,
                          lambda: os.kill(os.getpid(), signal.SIGKILL))  # fmt: skip
        counts.add(check_whole_or_nothing(folder, node))
        Formatter(node, CLUSTER, standalone=True, ignore_formatted=True).run()
        assert check_whole_or_nothing(folder, node) == 4
        assert not [name for name in tree(folder) if "partial" in name]
        if status == 0:
            break
    assert at > 40
    assert counts == {0, 1, 2, 3, 4}


def test_an_interrupted_process_leaves_nothing(tmp_path: Path, unsynced: None) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    for at in range(1, 1000):
        folder = tmp_path / str(at)
        prepare(folder)
        before = tree(folder)
        status = in_child(Formatter(config(folder), CLUSTER, standalone=True).run, at, interrupt)
        if status == 0:
            break
        left = tree(folder) - before
        assert not left, (at, left)
    assert at > 40


@pytest.mark.parametrize("code, text", [
    (errno.ENOSPC, "java.io.IOException: No space left on device"),
    (errno.EROFS, "java.nio.file.FileSystemException: {path}: Read-only file system"),
    (errno.EACCES, "java.nio.file.AccessDeniedException: {path}"),
])  # fmt: skip
def test_a_failed_write_leaves_nothing(
    code: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path)
    before, real = tree(tmp_path), directories.write_new

    def write(path: str, data: bytes, **options: Any) -> None:
        real(path, data, **options)
        if "there" in path and "meta.properties" in path:
            raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(directories, "write_new", write)
    with pytest.raises(FormatterError) as caught:
        Formatter(config(tmp_path), CLUSTER, standalone=True).run()
    place = tmp_path / "there"
    reason = text.format(path=place / "meta.properties.tmp")
    assert str(caught.value) == f"Error while writing meta.properties file {place}: {reason}"
    assert tree(tmp_path) == before


def test_a_full_disk(tmp_path: Path) -> None:
    prepare(tmp_path)
    before = tree(tmp_path)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        code = 0
        try:
            Formatter(config(tmp_path), CLUSTER, standalone=True).run()
        except FormatterError as error:
            code = int("File too large" in str(error))
        os._exit(code)

    assert os.waitstatus_to_exitcode(in_child(work, 0, lambda: None)) == 1
    assert tree(tmp_path) == before


def test_a_commit_that_fails_is_undone(tmp_path: Path) -> None:
    prepare(tmp_path)
    with pytest.raises(OSError, match="not empty"), Staging(["a", "b"]) as staging:
        staging.add(str(tmp_path / "there"), {"x": b"1", "meta.properties": b"2"})
        staging.add(str(tmp_path / "new"), {"meta.properties": b"2"})
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "somebody's").write_bytes(b"data")
        staging.commit()
    assert tree(tmp_path) == {"there", "there/lost+found", "new", "new/somebody's"}


@pytest.mark.parametrize("there", [False, True])
def test_a_commit_that_fails_leaves_what_another_process_formatted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """Where a file system has no locks: the second one took the partial files of the first one for ones left behind."""

    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    place = tmp_path / "d"
    if there:
        place.mkdir()
    with pytest.raises(FileNotFoundError), Staging([str(place)]) as first:
        first.add(str(place), {"bootstrap.checkpoint": b"1", "meta.properties": b"1"})
        with Staging([str(place)]) as second:
            second.add(str(place), {"bootstrap.checkpoint": b"2", "meta.properties": b"2"})
            second.commit()
        (place / "topic-0").mkdir()
        first.commit()
    assert tree(tmp_path) == {"d", "d/bootstrap.checkpoint", "d/meta.properties", "d/topic-0"}
    assert (place / "meta.properties").read_bytes() == b"2"


def test_a_file_that_cannot_be_put_back_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner, moved = os.rename, []

    def rename(one: str, other: str) -> None:
        if moved:
            raise OSError(errno.EIO, "Input/output error")
        moved.append(other)
        inner(one, other)

    def replace(*_: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "bootstrap.checkpoint").write_bytes(b"old")
    with pytest.raises(OSError, match="Input/output"), Staging([str(tmp_path)]) as staging:
        staging.add(str(tmp_path), {"bootstrap.checkpoint": b"new", "meta.properties": b"new"})
        monkeypatch.setattr(os, "rename", rename)
        monkeypatch.setattr(os, "replace", replace)
        staging.commit()
    monkeypatch.undo()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_ctrl_c_as_a_rename_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    before = tree(tmp_path)
    inner = os.rename

    def rename(one: str, other: str) -> None:
        inner(one, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", rename)
    names = [str(tmp_path / name) for name in ("a", "b")]
    with pytest.raises(KeyboardInterrupt), Staging(names) as staging:
        for name in names:
            staging.add(name, {"meta.properties": b"2"})
        staging.commit()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("before", [False, True])
def test_ctrl_c_again_as_what_was_written_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """before: the removal, else after it."""
    prepare(tmp_path)
    there = tree(tmp_path)

    def interrupted(work: Callable[..., None]) -> Callable[..., None]:
        left = [2]

        def call(*arguments: Any, **options: Any) -> None:
            left[0] -= 1
            if not before:
                work(*arguments, **options)
            if left[0] >= 0:
                raise KeyboardInterrupt
            if before:
                work(*arguments, **options)
        return call

    names = [str(tmp_path / name) for name in ("a", "b", "there")]
    with pytest.raises(KeyboardInterrupt), Staging(names) as staging:
        for name in names:
            staging.add(name, {"meta.properties": b"2"})
        for move in staging._moves:
            move()
        monkeypatch.setattr(os, "unlink", interrupted(os.unlink))
        monkeypatch.setattr(shutil, "rmtree", interrupted(shutil.rmtree))
        raise KeyboardInterrupt
    assert tree(tmp_path) == there


def test_directories_in_each_other(tmp_path: Path) -> None:
    node = config(tmp_path, "outer/inner,outer")
    assert set(Formatter(node, CLUSTER, standalone=True).run().directories) == set(node.log_dirs)
    assert not storage_info(node).problems


def test_one_directory_under_two_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real").mkdir()
    with pytest.raises(FormatterError, match="are the same directory"):
        Formatter(config(tmp_path, "link,real"), CLUSTER, standalone=True).run()
    assert list((tmp_path / "real").iterdir()) == []


def test_a_link_to_a_directory_and_one_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    Formatter(config(tmp_path, "link"), CLUSTER, standalone=True).run()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "meta.properties").exists()
    (tmp_path / "dangling").symlink_to("nothing")
    with pytest.raises(FormatterError, match="FileAlreadyExistsException"):
        Formatter(config(tmp_path, "dangling"), CLUSTER, standalone=True).run()
    assert (tmp_path / "dangling").is_symlink() and not (tmp_path / "nothing").exists()


def test_above_a_link_is_above_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "deep" / "real").mkdir(parents=True)
    (tmp_path / "link").symlink_to("deep/real")
    Formatter(config(tmp_path, "link/../new,link/../in/it"), CLUSTER, standalone=True).run()
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"real", "new", "in"}
    assert not (tmp_path / "new").exists() and (tmp_path / "deep" / "in" / "it" / "meta.properties").exists()


@pytest.mark.parametrize("name", ["none/../d", "a/none/.././../d", "d,none/../e"])
def test_above_a_folder_that_is_not_there_is_nothing(name: str, tmp_path: Path) -> None:
    """As in Kafka's tool; d would be formatted, and the broker would not find none/../d."""
    (tmp_path / "a").mkdir()
    with pytest.raises(FormatterError, match=r"none/\.\."):
        Formatter(config(tmp_path, name), CLUSTER, standalone=True).run()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_directory_holds_stays(tmp_path: Path) -> None:
    (tmp_path / "d" / "topic-0").mkdir(parents=True)
    (tmp_path / "d" / "topic-0" / "00000000000000000000.log").write_bytes(b"data")
    Formatter(config(tmp_path, "d"), CLUSTER, standalone=True).run()
    assert (tmp_path / "d" / "topic-0" / "00000000000000000000.log").read_bytes() == b"data"


def test_the_tool_says_it_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in config(tmp_path, "file/d").properties.items()))
    out, err, code = run(["format", "-t", CLUSTER, "-c", str(path), "-s"])
    assert (code, err) == (1, "No available log directories to format.\n")
    assert out == f"I/O error trying to read log directory {tmp_path / 'file/d'}. Ignoring...\n"


def staged(place: Path, content: bytes) -> Staging:
    """A Staging that has written a directory, and is about to move it to its place."""
    staging = Staging([str(place)]).__enter__()
    staging.add(str(place), {"bootstrap.checkpoint": content, "meta.properties": content})
    return staging


@pytest.mark.quick
@pytest.mark.parametrize("there", [True, False])
def test_of_two_that_format_a_directory_the_first_one_wins(tmp_path: Path, there: bool) -> None:
    """Both found it empty: the second one replaced the files of the first one, and both ended with 0."""
    place = tmp_path / "d"
    if there:
        place.mkdir()
    second: list[BaseException] = []

    def format_too() -> None:
        try:
            staged(place, b"second")
        except BaseException as error:
            second.append(error)

    first = staged(place, b"first")
    waiting = threading.Thread(target=format_too)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    first.commit()
    first.__exit__()
    waiting.join()
    assert isinstance(second[0], FileExistsError), second
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {
        "bootstrap.checkpoint": b"first", "meta.properties": b"first"}


@pytest.mark.quick
def test_a_folder_above_that_another_process_has_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open Fleet locks its data folder: formatting a new directory in it waited, and failed."""
    monkeypatch.setattr(directories, "_WAIT", 0)
    descriptor = locked_folder(str(tmp_path), "a test")
    Formatter(config(tmp_path), CLUSTER, standalone=True).run()
    os.close(descriptor)


@pytest.mark.quick
def test_a_folder_above_that_another_process_makes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.mkdir

    def mkdir(path: str, *mode: int) -> None:
        if path.endswith("deep"):
            real(path, *mode)
        real(path, *mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    Formatter(config(tmp_path), CLUSTER, standalone=True).run()


@pytest.mark.quick
def test_one_that_does_not_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "_WAIT", 0)
    prepare(tmp_path)
    stuck = staged(tmp_path / "there", b"")
    with pytest.raises(FormatterError, match="another process formats it"):
        Formatter(config(tmp_path), CLUSTER, standalone=True).run()
    stuck.__exit__()
    assert tree(tmp_path) == {"there", "there/lost+found"}
    Formatter(config(tmp_path), CLUSTER, standalone=True).run()


@pytest.mark.quick
def test_a_file_that_was_replaced_is_put_back(tmp_path: Path) -> None:
    """The second directory cannot be moved to its place: the first one is what it was."""
    prepare(tmp_path)
    old = tmp_path / "there" / "bootstrap.checkpoint"
    old.write_bytes(b"old")
    old.chmod(0o600)
    both = [str(tmp_path / "there"), str(tmp_path / "new")]
    with pytest.raises(OSError, match="not empty"), Staging(both) as staging:
        staging.add(str(tmp_path / "there"), {"bootstrap.checkpoint": b"new", "meta.properties": b"new"})
        staging.add(str(tmp_path / "new"), {"meta.properties": b"new"})
        (tmp_path / "new" / "x").mkdir(parents=True)
        staging.commit()
    assert old.read_bytes() == b"old"
    assert tree(tmp_path) == {"there", "there/lost+found", "there/bootstrap.checkpoint", "new", "new/x"}
    with Staging([str(tmp_path / "there")]) as staging:
        staging.add(str(tmp_path / "there"), {"bootstrap.checkpoint": b"new", "meta.properties": b"new"})
        staging.commit()
    assert tree(tmp_path / "there") == {"lost+found", "bootstrap.checkpoint", "meta.properties"}
    assert old.read_bytes() == b"new" and old.stat().st_mode & 0o777 == 0o600


@pytest.mark.quick
@pytest.mark.parametrize("release", ["3.7", "3.8"])
@pytest.mark.parametrize("roles", ["controller", "broker", "broker,controller"])
def test_several_log_directories_of_an_older_version(release: str, roles: str, tmp_path: Path) -> None:
    """Only a broker must know in which directory a partition is (KafkaConfig.validateWithMetadataVersion)."""
    listeners = {"broker": "PLAINTEXT://:9092", "controller": "CONTROLLER://:9093"}
    node = ServerConfig({
        "process.roles": roles, "node.id": "1", "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        "listeners": ",".join(listeners[role] for role in roles.split(",")), "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{1 if 'controller' in roles else 2}@localhost:9093",
    }, release=release)  # fmt: skip
    formatter = Formatter(node, CLUSTER, release_version="3.6")
    if roles == "controller":
        formatter.run()
        assert len([*tmp_path.glob("*/meta.properties")]) == 2
    else:
        with pytest.raises(FormatterError, match=r"Multiple log directories .* Need 3\.7-IV2 or higher"):
            formatter.run()
        assert not [*tmp_path.iterdir()]
