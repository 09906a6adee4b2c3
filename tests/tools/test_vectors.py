"""The generator of vectors: values by seed, damage, what versions lack; and a run for a few messages."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import kwire
from tests.codec import vectors
from tools.kafka.classes import for_release, modules, pom
from tools.vectors import files, judged, messages, values
from tools.vectors.__main__ import main
from tools.vectors.messages import without_tags
from tools.vectors.values import Kind, Maker

SCHEMA: dict[str, Any] = {
    "name": "SampleRequest", "type": "request", "apiKey": 999, "flexibleVersions": "2+", "fields": [
        {"name": "Id", "type": "int32", "versions": "0+", "default": "-1"},
        {"name": "Names", "type": "[]string", "versions": "1+", "nullableVersions": "2+"},
        {"name": "Parts", "type": "[]Part", "versions": "0+", "fields": [
            {"name": "Index", "type": "int64", "versions": "0+"},
            {"name": "Records", "type": "records", "versions": "1+", "nullableVersions": "1+", "ignorable": True},
        ]},
        {"name": "Epoch", "type": "int64", "versions": "2+", "taggedVersions": "2+", "tag": 0, "default": "7"},
    ],
}  # fmt: skip
TARGET = messages.Target("SampleRequest", SCHEMA, "api", "Sample", 0, 2, False, 0)


def made(version: int, kind: Kind) -> dict[str, Any]:
    return Maker("SampleRequest", SCHEMA, version, kind, [b"batch"]).message()


@pytest.mark.quick
def test_defaults() -> None:
    assert made(0, Kind("default", 0)) == {"id": -1, "parts": []}
    assert made(2, Kind("default", 0)) == {"id": -1, "names": [], "parts": [], "epoch": 7}


@pytest.mark.quick
def test_values_are_the_same_in_every_run_and_fit_their_kind() -> None:
    for version in (0, 1, 2):
        for kind in values.kinds(SCHEMA, version):
            assert made(version, kind) == made(version, kind)
    assert [kind.name for kind in values.kinds(SCHEMA, 0)] == ["default"] + ["random"] * 5
    assert {kind.name for kind in values.kinds(SCHEMA, 2)} == {"default", "random", "null", "long", "unknown_tags"}
    assert made(2, Kind("null", 0))["names"] is None
    assert len(made(2, Kind("long", 0))["names"]) == 130
    assert max(len(name) for name in made(2, Kind("long", 1))["names"]) > 16_000
    maker = Maker("SampleRequest", SCHEMA, 2, Kind("unknown_tags", 0), [])
    assert set(maker.message()["_unknownTags"]) == {str(tag) for tag in maker.unknown[""]}
    assert messages.without_tags({"a": [{"_unknownTags": {}, "b": 1}]}) == {"a": [{"b": 1}]}


@pytest.mark.quick
def test_what_a_version_lacks() -> None:
    rows = {(one.path, one.set_to, one.version): one for one in messages.unsupported(TARGET)}
    assert set(rows) == {
        ("names", "non-default", 0), ("names", "null", 1), ("parts[0].records", "non-default", 0),
        ("epoch", "non-default", 0), ("epoch", "non-default", 1),
    }  # fmt: skip
    records = rows["parts[0].records", "non-default", 0]
    assert records.ignorable and records.parents_valid and records.from_version == 2
    assert records.json["parts"] == [{"index": 0, "records": "eP8="}]


@pytest.mark.quick
def test_damage_and_its_outcome() -> None:
    done = list(messages.damage(b"\x00\x05", flexible=False))
    assert [what for what, _ in done[:2]] == [{"len": 0}, {"len": 1}]
    assert ({"pos": 0, "sub": "7f"}, b"\x7f\x05") in done
    assert len(done) == 2 + 3 + 4  # a byte is not replaced by itself
    assert messages.outcome({"remaining": 0}, b"ab") == {"ok": True}
    assert messages.outcome({"remaining": 1, "reencoded": "61"}, b"ab") == {"ok": True, "remaining": 1}
    assert messages.outcome({"remaining": 0, "reencoded": "61"}, b"ab") == {"ok": True, "reencoded": "61"}
    assert messages.outcome({"error": "why"}, b"ab") == {"error": "why"}
    assert len(messages.spread(list("abcdef"), 3)) == 3 and messages.spread(["a"], None) == {"a"}


@pytest.mark.quick
def test_files_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert files.write_lines(tmp_path / f"{name}.gz", [{"x": "é"}, {"y": 1}]) == 2
        files.write_zip(tmp_path / f"{name}.zip", {"one": b"1", "two": b"2" * 1000})
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert list(files.read_lines(tmp_path / "a.gz")) == [{"x": "é"}, {"y": 1}]
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).startswith(b'{"x":"\\u00e9"}\n')


@pytest.mark.quick
def test_modules_and_sources_of_a_release() -> None:
    assert "kafka-share-coordinator" in modules("4.4.0") and "kafka-streams" not in modules("4.4.0")
    assert "kafka-group-coordinator" not in modules("3.3.2") and "kafka-clients" in modules("2.8.2")
    assert "<artifactId>kafka-raft</artifactId><version>3.3.2</version>" in pom("3.3.2", ["kafka-raft"])
    source = "import org.apache.kafka.common.record.internal.Record;\nimport org.apache.kafka.common.Uuid;\n"
    there = {"org/apache/kafka/common/Uuid.class"}
    older = {*there, "org/apache/kafka/common/record/Record.class"}
    assert for_release(source, older) == source.replace("internal.", "")
    assert for_release(source, {*there, "org/apache/kafka/common/record/internal/Record.class"}) == source
    assert for_release(source, there) == source  # in another jar: not for this one to say


@pytest.mark.quick
def test_the_inputs_of_primitives_are_in_the_file() -> None:
    old = json.loads((vectors.FOLDER / "primitives.json").read_text())
    asked = judged.inputs_of(old)
    assert set(asked) == set(old) and all(len(asked[name]) == len(old[name]) for name in old)


@pytest.mark.java
def test_a_few_messages_of_a_release(tmp_path: Path) -> None:
    """The files hold what the tests' own have, and kwire reads them."""
    for run in ("one", "two"):
        into = tmp_path / run
        assert main(["--release", "3.3.2", "--into", str(into), "--sample", "--message", "Heartbeat"]) == 0
    written = sorted(path.name for path in (tmp_path / "one").iterdir())
    for name in written:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert written == [
        "malformed-3.3.2.jsonl.gz", "messages-3.3.2-request.jsonl.gz", "messages-3.3.2-response.jsonl.gz",
        "unsupported-3.3.2.jsonl.gz", "versions-3.3.2.json",
    ]  # fmt: skip
    for kind in ("request", "response"):
        name = f"messages-3.3.2-{kind}.jsonl.gz"
        rows = list(files.read_lines(tmp_path / "one" / name))
        assert rows == [row for row in vectors.lines(name) if row["message"].startswith("Heartbeat")]
        for row in rows:
            message = kwire.decode(row["message"], row["version"], bytes.fromhex(row["hex"]))
            assert without_tags(kwire.to_json(message, row["version"])) == row["json"]
