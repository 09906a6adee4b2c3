"""The error that a handler raises to answer with an error code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kwire.errors import KwireError
from kwire.schema.error_codes import ErrorCode


class ApiError(KwireError):
    """An error code for the answer. message: of versions that carry one, else Kafka's own text of the code.

    explanation: the message that was given, None if it is only the code's own: where Kafka answers with
    ApiError.fromThrowable.
    """

    def __init__(self, code: ErrorCode | int, message: str | None = None) -> None:
        self.code = ErrorCode(code)
        self.explanation = message
        self.message = self.code.message if message is None else message
        super().__init__(f"{self.code.name}: {self.message}")


class InvalidRecordsError(ApiError):
    """INVALID_RECORD for the records at these places of their batch, each for the same reason (KIP-467)."""

    def __init__(self, places: list[int], reason: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, reason)
        self.places = places


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """What cannot be written to a folder, or is damaged in it, is the error that a broker answers."""
    try:
        yield
    except ApiError:
        raise
    except (OSError, KwireError, ValueError) as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Disk error in {path}: {error}") from error
