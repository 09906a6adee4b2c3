"""Checks of what callers pass: each error names the argument, what was expected and what was found."""

from __future__ import annotations

import math
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, SupportsIndex

from kwire_c.plan import message_of
from kwire_c.printable import brief
from kwire_c.record_batch import Block

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kwire import schema
    from kwire_c.message_class import Message


def byte_view(data: Buffer, name: str) -> memoryview:
    """The bytes of an argument. Raises TypeError for what is no buffer, BufferError if it is not contiguous."""
    return memoryview(Block(data, name))  # not of data itself: memoryview refuses numpy's arrays of dates


def schema_of(message: Message) -> schema.Message:
    """The definition of a message. Raises TypeError for what is no message."""
    try:
        definition: schema.Message = message_of(message).schema
    except TypeError:
        raise TypeError(f"message must be a message, as messages.FetchRequest(), not {brief(message)}") from None
    return definition


def check_int(value: SupportsIndex, name: str) -> int:
    """The integer in an argument, also of a library (numpy.int64). Raises TypeError for anything else."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    try:
        return index(value)
    except TypeError as error:  # of an array
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from error


def can_iterate(value: object) -> bool:
    """Whether an argument has items; an array without dimensions and a memoryview of several have none."""
    if isinstance(value, memoryview) and value.ndim != 1:
        return False
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def check_choice(value: object, choices: tuple[str, ...], name: str) -> None:
    """Raise ValueError for an argument that is none of these names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {brief(value)}")


def check_ints(**arguments: object) -> None:
    """Raise TypeError for an argument that is neither an integer nor None."""
    for name, value in arguments.items():
        if value is not None and not (isinstance(value, Integral) and hasattr(value, "__index__")):
            # numpy.int64 is one; an array is not, nor is numpy.timedelta64, which says that it is Integral
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")


def check_seconds(value: object, name: str) -> float:
    """The seconds in an argument; more than a float can hold are math.inf, which is no limit.

    Raises TypeError for what is no number, ValueError for NaN.
    """
    check_type(value, Real, name, "a number of seconds")  # numpy's too
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except OverflowError:
        seconds = math.inf if value > 0 else -math.inf  # type: ignore[operator]
    if math.isnan(seconds):
        raise ValueError(f"{name} must be a number of seconds, not nan")
    return seconds


def check_each(values: object, kinds: type, name: str, expected: str) -> None:
    """Raise TypeError unless the argument is a list (or another sequence) of these; expected: "SegmentFiles"."""
    check_type(values, (list, tuple), name, f"a list of {expected}")
    for value in values:  # type: ignore[attr-defined]
        check_type(value, kinds, name, f"a list of {expected}")


def check_progress(progress: object) -> None:
    """Raise TypeError for a progress that is neither a function nor None."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function, not {type(progress).__name__}")


def check_type(value: object, kinds: type | tuple[type, ...], name: str, expected: str) -> None:
    """Raise TypeError for an argument that is of none of these types; expected: what it must be, for the error."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} must be {expected}, not {type(value).__name__}")
