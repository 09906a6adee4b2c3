"""Snapshots that are written: what is read back, batch by batch, and never over a file that was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire import messages as m
from kwire.errors import EncodeError
from kwire.storage.metadata import ClusterImage, MetadataLogError, metadata_log
from kwire.storage.metadata.snapshots import snapshot_id, snapshot_name
from tests.storage.metadata.records import batch, canonicals, framed, image_of, write_log

pytestmark = pytest.mark.quick


def goldens(golden: Path) -> list[Path]:
    return sorted((golden / "data").glob(f"kafka-4.3.0*/data*/{metadata_log.FOLDER}/*.checkpoint"))


def parts(file: Path) -> list[tuple[bool, int, int, list[tuple[int, Any, Any]]]]:
    """Each batch: control, base offset, epoch, (offset, key, value) of its records."""
    return [
        (one.is_control, one.base_offset, one.partition_leader_epoch, [(row.offset, row.key, row.value) for row in one])
        for one in kwire.read_batches(file.read_bytes(), strict_tail=True)
    ]


def test_names() -> None:
    assert snapshot_name(254, 1) == "00000000000000000255-0000000001.checkpoint"
    assert snapshot_id("/a/00000000000000000255-0000000001.checkpoint") == (255, 1)
    for other in ("bootstrap.checkpoint", "00000000000000000255-0000000001.checkpoint.part", "255-1.checkpoint"):
        assert snapshot_id(other) is None


def test_a_golden_snapshot_is_written_back_record_by_record(golden: Path, tmp_path: Path) -> None:
    for file in goldens(golden):
        image = ClusterImage.read(file)
        folder = tmp_path / file.parents[1].name / file.parents[2].name
        folder.mkdir(parents=True, exist_ok=True)
        written = image.write_snapshot(folder)
        assert Path(written).name == file.name
        assert parts(Path(written)) == parts(file)  # header, voters, records, footer: the same bytes in the same order
        again = ClusterImage.read(written)
        assert again == image and (again.offset, again.epoch, again.timestamp) == (
            image.offset, image.epoch, image.timestamp)


def test_a_log_is_written_as_kafka_writes_its_image(golden: Path, tmp_path: Path) -> None:
    """A snapshot of the log alone has the records of Kafka's own snapshot at the same offset."""
    folder = golden / "data/kafka-4.3.0/data1" / metadata_log.FOLDER
    for file in sorted(folder.glob("*.checkpoint"))[1:]:
        snapshot = ClusterImage.read(file)
        image = ClusterImage.read(folder / f"{0:020d}.log", snapshot.offset)
        written = ClusterImage.read(image.write_snapshot(tmp_path))
        assert canonicals(framed(written)) == canonicals(framed(snapshot))
        assert written.offset == snapshot.offset and written.voters == snapshot.voters
        assert written.timestamp == snapshot.timestamp > 0


def test_unknown_tags_are_kept(tmp_path: Path) -> None:
    topic = m.TopicRecord(name="t", topic_id=kwire.messages.TopicRecord().topic_id)
    topic.unknown_tags = {7: b"seven"}
    partition = m.PartitionRecord(partition_id=0, replicas=(1,), isr=(1,), directories=(topic.topic_id,))
    partition.unknown_tags = {99: b"more"}
    level = m.FeatureLevelRecord(name="metadata.version", feature_level=29)
    level.unknown_tags = {5: b"five"}
    header = m.SnapshotHeaderRecord(last_contained_log_timestamp=3)
    header.unknown_tags = {8: b"h"}
    voters = m.VotersRecord(voters=[m.VotersRecord.Voter(voter_id=1)])
    voters.voters[0].unknown_tags = {9: b"v"}
    footer = m.SnapshotFooterRecord()
    footer.unknown_tags = {10: b"f"}
    controls = [("SNAPSHOT_HEADER", header), ("KRAFT_VERSION", m.KRaftVersionRecord(kraft_version=1)),
                ("KRAFT_VOTERS", voters)]
    source = tmp_path / snapshot_name(41, 3)
    source.write_bytes(batch(controls, 0, 3, True) + kwire.build_batch(
        [(0, None, kwire.encode_metadata_record(one, version)) for one, version in
         ((level, 0), (topic, 0), (partition, 2))], base_offset=3, partition_leader_epoch=3,
    ) + batch([("SNAPSHOT_FOOTER", footer)], 6, 3, True))  # fmt: skip
    image = ClusterImage.read(source)
    target = tmp_path / "written"
    image.write_snapshot(target)
    assert parts(target) == parts(source)
    lower = image.downgrade(25).image
    lower.write_snapshot(target, force=True)
    changed = [new for new, old in zip(parts(target), parts(source), strict=True) if new != old]
    records = [kwire.decode_metadata_record(value)[0] for _, _, value in changed[0][3]]
    assert len(changed) == 1 and [one.unknown_tags for one in records] == [{5: b"five"}, {7: b"seven"}, {99: b"more"}]
    assert records[0].feature_level == 25
    far = image.downgrade("3.5-IV2", unsafe=True).image
    assert [one.unknown_tags for one, _ in far.records()] == [{5: b"five"}, {7: b"seven"}, {99: b"more"}]


def test_control_records_of_newer_versions_are_kept(tmp_path: Path) -> None:
    """They are read as the newest known version, and written with all their bytes."""
    source, later = tmp_path / snapshot_name(4, 2), (9).to_bytes(2, "big")
    header = later + (5).to_bytes(8, "big") + b"\0new"
    rows = [(0, b"\0\0\0\3", header), (0, b"\0\0\0\5", later + b"\0\1\0more")]
    source.write_bytes(
        kwire.build_batch(rows, control=True, partition_leader_epoch=2)
        + kwire.build_batch([(0, b"\0\0\0\4", later + b"\0last")], base_offset=2, control=True,
                            partition_leader_epoch=2))
    image = ClusterImage.read(source)
    assert (image.timestamp, image.kraft_version) == (5, 1)
    image.write_snapshot(tmp_path / "written")
    assert parts(tmp_path / "written") == parts(source)


def test_batches_have_1024_records_and_at_most_8_mib(tmp_path: Path) -> None:
    image = image_of([m.ConfigRecord(resource_type=4, name=str(number), value="v") for number in range(2050)])
    file = Path(image.write_snapshot(tmp_path))
    assert [len(rows) for _, _, _, rows in parts(file)] == [1, 1024, 1024, 2, 1]
    assert [base for _, base, _, _ in parts(file)] == [0, 1, 1025, 2049, 2051]
    large = image_of([m.ConfigRecord(resource_type=4, name=str(number), value="v" * 30_000) for number in range(600)])
    file = Path(large.write_snapshot(tmp_path / "large"))
    assert [len(rows) for _, _, _, rows in parts(file)] == [1, 279, 279, 42, 1]
    assert all(one.size <= 8 << 20 for one in kwire.read_batches(file.read_bytes()))


def test_an_empty_image(tmp_path: Path) -> None:
    file = ClusterImage().write_snapshot(tmp_path)
    assert Path(file).name == snapshot_name(-1, 0)
    assert ClusterImage.read(file) == ClusterImage() and ClusterImage.read(tmp_path).offset == -1


def test_no_file_that_was_read_is_replaced(tmp_path: Path) -> None:
    folder = write_log(tmp_path, [m.ConfigRecord(resource_type=4, name="a", value="1")])
    place = folder / metadata_log.FOLDER
    first = ClusterImage.read(folder).write_snapshot(place)
    image = ClusterImage.read(folder)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    for force in (False, True):
        for target in (place, first, place / f"{0:020d}.log"):
            if target == place / f"{0:020d}.log" and str(target) not in image.files:
                continue
            with pytest.raises(FileExistsError, match="is an input of this command"):
                image.write_snapshot(target, force=force)
    other = tmp_path / "other"
    other.write_text("kept")
    with pytest.raises(FileExistsError, match="File exists"):
        image.write_snapshot(other)
    assert other.read_text() == "kept"
    assert image.write_snapshot(other, force=True) == str(other)
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
    with pytest.raises(OSError, match="local path"):
        image.write_snapshot("s3://user:secret@bucket/x")
    with pytest.raises(FileNotFoundError):
        image.write_snapshot(tmp_path / "no" / "folder")


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    unknown = image_of([m.FeatureLevelRecord(name="metadata.version", feature_level=99)])
    assert unknown.to_json()["features"] == {"metadata.version": 99} and unknown.to_json()["metadata_version"] is None
    with pytest.raises(kwire.UnsupportedVersionError, match=r"unknown metadata\.version 99: expected at most 34"):
        unknown.write_snapshot(tmp_path)
    level = m.FeatureLevelRecord(name="metadata.version", feature_level=10)
    odd = image_of([level, m.UserScramCredentialRecord(name="u", mechanism=1)])
    with pytest.raises(MetadataLogError, match=r"UserScramCredentialRecord does not exist at .* 10 \(3\.5-IV1\)"):
        odd.write_snapshot(tmp_path)
    dirs = image_of([level, m.RegisterBrokerRecord(broker_id=1, log_dirs=(m.TopicRecord().topic_id,))])
    with pytest.raises(MetadataLogError, match=r"RegisterBrokerRecord \.log_dirs does not exist"):
        dirs.write_snapshot(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_timestamp_past_64_bits(tmp_path: Path) -> None:
    image = ClusterImage(timestamp=1 << 63)
    with pytest.raises(EncodeError, match="9223372036854775808"):
        image.write_snapshot(tmp_path / "x.checkpoint")
    assert not list(tmp_path.iterdir())
