"""Captures of real clients and brokers: frame files whose pairs are known, and packets with gaps."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import kwire
from kwire.capture import Exchange, audit, captures, read_capture
from kwire.capture.pcap import TcpSegment, Unread, read_segments
from tests.capture.making import read
from tools.places import DATA


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wire")
    with tarfile.open(DATA / "wire.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    for file in folder.rglob("*"):
        if file.is_file() and file.parent.name == "broker-4.3.0":  # as they were recorded; the others stay unpacked
            file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 1))
            file.unlink()
    return folder


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packets")
    with tarfile.open(DATA / "pcap.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "pcap"


def test_every_frame_of_the_frame_files_is_paired(wire: Path) -> None:
    outcomes: Counter[str] = Counter()
    for path in captures(wire):
        text = Path(path).read_bytes()
        rows = [json.loads(line) for line in (gzip.decompress(text) if path.endswith(".gz") else text).splitlines()]
        exchanges, lost = read(Path(path))
        assert not lost, path
        said = {(row["conn"], row["corr"], row["api_key"], row["api_version"], row["client_id"])
                for row in rows if row["dir"] == "c2s"}
        assert said == {(one.connection.number, one.correlation_id, one.api_key, one.version, one.client_id)
                        for one in exchanges}
        answers = {(row["conn"], row["corr"], row["api_key"], row["api_version"])
                   for row in rows if row["dir"] == "s2c"}
        assert answers == {(one.connection.number, one.correlation_id, one.api_key, one.version)
                           for one in exchanges if one.response is not None}
        for one in exchanges:
            outcomes[one.outcome] += 1
            assert (one.response is None) == (one.outcome != "answered")
            assert one.outcome != "one-way" or one.decode_request().message.acks == 0
            one.to_json()
    assert outcomes == {"answered": 4977, "one-way": 6, "unanswered": 42}


def segment_starts(path: Path) -> dict[tuple[tuple[str, str], int], dict[str, dict[int, TcpSegment]]]:
    """Connection -> source -> sequence number -> the first segment with data there."""
    found: dict[tuple[tuple[str, str], int], dict[str, dict[int, TcpSegment]]] = defaultdict(lambda: defaultdict(dict))
    opened: Counter[tuple[str, str]] = Counter()
    for one in read_segments(str(path), Unread()):
        ends = (min(one.source, one.target), max(one.source, one.target))
        opened[ends] += one.syn and one.ack is None
        if one.data:
            found[ends, opened[ends]][one.source].setdefault(one.seq, one)
    return found


def frame_at(segments: dict[int, TcpSegment], start: int) -> bytes | None:
    """The frame that begins with the segment there, if all of it was captured."""
    data = b""
    while True:
        size = int.from_bytes(data[:4], "big")
        if len(data) >= 4 and (size > 1 << 24 or len(data) >= 4 + size):
            return None if size > 1 << 24 else data[4 : 4 + size]
        if start + len(data) not in segments:
            return None
        data += segments[start + len(data)].data


def whole_pairs(sides: dict[str, dict[int, TcpSegment]]) -> int:
    """How many exchanges are there at all: every segment of either side is tried as the beginning of a frame."""
    best = 0
    for client in sides:
        asked = {}
        for start in sides[client]:
            frame = frame_at(sides[client], start)
            try:
                request = kwire.decode_request(frame or b"", lenient=True)
                if len(request.trailing) > 3:  # as librdkafka has after a Metadata request for all topics
                    continue
                asked[request.correlation_id] = request
            except kwire.KwireError:
                continue
        count = 0
        for server in sides:
            for start in sides[server] if server != client else ():
                frame = frame_at(sides[server], start) or b""
                try:
                    kwire.decode_response(frame, asked.get(int.from_bytes(frame[:4], "big")) or asked[-1])
                    count += 1
                except (kwire.KwireError, KeyError):
                    continue
        best = max(best, count)
    return best


@pytest.mark.parametrize(
    ("name", "connections", "outcomes"),
    [
        ("broker-2.8.2-java", 62, {"answered": 446, "one-way": 1, "lost": 1}),
        ("broker-4.3.0-3nodes-java-with-controllers", 117,
         {"answered": 1788, "one-way": 1, "lost": 72, "unanswered": 1}),
        ("broker-4.3.0-aiokafka", 18, {"answered": 63, "unanswered": 1}),
        ("broker-4.3.0-franz-go", 26, {"answered": 86, "unanswered": 1}),
        ("broker-4.3.0-kafka-python", 18, {"answered": 70}),
        ("broker-4.3.0-librdkafka", 23, {"answered": 112, "unanswered": 6}),
    ],
)
def test_every_exchange_that_is_whole_is_paired(
    packets: Path, name: str, connections: int, outcomes: dict[str, int]
) -> None:
    path = packets / f"{name}.pcap"
    exchanges, lost = read(path)
    seen = Counter(one.outcome for one in exchanges)
    whole = segment_starts(path)
    print(seen, len(lost))
    assert sum(map(whole_pairs, whole.values())) == seen["answered"]
    assert len({one.connection.number for one in exchanges}) <= connections
    assert seen == outcomes
    for one in exchanges:
        if one.outcome == "answered":
            one.to_json()
    assert bool(lost) == ("lost" in outcomes)


def test_connections_begun_before_the_capture_are_reported(packets: Path) -> None:
    path = packets / "broker-4.3.0-3nodes-java-with-controllers.pcap"
    opened, seen = set(), set()
    for one in read_segments(str(path), Unread()):
        seen.add(frozenset((one.source, one.target)))
        if one.syn:
            opened.add(frozenset((one.source, one.target)))
    exchanges, lost = read(path)
    reported = {frozenset((one.connection.client, one.connection.server))
            for one in lost if one.connection and "middle of this connection" in one.reason}
    assert reported and reported <= seen - opened
    assert all(one.bytes is None for one in lost if "middle of this connection" in one.reason)
    holes = [one for one in lost if "not in the capture" in one.reason and one.connection and one.bytes]
    assert holes and all(one.direction in ("request", "response") for one in holes)
    assert all(isinstance(one, Exchange) for one in exchanges)


def test_reading_gives_what_is_whole_as_it_comes(packets: Path) -> None:
    events = read_capture(packets / "broker-4.3.0-librdkafka.pcap")
    first = next(events)
    assert isinstance(first, Exchange) and first.outcome == "answered"
    assert first.connection.software == "confluent-kafka-python 2.16.1-rdkafka-2.16.0"
    assert first.connection.address == "127.0.0.1"
    assert first.request.time is not None and 0 < first.response.time - first.request.time < 1_000_000  # type: ignore


@pytest.mark.parametrize("to", ["2.8", "3.5"])
def test_clients_that_negotiate_break_nothing(packets: Path, to: str) -> None:
    """kafka-clients 4.3.0 with a broker of 2.8.2: they ask for ApiVersions 4, which it does not have, then for 3."""
    found = audit(packets / "broker-2.8.2-java.pcap", to)
    assert {(use.api, use.version) for use in found.uses} > {("ApiVersions", 4), ("ApiVersions", 3)}
    assert not found.breaks
