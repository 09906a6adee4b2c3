from collections.abc import Callable, Sequence
from typing import Any, Self

from kwire_c.columns import RecordColumns

class Markers:
    def __new__(cls, blocks: list[Any], verify_crc: bool, limit: int) -> Self: ...
    def keep(self, producer_id: int, base_offset: int, source: int, position: int) -> bool: ...

def gather(
    inputs: Sequence[Any],
    fields: tuple[str, ...],
    *,
    committed: bool = False,
    control: bool = False,
    views: bool = False,
    verify_crc: bool = True,
    errors: str = "raise",
    max_batch_bytes: int,
    strict_tail: bool = False,
    decide: Callable[[int, int, int, int], bool] | None = None,
    offsets: tuple[int | None, int | None] | None = None,
    timestamps: tuple[int | None, int | None] | None = None,
    chunk_bytes: int = ...,
) -> RecordColumns: ...
