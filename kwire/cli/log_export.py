"""`kwire log export`: the records of segments as Parquet, CSV or Arrow, one file or a partitioned dataset."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.damage import STOP, Damage, on_error
from kwire.cli.selectors import selection, span
from kwire.cli.terminal import amount, counted, not_to_terminal, print_json, progress
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import LogDirectory

_ENDINGS = {".parquet": "parquet", ".csv": "csv", ".csv.gz": "csv", ".arrow": "arrow", ".feather": "arrow",
            ".arrows": "arrows"}  # fmt: skip
_FORMS = ("parquet", "csv", "arrow", "arrows")


class Columns(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A comma list of the columns by which a dataset is partitioned."""

    name = "column,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The columns."""
        if isinstance(value, tuple):
            return value
        from kwire.storage.tables.record_tables import PARTITION_COLUMNS
        from kwire.suggestions import did_you_mean

        names = tuple(part.strip() for part in value.split(","))
        for name in names:
            if name not in PARTITION_COLUMNS:
                self.fail(f"{printable(name)!r} is not one of {', '.join(PARTITION_COLUMNS)}"
                          f"{did_you_mean(name, PARTITION_COLUMNS)}", param, ctx)
        if len(set(names)) < len(names):
            self.fail("each column may be named once", param, ctx)
        return names


PARTITION_BY = click.option(
    "--partition-by", type=Columns(), metavar="COLUMN,...", default=(),
    help="Write a folder of files, in folders such as topic=orders/date=2026-01-31. Columns: topic, partition, date, "
         "hour (UTC).")


@click.command()
@selection
@span
@click.option("-o", "--output", required=True, type=click.Path(), metavar="OUTPUT",
              help="The file to write, with --partition-by the folder; - is standard output.")
@click.option("--to", "form", type=click.Choice(_FORMS),
              help="The format: arrow is an IPC file, arrows an IPC stream.  [default: by the ending of OUTPUT]")
@PARTITION_BY
@click.option("--control", is_flag=True, help="Also write control records.")
@click.option("--compression", metavar="CODEC",
              help="Parquet: zstd, snappy, gzip, lz4, none; Arrow: none, zstd, lz4; CSV: none, gzip.  [default: zstd "
                   "for Parquet, gzip for .csv.gz, else none]")
@click.option("--rows", type=click.IntRange(1, 1 << 31), default=131072, show_default=True,
              help="Maximum rows in a row group of Parquet.")
@click.option("--json", "as_value", is_flag=True, help="Print what was written as one JSON object.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@on_error(STOP)
def export(directory: LogDirectory, output: str, form: str | None, as_value: bool, compression: str | None,
           on_error: str, partition_by: tuple[str, ...], force: bool, **options: Any) -> int:
    """Write records as Parquet, CSV or Arrow: topic, partition, offset, timestamp, timestamp_type, key, value, headers.

    The file appears under its name when it is complete, and so does the folder of a dataset: where --on-error stops,
    there is none. An existing file is kept, unless --force; an existing folder always.

    CSV has key and value as text; bytes that are not UTF-8 are in key_base64 and value_base64. Headers are JSON. Null
    is an empty field, an empty text is "".
    """
    from kwire.storage.tables.record_tables import COMPRESSIONS, write_table

    ending = next((ending for ending in sorted(_ENDINGS, key=len, reverse=True) if output.endswith(ending)), None)
    form = form or (_ENDINGS[ending] if ending else None)
    if form is None:
        raise click.UsageError(f"the format is not known by the name of {printable(output)}: give --to "
                               f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}")
    if compression is None and form == "csv" and ending == ".csv.gz":
        compression = "gzip"
    if compression not in (None, *COMPRESSIONS[form]):
        raise click.BadParameter(f"{printable(str(compression))!r} is not one of {', '.join(COMPRESSIONS[form])}",
                                 param_hint="'--compression'")
    check_output(output, partition_by, as_value, force)
    damage = Damage(on_error)
    with progress("writing", sum(segment.size for segment in directory.segments)) as advance:
        written = write_table(
            directory.segments, output, form, compression=compression, partition_by=partition_by, progress=advance,
            force=force, errors=damage.errors, bad=damage.take, **options)
    for segment in directory.segments:
        damage.tail(segment, segment.known_tail)
    if as_value:
        print_json({"output": output, **written})
    else:
        files = f" in {counted(written['files'], 'file')}" if "files" in written else ""
        print(f"{counted(written['rows'], 'row')}, {amount(written['size'])}{files} written to {printable(output)}",
              file=sys.stderr)
    return 1 if damage.finish() else 0


def check_output(output: str, partition_by: tuple[str, ...], as_value: bool, force: bool) -> None:
    """Refuse what cannot be written to an output. Raises click.UsageError."""
    if as_value and output == "-":
        raise click.UsageError("--json and --output - cannot be used together: both write to standard output")
    if partition_by and output == "-":
        raise click.UsageError("--partition-by writes a folder: --output - cannot be used with it")
    if partition_by and force:
        raise click.UsageError("--force replaces a file, not the folder that --partition-by writes: remove it first")
    not_to_terminal(output, "--output -")
