"""Damaged segments and indexes of every kind: a value or a KwireError; the scans in C agree with plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import kwire
from kwire.storage import LogDirectory, Partition
from kwire_c.log_scan import find_header, hop, next_marked
from tests.storage.making import START, aborted_index, batch, in_transaction, marker, write_segment

pytestmark = pytest.mark.quick


def parts() -> list[bytes]:
    legacy = [kwire.build_batch([(START, b"k", b"v")], magic=magic, base_offset=30 + magic) for magic in (0, 1)]
    wrapped = [kwire.build_batch([(START, b"k", b"v")] * 3, magic=1, codec="gzip", base_offset=33)]
    return [
        batch(0), in_transaction(3, 1), marker(6, 1, False), batch(7, codec="lz4"), in_transaction(10, 2),
        marker(13, 2, True), batch(14, 10, codec="zstd"), *legacy, *wrapped, in_transaction(36, 3),
    ]  # fmt: skip


def sizes(data: bytes) -> list[int]:
    """Sizes of the whole batches that data begins with, hopped over in plain Python."""
    found, at = [], 0
    while len(data) - at >= 17:
        length, magic = int.from_bytes(data[at + 8 : at + 12], "big", signed=True), data[at + 16]
        if magic > 2 or length + 12 < (26, 34, 61)[magic] or length > len(data) - at - 12:
            break
        found.append(12 + length)
        at += 12 + length
    return found


def mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        kind, at = chance.randrange(6), chance.randrange(len(changed) + 1)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            del changed[at : at + chance.randrange(1, 40)]
        elif kind == 2:
            changed[at:at] = chance.randbytes(chance.randrange(1, 40))
        elif kind == 3:
            changed[at:at] = bytes(chance.randrange(1, 300))
        elif at < len(changed):
            changed[at] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if not changed:
            return b""
    return bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_scans_agree_with_plain_python(seed: int) -> None:
    chance = random.Random(seed)
    whole = b"".join(parts())
    for _ in range(400):
        data = mutated(whole, chance)
        expected = sizes(data)
        assert hop(data, len(data))[0] == sum(expected)
        assert hop(memoryview(data)[: len(data)], 1)[0] == (expected[0] if expected else 0)
        if expected:
            assert hop(data, len(data))[1] == sum(expected[:-1])
            assert hop(data, len(data), 1)[0] == expected[0]
        marked, at = [], 0
        for size in expected:
            if data[at + 16] == 2 and data[at + 22] & 0x10:
                marked.append(at)
            at += size
        found, at = [], next_marked(data, 0, 0x10)
        while at >= 0:
            found.append(at)
            at = next_marked(data, at + 12 + int.from_bytes(data[at + 8 : at + 12], "big"), 0x10)
        assert found == marked
        starts = {sum(expected[:count]) for count in range(len(expected))}
        found, at = set(), -1
        while (at := find_header(data, at + 1, len(data), len(data))) >= 0:
            found.add(at)
        assert {
            at for at in starts if data[at] < 0x80 and at + expected[sorted(starts).index(at)] < sum(expected)
        } <= found


def test_scans_of_nothing() -> None:
    for data in (b"", b"\0" * 16, b"\0" * 17, b"\xff" * 100, bytes(1000)):
        assert hop(data, len(data)) == (0, 0)
        assert find_header(data, 0, len(data), len(data)) == -1
        assert next_marked(data, 0, 0x10) == -1
    assert hop(batch(0), -5) == (0, 0)
    assert find_header(batch(0), -1, 5, 1 << 62) == -1
    assert find_header(batch(0), 0, 1 << 40, 1 << 62) == 0
    assert next_marked(batch(0), 1 << 40, 0x10) == -1


def reads(partition: Partition, offset: int, time: int) -> list[Callable[[], object]]:
    return [
        lambda: list(partition.read(start_offset=offset)),
        lambda: list(partition.read(start_timestamp=time, end_offset=offset + 9)),
        lambda: list(partition.read(committed=True)),
        lambda: len(partition.columns(committed=True, start_timestamp=time)),
        lambda: sum(len(one) for one in partition.batches()),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_mutated_directories_give_a_value_or_a_kwire_error(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = write_segment(tmp_path / "t-0", 0, parts(), every=1)
    aborted_index(path, [(1, 3, 6, 7)])
    write_segment(tmp_path / "t-0", 39, [batch(39), marker(42, 3, False)])
    files = {file: file.read_bytes() for file in path.parent.iterdir()}
    for _ in range(60):
        touched = chance.sample(sorted(files), chance.randrange(1, 3))
        for file in touched:
            if files[file]:
                file.write_bytes(mutated(files[file], chance))
        directory = LogDirectory(tmp_path)
        partition = directory["t", 0]
        offset, time = chance.randrange(-1, 50), START + chance.randrange(-10, 500)
        assert isinstance(directory.verify(), list)
        for segment in directory.segments:
            segment.stats()
            ranges = segment.split(chance.choice((1, 100, 1000)))
            assert sum(one.end - one.start for one in ranges) == segment.size
            assert 0 <= segment.seek(offset) <= segment.size
            assert segment.transactions() is not None
            kept = sum(len(one) for one in segment.batches(errors="keep") if not isinstance(one, kwire.BadBatch))
            assert sum(map(len, segment.column_batches(errors="keep", control=True))) == kept
            assert (
                sum(
                    len(piece)
                    for one in ranges
                    for piece in segment.column_batches(start=one.start, end=one.end, errors="keep", control=True)
                )
                == kept
            )
        for read in reads(partition, offset, time):
            try:
                read()
            except kwire.KwireError as error:
                assert error.file.startswith(str(tmp_path))
        for file in touched:
            file.write_bytes(files[file])
