"""The errors of metadata logs and of downgrades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kwire.errors import KwireError
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage.metadata.levels import Loss


class MetadataLogError(KwireError):
    """A metadata log or snapshot that gives no image: torn, with a gap, or with a record that fits nothing before it.

    file: the log segment or snapshot; offset: the Kafka offset, or that in the snapshot (-1: none); reason: what is
    wrong.
    """

    def __init__(self, reason: str, *, file: str = "", offset: int = -1) -> None:
        self.reason, self.file, self.offset = reason, file, offset
        place = ", ".join([printable(file)] * bool(file) + [f"offset {offset}"] * (offset >= 0))
        super().__init__(f"{place}: {reason}" if place else reason)


class DowngradeError(KwireError):
    """A downgrade that is refused.

    losses: what it would lose; lowered: feature -> (level, level it would be lowered to). Both are empty where unsafe
    does not help: to a higher level, or from one that is unknown.
    """

    def __init__(
        self, reason: str, losses: Sequence[Loss] = (), lowered: Mapping[str, tuple[int, int]] | None = None
    ) -> None:
        self.reason, self.losses, self.lowered = reason, list(losses), dict(lowered or {})
        super().__init__(reason)
