"""Clients from before Kafka 1.0, which an audit looks for: what their brokers took from them is read here too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kwire
from kwire import messages
from kwire.capture import Connection, Exchange, FrameWriter, read_capture
from kwire.capture.exchange import Frame
from kwire.capture.pairing import decode_first
from kwire.cli import main
from tests.capture.making import LINKS, Talk, hello, metadata, outcomes_of, read, welcome, write_pcap
from tests.capture.test_tap import answering, asking, tapped

# librdkafka 0.9 to 1.3: ApiVersions v0 with client id "rdkafka", and four bytes too many
OLD_HELLO = bytes.fromhex("0012 0000 00000001 0007 72646b61666b61 00000000")
OLD_TALK = [(OLD_HELLO, welcome(1, 0)), *(
    (kwire.encode_request(messages.MetadataRequest(topics=[]), 0, correlation_id=number, client_id="rdkafka"),
     kwire.encode_response(messages.MetadataResponse(), 0, correlation_id=number)) for number in (2, 3)
)]  # fmt: skip
WANTED = [("ApiVersions", 0, 1, "answered"), ("Metadata", 0, 2, "answered"), ("Metadata", 0, 3, "answered")]


def audited(capsys: pytest.CaptureFixture[str], *paths: Path) -> tuple[int, dict[str, object]]:
    """(exit code, report) of `kwire audit --to 4.4`."""
    code = main(["audit", *map(str, paths), "--to", "4.4", "--json"])
    return code, json.loads(capsys.readouterr().out)


def uses(report: dict[str, object]) -> list[tuple[str, int, int]]:
    return [(use["api"], use["version"], use["count"]) for use in report["uses"]]  # type: ignore[attr-defined]


def test_its_first_request_is_named() -> None:
    request = decode_first(OLD_HELLO)
    assert (request.name, request.version, request.client_id, request.trailing) == (
        "ApiVersions", 0, "rdkafka", b"\0\0\0\0")
    assert request.to_bytes() == OLD_HELLO
    for wrong in (OLD_HELLO + bytes(13), hello(client_id="a\x1bb", version=0) + b"\0", b"GET / HTTP/1.1\r\n\r\n"):
        with pytest.raises(kwire.KwireError):
            decode_first(wrong)


def test_the_tap_keeps_every_frame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests, answers = zip(*OLD_TALK, strict=True)
    tapped(tmp_path / "t", answering(*answers), asking(*requests))
    exchanges, lost = read(tmp_path / "t.jsonl.gz")
    assert (outcomes_of(exchanges), lost) == (WANTED, [])
    assert [(one.request.data, one.response and one.response.data) for one in exchanges] == OLD_TALK
    assert {one.client_id for one in exchanges} == {"rdkafka"}
    code, report = audited(capsys, tmp_path / "t.jsonl.gz")
    assert (code, report["lost"], uses(report)) == (0, [], [("Metadata", 0, 2), ("ApiVersions", 0, 1)])


def test_frame_files(tmp_path: Path) -> None:
    with FrameWriter(str(tmp_path / "t")) as writer:
        for request, answer in OLD_TALK:
            for direction, data in (("request", request), ("response", answer)):
                writer.write(Connection("", 0), Frame(direction, data), None)  # type: ignore[arg-type]
    exchanges, lost = read(tmp_path / "t.bin.gz")
    assert (outcomes_of(exchanges), lost) == (WANTED, [])


@pytest.mark.parametrize("size", [1 << 15, 7, 1])
@pytest.mark.parametrize("link", ["ethernet", "cooked v2", "raw"])
def test_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int, link: str) -> None:
    assert link in LINKS
    talk = Talk().open()
    for request, answer in OLD_TALK:
        talk.exchange(request, answer, size)
    path = write_pcap(tmp_path / "a.pcap", talk.close().bytes(link), link)
    exchanges, lost = read(path)
    assert (outcomes_of(exchanges), lost) == (WANTED, [])
    code, report = audited(capsys, path)
    assert code == 0 and uses(report) == [("Metadata", 0, 2), ("ApiVersions", 0, 1)]


def test_what_breaks_for_them_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetch = kwire.encode_request(messages.FetchRequest(replica_id=-1), 2, correlation_id=2, client_id="rdkafka")
    talk = Talk().open().exchange(*OLD_TALK[0]).exchange(fetch, None)
    code, report = audited(capsys, write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert code == 1 and uses(report) == [("Fetch", 2, 1), ("ApiVersions", 0, 1)]


def test_an_audit_of_what_cannot_be_read_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Something was captured and no request could be read: that nothing breaks is not known."""
    unreadable = [
        Talk().open().say(True, b"\x16\x03\x01\x02\x00\x01" + bytes(500)),
        Talk().open().say(True, kwire.pack_frame(OLD_HELLO + bytes(40))),
    ]
    for talk in unreadable:
        code, report = audited(capsys, write_pcap(tmp_path / "a.pcap", talk.bytes()))
        assert (code, report["uses"]) == (1, []) and report["lost"]
    code = main(["audit", str(tmp_path / "a.pcap"), "--to", "4.4"])
    assert code == 1 and "no request was seen" in capsys.readouterr().out
    both = write_pcap(tmp_path / "b.pcap", Talk().open().exchange(hello(), welcome()).exchange(*metadata(1)).bytes())
    code, report = audited(capsys, tmp_path / "a.pcap", both)
    assert code == 0 and report["uses"] and report["lost"]
    nothing = write_pcap(tmp_path / "c.pcap", [])
    assert audited(capsys, nothing)[0] == 0
    assert not [one for one in read_capture(nothing) if isinstance(one, Exchange)]
