"""What the configs of a topic say of its logs (Kafka's LogConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_WEEK_MS, _DAY_MS = 604_800_000, 86_400_000
_ANY_TIME, _NOT_SET = (1 << 63) - 1, -1
_HOUR_MS = 3_600_000
_LEAST_SEGMENT, _MOST_SEGMENT = 14, (1 << 31) - 1  # bytes: LogConfig's own bounds of segment.bytes


class LogSettings(NamedTuple):
    """The settings of a log, Kafka's defaults. Times are milliseconds; a retention of -1 has no limit.

    compacts, deletes: cleanup.policy; log_append_time: whether batches get the broker's time (message.timestamp.type);
    codec: that of all batches (compression.type), None: each keeps its producer's; converts: whether old versions of
    Fetch get records (message.downconversion.enable).
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
    min_insync_replicas: int = 1
    message_timestamp_before_max_ms: int = _ANY_TIME
    message_timestamp_after_max_ms: int = _NOT_SET
    message_timestamp_difference_max_ms: int = _ANY_TIME
    codec: str | None = None
    compacts: bool = False
    deletes: bool = True
    converts: bool = True

    def timestamp_limits(self, *, in_two: bool, with_difference: bool) -> tuple[int, int]:
        """How far a record's time may be before the broker's, and after it, milliseconds.

        in_two: the release has a config of each (KIP-937); with_difference: and the one for both, which it had before.
        """
        both = self.message_timestamp_difference_max_ms
        if not in_two:
            return both, both
        before, after = self.message_timestamp_before_max_ms, self.message_timestamp_after_max_ms
        if not with_difference:
            return before, _HOUR_MS if after == _NOT_SET else after
        return both if before == _ANY_TIME else before, both if after in (_NOT_SET, _ANY_TIME) else after

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> LogSettings:
        """The settings that a topic's own configs give; values that are no numbers were refused before."""
        known = cls()
        numbers = {
            name: int(configs[config]) for name in cls._fields
            if isinstance(getattr(known, name), int) and (config := name.replace("_", ".")) in configs}
        policy = [part.strip() for part in configs.get("cleanup.policy", "delete").split(",")]
        codec = configs.get("compression.type", "producer").strip()
        settings = known._replace(
            **numbers, codec={"producer": None, "uncompressed": "none"}.get(codec, codec),
            log_append_time=configs.get("message.timestamp.type", "").strip() == "LogAppendTime",
            compacts="compact" in policy, deletes="delete" in policy,
            converts=configs.get("message.downconversion.enable", "true").strip().lower() == "true")
        return settings._replace(
            segment_bytes=min(max(settings.segment_bytes, _LEAST_SEGMENT), _MOST_SEGMENT),
            index_interval_bytes=max(settings.index_interval_bytes, 0))
