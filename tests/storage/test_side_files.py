"""The files beside segments as rows: as kafka-dump-log prints them, by name, by content, damaged."""

from __future__ import annotations

import json
from pathlib import Path
from struct import pack

import pytest

import kwire
from kwire.storage import read_side_file, side_file_kind
from tests.storage.making import producer_snapshot

pytestmark = pytest.mark.quick


def runs(golden: Path, *endings: str) -> list[tuple[Path, list[str]]]:
    """(file, lines that the tool printed of it) of the runs over files of these names."""
    found = []
    for run in map(json.loads, (golden / "dump-log" / "kafka-4.3.0.jsonl").read_text().splitlines()):
        if run["cmd"][2].endswith(endings) and len(run["cmd"]) == 3:
            lines = (golden / "dump-log" / run["stdout_file"]).read_text().splitlines()[1:]
            found.append((golden / run["cwd"] / run["cmd"][2], lines))
    return found


def test_the_entries_that_kafka_dump_log_prints(golden: Path) -> None:
    counts: dict[str, int] = {}
    for path, lines in runs(golden, ".index", ".timeindex", ".txnindex", ".snapshot"):
        file = read_side_file(path)
        assert file.damage is None
        counts[file.kind] = counts.get(file.kind, 0) + len(file.rows)
        for row, line in zip(file.rows, lines, strict=True):
            fields = dict(zip(file.columns, row, strict=True))
            words = line.split()
            told = dict(zip((word.rstrip(":") for word in words[::2]), words[1::2], strict=True))
            for name, value in told.items():
                mine = NAMES.get(name, name)
                if mine in fields and value.lstrip("-").isdigit():
                    assert fields[mine] == int(value), (path, line, name)
    assert counts == {"producer snapshot": 80, "offset index": 25, "time index": 26, "transaction index": 17}


NAMES = {
    "producerId": "producer_id", "producerEpoch": "producer_epoch", "coordinatorEpoch": "coordinator_epoch",
    "lastSequence": "last_sequence", "offsetDelta": "offset_delta", "firstOffset": "first_offset",
    "lastOffset": "last_offset", "lastStableOffset": "last_stable_offset", "lastTimestamp": "timestamp",
}  # fmt: skip


def test_every_file_of_real_brokers_but_segments(golden: Path) -> None:
    counts: dict[str, int] = {}
    for path in sorted(golden.glob("data/*/data*/**/*")):
        kind = side_file_kind(path)
        if kind is not None:
            file = read_side_file(path)
            assert (file.damage, file.kind) == (None, kind)
            counts[kind] = counts.get(kind, 0) + 1
        else:
            assert path.is_dir() or path.suffix in (".log", ".checkpoint") or path.name == ".kafka_cleanshutdown"
    assert min(counts.values()) > 3 and len(counts) == 9


TEXTS = {
    "leader epochs": ("leader-epoch-checkpoint", b"0\n2\n0 0\n3 17\n", [(0, 0), (3, 17)]),
    "offset checkpoint": ("recovery-point-offset-checkpoint", b"0\n1\nt-x 3 9\n", [("t-x", 3, 9)]),
    "partition metadata": ("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
                           [(0, "AAAAAAAAAAAAAAAAAAAAAQ")]),
    "meta.properties": ("meta.properties", b"#\n#Sat\nnode.id=1\ncluster.id: a\\u003d\\\nb\n",
                        [("node.id", "1"), ("cluster.id", "a=b")]),
    "quorum state": ("quorum-state", b'{"leaderId":1,"leaderEpoch":2}', [("leaderId", 1), ("leaderEpoch", 2)]),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_files_by_name_and_by_content(tmp_path: Path, kind: str) -> None:
    name, content, rows = TEXTS[kind]
    for file in (tmp_path / name, tmp_path / "copy"):
        file.write_bytes(content)
        assert side_file_kind(file) == kind
        assert list(read_side_file(file).rows) == rows


@pytest.mark.parametrize(("name", "content", "text"), [
    ("leader-epoch-checkpoint", b"0\n2\n0 0\n", "expected 2 entries in the leader epoch checkpoint, found 1"),
    ("x-checkpoint", b"0\n1\nt 3\n", 'expected "topic partition offset" in line 3, found \'t 3\''),
    ("x-checkpoint", b"1\n0\n", "unrecognized version 1 of the offset checkpoint, expected 0"),
    ("x-checkpoint", b"0\n", "expected the number of entries in line 2"),
    ("x-checkpoint", b"0\n1\n" + b"\xff\n", "not UTF-8 text"),
    ("x-checkpoint", b"0\n1\nt 1 99999999999999999999999\n", "'99999999999999999999999' is not an integer"),
    ("x-checkpoint", b"0\n1\nt 1 9999999999999999999\n", "'9999999999999999999' is not an integer of 64 bits"),
    ("x-checkpoint", b"0\n1\nt 2147483648 1\n", "'2147483648' is not an integer of 32 bits"),
    ("x-checkpoint", b"-2147483649\n0\n", "'-2147483649' is not an integer of 32 bits"),
    ("leader-epoch-checkpoint", b"0\n1\n2147483648 1\n", "'2147483648' is not an integer of 32 bits"),
    ("leader-epoch-checkpoint", b"0\n1\n0 9223372036854775808\n", "is not an integer of 64 bits"),
    (f"{(1 << 63) - 1:020}.index", pack(">iI", (1 << 31) - 1, 0), "offset 9223372039002259454 is past the largest one"),
    (f"{(1 << 63) - 1:020}.timeindex", pack(">qi", 1, 1), "offset 9223372036854775808 is past the largest one"),
    ("quorum-state", b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}", "malformed quorum state: too many levels"),
    ("quorum-state", b'{"a": [{"\\ud800": 1}]}', "malformed quorum state: a lone surrogate"),
    ("partition.metadata", b"version: 0\n", "topic_id is missing"),
    ("meta.properties", b"node.id=\\u00\n", "Malformed"),
    ("quorum-state", b"[" * 100_000, "malformed quorum state: too many levels"),
    ("quorum-state", b"9" * 5000, "malformed quorum state: a number of too many digits"),
    ("quorum-state", b"[1]", "expected a JSON object"),
    ("1.snapshot", b"\0\1", "producer snapshot of 2 bytes"),
    ("other", b"some bytes", "expected an index, a producer snapshot or a checkpoint file"),
])
def test_files_that_are_malformed(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(kwire.DecodeError) as caught:
        read_side_file(path)
    assert text in str(caught.value) and str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_indexes_with_damage_and_padding(tmp_path: Path) -> None:
    path = tmp_path / f"{100:020}.index"
    path.write_bytes(pack(">iiii", 5, 70, 9, 140) + bytes(80))
    file = read_side_file(path)
    assert (list(file.rows), file.padding, file.damage) == ([(105, 70), (109, 140)], 10, None)
    path.write_bytes(pack(">iiii", 5, 70, 4, 140) + b"x")
    file = read_side_file(path)
    assert list(file.rows) == [(105, 70), (104, 140)] and file.damage is not None
    times = tmp_path / f"{100:020}.timeindex.deleted"
    times.write_bytes(pack(">qi", 1000, 5))
    assert (side_file_kind(times), list(read_side_file(times).rows)) == ("time index", [(1000, 105)])
    aborted = tmp_path / "copy.txnindex"
    aborted.write_bytes(pack(">hqqqq", 0, 7, 9, 3, 12))
    file = read_side_file(aborted)
    assert list(file.rows) == [(0, 7, 9, 3, 12)] and file.damage == "invalid entry (0, 7, 9, 3, 12)"


def test_limits(tmp_path: Path) -> None:
    for name, size in (("1.index", 65 << 20), ("meta.properties", 2 << 20), ("1.snapshot", 65 << 20)):
        path = tmp_path / name
        with open(path, "wb") as file:
            file.truncate(size)
        with pytest.raises(kwire.LimitError, match=str(path)):
            read_side_file(path)
    with pytest.raises(FileNotFoundError):
        read_side_file(tmp_path / "none.index")


def test_folders_are_none(tmp_path: Path) -> None:
    for name in ("topic.index", "my-checkpoint", "meta.properties"):
        (tmp_path / name).mkdir()
        assert side_file_kind(tmp_path / name) is None


def test_a_producer_snapshot(tmp_path: Path) -> None:
    file = read_side_file(producer_snapshot(tmp_path, 9, {4: 7, 5: -1}))
    assert [(row[0], row[-1]) for row in file.rows] == [(4, 7), (5, -1)]
    assert file.columns[0] == "producer_id" and file.columns[-1] == "current_transaction_first_offset"
