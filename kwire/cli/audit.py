"""`kwire audit`: what an upgrade breaks, by captures of the traffic."""

from __future__ import annotations

import os
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kwire import schema
from kwire.capture.audit import Audit
from kwire.capture.files import captures, read_capture
from kwire.capture.frame_files import is_frame_file, pair_of
from kwire.cli.terminal import as_text, console, print_json, progress
from kwire.output import new_file
from kwire_c.errors import UnsupportedVersionError


class Release(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A Kafka release that kwire knows."""

    name = "release"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Its name in the facts."""
        try:
            return schema.release_name(value)
        except UnsupportedVersionError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.argument("capture", nargs=-1, required=True)
@click.option("--to", required=True, type=Release(), help="The release that the brokers are to have, such as 4.4.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write a report for people, too: one page.")
@click.option("--force", is_flag=True, help="Write the report also where a file of that name is there.")
def audit(capture: tuple[str, ...], to: str, as_json: bool, html: str | None, force: bool) -> int:
    """Say who uses which version of which API, and what breaks when the brokers are of the release --to.

    CAPTURE: a pcap or pcapng file, a pipe of one (- is standard input), NAME.jsonl.gz beside NAME.bin.gz (as kwire tap
    writes them), a folder of these, or a glob. Exit code 1 when something breaks, and when no request could be read
    although something was captured.
    """
    found = Audit(to)
    paths = captures(list(capture))
    with progress("reading", sum(os.path.getsize(path) for path in paths)) as done:
        for path in paths:
            found.captures.append(path)
            for event in read_capture(path):
                found.add(event)
            done(os.path.getsize(path))
    if html is not None:
        from kwire.pages.audit import audit_page

        inputs = [name for path in paths for name in (pair_of(path) if is_frame_file(path) else (path,))]
        with new_file(html, inputs=inputs, force=force) as file:
            file.write(audit_page(found.to_json()).encode("utf-8"))
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    return 1 if found.breaks or (found.lost and not found.uses) else 0


def _print(found: Audit) -> None:
    """The uses, what is lost, and the verdict."""
    table = Table("client id", "software", "address", "API", "version", "requests", f"on {found.to}", box=None,
                  pad_edge=False, header_style="bold")
    table.columns[4].justify = table.columns[5].justify = "right"
    for use in found.uses:
        style = "red" if use.breaks else None
        verdict = "; ".join(text for text in (use.breaks, use.note) if text) or "works"
        cells = (*use.user, use.api, str(use.version), str(use.count), verdict)
        table.add_row(*map(_cell, cells), style=style)
    out = console()
    out.print(table)
    if found.lost:
        out.print()
        out.print(_lost(found))
    broken = sum(1 for use in found.uses if use.breaks)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.exchanges.items()))
    verdict = f"{broken} of {len(found.uses)} uses break on Kafka {found.to}" if broken else (
        f"nothing breaks on Kafka {found.to}" if found.uses else "no request was seen")
    out.print(f"\n{verdict} ({counts or 'no exchanges'})", style="bold red" if broken else "bold")


def _cell(text: str | None) -> Text:
    """A name off the wire as it is safe on a terminal."""
    return Text("-" if text is None else as_text(text.encode("utf-8", "surrogateescape"), 200))


def _lost(found: Audit) -> Table:
    table = Table("not read", "connection", "bytes", "times", box=None, pad_edge=False, header_style="bold")
    table.columns[2].justify = table.columns[3].justify = "right"
    for lost in found.lost:
        where = lost.capture
        if lost.connection is not None:
            ends = lost.connection
            where = f"{ends.client} to {ends.server}" if ends.client else f"{lost.capture}, connection {ends.number}"
        if lost.direction:
            where += f", {lost.direction}s"
        size = "" if lost.bytes is None else str(lost.bytes)
        table.add_row(*map(_cell, (lost.reason, where, size, str(lost.count))))
    return table
