"""FrameWriter and Recording under odd use: large frames, threads, forks, full disks, cancellation, secrets."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import random
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire import capture, messages
from kwire.capture import Connection, Exchange, Frame, FrameWriter, Lost, read_capture
from kwire.capture.frame_files import _GzipWriter, _Packed
from kwire.capture.pairing import Pairing
from kwire.capture.pcap import Unread, read_segments
from kwire.capture.recorder import Recorder, Recording
from tests.capture.making import Talk, hello, metadata, outcomes_of, produce, read, welcome, write_pcap
from tests.limits import processor_time
from tests.net.fake import in_a_child
from tools.places import ROOT

pytestmark = pytest.mark.quick


def test_a_recording_that_cannot_begin_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        capture.FrameWriter(str(tmp_path / ("a" * 248)))  # as .bin.gz a name may have these, as .jsonl.gz not
    (tmp_path / "b.jsonl.gz").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        capture.FrameWriter(str(tmp_path / "b"))
    with pytest.raises(TypeError, match="name must be a str, not bytes"):
        capture.FrameWriter(os.fsencode(tmp_path / "c"))  # type: ignore[arg-type]
    assert [one.name for one in tmp_path.iterdir()] == ["b.jsonl.gz"]


@pytest.mark.parametrize("seed", range(40))
def test_what_an_interrupt_or_a_full_disk_cut_is_written_again(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any time the file gives what was flushed, and never what was not written; closed, it gives all."""
    chance, pwrite = random.Random(seed), os.pwrite
    written, flushed, path = b"", 0, tmp_path / "x.gz"

    def odd(number: int, data: bytes, at: int) -> int:
        way = chance.random()
        if way < 0.15:
            raise KeyboardInterrupt
        done = pwrite(number, data[: len(data) if way > 0.5 else chance.randrange(len(data)) + 1], at)
        if 0.3 < way < 0.6:
            raise KeyboardInterrupt if way > 0.45 else OSError(28, "No space left on device")
        return done

    writer = _GzipWriter(str(path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", odd)
        for _ in range(15):
            data = chance.randbytes(chance.randrange(500)) if chance.random() < 0.5 else b"ab" * chance.randrange(2000)
            written += data
            writer.write(data)
            with suppress(KeyboardInterrupt, OSError):
                writer.flush()
                flushed = len(written)
            found, rest = b"", path.read_bytes()
            while rest:
                member = zlib.decompressobj(31)
                found, rest = found + member.decompress(rest), member.unused_data if member.eof else b""
            assert written.startswith(found) and len(found) >= flushed
    writer.close()
    assert gzip.decompress(path.read_bytes()) == written


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


PASSWORD = "hunter2-of-Baghdad"


def recorded(out: Path, *said: tuple[bytes, bytes | None]) -> tuple[list[Exchange], list[Lost], bytes]:
    """What a tap records of these exchanges, and all the bytes of its files."""
    with FrameWriter(str(out)) as writer:
        recording = Recording(Connection(str(out), 0, "a:1", "b:2"), writer)
        for request, answer in said:
            recording.feed("request", kwire.pack_frame(request))
            if answer is not None:
                recording.feed("response", kwire.pack_frame(answer))
        recording.close()
    data = b"".join(gzip.decompress(Path(f"{out}.{kind}.gz").read_bytes()) for kind in ("jsonl", "bin"))
    return *read(Path(f"{out}.jsonl.gz")), data


def large_metadata(number: int) -> bytes:
    """A Metadata request of 700,000 topics, 2 MiB."""
    data = kwire.encode_request(messages.MetadataRequest(topics=[]), 4, correlation_id=number, client_id="me")
    assert data[-5:-1] == bytes(4)
    return data[:-5] + struct.pack(">i", 700_000) + b"\0\1a" * 700_000 + data[-1:]


def test_the_tap_reads_of_large_requests_the_header_only(tmp_path: Path) -> None:
    request = large_metadata(1)
    answer = kwire.encode_response(messages.MetadataResponse(), 4, correlation_id=1)
    exchanges, lost, _ = recorded(tmp_path / "t", (hello(), welcome()), (request, answer))
    assert not lost and outcomes_of(exchanges)[1] == ("Metadata", 4, 1, "answered")
    pairing = Pairing(Connection("x", 0), most_decoded=1 << 20)
    pairing.request(Frame("request", hello()))
    tracemalloc.start()
    assert pairing.request(Frame("request", request)) is not None
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20


def test_a_large_frame_with_secrets_and_a_large_first_one_are_lost(tmp_path: Path) -> None:
    secret = kwire.encode_request(
        messages.SaslAuthenticateRequest(auth_bytes=PASSWORD.encode() * 100_000), 2, correlation_id=1)
    exchanges, lost, data = recorded(tmp_path / "t", (hello(), welcome()), (secret, None))
    assert PASSWORD.encode() not in data and any("whose secrets cannot be removed" in one.reason for one in lost)
    assert outcomes_of(exchanges) == [("ApiVersions", 3, 0, "answered")]
    exchanges, (loss,), _ = recorded(tmp_path / "u", (large_metadata(0), None))
    assert not exchanges and "too large" in loss.reason


@pytest.mark.parametrize("version", [4, 10, 12, 13, 17])
def test_a_large_fetch_that_holds_the_metadata_logs_id_or_name_by_chance_is_recorded(
    tmp_path: Path, version: int
) -> None:
    """An empty partition before partition 1 has the bytes of the id, and records may have any."""
    reply = messages.FetchResponse
    records = b"about __cluster_metadata " + bytes(15) + b"\x01" + bytes(2 << 20)

    def fetched(number: int, topic: str, topic_id: int) -> tuple[bytes, bytes]:
        part = [reply.PartitionData(partition_index=at, records=records * at) for at in range(2)]
        name: dict[str, Any] = {"topic_id": UUID(int=topic_id)} if version >= 13 else {"topic": topic}
        answer = reply(responses=[reply.FetchableTopicResponse(partitions=part, **name)])
        return (kwire.encode_request(messages.FetchRequest(), version, correlation_id=number, client_id="me"),
                kwire.encode_response(answer, version, correlation_id=number))

    others, own = fetched(1, "mine", 7), fetched(2, "__cluster_metadata", 1)
    exchanges, lost, _ = recorded(tmp_path / "t", (hello(), welcome()), others, own)
    assert [one.outcome for one in exchanges] == ["answered", "answered", "lost"] and len(lost) == 1
    assert exchanges[1].response is not None and exchanges[1].response.data == others[1]


def test_the_tap_does_not_decode_empty_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 MiB of them kept the other clients waiting for 1.4 s."""
    decoded, decode = [], kwire.decode_request
    monkeypatch.setattr("kwire.decode_request", lambda *given, **how: (decoded.append(1), decode(*given, **how))[1])
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:2"), writer)
        recording.feed("request", kwire.pack_frame(hello()) + bytes(1 << 16))
        recording.close()
    exchanges, (lost,) = read(tmp_path / "t.jsonl.gz")
    assert len(exchanges) == 1 and lost.reason == "an empty request" and len(decoded) <= 3


def sasl(number: int, tags: dict[int, bytes]) -> tuple[bytes, bytes]:
    """A login of PLAIN with tags everywhere."""
    request = messages.SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}".encode(), unknown_tags=tags)
    answer = messages.SaslAuthenticateResponse(unknown_tags=tags)
    return (kwire.encode_request(request, 2, correlation_id=number, client_id="me", header_tags=tags),
            kwire.encode_response(answer, 2, correlation_id=number, header_tags=tags))


def test_unknown_tags_of_what_has_secrets_are_not_recorded(tmp_path: Path) -> None:
    tags = {7000: PASSWORD.encode()}
    config = messages.AlterConfigsRequest.AlterConfigsResource(
        resource_name="r", unknown_tags=tags,
        configs=[messages.AlterConfigsRequest.AlterableConfig(name="n", value="v", unknown_tags=tags)])
    other = kwire.encode_request(messages.AlterConfigsRequest(resources=[config]), 2, correlation_id=1)
    answer = kwire.encode_response(messages.AlterConfigsResponse(), 2, correlation_id=1)
    exchanges, _, data = recorded(tmp_path / "t", (hello(), welcome()), (other, answer), sasl(2, tags))
    assert PASSWORD.encode() not in data and PASSWORD.encode().hex().encode() not in data
    assert [one.api for one in exchanges] == ["ApiVersions", "AlterConfigs", "SaslAuthenticate"]


@pytest.mark.parametrize("piece", [PASSWORD, PASSWORD[3:11], f"a {PASSWORD[-9:]} b"])
def test_frames_that_repeat_what_the_client_authenticated_with_are_not_recorded(tmp_path: Path, piece: str) -> None:
    ask, fine = metadata(3)
    echo = kwire.encode_response(messages.MetadataResponse(cluster_id=piece), 9, correlation_id=3)
    exchanges, lost, data = recorded(
        tmp_path / "t", (hello(), welcome()), sasl(2, {}), (ask, echo), (metadata(4)[0], fine[:3] + b"\4" + fine[4:]))
    assert piece.encode() not in data and piece.encode().hex().encode() not in data
    assert any("repeats the client's credentials" in one.reason for one in lost)
    assert outcomes_of(exchanges)[2] == ("Metadata", 9, 4, "answered") or exchanges[-1].outcome == "answered"


def test_a_response_that_is_not_recorded_was_not_unanswered(tmp_path: Path) -> None:
    ask, _ = metadata(3)
    echo = kwire.encode_response(messages.MetadataResponse(cluster_id=PASSWORD), 9, correlation_id=3)
    exchanges, lost, data = recorded(tmp_path / "t", (hello(), welcome()), sasl(2, {}), (ask, echo))
    assert PASSWORD.encode() not in data and outcomes_of(exchanges)[2] == ("Metadata", 9, 3, "lost")
    (echoed,) = (one for one in exchanges if one.correlation_id == 3)
    assert echoed.response is not None and echoed.response.missing == len(echo) - 4 and len(lost) == 1


@pytest.mark.parametrize("direction", ["request", "response"])
def test_a_connection_cut_at_any_byte_is_recorded_as_it_is_captured(tmp_path: Path, direction: str) -> None:
    """Among others: half a response is no answer."""
    asked = b"".join(map(kwire.pack_frame, (hello(), metadata(1)[0], produce(2, 1))))
    answered = kwire.pack_frame(welcome()) + kwire.pack_frame(metadata(1)[1])
    for cut in range(len(asked if direction == "request" else answered)):
        first, second = (asked[:cut], b"") if direction == "request" else (asked, answered[:cut])
        talk, name = Talk().open(), tmp_path / f"{cut}"
        with FrameWriter(str(name)) as writer:
            recording = Recording(Connection("a", 0, "10.0.0.7:51234", "10.0.0.1:9092"), writer)
            for side, data in ((True, first), (False, second)):
                if data:
                    recording.feed("request" if side else "response", data)
                    talk.say(side, data)
            recording.close()
        taken, captured = read(Path(f"{name}.jsonl.gz")), read(write_pcap(tmp_path / "a.pcap", talk.close().bytes()))
        assert outcomes_of(taken[0]) == outcomes_of(captured[0]), cut
        assert [(one.reason, one.direction, one.bytes) for one in taken[1]] == [
            (one.reason, one.direction, one.bytes) for one in captured[1]], cut


def test_raw_tokens_are_remembered_too(tmp_path: Path) -> None:
    greeting = kwire.encode_request(messages.SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1)
    answer = kwire.encode_response(messages.SaslHandshakeResponse(mechanisms=["PLAIN"]), 0, correlation_id=1)
    echo = kwire.encode_response(messages.MetadataResponse(cluster_id=PASSWORD), 9, correlation_id=3)
    _, _, data = recorded(tmp_path / "t", (hello(), welcome()), (greeting, answer),
                          (f"\0alice\0{PASSWORD}".encode(), b""), (metadata(3)[0], echo))
    assert PASSWORD.encode() not in data and PASSWORD.encode().hex().encode() not in data


def test_a_user_name_is_no_secret(tmp_path: Path) -> None:
    """Else the tap would not record frames that name the user, as ACLs do."""
    first = kwire.encode_request(
        messages.SaslAuthenticateRequest(auth_bytes=b"n,,n=topic-00000000,r=abcdefgh"), 2, correlation_id=1)
    answer = kwire.encode_response(messages.SaslAuthenticateResponse(), 2, correlation_id=1)
    greeting = kwire.encode_request(messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1, correlation_id=3)
    agreed = kwire.encode_response(messages.SaslHandshakeResponse(), 1, correlation_id=3)
    exchanges, lost, _ = recorded(
        tmp_path / "t", (hello(), welcome()), (greeting, agreed), (first, answer), metadata(2))
    assert not lost and len(exchanges) == 4


def test_a_finalizer_inside_a_call_of_the_writer_is_refused(tmp_path: Path) -> None:
    errors: list[str] = []

    def work() -> None:
        with FrameWriter(str(tmp_path / "t")) as writer, writer._guard:
            for call in (writer.flush, lambda: writer.note(Lost("", "x", Connection("", 0)))):
                try:
                    call()
                except RuntimeError as error:
                    errors.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive() and len(errors) == 2 and "finalizer" in errors[0]


@pytest.mark.parametrize("server", ["b:²", "b:" + "9" * 5000, "b", None])
def test_a_server_without_a_port_is_recorded_and_the_record_goes_on(tmp_path: Path, server: str | None) -> None:
    with FrameWriter(str(tmp_path / "t")) as writer:
        writer.write(Connection("", 0, "a:1", server), Frame("request", hello()), None)
        writer.write(Connection("", 0, "a:1", "b:1"), Frame("response", welcome()), None)
    exchanges, _ = read(tmp_path / "t.jsonl.gz")
    assert outcomes_of(exchanges) == [("ApiVersions", 3, 0, "answered")]


def test_what_cannot_be_written_leaves_the_record_usable(tmp_path: Path) -> None:
    with FrameWriter(str(tmp_path / "t")) as writer:
        wrong: Any = 5
        with pytest.raises(AttributeError):
            writer.write(Connection("", 0, "a:1", wrong), Frame("request", hello()), None)
        writer.write(Connection("", 0), Frame("request", hello()), None)


def test_lines_that_come_a_byte_at_a_time_take_linear_time(tmp_path: Path) -> None:
    """As they do from gzip members of one byte."""
    (tmp_path / "t.jsonl").write_bytes(b"")
    packed = _Packed(str(tmp_path / "t.jsonl"))
    blocks = iter([b"x"] * 700_000 + [b"\nlast\n", b""])
    packed._block = lambda: next(blocks)  # type: ignore[method-assign]
    with processor_time(10):
        assert [len(line) for line in packed.lines()] == [700_000, 4]
    packed.close()


def test_a_gz_that_gives_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.storage.places.filesystem.MOST_UNPACKED", 100_000)
    talk = Talk().open().exchange(hello(), welcome())
    for number in range(1, 20):
        talk.exchange(*metadata(number, 300))
    plain = write_pcap(tmp_path / "x.pcap", talk.bytes())
    assert len(read(plain)[0]) == 20
    (tmp_path / "x.pcap.gz").write_bytes(gzip.compress(plain.read_bytes()))
    unread = Unread()
    list(read_segments(str(tmp_path / "x.pcap.gz"), unread))
    assert unread.end is not None and "holds too many bytes" in unread.end
    with FrameWriter(str(tmp_path / "t")) as writer:
        for number in range(20):
            writer.write(Connection("", 0), Frame("request", metadata(number, 300)[0]), None)
    with pytest.raises(kwire.LimitError, match="holds too many bytes"):
        list(read_capture(tmp_path / "t.jsonl.gz"))


def test_threads_in_one_capture_get_each_exchange_once(tmp_path: Path) -> None:
    talk = Talk().open().exchange(hello(), welcome())
    for number in range(1, 300):
        talk.exchange(*metadata(number))
    events = read_capture(write_pcap(tmp_path / "x.pcap", talk.bytes()))
    with ThreadPoolExecutor(8) as pool:
        found = [one for part in pool.map(lambda _: list(events), range(8)) for one in part]
    assert sorted(one.correlation_id for one in found if isinstance(one, Exchange)) == list(range(300))


@pytest.mark.parametrize("ends", ["closes", "forgets", "exits"])
def test_a_child_of_fork_does_not_write_to_a_recording(tmp_path: Path, ends: str) -> None:
    frame = Frame("request", kwire.encode_request(messages.MetadataRequest(topics=[]), 9, correlation_id=1))
    writers = [FrameWriter(str(tmp_path / "t"))]
    for _ in range(20):
        writers[0].write(Connection("t", 0), frame, None)

    def child() -> bytes:
        if ends == "closes":
            writers[0].close()
        elif ends == "exits":
            with writers[0]:
                pass
        writers.clear()
        gc.collect()
        return b"ended"

    assert in_a_child(child) == b"ended"
    for _ in range(20):
        writers[0].write(Connection("t", 0), frame, None)
    writers[0].close()
    assert len([one for one in read_capture(tmp_path / "t.jsonl.gz") if not isinstance(one, Lost)]) == 40


def test_a_recorder_that_is_cancelled_while_it_closes_completes_its_files(tmp_path: Path) -> None:
    async def work() -> None:
        recorder = Recorder(str(tmp_path / "t"))
        recording = recorder.open("a:1", "b:9092")
        recorder.record(recording, "request", kwire.pack_frame(hello()))
        task = asyncio.create_task(recorder.close())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        recorder.record(recording, "request", kwire.pack_frame(hello()))
        assert recorder.writer.frames == 1 and recorder.failed is None

    asyncio.run(work())
    (exchange,) = read_capture(tmp_path / "t.jsonl.gz")
    assert not isinstance(exchange, Lost)


def test_a_recording_refuses_what_is_no_frame(tmp_path: Any) -> None:
    with capture.FrameWriter(str(tmp_path / "a")) as writer:
        connection, frame = capture.Connection("c", 0), capture.Frame("request", b"x")
        for name, arguments in {"connection": (5, frame, None), "frame": (connection, 5, None),
                                "exchange": (connection, frame, 5)}.items():  # fmt: skip
            with pytest.raises(TypeError, match=f"{name} must be"):
                writer.write(*arguments)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="lost must be"):
            writer.note(5)  # type: ignore[arg-type]
        writer.write(connection, frame, None)
        assert writer.frames == 1


def test_a_recording_that_was_closed_takes_nothing(tmp_path: Path) -> None:
    """It took frames without an error, and they were in no file."""
    connection, frame = Connection("c", 0), Frame("request", hello(1), 1)
    with FrameWriter(str(tmp_path / "t")) as writer:
        writer.write(connection, frame, None)
    for call in (lambda: writer.write(connection, frame, None), lambda: writer.note(Lost("c", "r", connection)),
                 writer.flush):
        with pytest.raises(ValueError, match="the FrameWriter is closed"):
            call()
    writer.close()
    assert writer.frames == 1 and len(list(read_capture(tmp_path / "t.jsonl.gz"))) == 1


def test_what_no_reader_takes_is_refused_and_the_recording_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame in no direction, or a too large one, made all of the recording unreadable from there."""
    connection, frame = Connection("c", 0), Frame("request", hello(1), 1)
    with FrameWriter(str(tmp_path / "t")) as writer:
        writer.write(connection, frame, None)
        with pytest.raises(ValueError, match="direction must be 'request' or 'response', not 'c2s'"):
            writer.write(connection, Frame("c2s", hello(1), 1), None)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not JSON serializable"):
            writer.write(connection, Frame("request", hello(1), Fraction(1)), None)  # type: ignore[arg-type]
        for number in (None, True, 1.5):
            with pytest.raises(TypeError, match="number must be an int or a str, not"):
                writer.write(Connection("c", number), frame, None)  # type: ignore[arg-type]
        long = Connection("c", 0, "x" * (1 << 20))
        with pytest.raises(kwire.LimitError, match="line of a recording is too long"):
            writer.write(long, frame, None)
        with pytest.raises(kwire.LimitError, match="line of a recording is too long"):
            writer.note(Lost("c", "x" * (1 << 20), connection))
        monkeypatch.setattr("kwire.capture.frame_files.MAX_FRAME_BYTES", 1000)
        with pytest.raises(kwire.LimitError, match=r"too large to be recorded \(limit 1000, needed 1001\)"):
            writer.write(connection, Frame("request", bytes(1001), 1), None)
        writer.write(connection, Frame("request", bytes(1000), 1), None)
        writer.write(connection, frame, None)
    assert writer.frames == 3 and len(list(read_capture(tmp_path / "t.jsonl.gz"))) >= 3
