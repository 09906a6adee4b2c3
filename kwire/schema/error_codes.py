"""Kafka's error codes with their names, messages and kinds (org.apache.kafka.common.protocol.Errors)."""

from __future__ import annotations

from enum import EnumMeta, IntEnum
from operator import index
from typing import TYPE_CHECKING, Any

from kwire.errors import KwireError
from kwire.schema import files
from kwire_c.printable import brief

_TABLE: dict[int, dict[str, Any]] = {int(code): row for code, row in files.load("errors.json").items()}
_UNKNOWN: dict[str, Any] = {"message": "", "since": None}


class _Codes(EnumMeta):
    """The metaclass of ErrorCode, from which type checkers know that ErrorCode.NAME is an ErrorCode."""

    if TYPE_CHECKING:

        def __getattr__(cls, name: str) -> ErrorCode: ...

    else:

        def __call__(cls, value, *more, **names):
            try:
                code = index(value)  # of numpy too
            except TypeError:
                code = None
            if code is None or not -32768 <= code <= 32767:
                raise KwireError(f"invalid error code {brief(value)}: expected an int16")
            return super().__call__(code, *more, **names)


class ErrorCode(IntEnum, metaclass=_Codes):
    """A Kafka error code (int16): ErrorCode(35).name, .message, .retriable; ErrorCode.NONE; ErrorCode["NONE"].

    An unknown code is a member too (name UNKNOWN_CODE_n, .known is False): newer brokers may send one.
    """

    _ignore_ = "members code row"
    members = vars()
    for code, row in _TABLE.items():
        members[row["name"]] = code

    @property
    def message(self) -> str:
        """Kafka's message, "" for NONE and for an unknown code."""
        return str(_TABLE.get(self.value, _UNKNOWN)["message"])

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed if retried (RetriableException)."""
        return "retriable" in _TABLE.get(self.value, _UNKNOWN)

    @property
    def invalid_metadata(self) -> bool:
        """Whether the client should refresh its metadata before it retries (InvalidMetadataException)."""
        return "invalidMetadata" in _TABLE.get(self.value, _UNKNOWN)

    @property
    def known(self) -> bool:
        """Whether kwire's schema has the code; a broker of a newer release may send others."""
        return self.value in _TABLE

    @property
    def since(self) -> str | None:
        """The first release that has the code, None for an unknown code."""
        since: str | None = _TABLE.get(self.value, _UNKNOWN)["since"]
        return since

    @classmethod
    def _missing_(cls, value: object) -> Any:
        assert isinstance(value, int)  # __call__ refused others
        code = int.__new__(cls, value)
        code._name_, code._value_ = f"UNKNOWN_CODE_{value}".replace("-", "MINUS_"), value
        return cls._value2member_map_.setdefault(value, code)
