"""The decoders of `kwire log dump`, record by record: texts as kafka-dump-log 4.3.0 prints them."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from struct import pack

import pytest

import kwire
from kwire import messages
from kwire.cli.dump_decoders import METADATA, coordinator_decoder, java_json, remote_log_decoder
from kwire.cli.dump_old_decoders import transaction_text
from kwire.cli.dump_text import entry_checksums
from kwire.codec.json import java_double
from tests.cli import dump_records
from tests.cli.test_log import run

pytestmark = pytest.mark.quick
PARTS = ("key", "value")


def test_doubles_as_in_java() -> None:
    for value, text in (
        (0.1, "0.1"), (1.0, "1.0"), (1e7, "1.0E7"), (9999999.5, "9999999.5"), (1.5e10, "1.5E10"), (1e-3, "0.001"),
        (9.99e-4, "9.99E-4"), (123456789.123, "1.23456789123E8"), (-2.5e-9, "-2.5E-9"), (-0.0, "-0.0"),
        (5e-324, "4.9E-324"), (2.0**53, "9.007199254740992E15"), (1e21, "1.0E21"), (float("inf"), "Infinity"),
        (1.7976931348623157e308, "1.7976931348623157E308"), (float("nan"), "NaN"),
    ):  # fmt: skip
        assert java_double(value) == text
    assert java_json([float("nan"), 2.0, None, True, "é"]) == '["NaN",2.0,null,true,"é"]'


def test_strings_as_jackson_writes_them() -> None:
    assert java_json('\x01\x1f\n"\\\x7f\u2028') == '"\\u0001\\u001F\\n\\"\\\\\x7f\u2028"'
    assert java_json("\\u001f") == '"\\\\u001f"'
    assert java_json("\\\x1f") == '"\\\\\\u001F"'
    with pytest.raises(TypeError):
        java_json(object())


def test_unknown_tags_are_left_out() -> None:
    """Java's converters do not know them."""
    topic = messages.TopicRecord(name="t")
    topic.unknown_tags[9] = b"x"
    record = kwire.Record(7, 0, None, kwire.encode_metadata_record(topic, 0))
    _, decoded = METADATA.text(record)
    assert decoded["data"]["_unknownTags"] == {"9": "eA=="}
    assert java_json(decoded) == (
        '{"type":"TOPIC_RECORD","version":0,"data":{"name":"t","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    )


def test_what_is_skipped() -> None:
    """Unknown types and versions, and bytes that end too early."""
    key, value = dump_records.commits()[4]
    assert key is not None and value is not None
    text = coordinator_decoder("group").text
    from_key, from_value = (f"Could not read record with version 1 from {part}'s buffer due to:" for part in PARTS)
    for key_bytes, value_bytes, wanted in (
        (key, b"\0\x09" + value[2:], "Found an unknown record version 9 for 1 type"),
        (key, b"\0", "Could not read version from value's buffer."),
        (b"\0", value, "Could not read version from key's buffer."), (key, b"\0\1", f"{from_value} null."),
        (b"\0\1\0\5ab", value, f"{from_key} Error reading byte array of 5 byte(s): only 2 byte(s) available."),
        (key[:2] + b"\xff\xff" + key[4:], None, f"{from_key} non-nullable field group was serialized as null."),
    ):  # fmt: skip
        assert text(kwire.Record(5, 0, key_bytes, value_bytes)) == (f"Error at offset 5, skipping. {wanted}", None)
    assert text(kwire.Record(5, 0, b"\0\x4d", b"")) == ("Unknown record type 77 at offset 5, skipping.", None)
    assert text(kwire.Record(5, 0, key, None))[1] == "<DELETE>"


def test_a_record_that_ends_the_dump_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump_records.write(tmp_path / "t-0", [dump_records.commits()[0], (None, b"v")])
    code, out, err = run(capsys, "log", "dump", path, "--offsets-decoder")
    assert code == 1 and out.splitlines()[-1].startswith("| offset: 1 ") and out.endswith(" headerKeys: []\n")
    wanted = "Failed to decode message at offset 1 using the specified decoder (message had a missing key)"
    assert err == f"kwire: {wanted}\n"


@pytest.mark.parametrize("magic", [0, 1])
def test_checksums_of_entries(magic: int) -> None:
    """Of each entry in a compressed wrapper, whatever that of the wrapper."""
    entries = b""
    for offset, good in enumerate((True, False, True)):
        body = bytes([magic, 0]) + bytes(8 * magic) + pack(">ii", -1, 1) + b"v"
        crc = zlib.crc32(body) ^ (not good)
        entries += pack(">qiI", offset, len(body) + 4, crc) + body
    value = gzip.compress(entries)
    body = bytes([magic, 1]) + bytes(8 * magic) + pack(">i", 2) + b"kk" + pack(">i", len(value)) + value
    wrapper = pack(">qiI", 2, len(body) + 4, zlib.crc32(body)) + body
    [batch] = kwire.read_batches(wrapper)
    assert [valid for _, valid in entry_checksums(batch)] == [True, False, True]
    assert len(list(batch)) == 3
    [plain] = kwire.read_batches(kwire.build_batch([(1, None, b"v")], magic=magic))
    assert list(entry_checksums(plain)) == [(plain.crc, True)]


def test_a_remote_snapshot_of_any_offsets() -> None:
    """As 3.9.1 and 4.3.0 print it: RemoteLogSegmentMetadata has checks of offsets, its snapshot has none."""
    values = {
        "segmentId": "AAAAAAAAAAAAAAAAAAAAAQ", "startOffset": -1, "endOffset": -5, "brokerId": 3, "maxTimestampMs": 7,
        "eventTimestampMs": 8, "segmentLeaderEpochs": [{"leaderEpoch": 4, "offset": 50}], "segmentSizeInBytes": 1000,
        "customMetadata": None, "remoteLogSegmentState": 0,
    }  # fmt: skip
    snapshot = kwire.from_json("RemoteLogSegmentMetadataSnapshotRecord", 0, values)
    record = kwire.Record(7, 0, None, kwire.encode_remote_log_record(snapshot, 0))
    assert remote_log_decoder(transaction_index=False).text(record)[1] == (
        "RemoteLogSegmentMetadataSnapshot{segmentId=AAAAAAAAAAAAAAAAAAAAAQ, startOffset=-1, endOffset=-5, "
        "maxTimestampMs=7, segmentLeaderEpochs={4=50}, segmentSizeInBytes=1000, customMetadata=Optional.empty, "
        "state=COPY_SEGMENT_STARTED}")


def test_an_unknown_key_of_the_transaction_log() -> None:
    """As 3.5.2 to 4.0.1 print it; they go on with the next record."""
    assert transaction_text(kwire.Record(7, 0, b"\1\0\0\0", b"\0\0")) == ("unknown::version=256", None)
