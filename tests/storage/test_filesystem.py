"""Segments in other stores by fsspec URL: memory:// and a local S3 stand-in."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import fsspec
import pyarrow as pa
import pytest

from kwire.storage import LogDirectory, LogSegment, discover
from kwire.storage.places import filesystem
from kwire.storage.places.filesystem import LocalFile, open_file, open_folder
from kwire.storage.side_files.checkpoints import read_producer_snapshot
from tests.storage.making import START, aborted_index, batch, in_transaction, marker, offsets, write_segment


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {"key": "test", "secret": "test", "client_kwargs": {
        "endpoint_url": f"http://{host}:{port}", "region_name": "eu-west-1"}}  # fmt: skip
    server.stop()


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.quick), "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, Any], Path]]:
    """(URL of a log directory, options for fsspec, a local folder with the same content)."""
    local = tmp_path / "log"
    write_segment(local / "t-0", 0, [batch(0), in_transaction(3, 1), marker(6, 1, False), batch(7)], every=1)
    write_segment(local / "t-0", 10, [batch(10 + 3 * at) for at in range(10)])
    write_segment(local / "u-5", 0, [batch(3 * at, codec="zstd") for at in range(10)])
    aborted_index(local / "t-0" / f"{0:020}.log", [(1, 3, 6, 7)])
    (local / "t-0" / f"{10:020}.log.deleted").write_bytes(b"x")
    options = request.getfixturevalue("s3") if request.param == "s3" else {}
    store = fsspec.filesystem(request.param, **options)
    root = f"bucket-{os.getpid()}/{tmp_path.name.replace('_', '-')}"
    store.mkdirs(root, exist_ok=True)
    store.put(f"{local}/", f"{root}/", recursive=True)
    yield f"{request.param}://{root}", options, local
    store.rm(root, recursive=True)


def test_the_same_as_local(place: tuple[str, dict[str, Any], Path]) -> None:
    url, options, local = place
    remote, here = LogDirectory(url, options=options), LogDirectory(local)
    assert [(one.topic, one.partition) for one in remote] == [(one.topic, one.partition) for one in here]
    for theirs, ours in zip(remote.segments, here.segments, strict=True):
        assert theirs.path.startswith(url)
        assert (theirs.size, theirs.tail, theirs.base_offset) == (ours.size, ours.tail, ours.base_offset)
        assert list(theirs.read()) == list(ours.read())
        assert list(theirs.headers()) == list(ours.headers())
        assert theirs.split(300) == ours.split(300)
        assert theirs.index.entries == ours.index.entries
        again = pickle.loads(pickle.dumps(theirs.file))
        assert again.read(3, 90) == ours.file.read(3, 90)
    for wanted in ({"committed": True}, {"start_offset": 4, "end_offset": 17}, {"start_timestamp": START + 105}):
        assert offsets(remote["t", 0].read(**wanted)) == offsets(here["t", 0].read(**wanted))
        ours = pa.table(here["t", 0].columns(**wanted))
        assert pa.table(remote["t", 0].columns(**wanted)) == ours
        assert pa.table(remote["t", 0].columns(views=True, **wanted))["offset"] == ours["offset"]
    assert remote.verify() == []


def test_discovery(place: tuple[str, dict[str, Any], Path]) -> None:
    url, options, _ = place
    expected = [("t", 0, 0), ("t", 0, 10), ("u", 5, 0)]
    for path in (url, url + "/", f"{url}/*/*.log", f"{url}/t-0,{url}/u-5"):
        assert [(one.topic, one.partition, one.base_offset) for one in discover(path, options=options)] == expected
    assert [one.topic for one in discover(url, topics=["u"], options=options)] == ["u"]
    assert len(discover(f"{url}/t-0/{10:020}.log", options=options)) == 1
    for missing in (f"{url}/none", f"{url}/none-*/x.log"):
        with pytest.raises(FileNotFoundError, match="none"):
            discover(missing, options=options)
    with pytest.raises(FileNotFoundError):
        LogSegment(f"{url}/t-0/none.log", options=options)
    with pytest.raises(FileNotFoundError):
        read_producer_snapshot(f"{url}/t-0/none.snapshot", options)


@pytest.mark.quick
def test_fsspec_is_only_imported_for_urls(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    code = (
        "import sys\nfrom kwire.storage import LogDirectory\n"
        "directory = LogDirectory(sys.argv[1])\nassert len(list(directory.read(committed=True))) == 3\n"
        "assert len(directory.columns()) == 3\nassert directory.verify() == []\n"
        "assert not {'fsspec', 'pyarrow', 'numpy', 'click', 'rich'} & set(sys.modules), 'imported without need'\n"
        "sys.modules['fsspec'] = None\n"
        "try:\n    LogDirectory('s3://bucket/x')\n"
        "except ImportError as error:\n    assert 'kwire[remote]' in str(error)\n"
        "else:\n    raise SystemExit('no error')\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=root)


def test_the_stand_in_listens_on_loopback_only(s3: dict[str, Any]) -> None:
    port = int(s3["client_kwargs"]["endpoint_url"].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


class Lying(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A store of one segment, lying://h/t-0/0...0.log. answer, entry: what it makes of a right answer."""

    protocol = "lying"
    cachable = False
    content = b""
    answer: Callable[[bytes, int], bytes] = staticmethod(lambda data, start: data)
    entry: Callable[[dict[str, Any]], Any] = staticmethod(lambda entry: entry)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        return [type(self).entry(self.info(f"{path.rstrip('/')}/{0:020}.log"))]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        is_file = path.endswith(".log")
        return {"name": path, "size": len(self.content) * is_file, "type": "file" if is_file else "directory"}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        return type(self).answer(self.content[start:end], start or 0)


@pytest.fixture
def lying() -> Iterator[type[Lying]]:
    fsspec.register_implementation("lying", Lying, clobber=True)
    Lying.content = b"".join(batch(3 * at, size=300) for at in range(3000))
    yield Lying
    Lying.answer = staticmethod(lambda data, start: data)
    Lying.entry = staticmethod(lambda entry: entry)


def test_a_store_that_does_not_read_ranges(lying: type[Lying]) -> None:
    """It gives the whole object, as Python's http.server does."""
    lying.answer = staticmethod(lambda data, start: lying.content)
    segment = LogSegment(f"lying://h/t-0/{0:020}.log")
    assert offsets(segment.read()) == [*range(9000)]
    cut = segment.size // 2
    halves = [[offset for piece in segment.column_batches(("offset",), start=start, end=end, guessed=True)
               for offset in piece["offset"].to_numpy().tolist()] for start, end in ((0, cut), (cut, segment.size))]
    assert halves[0] + halves[1] == [*range(9000)]


@pytest.mark.parametrize("answer", [
    lambda data, start: data + b"more", lambda data, start: None, lambda data, start: "text"])
def test_a_store_with_wrong_answers_is_an_error(lying: type[Lying], answer: Any) -> None:
    lying.answer = staticmethod(answer)
    with pytest.raises(OSError, match=r"lying://h/t-0/0+\.log: the object store"):
        list(LogSegment(f"lying://h/t-0/{0:020}.log").column_batches(start=1 << 20, guessed=True))


@pytest.mark.parametrize("kind", [OSError, RuntimeError])
def test_what_a_store_says_is_cut(lying: type[Lying], kind: type[Exception]) -> None:
    """pyarrow lists every place in which it has not found Hadoop: 15,000 characters."""
    def answer(data: bytes, start: int) -> bytes:
        raise kind("not found in " + "/usr/lib, " * 1500)

    lying.answer = staticmethod(answer)
    with pytest.raises(OSError, match="not found in /usr/lib") as caught:
        list(LogSegment(f"lying://h/t-0/{0:020}.log").batches())
    assert len(str(caught.value)) < 1200


@pytest.mark.parametrize("entry", [
    lambda entry: None, lambda entry: entry["name"], lambda entry: {**entry, "size": "many"},
    lambda entry: {**entry, "size": 1.5}, lambda entry: {**entry, "name": None},
    lambda entry: {"name": entry["name"], "size": 1}])
def test_a_store_with_wrong_listings_is_an_error(lying: type[Lying], entry: Any) -> None:
    lying.entry = staticmethod(entry)
    with pytest.raises(OSError, match="lying://h/t-0: the object store failed to read it"):
        list(LogDirectory("lying://h/t-0").read())


@pytest.fixture
def web_server() -> Iterator[tuple[str, list[int]]]:
    """(URL of a web server, the status of all its answers; 0: it closes the connection)."""
    status = [200]

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            if status[0]:
                self.send_response(status[0])
                self.send_header("Content-Length", "0")
                self.end_headers()
            self.close_connection = True

        do_GET = do_HEAD

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", status
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [404, 410, 403, 500, 503, 0])
def test_a_web_server_that_fails_has_not_lost_the_file(web_server: tuple[str, list[int]], status: int) -> None:
    """fsspec calls all of these a missing file; a stream with failOnDataLoss=false passes over what was deleted."""
    url, answer = web_server
    answer[0] = status
    path = f"{url}/t-0/{0:020}.log"
    missing = status in (404, 410)
    with pytest.raises(OSError, match=f"{0:020}.log") as raised:
        open_file(path).size()
    assert isinstance(raised.value, FileNotFoundError) is missing
    if missing:
        assert open_folder(path).entry(path) is None
    else:
        with pytest.raises(OSError, match=str(status or "disconnected")):
            open_folder(path).entry(path)


def test_a_web_server_that_does_not_answer() -> None:
    """The keyword that docs/spark-source.md names ends the wait."""
    quick = {"timeout": 0.3}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/t-0/{0:020}.log"
        for ask in (lambda: open_file(url, quick).size(), lambda: open_file(url, quick).read(0, 61),
                    lambda: open_folder(url, quick).entry(url), lambda: open_folder(url, quick).entries(url)):
            with pytest.raises(OSError, match=url) as raised:
                ask()
            assert not isinstance(raised.value, FileNotFoundError)


def test_stores_of_many_options_are_not_kept() -> None:
    """As of tokens that change each hour; who reads from one of them goes on."""
    first, _ = filesystem.store_of("http://127.0.0.1:1/x", {"token": 0})
    for number in range(3 * filesystem._MOST_STORES):
        filesystem.store_of("http://127.0.0.1:1/x", {"token": number})
        assert len(filesystem._STORES) <= filesystem._MOST_STORES
    newest = {"token": 3 * filesystem._MOST_STORES - 1}
    assert filesystem.store_of("http://127.0.0.1:1/y", newest)[0] is filesystem._STORES[
        os.getpid(), "http://127.0.0.1:1", repr(newest)]
    assert first.storage_options == {"token": 0}


def test_no_python_runs_as_a_file_is_closed(tmp_path: Path) -> None:
    """A Ctrl-C in a finalizer is printed, and lost."""
    (tmp_path / "x").write_bytes(b"data")
    file = LocalFile(str(tmp_path / "x")).held()
    descriptor = cast(Any, file)._file.descriptor
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        del file
    finally:
        sys.setprofile(None)
    assert not called
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
