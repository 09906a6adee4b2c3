"""Damaged and untrusted captures: a value or one clear KwireError, in bounded memory and time, and nothing else."""

from __future__ import annotations

import gzip
import json
import random
import struct
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import kwire
from kwire import messages
from kwire.capture import Connection, Exchange, FrameWriter, Lost, audit, read_capture
from kwire.capture.exchange import Frame
from kwire.pages.audit import audit_page
from tests.capture.making import ACK, PUSH, Talk, hello, metadata, outcomes_of, produce, read, welcome, write_pcap
from tests.capture.test_framing import blocks, long_talk
from tests.limits import processor_time
from tools.places import ROOT

EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@cache
def sources(folder: Path) -> list[tuple[str, bytes]]:
    """(name of the file, bytes) of what is damaged."""
    talk = long_talk(40, client=("2001:db8::7", 51234), server=("2001:db8::1", 9092))
    sasl = Talk().open().exchange(hello(), welcome())
    sasl.exchange(kwire.encode_request(messages.SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1),
                  kwire.encode_response(messages.SaslHandshakeResponse(), 0, correlation_id=1))
    sasl.exchange(b"\0user\0secret", b"").exchange(produce(2, 0), None).exchange(*metadata(3)).close()
    found = [
        ("a.pcap", write_pcap(folder / "a", talk.bytes()).read_bytes()),
        ("a.pcap", write_pcap(folder / "a", sasl.bytes("cooked v2"), "cooked v2").read_bytes()),
        ("a.pcap", write_pcap(folder / "a", sasl.bytes("two vlans")[4:], "two vlans").read_bytes()),
        ("a.pcap", write_pcap(folder / "a", [one[:120] for one in talk.bytes("null")], "null").read_bytes()),
    ]
    parts = [(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
             (1, struct.pack("<HHIHHB3xHH", 101, 0, 0, 9, 1, 9, 0, 0))]
    for one in sasl.bytes("raw"):
        parts.append((6, struct.pack("<IIIII", 0, 1, 1, len(one), len(one)) + one))
    found.append(("a.pcapng", blocks("<", parts)))
    return found


@cache
def frame_files(folder: Path) -> tuple[bytes, bytes]:
    """The lines and the bytes of a pair, unpacked."""
    connection = Connection("", 0, "10.0.0.7:1", "b:9092")
    with FrameWriter(str(folder / "made")) as writer:
        for number in range(6):
            for direction, data in zip(("request", "response"), metadata(number), strict=True):
                writer.write(connection, Frame(direction, data, number), None)  # type: ignore[arg-type]
    return tuple(gzip.decompress((folder / f"made.{kind}.gz").read_bytes()) for kind in ("jsonl", "bin"))  # type: ignore


def damage(data: bytearray, chance: random.Random) -> bytearray:
    """One change somewhere."""
    at, how = chance.randrange(len(data) or 1), chance.randrange(7)
    if how == 0 and data:
        data[at] ^= 1 << chance.randrange(8)
    elif how == 1 and data:
        data[at] = chance.randrange(256)
    elif how == 2:
        data[at:at] = chance.randbytes(chance.randint(1, 20))
    elif how == 3:
        del data[at : at + chance.randint(1, 200)]
    elif how == 4 and len(data) > at + 4:
        struct.pack_into(chance.choice("<>") + "I", data, at, chance.choice(EDGES))
    elif how == 5:
        part = data[at : at + chance.randint(1, 300)]
        place = chance.randrange(len(data) or 1)
        data[place:place] = part
    else:
        del data[at:]
    return data


def exercise(path: Path) -> None:
    """Read and audit; KwireErrors are what may come."""
    with suppress(kwire.KwireError):
        for event in read_capture(path):
            if isinstance(event, Exchange):
                with suppress(kwire.KwireError):
                    event.to_json()
            else:
                assert event.reason and "\n" not in event.reason
    with suppress(kwire.KwireError):
        json.dumps(audit(path, "4.4").to_json())


@pytest.mark.parametrize("seed", range(12))
def test_damaged_packets(tmp_path: Path, seed: int) -> None:
    for number in range(60):
        chance = random.Random(seed << 32 | number)
        name, data = chance.choice(sources(tmp_path))
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 5, 30))):
            changed = damage(changed, chance)
        (tmp_path / name).write_bytes(gzip.compress(changed, 1) if chance.random() < 0.2 else changed)
        exercise(tmp_path / name)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_frame_files(tmp_path: Path, seed: int) -> None:
    for number in range(120):
        chance = random.Random(seed << 32 | number)
        files = [bytearray(data) for data in frame_files(tmp_path)]
        for _ in range(chance.choice((1, 2, 6))):
            which = chance.randrange(2)
            files[which] = damage(files[which], chance)
        for kind, data in zip(("jsonl", "bin"), files, strict=True):
            packed = bytearray(gzip.compress(data, 1))
            if chance.random() < 0.3:
                packed = damage(packed, chance)
            (tmp_path / f"a.{kind}.gz").write_bytes(packed)
        exercise(tmp_path / "a.jsonl.gz")


@pytest.mark.parametrize("row", [
    b"{", b"[]", b"null", b"{}", b'{"conn": 1}', b'{"conn": [], "dir": "c2s", "off": 0, "len": 4}',
    b'{"conn": 1, "dir": "up", "off": 0, "len": 40}', b'{"conn": 1, "dir": "c2s", "off": -1, "len": 40}',
    b'{"conn": 1, "dir": "c2s", "off": 0, "len": 3}', b'{"conn": 1, "dir": "c2s", "off": 0, "len": 4e9}',
    b'{"conn": true, "dir": "c2s", "off": 0, "len": 40}', b'{"conn": 1, "dir": "c2s", "off": 0, "len": 1099511627776}',
    b'{"conn": 1, "dir": "c2s", "off": 0, "len": 5}', b"\xff\xfe", b"[" * 100_000, b'{"conn": 1, "len": NaN}',
])  # fmt: skip
def test_a_line_that_is_none_is_named(tmp_path: Path, row: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(row + b"\n")
    (tmp_path / "a.bin").write_bytes(bytes(100))
    with pytest.raises(kwire.KwireError, match=r"a\.jsonl, line 1|line 1 of .*a\.jsonl"):
        list(read_capture(tmp_path / "a.jsonl"))


def test_lines_with_odd_values_are_read(tmp_path: Path) -> None:
    """Addresses, times and notes of any kind: nothing that a table, JSON or a column of int64 could not hold."""
    request = kwire.pack_frame(metadata(0)[0])
    odd = [
        {"conn": 1 << 70, "client": "\ud800\n:1", "server": ["x"], "time": 1 << 80},
        {"conn": "x" * 9999, "client": "c" * 9999, "server": "\x1b[2J:9092", "time": "now"},
        {"conn": -1, "client": 7, "server": None, "time": True},
    ]
    rows = [{"dir": "c2s", "off": place * len(request), "len": len(request), **row} for place, row in enumerate(odd)]
    rows += [{"conn": 3, "dir": None, "off": 0, "len": 0, "lost": "a\nb\udfff", "lost_bytes": 1 << 90}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.bin").write_bytes(request * 3)
    events = list(read_capture(tmp_path / "a.jsonl"))
    assert len(events) == 4
    for event in events:
        ends = event.connection
        assert ends is not None and -(1 << 62) < ends.number < 1 << 62
        for text in (ends.client, ends.server):
            assert text is None or (len(text) <= 500 and "\n" not in text and text.encode())
    assert "a b?" in audit_page(audit(tmp_path / "a.jsonl", "4.4").to_json())


def undecided(count: int) -> Talk:
    """A gap in the requests that stays, one in the answers, then small segments each of which may be an answer."""
    talk = Talk().open().exchange(hello(), welcome())
    client, server = talk.seq[True], talk.seq[False]
    talk.packets.append((True, client + 50, server, PUSH | ACK, b"y" * 50))
    talk.packets.append((True, client, server + 10, ACK, b""))
    for number in range(count):
        data = (1 << 20).to_bytes(4, "big") + (1 << 30 | number).to_bytes(4, "big")
        talk.packets.append((False, server + 10 + 8 * number, client, PUSH | ACK, data))
    return talk


def test_segments_that_could_begin_frames_without_end(tmp_path: Path) -> None:
    """Not in quadratic time: 30,000 of them would take half an hour."""
    assert limited(write_pcap(tmp_path / "a.pcap", undecided(30_000).bytes())).startswith("read")


def test_lines_without_their_bytes(tmp_path: Path) -> None:
    lines, data = frame_files(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "a.bin").write_bytes(data[:-3])
    events = list(read_capture(tmp_path / "a.bin"))
    outcomes = outcomes_of(event for event in events if isinstance(event, Exchange))
    assert [row[3] for row in outcomes] == ["answered"] * 5 + ["lost"]
    (tmp_path / "a.bin").unlink()
    with pytest.raises(FileNotFoundError) as error:
        list(read_capture(tmp_path / "a.jsonl"))
    assert str(error.value.filename).endswith("a.bin.gz")
    (tmp_path / "\x1b[31m.jsonl").write_bytes(lines)
    with pytest.raises(FileNotFoundError) as error:
        list(read_capture(tmp_path / "\x1b[31m.jsonl"))
    assert str(error.value).isprintable()


def zeros(path: Path, head: bytes = b"", size: int = 1280 << 20) -> Path:
    """A gzip file of head and then size zeros: one MB that unpacks to 1.25 GiB."""
    path.write_bytes(gzip.compress(head) + gzip.compress(bytes(1 << 24)) * (size >> 24))
    return path


LIMITED = """
import resource, sys
from kwire.capture import read_capture
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
import kwire
try:
    print("read", sum(1 for event in read_capture(sys.argv[1])))
except kwire.KwireError as error:
    print(type(error).__name__, error)
"""


def limited(path: Path) -> str:
    """What reading gives in a process that may have 1 GiB of address space."""
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], cwd=ROOT, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_lines_that_never_end(tmp_path: Path) -> None:
    zeros(tmp_path / "a.jsonl.gz")
    (tmp_path / "a.bin.gz").write_bytes(gzip.compress(b""))
    assert limited(tmp_path / "a.jsonl.gz").startswith("LimitError")


def test_bytes_that_never_end(tmp_path: Path) -> None:
    row = {"conn": 1, "dir": "c2s", "off": (1280 << 20) + 8, "len": 90 << 20}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    zeros(tmp_path / "a.bin.gz")
    assert limited(tmp_path / "a.jsonl").startswith("read")


def test_packets_that_never_end(tmp_path: Path) -> None:
    """A pcap of 200 million empty packets takes its time: here one packet that asks for 4 GiB, and one block."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    assert "packet too large" in limited_reason(tmp_path, "a.pcap", head + struct.pack("<IIII", 1, 1, 2**32 - 1, 60))
    section = blocks("<", [(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))])
    assert "packet too large" in limited_reason(tmp_path, "a.pcapng", section + struct.pack("<II", 6, 2**32 - 4))
    assert "block of 8 bytes" in limited_reason(tmp_path, "b.pcapng", section + struct.pack("<II", 6, 8))


def limited_reason(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    events = list(read_capture(path))
    limited(path)
    return " ".join(event.reason for event in events)  # type: ignore[union-attr]


def test_a_frame_of_2_gib_and_a_million_small_connections(tmp_path: Path) -> None:
    talk = Talk().open().say(True, b"\x7f\xff\xff\xff" + bytes(5000)).say(True, bytes(100_000))
    packets = talk.bytes()
    for number in range(20_000):
        client = (f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1000 + number % 60000)
        packets.append(Talk(client=client).packet((True, number, 1, PUSH | ACK, b"\0\0\0\x20" + bytes(12))))
    path = write_pcap(tmp_path / "a.pcap", packets)
    assert limited(path).startswith("read")


def test_packets_within_packets(tmp_path: Path) -> None:
    """IP in GRE in IP, deeper than calls may go; the packets beside them are read."""
    for layers in (5, 300, 2000):
        packet = b"x" * 20
        for _ in range(layers):
            packet = struct.pack(">BBHHHBBH8s", 0x45, 0, 0, 0, 0, 64, 47, 0, bytes(8)) + b"\0\0\x08\0" + packet
        ethernet = bytes(12) + b"\x08\0" + packet
        exercise(write_pcap(tmp_path / "a.pcap", [ethernet, *long_talk().bytes(), ethernet]))
        events = list(read_capture(tmp_path / "a.pcap"))
        assert len([one for one in events if isinstance(one, Exchange)]) == 9


def test_blocks_whose_options_are_cut(tmp_path: Path) -> None:
    head = bytes.fromhex("0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000")
    interface = bytes.fromhex("01000000180000000000000000000000")
    for options in ("0900010018000000", "0900010006000000", "0e00080018000000", "0900ffff18000000", "0900000018000000"):
        (tmp_path / "a.pcapng").write_bytes(head + interface + bytes.fromhex(options))
        exercise(tmp_path / "a.pcapng")
        assert not [one for one in read_capture(tmp_path / "a.pcapng") if isinstance(one, Exchange)]
    for size in range(len(head + interface) + 8):
        (tmp_path / "a.pcapng").write_bytes((head + interface + bytes.fromhex("0900010018000000"))[:size])
        exercise(tmp_path / "a.pcapng")


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\n\x9b2J", "\u202eegasse"])
def test_a_loss_is_one_printable_line(tmp_path: Path, name: str) -> None:
    """Reasons hold names from the wire: a SASL mechanism, a file, an address in a frame file."""
    greeting = kwire.encode_request(messages.SaslHandshakeRequest(mechanism=name + "x" * 20_000), 0, correlation_id=1)
    talk = Talk().open().exchange(hello(), welcome())
    talk.exchange(greeting, kwire.encode_response(messages.SaslHandshakeResponse(), 0, correlation_id=1))
    talk.exchange(b"\0user\0secret", b"").exchange(*metadata(3)).close()
    reasons = [one.reason for one in read(write_pcap(tmp_path / "a.pcap", talk.bytes()))[1]]
    folder = tmp_path / name
    folder.mkdir()
    lines, data = frame_files(tmp_path)
    row = json.loads(lines.splitlines()[0]) | {"client": name, "server": name, "lost": name}
    (folder / "a.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"len": 0}) + "\n")
    (folder / "a.bin").write_bytes(data[:10])
    events = list(read_capture(folder / "a.bin"))
    reasons += [one.reason for one in events if isinstance(one, Lost)]
    reasons += [str(one.connection.client) + str(one.connection.server) for one in events if one.connection]
    assert any("raw SASL tokens" in reason for reason in reasons)
    assert any("does not have the frame" in reason for reason in reasons)
    for reason in reasons:
        assert reason.isprintable() and len(reason) < 1200, reason


@pytest.mark.quick
@pytest.mark.parametrize("address", [("10.0.0.7", 9092), ("2001:db8::7", 9092)])
def test_packets_that_an_address_sends_to_itself_are_lost_and_counted(tmp_path: Path, address: tuple[str, int]) -> None:
    """A connection of Linux to its own port, or a forged packet: its two sides have one name."""
    own = Talk(client=address, server=address).open().exchange(hello(), welcome()).close()
    other = Talk().open().exchange(hello(), welcome()).close()
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", [*own.bytes(), *other.bytes()]))
    assert [one.outcome for one in exchanges] == ["answered"]
    assert [(one.reason, one.count) for one in lost] == [
        ("packets from an address and port to itself: neither side is the client", len(own.packets))]


def test_empty_frames_of_one_packet_are_a_few_losses_and_are_not_decoded(tmp_path: Path) -> None:
    talk = Talk().open().exchange(hello(), welcome())
    link, seq = talk.bytes(), talk.seq[True]
    start = bytearray(talk.packet((True, seq, talk.seq[False], 24, b"")))
    start[16:18] = bytes(2)  # IP length 0, as captures of large segments have it
    path = write_pcap(tmp_path / "x.pcap", [*link, bytes(start) + bytes(1 << 19)])
    with processor_time(5):
        exchanges, lost = read(path)
    assert len(exchanges) == 1 and len(lost) <= 10
    assert sum(one.count for one in lost if "an empty request" in one.reason) == 1 << 17


def test_a_large_segment_comes_in_pieces_that_join(tmp_path: Path) -> None:
    """Its bytes, sequence numbers and flags are those of the whole."""
    from kwire.capture.pcap import TcpSegment, _pieces

    data = bytes(range(256)) * 4000
    for syn in (False, True):
        whole = TcpSegment(1, "a:1", "b:2", (1 << 32) - 5, 7, syn, True, False, data, len(data) + 9)
        pieces = list(_pieces(whole))
        assert b"".join(piece.data for piece in pieces) == data and len(pieces) == 4
        assert sum(piece.size for piece in pieces) == whole.size
        assert [piece.syn for piece in pieces] == [syn, False, False, False]
        assert [piece.fin for piece in pieces] == [False, False, False, True]
        at = whole.seq + syn
        for piece in pieces:
            assert (piece.seq + piece.syn) % (1 << 32) == at % (1 << 32)
            at += len(piece.data)
    request, response = metadata(1, 20_000)
    talk = Talk().open().exchange(hello(), welcome())
    packets, start = talk.bytes(), bytearray(talk.packet((True, talk.seq[True], talk.seq[False], 24, b"")))
    start[16:18] = bytes(2)
    packets.append(bytes(start) + kwire.pack_frame(request))
    talk.seq[True] += len(request) + 4
    count = len(talk.packets)
    talk.say(False, kwire.pack_frame(response)).close()
    packets += [talk.packet(one) for one in talk.packets[count:]]
    exchanges, lost = read(write_pcap(tmp_path / "x.pcap", packets))
    assert not lost and exchanges[1].request.data == request
    assert outcomes_of(exchanges)[1] == ("Metadata", 9, 1, "answered")


def test_no_secret_is_in_a_repr() -> None:
    request = kwire.encode_request(messages.SaslAuthenticateRequest(auth_bytes=b"\0user\0p4ssw0rd"), 2)
    exchange = Exchange(Connection("c", 0), 36, 2, 0, None, Frame("request", request), Frame("response", request))
    assert "p4ssw0rd" not in repr(exchange) + repr([exchange])
    assert "p4ssw0rd" not in repr(exchange.decode_request())
