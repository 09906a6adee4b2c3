"""`kwire apis`, `kwire messages` and `kwire releases`: what the schema has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import click
from rich.table import Table

from kwire import schema
from kwire.cli.terminal import console, print_json
from kwire.suggestions import did_you_mean
from kwire_c.printable import brief


@click.command()
@click.option("--release", metavar="RELEASE", help="Only APIs and versions of this release, such as 3.9 or 0.10.2.")
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
def apis(release: str | None, as_json: bool) -> None:
    """List the APIs with their versions, of all releases together or of one."""
    rows = schema.apis(release)
    if as_json:
        print_json([api_json(row) for row in rows])
        return
    console().print(api_table(rows))


def api_table(rows: Sequence[schema.Api]) -> Table:
    """APIs as a table."""
    table = Table("key name", "versions", "flexible", "", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        flexible = "-" if row.flexible_from is None else f"{row.flexible_from}+"
        table.add_row(f"{row.key:>3} {row.name}", str(row.versions), flexible, ", ".join(_notes(row)))
    return table


def api_json(row: schema.Api) -> dict[str, Any]:
    """An API as a JSON object."""
    return {
        "key": row.key, "name": row.name, "min_version": row.min_version, "max_version": row.max_version,
        "flexible_from": row.flexible_from, "deprecated": str(row.deprecated) if row.deprecated else None,
        "unstable": row.unstable, "max_stable_version": row.max_stable_version, "listeners": list(row.listeners),
        "forwardable": row.forwardable, "cluster_action": row.cluster_action,
    }


def _notes(row: schema.Api) -> list[str]:
    notes = []
    if row.unstable:
        notes.append(f"{row.max_version} is unstable")
    if row.deprecated:
        notes.append(f"{row.deprecated} deprecated")
    return notes


TYPES = ("request", "response", "metadata", "coordinator-key", "coordinator-value", "data", "header")


@click.command()
@click.argument("pattern", required=False, metavar="[PATTERN]")
@click.option("--release", metavar="RELEASE",
              help="Only messages of this release, and the versions that its APIs have.")
@click.option("--type", "kind", type=click.Choice(TYPES), help="Only messages of this type.")
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
def messages(pattern: str | None, release: str | None, kind: str | None, as_json: bool) -> None:
    """List the messages that kwire decode and kwire encode know, with their versions.

    PATTERN is a part of a name, or a glob such as 'Fetch*', in upper or lower case. The key is that of the API, or the
    number of the record type.
    """
    rows = list(_messages(pattern, release, kind))
    if not rows:
        of = f" of type {kind}" if kind else ""
        names = schema.message_names(kind)
        stems = (name.removesuffix("Request").removesuffix("Response") for name in names)
        near = did_you_mean((pattern or "").strip("*?"), [*names, *stems])
        raise click.ClickException(f"no message{of} matches {brief(pattern)}{near}" if pattern
                                   else f"Kafka {release} has no message{of}")
    if as_json:
        print_json(rows)
        return
    table = Table("name", "type", "key", "versions", "flexible", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        key, flexible = row["api_key"], row["flexible_from"]
        table.add_row(row["name"], row["type"], "-" if key is None else str(key), row["versions"],
                      "-" if flexible is None else f"{flexible}+")
    console().print(table)


def _messages(pattern: str | None, release: str | None, kind: str | None) -> Iterator[dict[str, Any]]:
    """The messages as JSON objects."""
    wanted = (pattern or "*").lower()
    wanted = wanted if re.search(r"[*?[]", wanted) else f"*{wanted}*"
    apis = {api.key: api for api in schema.apis(release)}
    for name in schema.message_names(kind):
        if not fnmatchcase(name.lower(), wanted):
            continue
        message = schema.message(name)
        versions = message.valid_versions
        if message.type in ("request", "response"):
            assert message.api_key is not None
            if message.api_key not in apis:
                continue
            if release is not None:
                versions = apis[message.api_key].versions
        elif release is not None and not _has(message.releases, schema.release_name(release)):
            continue
        flexible = message.flexible_versions
        has_flexible = bool(flexible) and flexible.low <= versions.high
        yield {"name": name, "type": message.type, "api_key": message.api_key, "versions": str(versions),
               "min_version": versions.low, "max_version": versions.high,
               "flexible_from": flexible.low if has_flexible else None}


def _has(releases: tuple[str, ...], release: str) -> bool:
    """Is a release between the first and the last of a message's?"""
    return not releases or (schema.is_at_least(release, releases[0]) and schema.is_at_least(releases[-1], release))


@click.command()
@click.option("--old", is_flag=True, help="Also list releases before 2.2, of which only API versions are known.")
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
def releases(old: bool, as_json: bool) -> None:
    """List the releases that kwire knows."""
    rows = [_release(name) for name in schema.releases(old=old)]
    if as_json:
        print_json(rows)
        return
    table = Table("release", "schema from", "APIs", "metadata.version", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        level = f"{row['metadata_level']} ({row['metadata_version']})" if row["metadata_version"] else "-"
        table.add_row(row["release"], row["read_from"], str(row["apis"]), level)
    console().print(table)


def _release(name: str) -> dict[str, Any]:
    known = {row.name: row.level for row in schema.metadata_versions()}
    level = schema.metadata_bounds(name).default if name in _kraft() else None
    return {
        "release": name, "read_from": schema.patch_release(name), "apis": len(schema.apis(name)),
        "metadata_version": level, "metadata_level": known.get(level) if level else None,
    }


def _kraft() -> tuple[str, ...]:
    names = schema.releases()
    return names[names.index("3.3") :]
