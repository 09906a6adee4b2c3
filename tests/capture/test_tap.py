"""The tap: bytes are forwarded unchanged and at once, frames are recorded, secrets are not; however it ends."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

import kwire
from kwire import messages
from kwire.capture import read_capture
from kwire.capture.exchange import Exchange, Lost
from kwire.capture.tap import Tap
from kwire.cli import main
from kwire.net.address import Address
from tests.capture.making import hello, metadata, outcomes_of, produce, read, welcome
from tools.places import ROOT

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def tapped(out: Path, broker: Peer, client: Peer, say: Callable[[str], None] = print) -> None:
    """A client that talks to a broker through a tap; no task and no socket is left over."""

    async def run() -> None:
        server = await asyncio.start_server(broker, "127.0.0.1", 0)
        async with Tap(("127.0.0.1", 0), server.sockets[0].getsockname()[:2], str(out), say) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)
            try:
                await asyncio.wait_for(client(reader, writer), 30)
            finally:
                writer.transport.abort()
            for _ in range(200):
                if not tap.recorder.recordings:
                    break
                await asyncio.sleep(0.01)
        server.close()
        await asyncio.sleep(0.05)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in left if "broker" not in repr(task)]

    asyncio.run(run())


async def say_all(writer: asyncio.StreamWriter, *parts: bytes) -> None:
    for part in parts:
        writer.write(part)
        await writer.drain()


def answering(*answers: bytes) -> Peer:
    """A broker that answers each frame with the next of these."""

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            await say_all(writer, kwire.pack_frame(answer))
        await reader.read()
        writer.close()

    return broker


def asking(*requests: bytes) -> Peer:
    """A client that sends each frame once the one before is answered."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for request in requests:
            await say_all(writer, kwire.pack_frame(request))
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

    return client


def lines(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in gzip.decompress(Path(f"{out}.jsonl.gz").read_bytes()).splitlines()]


def unpacked(out: Path) -> bytes:
    return gzip.decompress(Path(f"{out}.bin.gz").read_bytes())


def test_what_it_records_is_a_frame_file(tmp_path: Path) -> None:
    pairs = [(hello(), welcome()), *(metadata(number, number * 20) for number in range(1, 20))]
    out = tmp_path / "tapped"
    tapped(out, answering(*(answer for _, answer in pairs)), asking(*(request for request, _ in pairs)))
    exchanges, lost = read(Path(f"{out}.jsonl.gz"))
    assert not lost and [(one.request.data, one.response.data) for one in exchanges if one.response] == pairs
    assert {one.connection.software for one in exchanges} == {"made 1.0"}
    assert exchanges[0].connection.address == "127.0.0.1"
    assert abs((exchanges[0].request.time or 0) / 1e6 - time.time()) < 60
    data = unpacked(out)
    for row in lines(out):  # as the wire's own tools read it
        assert {"seq", "us", "conn", "port", "dir", "corr", "api_key", "api_version", "off", "len", "hex"} <= set(row)
        assert data[row["off"] + 4 : row["off"] + row["len"]].hex() == row["hex"]  # type: ignore


def test_any_bytes_pass_unchanged_in_both_directions(tmp_path: Path) -> None:
    """Random bytes both ways, with ends one after the other; the recording says that it is not the Kafka protocol."""
    chance = random.Random(5)
    there, back = (b"\x90" + chance.randbytes(3_000_000) for _ in range(2))
    got: dict[str, bytes] = {}

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got["there"] = await reader.read(-1)
        await say_all(writer, back)
        writer.close()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await say_all(writer, there)
        writer.write_eof()
        got["back"] = await reader.read(-1)

    tapped(tmp_path / "t", broker, client)
    assert got == {"there": there, "back": back}
    exchanges, (lost,) = read(tmp_path / "t.jsonl.gz")
    assert not exchanges and lost.reason.startswith("not the Kafka protocol: 90")
    assert unpacked(tmp_path / "t") == b""


def test_a_byte_is_not_kept_until_its_frame_is_whole(tmp_path: Path) -> None:
    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while byte := await reader.read(1):
            await say_all(writer, byte)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for place in range(20):
            await say_all(writer, hello()[place : place + 1])
            assert await reader.readexactly(1) == hello()[place : place + 1]

    tapped(tmp_path / "t", broker, client)


def test_tls_passes_unread(tmp_path: Path) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await say_all(writer, b"\x16\x03\x01\x02\x00\x01" + bytes(600))
        assert await reader.read(100) == b"\x16\x03\x03ok"

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(606)
        await say_all(writer, b"\x16\x03\x03ok")

    tapped(tmp_path / "t", broker, client)
    assert [(one.reason, one.connection.address) for one in read(tmp_path / "t.jsonl.gz")[1]] == [  # type: ignore
        ("TLS: not readable", "127.0.0.1")]


SECRETS = (b"\0user\0p4ssw0rd", b"salted-p4ssw0rd", b"keystore-p4ssw0rd", b"hm4c")


def scram() -> tuple[bytes, bytes]:
    kind = messages.AlterUserScramCredentialsRequest
    row = kind.ScramCredentialUpsertion(name="u", mechanism=1, iterations=1, salt=b"s", salted_password=SECRETS[1])
    return (kwire.encode_request(kind(upsertions=[row]), 0, correlation_id=3, client_id="me"),
            kwire.encode_response(messages.AlterUserScramCredentialsResponse(), 0, correlation_id=3))


def configs() -> tuple[bytes, bytes]:
    kind = messages.IncrementalAlterConfigsRequest
    row = kind.AlterableConfig(name="listener.name.x.ssl.keystore.password", value=SECRETS[2].decode())
    request = kind(resources=[kind.AlterConfigsResource(configs=[row])])
    return (kwire.encode_request(request, 1, correlation_id=4, client_id="me"),
            kwire.encode_response(messages.IncrementalAlterConfigsResponse(), 1, correlation_id=4))


def test_no_secret_is_in_the_record_and_every_byte_reaches_the_broker(tmp_path: Path) -> None:
    """Raw tokens after SaslHandshake v0, SaslAuthenticate, credentials, passwords in configs, delegation tokens."""
    seen = []
    raw, authenticate = SECRETS[0], messages.SaslAuthenticateRequest(auth_bytes=SECRETS[0])
    requests, answers = zip(
        (hello(), welcome()),
        (kwire.encode_request(messages.SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1),
         kwire.encode_response(messages.SaslHandshakeResponse(), 0, correlation_id=1)),
        (raw, b""),
        (kwire.encode_request(authenticate, 2, correlation_id=2, client_id="me"),
         kwire.encode_response(messages.SaslAuthenticateResponse(auth_bytes=SECRETS[3]), 2, correlation_id=2)),
        scram(), configs(),
        (kwire.encode_request(messages.CreateDelegationTokenRequest(), 3, correlation_id=5, client_id="me"),
         kwire.encode_response(messages.CreateDelegationTokenResponse(hmac=SECRETS[3]), 3, correlation_id=5)),
        (kwire.encode_request(authenticate, 2, correlation_id=6)[:-1], b"\0\0\0\6"), strict=True,
    )  # fmt: skip

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            seen.append(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
            await say_all(writer, kwire.pack_frame(answer))

    tapped(tmp_path / "t", broker, asking(*requests))
    assert seen == list(requests)
    written = unpacked(tmp_path / "t") + json.dumps(lines(tmp_path / "t")).encode()
    for secret in (*SECRETS, b"p4ssw0rd"):
        assert secret not in written and secret.hex().encode() not in written
    exchanges, lost = read(tmp_path / "t.jsonl.gz")
    assert [one.api for one in exchanges] == ["ApiVersions", "SaslHandshake", "SaslAuthenticate",
                                              "AlterUserScramCredentials", "IncrementalAlterConfigs",
                                              "CreateDelegationToken"]  # fmt: skip
    assert "2 raw SASL tokens (PLAIN)" in lost[0].reason and lost[0].bytes == len(raw)
    assert any("cannot be read" in one.reason for one in lost)


def envelope(request: bytes, answer: bytes, correlation_id: int) -> tuple[bytes, bytes]:
    """The same exchange as a broker forwards it to the controller."""
    wrapped = messages.EnvelopeRequest(request_data=request, request_principal=b"P", client_host_address=b"\x7f\0\0\1")
    return (kwire.encode_request(wrapped, 0, correlation_id=correlation_id, client_id="me"),
            kwire.encode_response(messages.EnvelopeResponse(response_data=answer), 0, correlation_id=correlation_id))


def altered(correlation_id: int) -> tuple[bytes, bytes]:
    """Settings whose values are passwords, and an answer that quotes one of them."""
    kind, reply = messages.AlterConfigsRequest, messages.AlterConfigsResponse
    names = ("ssl.key.password", "sasl.jaas.config", "listener.name.x.plain.sasl.jaas.config", "ssl.keystore.key",
             "sasl.oauthbearer.client.credentials.client.secret", "password.encoder.old.secret")
    rows = [kind.AlterableConfig(name=name, value=f'x password="{SECRETS[2].decode()}"') for name in names]
    rows.append(kind.AlterableConfig(name="retention.ms", value="5000"))
    row = reply.AlterConfigsResourceResponse(error_code=40, error_message=f"Invalid value {SECRETS[2].decode()}")
    return (kwire.encode_request(kind(resources=[kind.AlterConfigsResource(configs=rows)]), 2,
                                 correlation_id=correlation_id, client_id="me"),
            kwire.encode_response(reply(responses=[row]), 2, correlation_id=correlation_id))


def described(correlation_id: int) -> tuple[bytes, bytes]:
    """Configs as a broker describes them, one marked as sensitive, with synonyms."""
    reply = messages.DescribeConfigsResponse
    synonym = reply.DescribeConfigsSynonym(name="odd", value=SECRETS[2].decode(), source=1)
    row = reply.DescribeConfigsResourceResult(
        name="odd", value=SECRETS[2].decode(), is_sensitive=True, synonyms=[synonym])
    result = reply.DescribeConfigsResult(configs=[row], resource_name="1", resource_type=4)
    return (kwire.encode_request(messages.DescribeConfigsRequest(), 4, correlation_id=correlation_id, client_id="me"),
            kwire.encode_response(reply(results=[result]), 4, correlation_id=correlation_id))


def with_hmac(correlation_id: int, kind: str) -> tuple[bytes, bytes]:
    """A request about a delegation token that shows it."""
    request = getattr(messages, f"{kind}Request")(hmac=SECRETS[3])
    return (kwire.encode_request(request, 2, correlation_id=correlation_id, client_id="me"),
            kwire.encode_response(getattr(messages, f"{kind}Response")(), 2, correlation_id=correlation_id))


def metadata_log(correlation_id: int, version: int) -> tuple[bytes, bytes]:
    """A fetch of the metadata log, in which a SCRAM credential is set."""
    kind, reply = messages.FetchRequest, messages.FetchResponse
    named = {"topic": "__cluster_metadata"} if version < 13 else {"topic_id": UUID(int=1)}
    record = messages.UserScramCredentialRecord(
        name="u", mechanism=1, iterations=4096, salt=b"s", stored_key=SECRETS[1])
    records = kwire.build_batch([(1, None, kwire.encode_metadata_record(record, 0))])
    partition = reply.PartitionData(partition_index=0, records=records)
    topic = reply.FetchableTopicResponse(partitions=[partition], **named)
    asked = kind(topics=[kind.FetchTopic(partitions=[kind.FetchPartition()], **named)])
    return (kwire.encode_request(asked, version, correlation_id=correlation_id, client_id="me"),
            kwire.encode_response(reply(responses=[topic]), version, correlation_id=correlation_id))


def test_no_secret_is_in_the_record_however_it_is_wrapped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Envelopes, settings, answers that quote them, delegation tokens, the metadata log; the rest stays as it is."""
    pairs = [(hello(), welcome()), altered(1), described(2), metadata_log(3, 12), metadata_log(4, 17),
             with_hmac(5, "RenewDelegationToken"), with_hmac(6, "ExpireDelegationToken")]
    pairs += [envelope(*pair, 10 + number) for number, pair in enumerate((
        scram(), configs(), altered(7), described(8), metadata_log(9, 12), metadata(30),
        (b"\0\x24" + SECRETS[0], SECRETS[3]), envelope(*scram(), 9)))]  # fmt: skip
    pairs.append(metadata(31))
    requests, answers = zip(*pairs, strict=True)
    tapped(tmp_path / "t", answering(*answers), asking(*requests))
    written = unpacked(tmp_path / "t") + json.dumps(lines(tmp_path / "t")).encode()
    for secret in (*SECRETS, b"p4ssw0rd"):
        assert secret not in written and secret.hex().encode() not in written, secret
    exchanges, lost = read(tmp_path / "t.jsonl.gz")
    assert not lost and [one.outcome for one in exchanges] == ["answered"] * len(pairs)
    messages_json = json.dumps([one.to_json() for one in exchanges])
    assert "p4ssw0rd" not in messages_json and "retention.ms" in messages_json and "5000" in messages_json
    assert exchanges[-1].request.data == metadata(31)[0]
    passed_on = exchanges[12].decode_request().message.request_data
    assert passed_on == metadata(30)[0]
    assert main(["audit", str(tmp_path / "t.jsonl.gz"), "--to", "4.4", "--json"]) == 0
    assert "p4ssw0rd" not in capsys.readouterr().out


def test_a_broker_that_refuses_closes_the_client(tmp_path: Path) -> None:
    said: list[str] = []

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        async with Tap(("127.0.0.1", 0), ("127.0.0.1", port), str(tmp_path / "t"), said.append) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)
            with pytest.raises(OSError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
                raise ConnectionResetError
            writer.close()
        assert said == [f"127.0.0.1:{port}: Connection refused"]

    asyncio.run(run())


@pytest.mark.parametrize(("listen", "target"), [
    ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), ("0.0.0.0", "127.0.0.1")])
def test_a_tap_of_itself_ends(tmp_path: Path, listen: str, target: str) -> None:
    """It would connect again and again until no descriptor is left."""
    said: list[str] = []

    async def run() -> None:
        async with Tap((listen, 0), ("h", 1), str(tmp_path / "t"), said.append) as tap:
            tap.target = target, tap.address[1]
            reader, writer = await asyncio.open_connection(*tap.target)
            writer.write(kwire.pack_frame(hello()))
            with suppress(OSError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
            await asyncio.sleep(0.1)
            assert not tap._tasks
        assert said == [f"{Address(*tap.target)}: it is where the tap itself listens"]

    asyncio.run(run())


def test_back_pressure_reaches_the_sender(tmp_path: Path) -> None:
    """A broker that reads nothing: the client cannot send without end, and the tap holds little."""
    reading = asyncio.Event()

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reading.wait()
        await reader.read(-1)
        writer.close()

    sent = 0

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        block = b"\x90" * 65536
        try:
            while sent < 1 << 28:
                writer.write(block)
                await asyncio.wait_for(writer.drain(), 1)
                sent += len(block)
        except TimeoutError:
            pass
        reading.set()

    tapped(tmp_path / "t", broker, client)
    assert sent < 1 << 26


def test_a_full_disk_ends_the_record_and_not_the_connection(tmp_path: Path) -> None:
    said: list[str] = []

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            await say_all(writer, data)

    async def run() -> None:
        server = await asyncio.start_server(broker, "127.0.0.1", 0)
        async with Tap(("127.0.0.1", 0), server.sockets[0].getsockname()[:2], str(tmp_path / "t"), said.append) as tap:
            tap.recorder.writer._bytes.file.close()
            tap.recorder.writer._bytes.file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
            reader, writer = await asyncio.open_connection(*tap.address)
            for number in range(3):
                frame = kwire.pack_frame(hello(number))
                await say_all(writer, frame)
                assert await asyncio.wait_for(reader.readexactly(len(frame)), 10) == frame
                tap.recorder._guard(tap.recorder.writer.flush)
            assert tap.recorder.failed is not None
            writer.close()
        assert tap.recorder.writer.flushed == 0 < tap.recorder.writer.frames  # it does not count what is not there
        server.close()

    asyncio.run(run())
    assert len(said) == 1 and "No space left on device: recording stopped" in said[0]


def kwire_tap(out: Path, target: int) -> tuple[subprocess.Popen[str], int]:
    """(the process, the port where it listens) of `kwire tap`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire", "tap", "--listen", "127.0.0.1:0", "--target", f"127.0.0.1:{target}",
         "--out", str(out)], stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("kwire tap: listening on 127.0.0.1:"), line
    return process, int(line.split(" for ")[0].rpartition(":")[2])


class Broker(threading.Thread):
    """Answers ApiVersions, then Metadata by correlation id, on every connection."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]

    def run(self) -> None:
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            with peer, peer.makefile("rb") as file:
                while head := file.read(4):
                    frame = file.read(int.from_bytes(head, "big"))
                    number = int.from_bytes(frame[4:8], "big")
                    answer = welcome(number) if frame[1] == 18 else metadata(number)[1]
                    peer.sendall(kwire.pack_frame(answer))


def converse(port: int, count: int) -> None:
    """One connection through the tap with so many exchanges."""
    with socket.create_connection(("127.0.0.1", port), 10) as client, client.makefile("rb") as file:
        for number in range(count):
            client.sendall(kwire.pack_frame(metadata(number)[0] if number else hello()))
            file.read(int.from_bytes(file.read(4), "big"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_with_a_whole_record(tmp_path: Path, how: signal.Signals) -> None:
    broker = Broker()
    broker.start()
    process, port = kwire_tap(tmp_path / "t", broker.port)
    converse(port, 50)
    with socket.create_connection(("127.0.0.1", port), 10) as waiting:  # a connection that is open when it ends
        waiting.sendall(kwire.pack_frame(hello()))
        waiting.recv(10)
        process.send_signal(how)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0 and said.endswith("102 frames of 2 connections in " + f"{tmp_path}/t.jsonl.gz\n")
    broker.server.close()
    exchanges, lost = read(tmp_path / "t.jsonl.gz")
    assert not lost and [one.outcome for one in exchanges] == ["answered"] * 51


def test_the_command_leaves_a_readable_prefix_when_it_is_killed(tmp_path: Path) -> None:
    broker = Broker()
    broker.start()
    process, port = kwire_tap(tmp_path / "t", broker.port)
    converse(port, 30)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:  # until its second has passed
        events = list(read_capture(tmp_path / "t.jsonl.gz")) if os.path.getsize(tmp_path / "t.jsonl.gz") > 20 else []
        if sum(isinstance(one, Exchange) for one in events) == 30:
            break
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=20)
    broker.server.close()
    exchanges, lost = read(tmp_path / "t.jsonl.gz")
    assert outcomes_of(exchanges)[1:] == [("Metadata", 9, n, "answered") for n in range(1, 30)]
    assert lost and all("truncated gzip stream" in one.reason for one in lost)


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "-m", "kwire", "tap", *arguments], cwd=ROOT, capture_output=True,
                              text=True, timeout=60)
        return done.returncode, done.stderr

    (tmp_path / "t.bin.gz").write_bytes(b"")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        used = f"127.0.0.1:{taken.getsockname()[1]}"
        for code, word, arguments in [
            (2, "--listen", ("--target", "h:1", "--out", "x")),
            (2, "invalid broker address", ("--listen", "h", "--target", "h:1", "--out", "x")),
            (1, used.split(":")[1], ("--listen", used, "--target", "h:1", "--out", str(tmp_path / "x"))),
            (2, "t.bin.gz: File exists", ("--listen", "127.0.0.1:0", "--target", "h:1", "--out", str(tmp_path / "t"))),
        ]:  # fmt: skip
            found = run(*arguments)
            assert found[0] == code and word in found[1] and found[1].count("\n") == 1, found


def test_unfinished_frames_of_many_connections_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes pass, the record says what it left out, and nothing is counted as held at the end."""
    monkeypatch.setattr("kwire.capture.recorder.MOST_HELD", 100_000)
    got = bytearray()

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            got.extend(data)

    async def run() -> None:
        server = await asyncio.start_server(broker, "127.0.0.1", 0)
        async with Tap(("127.0.0.1", 0), server.sockets[0].getsockname()[:2], str(tmp_path / "t")) as tap:
            writers = []  # one that nobody holds is closed
            for _ in range(5):
                _, writer = await asyncio.open_connection(*tap.address)
                writers.append(writer)
                await say_all(writer, kwire.pack_frame(hello()), (1 << 20).to_bytes(4, "big"), bytes(40_000))
            while len(got) < 5 * (40_008 + len(hello())):
                await asyncio.sleep(0.01)
            assert tap.recorder._held <= 100_000
        assert tap.recorder._held == 0
        server.close()

    asyncio.run(run())
    _, lost = read(tmp_path / "t.jsonl.gz")
    assert sum("not recorded" in one.reason for one in lost) == 3


@pytest.mark.quick
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


def test_one_way_requests_and_pipelines(tmp_path: Path) -> None:
    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(4):
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        await say_all(writer, kwire.pack_frame(welcome()) + kwire.pack_frame(metadata(3)[1]))

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts = (hello(), produce(1, 0), metadata(3)[0], produce(4, 1))
        await say_all(writer, b"".join(map(kwire.pack_frame, parts)))
        for _ in range(2):
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

    tapped(tmp_path / "t", broker, client)
    events = list(read_capture(tmp_path / "t.jsonl.gz"))
    assert not [one for one in events if isinstance(one, Lost)]
    assert sorted(outcomes_of(one for one in events if isinstance(one, Exchange))) == [
        ("ApiVersions", 3, 0, "answered"), ("Metadata", 9, 3, "answered"), ("Produce", 7, 1, "one-way"),
        ("Produce", 7, 4, "unanswered")]  # fmt: skip
