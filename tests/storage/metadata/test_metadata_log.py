"""Metadata logs: which snapshot and which records count, and one clear error for what gives no image."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import fsspec
import pytest

import kwire
from kwire import messages as m
from kwire.errors import KwireError, WrongFileError
from kwire.schema import record_types
from kwire.storage.metadata import ClusterImage, MetadataLogError, metadata_log, record_reader
from tests.storage.metadata.records import batch, image_of, write_log
from tools.places import DATA

pytestmark = pytest.mark.quick

LOGS = ["kafka-4.3.0/data1", "kafka-4.3.0-3nodes/data1", "kafka-4.3.0-3nodes/data2", "kafka-4.3.0-3nodes/data3"]


def log_folder(golden: Path, name: str) -> Path:
    return golden / "data" / name / metadata_log.FOLDER


def copy_of(folder: Path, to: Path, *kinds: str) -> Path:
    """The files of these kinds in a folder of their own."""
    to.mkdir()
    for kind in kinds:
        for file in folder.glob(f"*{kind}"):
            shutil.copy(file, to)
    return to


def config(name: str, value: str | None = "1") -> Any:
    return m.ConfigRecord(resource_type=4, resource_name="", name=name, value=value)


def header(*more: tuple[str, Any]) -> list[Any]:
    return [("SNAPSHOT_HEADER", m.SnapshotHeaderRecord(last_contained_log_timestamp=5)), *more]


FOOTER = [("SNAPSHOT_FOOTER", m.SnapshotFooterRecord())]


def test_a_stray_snapshot_in_the_log_directory_is_not_its_metadata_log(tmp_path: Path) -> None:
    folder = write_log(tmp_path, [config("a")], [config("b")])
    image_of([m.FeatureLevelRecord(name="metadata.version", feature_level=30)], offset=7).write_snapshot(folder)
    image = ClusterImage.read(folder)
    assert image.offset == 1 and image.configs == {(4, ""): {"a": "1", "b": "1"}}
    (folder / f"{0:020d}.log").write_bytes(batch([config("z")], 0))
    assert ClusterImage.read(folder) == image


@pytest.mark.parametrize("name", LOGS)
def test_the_log_alone_gives_what_each_golden_snapshot_holds(golden: Path, tmp_path: Path, name: str) -> None:
    folder = log_folder(golden, name)
    alone = copy_of(folder, tmp_path / "log", ".log", "0000000000-0000000000.checkpoint")
    snapshots = sorted(folder.glob("*.checkpoint"))[1:]
    assert len(snapshots) >= 3
    for file in snapshots:
        snapshot = ClusterImage.read(file)
        replayed = ClusterImage.read(alone, snapshot.offset)
        assert replayed == snapshot and replayed.diff(snapshot) == []
        assert (replayed.offset, replayed.epoch, replayed.timestamp) == (
            snapshot.offset, snapshot.epoch, snapshot.timestamp)
        assert replayed.files == (str(alone / f"{0:020d}-{0:010d}.checkpoint"), str(alone / f"{0:020d}.log"))
        assert ClusterImage.read(folder, snapshot.offset).files == (str(file),)
    whole, replayed = ClusterImage.read(folder), ClusterImage.read(alone)
    assert whole == replayed and whole.offset == replayed.offset > snapshots[-1].name.count("0")
    assert whole.files[0] == str(snapshots[-1])


def test_a_log_directory_and_its_folder_are_the_same(golden: Path) -> None:
    folder = log_folder(golden, LOGS[0])
    assert ClusterImage.read(folder.parent) == ClusterImage.read(str(folder)) == ClusterImage.read(f"{folder}/")
    assert ClusterImage.read(f"file://{folder.parent}") == ClusterImage.read(folder)
    log = folder / f"{0:020d}.log"
    assert ClusterImage.read(log).diff(ClusterImage.read(folder)) == []  # its control records are in the log, too


def test_the_offset_is_inclusive_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    folder = write_log(tmp_path, [config("a"), config("b"), config("c")], [config("d")])
    images = [ClusterImage.read(folder, offset) for offset in (0, 1, 2, 3)]
    assert [sorted(image.configs[4, ""]) for image in images] == [["a"], ["a", "b"], ["a", "b", "c"], [*"abcd"]]
    assert [image.offset for image in images] == [0, 1, 2, 3] and ClusterImage.read(folder).offset == 3
    assert ClusterImage.read(folder, -1).configs == {}


def test_an_open_transaction_is_not_in_the_image(tmp_path: Path) -> None:
    begin, end = m.BeginTransactionRecord(name="x"), m.EndTransactionRecord()
    folder = write_log(tmp_path, [config("a")], [begin, config("b")], [config("c")], [end], [config("d")])
    for offset, last, names in ((0, 0, "a"), (1, 0, "a"), (3, 0, "a"), (4, 4, "abc"), (5, 5, "abcd")):
        image = ClusterImage.read(folder, offset)
        assert (image.offset, "".join(sorted(image.configs[4, ""]))) == (last, names)
    open_ended = write_log(tmp_path / "open", [config("a"), begin, config("b")])
    assert ClusterImage.read(open_ended).offset == 0


def test_segments_follow_each_other_and_a_snapshot(tmp_path: Path) -> None:
    write_log(tmp_path, [config("a")], [config("b")])
    write_log(tmp_path, [config("c")], start=2)
    write_log(tmp_path, [config("d")], start=3)
    folder = tmp_path / metadata_log.FOLDER
    assert sorted(ClusterImage.read(tmp_path).configs[4, ""]) == [*"abcd"]
    ClusterImage.read(tmp_path, 1).write_snapshot(folder)
    (folder / f"{0:020d}.log").unlink()
    image = ClusterImage.read(tmp_path)
    assert sorted(image.configs[4, ""]) == [*"abcd"] and len(image.files) == 3
    (folder / f"{2:020d}.log").unlink()
    with pytest.raises(MetadataLogError, match="expected offset 2, found 3: records are missing") as caught:
        ClusterImage.read(tmp_path)
    assert caught.value.file.endswith("3.log") and caught.value.offset == 3
    with pytest.raises(MetadataLogError, match="expected offset 0, found 3"):
        ClusterImage.read(tmp_path, 0)
    assert ClusterImage.read(tmp_path, 1).offset == 1


def test_a_snapshot_past_the_end_of_the_log_counts(tmp_path: Path) -> None:
    folder = write_log(tmp_path, [config("a")])
    (folder / metadata_log.FOLDER / f"{500:020d}-{7:010d}.checkpoint").write_bytes(
        batch(header(), 0, 7, control=True) + batch([config("z")], 1, 7) + batch(FOOTER, 2, 7, control=True))
    image = ClusterImage.read(folder)
    assert (image.offset, image.epoch, image.timestamp, image.configs) == (499, 7, 5, {(4, ""): {"z": "1"}})
    assert ClusterImage.read(folder, 0).configs == {(4, ""): {"a": "1"}}


def test_a_compressed_snapshot_counts(tmp_path: Path) -> None:
    """It was passed over: what was read was the state of the snapshot before it."""
    folder = tmp_path / metadata_log.FOLDER
    folder.mkdir()
    old, new = [m.FeatureLevelRecord(name="metadata.version", feature_level=level) for level in (29, 30)]
    image_of([old], offset=7).write_snapshot(folder)
    snapshot = Path(image_of([new], offset=9).write_snapshot(folder))
    compressed = Path(f"{snapshot}.gz")
    content = gzip.compress(snapshot.read_bytes())
    compressed.write_bytes(content)
    assert ClusterImage.read(folder).files == (str(snapshot),)
    snapshot.unlink()
    for path in (folder, compressed):
        image = ClusterImage.read(path)
        assert (image.offset, image.metadata_version, image.files) == (9, 30, (str(compressed),))
    assert ClusterImage.read(folder, 7).metadata_version == 29
    compressed.rename(f"{snapshot}.zst")
    with pytest.raises(MetadataLogError, match=r"compressed as \.zst: decompress it first") as caught:
        ClusterImage.read(folder)
    assert caught.value.file == f"{snapshot}.zst"
    assert ClusterImage.read(folder, 7).metadata_version == 29
    Path(f"{snapshot}.bz2").write_bytes(b"BZh")
    compressed.write_bytes(content)
    assert ClusterImage.read(folder).files == (str(compressed),)  # whatever is beside it


def test_a_compressed_snapshot_of_a_store_is_an_error(tmp_path: Path) -> None:
    """Without it the state of the snapshot before it would be shown; files of stores are not decompressed."""
    store = fsspec.filesystem("memory")
    for offset, ending in ((7, ""), (9, ".gz")):
        made = Path(image_of([m.FeatureLevelRecord(name="metadata.version", feature_level=29)], offset=offset)
                    .write_snapshot(tmp_path))
        data = gzip.compress(made.read_bytes()) if ending else made.read_bytes()
        store.pipe(f"/compressed/{made.name}{ending}", data)
    with pytest.raises(MetadataLogError, match=r"compressed as \.gz, which is read of local paths only"):
        ClusterImage.read("memory://compressed")
    assert ClusterImage.read("memory://compressed", 7).offset == 7


def test_control_records_of_the_log_replace_those_of_the_snapshot(tmp_path: Path) -> None:
    folder = write_log(tmp_path, [config("a")])
    log = folder / metadata_log.FOLDER / f"{0:020d}.log"
    voter = m.VotersRecord.Voter(voter_id=3)
    log.write_bytes(log.read_bytes() + batch(
        [("LEADER_CHANGE", m.LeaderChangeMessage(leader_id=1)),
         ("KRAFT_VERSION", m.KRaftVersionRecord(kraft_version=1)),
         ("KRAFT_VOTERS", m.VotersRecord(voters=[voter]))], 1, control=True))
    image = ClusterImage.read(folder)
    assert (image.offset, image.kraft_version, image.voters) == (3, 1, (voter,))
    again = ClusterImage.read(image.write_snapshot(tmp_path))
    assert again == image and again.voters == (voter,) and again.to_json()["voters"][0]["voterId"] == 3


SNAPSHOTS = {
    "no footer": (batch(header(), 0, control=True) + batch([config("a")], 1), "has no footer: it is not whole"),
    "no header": (batch([config("a")], 0) + batch(FOOTER, 1, control=True), "expected the snapshot header"),
    "empty": (b"", "has no footer"),
    "two headers": (batch(header(*header()), 0, control=True) + batch(FOOTER, 2, control=True), "and it alone"),
    "more": (batch(header(), 0, control=True) + batch(FOOTER, 1, control=True) + batch([config("a")], 2),
             "goes on after its footer"),
    "gap": (batch(header(), 0, control=True) + batch(FOOTER, 5, control=True), "expected a batch at offset 1"),
    "transaction": (batch(header(), 0, control=True) + batch([m.BeginTransactionRecord()], 1)
                    + batch(FOOTER, 2, control=True), "a metadata transaction is open at the end"),
    "control key": (kwire.build_batch([(0, b"\0", b"\0\0")], control=True), "control record key"),
    "control value": (batch(header(), 0, control=True) + kwire.build_batch(
        [(0, b"\0\0\0\5", b"\0")], base_offset=1, control=True), "KRAFT_VERSION control record"),
    "torn": (batch(header(), 0, control=True) + batch(FOOTER, 1, control=True)[:-3], "torn: the .* no whole batch$"),
    "no kafka": (b"snapshot of something else, long enough for a batch header to be looked for in it" * 2, "batch"),
}  # fmt: skip


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_bad_snapshot_is_one_error_that_names_the_file(name: str, tmp_path: Path) -> None:
    data, reason = SNAPSHOTS[name]
    file = tmp_path / f"{9:020d}-{1:010d}.checkpoint"
    file.write_bytes(data)
    for path in (file, tmp_path):
        with pytest.raises(KwireError, match=reason) as caught:
            ClusterImage.read(path)
        assert str(file) in str(caught.value)


def test_a_torn_log_is_an_error_that_says_how_to_read_what_is_whole(golden: Path, tmp_path: Path) -> None:
    folder = copy_of(log_folder(golden, LOGS[0]), tmp_path / "log", ".log")
    log = folder / f"{0:020d}.log"
    whole = log.read_bytes()
    batches = list(kwire.read_batches(whole))
    log.write_bytes(whole[:-5])
    with pytest.raises(MetadataLogError, match=f"torn: the .* bytes after byte {batches[-1].position} are") as caught:
        ClusterImage.read(folder)
    assert f"(read up to offset {batches[-2].last_offset} to leave them out)" in str(caught.value)
    assert ClusterImage.read(folder, batches[-2].last_offset).offset == batches[-2].last_offset
    with pytest.raises(MetadataLogError, match="torn"):
        ClusterImage.read(folder, batches[-1].last_offset)
    log.write_bytes(whole + bytes(4096))  # zeros of a crash
    with pytest.raises(MetadataLogError, match="torn: the 4096 bytes"):
        ClusterImage.read(folder)


def test_every_cut_and_many_mutations_give_an_image_or_one_error(golden: Path, tmp_path: Path) -> None:
    file = sorted(log_folder(golden, LOGS[0]).glob("*.checkpoint"))[-1]
    whole, pick = file.read_bytes(), random.Random(15)
    target = tmp_path / file.name
    for cut in [*range(0, 400, 7), *pick.sample(range(len(whole)), 60)]:
        target.write_bytes(whole[:cut])
        with pytest.raises(KwireError):
            ClusterImage.read(target)
    bodies = [[bytes(record.value) for record in one] for one in kwire.read_batches(whole) if not one.is_control]
    for _ in range(300):  # with checksums that are right: the records themselves are damaged
        values = [bytearray(value) for body in bodies for value in body]
        for _ in range(pick.randrange(1, 4)):
            value = pick.choice(values)
            value[pick.randrange(len(value))] = pick.randrange(256)
        data = kwire.build_batch([(0, None, bytes(value)) for value in values], base_offset=1)
        target.write_bytes(batch(header(), 0, control=True) + data + batch(FOOTER, 1 + len(values), control=True))
        try:
            ClusterImage.read(target).to_json()
        except KwireError as error:
            assert str(target) in str(error)


def test_offsets_that_are_not_there(golden: Path, tmp_path: Path) -> None:
    folder = log_folder(golden, LOGS[0])
    last = ClusterImage.read(folder).offset
    with pytest.raises(MetadataLogError, match=f"offset {last + 1} is past its end: the last one is {last}"):
        ClusterImage.read(folder, last + 1)
    snapshot = sorted(folder.glob("*.checkpoint"))[-1]
    end = ClusterImage.read(snapshot).offset
    with pytest.raises(MetadataLogError, match=f"holds offsets up to {end}, past {end - 1}"):
        ClusterImage.read(snapshot, end - 1)
    with pytest.raises(MetadataLogError, match=f"offset {end + 1} is past its end"):
        ClusterImage.read(snapshot, end + 1)
    with pytest.raises(ValueError, match="expected -1 or more"):
        ClusterImage.read(folder, -2)
    for missing in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(FileNotFoundError):
            ClusterImage.read(missing)


VALUE = kwire.encode_metadata_record(m.NoOpRecord(), 0)
RECORDS = {
    "key": ((0, b"k", VALUE), "expected a record without a key, found 1 bytes"),
    "headers": ((0, None, VALUE, [("h", b"")]), "expected a record without headers, found 1"),
    "null": ((0, None, None), "expected a metadata record, found null"),
    "empty": ((0, None, b""), "remaining"),
    "frame": ((0, None, b"\2\0\0"), "unknown frame version 2"),
    "type": ((0, None, b"\1\x7f\0\0"), "unknown metadata record type 127"),
    "version": ((0, None, b"\1\x14\x05\0"), "NoOpRecord"),
    "trailing": ((0, None, VALUE + b"\0"), "NoOpRecord"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_is_none_of_the_log_is_named(name: str, tmp_path: Path) -> None:
    row, reason = RECORDS[name]
    folder = write_log(tmp_path, [config("a")])
    log = folder / metadata_log.FOLDER / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + kwire.build_batch([row], base_offset=1))
    with pytest.raises(KwireError, match=reason) as caught:
        ClusterImage.read(folder)
    assert f"{log}, offset 1: " in str(caught.value)


def test_the_old_layouts_are_those_of_the_jars() -> None:
    """layouts.json is made from the jars of all releases; 2.8 is refused as a whole."""
    names = {row.value for row in record_types("metadata").values()}
    layouts = json.loads((DATA / "schema" / "layouts.json").read_text())
    since = {}
    for key, rows in layouts.items():
        periods = [period for period in rows if period != "2.8"]
        if key.split()[0] in names and len(periods) > 1:
            since[key.split()[0]] = periods[-1].split()[0]
    assert since == record_reader._SINCE


def old_feature(name: bytes, low: int, high: int) -> bytes:
    """FeatureLevelRecord v0 as 3.0 to 3.2 have it: Name, MinFeatureLevel, MaxFeatureLevel, tags."""
    return b"\1\x0c\0" + bytes([len(name) + 1]) + name + low.to_bytes(2, "big") + high.to_bytes(2, "big") + b"\0"


def test_logs_of_the_preview(tmp_path: Path) -> None:
    folder = write_log(tmp_path, [m.TopicRecord(name="t", topic_id=UUID(int=9))])
    assert ClusterImage.read(folder).metadata_version is None
    log = folder / metadata_log.FOLDER / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + kwire.build_batch([(0, None, old_feature(b"f", 1, 3))], base_offset=1))
    with pytest.raises(MetadataLogError, match=r"FeatureLevelRecord.*before 3\.3.*release="):
        ClusterImage.read(folder)
    for release in ("3.0", "3.1.2", "3.2"):
        image = ClusterImage.read(folder, release=release)
        assert image.features == {"f": 3} and [*image.topics] == ["t"]
    with pytest.raises(MetadataLogError, match="FeatureLevelRecord"):
        ClusterImage.read(folder, release="3.3")
    with pytest.raises(kwire.UnsupportedVersionError, match=r"metadata logs of Kafka 2\.8 are not supported"):
        ClusterImage.read(folder, release="2.8")
    (tmp_path / "early" / "@metadata-0").mkdir(parents=True)
    with pytest.raises(kwire.UnsupportedVersionError, match=r"@metadata-0 is the metadata log .* Kafka 2\.8"):
        ClusterImage.read(tmp_path / "early")
    with pytest.raises(kwire.UnsupportedVersionError):
        ClusterImage.read(folder, release="1.2.3.4")
    for record, since in ((m.UserScramCredentialRecord(name="u"), "3.4"), (m.DelegationTokenRecord(), "3.5")):
        place = write_log(tmp_path / since, [record])
        with pytest.raises(kwire.UnsupportedVersionError, match=f"{type(record).__name__} as in Kafka '{since}'"):
            ClusterImage.read(place, release=since)
        assert ClusterImage.read(place)
    for cut in range(4, 9):
        log.write_bytes(kwire.build_batch([(0, None, old_feature(b"f", 1, 3)[:cut])]))
        with pytest.raises(KwireError):
            ClusterImage.read(folder, release="3.2")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(codec: str, tmp_path: Path) -> None:
    folder = tmp_path / metadata_log.FOLDER
    folder.mkdir()
    rows = [(0, None, kwire.encode_metadata_record(config(name), 0)) for name in "abc"]
    (folder / f"{0:020d}.log").write_bytes(kwire.build_batch(rows, codec=codec))
    assert ClusterImage.read(tmp_path) == image_of([config(name) for name in "abc"])


def test_compressed_batches_do_not_grow_without_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / metadata_log.FOLDER
    folder.mkdir()
    rows = [(0, None, kwire.encode_metadata_record(config(f"{number:060}"), 0)) for number in range(100)]
    log = folder / f"{0:020d}.log"
    monkeypatch.setattr(metadata_log, "MOST_COMPRESSED", 100 * len(rows[0][2]) - 1)
    log.write_bytes(kwire.build_batch(rows))
    assert ClusterImage.read(tmp_path).offset == 99  # as large as it likes without compression
    log.write_bytes(kwire.build_batch(rows, codec="gzip"))
    with pytest.raises(kwire.LimitError, match=r"\.log: too many bytes in compressed batches of a metadata log"):
        ClusterImage.read(tmp_path)
    assert ClusterImage.read(tmp_path, 97).offset == 97


def test_compressed_segments_are_read_or_refused(tmp_path: Path) -> None:
    """They were passed over, and the image was that of the segments before them."""
    folder = write_log(tmp_path, [config("a")]) / metadata_log.FOLDER
    later, data = folder / f"{1:020d}.log", batch([config("b")], 1)
    later.write_bytes(data)
    image = ClusterImage.read(folder)
    assert image.offset == 1 and image.configs == {(4, ""): {"a": "1", "b": "1"}}
    Path(f"{later}.gz").write_bytes(gzip.compress(data)[:-9])  # gzip is at it
    assert ClusterImage.read(folder) == image
    Path(f"{later}.gz").write_bytes(gzip.compress(data))
    later.unlink()
    assert ClusterImage.read(folder) == ClusterImage.read(tmp_path) == image
    Path(f"{later}.gz").rename(f"{later}.zst")
    with pytest.raises(WrongFileError, match=r"compressed as \.zst") as caught:
        ClusterImage.read(folder)
    assert caught.value.file == f"{later}.zst"
