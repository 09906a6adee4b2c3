"""Rebuilding a batch from its fields and records."""

from __future__ import annotations

from typing import Any

import kwire


def rebuilt(batch: Any, **instead: Any) -> bytes:
    """A kwire RecordBatch rebuilt with all its fields (instead: other arguments of build_batch)."""
    arguments: dict[str, Any] = {
        "magic": batch.magic,
        "codec": batch.codec,
        "base_offset": batch.base_offset,
        "timestamp_type": batch.timestamp_type,
    }
    if batch.timestamp_type == "log_append" or batch.magic == 2:
        arguments["max_timestamp"] = batch.max_timestamp
    if batch.magic == 2:
        arguments |= {
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "transactional": batch.is_transactional,
            "control": batch.is_control,
            "partition_leader_epoch": batch.partition_leader_epoch,
            "delete_horizon": batch.delete_horizon,
            "base_timestamp": batch.base_timestamp,
            "last_offset": batch.last_offset,
        }
    return kwire.build_batch(list(batch), **(arguments | instead))
