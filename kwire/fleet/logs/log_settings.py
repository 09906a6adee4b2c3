"""What the configs of a topic say of its logs (Kafka's LogConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_WEEK_MS, _DAY_MS = 604_800_000, 86_400_000
_LEAST_SEGMENT, _MOST_SEGMENT = 14, (1 << 31) - 1  # bytes: LogConfig's own bounds of segment.bytes


class LogSettings(NamedTuple):
    """The settings of a log, Kafka's defaults. Times are milliseconds; a retention of -1 has no limit.

    compacts, deletes: cleanup.policy; log_append_time: whether batches get the broker's time (message.timestamp.type).
    """

    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    segment_bytes: int = 1 << 30
    segment_ms: int = _WEEK_MS
    index_interval_bytes: int = 4096
    retention_ms: int = _WEEK_MS
    retention_bytes: int = -1
    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    compacts: bool = False
    deletes: bool = True

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> LogSettings:
        """The settings that a topic's own configs give; values that are no numbers were refused before."""
        known = cls()
        numbers = {
            name: int(configs[config]) for name in cls._fields
            if isinstance(getattr(known, name), int) and (config := name.replace("_", ".")) in configs}
        policy = [part.strip() for part in configs.get("cleanup.policy", "delete").split(",")]
        settings = known._replace(
            **numbers, log_append_time=configs.get("message.timestamp.type", "").strip() == "LogAppendTime",
            compacts="compact" in policy, deletes="delete" in policy)
        return settings._replace(
            segment_bytes=min(max(settings.segment_bytes, _LEAST_SEGMENT), _MOST_SEGMENT),
            index_interval_bytes=max(settings.index_interval_bytes, 0))
