"""Tables of columns: shown in terminals and notebooks, and given to pandas, polars and plain Python."""

from __future__ import annotations

from kwire_c.printable import printable

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    import pandas
    import polars

    class Table(Protocol):
        """RecordColumns or MessageColumns."""

        @property
        def names(self) -> tuple[str, ...]: ...  # noqa: D102
        @property
        def bad(self) -> list[Any]: ...  # noqa: D102
        def __len__(self) -> int: ...
        def __getitem__(self, name: str, /) -> Any: ...
        def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

    Cells = Callable[[Any, int, int, int], list[Any]]

_ROWS = 10  # shown at most: the first and the last ones
_COLUMNS = 12  # shown at most
_WIDTH = 32  # of a cell, in characters


def text_table(table: Table, cells: Cells) -> str:
    """A table for a terminal: its first and last rows, each value cut, control characters escaped.

    cells(column, first row, last row, most) gives values, of each at most that many bytes or items.
    """
    if not table.names:
        return _title(table)
    names, rows = _shown(table, cells)
    lines = [names, *rows]
    numbers = [all(row[at].lstrip("-").isdigit() for row in rows) for at in range(len(names))]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    text = [_title(table)]
    for line in lines:
        aligned = zip(line, widths, numbers, strict=True)
        padded = (cell.rjust(width) if is_number else cell.ljust(width) for cell, width, is_number in aligned)
        text.append("  ".join(padded).rstrip())
    if len(table) > _ROWS:
        text.insert(2 + _ROWS // 2, "…")
    return "\n".join(text)


def html_table(table: Table, cells: Cells) -> str:
    """A table for a notebook, with the rows of text_table()."""
    from html import escape

    names, rows = _shown(table, cells)
    body = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    if len(table) > _ROWS:
        body.insert(_ROWS // 2, f'<tr><td colspan="{len(names)}">…</td></tr>')
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return (
        f"<table><caption>{escape(_title(table))}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def to_pandas(table: Table) -> pandas.DataFrame:
    """The table as a pandas.DataFrame, by way of pyarrow."""
    try:
        import pandas  # noqa: F401 (pyarrow needs it)
        import pyarrow
    except ModuleNotFoundError as missing:
        raise ImportError("to_pandas needs pandas and pyarrow: pip install pandas 'kwire[arrow]'") from missing
    frame: pandas.DataFrame = pyarrow.table(table).to_pandas()
    return frame


def to_polars(table: Table) -> polars.DataFrame:
    """The table as a polars.DataFrame."""
    try:
        import polars
    except ModuleNotFoundError as missing:
        raise ImportError("to_polars needs polars: pip install polars") from missing
    return polars.DataFrame(table)


def to_pylist(table: Table) -> list[dict[str, Any]]:
    """The rows as dicts."""
    if not table.names:
        return [{} for _ in range(len(table))]
    columns = [table[name].to_pylist() for name in table.names]
    return [dict(zip(table.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _title(table: Table) -> str:
    rows, columns, bad = len(table), len(table.names), len(table.bad)
    title = f"{type(table).__name__}: {rows:,} {'row' if rows == 1 else 'rows'}"
    title += f", {columns} {'column' if columns == 1 else 'columns'}"
    return f"{title}, {bad:,} bad" if bad else title


def _shown(table: Table, cells: Cells) -> tuple[list[str], list[list[str]]]:
    """(the names, the rows that are shown) as text."""
    names, rows, half = table.names[:_COLUMNS], len(table), _ROWS // 2
    parts = [(0, rows)] if rows <= _ROWS else [(0, half), (rows - half, rows)]
    columns = []
    for name in names:
        column = table[name]
        columns.append([_cell(value) for first, last in parts for value in cells(column, first, last, _WIDTH + 1)])
    shown = [list(row) for row in zip(*columns, strict=True)]
    if len(table.names) > _COLUMNS:
        return [*map(printable, names), "…"], [[*row, "…"] for row in shown]
    return [*map(printable, names)], shown


def _cell(value: object) -> str:
    """A value on one line, cut."""
    kind = type(value)
    if value is None:
        return "null"
    if kind is str:
        text = printable(str(value))
    elif hasattr(value, "isoformat"):
        text = value.isoformat(" ", "milliseconds").removesuffix("+00:00")
    else:
        text = repr(value)  # of bytes, numbers, and lists and dicts of these: nothing in it drives a terminal
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
