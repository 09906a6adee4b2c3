"""Memory of reading captures is bounded, and what exceeds a bound is reported; what is read stays right."""

from __future__ import annotations

import gzip
import json
import struct
import sys
from collections import Counter
from pathlib import Path

import pytest

import kwire
from kwire.capture import Connection, FrameWriter, Lost, audit, frame_files, pcap, read_capture
from kwire.capture.exchange import Frame
from kwire.capture.upgrade_audit import OTHERS, Audit
from tests.capture.making import LINKS, Talk, hello, metadata, outcomes_of, produce, read, welcome, write_pcap
from tests.capture.test_framing import blocks
from tests.cli.test_log import run
from tests.limits import processor_time
from tests.little_stack import with_frames_left

pytestmark = pytest.mark.quick
SECTION = (0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))


def pair(folder: Path, rows: list[tuple[int, str, bytes]]) -> Path:
    """Frame files of (connection, direction, frame)."""
    lines, data = [], bytearray()
    for connection, direction, frame in rows:
        packed = kwire.pack_frame(frame)
        lines.append(json.dumps({"conn": connection, "dir": direction, "off": len(data), "len": len(packed)}))
        data += packed
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "a.bin").write_bytes(data)
    return folder / "a.jsonl"


def waiting(count: int, connections: int = 1) -> list[tuple[int, str, bytes]]:
    """Requests of 1,000 bytes that nobody answers, on so many connections."""
    return [(at % connections, "c2s", produce(at, 1, bytes(1000))) for at in range(count)]


def test_requests_that_wait_in_frame_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one connection: the oldest requests are given without a response, and a loss is reported."""
    monkeypatch.setattr(frame_files, "MOST_WAITING", 20_000)
    answer = kwire.encode_response(kwire.messages.ProduceResponse(), 7, correlation_id=304)
    exchanges, lost = read(pair(tmp_path, [*waiting(305), (0, "s2c", answer)]))
    assert {(one.api, one.version, one.client_id) for one in exchanges} == {("Produce", 7, "me")}
    outcomes = [one.outcome for one in exchanges]
    assert len(outcomes) == 305 and outcomes.count("answered") == 1 and outcomes.count("lost") > 270
    assert lost and all("MiB of frames whose" in one.reason for one in lost)


def test_requests_that_wait_on_many_connections_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_files, "MOST_HELD", 50_000)
    exchanges, lost = read(pair(tmp_path, waiting(600, 50)))
    assert len(exchanges) == 600 and len({one.connection.number for one in exchanges}) == 50
    assert sum(one.outcome == "lost" for one in exchanges) > 500
    assert lost and all("MiB of frames whose" in one.reason for one in lost)


def test_connections_past_the_limit_end_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_files, "_MOST_CONNECTIONS", 10)
    exchanges, _ = read(pair(tmp_path, waiting(200, 100)))
    assert len(exchanges) == 200


def interface(link: int = 101, options: bytes = b"") -> tuple[int, bytes]:
    return 1, struct.pack("<HHI", link, 0, 0) + options


def test_interfaces_past_the_limit_end_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is one of a section, and what came before it is read."""
    monkeypatch.setattr(pcap, "_MOST_INTERFACES", 5)
    raw = Talk().open().exchange(hello(), welcome()).bytes("raw")
    seen = [(6, struct.pack("<IIIII", 4, 1, 1, len(one), len(one)) + one) for one in raw]
    path = tmp_path / "a.pcapng"
    path.write_bytes(blocks("<", [SECTION, *[interface()] * 5, SECTION, *[interface()] * 5, *seen, interface()]))
    exchanges, lost = read(path)
    assert outcomes_of(exchanges) == [("ApiVersions", 3, 0, "answered")]
    assert len(lost) == 1 and "more than 5 interfaces in one section" in lost[0].reason


@pytest.mark.parametrize("option", [b"\x09\0\1\0\0\0\0\0", b"\x09\0\0\0", b"\x09\0\1", b"\x0e\0\x08\0\1"])
def test_a_clock_that_is_none(option: bytes, tmp_path: Path) -> None:
    """An interface whose options are cut, or of no bytes."""
    path = tmp_path / "a.pcapng"
    packet = 6, struct.pack("<IIIII", 0, 1, 1, 1, 1) + b"\x45"
    path.write_bytes(blocks("<", [SECTION, interface(options=option), packet]))
    events = list(read_capture(path))
    assert all(isinstance(event, Lost) for event in events)


def test_a_block_of_52_bytes(tmp_path: Path) -> None:
    """An interface with an option of no bytes where one is needed (an IndexError before)."""
    path = tmp_path / "a.pcapng"
    path.write_bytes(bytes.fromhex(
        "0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000010000001800000001000000000000000900010018000000"))
    list(read_capture(path))


def nested(depth: int) -> bytes:
    """IP packets each of which holds another."""
    packet = b""
    for _ in range(depth):
        packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(packet), 0, 0, 64, 4, 0, bytes(4), bytes(4)) + packet
    return packet


def test_packets_inside_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hundreds of layers: a malformed packet, not a RecursionError."""
    talk = Talk().open().exchange(hello(), welcome()).bytes("raw")
    path = write_pcap(tmp_path / "a.pcap", [*talk[:2], nested(400), nested(3000), *talk[2:]], "raw")
    exchanges, lost = read(path)
    assert outcomes_of(exchanges) == [("ApiVersions", 3, 0, "answered")]
    assert all(one.reason == "malformed packets" for one in lost)
    assert run(capsys, "audit", path, "--to", "4.4")[0] == 0


def test_few_frames_of_stack_are_left(tmp_path: Path) -> None:
    """Python's RecursionError for the caller's own stack: no packet is taken for a malformed one."""
    talk = Talk().open().exchange(hello(), welcome())
    path = write_pcap(tmp_path / "a.pcap", talk.bytes("raw"), "raw")
    outcomes = Counter[str]()
    for left in range(2, 60):
        try:
            exchanges, lost = with_frames_left(left, lambda: read(path))
        except RecursionError:
            outcomes["RecursionError"] += 1
        else:
            assert len(exchanges) == 1 and not lost
            outcomes["read"] += 1
    assert set(outcomes) == {"RecursionError", "read"}


def test_a_long_packet_is_read_whole(tmp_path: Path) -> None:
    """Its headers are read from the first 2,048 bytes; its data goes on after them."""
    for link in ("ethernet", "cooked vlan", "raw"):
        for size in (1900, 2048, 2049, 30_000):
            talk = Talk().open().exchange(hello(), welcome())
            talk.exchange(produce(1, 0, bytes(size)), None, 1 << 15).close()
            path = write_pcap(tmp_path / "a.pcap", talk.bytes(link), link)
            exchanges, lost = read(path)
            assert [len(one.request.data) for one in exchanges][1:] == [len(produce(1, 0, bytes(size)))] and not lost
    large = Talk(client=("2001:db8::7", 5), server=("2001:db8::1", 9092)).open().exchange(hello(), welcome())
    large.exchange(produce(1, 0, bytes(20_000)), None)
    assert len(read(write_pcap(tmp_path / "b.pcap", large.bytes()))[0][1].request.data) > 20_000


@pytest.mark.parametrize("content", ["tags", "extensions"])
def test_headers_without_end_take_no_time(content: str, tmp_path: Path) -> None:
    """Tags of a cooked capture, extension headers of IPv6: a MiB of each took 6 seconds."""
    size = 1 << 20
    if content == "tags":
        link, packet = "cooked", LINKS["cooked"][1](b"\0\7\x81\0" * (size // 4), 0x8100, 2)
    else:
        link = "raw"
        packet = struct.pack(">IHBB16s16s", 6 << 28, 0, 0, 64, bytes(16), bytes(16)) + bytes(size)
    path = write_pcap(tmp_path / "a.pcap", [packet] * 4, link)
    with processor_time(5):
        assert not read(path)[0]


def test_uses_past_the_limit_are_told_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients are counted, and what breaks breaks."""
    monkeypatch.setattr(sys.modules["kwire.capture.upgrade_audit"], "_MOST_USES", 10)
    connection = Connection("", 0, "10.0.0.7:1", "b:9092")
    with FrameWriter(str(tmp_path / "made")) as writer:
        for number in range(40):
            request = kwire.encode_request(kwire.messages.MetadataRequest(), 9, correlation_id=number,
                                           client_id=f"client-{number:03}")  # fmt: skip
            for direction, data in (("request", request), ("response", metadata(number)[1])):
                writer.write(connection, Frame(direction, data, number), None)  # type: ignore[arg-type]
    found = audit(tmp_path / "made.jsonl.gz", "4.4")
    assert len(found.uses) == 11 and sum(use.count for use in found.uses) == 40
    (others,) = (use for use in found.uses if use.user == OTHERS)
    assert (others.count, others.api, others.version) == (30, "Metadata", 9)
    assert found.to_json()["exchanges"] == {"answered": 40}


def test_losses_past_the_limit_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["kwire.capture.upgrade_audit"], "_MOST_LOST", 4)
    found = Audit("4.4")
    for number in range(30):
        found.add(Lost("a.pcap", f"reason {number}", bytes=5))
    assert [one.reason for one in found.lost][:4] == [f"reason {number}" for number in range(4)]
    assert len(found.lost) == 5 and sum(one.count for one in found.lost) == 30
    assert "further losses, not listed" in found.lost[4].reason


def test_names_of_clients_are_kept_short(tmp_path: Path) -> None:
    talk = Talk().open().exchange(hello(client_id="c" * 30_000, software="s" * 30_000), welcome())
    found = audit(write_pcap(tmp_path / "a.pcap", talk.bytes()), "4.4")
    (use,) = found.uses
    assert use.user.client_id == "c" * 499 + "…" and len(use.user.software or "") <= 510


def test_packets_of_a_gzip_that_ends(tmp_path: Path) -> None:
    """What was compressed before the truncation is read, and the truncation is reported."""
    talk = Talk().open().exchange(hello(), welcome())
    for number in range(1, 60):
        talk.exchange(*metadata(number, 40))
    data = gzip.compress(write_pcap(tmp_path / "a", talk.bytes()).read_bytes())
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(data[: len(data) // 2])
    exchanges, lost = read(path)
    assert 1 < len(exchanges) < 60 and any("cannot be read after byte" in one.reason for one in lost)
    path.write_bytes(data[:12])
    with pytest.raises(kwire.DecodeError, match="not a capture: expected pcap"):
        read(path)
