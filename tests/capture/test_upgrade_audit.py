"""The upgrade audit as a table, as JSON and as a page: which client uses what, and what breaks in a release."""

from __future__ import annotations

import json
import random
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kwire
from kwire import schema
from kwire.capture import Connection, audit
from kwire.capture.exchange import Frame
from kwire.capture.frame_files import FrameWriter
from kwire.capture.upgrade_audit import verdict
from kwire.cli import main
from tests.browser import rendered
from tests.capture.making import Talk, every_version, hello, metadata, produce, welcome, write_pcap
from tests.chromium import Chromium


def spoken(release: str) -> set[tuple[str, int]]:
    return {(api.name, version) for api in schema.apis(release) for version in api.versions.all()}


@pytest.mark.parametrize("how", ["plain", "torn", "late and repeated"])
@pytest.mark.parametrize(("of", "to"), [("2.2", "4.4"), ("3.9", "4.4"), ("2.2", "3.9"), ("3.9", "4.0"), ("4.4", "3.9")])
def test_every_version_flags_exactly_what_is_gone(tmp_path: Path, of: str, to: str, how: str) -> None:
    chance = random.Random(f"{of} {to} {how}")
    talk = Talk(first=2**32 - 5000).open()
    pairs = list(every_version(of))
    for _, _, request, response in pairs:
        talk.exchange(request, response, 1 << 15 if how == "plain" else chance.randint(1, 40))
    packets = talk.close().bytes()
    if how == "late and repeated":
        packets = [packet for packet in packets for _ in range(1 + (chance.random() < 0.1))]
        order = sorted(range(len(packets)), key=lambda place: place + chance.random() * 6)
        packets = [packets[place] for place in order]
    found = audit(write_pcap(tmp_path / "a.pcap", packets), to)
    assert {(use.api, use.version) for use in found.uses} == spoken(of) and not found.lost
    gone = {(api, version) for api, version in spoken(of) - spoken(to) if api != "ApiVersions"}
    assert {(use.api, use.version) for use in found.uses if use.breaks} == gone
    assert {use.count for use in found.uses} == {1} and {use.user.client_id for use in found.uses} <= {"every", None}
    assert found.exchanges == Counter(answered=len(pairs))
    assert found.breaks == bool(gone)


def test_the_facts_know_what_kip_896_removed() -> None:
    """Brokers of 4.x list Produce 0 to 2 for librdkafka's sake, but refuse them (KAFKA-18659)."""
    assert verdict(0, 2, "4.4") == ("v2 is too old: Kafka 4.4 supports 3-13", None)
    assert verdict(0, 3, "4.4") == (None, None)
    assert verdict(0, 14, "4.4") == ("v14 is too new: Kafka 4.4 supports 3-13", None)
    assert verdict(4, 1, "4.4") == (
        "Kafka 4.0 removed LeaderAndIsr", "sent between brokers, so upgraded with them")
    assert verdict(68, 0, "3.0") == (
        "Kafka 3.0 does not support ConsumerGroupHeartbeat, which Kafka 3.5 added", None)
    assert verdict(4, 7, "3.0") == (
        "v7 is too new: Kafka 3.0 supports 0-5", "sent between brokers, so downgraded with them")
    assert verdict(999, 0, "4.4") == ("no Kafka release has api 999", None)
    assert verdict(22, 6, "4.4")[0] is None and "unstable: only" in str(verdict(22, 6, "4.4")[1])
    assert verdict(0, 2, "3.9") == (None, "deprecated")
    assert verdict(18, 4, "2.0") == (None, "v4 is answered with UNSUPPORTED_VERSION: Kafka 2.0 supports 0-2")
    assert verdict(18, 4, "0.9.0")[0] == "Kafka 0.9.0 does not support ApiVersions, which Kafka 0.10.0 added"


OLD = "[red]old\x1b[2J"


def old_client(tmp_path: Path) -> Path:
    """An old producer that breaks, a new one that does not, one of them without a name, and a TLS connection."""
    old = Talk(client=("10.0.0.9", 40000)).open()
    frame = kwire.encode_request(kwire.messages.ProduceRequest(acks=1), 2, correlation_id=1, client_id=OLD)
    for _ in range(3):
        old.exchange(frame, kwire.encode_response(kwire.messages.ProduceResponse(), 2, correlation_id=1))
    new = Talk().open().exchange(hello(client_id="<script>alert(1)</script>", software="librdkafka"), welcome())
    new.exchange(*metadata(1)).exchange(produce(2, 0), None)
    nameless = Talk(client=("10.0.0.11", 1025)).open()
    nameless.exchange(kwire.encode_request(kwire.messages.ListGroupsRequest(), 0), None)
    tls = Talk(client=("10.0.0.10", 1024)).open().say(True, b"\x16\x03\x01\x02\x00\x01" + bytes(500))
    return write_pcap(tmp_path / "old.pcap", old.bytes() + new.bytes() + nameless.close().bytes() + tls.bytes())


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = old_client(tmp_path)
    code, out, err = run(capsys, "audit", path, "--to", "4.4.0", "--json")
    report = json.loads(out)
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert {"to", "captures", "exchanges", "uses", "lost"} == set(report) and report["to"] == "4.4"
    assert report["exchanges"] == {"answered": 5, "one-way": 1, "unanswered": 1}
    first = report["uses"][0]
    assert {key: first[key] for key in ("client_id", "software", "address", "api", "api_key", "version", "count")} == {
        "client_id": "[red]old\x1b[2J", "software": None, "address": "10.0.0.9", "api": "Produce", "api_key": 0,
        "version": 2, "count": 3}  # fmt: skip
    assert first["breaks"] == "v2 is too old: Kafka 4.4 supports 3-13"
    assert first["first"] == 1_700_000_000_003_000 < first["last"]
    assert [use["breaks"] for use in report["uses"][1:]] == [None] * 4
    assert {use["software"] for use in report["uses"]} == {None, "librdkafka 1.0"}
    assert [(lost["reason"], lost["client"], lost["count"]) for lost in report["lost"]] == [
        ("TLS: not readable", "10.0.0.10:1024", 1)]
    code, out, _ = run(capsys, "audit", path, "--to", "3.9", "--json")
    assert code == 0 and not any(use["breaks"] for use in json.loads(out)["uses"])


def test_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "audit", old_client(tmp_path), "--to", "4.4")
    lines = out.splitlines()
    assert (code, err) == (1, "") and "\x1b" not in out
    assert lines[0].split() == ["client", "id", "software", "address", "API", "version", "requests", "on", "4.4"]
    assert lines[1].startswith("[red]old\\x1b[2J")
    assert lines[1].rstrip().endswith("v2 is too old: Kafka 4.4 supports 3-13")
    assert any(line.startswith("TLS: not readable") and "10.0.0.10:1024 to 10.0.0.1:9092" in line for line in lines)
    assert lines[-1].startswith("1 of 5 uses break on Kafka 4.4 (5 answered, 1 one-way, 1 unanswered)")


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_as_a_page_that_needs_nothing_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.html"
    code, _, _ = run(capsys, "audit", old_client(tmp_path), "--to", "4.4", "--html", report)
    page = Page(report.read_text())
    assert code == 1
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert not any(name in ("src", "href") or name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.tags
    words = " ".join(page.text.split())
    assert "1 of 5 uses break." in words and "v2 is too old: Kafka 4.4 supports 3-13" in words
    assert "<script>alert(1)</script>" in words and "TLS: not readable" in words and "no client id" in words
    again = ("audit", old_client(tmp_path), "--to", "3.9", "--html", report)
    code, _, err = run(capsys, *again)
    assert (code, err) == (2, f"kwire: {report}: File exists (--force replaces it)\n")
    run(capsys, *again, "--force")
    assert "Nothing breaks." in report.read_text()


def test_an_older_release_is_no_upgrade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk().open()
    for api, version, request, response in every_version("4.4"):
        if api.name in ("Fetch", "ConsumerGroupHeartbeat", "StreamsGroupTopologyDescriptionUpdate") and version:
            talk.exchange(request, response)
    path, report = write_pcap(tmp_path / "new.pcap", talk.close().bytes()), tmp_path / "report.html"
    code, out, _ = run(capsys, "audit", path, "--to", "3.0", "--html", report)
    words = " ".join(Page(report.read_text()).text.split())
    assert code == 1 and "What breaks on Kafka 3.0" in words
    assert "7 of 16 uses break." in words and "7 of them are too new for it: clients that ask" in words
    assert "pgrade" not in words + out
    with Chromium() as browser:
        for width in (360, 390, 1200):
            browser.open(report, width=width)
            browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert browser.overflow() == 0 and browser.violations() == [], width


def test_the_page_fits_a_phone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.html"
    run(capsys, "audit", old_client(tmp_path), "--to", "4.4", "--html", report)
    measure = "let page = document.documentElement; document.title = page.scrollWidth - page.clientWidth"
    text = report.read_text().replace("<details", "<details open")
    report.write_text(text.replace("</body>", f"<script>{measure}</script></body>"))
    found = rendered(report, width=400)
    assert "<title>0</title>" in found, found[:200]


def test_usage_and_what_is_no_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, junk = old_client(tmp_path), tmp_path / "junk.pcap"
    junk.write_bytes(b"no packets here")
    (tmp_path / "empty").mkdir()
    for code, arguments in [
        (2, ["audit", path]), (2, ["audit", "--to", "4.4"]), (2, ["audit", path, "--to", "9.9"]),
        (2, ["audit", tmp_path / "gone.pcap", "--to", "4.4"]), (2, ["audit", tmp_path / "empty", "--to", "4.4"]),
        (2, ["audit", tmp_path / "*.nothing", "--to", "4.4"]), (2, ["audit", junk, "--to", "4.4"]),
        (2, ["audit", path, "--to", "4.4", "--html", tmp_path / "no" / "folder.html"]),
    ]:  # fmt: skip
        said = run(capsys, *arguments)
        assert said[0] == code and said[2].count("\n") == 1, (arguments, said)
    assert "junk.pcap" in run(capsys, "audit", junk, "--to", "4.4")[2]


def test_folders_globs_and_frame_files_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old_client(tmp_path)
    with FrameWriter(str(tmp_path / "tapped")) as writer:
        writer.write(Connection("", 7, "10.0.0.5:1", "b:9092"), Frame("request", metadata(5)[0], 5_000_000), None)
    (tmp_path / "tapped.ops.jsonl").write_text("{}\n")
    for paths in ([tmp_path], [tmp_path / "old*", tmp_path / "tapped.bin.gz"], [tmp_path / "*"], [tmp_path / "tapped"]):
        _, out, err = run(capsys, "audit", *paths, "--to", "4.4", "--json")
        report = json.loads(out)
        assert not err and len({*report["captures"]}) == len(report["captures"])
        (use,) = [use for use in report["uses"] if use["address"] == "10.0.0.5"]
        assert (use["api"], use["first"]) == ("Metadata", 5_000_000)
