"""The errors that kwire raises for invalid input: KwireError and its subclasses."""

from __future__ import annotations

from typing import Any, TypeVar

from kwire_c.printable import printable

E = TypeVar("E", bound=BaseException)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by Python code


class KwireError(ValueError):
    """Base class of the errors that kwire raises for invalid data, invalid values and exceeded limits.

    The text is safe to show on a terminal: control characters in names, hosts or a broker's messages are escaped.
    """

    def __str__(self) -> str:
        return printable(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def alone(error: E) -> E:
    """The error to be kept: without traceback and context, which keep the frames of all callers and what is in them."""
    error.__traceback__ = error.__context__ = None
    return error


def _rebuild(kind: type[KwireError], args: tuple[Any, ...], state: dict[str, Any]) -> KwireError:
    made: type = kind
    while made.__flags__ & _HEAP_TYPE:  # up to Python's own class with the same layout: ValueError or OSError
        made = made.__base__ or object
    error: KwireError = made.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class DecodeError(KwireError):
    """Bytes that are not a valid message of that version.

    offset: byte position in the input (int); path: the field, like ".responses[3].records"; reason: what is wrong.
    """

    def __init__(self, reason: str, *, offset: int = 0, path: str = "", what: str = "") -> None:
        self.reason, self.offset, self.path = reason, offset, path
        place = f"{what} {path}".strip()
        super().__init__(f"{place}: {reason}, at byte {offset}" if place else f"{reason}, at byte {offset}")


class WrongFileError(DecodeError):
    """A file of another kind than what reads it: an index, a text or a capture where a segment is expected.

    The text says what it is, and what reads it; file: its path.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.args = (reason,)


class EncodeError(KwireError):
    """A value that cannot be encoded in that version. path: the field; reason: what is wrong."""

    def __init__(self, reason: str, *, path: str = "", what: str = "") -> None:
        self.reason, self.path = reason, path
        place = f"{what} {path}".strip()
        super().__init__(f"{place}: {reason}" if place else reason)


class CorruptBatchError(KwireError):
    """A record batch that is corrupt.

    position: byte of the batch in the input; offset: its base offset (-1 if unreadable); reason: what is wrong; size:
    bytes from there on that hold no valid batch (-1: those of the batch).
    """

    def __init__(self, reason: str, *, position: int = 0, offset: int = -1, size: int = -1) -> None:
        self.reason, self.position, self.offset, self.size = reason, position, offset, size
        super().__init__(f"batch at byte {position}, base offset {offset}: {reason}")


class LimitError(KwireError):
    """Input that exceeds a limit.

    limit: the limit; needed: the amount needed, None if unknown; offset: byte position in the input, None if it is too
    many things, and no byte's matter.
    """

    def __init__(self, reason: str, *, limit: int, needed: int | None = None, offset: int | None = 0) -> None:
        self.reason, self.limit, self.needed, self.offset = reason, limit, needed, offset
        place = "" if offset is None else f", at byte {offset}"
        super().__init__(f"{reason} (limit {limit}, needed {'more' if needed is None else needed}){place}")


class UnsupportedVersionError(KwireError):
    """A message, version or release that is unknown to the schema or not supported by the broker.

    api: its name or key; needed: the version or (min, max) asked for; offered: the (min, max) supported, or None;
    header: the part of a frame's header that could be read, or None. KIP-97 calls it ObsoleteBrokerVersion.
    """

    def __init__(
        self, reason: str, *, api: Any = None, needed: Any = None, offered: Any = None, header: Any = None
    ) -> None:
        self.reason, self.api, self.needed, self.offered, self.header = reason, api, needed, offered, header
        super().__init__(reason)


ObsoleteBrokerVersion = UnsupportedVersionError


class MissingCodecError(KwireError, ImportError):
    """A compression codec whose library is not installed (the text names what to install) or cannot be loaded."""


# Users and pickles see these classes where they import them from, not in kwire_c.errors.
def _name_as_in(module: str, *kinds: type[KwireError]) -> None:
    for kind in kinds:
        kind.__module__ = module


_name_as_in(
    "kwire",
    KwireError, DecodeError, EncodeError, CorruptBatchError, LimitError, UnsupportedVersionError, MissingCodecError,
)
_name_as_in("kwire.errors", WrongFileError)
