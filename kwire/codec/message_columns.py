"""columns_of: many messages of one kind as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.codec.arguments import can_iterate, check_choice
from kwire.codec.record_columns import names_in
from kwire.errors import KwireError, LimitError
from kwire_c.arrow import export_schema, export_stream
from kwire_c.columns import Column, MessageGatherer, column_cells, message_column, table_node
from kwire_c.errors import alone
from kwire_c.printable import brief
from kwire_c.secrets import HIDDEN, is_secret, without_secrets
from kwire_c.tables import html_table, text_table, to_pandas, to_polars, to_pylist

if TYPE_CHECKING:
    import pandas
    import polars
    from typing_extensions import Buffer

    from kwire_c.arrow import Node
    from kwire_c.message_class import Message

__all__ = ["BadMessage", "MessageColumns", "columns_of"]

_WHOLE = (1 << 31) - 1  # bytes of a value: more than any has


class MessageColumns:
    """Messages as Arrow columns, which pyarrow.table(columns) and polars.DataFrame(columns) accept.

    names: of the columns; len(): rows; columns["topics.name"]: a Column; bad: a BadMessage for each payload that gave
    no rows. One chunk, unless a column would exceed 2 GiB.
    """

    def __init__(self, chunks: list[tuple[int, list[Node]]], bad: list[BadMessage]) -> None:
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
        known = str.__str__(name) if isinstance(name, str) else ""  # a str of the caller's class may equal any
        if known not in self.names:
            raise KeyError(f"no column {brief(name)}: expected one of {', '.join(self.names)}")
        at = self.names.index(known)
        return message_column(known, [nodes[at] for _, nodes in self._chunks])

    def __arrow_c_schema__(self) -> object:
        return export_schema(table_node(*self._chunks[0]))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        tables = [table_node(rows, nodes) for rows, nodes in self._chunks]
        return export_stream(tables[0], tables)

    def to_pandas(self) -> pandas.DataFrame:
        """The columns as a pandas.DataFrame. Raises ImportError, which names what to install."""
        return to_pandas(self)

    def to_polars(self) -> polars.DataFrame:
        """The columns as a polars.DataFrame. Raises ImportError, which names what to install."""
        return to_polars(self)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as a list of dicts {name: value}; the values are those of Column.to_pylist."""
        return to_pylist(self)

    def __repr__(self) -> str:
        return text_table(self, self._shown_cells)

    def _repr_html_(self) -> str:
        return html_table(self, self._shown_cells)

    def _shown_cells(self, column: Column, first: int, last: int, most: int) -> list[Any]:
        """The values of column_cells, without secrets: a repr shows none."""
        cells = [without_secrets(cell) for cell in column_cells(column, first, last, most)]
        above, dot, field = column.name.rpartition(".")
        settings: list[Any] = [""] * len(cells)
        beside = [name for name in ("name", "config_name", "key") if above + dot + name in self.names]
        if beside and beside[0] != "key":
            settings = column_cells(self[above + dot + beside[0]], first, last, _WHOLE)
        elif field == "value" and not beside:  # of which setting is not known
            return [HIDDEN if isinstance(cell, str) else cell for cell in cells]
        return [HIDDEN if cell is not None and is_secret(field, setting) else cell
                for cell, setting in zip(cells, settings, strict=True)]


class BadMessage(NamedTuple):
    """A payload that gave no rows. number: its index among the payloads; raw: its bytes; error: why."""

    number: int
    raw: Buffer
    error: KwireError

    def __repr__(self) -> str:  # without the bytes, which may be many, and hold a secret
        return f"<BadMessage number={self.number}: {str(self.error)[:500]}>"


def columns_of(
    message: str | type[Message],
    version: int,
    payloads: Iterable[Buffer],
    paths: Iterable[str] | None = None,
    *,
    lenient: bool = False,
    errors: str = "raise",
) -> MessageColumns:
    """The messages in payloads (buffers, one message each) as Arrow columns.

    paths: None gives one struct column "message" with the fields of that version in snake_case (uuid:
    fixed_size_binary(16), bytes and records: binary), else one column per path ("topics.partitions.error_code"), named
    by it: one row per element of the innermost array that the paths pass, none for an empty array; values of outer
    levels are repeated in each row, and all inside a null struct are null. lenient: as in decode; errors="keep": bad
    payloads give no rows and are in .bad.
    Raises DecodeError, UnsupportedVersionError, LimitError (one message fills more than 2 GiB of a column; with
    errors="keep" too: repeated values of outer levels take more than 50 times the bytes of all payloads), ValueError
    for a path that does not exist in that version.
    """
    check_choice(errors, ("raise", "keep"), "errors")
    flat = None if paths is None else names_in(paths, "paths")
    wanted = None if flat is None else _tree(flat)
    gatherers = [MessageGatherer(message, version, wanted)]
    bad = []
    if not can_iterate(payloads):
        raise TypeError(f"payloads must be an iterable of buffers, not {type(payloads).__name__}")
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
            bad.append(BadMessage(number, payload, alone(error)))
        except (TypeError, BufferError) as error:
            error.args = (str(error).replace("payload", f"payload {number}", 1),)
            raise
    if flat is None:
        return MessageColumns([(gatherer.rows, [gatherer.node()]) for gatherer in gatherers], bad)
    return MessageColumns([chunk for gatherer in gatherers for chunk in gatherer.flat(flat, 0, gatherer.rows)], bad)


def _tree(paths: tuple[str, ...]) -> dict[str, Any]:
    """The paths as nested dicts, in which None selects everything below."""
    if not paths or len(paths) != len({*paths}):
        raise ValueError("paths must not be empty or repeated")
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
