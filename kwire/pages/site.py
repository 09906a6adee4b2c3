"""The protocol site: static HTML with search, one page for each release, each API and each API version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kwire import schema
from kwire.output import check_local, new_file
from kwire.pages.layouts import layouts_script
from kwire.pages.notation import FieldRow, grammar, rows
from kwire.pages.releases import api_of_release
from kwire.pages.rendering import ASSETS, environment
from kwire.schema import Api, ErrorCode, Message, Note
from kwire.schema.diff import difference, field_changes

_MARK = Path("assets", "search-index.js")  # in every site, written first


class VersionLife(NamedTuple):
    """One version of an API over all releases.

    since, deprecated, removed: the release that added, deprecated or removed it, or None; unstable: the releases in
    which it is.
    """

    version: int
    since: str | None
    deprecated: str | None
    removed: str | None
    flexible: bool
    unstable: tuple[str, ...]


class Part(NamedTuple):
    """One message on the page of an API version: a header or a body."""

    id: str
    message: Message
    version: int
    header: bool
    grammar: str
    rows: tuple[FieldRow, ...]
    notes: tuple[Note, ...]


def write_site(out: str | Path, done: Callable[[str], None] = lambda page: None, *, force: bool = False) -> int:
    """Write the protocol site to the folder `out`, made if it does not exist, and return the number of pages.

    The pages are index.html, errors.html, inspect.html (the field of each byte that is pasted), release/RELEASE.html
    for 0.9.0 to the newest, api/NAME.html and api/NAME-VERSION.html. The folder must be new or empty, or hold a
    protocol site, unless force; pages of the same names are replaced, nothing else is touched. done: called with the
    name of each page. Raises FileExistsError for any other folder, OSError if it cannot be written.
    """
    check_local(str(out))
    templates = environment()
    templates.globals["releases"] = schema.releases()
    out = Path(out)
    if not force and out.is_dir() and any(out.iterdir()) and not (out / _MARK).is_file():
        raise FileExistsError(17, "the folder is not empty (--force writes into it)", str(out))
    (out / "assets").mkdir(parents=True, exist_ok=True)
    index = json.dumps(list(_search_rows()), ensure_ascii=False, separators=(",", ":"))
    _write(out / _MARK, f"window.searchIndex = {index};\n".encode())
    _write(out / "assets" / "layouts.js", layouts_script().encode())
    for asset in sorted(ASSETS.iterdir()):
        _write(out / "assets" / asset.name, asset.read_bytes())
    count = 0
    for name, template, values in _pages():
        page = out / name
        page.parent.mkdir(parents=True, exist_ok=True)
        text = templates.get_template(template).render(root="../" * name.count("/"), **values)
        _write(page, text.encode())
        done(name)
        count += 1
    return count


def _write(path: Path, content: bytes) -> None:
    with new_file(path, force=True, sync=False) as file:
        file.write(content)


def lives(api: Api) -> list[VersionLife]:
    """Every version of an API and its life over the releases, ascending."""
    table = schema.api_by_release(api.key)
    flexible = schema.message(api.request).flexible_versions
    versions = []
    for version in api.versions.all():
        supporting = [release for release, row in table if row and version in row.versions]
        deprecated = [release for release, row in table if row and version in row.versions.overlap(row.deprecated)]
        unstable = tuple(release for release, row in table if row and row.unstable and row.max_version == version)
        versions.append(
            VersionLife(
                version, supporting[0] if supporting else None, deprecated[0] if deprecated else None,
                schema.release_after(supporting[-1]) if supporting else None,
                version in flexible, unstable,
            )
        )
    return versions


def _pages() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(page, template, values) of every page."""
    apis = schema.apis()
    rows = []
    for api in apis:
        yield from _api_pages(api)
        supporting = [release for release, row in schema.api_by_release(api.key) if row]
        rows.append({"api": api, "first": supporting[0], "removed": schema.release_after(supporting[-1])})
    versions = sum(len(api.versions.all()) for api in apis)
    yield "index.html", "index.html", {"apis": rows, "versions": versions, "old_releases": schema.releases(old=True)}
    yield "errors.html", "errors.html", {"errors": list(ErrorCode)}
    yield "inspect.html", "inspect.html", {}
    previous = None
    for release in schema.releases(old=True):
        yield f"release/{release}.html", "release.html", {
            "release": release, "patch": schema.patch_release(release), "apis": schema.apis(release),
            "previous": previous, "next": schema.release_after(release),
            "sections": [
                {"title": section.title, "apis": [api_of_release(api, release) for api in section.apis]}
                for section in schema.sections(release)
            ],
            "difference": difference(previous, release) if previous else None,
        }
        previous = release


def _api_pages(api: Api) -> Iterator[tuple[str, str, dict[str, Any]]]:
    life = lives(api)
    table = schema.api_by_release(api.key)
    messages = [schema.message(name) for name in (api.request, api.response)]
    last = [release for release, row in table if row][-1]
    yield f"api/{api.name}.html", "api.html", {
        "api": api, "summary": _api_summary(api, schema.release_after(last)), "versions": life, "by_release": table,
        "section": schema.section(api.key),
        "messages": [
            (message, list(message.walk()), schema.version_notes(message.name, message.releases[1]))
            for message in messages
        ],
        "changes": [
            change for message in messages
            for change in field_changes(api.name, message.name, api.min_version, api.max_version)
        ],
    }
    for row in life:
        version = row.version
        request, response = messages
        yield f"api/{api.name}-{version}.html", "version.html", {
            "api": api, "version": version, "summary": _version_summary(row),
            "supported_by": [release for release, known in table if known and version in known.versions],
            "previous": version - 1 if version > api.min_version else None,
            "next": version + 1 if version < api.max_version else None,
            "parts": [
                _part("request-header", schema.message("RequestHeader"), api.request_header_version(version)),
                _part("request", request, version),
                _part("response-header", schema.message("ResponseHeader"), api.response_header_version(version)),
                _part("response", response, version),
            ],
        }


def _api_summary(api: Api, removed: str | None) -> Iterator[str]:
    yield f"Versions {api.versions}."
    if api.flexible_from is not None:
        yield f"Flexible from {api.flexible_from}."
    if api.listeners:
        yield f"Served by: {', '.join(api.listeners)}."
    if removed:
        yield f"Removed in {removed}."


def _version_summary(row: VersionLife) -> Iterator[str]:
    yield f"Since {row.since}." if row.since else "In no release that kwire knows."
    if row.deprecated:
        yield f"Deprecated in {row.deprecated}."
    if row.removed:
        yield f"Removed in {row.removed}."
    if row.unstable:
        yield f"Unstable in {', '.join(row.unstable)}."
    yield "Flexible: compact lengths and tagged fields." if row.flexible else "Not flexible."


def _part(id: str, message: Message, version: int) -> Part:
    notes = tuple(note for note in message.notes if version in note.versions)
    return Part(id, message, version, "header" in id, grammar(message, version), tuple(rows(message, version)), notes)


def _search_rows() -> Iterator[tuple[str, str, str]]:
    yield "Inspector", "the field of each byte", "inspect.html"
    for release in reversed(schema.releases(old=True)):
        yield release, "release", f"release/{release}.html"
    for api in schema.apis():
        yield api.name, f"API, key {api.key}", f"api/{api.name}.html"
    for error in ErrorCode:
        yield error.name, f"error {error.value}", f"errors.html#{error.name}"
    for api in schema.apis():
        for name in (api.request, api.response):
            message = schema.message(name)
            for path, field in message.walk():
                yield path, f"{name} {field.versions}", f"api/{api.name}.html#{message.type}"
