from collections.abc import Callable
from typing import Any

def set_compressor(function: Callable[..., bytes]) -> None: ...
def build_v2(
    records: list[Any],
    codec: int,
    level: int | None,
    base_offset: int,
    log_append: bool,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    control: bool,
    partition_leader_epoch: int,
    delete_horizon: int | None,
    base_timestamp: int | None,
    max_timestamp: int | None,
    last_offset: int | None,
) -> bytes: ...
def build_legacy(
    records: list[Any],
    *,
    magic: int,
    codec: int,
    level: int | None,
    base_offset: int,
    log_append: bool,
    max_timestamp: int | None,
    last_offset: int | None,
) -> bytes: ...
