"""The one family of errors that kwire raises for bad input."""

from __future__ import annotations

from typing import Any

from kwire_c.printable import printable

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by Python code


class KwireError(ValueError):
    """Base of every error that kwire raises for bad data, bad values or refused limits.

    Its text may be shown anywhere: what others wrote into it (names, hosts, a broker's words) cannot move a terminal.
    """

    def __str__(self) -> str:
        return printable(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[KwireError], args: tuple[Any, ...], state: dict[str, Any]) -> KwireError:
    made: type = kind
    while made.__flags__ & _HEAP_TYPE:  # down to Python's own, whose layout it has: ValueError or OSError
        made = made.__base__ or object
    error: KwireError = made.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class DecodeError(KwireError):
    """Bytes that are not what the message and version say.

    offset: byte position in the input (int); path: the field, as ".responses[3].records"; reason: what is wrong.
    """

    def __init__(self, reason: str, *, offset: int = 0, path: str = "", what: str = "") -> None:
        self.reason, self.offset, self.path = reason, offset, path
        place = f"{what} {path}".strip()
        super().__init__(f"{place}: {reason}, at byte {offset}" if place else f"{reason}, at byte {offset}")


class EncodeError(KwireError):
    """A value that the message and version cannot carry. path: the field; reason: what is wrong."""

    def __init__(self, reason: str, *, path: str = "", what: str = "") -> None:
        self.reason, self.path = reason, path
        place = f"{what} {path}".strip()
        super().__init__(f"{place}: {reason}" if place else reason)


class CorruptBatchError(KwireError):
    """A record batch that is damaged or contradicts itself.

    position: byte of the batch in the input; offset: its base offset (-1 if unreadable); reason: what is wrong.
    """

    def __init__(self, reason: str, *, position: int = 0, offset: int = -1) -> None:
        self.reason, self.position, self.offset = reason, position, offset
        super().__init__(f"batch at byte {position}, base offset {offset}: {reason}")


class LimitError(KwireError):
    """Input that asks for more than a limit allows.

    limit: the limit; needed: what was asked for as far as known (None if unknown); offset: byte position in the input.
    """

    def __init__(self, reason: str, *, limit: int, needed: int | None = None, offset: int = 0) -> None:
        self.reason, self.limit, self.needed, self.offset = reason, limit, needed, offset
        super().__init__(f"{reason} (limit {limit}, needed {'more' if needed is None else needed}), at byte {offset}")


class UnsupportedVersionError(KwireError):
    """A message, version or release that the schema, or the broker, lacks.

    api: its name or key; needed: (min, max) or version asked for; offered: (min, max) there is, or None;
    header: what could be read of a frame's header, or None. KIP-97 calls it ObsoleteBrokerVersion.
    """

    def __init__(
        self, reason: str, *, api: Any = None, needed: Any = None, offered: Any = None, header: Any = None
    ) -> None:
        self.reason, self.api, self.needed, self.offered, self.header = reason, api, needed, offered, header
        super().__init__(reason)


ObsoleteBrokerVersion = UnsupportedVersionError


class MissingCodecError(KwireError, ImportError):
    """A compression codec whose library is not installed; the text names the extra to install."""


# The family is kwire's, wherever its code stands: this is the name users see and pickles carry.
def _name_as_kwire(*kinds: type[KwireError]) -> None:
    for kind in kinds:
        kind.__module__ = "kwire"


_name_as_kwire(
    KwireError, DecodeError, EncodeError, CorruptBatchError, LimitError, UnsupportedVersionError, MissingCodecError
)
