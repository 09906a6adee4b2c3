"""What the control records of a metadata log say of the quorum: kraft.version and the voters (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kwire import messages
from kwire.codec.messages import encode
from kwire.schema import record_types

HEADER, FOOTER, VERSION, VOTERS = "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"
LEADER_CHANGE = "LEADER_CHANGE"  # not kept: it begins an epoch of the leader
_KEPT = (HEADER, FOOTER, VERSION, VOTERS)
_BLANK = {HEADER: "SnapshotHeaderRecord", FOOTER: "SnapshotFooterRecord"}


@dataclass
class Quorum:
    """The newest control record of each kind.

    records: type ("KRAFT_VOTERS") -> message; values: its bytes, which are written again as they are: a message of a
    version that is newer than the schema is read as the newest known one.
    """

    records: dict[str, Any] = field(default_factory=dict)
    values: dict[str, bytes] = field(default_factory=dict, repr=False)

    def note(self, kind: str | int, message: Any, value: bytes) -> None:
        """Take a control record, if it is of a kind that a snapshot has."""
        if kind in _KEPT:
            self.records[str(kind)], self.values[str(kind)] = message, value

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""
        record = self.records.get(VERSION)
        return 0 if record is None else record.kraft_version

    @property
    def voters(self) -> tuple[messages.VotersRecord.Voter, ...]:
        """The voters."""
        record = self.records.get(VOTERS)
        return () if record is None else tuple(record.voters)

    def header(self, timestamp: int) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) of the control records at the start of a snapshot; timestamp: of its last record, in ms.

        Raises EncodeError for a timestamp past 64 bits.
        """
        value = self._value(HEADER)  # version, timestamp and what newer versions add
        stamped = encode(messages.SnapshotHeaderRecord(last_contained_log_timestamp=timestamp), 0)
        yield control_key(HEADER), value[:2] + stamped[2:10] + value[10:]
        for kind in (VERSION, VOTERS):
            if kind in self.values:
                yield control_key(kind), self.values[kind]

    def footer(self) -> tuple[bytes, bytes]:
        """(key, value) of the control record at the end of a snapshot."""
        return control_key(FOOTER), self._value(FOOTER)

    def _value(self, kind: str) -> bytes:
        return self.values[kind] if kind in self.values else encode(getattr(messages, _BLANK[kind])(), 0)


def control_key(kind: str) -> bytes:
    """The key of a control record of a type."""
    number = next(row.type for row in record_types("control").values() if row.name == kind)
    return b"\0\0" + number.to_bytes(2, "big")
