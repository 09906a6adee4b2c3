"""What the eighth attack found in recordings and the tap: credentials repeated, forks, cancellations, long names."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import string
import tracemalloc
from pathlib import Path

import pytest

import kwire
from kwire import messages
from kwire.capture import Connection, Frame, FrameWriter, Lost, read_capture
from kwire.capture.credentials import Credentials
from kwire.capture.framing import Conversation
from kwire.capture.recorder import Recorder, Recording
from kwire.capture.tap import Tap
from tests.capture.making import hello, metadata, welcome
from tests.net.fake import in_a_child

pytestmark = pytest.mark.quick

DICE = random.Random(8)


def word(size: int) -> str:
    return "".join(DICE.choices(string.ascii_letters + string.digits, k=size))


def plain(password: str) -> bytes:
    return f"\0alice\0{password}".encode()


def bearer(token: str, scheme: str = "auth=Bearer ") -> bytes:
    return f"n,,\x01{scheme}{token}\x01\x01".encode()


FIRST, SECOND, LONG, LONGER = word(10), word(10), word(2000), word(20_000)
TOKENS = [word(9000) for _ in range(6)]


@pytest.mark.parametrize(("tokens", "repeated", "size"), [
    ([plain(FIRST)], FIRST[2:], 3 << 20),
    ([plain(FIRST), plain(SECOND)], SECOND, 3 << 20),  # a re-authentication
    ([bearer(LONG)], LONG[501:516], 3 << 20),
    ([bearer(LONG, "auth=BEARER  ")], LONG[500:515], 0),
    ([bearer(token) for token in TOKENS], TOKENS[-1], 0),
    ([bearer(LONGER)], LONGER[15_000:15_020], 0),
    ([b"\x60\x82" + FIRST.encode() + b"\0" + SECOND.encode()], FIRST, 0),  # a mechanism that kwire does not know
], ids=["a part in a large frame", "the second in a large frame", "a long one in a large frame", "as Kafka reads it",
        "the last of many", "the end of a long one", "before a zero byte"])
def test_credentials_are_found_where_they_are_repeated(
    tmp_path: Path, tokens: list[bytes], repeated: str, size: int
) -> None:
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)

        def say(request: bytes, response: bytes) -> None:
            recording.feed("request", kwire.pack_frame(request))
            recording.feed("response", kwire.pack_frame(response))

        say(hello(), welcome())
        for number, token in enumerate(tokens):
            login = messages.SaslAuthenticateRequest(auth_bytes=token)
            say(kwire.encode_request(login, 2, correlation_id=number, client_id="me"),
                kwire.encode_response(messages.SaslAuthenticateResponse(), 2, correlation_id=number))
        topic = messages.MetadataResponse.MetadataResponseTopic
        around = [topic(name="x" * 30_000) for _ in range(size // 60_000)]
        echo = messages.MetadataResponse(topics=[*around, topic(name=repeated), *around])
        say(metadata(99)[0], kwire.encode_response(echo, 9, correlation_id=99))
        say(*metadata(100, 40))
        recording.close()
    events = list(read_capture(tmp_path / "t.jsonl.gz"))
    lost = [one for one in events if isinstance(one, Lost)]
    assert [one.reason for one in lost if "repeats" in one.reason] == [
        "a response that repeats the client's credentials"]
    held = b"".join((one.request.data + (one.response.data if one.response else b""))
                    for one in events if not isinstance(one, Lost))
    assert repeated.encode() not in held


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_loss_does_not_repeat_credentials(tmp_path: Path, gives_up: bool) -> None:
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)
        recording._credentials.add(plain(FIRST))
        (recording.give_up if gives_up else recording.conversation.pairing.lose)(f"bytes of {FIRST}")
        recording.close()
    (lost,) = read_capture(tmp_path / "t.jsonl.gz")
    assert isinstance(lost, Lost) and lost.reason == "a loss whose text repeats the client's credentials"


def test_what_is_kept_of_credentials_is_bounded() -> None:
    """However often a client authenticates; and data is searched once, not once a piece."""
    kept = Credentials()
    for number in range(300):
        kept.add(bearer(f"{number:08}" * 300))
    assert len(kept._pieces) <= 8192
    assert kept.are_in(b"x" + b"00000299" * 3) and not kept.are_in(bytes(1 << 16))


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


def test_a_tap_that_is_cancelled_at_any_turn_leaves_nothing(tmp_path: Path) -> None:
    """Also again while it ends: no task and no listener, and the files are complete."""
    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async def use(name: Path, target: tuple[str, int]) -> None:
        async with Tap(("127.0.0.1", 0), target, str(name)) as tap:
            writers = [(await asyncio.open_connection(*tap.address))[1] for _ in range(3)]
            try:
                await asyncio.sleep(60)
            finally:
                for writer in writers:
                    writer.transport.abort()

    async def work() -> None:
        server = await asyncio.start_server(broker, "127.0.0.1", 0)
        before, open_before = asyncio.all_tasks(), len(os.listdir("/proc/self/fd"))
        for turn in range(30):
            for again in (0, 1, 2):
                name = tmp_path / f"{turn}-{again}"
                task = asyncio.create_task(use(name, server.sockets[0].getsockname()[:2]))
                for _ in range(turn):
                    await asyncio.sleep(0)
                for _ in range(1 + again):
                    task.cancel()
                    await asyncio.sleep(0)
                with pytest.raises(asyncio.CancelledError):
                    await task
                if Path(f"{name}.jsonl.gz").exists():
                    lost = [one for one in read_capture(f"{name}.jsonl.gz") if isinstance(one, Lost)]
                    assert not [one for one in lost if "truncated" in one.reason]
        server.close()
        for _ in range(100):
            left = {task for task in asyncio.all_tasks() - before if "broker" not in repr(task)}
            if not left and len(os.listdir("/proc/self/fd")) <= open_before:
                return
            await asyncio.sleep(0.05)
            gc.collect()
        assert not left and len(os.listdir("/proc/self/fd")) <= open_before

    asyncio.run(work())


def test_a_recorder_that_is_cancelled_while_it_closes_completes_its_files(tmp_path: Path) -> None:
    async def work() -> None:
        recorder = Recorder(str(tmp_path / "t"))
        recorder.record(recorder.open("a:1", "b:9092"), "request", kwire.pack_frame(hello()))
        task = asyncio.create_task(recorder.close())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(work())
    (exchange,) = read_capture(tmp_path / "t.jsonl.gz")
    assert not isinstance(exchange, Lost)


def test_the_name_of_a_clients_software_is_kept_short() -> None:
    """A connection keeps it as long as it is open, and 50,000 may be."""
    name = "\U0001f600" + "x" * 32_000  # four bytes a character
    data, kept = kwire.pack_frame(hello(software=name)), []
    tracemalloc.start()
    try:
        for number in range(100):
            conversation = Conversation(Connection("t", number))
            conversation.feed("request", data, 0)
            conversation.feed("response", kwire.pack_frame(welcome()), 0)
            conversation.take_events()
            kept.append(conversation)
        assert tracemalloc.get_traced_memory()[0] < 2 << 20
    finally:
        tracemalloc.stop()
    assert kept[0].connection.software == (name[:499] + "…")


@pytest.mark.parametrize("login", [True, False])
def test_bytes_that_are_no_frames_are_shown_in_part_only(tmp_path: Path, login: bool) -> None:
    """They may be a password; also as the first frame of a connection."""
    secret = b"SecretPassword99"
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)
        if login:
            for message in (messages.SaslHandshakeRequest(mechanism="PLAIN"),
                            messages.SaslAuthenticateRequest(auth_bytes=plain(secret.decode()))):
                recording.feed("request", kwire.pack_frame(kwire.encode_request(message, 1, correlation_id=1)))
            recording.feed("request", secret)
        else:
            recording.feed("request", kwire.pack_frame(secret))
        recording.close()
    (reason,) = {one.reason for one in read_capture(tmp_path / "t.jsonl.gz") if isinstance(one, Lost)}
    assert reason.startswith("not the Kafka protocol") and "53 65 63 72" in reason and "53 65 63 72 65" not in reason


@pytest.mark.parametrize("mechanism", ["GSSAPI", "PLAIN-OF-OURS", None])
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("token", [
    f"{FIRST}\0\0tail", f"{FIRST},p=tail", f"{FIRST}auth=Bearer tail", f"n,{FIRST},r=tail",
])  # fmt: skip
def test_the_whole_token_of_an_unknown_mechanism_is_secret(
    tmp_path: Path, mechanism: str | None, version: int, token: str
) -> None:
    """Whatever known token it looks like."""
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)

        def say(request: bytes) -> None:
            recording.feed("request", kwire.pack_frame(request))

        say(hello())
        if mechanism:
            say(kwire.encode_request(messages.SaslHandshakeRequest(mechanism=mechanism), version, correlation_id=1))
        if mechanism and version == 0:
            say(token.encode())
        else:
            say(kwire.encode_request(messages.SaslAuthenticateRequest(auth_bytes=token.encode()), 1, correlation_id=2))
        say(kwire.encode_request(messages.MetadataRequest(), 9, correlation_id=3, client_id=FIRST))
        recording.close()
    events = list(read_capture(tmp_path / "t.jsonl.gz"))
    assert "a request that repeats the client's credentials" in [one.reason for one in events if isinstance(one, Lost)]
    assert FIRST.encode() not in b"".join(one.request.data for one in events if not isinstance(one, Lost))
