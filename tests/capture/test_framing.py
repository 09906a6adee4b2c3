"""TCP reassembly: split, wrapped, repeated, overlapping, late and lost segments; reused ports; every link type."""

from __future__ import annotations

import decimal
import gzip
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import dpkt
import pytest

import kwire
from kwire.capture import Connection, framing, tcp_reassembly
from kwire.capture.framing import Conversation
from kwire.capture.pcap import Unread, read_segments
from tests.capture.making import (
    ACK,
    FIN,
    LINKS,
    PUSH,
    RST,
    SYN,
    Talk,
    hello,
    metadata,
    outcomes_of,
    produce,
    read,
    welcome,
    write_pcap,
)  # fmt: skip
from tests.codec.test_frames import held_view

CLIENT6, SERVER6 = ("2001:db8::7", 51234), ("2001:db8::1", 9092)
WHOLE = [("ApiVersions", 3, 0, "answered"), *(("Metadata", 9, n, "answered") for n in range(1, 9))]


def long_talk(size: int = 1 << 15, **ends: object) -> Talk:
    talk = Talk(**ends).open().exchange(hello(), welcome(), size)  # type: ignore[arg-type]
    for number in range(1, 9):
        talk.exchange(*metadata(number, topics=number * 3), size)
    return talk


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("ends", [{}, {"client": CLIENT6, "server": SERVER6}], ids=["IPv4", "IPv6"])
def test_every_link_layer(tmp_path: Path, link: str, ends: dict[str, object]) -> None:
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", long_talk(**ends).close().bytes(link), link))
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])
    connection = exchanges[0].connection
    assert (connection.client, connection.address) == (
        ("[2001:db8::7]:51234", "2001:db8::7") if ends else ("10.0.0.7:51234", "10.0.0.7"))
    assert exchanges[0].request.time == 1_700_000_000_003_000


@pytest.mark.parametrize("head", [
    lambda packet: bytes(12) + struct.pack(">H", len(packet) + 8) + b"\xaa\xaa\x03\0\0\0\x08\0",
    lambda packet: bytes(12) + b"\x88\x47\0\1\1\x40" + bytes(16) + b"\x08\0",
], ids=["SNAP", "Ethernet in MPLS"])  # fmt: skip
def test_ethernet_of_other_kinds(tmp_path: Path, head: Callable[[bytes], bytes]) -> None:
    packets = [head(packet) + packet for packet in long_talk(1000).close().bytes("raw")]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])


@pytest.mark.parametrize("link, size", [("ethernet", 14), ("ethernet", 33), ("two vlans", 30), ("cooked", 20),
                                        ("cooked v2", 39), ("null", 10), ("raw", 19)])
def test_packets_that_end_in_the_ip_header(tmp_path: Path, link: str, size: int) -> None:
    """They are listed: they could be of a client that breaks."""
    talk = long_talk().close().bytes(link)
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", [packet[:size] for packet in talk], link))
    assert (exchanges, [(one.reason, one.count) for one in lost]) == ([], [("malformed packets", len(talk))])


def test_the_bits_of_a_link_type_that_say_the_length_of_the_checksum(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", [packet + b"fcs!" for packet in long_talk().close().bytes()])
    data = path.read_bytes()
    path.write_bytes(data[:20] + struct.pack("<I", 1 | 0x2400_0000) + data[24:])  # two units of 16 bits
    exchanges, lost = read(path)
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])


def test_a_link_layer_that_is_none(tmp_path: Path) -> None:
    with open(tmp_path / "a.pcap", "wb") as file:
        dpkt.pcap.Writer(file, linktype=147).writepkt(b"x" * 60, 1)
    with pytest.raises(ValueError, match=r"a\.pcap: unsupported link type 147"):
        read(tmp_path / "a.pcap")


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("first", [1000, 2**32 - 60, 2**32 - 1])
def test_torn_anywhere_and_wrapped(tmp_path: Path, size: int, first: int) -> None:
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", long_talk(size, first=first).close().bytes()))
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])


@pytest.mark.parametrize("seed", range(30))
def test_late_repeated_and_overlapping(tmp_path: Path, seed: int) -> None:
    """Packets up to 12 places late, some twice, some joined with what came before them."""
    chance = random.Random(seed)
    talk = long_talk(chance.choice((20, 50, 200)), first=chance.choice((5, 2**32 - 300))).close()
    packets = []
    for place, one in enumerate(talk.packets):
        side, seq, ack, flags, data = one
        if data and chance.random() < 0.2:  # sent again together with some of the bytes before it
            before = [other for other in talk.packets[:place] if other[0] == side and other[4]]
            if before and (before[-1][1] + len(before[-1][4])) % 2**32 == seq:
                back = chance.randint(1, len(before[-1][4]))
                one = (side, (seq - back) % 2**32, ack, flags, before[-1][4][-back:] + data)
        packets += [one] * (2 if chance.random() < 0.2 else 1)
    order = sorted(range(len(packets)), key=lambda place: place + chance.random() * chance.choice((0, 0, 3, 12)))
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", [talk.packet(packets[place]) for place in order]))
    assert (sorted(outcomes_of(exchanges)), lost) == (sorted(WHOLE), [])


def test_a_repetition_with_other_bytes_does_not_change_what_was_read(tmp_path: Path) -> None:
    talk = long_talk(30)
    side, seq, ack, flags, data = talk.packets[5]
    talk.packets.insert(8, (side, seq, ack, flags, b"\xff" * len(data)))
    assert outcomes_of(read(write_pcap(tmp_path / "a.pcap", talk.bytes()))[0]) == WHOLE


def test_several_connections_at_once(tmp_path: Path) -> None:
    talks = [long_talk(25, client=("10.0.0.7", 50000 + port), first=port * 999).close().bytes() for port in range(9)]
    packets = [packet for row in zip(*talks, strict=True) for packet in row]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert not lost
    for number in range(9):
        assert outcomes_of(one for one in exchanges if one.connection.number == number) == WHOLE


@pytest.mark.parametrize("closed", [True, False])
def test_a_port_used_again(tmp_path: Path, closed: bool) -> None:
    first, second = long_talk(first=4_000_000_000), long_talk(first=77)
    if closed:
        first.close()
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", first.bytes() + second.bytes()))
    assert (outcomes_of(exchanges), lost) == (WHOLE * 2, [])
    assert {one.connection.number for one in exchanges} == {0, 1}


@pytest.mark.parametrize("without", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_packets_of_the_handshake_may_be_missing(tmp_path: Path, without: tuple[int, ...]) -> None:
    talk = long_talk()
    talk.packets = [one for place, one in enumerate(talk.packets) if place not in without]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert outcomes_of(exchanges) == WHOLE
    assert all("begins in the middle" in one.reason for one in lost)


@pytest.mark.parametrize("begin", range(3, 24))
def test_a_capture_that_begins_in_the_middle_says_so_and_goes_on_where_it_can_be_proven(
    tmp_path: Path, begin: int
) -> None:
    """Every packet as the first one; the client is known by its requests, though its port is the lower one."""
    talk = long_talk(60, client=("10.0.0.7", 1024), server=("10.0.0.1", 60000))
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()[begin:]))
    assert "begins in the middle" in lost[0].reason
    assert outcomes_of(exchanges)[-5:] == WHOLE[-5:] and set(outcomes_of(exchanges)) <= set(WHOLE)
    assert {one.connection.client for one in exchanges} == {"10.0.0.7:1024"}


@pytest.mark.parametrize("place", range(3, 60))
def test_one_lost_segment_costs_its_own_exchange_only(tmp_path: Path, place: int) -> None:
    talk = long_talk(50)
    gone = talk.packets.pop(place)
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    if not gone[4]:
        assert (outcomes_of(exchanges), lost) == (WHOLE, [])
        return
    answered = [row for row in outcomes_of(exchanges) if row[3] == "answered"]
    assert len(answered) == len(WHOLE) - 1 and set(answered) < set(WHOLE)
    (hole,) = [one for one in lost if "not in the capture" in one.reason and one.bytes == len(gone[4])]
    assert hole.direction == ("request" if gone[0] else "response")
    assert not any(row[3] == "unanswered" for row in outcomes_of(exchanges))


def test_a_hole_inside_a_frame_leaves_its_header_and_the_place_of_the_next(tmp_path: Path) -> None:
    """One segment of many of a request is lost: its header is known, and no search is needed after it."""
    talk = Talk().open().exchange(hello(), welcome())
    talk.say(True, kwire.pack_frame(produce(1, 1, bytes(500))) + kwire.pack_frame(metadata(2)[0]), 100)
    talk.packets = [one for place, one in enumerate(talk.packets) if place != 9]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert outcomes_of(exchanges)[1:] == [("Produce", 7, 1, "lost"), ("Metadata", 9, 2, "unanswered")]
    assert [one.bytes for one in lost] == [100]
    assert exchanges[1].client_id == "me"
    assert exchanges[1].request.missing == len(produce(1, 1, bytes(500))) - len(exchanges[1].request.data)


def test_a_snap_length_inside_the_first_header_does_not_make_it_another_protocol(tmp_path: Path) -> None:
    for size in (58, 60, 66):  # 54 of them are headers below
        exchanges, lost = read(write_pcap(tmp_path / "a.pcap", [packet[:size] for packet in long_talk().bytes()]))
        assert not exchanges
        assert {one.reason for one in lost} == {
            "bytes of a packet truncated by the capture's snap length",
            "the first request is cut inside its header: the connection cannot be read"}


def test_a_request_of_which_only_the_size_is_there_is_not_called_empty(tmp_path: Path) -> None:
    talk = Talk().open().exchange(hello(), welcome())
    talk.say(True, kwire.pack_frame(metadata(1)[0])[:4]).say(True, metadata(1)[0]).exchange(*metadata(2))
    del talk.packets[-6]  # the second segment
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert outcomes_of(exchanges)[1:] == [("Metadata", 9, 2, "answered")]
    assert [one.reason for one in lost] == [
        "bytes of segments that are not in the capture", "a request of which the capture has the size only"]


def test_packets_cut_short_by_the_snap_length_still_tell_who_asks_what(tmp_path: Path) -> None:
    talk = long_talk().exchange(produce(9, 1, bytes(3000)), metadata(9)[1]).exchange(*metadata(10))
    packets = [packet[:200] for packet in talk.bytes()]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    outcomes = outcomes_of(exchanges)
    assert [row[:3] for row in outcomes] == [*(row[:3] for row in WHOLE), ("Produce", 7, 9), ("Metadata", 9, 10)]
    assert {row[3] for row in outcomes} == {"answered", "lost"}
    assert all("snap length" in one.reason for one in lost) and sum(one.bytes or 0 for one in lost) > 3000


def test_four_bytes_prove_no_frame(tmp_path: Path) -> None:
    """In a response, between a gap and its end, a segment looks like the empty response to the next request."""
    talk = Talk().open().exchange(hello(), welcome())
    talk.say(True, kwire.pack_frame(metadata(1)[0]) + kwire.pack_frame(metadata(2)[0]))
    talk.say(False, kwire.pack_frame(metadata(1)[1]))
    del talk.packets[-2]  # which is lost
    talk.say(False, bytes.fromhex("00000004 00000002"))
    talk.say(False, kwire.pack_frame(metadata(2)[1]))
    exchanges, _ = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    (last,) = [one for one in exchanges if one.correlation_id == 2]
    assert last.response is not None and last.response.data == metadata(2)[1]


def test_what_waits_where_reading_stops_is_lost(tmp_path: Path) -> None:
    """What a broker answers after bytes that are no request is not read: nobody knows whether it answers."""
    talk = Talk().open().exchange(hello(), welcome())
    talk.say(True, kwire.pack_frame(metadata(1)[0])).say(True, b"GET / HTTP/1.1\r\n\r\n")
    talk.say(False, kwire.pack_frame(metadata(1)[1]))
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert outcomes_of(exchanges)[1:] == [("Metadata", 9, 1, "lost")]
    assert [one.reason for one in lost] == ["HTTP, not the Kafka protocol"]


def test_a_reset_ends_what_waits(tmp_path: Path) -> None:
    talk = Talk().open().exchange(hello(), welcome()).exchange(metadata(1)[0], None)
    talk._add(False, RST | ACK)
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert (outcomes_of(exchanges), lost) == (
        [("ApiVersions", 3, 0, "answered"), ("Metadata", 9, 1, "unanswered")], [])


def test_a_reset_tells_what_was_sent_before_it(tmp_path: Path) -> None:
    """Its sequence number is that of the next byte: the capture lacks those from the last one on."""
    talk = Talk().open().exchange(hello(), welcome()).exchange(metadata(1)[0], None)
    before = len(talk.packets)
    talk.say(False, kwire.pack_frame(metadata(1)[1]))
    talk._add(False, RST)
    del talk.packets[before:-1]  # the response and its acknowledgement
    exchanges, (lost,) = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert outcomes_of(exchanges)[1] == ("Metadata", 9, 1, "lost")
    assert (lost.direction, lost.bytes) == ("response", len(metadata(1)[1]) + 4)


@pytest.mark.parametrize("captured", [True, False])
def test_a_reset_after_the_end_is_no_loss(tmp_path: Path, captured: bool) -> None:
    """The FIN counts as a byte."""
    talk = Talk().open().exchange(hello(), welcome()).exchange(metadata(1)[0], None)
    talk._add(True, FIN | ACK)
    talk._add(True, RST)
    if not captured:
        del talk.packets[-2]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert (outcomes_of(exchanges)[1], lost) == (("Metadata", 9, 1, "unanswered"), [])


def test_the_end_of_a_connection_begun_before_is_no_loss(tmp_path: Path) -> None:
    talk = long_talk()
    before = len(talk.packets)
    for packets in (talk.close().packets[before:], [talk.packets[before], (False, 9, 9, RST | ACK, b"")]):
        assert read(write_pcap(tmp_path / "a.pcap", map(talk.packet, packets))) == ([], [])


def test_one_direction_only(tmp_path: Path) -> None:
    """Captured where the responses take another route: requests are reported, no response is made up."""
    talk = long_talk()
    talk.packets = [one for one in talk.packets if one[0]]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert [row[:3] for row in outcomes_of(exchanges)] == [row[:3] for row in WHOLE]
    assert {row[3] for row in outcomes_of(exchanges)} == {"lost"} and any(one.direction == "response" for one in lost)


def blocks(order: str, parts: list[tuple[int, bytes]]) -> bytes:
    """pcapng blocks of (type, body)."""
    out = b""
    for kind, body in parts:
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        out += struct.pack(order + "I", kind) + size + body + size
    return out


@pytest.mark.parametrize("order", "<>")
def test_pcapng_with_several_interfaces_clocks_and_sections(tmp_path: Path, order: str) -> None:
    talk = long_talk()
    section = (0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    nanoseconds = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0)
    half = struct.pack(order + "HHB3xHHqHH", 9, 1, 0x81, 14, 8, 1000, 0, 0)  # half seconds, 1000 s later
    names = ("ethernet", "cooked v2")
    interfaces = [
        (1, struct.pack(order + "HHI", LINKS[names[0]][0], 0, 0) + nanoseconds),
        (1, struct.pack(order + "HHI", LINKS[names[1]][0], 0, 0) + half),
    ]
    parts = [section, (5, b"statistics!!"), *interfaces]
    for place, one in enumerate(talk.packets):
        packet = talk.packet(one, names[place % 2])
        time = 1_699_999_999_500_000_000 if place % 2 == 0 else 1_699_999_000 * 2 + 1
        head = struct.pack(order + "IIIII", place % 2, time >> 32, time & 0xFFFFFFFF, len(packet), len(packet))
        parts.append((6, head + packet))
        if place == 10:
            parts += [section, *interfaces]
    path = tmp_path / "a.pcapng"
    path.write_bytes(gzip.compress(blocks(order, parts)))
    exchanges, lost = read(path)
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])
    assert {one.request.time for one in exchanges} <= {1_699_999_999_500_000, 1_700_000_000_500_000}


@pytest.mark.parametrize("order", "<>")
def test_a_simple_packet_block_has_no_time(tmp_path: Path, order: str) -> None:
    parts = [(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)), (1, struct.pack(order + "HHI", 1, 0, 0))]
    parts += [(3, struct.pack(order + "I", len(packet)) + packet) for packet in long_talk(100).bytes()]
    path = tmp_path / "a.pcapng"
    path.write_bytes(blocks(order, parts))
    exchanges, lost = read(path)
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])
    assert {time for one in exchanges if one.response for time in (one.request.time, one.response.time)} == {None}


def test_nanosecond_pcap_and_gzip(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", long_talk().bytes(), nano=True)
    path.write_bytes(gzip.compress(path.read_bytes()))
    exchanges, lost = read(path)
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])
    assert abs((exchanges[0].request.time or 0) - 1_700_000_000_003_000) < 2


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_times_are_exact(tmp_path: Path, nanoseconds: bool, order: str) -> None:
    (packet,) = Talk().say(True, kwire.pack_frame(hello())).bytes()[:1]
    data = struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    times = [1_096_467_456_355_311, 537_425_047_271_699, 2_184_595_408_861_385, 1_700_000_000_000_001]
    for time in times:
        seconds, micros = divmod(time, 1_000_000)
        part = micros * 1000 + 999 if nanoseconds else micros
        data += struct.pack(f"{order}IIII", seconds, part, len(packet), len(packet)) + packet
    path = tmp_path / "times.pcap"
    path.write_bytes(data)
    assert [one.time for one in read_segments(str(path), Unread())] == times


def test_times_do_not_depend_on_the_caller_s_decimal_context(tmp_path: Path) -> None:
    """Times of nanoseconds were rounded to the precision of the caller's decimal numbers, or the file not read."""
    path = write_pcap(tmp_path / "a.pcap", long_talk().bytes(), nano=True)
    times = [one.time for one in read_segments(str(path), Unread())]
    with decimal.localcontext() as context:
        context.prec = 9
        context.traps[decimal.Inexact] = True
        assert [one.time for one in read_segments(str(path), Unread())] == times


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_file_that_ends_inside_its_last_packet_is_truncated(tmp_path: Path, cut: int) -> None:
    """It was said to be cut by the snap length, or malformed."""
    path = write_pcap(tmp_path / "a.pcap", long_talk().bytes()[:-1])  # the last packet has data
    path.write_bytes(path.read_bytes()[:-cut])
    (end,) = {one.reason for one in read(path)[1]}
    assert end == f"truncated: the file ends inside a packet, at byte {path.stat().st_size}"


def test_records_of_a_modified_pcap(tmp_path: Path) -> None:
    data = struct.pack("<IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 65535, 1)
    for number, packet in enumerate(long_talk().bytes()):
        data += struct.pack("<IIIIIHBB", number, 7, len(packet), len(packet), 1, 8, 0, 0) + packet
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    exchanges, lost = read(path)
    assert (outcomes_of(exchanges), lost, exchanges[0].request.time) == (WHOLE, [], 3_000_007)


def test_a_file_that_ends_inside_a_packet_gives_what_is_whole(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", long_talk().bytes())
    path.write_bytes(path.read_bytes()[:-5])
    exchanges, lost = read(path)
    assert set(outcomes_of(exchanges)) == set(WHOLE) or lost
    path.write_bytes(path.read_bytes()[: 24 + 16 + 54 + 7])
    assert [one.reason for one in read(path)[1]] == ["truncated: the file ends inside a packet, at byte 101"]


def test_frames_that_never_end_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_reassembly, "MOST_HELD", 200_000)
    packets = []
    for port in range(8):
        talk = Talk(client=("10.0.0.7", 50000 + port)).open().exchange(hello(), welcome())
        talk.say(True, (90 << 20).to_bytes(4, "big") + produce(1, 1, bytes(60_000)), 1400)
        packets += talk.bytes()
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert [row[0] for row in outcomes_of(exchanges) if row[3] == "answered"] == ["ApiVersions"] * 8
    given_up = [one.bytes or 0 for one in lost if "of all connections in memory" in one.reason]
    assert len(given_up) >= 5 and sum(given_up) > 300_000


def test_answers_that_never_come_are_waited_for_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MOST_WAITING", 100_000)
    silent = Talk().open().exchange(hello(), welcome())
    for number in range(1, 200):
        silent.exchange(produce(number, 1, bytes(1000)), None)
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", silent.bytes()))
    assert [row[2] for row in outcomes_of(exchanges)] == list(range(200))
    assert [row[3] for row in outcomes_of(exchanges)][:100] == ["answered"] + ["lost"] * 99
    assert any("whose requests or responses are not" in one.reason for one in lost)


def test_late_segments_are_waited_for_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_reassembly, "_MOST_LATE", 50_000)
    talk = Talk().open().exchange(hello(), welcome())
    talk.say(True, kwire.pack_frame(produce(1, 1, bytes(300_000))), 1000).exchange(*metadata(2))
    talk.packets[3:] = [(side, seq, 0, flags & ~ACK, data) for side, seq, _, flags, data in talk.packets[3:]]
    del talk.packets[9]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert outcomes_of(exchanges)[1:] == [("Metadata", 9, 2, "answered"), ("Produce", 7, 1, "lost")]
    assert [one.bytes for one in lost] == [1000]


@pytest.mark.quick
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


def test_many_connections_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_reassembly, "_MOST_CONNECTIONS", 5)
    monkeypatch.setattr(tcp_reassembly, "_MOST_ENDED", 2)
    packets = []
    for port in range(30):
        packets += Talk(client=("10.0.0.7", 50000 + port)).open().exchange(hello(), welcome()).close().bytes()
        packets += [Talk(client=("10.0.0.9", 40000 + port)).packet((True, 1, 0, SYN, b""))]
        packets += [Talk(client=("10.0.0.9", 40000 + port)).packet((True, 2, 1, PUSH | ACK, b"noise"))]
    exchanges, _ = read(write_pcap(tmp_path / "a.pcap", packets))
    assert len(exchanges) == 30


@pytest.mark.parametrize("first", [500, 1 << 20, 1 << 31, 3 << 30, (1 << 32) - 5])
@pytest.mark.parametrize("begins", ["request", "response"])
def test_ports_used_again_by_a_connection_without_its_syn(tmp_path: Path, first: int, begins: str) -> None:
    """It was taken for repeated bytes of the one before, where its sequence numbers are below, and not listed."""
    one, two = long_talk().close(), long_talk(first=first)
    packets = [*one.bytes(), *two.bytes()[3 if begins == "request" else 4:]]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert outcomes_of(exchanges)[: len(WHOLE)] == WHOLE
    assert [one.connection.number for one in exchanges[len(WHOLE):]] == [1] * (len(WHOLE) - (begins == "response"))
    assert "the capture begins in the middle of this connection" in {one.reason for one in lost}


def test_bytes_of_another_connection_are_listed(tmp_path: Path) -> None:
    """Where neither the end of the one nor the beginning of the other is in the capture."""
    one, two = long_talk(first=1 << 30), long_talk(first=1000)
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", [*one.bytes(), *two.bytes()[3:]]))
    assert outcomes_of(exchanges) == WHOLE
    assert [one.reason for one in lost] == ["bytes of another connection between the same ports"]
    assert lost[0].bytes == sum(len(data) for *_, data in two.packets)


@pytest.mark.parametrize("flags", [ACK, FIN | ACK])
@pytest.mark.parametrize(("seq", "ack"), [(900, 1 << 30), (3 << 30, 1 << 30), (1001, 3 << 29)])
def test_a_late_packet_of_the_connection_before_is_no_loss(tmp_path: Path, flags: int, seq: int, ack: int) -> None:
    """It acknowledged, or ended, bytes that nobody sent: a gibibyte was listed as lost."""
    talk = long_talk()
    packets = talk.bytes()
    packets.insert(3, talk.packet((True, seq, ack, flags, b"")))
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])


def test_what_may_come_after_the_end(tmp_path: Path) -> None:
    """Segments that are sent again, and the byte of a keep-alive."""
    talk = long_talk(100).close()
    packets = [*talk.bytes(), *talk.bytes()[3:20], talk.packet((True, talk.first, 0, ACK, b"x"))]
    exchanges, lost = read(write_pcap(tmp_path / "a.pcap", packets))
    assert (outcomes_of(exchanges), lost) == (WHOLE, [])


def test_a_search_where_views_of_the_splitter_s_buffer_live_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profilers and leak detectors take all objects that there are, and hold them for a while."""
    frames: list[bytes] = []
    lost: list[int] = []

    def proves(data: bytes) -> bool | None:
        return None if data[:1] == b"?" else data[:1] == b"!"

    monkeypatch.setattr("kwire.capture.framing.memoryview", held_view([]), raising=False)
    splitter = framing.FrameSplitter(
        "request", lambda frame: frames.append(frame.data), lambda reason, size: lost.append(size), proves)
    splitter.search()
    for data in (b"what?", b"\0\0\0\x09?", b"what is it?", b"\0\0\0\x05!yes.", b"\0\0\0\x04more"):
        splitter.feed(data, None)
    assert frames == [b"!yes.", b"more"] and lost == [21]


def test_a_client_after_only_the_server_was_seen_is_the_client(tmp_path: Path) -> None:
    """Both connections counted as one whose sides changed: the broker was the client of what came after."""
    server = ("10.0.0.1", 61000)  # the higher port
    old, new = Talk(server=server, first=5000), Talk(server=server, first=900_000)
    for number in range(70):
        old.say(False, kwire.pack_frame(metadata(number)[1]))
    new._add(True, SYN)  # the answer to it is not in the capture
    new.seq[False] += 1
    for number in range(8):
        new.exchange(*metadata(number))
    packets = [old.packet(one) for one in old.packets if not one[0]] + new.bytes()
    exchanges, _ = read(write_pcap(tmp_path / "c.pcap", packets))
    answered = [one for one in exchanges if one.outcome == "answered"]
    assert len(answered) == 8 and {one.connection.client for one in answered} == {"10.0.0.7:51234"}
