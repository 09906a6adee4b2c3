"""The error that a handler raises to answer with an error code."""

from __future__ import annotations

from kwire.errors import KwireError
from kwire.schema.error_codes import ErrorCode


class ApiError(KwireError):
    """An error code for the answer. message: of versions that carry one, else Kafka's own text of the code."""

    def __init__(self, code: ErrorCode | int, message: str | None = None) -> None:
        self.code = ErrorCode(code)
        self.message = self.code.message if message is None else message
        super().__init__(f"{self.code.name}: {self.message}")
