from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from typing_extensions import Buffer

from kwire_c.record_batch import Record

# timestamp in milliseconds, key, value, headers
_Headers: TypeAlias = Iterable[tuple[str, Buffer | None]] | Mapping[str, Buffer | None] | None
_Row: TypeAlias = (
    tuple[int, Buffer | None, Buffer | None] | tuple[int, Buffer | None, Buffer | None, _Headers]
)

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

def build_batch(
    records: Iterable[Record | _Row],
    *,
    magic: int = 2,
    codec: str = "none",
    level: int | None = None,
    base_offset: int = 0,
    timestamp_type: str = "create",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = -1,
    delete_horizon: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    last_offset: int | None = None,
) -> bytes: ...
def build_batches(
    columns: _ArrowStream | _ArrowArray,
    *,
    batch_bytes: int = 16384,
    batch_records: int | None = None,
    magic: int = 2,
    codec: str = "none",
    level: int | None = None,
    base_offset: int = 0,
    timestamp_type: str = "create",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = -1,
    delete_horizon: int | None = None,
) -> list[tuple[bytes, int, int]]: ...
