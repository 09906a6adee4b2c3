"""columns_of: many messages of one kind as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import kwire.messages  # gives the engine its facts
from kwire_c.failure import KwireError
from kwire_c.sinks import Gatherer, MessageColumn, MessageColumns

__all__ = ["BadMessage", "MessageColumn", "MessageColumns", "columns_of"]

assert kwire.messages


class BadMessage(NamedTuple):
    """A payload that gave no rows. number: which of the payloads, from 0; raw: its bytes; error: why."""

    number: int
    raw: Any
    error: KwireError


def columns_of(
    message: str | type,
    version: int,
    payloads: Iterable[Any],
    paths: Iterable[str] | None = None,
    *,
    lenient: bool = False,
    errors: Literal["raise", "keep"] = "raise",
) -> MessageColumns:
    """The messages in payloads (buffers, one message each) as Arrow columns.

    paths: None gives one struct column "message" with the fields of that version in snake_case (uuid:
    fixed_size_binary(16), bytes and records: binary), else one column a path ("topics.partitions.error_code"), named
    by it: one row an element of the innermost array that the paths pass, none for an empty array; values of outer
    levels stand beside each row. lenient: as in decode; errors="keep": bad payloads give no rows and stand in .bad.
    Raises DecodeError, UnsupportedVersionError, LimitError (a column over 2 GiB), ValueError for a path there is not.
    """
    wanted: dict[str, Any] | None = None
    flat = None
    if paths is not None:
        flat = tuple(paths)
        wanted = _tree(flat)
    gatherer = Gatherer(message, version, wanted)
    bad = []
    for number, payload in enumerate(payloads):
        try:
            gatherer.add(payload, lenient)
        except KwireError as error:
            if errors != "keep":
                raise
            bad.append(BadMessage(number, payload, error))
    if flat is None:
        return MessageColumns(gatherer.rows, [gatherer.node()], bad)
    rows, nodes = gatherer.flat(flat)
    return MessageColumns(rows, nodes, bad)


def _tree(paths: tuple[str, ...]) -> dict[str, Any]:
    """The paths as nested dicts; None stands for everything below."""
    if not paths or len(set(paths)) != len(paths):
        raise ValueError("paths must be there, each once")
    tree: dict[str, Any] = {}
    for path in paths:
        *above, last = path.split(".")
        here = tree
        for name in above:
            below = here.setdefault(name, {})
            if below is None:
                break
            here = below
        else:
            here[last] = None
    return tree
