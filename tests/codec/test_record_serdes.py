"""Records that Kafka stores: metadata, coordinators (both key forms), remote log."""

from __future__ import annotations

import pytest

import kwire
from kwire import messages
from tests.codec import vectors

pytestmark = pytest.mark.quick


def test_framed_vectors() -> None:
    seen = set()
    for name in (name for name in vectors.KINDS if name.endswith(("-metadata.jsonl.gz", "-coordinator.jsonl.gz"))):
        for vector in vectors.with_this_layout(name):
            if "framedHex" not in vector:
                continue
            frame, version, serde = bytes.fromhex(vector["framedHex"]), vector["version"], vector["frame"]["serde"]
            message = kwire.decode(vector["message"], version, bytes.fromhex(vector["hex"]))
            seen.add(serde)
            if serde == "MetadataRecordSerde":
                assert kwire.encode_metadata_record(message, version) == frame
                if vector["message"] != "QuotaRecord":
                    assert kwire.decode_metadata_record(frame) == (message, version)
            elif serde == "BytesApiMessageSerde":
                assert kwire.encode_remote_log_record(message, version) == frame
                assert kwire.decode_remote_log_record(frame) == (message, version)
    assert len(seen) >= 3, seen


def test_coordinator_vectors() -> None:
    keys, values = {}, {}
    for vector in vectors.lines("messages-4.3.0-coordinator.jsonl.gz"):
        if "framedHex" in vector:
            place = keys if vector["schemaType"] == "coordinator-key" else values
            place.setdefault(vector["message"].removesuffix("Key").removesuffix("Value"), []).append(vector)
    count = 0
    for name, rows in keys.items():
        kind = ("transaction" if name == "TransactionLog" else
                "share" if name in ("ShareSnapshot", "ShareUpdate") else "group")
        for row in rows:
            key = bytes.fromhex(row["framedHex"])
            dead = kwire.decode_coordinator_record(kind, key, None)
            assert (dead.type, dead.name, dead.value, dead.value_version) == (row["apiKey"], name, None, None)
            assert kwire.encode_coordinator_record(kind, dead.key, None) == (key, None)
            for other in values.get(name, ()):
                value = bytes.fromhex(other["framedHex"])
                record = kwire.decode_coordinator_record(kind, key, value)
                assert record.value_version == other["version"]
                assert kwire.to_json(record.value, record.value_version) == other["json"]
                made = kwire.encode_coordinator_record(kind, record.key, record.value, record.value_version)
                assert made == (key, value)
                count += 1
    assert count > 50


def test_types_0_and_1_are_offset_commits() -> None:
    body = kwire.encode(messages.OffsetCommitKey(group="g", topic="t", partition=3), 0)
    old_value = b"\0\0" + kwire.encode(messages.LegacyOffsetCommitValue(offset=7), 0)
    new_value = b"\0\4" + kwire.encode(messages.OffsetCommitValue(offset=7), 4)
    old = kwire.decode_coordinator_record("group", b"\0\0" + body, old_value)
    new = kwire.decode_coordinator_record("group", b"\0\1" + body, new_value)
    assert (old.name, new.name) == ("LegacyOffsetCommit", "OffsetCommit")
    for record in (old, new):
        assert (record.key.group, record.key.topic, record.key.partition, record.value.offset) == ("g", "t", 3, 7)


def test_what_the_facts_lack() -> None:
    record = kwire.decode_coordinator_record("group", b"\x03\xe7abc", b"\0\0x")
    assert record == (999, None, b"\x03\xe7abc", b"\0\0x", None)
    assert kwire.encode_coordinator_record("group", record.key, record.value) == (record.key, record.value)
    with pytest.raises(kwire.UnsupportedVersionError):
        kwire.decode_metadata_record(b"\x01\x63\x00\x00")
    with pytest.raises(kwire.UnsupportedVersionError):
        kwire.decode_metadata_record(b"\x02\x02\x00\x00")
    with pytest.raises(kwire.UnsupportedVersionError):
        kwire.decode_coordinator_record("nobody", b"\0\0", b"")
    with pytest.raises(kwire.DecodeError):
        kwire.decode_metadata_record(b"\x01\x80")
    with pytest.raises(kwire.DecodeError) as caught:
        kwire.decode_metadata_record(b"\x01\x02\x00\x02")
    assert caught.value.offset == 4 and caught.value.path == ".name"


def test_number_14_is_the_newest() -> None:
    data = kwire.encode_metadata_record(messages.ClientQuotaRecord(key="k", value=1.0), 0)
    assert data[:3] == b"\x01\x0e\x00"
    assert type(kwire.decode_metadata_record(data)[0]) is messages.ClientQuotaRecord
