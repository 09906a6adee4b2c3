from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kwire_c.columns import RecordColumns

KINDS: tuple[str, ...]

class RecordText:
    def __new__(
        cls,
        pieces: Sequence[tuple[str, str, dict[str, Any]]],
        *,
        decode: Callable[[int, int, bytes | None, bytes | None, bool], tuple[bytes, ...] | None] | None = None,
        every: bool = False,
        cells: int = 0,
        fit: Callable[[bytes], bytes] | None = None,
    ) -> RecordText: ...
    def write(self, columns: RecordColumns, rows: Sequence[int] | None = None) -> Iterator[bytes]: ...

def values_of(columns: RecordColumns, name: str) -> list[Any]: ...
