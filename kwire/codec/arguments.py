"""Checks of what callers pass: each error names the argument, what was expected and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire_c.message_class import Message
from kwire_c.printable import brief

if TYPE_CHECKING:
    from typing_extensions import Buffer


def byte_view(data: Buffer, name: str) -> memoryview:
    """The bytes of an argument. Raises TypeError for what is no buffer, BufferError if it is not contiguous."""
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{name} must be bytes or another buffer, not {type(data).__name__}") from None
    if not view.c_contiguous:
        raise BufferError(f"{name} must be a contiguous buffer")
    return view.cast("B")


def check_message(value: object) -> None:
    """Raise TypeError for what is no message."""
    if not isinstance(value, Message):
        raise TypeError(f"message must be a message, as messages.FetchRequest(), not {brief(value)}")


def check_int(value: object, name: str, low: int, high: int) -> int:
    """The integer in an argument. Raises TypeError for another type, ValueError outside of low to high."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {brief(value)}")
    return value
