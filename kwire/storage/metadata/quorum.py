"""What the control records of a metadata log say of the quorum: kraft.version and the voters (KIP-853)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kwire import messages
from kwire.codec.messages import encode
from kwire.schema import record_types

HEADER, FOOTER, KRAFT_VERSION, VOTERS = "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"
_KEPT = (HEADER, FOOTER, KRAFT_VERSION, VOTERS)
_BLANK = {HEADER: "SnapshotHeaderRecord", FOOTER: "SnapshotFooterRecord"}


@dataclass
class Quorum:
    """The newest control record of each kind. records: type ("KRAFT_VOTERS") -> message, unknown tags included."""

    records: dict[str, Any] = field(default_factory=dict)

    def note(self, kind: str | int, message: Any) -> None:
        """Take a control record, if it is of a kind that a snapshot has."""
        if kind in _KEPT:
            self.records[str(kind)] = message

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""
        record = self.records.get(KRAFT_VERSION)
        return 0 if record is None else record.kraft_version

    @property
    def voters(self) -> tuple[Any, ...]:
        """The voters."""
        record = self.records.get(VOTERS)
        return () if record is None else tuple(record.voters)

    def header(self, timestamp: int) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) of the control records at the start of a snapshot; timestamp: of its last record, in ms."""
        first = copy.copy(self._record(HEADER))
        first.last_contained_log_timestamp = timestamp
        yield _control(HEADER, first)
        for kind in (KRAFT_VERSION, VOTERS):
            if kind in self.records:
                yield _control(kind, self.records[kind])

    def footer(self) -> tuple[bytes, bytes]:
        """(key, value) of the control record at the end of a snapshot."""
        return _control(FOOTER, self._record(FOOTER))

    def _record(self, kind: str) -> Any:
        return self.records[kind] if kind in self.records else getattr(messages, _BLANK[kind])()


def _control(kind: str, message: Any) -> tuple[bytes, bytes]:
    number = next(row.type for row in record_types("control").values() if row.name == kind)
    return b"\0\0" + number.to_bytes(2, "big"), encode(message, message.version)
