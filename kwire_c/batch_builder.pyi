from collections.abc import Iterable
from typing import Any

from kwire_c.record_batch import Record

def build_batch(
    records: Iterable[Record | tuple[Any, ...]],
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
    columns: Any,
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
