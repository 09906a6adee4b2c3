"""The report of an upgrade audit: one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kwire import __version__
from kwire_c.printable import printable

_HERE = Path(__file__).parent


def audit_page(found: Mapping[str, Any]) -> str:
    """The page of an audit, as `kwire audit --json` has it. ImportError without jinja2 names the extra."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("the HTML report needs jinja2: pip install 'kwire[report]'") from error
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=lambda value: printable(value) if type(value) is str else value,
    )
    style = (_HERE / "assets" / "style.css").read_text(encoding="utf-8")
    times = [use[end] for use in found["uses"] for end in ("first", "last") if use[end] is not None]
    broken = [use for use in found["uses"] if use["breaks"]]
    return environment.get_template("audit.html").render(
        found=found, style=style, kwire_version=__version__, broken=broken, users=_users(found["uses"]),
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
