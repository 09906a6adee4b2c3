"""Salvage: seeded damages of golden segments lose only the damaged batches; kills leave the old or the new."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kwire
from kwire.storage import LogDirectory, LogSegment, SegmentWriter, salvage_log
from kwire.storage.salvage import salvage as module
from kwire.storage.side_files.checkpoints import read_leader_epochs, read_offset_checkpoint, read_producer_snapshot
from tests.storage.making import batch, in_transaction, marker, producer_snapshot, write_segment

Range = tuple[int, int]
DAMAGES, SOAKED = 1000, 40_000  # seeds: of the test that make test runs, of the one of make soak


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the tests is not waited for."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def segments(golden: Path) -> list[Path]:
    paths = [*golden.glob("data/*/*/*/*.log"), *golden.glob("old-brokers/*/*/*.log")]
    found = [path for path in sorted(paths) if path.stat().st_size]
    assert len(found) > 200
    return found


def damage(data: bytes, chance: random.Random) -> tuple[bytes, Range]:
    """The bytes with one damage, and the range of bytes that it may have changed (empty: between two bytes)."""
    out, at, kind = bytearray(data), chance.randrange(len(data)), chance.randrange(8)
    if kind == 7:  # in the header of a batch
        at = chance.choice(list(kwire.read_batches(data))).position + chance.randrange(17)
    size = min(chance.choice((1, 4, 30, 300, 3000)), len(data) - at)
    if kind in (0, 7):
        out[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        out[at : at + size] = bytes(size)
    elif kind == 2:
        out[at : at + size] = chance.randbytes(size)
    elif kind == 3:
        del out[at : at + size]
    elif kind == 4:
        del out[at:]
    else:
        source = chance.randrange(len(data))
        out[at:at] = chance.randbytes(size) if kind == 5 else data[source : source + size]
    changed = bytes(out)
    ends = alike(data, changed), len(data) - alike(data[::-1], changed[::-1])
    return changed, (min(ends), max(ends))


def alike(one: bytes, other: bytes) -> int:
    """Bytes that are the same at the beginning of both."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def touched(one: Any, damaged: Range) -> bool:
    start, end = damaged
    if start == end:
        return bool(one.position < start < one.position + one.size)
    return bool(one.position < end and start < one.position + one.size)


def same(one: bytes, other: bytes, epoch: int = 12) -> bool:
    """The same batch, but for the leader epoch (at that byte), which no checksum protects."""
    return one[:epoch] + one[epoch + 4 :] == other[:epoch] + other[epoch + 4 :]


def check_kept(data: bytes, changed: bytes, damaged: Range, kept: list[Any], *, whole: bool) -> int:
    """Only damaged batches are lost, and nothing is in it that was not. whole: the rest of the partition is known."""
    grown = len(changed) > len(data)
    original = list(kwire.read_batches(data))
    ours = [one.raw for one in kept]
    wanted = [one.raw for one in original if not touched(one, damaged)]
    # where a piece of the log itself was put in, a batch after it may seem to be of that piece
    assert sum(one not in ours for one in wanted) <= grown
    known = {one.raw for one in original}
    last, gaps = original[-1], any(one.last_offset + 1 != other.base_offset for one, other in pairwise(original))
    for one in kept:
        if one.raw in known:
            continue
        hit = [other for other in original if touched(other, damaged)]
        if grown and any(one.raw[16:] == other.raw[16:] for other in original):  # that piece, at another offset
            continue
        assert hit, "not of the log"
        # nothing contradicts another base offset after a gap, after the damaged batches, or at the end
        if any(same(one.raw[8:], other.raw[8:], 4) and damaged[0] < other.position + 16 and (
                gaps or (not whole and other is last) or damaged[0] < other.position) for other in hit):
            continue
        if hit[0].magic < 2 and hit[0].codec != "none":  # a message in a damaged wrapper
            assert hit[0].base_offset <= one.base_offset <= hit[0].last_offset
        else:
            assert any(same(one.raw, other.raw) for other in hit)
    offsets = [one.base_offset for one in kept]
    assert offsets == sorted(set(offsets))
    return len(original) - len(ours)


def check_file(path: Path, seed: int, work: Path) -> int:
    chance = random.Random(seed)
    data = path.read_bytes()
    changed, damaged = damage(data, chance)
    source, target = work / path.name, work / "out"
    source.write_bytes(changed)
    done = salvage_log(source, target)
    assert source.read_bytes() == changed
    clean = LogDirectory(target)
    lost = check_kept(data, changed, damaged, list(clean.batches()), whole=False)
    offset_of_wrapper = path.parts[-4] == "old-brokers" and len(changed) == len(data) and damaged[1] - damaged[0] == 1
    assert clean.verify() == [] or offset_of_wrapper
    # it ends with a whole batch, only earlier, or with zeros as a preallocated one
    unseen = len(changed.rstrip(b"\0")) <= sum(len(one.raw) for one in clean.batches())
    assert lost <= 0 or done.lost or unseen
    again = salvage_log(target, work / "again")
    assert not again.lost and not again.partitions[0].repaired
    shutil.rmtree(target)
    shutil.rmtree(work / "again")
    source.unlink()
    return lost


@pytest.mark.parametrize("part", range(4))
def test_damaged_segments_lose_only_the_damaged_batches(part: int, segments: list[Path], tmp_path: Path) -> None:
    lost = sum(check_file(random.Random(~seed).choice(segments), seed, tmp_path) for seed in range(part, DAMAGES, 4))
    assert lost > DAMAGES // 8


@pytest.mark.soak
@pytest.mark.parametrize("part", range(8))
def test_many_damages(part: int, segments: list[Path], tmp_path: Path) -> None:
    for seed in range(DAMAGES + part, SOAKED, 8):
        check_file(random.Random(~seed).choice(segments), seed, tmp_path)


def check_partition(folder: Path, seed: int, work: Path) -> None:
    """Damages in some of the segments of a partition, and in files beside them."""
    chance = random.Random(seed)
    source, target = work / folder.name, work / "out"
    shutil.copytree(folder, source)
    ranges: dict[str, Range] = {}
    for path in sorted(source.iterdir()):
        data = path.read_bytes()
        path.chmod(0o644)
        if path.suffix == ".log" and data and chance.random() < 0.7:
            changed, ranges[path.name] = damage(data, chance)
            path.write_bytes(changed)
        elif path.suffix in (".index", ".timeindex", ".txnindex") and data and chance.random() < 0.3:
            path.write_bytes(damage_of_index(data, chance))
    before = {path.name: path.read_bytes() for path in source.iterdir()}
    done = salvage_log(source, target)
    assert {path.name: path.read_bytes() for path in source.iterdir()} == before
    for path in sorted(folder.glob("*.log")):
        kept = list(LogSegment(target / path.name).batches()) if (target / path.name).exists() else []
        data, changed = path.read_bytes(), before[path.name]
        lost = check_kept(data, changed, ranges.get(path.name, (-1, -1)), kept, whole=True)
        assert lost <= 0 or done.lost or not any(changed)
    assert LogDirectory(target).verify() == []
    assert (target / "partition.metadata").exists() == (folder / "partition.metadata").exists()
    assert not salvage_log(target, work / "again").lost
    for name in (folder.name, "out", "again"):
        shutil.rmtree(work / name)


def damage_of_index(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    out[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(out)


@pytest.fixture(scope="module")
def folders(golden: Path) -> list[Path]:
    found = {path.parent for path in golden.glob("data/*/*/*/*.log") if path.stat().st_size}
    return sorted(found)


def test_damaged_partitions(folders: list[Path], tmp_path: Path) -> None:
    for seed in range(300):
        check_partition(random.Random(~seed).choice(folders), seed, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(8))
def test_many_damaged_partitions(part: int, folders: list[Path], tmp_path: Path) -> None:
    for seed in range(300 + part, 10_000, 8):
        check_partition(random.Random(~seed).choice(folders), seed, tmp_path)


# what it is given, what it writes


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """Two partitions, the second one with a damaged batch (offsets 3 to 5); files of a broker beside."""
    folder = tmp_path / "logs"
    for name in ("t-0", "u-1"):
        topic, number = name.split("-")
        with SegmentWriter(folder, topic, int(number)) as writer:
            for base in range(0, 12, 3):
                writer.append(batch(base))
            writer.roll()
            writer.append(batch(12, producer_id=4, producer_epoch=0, base_sequence=0))
        (folder / name / "partition.metadata").write_text("version: 0\ntopic_id: oPyZk1R3QKK0vMHPsMy1aA")
        (folder / name / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    damage_batch(folder / "u-1" / f"{0:020}.log", 1)
    (folder / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")
    (folder / "log-start-offset-checkpoint").write_text("0\n2\nt 0 2\nu 1 99\n")
    (folder / "replication-offset-checkpoint").write_text("0\n2\nt 0 15\nu 1 15\n")
    (folder / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 15\n")
    (folder / ".kafka_cleanshutdown").write_text("{}")
    return folder


def damage_batch(path: Path, number: int, at: int = 70) -> None:
    """Change a byte of one batch of a segment."""
    data = bytearray(path.read_bytes())
    position = list(kwire.read_batches(bytes(data), verify_crc=False))[number].position
    data[position + at] ^= 0x10
    path.write_bytes(data)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.quick
def test_a_log_directory(log_directory: Path, tmp_path: Path) -> None:
    before = tree(log_directory)
    (log_directory / "t-0.0123abcd-delete").mkdir()
    (log_directory / "notes.txt").write_text("mine")
    target = tmp_path / "clean"
    done = salvage_log(log_directory, target)
    (loss,) = done.lost
    assert (loss.path, loss.first_offset, loss.last_offset) == (str(log_directory / "u-1" / f"{0:020}.log"), 3, 5)
    assert loss.reason == "checksum does not match"
    assert [Path(path).name for path in done.not_copied] == ["t-0.0123abcd-delete", "notes.txt"]
    after = tree(target)
    changed = {name for name in before if after.get(name) != before[name]}
    log = f"u-1/{0:020}.log"
    assert changed == {log, ".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"}
    assert after.keys() <= before.keys()
    assert read_offset_checkpoint(target / "log-start-offset-checkpoint") == [("t", 0, 2)]  # u's is after its end
    (log_directory / "replication-offset-checkpoint").write_text("0\n3\nt 0 7\nu 1 99\nv 3 4\n")
    salvage_log(log_directory, tmp_path / "again")
    assert read_offset_checkpoint(tmp_path / "again" / "replication-offset-checkpoint") == [("t", 0, 7), ("u", 1, 15)]
    kept = LogDirectory(target)
    assert kept.verify() == []
    assert [record.offset for record in kept["u", 1].read()] == [0, 1, 2, *range(6, 15)]
    (one, two) = done.partitions
    assert (one.first_offset, one.next_offset, one.segments, one.batches) == (0, 15, 2, 5)
    assert (two.offsets_lost, two.bytes_lost, two.batches) == (3, loss.size, 4)
    assert json.loads(json.dumps(done.to_json()))["offsets_lost"] == 3


@pytest.mark.quick
def test_some_topics_of_a_log_directory(log_directory: Path, tmp_path: Path) -> None:
    assert not salvage_log(log_directory, tmp_path / "one", topics=["t"]).lost
    assert sorted(path.name for path in (tmp_path / "one").glob("*-[0-9]")) == ["t-0"]
    with pytest.raises(FileNotFoundError, match="no log segments found"):
        salvage_log(log_directory, tmp_path / "two", partitions=[7])
    assert not (tmp_path / "two").exists()


@pytest.mark.quick
def test_a_segment_to_a_name(log_directory: Path, tmp_path: Path) -> None:
    source, target = log_directory / "u-1" / f"{0:020}.log", tmp_path / "clean.log"
    assert len(salvage_log(source, target).lost) == 1
    names = ["clean.index", "clean.log", "clean.timeindex"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == names
    assert LogSegment(target).verify() == []
    assert [record.offset for record in LogSegment(target).read()] == [0, 1, 2, *range(6, 12)]
    with pytest.raises(FileExistsError, match="--force"):
        salvage_log(source, target)
    (tmp_path / "clean.txnindex").write_bytes(b"of another one")
    salvage_log(log_directory / "t-0" / f"{12:020}.log", target, force=True)
    assert [record.offset for record in LogSegment(target).read()] == [12, 13, 14]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == names


@pytest.mark.quick
def test_what_replaces_a_private_segment_is_private(
    log_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexes too, and where they are written first: a metadata log holds keys of SCRAM users."""
    target, put, seen = tmp_path / "clean.log", module._put, list[int]()
    target.touch(0o600)

    def noted(folder: str, path: str) -> None:
        seen.append(os.stat(folder).st_mode & 0o777)
        put(folder, path)

    monkeypatch.setattr(module, "_put", noted)
    salvage_log(log_directory / "t-0" / f"{12:020}.log", target, force=True)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_file()}
    assert modes == dict.fromkeys(("clean.log", "clean.index", "clean.timeindex"), 0o600)
    assert seen == [0o700]


@pytest.mark.quick
def test_names_that_give_a_base_offset(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 100, [batch(base) for base in range(103, 3000, 3)])
    damage_batch(path, 0)
    for target, base in (("x.log", 106), (f"{50:020}.log", 50), ("folder", 100)):
        salvage_log(path, tmp_path / target)
        log = tmp_path / target if target.endswith(".log") else tmp_path / target / f"{base:020}.log"
        segment = LogSegment(log)
        assert segment.base_offset == base
        assert segment.verify() == []
        assert segment.index is not None and len(segment.index.entries) > 5
    with pytest.raises(kwire.KwireError, match="offset 106 is below the base offset 200"):
        salvage_log(path, tmp_path / f"{200:020}.log")
    assert not (tmp_path / f"{200:020}.log").exists()


@pytest.mark.quick
def test_what_is_refused(log_directory: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    full, segment = tmp_path / "full", log_directory / "t-0" / f"{0:020}.log"
    full.mkdir()
    (full / "x").write_text("x")
    for source, target, error, message in (
        (log_directory, full, FileExistsError, "not an empty folder"),
        (log_directory, segment, FileExistsError, "folder that is read"),
        (log_directory, log_directory, FileExistsError, "folder that is read"),
        (log_directory, log_directory / "clean", FileExistsError, "folder that is read"),
        (segment, segment, FileExistsError, "is read"),
        (segment, log_directory / "t-0", FileExistsError, "not an empty folder"),
        (tmp_path / "missing", tmp_path / "out", FileNotFoundError, "No such file"),
        (full, tmp_path / "out", FileNotFoundError, "no log segments"),
        (segment, tmp_path / "no" / "such" / "folder", FileNotFoundError, "No such file"),
        (segment, tmp_path / "no" / "such" / "x.log", FileNotFoundError, "No such file"),
        ("s3://bucket/logs", tmp_path / "out", kwire.KwireError, "local files"),
    ):
        with pytest.raises(error, match=message) as refused:
            salvage_log(source, target)
        assert ".partial" not in str(refused.value)
    with pytest.raises(FileExistsError, match="is read"):
        salvage_log(segment, segment, force=True)
    shutil.rmtree(full)
    assert tree(tmp_path) == before


@pytest.mark.quick
def test_messages_of_magic_0_and_1(tmp_path: Path) -> None:
    """A compressed one whose offset is damaged contradicts its records; one that is too large is not looked into."""
    records = [(1, b"k", bytes(30)) for _ in range(5)]
    made = [kwire.build_batch(records, base_offset=5 * at, magic=at % 2, codec="gzip") for at in range(6)]
    large = kwire.build_batch([(1, None, bytes(66 << 20))], base_offset=30, magic=0, codec="gzip")
    path = write_segment(tmp_path / "t-0", 0, [])
    path.write_bytes(b"".join([*made, large]))
    assert not salvage_log(path, tmp_path / "one").lost
    assert (tmp_path / "one" / path.name).read_bytes() == path.read_bytes()
    data = bytearray(path.read_bytes())
    at = sum(map(len, made[:3]))
    data[at : at + 8] = (16).to_bytes(8, "big")  # of offsets 15 to 19
    path.write_bytes(data)
    (loss,) = salvage_log(path, tmp_path / "two").lost
    assert loss[1:] == (at, len(made[3]), 15, 19, "base offset 12 is out of order")


@pytest.mark.quick
def test_compressed_segments(log_directory: Path, tmp_path: Path) -> None:
    folder = log_directory / "u-1"
    for path in folder.glob("*.log"):
        path.with_suffix(".log.gz").write_bytes(gzip.compress(path.read_bytes()))
    wanted = salvage_log(folder, tmp_path / "one").to_json()["partitions"]
    (folder / f"{0:020}.log").unlink()
    assert [loss[1:] for loss in salvage_log(folder, tmp_path / "two").lost] == [
        tuple(wanted[0]["lost"][0].values())[1:]]
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    salvage_log(folder / f"{0:020}.log.gz", tmp_path / "x.log")
    assert LogSegment(tmp_path / "x.log").verify() == []


@pytest.mark.quick
def test_into_an_empty_folder(log_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    salvage_log(log_directory / "t-0", tmp_path / "clean")
    assert LogDirectory(tmp_path / "clean").verify() == []


@pytest.mark.quick
def test_damaged_files_beside(log_directory: Path, tmp_path: Path) -> None:
    folder = log_directory / "t-0"
    (folder / "partition.metadata").write_text("nonsense")
    (folder / "quorum-state").write_text("{not json")
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n")
    (folder / f"{9:020}-{1:010}.checkpoint").write_bytes(batch(0)[:-1] + b"!")
    (folder / f"{12:020}.snapshot").write_bytes(b"nonsense")
    done = salvage_log(folder, tmp_path / "clean")
    assert [(Path(loss.path).name, loss.reason.partition(":")[0]) for loss in done.files_lost] == [
        (f"{9:020}-{1:010}.checkpoint", "checksum does not match"),
        ("partition.metadata", "malformed partition metadata"), ("quorum-state", "not a JSON object")]
    kept = tree(tmp_path / "clean")
    assert "partition.metadata" not in kept and "quorum-state" not in kept
    assert read_leader_epochs(tmp_path / "clean" / "leader-epoch-checkpoint") == []  # the batches have none
    assert read_producer_snapshot(tmp_path / "clean" / f"{12:020}.snapshot") == []


@pytest.mark.quick
@pytest.mark.parametrize("line", ["2147483648 0", "-1 0", "0 -1", "0 9223372036854775808"])
def test_leader_epochs_that_a_broker_refuses_are_made_again(line: str, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0, partition_leader_epoch=3)])
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n1\n{line}\n")
    salvage_log(tmp_path / "t-0", tmp_path / "clean")
    assert read_leader_epochs(tmp_path / "clean" / "leader-epoch-checkpoint") == [(3, 0)]


@pytest.mark.quick
def test_files_that_are_not_read_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    log = write_segment(folder, 0, [batch(0), batch(3)])
    (folder / "0.log").write_bytes(batch(6))  # the same base offset
    Path(f"{log}.gz").write_bytes(gzip.compress(log.read_bytes() + batch(6)))  # gunzip -k, stopped
    (folder / f"{log.stem} (1).log").write_bytes(batch(6))
    (folder / f"{log.stem}-old.index").write_bytes(b"")
    done = salvage_log(folder, tmp_path / "clean")
    expected = sorted([f"{log.stem} (1).log", f"{log.stem}-old.index", f"{log.stem}.log.gz", "0.log"])
    assert [Path(path).name for path in done.not_copied] == expected and not done.lost
    assert (tmp_path / "clean" / log.name).read_bytes() == log.read_bytes()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("base", "cleaned", "is_lost"), [(6, None, True), (0, None, False), (6, 6, False), (6, 7, True)])
def test_a_compaction_that_was_interrupted(base: int, cleaned: int | None, is_lost: bool, tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [batch(0)])
    write_segment(folder, 12, [batch(12)])
    swap = folder / f"{base:020}.log.swap"
    swap.write_bytes(batch(base))
    if cleaned is not None:
        (folder / f"{cleaned:020}.log.cleaned").write_bytes(batch(cleaned))
    done = salvage_log(folder)
    assert [loss.path for loss in done.files_lost] == [str(swap)] * is_lost
    assert (str(swap) in done.not_copied) is not is_lost
    findings = [found.path for found in LogDirectory(folder).verify() if found.kind == "segments"]
    assert findings == [str(swap)] * is_lost


@pytest.mark.quick
def test_a_leader_epoch_out_of_order(tmp_path: Path) -> None:
    epochs = [3, 3, 9, 3, 4, -7, 4, 1, 5, 5]
    path = write_segment(
        tmp_path / "t-0", 0, [batch(3 * at, partition_leader_epoch=epoch) for at, epoch in enumerate(epochs)])
    done = salvage_log(tmp_path / "t-0", tmp_path / "out")
    assert not done.lost
    kept = list(LogDirectory(tmp_path / "out").batches())
    assert [one.partition_leader_epoch for one in kept] == [3, 3, 3, 3, 4, 4, 4, 4, 5, 5]
    where = [one.position for at, one in enumerate(kept) if at in (2, 5, 7)]
    assert done.partitions[0].repaired == [(str(path), position) for position in where]
    path.write_bytes(path.read_bytes() + batch(30, partition_leader_epoch=99))
    assert len(salvage_log(tmp_path / "t-0", tmp_path / "two").partitions[0].repaired) == 3
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n5 24\n")  # it ended in epoch 5
    assert len(salvage_log(tmp_path / "t-0", tmp_path / "three").partitions[0].repaired) == 4
    assert list(LogDirectory(tmp_path / "three").batches())[-1].partition_leader_epoch == 5


@pytest.mark.quick
def test_transactions(tmp_path: Path) -> None:
    """An abort marker that is kept is listed; one that is lost leaves its transaction open."""
    made = [in_transaction(0, 1), in_transaction(3, 2), marker(6, 1, False), marker(7, 2, False), in_transaction(8, 3)]
    path = write_segment(tmp_path / "t-0", 0, made)
    damage_batch(path, 3)
    done = salvage_log(tmp_path / "t-0", tmp_path / "out")
    assert [(loss.first_offset, loss.last_offset) for loss in done.lost] == [(7, 7)]
    assert done.partitions[0].open_transactions == [(3, 2), (8, 3)]
    segment = LogDirectory(tmp_path / "out").segments[0]
    assert segment.transaction_index is not None
    assert [tuple(entry) for entry in segment.transaction_index.entries] == [(0, 1, 0, 6, 3)]
    assert segment.verify() == []


@pytest.mark.quick
def test_offsets_that_were_lost(tmp_path: Path) -> None:
    """Between batches, at both ends of segments, after the last one as far as a producer snapshot or header says."""
    folder = tmp_path / "t-0"
    with SegmentWriter(tmp_path, "t", 0) as writer:
        for base in range(0, 30, 3):
            if base in (9, 21):
                writer.roll()
            writer.append(batch(base))
    first, second, third = sorted(folder.glob("*.log"))
    damage_batch(first, 0)
    damage_batch(second, 3)
    damage_batch(third, 0)
    damage_batch(third, 1)
    third.write_bytes(third.read_bytes()[:-1])
    done = salvage_log(folder, tmp_path / "out")
    assert [(loss.first_offset, loss.last_offset) for loss in done.lost] == [
        (0, 2), (18, 20), (21, 23), (24, 26), (27, 29)]
    assert str(done.lost[4]).endswith("bytes lost, offsets 27 to 29: partial last batch")
    assert done.partitions[0].offsets_lost == 15
    (folder / f"{30:020}.snapshot").unlink()
    third.write_bytes(third.read_bytes()[:-10])
    assert salvage_log(folder, tmp_path / "two").lost[4][3:5] == (27, 29)  # by its header
    third.write_bytes(third.read_bytes()[:-110])
    (loss,) = salvage_log(folder, tmp_path / "three").lost[4:]
    assert loss[3:5] == (27, -1) and "offsets from 27 on" in str(loss)
    for path, last in ((third, 20), (second, 11)):  # cut at the end of a batch, which only the snapshot tells
        path.write_bytes(path.read_bytes()[: sum(len(batch(base)) for base in range(9, last, 3))])
    shutil.rmtree(folder)
    with SegmentWriter(tmp_path, "t", 0) as writer:
        writer.append(batch(0))
        writer.append(batch(3))
    (path,) = folder.glob("*.log")
    path.write_bytes(path.read_bytes()[: len(batch(0))])
    (loss,) = salvage_log(folder, tmp_path / "four").lost
    assert loss[1:] == (len(batch(0)), 0, 3, 5, "the log ends here, but a producer snapshot says that it went on to "
                        "offset 5")


@pytest.mark.quick
@pytest.mark.parametrize("at", [0, 1, 5, 8, 9])
@pytest.mark.parametrize("shift", [-2, 2, 65536])
def test_a_wrong_base_offset(at: int, shift: int, tmp_path: Path) -> None:
    """It is in no checksum: the batch whose offsets do not fit to the others is lost, and no other one."""
    with SegmentWriter(tmp_path, "t", 0, base_offset=10) as writer:
        for base in range(10, 40, 3):
            writer.append(batch(base))
    (path,) = (tmp_path / "t-0").glob("*.log")
    data = bytearray(path.read_bytes())
    position = [one.position for one in kwire.read_batches(bytes(data))][at]
    data[position : position + 8] = (10 + 3 * at + shift).to_bytes(8, "big")
    path.write_bytes(data)
    done = salvage_log(tmp_path / "t-0", tmp_path / "out")
    assert [loss[3:5] for loss in done.lost] == [(10 + 3 * at, 12 + 3 * at)]
    assert "out of order" in done.lost[0].reason
    assert [one.base_offset for one in LogDirectory(tmp_path / "out").batches()] == [
        base for base in range(10, 40, 3) if base != 10 + 3 * at]


@pytest.mark.quick
def test_a_log_that_goes_on_where_a_snapshot_was_taken(tmp_path: Path) -> None:
    """After a gap, as a follower may have: the batch that begins there is lost no more."""
    write_segment(tmp_path / "t-0", 5, [batch(5, 2), batch(8, 1)])
    producer_snapshot(tmp_path / "t-0", 8, {})
    done = salvage_log(tmp_path / "t-0", tmp_path / "out")
    assert not done.lost
    assert [one.base_offset for one in LogDirectory(tmp_path / "out").batches()] == [5, 8]


@pytest.mark.quick
@pytest.mark.parametrize("snapshot", [5, 8])
def test_the_last_batch_after_damage_is_kept(snapshot: int, tmp_path: Path) -> None:
    """A snapshot where the segment begins or the damaged batch was says nothing against it."""
    write_segment(tmp_path / "t-0", 0, [batch(0, 5)])
    path = write_segment(tmp_path / "t-0", 5, [batch(5, 3), batch(8, 2), batch(10, 2)])
    damage_batch(path, 0)
    damage_batch(path, 1)
    producer_snapshot(tmp_path / "t-0", snapshot, {})
    done = salvage_log(tmp_path / "t-0", tmp_path / "out")
    assert [(one.first_offset, one.last_offset) for one in done.lost] == [(5, 7), (8, 9)]
    assert [one.base_offset for one in LogDirectory(tmp_path / "out").batches()] == [0, 10]


@pytest.mark.quick
def test_a_wrong_base_offset_after_a_damaged_batch(tmp_path: Path) -> None:
    """Of two batches that exclude each other, the one in step with the rest stays."""
    made = [batch(0), batch(3)[:-1] + b"!", bytes(8) + batch(6, 2)[8:], batch(8), batch(11)]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(made))
    done = salvage_log(tmp_path / f"{0:020}.log", tmp_path / "out")
    assert [one.base_offset for one in LogDirectory(tmp_path / "out").batches()] == [0, 8, 11]
    assert [loss[3:] for loss in done.lost] == [
        (3, 7, "checksum does not match"), (3, 7, "base offset 0 is out of order")]


@pytest.mark.quick
@pytest.mark.parametrize("stray", ["before the damage", "at the end"])
def test_a_misplaced_batch_costs_none_that_are_intact(stray: str, tmp_path: Path) -> None:
    """A block of a disk that was written to a wrong place, with whole batches in it."""
    log = [batch(base) for base in range(0, 90, 3)]
    lost = {12}
    made = [*log[:4], log[4][:-1] + b"!", *log[5:]]
    if stray == "before the damage":
        lost |= {60, 63}
        made[20:22] = [bytes(range(1, 200)) * 2]
        made[4:5] = [b"?" * 70, *log[20:22], b"?" * 70]
    else:
        made += [b"?" * 70, log[2]]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(made))
    done = salvage_log(tmp_path / f"{0:020}.log", tmp_path / "out")
    kept = [one.base_offset for one in LogDirectory(tmp_path / "out").batches()]
    assert kept == [base for base in range(0, 90, 3) if base not in lost]
    assert done.partitions[0].size + done.partitions[0].bytes_lost == len(b"".join(made))


@pytest.mark.quick
def test_a_batch_of_other_offsets_costs_none_that_is_intact(tmp_path: Path) -> None:
    """As of another segment, or a message inside of a damaged compressed one of magic 1, which counts from 0."""
    path = tmp_path / f"{98:020}.log"
    path.write_bytes(b"?" * 100 + batch(110) + batch(115)[:-1] + b"!" + batch(2))
    salvage_log(path, tmp_path / "out")
    assert [one.base_offset for one in LogDirectory(tmp_path / "out").batches()] == [110]


@pytest.mark.quick
@pytest.mark.parametrize("first", [6, 9, 12, 100])
@pytest.mark.parametrize("destroyed", [0, 40, 61])
def test_batches_in_a_value_are_not_taken_for_the_log(first: int, destroyed: int, tmp_path: Path) -> None:
    """Also more of them than batches follow, after a batch whose header is damaged."""
    inside = b"".join(batch(base) for base in range(first, first + 90, 3))
    around = bytearray(kwire.build_batch([(1, b"k", inside)], base_offset=6))
    around[:destroyed] = b"?" * destroyed
    around[-1] ^= 1
    made = [batch(0), batch(3), bytes(around), batch(7), batch(10)]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(made))
    salvage_log(tmp_path / f"{0:020}.log", tmp_path / "out")
    assert [one.base_offset for one in LogDirectory(tmp_path / "out").batches()] == [0, 3, 7, 10]


@pytest.mark.quick
def test_many_wrong_base_offsets(tmp_path: Path) -> None:
    """In more batches than are compared at a time."""
    made, wrong = bytearray(), set()
    for at in range(5000):
        if at % 37 == 3:
            wrong.add(at)
        made += batch(random.Random(at).randrange(10_000) if at in wrong else at, 1)
    (tmp_path / f"{0:020}.log").write_bytes(made)
    done = salvage_log(tmp_path / f"{0:020}.log", tmp_path / "out")
    kept = [one.base_offset for one in LogDirectory(tmp_path / "out").batches()]
    assert set(kept) >= set(range(5000)) - wrong
    assert len(set(kept) & wrong) <= 1 and kept == sorted(kept)
    assert len(done.lost) >= len(wrong) - 1


@pytest.mark.quick
def test_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{7:020}.log").write_bytes(b"nothing of Kafka's" * 100)
    (folder / f"{50:020}.log").write_bytes(batch(50))
    done = salvage_log(folder, tmp_path / "out")
    assert [loss[1:5] for loss in done.lost] == [(0, 1800, 7, 49)]
    assert sorted(path.name for path in (tmp_path / "out").glob("*.log")) == [f"{50:020}.log"]
    shutil.rmtree(tmp_path / "out")
    (folder / f"{50:020}.log").write_bytes(b"")
    done = salvage_log(folder, tmp_path / "out")
    assert (done.partitions[0].batches, done.partitions[0].first_offset) == (0, -1)
    assert [path.name for path in (tmp_path / "out").glob("*.log")] == [f"{50:020}.log"]


@pytest.mark.quick
def test_the_list_of_losses_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LISTED", 3)
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(40)])
    for at in range(10, 20):
        damage_batch(path, at)
    for at in range(22, 32, 2):
        damage_batch(path, at)
    (partition,) = salvage_log(path, tmp_path / "out").partitions
    assert (len(partition.lost), partition.more, partition.batches) == (3, 5, 25)
    assert partition.bytes_lost + partition.size == path.stat().st_size
    assert partition.offsets_lost == 45


# kills


def killed_at(point: int, work: Callable[[], object]) -> int:
    """Do the work in a child that SIGKILLs itself at that call of a C function; -1: it came to the end before."""
    child = os.fork()
    if child == 0:
        calls = 0

        def count(_: object, event: str, __: object) -> None:
            nonlocal calls
            if event == "c_call":
                calls += 1
                if calls == point:
                    os.kill(os.getpid(), signal.SIGKILL)

        code = 3
        try:
            sys.setprofile(count)
            work()
            sys.setprofile(None)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return point
    assert os.WEXITSTATUS(status) == 0
    return -1


def calls_of(work: Callable[[], object]) -> int:
    """C functions that the work calls."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "c_call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def points(total: int, count: int) -> Iterator[int]:
    """Random calls at which to kill, most of them among the last ones, where files get their names."""
    chance = random.Random(total)
    for number in range(count):
        last = (total - 1, 200, 12, 6)[number % 4]
        yield chance.randrange(max(1, total - last), total)


def test_killed_at_any_point_a_folder_is_whole_or_not_there(log_directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "clean"
    total = calls_of(lambda: salvage_log(log_directory, target))
    whole, before = tree(target), tree(log_directory)
    outcomes = set()
    for point in points(total, 100):
        shutil.rmtree(target, ignore_errors=True)
        killed_at(point, lambda: salvage_log(log_directory, target))
        outcomes.add(target.exists())
        assert not target.exists() or tree(target) == whole
        assert tree(log_directory) == before
    assert outcomes == {True, False}


def test_killed_at_any_point_a_segment_is_the_old_or_the_new_one(log_directory: Path, tmp_path: Path) -> None:
    old_source, new_source = log_directory / "t-0" / f"{12:020}.log", log_directory / "u-1" / f"{0:020}.log"
    target = tmp_path / "out" / "clean.log"
    target.parent.mkdir()
    outcomes = set()
    salvage_log(old_source, target, index_interval_bytes=0)
    old = target.read_bytes()
    salvage_log(new_source, target, force=True, index_interval_bytes=0)
    new = target.read_bytes()
    total = calls_of(lambda: salvage_log(new_source, target, force=True, index_interval_bytes=0))
    for point in points(total, 100):
        salvage_log(old_source, target, force=True, index_interval_bytes=0)
        killed_at(point, lambda: salvage_log(new_source, target, force=True, index_interval_bytes=0))
        outcomes.add(target.read_bytes())
        assert LogSegment(target).verify() == []  # its indexes too
    assert outcomes == {old, new}


def work_on(folder: Path, batches: list[bytes]) -> None:
    """Open a partition again and write the rest."""
    with SegmentWriter(folder, "t", 0, segment_bytes=4000, index_interval_bytes=0, sync=False) as writer:
        for one in batches:
            writer.append(one)


def test_a_writer_that_is_killed_leaves_whole_batches(tmp_path: Path) -> None:
    made = [in_transaction(base, base % 5) if base % 7 else batch(base, size=900) for base in range(0, 90, 3)]

    def work() -> None:
        with SegmentWriter(tmp_path / "t-0", "t", 0, segment_bytes=4000, index_interval_bytes=0) as writer:
            for one in made:
                writer.append(one)

    total = calls_of(work)
    for point in points(total, 60):
        shutil.rmtree(tmp_path / "t-0")
        (tmp_path / "t-0").mkdir()
        killed_at(point, work)
        found = LogDirectory(tmp_path / "t-0")
        offsets = [one.base_offset for one in found.batches()]
        assert offsets == list(range(0, 3 * len(offsets), 3))
        assert {finding.kind for finding in found.verify()} <= {"tail", "index", "timeindex"}
        work_on(tmp_path / "t-0", made[len(offsets) :])
        found = LogDirectory(tmp_path / "t-0")
        assert found.verify() == [] and [one.raw for one in found.batches()] == made


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = write_segment(tmp_path / "in" / "t-0", 0, [batch(0), batch(3)], indexes=False)
    path.write_bytes(path.read_bytes()[:-5])
    return path


@pytest.mark.quick
def test_salvage_keeps_an_index_that_is_there(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "out.index").write_bytes(b"of another segment")
    with pytest.raises(FileExistsError, match=r"out\.index"):
        salvage_log(damaged, tmp_path / "out.log")
    assert (tmp_path / "out.index").read_bytes() == b"of another segment" and not (tmp_path / "out.log").exists()
    salvage_log(damaged, tmp_path / "out.log", force=True)
    assert [record.offset for record in LogSegment(tmp_path / "out.log").read()] == [0, 1, 2]


@pytest.mark.quick
def test_salvage_follows_a_link_and_replaces_no_pipe(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "link.log").symlink_to("real.log")
    salvage_log(damaged, tmp_path / "link.log")
    assert (tmp_path / "link.log").is_symlink() and (tmp_path / "real.log").is_file()
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(FileExistsError, match="not replaced"):
        salvage_log(damaged, tmp_path / "pipe.log", force=True)
    assert (tmp_path / "pipe.log").is_fifo()
    (tmp_path / "other.log").symlink_to("other.bin")
    with pytest.raises(FileExistsError, match=r"does not end in \.log"):
        salvage_log(damaged, tmp_path / "other.log", force=True)


@pytest.mark.quick
def test_a_full_disk_leaves_nothing(log_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name, target in (("fsync", tmp_path / "out"), ("rename", tmp_path / "out"), ("replace", tmp_path / "x.log")):
        source = log_directory / "t-0" / f"{0:020}.log"
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError, match="No space"):
                salvage_log(source, target)
        assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@pytest.mark.quick
@pytest.mark.parametrize("left", ["nothing", "header", "no footer", "no header"])
def test_a_snapshot_that_was_cut_off_between_batches_is_lost(left: str, golden: Path, tmp_path: Path) -> None:
    """A broker does not start on most of these, and on the others without what is missing."""
    source = tmp_path / "__cluster_metadata-0"
    shutil.copytree(golden / "data/kafka-4.3.0/data1/__cluster_metadata-0", source, copy_function=shutil.copyfile)
    assert LogDirectory(source).verify() == [] and not salvage_log(source).lost
    path = max(source.glob("*.checkpoint"))
    data = path.read_bytes()
    sizes = [found.size for found in kwire.read_batches(data)]
    start, end = {"nothing": (0, 0), "header": (0, sizes[0]), "no footer": (0, len(data) - sizes[-1]),
                  "no header": (sizes[0], len(data))}[left]
    path.write_bytes(data[start:end])
    [lost] = salvage_log(source, tmp_path / "clean").lost
    [found] = LogDirectory(source).verify()
    assert found.kind == "snapshot" and found.path == lost.path == str(path)
    assert found.message == lost.reason and ("no header" if left == "no header" else "no footer") in lost.reason
    assert not (tmp_path / "clean" / path.name).exists()


META = "version=1\nnode.id=1\ncluster.id=c\ndirectory.id=j3-7RewDT6es909D5D6HVA\n"
QUORUM = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'


@pytest.mark.quick
@pytest.mark.parametrize(("name", "text"), [
    ("t-0/partition.metadata", ""), ("t-0/quorum-state", ""), ("t-0/quorum-state", "{}"),
    ("t-0/quorum-state", QUORUM.replace(":1}", ":9}")), ("t-0/quorum-state", QUORUM.replace('Epoch":1', 'Epoch":"x"')),
    ("meta.properties", ""), ("meta.properties", "\0" * 9), ("meta.properties", META.replace("version=1", "version=7")),
    ("meta.properties", META.replace("node.id=1", "node.id=x")), ("meta.properties", META.replace("cluster", "cluste")),
    ("meta.properties", META[:-8]), ("meta.properties", META + "a=\\u12"),
    ("meta.properties", META.replace("version=1", "version=\\u00a01")), ("meta.properties", "version=0\nnode.id=1\n"),
    ("meta.properties", META.replace("node.id=1", "node.id=2147483648")),
])  # fmt: skip
def test_files_on_which_no_broker_starts_are_not_copied(name: str, text: str, tmp_path: Path) -> None:
    source, path = tmp_path / "in", tmp_path / "in" / name
    write_segment(source / "t-0", 0, [batch(0)])
    path.write_text(text)
    [lost] = salvage_log(source, tmp_path / "clean").lost
    assert lost.path == str(path) and not (tmp_path / "clean" / name).exists()


@pytest.mark.quick
@pytest.mark.parametrize(("name", "text"), [
    ("t-0/quorum-state", QUORUM), ("meta.properties", META), ("meta.properties", "version=0\nbroker.id=1\n"),
    ("meta.properties", "broker.id=1\n"), ("meta.properties", META.replace("version=1", "version=+1\\u0020")),
    ("meta.properties", META.replace("node.id=1", "node.id=007") + "node.id=+1\n"),
    ("t-0/quorum-state", '{"clusterId":"","leaderId":-1,"leaderEpoch":0,"votedId":-1,"appliedOffset":0,'
                         '"currentVoters":null,"data_version":0}'),
])  # fmt: skip
def test_files_with_which_a_broker_starts_are_copied(name: str, text: str, tmp_path: Path) -> None:
    write_segment(tmp_path / "in" / "t-0", 0, [batch(0)])
    (tmp_path / "in" / name).write_text(text)
    assert not salvage_log(tmp_path / "in", tmp_path / "clean").lost
    assert (tmp_path / "clean" / name).read_text() == text


def test_few_bytes_wait_for_the_next_leader_epoch() -> None:
    """Up to 1,000 batches without one waited, of any size: a segment of 400 MiB took 400 MiB."""
    made = given = most = 0

    def batches() -> Iterator[Any]:
        nonlocal made
        for epoch in [5, *[-1] * 200, 6]:
            made += 1
            yield SimpleNamespace(magic=2, partition_leader_epoch=epoch, size=1 << 20)

    for _, epoch in module._with_epochs(batches(), None):
        given += 1
        most = max(most, made - given)
        assert epoch is None
    assert (made, given) == (202, 202) and most < 40
