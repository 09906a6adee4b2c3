"""GetTelemetrySubscriptions and PushTelemetry (KIP-714), of a broker without subscriptions.

As a broker without a telemetry plug-in it does not advertise them, and it answers them.
"""

from __future__ import annotations

import uuid
from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode
from kwire_c.crc32c import crc32c

_COMPRESSIONS = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy: as the broker prefers them
_INTERVAL_MS, _MAX_BYTES = 300_000, 1 << 20  # ClientMetricsConfigs.INTERVAL_MS_DEFAULT, telemetry.max.bytes
_NO_ID, _RESERVED = uuid.UUID(int=0), (uuid.UUID(int=0), uuid.UUID(int=1))  # Uuid.RESERVED
_MAY_ASK_AGAIN = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class ClientTelemetry:
    """What a broker knows of the client of a connection (ClientMetricsInstance). Times are in milliseconds."""

    def __init__(self, client: uuid.UUID) -> None:
        self.client = client
        self._asked = self._pushed = 0
        self._error = ErrorCode.NONE
        self._terminating = False

    @property
    def subscription_id(self) -> int:
        """The CRC32C of the metrics, none, and of the interval, XORed with Uuid.hashCode of the client."""
        halves = self.client.int ^ (self.client.int >> 64)
        number = crc32c(f"[]{_INTERVAL_MS}".encode()) ^ ((halves ^ (halves >> 32)) & 0xFFFFFFFF)
        return int(number - (1 << 32) if number >> 31 else number)

    def ask(self, now: int) -> None:
        """It asks for its subscriptions. Raises ApiError: THROTTLING_QUOTA_EXCEEDED if it did so a moment ago."""
        if now - max(self._asked, self._pushed) >= _INTERVAL_MS:
            self._asked = now
        elif self._error not in _MAY_ASK_AGAIN:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._error = ErrorCode.NONE

    def push(self, message: Any, now: int) -> None:
        """It sends metrics. Raises ApiError (ClientMetricsManager.validatePushRequest)."""
        try:
            self._check(message, now)
        except ApiError as error:
            self._error = error.code
            raise
        finally:
            self._terminating = message.terminating
        self._error = ErrorCode.NONE

    def _check(self, message: Any, now: int) -> None:
        if self._terminating:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if self._asked > self._pushed or now - self._pushed >= _INTERVAL_MS:
            self._pushed = now
        elif not message.terminating:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if message.subscription_id != self.subscription_id:
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if message.compression_type not in (0, *_COMPRESSIONS):
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(message.metrics) > _MAX_BYTES:
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE)


def _telemetry(call: Call, client: uuid.UUID) -> ClientTelemetry:
    known: ClientTelemetry | None = call.connection.telemetry
    if known is None or known.client != client:
        known = call.connection.telemetry = ClientTelemetry(client)
    return known


@handles("GetTelemetrySubscriptions")
def get_telemetry_subscriptions(call: Call) -> Any:
    """An id for the client, and that no metrics are wanted."""
    response, client = messages.GetTelemetrySubscriptionsResponse, call.message.client_instance_id
    known = _telemetry(call, call.cluster.new_id() if client == _NO_ID else client)
    try:
        known.ask(call.cluster.clock.now_ms())
    except ApiError as error:
        return response(error_code=error.code)
    return response(
        client_instance_id=known.client, subscription_id=known.subscription_id, push_interval_ms=_INTERVAL_MS,
        accepted_compression_types=_COMPRESSIONS, telemetry_max_bytes=_MAX_BYTES, delta_temporality=True)


@handles("PushTelemetry")
def push_telemetry(call: Call) -> Any:
    """Take metrics, which go nowhere."""
    try:
        if call.message.client_instance_id in _RESERVED:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        _telemetry(call, call.message.client_instance_id).push(call.message, call.cluster.clock.now_ms())
    except ApiError as error:
        return messages.PushTelemetryResponse(error_code=error.code)
    return messages.PushTelemetryResponse()
