"""`kwire protocol`: the protocol of a release, the difference between two, and the protocol site."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.table import Table

from kwire import schema
from kwire.cli.apis import api_json, api_table
from kwire.cli.terminal import VERSION, api_of, console, print_json
from kwire.errors import UnsupportedVersionError
from kwire.pages.notation import FieldRow, grammar, rows
from kwire.schema.diff import FieldChange, VersionChange
from kwire.suggestions import did_you_mean


class ReleaseGroup(click.Group):
    """A group in which every name that is not a command is a release: `kwire protocol 3.9`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or a command that shows the release of that name."""
        command = super().get_command(ctx, cmd_name)
        if command is None:
            try:
                schema.release_name(cmd_name)
            except UnsupportedVersionError as error:
                hint = did_you_mean(cmd_name, self.commands)
                if cmd_name.lower() in (api.name.lower() for api in schema.apis()):
                    hint = f" (an API? kwire protocol RELEASE --api {cmd_name})"
                raise UnsupportedVersionError(f"{error}{hint}", needed=cmd_name) from None
            command = click.Command(
                cmd_name, callback=partial(_show, cmd_name), help=f"Show the protocol of Kafka {cmd_name}.",
                params=[
                    click.Option(["--api"], metavar="NAME", help="The fields of one API, by name or key."),
                    click.Option(["--version"], type=VERSION, help="The version to show. Default: the newest."),
                    click.Option(["--json", "as_json"], is_flag=True, help="One JSON value."),
                ],
            )
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands and releases with that prefix."""
        names = (name for name in schema.releases(old=True) if name.startswith(incomplete))
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, names)]


@click.group(cls=ReleaseGroup, subcommand_metavar="RELEASE | diff A B | site OUT")
def protocol() -> None:
    """Show the protocol of a release, compare two releases, or write all of it as HTML."""


def _show(release: str, api: str | None, version: int | None, as_json: bool) -> None:
    if api is None:
        if version is not None:
            raise click.UsageError("--version needs --api")
        apis = schema.apis(release)
        if as_json:
            print_json([api_json(row) for row in apis])
        else:
            console().print(api_table(apis))
        return
    row = schema.api(api_of(api), release)
    shown = row.max_version if version is None else version
    if shown not in row.versions:
        raise UnsupportedVersionError(
            f"Kafka {release} supports {row.name} versions {row.versions}, not {shown}",
            api=row.name, needed=(shown, shown), offered=tuple(row.versions),
        )
    parts = [
        ("request_header", schema.message("RequestHeader"), row.request_header_version(shown)),
        ("request", schema.message(row.request), shown),
        ("response_header", schema.message("ResponseHeader"), row.response_header_version(shown)),
        ("response", schema.message(row.response), shown),
    ]
    if as_json:
        value: dict[str, Any] = {"api": row.name, "key": row.key, "version": shown}
        for part, message, at in parts:
            fields = [_field_json(line) for line in rows(message, at)]
            said = _version_notes(message.name, at, release)
            value[part] = {"name": message.name, "version": at, "notes": said, "fields": fields}
        print_json(value)
        return
    print("\n\n".join(
        "\n".join([grammar(message, at), *(f"# {note}" for note in _version_notes(message.name, at, release))])
        for _, message, at in parts
    ))


def _version_notes(name: str, version: int, release: str) -> list[str]:
    """What a release's schema says of one version of a message, a line each."""
    notes = schema.version_notes(name, release)
    return [" ".join(note.text.split()) for note in notes if version in note.versions]


def _field_json(line: FieldRow) -> dict[str, Any]:
    return {
        "path": line.path, "type": line.field.type, "wire_type": line.type, "nullable": line.nullable, "tag": line.tag,
        "default": line.field.default, "versions": str(line.field.versions), "about": line.field.about,
    }


@protocol.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="One JSON value.")
def diff(old: str, new: str, as_json: bool) -> None:
    """Show what changed from release A to release B: APIs and versions, deprecations, fields by version."""
    changes = schema.difference(old, new)
    if as_json:
        print_json({
            "added": [_change_json(change) for change in changes.added],
            "removed": [_change_json(change) for change in changes.removed],
            "deprecated": [_change_json(change) for change in changes.deprecated],
            "fields": [_field_change_json(change) for change in changes.fields],
        })
        return
    table = Table("", "API", "versions", "", box=None, pad_edge=False, header_style="bold")
    for sign, versions in (("+", changes.added), ("-", changes.removed), ("deprecated", changes.deprecated)):
        for change in versions:
            table.add_row(sign, f"{change.key:>3} {change.api}", str(change.versions), _note(change, sign))
    fields = Table("", "message", "version", "field", "type", box=None, pad_edge=False, header_style="bold")
    for field in changes.fields:
        sign = {"added": "+", "removed": "-"}.get(field.change, field.what)
        fields.add_row(sign, field.message, str(field.version), field.path, field.type)
    if not table.rows:
        print(f"Kafka {new} has the same protocol as {old}")
        return
    console().print(table)
    if fields.rows:
        console().print()
        console().print(fields)


def _note(change: VersionChange, sign: str) -> str:
    notes = [("new API" if sign == "+" else "API removed")] if change.whole else []
    if change.unstable is not None:
        notes.append(f"{change.unstable} is unstable")
    return ", ".join(notes)


def _change_json(change: VersionChange) -> dict[str, Any]:
    return {
        "api": change.api, "api_key": change.key, "versions": str(change.versions), "min_version": change.versions.low,
        "max_version": change.versions.high, "whole": change.whole, "unstable": change.unstable,
    }


def _field_change_json(change: FieldChange) -> dict[str, Any]:
    return {
        "api": change.api, "message": change.message, "version": change.version, "field": change.path,
        "change": change.change, "type": change.type, "what": change.what,
    }


@protocol.command()
@click.argument("out", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Write even if the folder holds other files.")
def site(out: str, force: bool) -> None:
    """Write the protocol of every release as static HTML, with search, into the folder OUT.

    There is one page for each release, each API and each API version. Open OUT/index.html in a browser; no server is
    needed.
    """
    from kwire.pages.site import write_site

    if out == "-":
        raise click.UsageError("OUT is a folder, not standard output (./- is a folder of that name)")
    count = write_site(out, force=force)
    click.echo(f"{count} pages: {Path(out, 'index.html')}", err=True)
