"""What the seventh attack found: packets to oneself, arrays to compress, imports in threads, interrupted closes."""

from __future__ import annotations

import array
import gc
import linecache
import os
import random
import re
import subprocess
import sys
import time
from _thread import _count
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kwire
from kwire import capture, compression
from kwire.net import sync
from tests.capture.making import Talk, hello, read, welcome, write_pcap
from tests.net.fake import Broker, of_release, serving
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
        array.array("q", content), plain.view("i8"), plain.view("M8[s]"), plain.reshape(2, -1), plain.view("i4").reshape(4, -1),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("content", [random.Random(7).randbytes(160_000), b"0123456789abcdef" * 10_000], ids=["odd", "even"])
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
