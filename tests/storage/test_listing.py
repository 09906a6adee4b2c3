"""Discovery asks a file system as little as it can: each folder once, and for no file that a listing has shown."""

from __future__ import annotations

import glob
import http.server
import os
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest

from kwire.storage import LogDirectory, SegmentFile, discover
from kwire.storage.places.discovery import SideFiles
from tests.storage.making import aborted_index, batch, offsets, write_segment


@pytest.fixture
def local(tmp_path: Path) -> Path:
    for partition in range(3):
        for base in (0, 6, 12):
            write_segment(tmp_path / f"a-{partition}", base, [batch(base), batch(base + 3)], every=1)
    aborted_index(tmp_path / "a-0" / f"{6:020}.log", [(1, 6, 8, 9)])
    (tmp_path / "a-0" / f"{12:020}.snapshot").write_bytes(b"12345")
    write_segment(tmp_path / "b-0", 0, [batch(0)], indexes=False)
    write_segment(tmp_path / ".hidden" / "a-7", 0, [batch(0)])
    return tmp_path


@pytest.fixture
def asked(local: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """(URL of a copy in memory, what its store is asked: "ls FOLDER", "info PATH", "cat NAME")."""
    store = fsspec.filesystem("memory")
    root = f"/{uuid.uuid4().hex}"
    store.put(f"{local}/", f"{root}/", recursive=True)
    questions: list[str] = []

    def counted(name: str, real: Any) -> Any:
        def call(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
            questions.append(f"{name} {path.removeprefix(root).removeprefix('/')}")
            return real(self, path, *arguments, **options)
        return call

    for name, method in (("ls", "ls"), ("info", "info"), ("cat", "cat_file"), ("isdir", "isdir"), ("glob", "glob")):
        monkeypatch.setattr(type(store), method, counted(name, getattr(type(store), method)))
    yield f"memory:/{root}", questions
    store.rm(root, recursive=True)


@pytest.mark.quick
def test_each_folder_is_listed_once_and_no_file_is_asked_for(asked: tuple[str, list[str]]) -> None:
    url, questions = asked
    for path in (url, f"{url}/a-*,{url}/b-0", f"{url}/*/*.log"):
        questions.clear()
        assert len(discover(path)) == 10
        lists = [question for question in questions if question.startswith("ls")]
        assert len(lists) == len(set(lists)) <= 6
        assert len(questions) - len(lists) <= 4, questions  # what the paths are


@pytest.mark.quick
def test_folders_of_other_topics_and_partitions_are_not_listed(asked: tuple[str, list[str]]) -> None:
    url, questions = asked
    assert {file.partition for file in discover(url, topics=["a"], partitions=[1, 2])} == {1, 2}
    assert sorted(question for question in questions if question.startswith("ls")) == ["ls ", "ls a-1", "ls a-2"]


@pytest.mark.quick
def test_a_listed_segment_is_opened_without_a_question(asked: tuple[str, list[str]]) -> None:
    url, questions = asked
    directory = LogDirectory(url)
    questions.clear()
    for segment in directory.segments:
        assert segment.size > 0 and segment.files == []
    assert questions == []
    lone = directory["b", 0].segments[0]
    assert (lone.index, lone.time_index, lone.transaction_index) == (None, None, None) and questions == []
    assert len(directory["a", 1].segments[0].index.entries) == 1 and len(questions) == 1
    assert questions[0].startswith("cat a-1/")
    assert offsets(directory["a", 2].read()) == list(range(18))
    assert not [question for question in questions if question.startswith(("info", "ls"))]


@pytest.mark.quick
def test_a_listing_says_which_files_are_beside_a_segment(local: Path, asked: tuple[str, list[str]]) -> None:
    def known(files: list[SegmentFile]) -> list[Any]:
        return [(file.topic, file.partition, file.base_offset, file.size, file.beside) for file in files]

    here = discover(local)
    assert known(discover(asked[0])) == known(here)
    assert here[1].beside == SideFiles(8, 12, 34, -1) and here[2].beside == SideFiles(8, 12, -1, 5)
    assert here[-1].beside == SideFiles()
    assert known(discover(f"{local}/*/*.log")) == known(here) == known(discover(f"{local}/"))
    [named] = discover(here[0].path)
    assert named.beside is None and named.size == here[0].size


@pytest.mark.quick
@pytest.mark.parametrize("pattern", [
    "*", "*/*", "a-*/*.log", "a-[01]/0*", "a-?/*6.log", "*-0/", "**", "**/*.log", "*/../a-1/*", ".h*/*/*", "a-1/*/x",
])
def test_a_glob_finds_what_the_shell_finds(local: Path, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.storage.places.discovery import Listing

    for base in (f"{local}/", ""):
        monkeypatch.chdir(local)
        found = {os.path.abspath(entry.path) for entry in Listing().glob(base + pattern)}
        wanted = {os.path.abspath(name) for name in glob.glob(base + pattern, recursive=True)}
        if pattern == "**":  # the folders; discovery lists the files in them
            wanted = {name for name in wanted if os.path.isdir(name)} | {str(local)}
        assert found == wanted


def test_a_web_server_lists_no_sizes_and_is_asked_for_them(local: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(local)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        files = discover(f"{url}/a-1")
        assert [(file.base_offset, file.size, file.beside) for file in files] == [
            (0, -1, None), (6, -1, None), (12, -1, None)]
        sizes = [file.size for file in discover(local / "a-1")]
        assert [segment.size for segment in LogDirectory(url)["a", 1]] == sizes
    finally:
        server.shutdown()
        server.server_close()


def test_threads_share_one_client_of_a_store() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from kwire.storage.places.filesystem import store_of

    options = {"key": "a", "secret": "b", "client_kwargs": {"endpoint_url": "http://127.0.0.1:1"}}
    first, inner = store_of("s3://bucket/t-0", options)
    assert inner == "bucket/t-0"
    with ThreadPoolExecutor(4) as pool:
        for store, inner in pool.map(lambda number: store_of(f"s3://bucket/t-{number}/x", options), range(8)):
            assert store is first and inner.startswith("bucket/t-") and inner.endswith("/x")
    assert store_of("s3://bucket/t-0", options | {"key": "c"})[0] is not first


@pytest.mark.quick
@pytest.mark.parametrize("target", [f"{0:020}.log/x", "n" * 300, "odd"])
def test_a_link_that_leads_nowhere_hides_no_other_file(target: str, tmp_path: Path) -> None:
    """stat of it fails otherwise than for a missing file: the whole folder seemed empty, or could not be read."""
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    (tmp_path / "t-0" / "odd").symlink_to(target)
    assert len(discover(tmp_path)) == len(discover(f"{tmp_path}/**/*.log")) == 1
