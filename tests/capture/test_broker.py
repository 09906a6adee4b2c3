"""The tap between kafka-python and a real broker, ended by SIGINT and by SIGKILL; what it recorded is audited."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from kwire.capture import audit
from tests.capture.making import read
from tools.kafka import broker
from tools.kafka.maven import MissingTool
from tools.places import ROOT

pytestmark = pytest.mark.java
MESSAGES = 200


def converse(address: str, topic: str) -> None:
    """Produces with acks=1 and acks=0, and consumes all of the first."""
    producer = KafkaProducer(bootstrap_servers=address, client_id="tapped-producer", acks=1)
    for number in range(MESSAGES):
        producer.send(topic, b"value %d" % number, key=b"k")
    producer.flush(60)
    producer.close(60)
    hurried = KafkaProducer(bootstrap_servers=address, client_id="tapped-hurried", acks=0)
    hurried.send(f"{topic}-0", b"one").get(60)
    hurried.close(60)
    consumer = KafkaConsumer(topic, bootstrap_servers=address, client_id="tapped-consumer", group_id=topic,
                             auto_offset_reset="earliest", consumer_timeout_ms=60_000)
    seen = [record.value for _, record in zip(range(MESSAGES), consumer, strict=False)]
    consumer.close()
    assert seen == [b"value %d" % number for number in range(MESSAGES)]


def test_a_client_through_the_tap(tmp_path: Path) -> None:
    inner, outer = broker.free_ports(2)
    options = broker.Options("4.4.0", tmp_path / "broker", heap="256m", c1=True,
                             extra_listeners=[f"TAP:PLAINTEXT:{inner}:{outer}"])
    try:
        running = broker.start(options)
    except MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
    with running:
        for how in (signal.SIGINT, signal.SIGKILL):
            name = tmp_path / how.name
            tap = subprocess.Popen(
                [sys.executable, "-m", "kwire", "tap", "--listen", f"{broker.HOST}:{outer}", "--target",
                 f"{broker.HOST}:{inner}", "--out", str(name)], cwd=ROOT, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                assert tap.stderr is not None and "listening on" in tap.stderr.readline()
                converse(f"{broker.HOST}:{outer}", how.name.lower())
                time.sleep(2.5 if how == signal.SIGKILL else 0)  # twice the second after which all is on disk
            finally:
                tap.send_signal(how)
                _, said = tap.communicate(timeout=30)
            assert tap.returncode == (0 if how == signal.SIGINT else -signal.SIGKILL), said
            check(Path(f"{name}.jsonl.gz"), killed=how == signal.SIGKILL)


def check(path: Path, killed: bool) -> None:
    """Every frame is in the recording, paired, and decodes."""
    exchanges, lost = read(path)
    assert bool(lost) == killed and all("truncated gzip stream" in one.reason for one in lost)
    seen = Counter((one.client_id, one.api) for one in exchanges)
    for client_id, api in [("tapped-producer", "Produce"), ("tapped-hurried", "Produce"), ("tapped-consumer", "Fetch"),
                           ("tapped-consumer", "JoinGroup"), ("tapped-consumer", "OffsetCommit")]:  # fmt: skip
        assert seen[client_id, api], (client_id, api, seen)
    outcomes = Counter((one.client_id, one.api, one.outcome) for one in exchanges if one.outcome != "answered")
    assert outcomes["tapped-hurried", "Produce", "one-way"] == 1
    assert not any(outcome == "lost" for _, _, outcome in outcomes)
    for one in exchanges:
        one.to_json()
    found = audit(path, "4.4")
    assert not found.breaks and all("kafka-python" in (use.user.software or "") for use in found.uses)
    assert {use.user.address for use in found.uses} == {broker.HOST}
