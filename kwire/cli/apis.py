"""`kwire apis` and `kwire releases`: the APIs and releases in the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table

from kwire import schema
from kwire.cli.terminal import console, print_json


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
