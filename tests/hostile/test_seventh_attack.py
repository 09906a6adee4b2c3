"""What the seventh attack found: packets to oneself, arrays to compress, imports in threads, interrupted closes."""

from __future__ import annotations

import array
import asyncio
import gc
import linecache
import os
import random
import re
import subprocess
import sys
import time
from _thread import _count
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kwire
from kwire import capture, compression, messages, net
from kwire.net import sync, waiting
from kwire.net.channel import Channel
from tests.capture.making import Talk, hello, read, welcome, write_pcap
from tests.net.fake import Broker, cluster, cluster_answer, of_release, run, serving
from tools.places import ROOT

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("address", [("10.0.0.7", 9092), ("2001:db8::7", 9092)])
def test_packets_that_an_address_sends_to_itself_are_lost_and_counted(tmp_path: Path, address: tuple[str, int]) -> None:
    """A connection of Linux to its own port, or a forged packet: its two sides have one name."""
    own = Talk(client=address, server=address).open().exchange(hello(), welcome()).close()
    other = Talk().open().exchange(hello(), welcome()).close()
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", [*own.bytes(), *other.bytes()]))
    assert [one.outcome for one in exchanges] == ["answered"]
    assert [(one.reason, one.count) for one in lost] == [
        ("packets from an address and port to itself: neither side is the client", len(own.packets))]


def views(content: bytes) -> list[Any]:
    """Buffers of these bytes, whose length is a multiple of 16, with other items than bytes."""
    plain = np.frombuffer(content, "u1")
    return [
        memoryview(content).cast("b"), memoryview(content).cast("c"), memoryview(content).cast("i"), bytearray(content),
        array.array("q", content), plain.view("i8"), plain.view("M8[s]"), plain.reshape(2, -1),
        plain.view("i4").reshape(4, -1),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("content", [random.Random(7).randbytes(160_000), bytes(160_000)], ids=["odd", "even"])
def test_the_bytes_of_an_array_are_compressed(codec: str, content: bytes) -> None:
    packed = compression.compress(codec, content)
    for view in views(content):
        assert compression.compress(codec, view) == packed
    assert compression.decompress(codec, packed, limit=len(content)) == content
    for ending in range(16):  # of what is written, some is a multiple of 16 too
        packed = compression.compress(codec, content + bytes(ending))
        if len(packed) % 16 == 0:
            break
    else:
        return
    for view in views(packed):
        if codec != "none":
            assert compression.decompress(codec, view, limit=1 << 20) == content + bytes(ending)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_no_buffer_is_not_compressed(codec: str) -> None:
    for value in (5, [1, 2], "abc", None, np.array([b"x"], dtype=object)):
        for call in (lambda value=value: compression.compress(codec, value),
                     lambda value=value: compression.decompress(codec, value, limit=10)):
            with pytest.raises(TypeError, match="data must be bytes or another buffer"):
                call()
    with pytest.raises(BufferError, match="data must be a contiguous buffer"):
        compression.compress(codec, memoryview(b"abcd")[::2])


def test_a_recording_that_cannot_begin_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        capture.FrameWriter(str(tmp_path / ("a" * 248)))  # as .bin.gz a name may have these, as .jsonl.gz not
    (tmp_path / "b.jsonl.gz").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        capture.FrameWriter(str(tmp_path / "b"))
    assert [one.name for one in tmp_path.iterdir()] == ["b.jsonl.gz"]


FULL = """
import os, resource, signal, sys
from kwire.capture import Connection, Frame, FrameWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
before = len(os.listdir("/proc/self/fd"))
writer = FrameWriter(sys.argv[1])
writer.write(Connection("c", 0), Frame("request", os.urandom(2000)), None)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
try:
    writer.close()
except OSError:
    os._exit(len(os.listdir("/proc/self/fd")) - before)
os._exit(99)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux's /proc")
def test_a_recording_on_a_full_disk_closes_both_files(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "a")], cwd=ROOT, timeout=60)
    assert ran.returncode == 0


def test_a_number_of_a_thousand_digits_is_not_printed(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"")
    (tmp_path / "a.jsonl").write_text('{"conn": 1, "dir": "c2s", "off": 0, "len": 1%s}\n' % ("0" * 1000))
    with pytest.raises(kwire.DecodeError) as raised:
        list(capture.read_capture(tmp_path / "a.jsonl"))
    assert len(raised.value.reason) < 200


def test_a_path_that_no_message_has_is_escaped_and_cut() -> None:
    for path in ("x" * 20_000, "topics.\x1b[31m" * 1000, "\x1b]0;x\x07"):
        with pytest.raises(ValueError, match="FetchRequest v12 has no field") as raised:
            kwire.columns_of("FetchRequest", 12, [], [path])
        assert str(raised.value).isprintable() and len(str(raised.value)) < 200


def test_no_module_imports_a_module_that_its_package_imports() -> None:
    """Of two threads one has the lock of the package, the other that of the module, and each waits for the other.

    (Python says "deadlock detected" in one of them. `from package import module` takes the package's lock first.)
    """
    text = "".join(path.read_text() for path in (ROOT / "kwire").rglob("*.py"))
    found = re.findall(r"^ *(?:from|import) (\w+)((?:\.\w+)+)", text, re.MULTILINE)
    inside = {package + rest for package, rest in found if package in sys.stdlib_module_names}
    assert "importlib.util" in inside
    code = ("import sys, importlib\nfor name in sys.argv[1:]:\n"
            "    package, before = name.rpartition('.')[0], name in sys.modules\n    importlib.import_module(package)\n"
            "    if name in sys.modules and not before:\n        print(name)\n")
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code, *sorted(inside - {"collections.abc"})],
                         capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def lines_of(function: Callable[..., Any], stop: int) -> Callable[..., Any]:
    """A tracer that raises KeyboardInterrupt at the stop-th line of a function that is no `with` or `try`."""
    left = [stop]

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is not function.__code__:
            return None if event == "call" else trace
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        if event == "line" and not text.startswith(("with ", "try:")):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
        return trace

    return trace


@pytest.mark.filterwarnings("ignore:coroutine 'Connection.close' was never awaited")
def test_an_interrupt_in_a_close_leaves_no_thread() -> None:
    """At each line of it: what it had taken out of the connection is ended when that goes."""
    broker = Broker(of_release("4.4"), lambda _: None)
    with serving(broker):
        before, interrupted = _count(), 0
        for function in (sync.SyncConnection.close, sync.SyncConnection._end):
            for stop in range(1, 10):
                connection = sync.connect_sync(broker.address)
                connection.open()
                tracing = sys.gettrace()
                sys.settrace(lines_of(function, stop))
                try:
                    connection.close()
                except KeyboardInterrupt:
                    interrupted += 1
                finally:
                    sys.settrace(tracing)
                if stop % 2:
                    with suppress(RuntimeError):
                        connection.close()  # again, which has nothing to wait for
                del connection
                gc.collect()
                end = time.monotonic() + 20
                while _count() > before and time.monotonic() < end:
                    time.sleep(0.005)
                assert _count() == before, (function.__name__, stop)
        assert interrupted >= 8


def silence(_: Any) -> None:
    """No answer."""


async def timeouts(work: Awaitable[Any], seconds: float) -> float:
    """How many timeouts of so many seconds a call takes that fails because nobody answers."""
    begin = asyncio.get_running_loop().time()
    with pytest.raises(net.BrokerConnectionError):
        await work
    return (asyncio.get_running_loop().time() - begin) / seconds


def test_silent_brokers_take_the_time_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request after a failed one asks known brokers who is there: twenty that were silent took 21 timeouts."""
    monkeypatch.setattr(waiting, "_LONGEST_PAUSE", 0.01)

    async def work() -> None:
        brokers = cluster(*[of_release("4.4")] * 20)
        async with AsyncExitStack() as held:
            for broker in brokers:
                await held.enter_async_context(broker)
            made = net.Cluster(brokers[0].address, timeout=10)
            await made.open()
            made.timeout = 0.5
            for broker in brokers:
                broker.answer = silence
            for _ in range(2):
                assert await timeouts(made.send(messages.FindCoordinatorRequest(), timeout=0.5), 0.5) < 15
            assert await timeouts(made.refresh(), 0.5) < 15
            await made.close()

    run(work())


def test_a_request_after_silent_brokers_reaches_the_one_that_answers() -> None:
    async def work() -> None:
        brokers = cluster(*[of_release("4.4")] * 10)
        async with AsyncExitStack() as held:
            for broker in brokers:
                await held.enter_async_context(broker)
            made = net.Cluster(brokers[0].address, timeout=20)
            await made.open()
            for broker in brokers[:-1]:
                broker.answer = silence
            with pytest.raises(net.BrokerTimeoutError):
                await made.send(messages.MetadataRequest(topics=[]), to=1, timeout=0.2)
            for _ in range(100):
                with suppress(net.BrokerConnectionError):
                    await made.send(messages.MetadataRequest(topics=[]), to=len(brokers), timeout=0.25)
                    break
            else:
                raise AssertionError("it was not reached")
            await made.close()

    run(work())


def test_any_of_two_brokers_is_the_other_one_after_a_failure() -> None:
    async def work() -> None:
        brokers = cluster(of_release("4.4"), of_release("4.4"))
        async with brokers[0], brokers[1], net.Cluster(brokers[0].address, timeout=10) as made:
            brokers[0].answer = silence
            outcomes = []
            for _ in range(6):
                try:
                    await made.send(messages.MetadataRequest(topics=[]), timeout=1)
                    outcomes.append("answered")
                except net.BrokerTimeoutError:
                    outcomes.append("silent")
            assert outcomes.count("answered") >= 2, outcomes

    run(work())


def test_a_bootstrap_server_that_is_gone_does_not_keep_the_next_from_being_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Connecting to it takes as long as there is: nothing refuses, nothing answers."""
    monkeypatch.setattr(waiting, "_LONGEST_PAUSE", 0.01)
    plain = Channel.open

    async def opened(address: Any, **keywords: Any) -> Channel:
        if address.port == 1:
            await asyncio.sleep(1000)
        return await plain(address, **keywords)

    monkeypatch.setattr(Channel, "open", opened)

    async def work() -> None:
        (broker,) = cluster(of_release("4.4"))
        async with broker:
            async with net.Cluster(f"127.0.0.1:1,{broker.address}", timeout=20) as made:
                assert [one.id for one in made.brokers] == [1]
            listed = cluster_answer(broker, broker)  # as broker 2, at an address that is gone

            def answer(request: Any) -> Any:
                found = listed(request)
                if isinstance(found, messages.MetadataResponse):
                    found.brokers[1].port = 1
                return found

            broker.answer = answer
            async with net.Cluster(broker.address, timeout=2, partial=True) as made:
                assert isinstance(made.unreachable.pop(2), net.BrokerTimeoutError) and not made.unreachable

    run(work())
