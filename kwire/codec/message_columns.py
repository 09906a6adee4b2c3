"""columns_of: many messages of one kind as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from kwire.errors import KwireError, LimitError
from kwire_c.arrow import export_schema, export_stream
from kwire_c.columns import Column, MessageGatherer, message_column, table_node

__all__ = ["BadMessage", "MessageColumns", "columns_of"]


class MessageColumns:
    """Messages as Arrow columns, which pyarrow.table(columns) and polars.DataFrame(columns) accept.

    names: of the columns; len(): rows; columns["topics.name"]: a Column; bad: a BadMessage for each payload that gave
    no rows. One chunk, unless a column would exceed 2 GiB.
    """

    def __init__(self, chunks: list[tuple[int, list[Any]]], bad: list[BadMessage]) -> None:
        self.names = tuple(node.name for node in chunks[0][1])
        self.bad = bad
        self._chunks = chunks

    def __len__(self) -> int:
        return sum(rows for rows, _ in self._chunks)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Column:
        if name not in self.names:
            raise KeyError(name)
        at = self.names.index(name)
        return message_column(name, [nodes[at] for _, nodes in self._chunks])

    def __arrow_c_schema__(self) -> object:
        return export_schema(table_node(*self._chunks[0]))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        tables = [table_node(rows, nodes) for rows, nodes in self._chunks]
        return export_stream(tables[0], tables)

    def __repr__(self) -> str:
        return f"<MessageColumns {', '.join(self.names)}: {len(self)} rows in {len(self._chunks)} chunks>"


class BadMessage(NamedTuple):
    """A payload that gave no rows. number: its index among the payloads; raw: its bytes; error: why."""

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
    fixed_size_binary(16), bytes and records: binary), else one column per path ("topics.partitions.error_code"), named
    by it: one row per element of the innermost array that the paths pass, none for an empty array; values of outer
    levels are repeated in each row. lenient: as in decode; errors="keep": bad payloads give no rows and are in .bad.
    Raises DecodeError, UnsupportedVersionError, LimitError (one message fills more than 2 GiB of a column), ValueError
    for a path that does not exist in that version.
    """
    if errors not in ("raise", "keep"):
        raise ValueError(f"errors must be 'raise' or 'keep', not {errors!r}")
    if isinstance(paths, str):
        raise TypeError("paths must be a list of str, not one str")
    flat = None if paths is None else tuple(paths)
    wanted = None if flat is None else _tree(flat)
    gatherers = [MessageGatherer(message, version, wanted)]
    bad = []
    for number, payload in enumerate(payloads):
        try:
            try:
                gatherers[-1].add(payload, lenient)
            except LimitError:
                if not gatherers[-1].rows:
                    raise
                gatherers.append(MessageGatherer(message, version, wanted))
                gatherers[-1].add(payload, lenient)
        except KwireError as error:
            if errors != "keep":
                raise
            bad.append(BadMessage(number, payload, error))
    if flat is None:
        return MessageColumns([(gatherer.rows, [gatherer.node()]) for gatherer in gatherers], bad)
    return MessageColumns([chunk for gatherer in gatherers for chunk in gatherer.flat(flat, 0, gatherer.rows)], bad)


def _tree(paths: tuple[str, ...]) -> dict[str, Any]:
    """The paths as nested dicts, in which None selects everything below."""
    if not paths or len(paths) != len({*map(str, paths)}):
        raise ValueError("paths must not be empty or repeated")
    tree: dict[str, Any] = {}
    for path in paths:
        if not isinstance(path, str):
            raise TypeError(f"a path must be a str, not {type(path).__name__}")
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
