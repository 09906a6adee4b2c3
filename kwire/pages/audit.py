"""The report of an upgrade audit: one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kwire.pages.rendering import ASSETS, environment


def audit_page(found: Mapping[str, Any]) -> str:
    """The page of an audit, as `kwire audit --json` has it. ImportError without jinja2 names the extra."""
    style = (ASSETS / "style.css").read_text(encoding="utf-8")
    times = [use[end] for use in found["uses"] for end in ("first", "last") if use[end] is not None]
    broken = [use for use in found["uses"] if use["breaks"]]
    return environment(foreign_text=True).get_template("audit.html").render(
        found=found, style=style, broken=broken, users=_users(found["uses"]),
        begin=_when(min(times)) if times else None, end=_when(max(times)) if times else None,
        requests=sum(use["count"] for use in found["uses"]),
    )


def _users(uses: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """(one use of theirs, all of them) of each user, those with the most that breaks first."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for use in uses:
        found.setdefault((use["client_id"], use["software"], use["address"]), []).append(use)
    ordered = sorted(found.values(), key=lambda own: -sum(1 for use in own if use["breaks"]))
    return [(own[0], sorted(own, key=lambda use: (use["api_key"], use["version"]))) for own in ordered]


def _when(microseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(microseconds / 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{microseconds} µs"
