"""The types of the records that Kafka stores, by their type id."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwire.errors import UnsupportedVersionError
from kwire.schema import files
from kwire.schema.definitions import message
from kwire.schema.release_apis import releases
from kwire_c.printable import brief

# kind -> the folder of its messages
_FOLDERS = {
    "metadata": "metadata", "group": "group", "transaction": "transaction", "share": "share", "remote_log": "storage"
}
# Kafka's ControlRecordType: the int16 after the version in a control record's key, and the message of its value
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

    type: its id; name: without Key, Value or Record ("OffsetCommit", "Topic"), for control records that of
    ControlRecordType ("COMMIT"); key: the message of its key, None if it has none; value: the message of its value.
    """

    type: int
    name: str
    key: str | None
    value: str


def record_types(kind: str) -> dict[int, RecordType]:
    """Type id -> RecordType, for a kind: "metadata" "group" "transaction" "share" "remote_log" or "control".

    An id that two types had (metadata 14: QuotaRecord, ClientQuotaRecord) gives the newer one.
    Raises UnsupportedVersionError for another kind.
    """
    known = str.__str__(kind) if isinstance(kind, str) else ""  # a str of the caller's class may equal any
    if known not in _FOLDERS and known != "control":
        raise UnsupportedVersionError(
            f"kind: unknown kind of record {brief(kind)}: expected {', '.join(_FOLDERS)} or control")
    return _record_types(known)


@lru_cache(None)
def _record_types(kind: str) -> dict[int, RecordType]:
    if kind == "control":
        return {number: RecordType(number, name, "ControlRecordTypeSchema", value)
                for number, (name, value) in _CONTROL.items()}
    folder = _FOLDERS[kind]
    types: dict[int, RecordType] = {}
    rows = {name: row for name, row in files.index().items() if row[0].startswith(folder + "/")}
    for name, (_, _, type, number, _) in rows.items():
        if number is None:
            continue
        if type == "coordinator-key":
            base = name.removesuffix("Key")
            types[number] = RecordType(number, base, name, f"{base}Value")
        elif type == "metadata":
            if number in types and _first(types[number].value) > _first(name):
                continue
            types[number] = RecordType(number, name.removesuffix("Record"), None, name)
    return dict(sorted(types.items()))


def _first(name: str) -> int:
    return releases().index(message(name).releases[0])


def record_type(kind: str, type: int) -> RecordType | None:
    """The record type with this id, None for an unknown id."""
    if not isinstance(type, int):
        raise TypeError(f"type must be an int, not {brief(type)}")
    return record_types(kind).get(type)
