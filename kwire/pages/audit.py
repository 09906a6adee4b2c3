"""The report of an upgrade audit: one self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kwire import schema
from kwire.pages.rendering import ASSETS, environment


def audit_page(result: Mapping[str, Any]) -> str:
    """The page of an audit's result, given as in `kwire audit --json`.

    Without jinja2 raises ImportError, which names the extra to install.
    """
    style = (ASSETS / "style.css").read_text(encoding="utf-8")
    times = [use[end] for use in result["uses"] for end in ("first", "last") if use[end] is not None]
    broken = [use for use in result["uses"] if use["breaks"]]
    return environment(untrusted=True).get_template("audit.html").render(
        result=result, style=style, broken=broken, users=_users(result["uses"]),
        newer=sum(1 for use in broken if use["version"] > _highest(use["api_key"], result["to"])),
        begin=_when(min(times)) if times else None, end=_when(max(times)) if times else None,
        requests=sum(use["count"] for use in result["uses"]),
    )


def _highest(api_key: int, release: str) -> float:
    """The newest version of an API in a release; -1 where only later releases have it, inf where it was removed."""
    table = schema.api_by_release(api_key)
    offered = dict(table)[release]
    if offered is not None:
        return offered.max_version
    return -1 if any(row and schema.is_at_least(name, release) for name, row in table) else math.inf


def _users(uses: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """(first use, all uses) of each client, those with the most uses that break first."""
    by_user: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for use in uses:
        by_user.setdefault((use["client_id"], use["software"], use["address"]), []).append(use)
    ordered = sorted(by_user.values(), key=lambda own: -sum(1 for use in own if use["breaks"]))
    return [(own[0], sorted(own, key=lambda use: (use["api_key"], use["version"]))) for own in ordered]


def _when(microseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(microseconds / 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{microseconds} µs"
