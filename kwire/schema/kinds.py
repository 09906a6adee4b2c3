"""The types of the records that Kafka stores, by the number in front of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwire.schema import files
from kwire.schema.facts import message
from kwire.schema.history import releases
from kwire_c.errors import UnsupportedVersionError

# kind -> the folder that its messages stand in
_FOLDERS = {
    "metadata": "metadata", "group": "group", "transaction": "transaction", "share": "share", "remote_log": "storage"
}
# Kafka's ControlRecordType: the int16 behind a control record's key version, and the message of its value
_CONTROL = {
    0: ("ABORT", "EndTxnMarker"),
    1: ("COMMIT", "EndTxnMarker"),
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}


class RecordType(NamedTuple):
    """A type of stored record.

    type: its number; name: without Key, Value or Record ("OffsetCommit", "Topic"), for control records as Kafka
    names them ("COMMIT"); key: the message of its key, None where the type alone is the key; value: that of its value.
    """

    type: int
    name: str
    key: str | None
    value: str


@lru_cache(None)
def record_types(kind: str) -> dict[int, RecordType]:
    """Type -> record type, of "metadata" "group" "transaction" "share" "remote_log" or "control".

    A number that two types had (metadata 14: QuotaRecord, ClientQuotaRecord) is the newest one's.
    """
    if kind == "control":
        return {number: RecordType(number, name, "ControlRecordTypeSchema", value)
                for number, (name, value) in _CONTROL.items()}
    folder = _FOLDERS.get(kind)
    if folder is None:
        raise UnsupportedVersionError(f"no kind of stored records {kind!r}: there are {', '.join(_FOLDERS)}, control")
    found: dict[int, RecordType] = {}
    rows = {name: row for name, row in files.index().items() if row[0].startswith(folder + "/")}
    for name, (_, _, type, number, _) in rows.items():
        if number is None:
            continue
        if type == "coordinator-key":
            base = name.removesuffix("Key")
            found[number] = RecordType(number, base, name, f"{base}Value")
        elif type == "metadata":
            if number in found and _first(found[number].value) > _first(name):
                continue
            found[number] = RecordType(number, name.removesuffix("Record"), None, name)
    return dict(sorted(found.items()))


def _first(name: str) -> int:
    return releases().index(message(name).releases[0])


def record_type(kind: str, type: int) -> RecordType | None:
    """The record type of that number, None for one that the facts lack."""
    return record_types(kind).get(type)
