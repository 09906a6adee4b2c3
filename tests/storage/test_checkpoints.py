"""The small files beside segments, valid and damaged."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from uuid import UUID

import pytest

import kwire
from kwire.storage import read_leader_epochs, read_partition_metadata, read_producer_snapshot
from kwire.storage.side_files.checkpoints import LeaderEpoch, ProducerState

pytestmark = pytest.mark.quick


def snapshot(*states: tuple[int, ...], version: int = 1) -> bytes:
    body = pack(">i", len(states)) + b"".join(pack(">qhiqiqiq", *state) for state in states)
    return pack(">hI", version, kwire.crc32c(body)) + body


def test_producer_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "0.snapshot"
    states = [(7, 1, 99, 1000, 9, 1_700_000_000_000, 3, -1), (8, 0, 0, 1001, 0, 5, -1, 1001)]
    path.write_bytes(snapshot(*states))
    assert read_producer_snapshot(path) == [ProducerState(*state) for state in states]
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at])
        with pytest.raises(kwire.KwireError) as caught:
            read_producer_snapshot(path)
        assert caught.value.file == str(path)
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])
        with pytest.raises(kwire.KwireError):
            read_producer_snapshot(path)
    path.write_bytes(snapshot(version=9))
    with pytest.raises(kwire.UnsupportedVersionError, match="unknown producer snapshot version 9, expected 1"):
        read_producer_snapshot(path)


def test_leader_epochs(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n2\n0 0\n5 120\n")
    assert read_leader_epochs(path) == [LeaderEpoch(0, 0), LeaderEpoch(5, 120)]
    path.write_text("")
    assert read_leader_epochs(path) == []
    for wrong, reason in (
        ("1\n0\n", "unrecognized version 1"), ("0\n3\n0 0\n", "expected 3 entries .*, found 1"),
        ("0\nx\n", "'x' is not an integer"), ("0\n1\n1 2 3\n", 'expected "epoch offset" in line 3'),
        ("\xff", "not UTF-8 text"),
    ):  # fmt: skip
        path.write_bytes(wrong.encode("latin-1"))
        with pytest.raises(kwire.DecodeError, match=f"leader-epoch-checkpoint: .*{reason}"):
            read_leader_epochs(path)


def test_partition_metadata(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    path.write_text("version: 0\ntopic_id: VVkl1clrT2ONQGYYg9xtSQ\n")
    metadata = read_partition_metadata(path)
    assert (metadata.version, metadata.topic_id) == (0, UUID("555925d5-c96b-4f63-8d40-661883dc6d49"))
    for wrong in ("", "version: 0\n", "version: x\ntopic_id: VVkl1clrT2ONQGYYg9xtSQ\n", "version: 0\ntopic_id: AAAA\n",
                  "version: 0\ntopic_id: VVkl1clrT2ONQG!!YYg9xtSQ\n", f"version: 0\ntopic_id: {'A' * 22}\n"):
        path.write_text(wrong)
        with pytest.raises(kwire.DecodeError, match=r"partition\.metadata: malformed partition metadata: "):
            read_partition_metadata(path)
    path.write_text("version: 1\ntopic_id: VVkl1clrT2ONQGYYg9xtSQ\n")  # a broker does not start on it
    with pytest.raises(kwire.DecodeError, match="unrecognized version 1 of the partition metadata, expected 0"):
        read_partition_metadata(path)
