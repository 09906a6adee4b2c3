"""The pure parts of wire, pcap and golden: archives, lines, made packets, what a machine lacks."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import kwire
from kwire import messages
from kwire.capture import Exchange, read_capture
from tools import archives, clients, golden, pcap, recording, wire
from tools.kafka.maven import MissingTool

pytestmark = pytest.mark.quick


def test_an_archive_keeps_what_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.xz"
    archives.write(path, {"one/a": b"1", "two/b": b"2", "two/c": b"3"})
    archives.replace(path, "two", {"d": b"4"})
    assert archives.read(path) == {"one/a": b"1", "two/d": b"4"}
    before = path.read_bytes()
    archives.write(path, {"two/d": b"4", "one/a": b"1"})
    assert path.read_bytes() == before
    assert archives.read(tmp_path / "none.tar.xz") == {}
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "t-0.deleted").write_bytes(b"")
    (tmp_path / "logs" / "meta.properties").write_bytes(b"version=1")
    assert archives.folder(tmp_path / "logs", golden.LEFT_OUT) == {"meta.properties": b"version=1"}


def test_lines_without_bytes() -> None:
    assert wire.kept('{"seq": 0, "hex": "00", "off": 0}\n') == '{"seq":0,"off":0}\n'


def test_names_of_clusters() -> None:
    assert recording.label("4.3.0", 1) == "4.3.0" and recording.label("4.3.0", 3) == "4.3.0-3nodes"
    assert recording.label("3.9.1", 1, zookeeper=True) == "3.9.1zk"


def test_a_dump_has_the_decoder_of_its_topic() -> None:
    assert golden.dump_options("data1/__consumer_offsets-3/00000000000000000000.log") == ["--offsets-decoder"]
    assert golden.dump_options("data1/orders-0/00000000000000000000.log") == ["--print-data-log", "--deep-iteration"]
    assert golden.dump_options("data1/orders-0/00000000000000000000.timeindex") == []


def test_made_packets_are_read_as_the_frames_were(tmp_path: Path) -> None:
    request = kwire.encode_request(messages.MetadataRequest(), 9, correlation_id=7, client_id="me")
    answer = messages.MetadataResponse(cluster_id="c" * 5000)  # several segments
    response = kwire.encode_response(answer, 9, correlation_id=7)
    data, lines = b"", ""
    for way, frame in (("c2s", request), ("s2c", response)):
        whole = struct.pack(">i", len(frame)) + frame
        row = {"us": 5, "conn": 0, "port": 9092, "dir": way, "off": len(data), "len": len(whole)}
        data, lines = data + whole, lines + json.dumps(row) + "\n"
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap.synthetic(lines, data))
    (seen,) = read_capture(path)
    assert isinstance(seen, Exchange)
    assert seen.request is not None and seen.request.data == request
    assert seen.response is not None and seen.response.data == response


def test_missing_clients_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(MissingTool, match=r"no client sarama; there are java-"):
        clients.commands(["sarama"])
    monkeypatch.setattr(clients, "find_spec", lambda name: None)
    with pytest.raises(MissingTool, match="pip install confluent-kafka"):
        clients.commands(["librdkafka"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="go is missing"):
        clients.commands(["franz-go"])
    with pytest.raises(MissingTool, match="apt-get install -y tcpdump"):
        pcap.tcpdump()
