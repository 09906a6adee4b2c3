"""The oracle itself: it answers, agrees with the vectors, and its absence is a failure that names the cure."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from tools.kafka import maven
from tools.kafka.classes import class_path
from tools.kafka.oracle import NEWEST, Oracle

pytestmark = pytest.mark.java


def test_reads_a_batch_as_the_vectors_say(oracle: Oracle, vectors: Path) -> None:
    with gzip.open(vectors / "records.jsonl.gz", "rt") as lines:
        wanted = {line["name"]: line for line in map(json.loads, lines)}["txn-gzip"]
    with zipfile.ZipFile(vectors / "records.zip") as files:
        answer = oracle.ask("read", hex=files.read(wanted["file"]).hex())
    assert answer["batchIteration"] == "ok"
    assert answer["batches"][0]["records"] == wanted["batches"][0]["records"]


def test_random_messages_survive_their_own_round_trip(oracle: Oracle, old_oracle: Oracle) -> None:
    for source in (oracle, old_oracle):
        for name, facts in source.ask("messages").items():
            version = facts["max"]
            made = source.ask("random", message=name, version=version, seed=1, tags=0.5)
            assert "error" not in made, (name, version, made)
            assert source.ask("decode", message=name, version=version, hex=made["hex"])["json"] == made["json"]
            assert source.ask("encode", message=name, version=version, json=made["json"]) == {"hex": made["hex"]}


def test_an_error_of_kafka_is_an_answer(oracle: Oracle) -> None:
    assert "error" in oracle.ask("decode", message="FetchRequest", version=12, hex="00")
    assert "error" in oracle.ask("no-such-command")


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KWIRE_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("JAVA", raising=False)
    with pytest.raises(maven.MissingTool, match=r"java is missing: apt-get install -y openjdk-17"):
        maven.java()
    with pytest.raises(maven.MissingTool, match=r"mvn is missing: apt-get install -y maven"):
        class_path(NEWEST)
