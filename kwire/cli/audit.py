"""`kwire audit`: what an upgrade breaks, from captured traffic."""

from __future__ import annotations

import os
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kwire import schema
from kwire.capture.files import captures, read_capture
from kwire.capture.frame_files import is_frame_file, pair_of
from kwire.capture.upgrade_audit import Audit
from kwire.cli.terminal import as_text, console, print_json, progress
from kwire.errors import UnsupportedVersionError
from kwire.output import check_standard_output, new_file


class Release(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A Kafka release that kwire knows."""

    name = "release"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The release's name in the schema ("3.9" for "3.9.1")."""
        try:
            return schema.release_name(value)
        except UnsupportedVersionError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.argument("capture", nargs=-1, required=True)
@click.option("--to", required=True, type=Release(), help="The release that the brokers are to run, such as 4.4.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE",
              help="Also write the report as one HTML page; - is standard output, alone.")
@click.option("--force", is_flag=True, help="Overwrite an existing report.")
def audit(capture: tuple[str, ...], to: str, as_json: bool, html: str | None, force: bool) -> int:
    """Report which client uses which API version, and what breaks when the brokers run the release --to.

    CAPTURE: a pcap or pcapng file, a pipe of one (- is standard input), NAME.jsonl.gz beside NAME.bin.gz (as written by
    kwire tap), a folder of these, or a glob. The exit code is 1 if anything breaks, or if nothing in the captures could
    be read.
    """
    if as_json and html == "-":
        raise click.UsageError("--json and --html - cannot be used together: both write to standard output")
    result = Audit(to)
    paths = captures(list(capture))
    inputs = [name for path in paths for name in (pair_of(path) if is_frame_file(path) else (path,))]
    check_standard_output(inputs)
    with progress("reading", sum(os.path.getsize(path) for path in paths)) as done:
        for path in paths:
            result.captures.append(path)
            for event in read_capture(path):
                result.add(event)
            done(os.path.getsize(path))
    if html is not None:
        from kwire.pages.audit import audit_page

        with new_file(html, inputs=inputs, force=force) as file:
            file.write(audit_page(result.to_json()).encode("utf-8"))
    if as_json:
        print_json(result.to_json())
    elif html != "-":
        _print(result)
    return 1 if result.breaks or (result.lost and not result.uses) else 0


def _print(result: Audit) -> None:
    """Print the uses, the losses and the verdict."""
    table = Table("client id", "software", "address", "API", "version", "requests", f"on {result.to}", box=None,
                  pad_edge=False, header_style="bold")
    table.columns[4].justify = table.columns[5].justify = "right"
    for use in result.uses:
        style = "red" if use.breaks else None
        verdict = "; ".join(text for text in (use.breaks, use.note) if text) or "works"
        cells = (*use.user, use.api, str(use.version), str(use.count), verdict)
        table.add_row(*map(_cell, cells), style=style)
    out = console()
    out.print(table)
    if result.lost:
        out.print()
        out.print(_lost(result))
    broken = sum(1 for use in result.uses if use.breaks)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(result.exchanges.items()))
    verdict = f"{broken} of {len(result.uses)} uses break on Kafka {result.to}" if broken else (
        f"nothing breaks on Kafka {result.to}" if result.uses else "no request was seen")
    out.print(f"\n{verdict} ({counts or 'no exchanges'})", style="bold red" if broken else "bold")


def _cell(text: str | None) -> Text:
    """A name from the wire, escaped for the terminal."""
    return Text("-" if text is None else as_text(text.encode("utf-8", "surrogateescape"), 200))


def _lost(result: Audit) -> Table:
    table = Table("not read", "connection", "bytes", "count", box=None, pad_edge=False, header_style="bold")
    table.columns[2].justify = table.columns[3].justify = "right"
    for lost in result.lost:
        where = lost.capture
        if lost.connection is not None:
            ends = lost.connection
            where = f"{ends.client} to {ends.server}" if ends.client else f"{lost.capture}, connection {ends.number}"
        if lost.direction:
            where += f", {lost.direction}s"
        size = "" if lost.bytes is None else str(lost.bytes)
        table.add_row(*map(_cell, (lost.reason, where, size, str(lost.count))))
    return table
