"""The error that a handler raises to answer with an error code; what a disk, or memory, cannot do."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from kwire.errors import KwireError
from kwire.schema.error_codes import ErrorCode

T = TypeVar("T")
_TRIES = 20


class ApiError(KwireError):
    """An error code for the answer. message: of versions that carry one, else Kafka's own text of the code.

    explanation: the message that was given, None if it is only the code's own: where Kafka answers with
    ApiError.fromThrowable. member_id: of the answer to JoinGroup, None: that of the request.
    """

    def __init__(self, code: ErrorCode | int, message: str | None = None, member_id: str | None = None) -> None:
        self.code, self.member_id = ErrorCode(code), member_id
        self.explanation = message
        self.message = self.code.message if message is None else message
        super().__init__(f"{self.code.name}: {self.message}")


class InvalidRecordsError(ApiError):
    """INVALID_RECORD, or INVALID_TIMESTAMP if one of them is for its time: what is wrong with records (KIP-467).

    reasons: (place in the batch, reason) of the first ones; None: it has no key. count: of all.
    """

    def __init__(self, reasons: list[tuple[int, str | None]], count: int) -> None:
        timed = any(reason is not None for _, reason in reasons)
        super().__init__(ErrorCode.INVALID_TIMESTAMP if timed else ErrorCode.INVALID_RECORD)
        self.reasons, self.count = reasons, count


class StorageErrors:
    """What cannot be written to a folder, or is damaged in it, is the error that a broker answers.

    A class: to leave the block of a generator takes memory, also where all that was to be written is written.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (OSError, KwireError, ValueError)) and not isinstance(error, ApiError):
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Disk error in {self._path}: {error}") from error


def certainly(work: Callable[[], T]) -> T:
    """What work returns, which must not fail, as a file says that it has happened: tried again where memory is short.

    work: leaves nothing half done by a MemoryError that it could not do again.
    """
    tries = _TRIES
    while True:
        try:
            return work()
        except MemoryError:
            tries -= 1
            if not tries:
                raise
