"""The Sphinx extension of the site: what pages take from the code, llms.txt, and the protocol pages beside the site.

In a page, a line `<!-- made: WHAT -->` becomes Markdown: `reference PACKAGE`, `commands`, `speed PEER`, `include FILE`
(of the root), or, in the home page, `other pages`: those that no other list there names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.pages.site import write_site
from tools.docs import commands, reference, speed
from tools.places import ROOT

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_MADE = re.compile(r"^<!-- made: (\w+)(?: (.*?))? -->$", re.M)
_LIST = re.compile(r"^```\{toctree\}\n.*?^```", re.M | re.S)
_SUMMARY = "The Kafka wire format in Python at C speed: batches and messages to objects, Arrow columns and Spark."
# pages of the root, each of which a page of docs/ includes
ROOT_PAGES = {"CONTRIBUTING": "contributing", "SECURITY": "security", "CHANGELOG": "changelog", "README": "index"}


def expand(text: str, source: Path) -> str:
    """The Markdown of a page, with what is made from the code in it."""

    def made(found: re.Match[str]) -> str:
        if found[1] == "reference":
            return reference.markdown(found[2])
        if found[1] == "commands":
            return commands.markdown()
        if found[1] == "speed":
            return speed.markdown(text, found[2])
        if found[1] == "include":
            return of_root((ROOT / found[2]).read_text(encoding="utf-8"))
        assert found[0] == "<!-- made: other pages -->", found[0]
        listed = set(re.findall(r"^([\w-]+)$", text, re.M))
        others = sorted({page.stem for page in source.glob("*.md")} - listed - {"index"})
        return "\n".join(["```{toctree}", ":caption: More", ":hidden:", "", *others, "```"] if others else [])

    return _MADE.sub(made, re.sub(_LIST, lambda found: _existing(found[0], source), text))


def _existing(entries: str, source: Path) -> str:
    """A list of pages without those that do not exist (yet)."""
    names = re.findall(r"^[\w-]+\n", entries, re.M)
    for name in names:
        if not (source / f"{name.strip()}.md").exists():
            entries = entries.replace(f"\n{name}", "\n", 1)
    return entries


def of_root(text: str) -> str:
    """A page of the root as a page of docs/: its links lead to pages, or to the file's name in the repository."""

    def link(found: re.Match[str]) -> str:
        path, _, anchor = found[2].partition("#")
        name = Path(path).stem
        if path.startswith("docs/"):
            return f"[{found[1]}]({path.removeprefix('docs/')}{'#' * bool(anchor)}{anchor})"
        if name in ROOT_PAGES:
            return f"[{found[1]}]({ROOT_PAGES[name]}.md{'#' * bool(anchor)}{anchor})"
        return f"`{path}`"

    return re.sub(r"\[([^\]]+)\]\(((?!https?:|#|mailto:)[^)]+)\)", link, text)


def _read(app: Sphinx, name: str, text: list[str]) -> None:
    text[0] = expand(text[0], Path(app.srcdir))


def accessible(html: str) -> str:
    """A page of furo with what axe-core misses in it."""
    html = html.replace('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">')
    html = html.replace('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages">')
    html = html.replace('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer')
    html = html.replace('<span class="visually-hidden">View this page</span>', "")
    html = re.sub(r'<th (class="head[^"]*")>(?:<p></p>)?</th>', r"<td \1></td>", html)  # a column without a name
    html = html.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    return re.sub(r"<pre(?=[ >])", '<pre tabindex="0"', html)


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Write llms.txt, llms-full.txt and the protocol site, beside the pages."""
    if error or app.builder.name != "html":
        return
    out, source = Path(app.outdir), Path(app.srcdir)
    index, full = [f"# kwire\n\n> {_SUMMARY}\n"], []
    for name, title in _pages(app):
        text = expand((source / f"{name}.md").read_text(encoding="utf-8"), source)
        text = re.sub(r"^<!--.*?-->\n|^\([\w-]+\)=\n", "", text, flags=re.M | re.S)
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        index.append(f"- [{title}]({name}.md): {_about(text) or title}")
        full.append(text.strip())
    for page in out.glob("*.html"):
        page.write_text(accessible(page.read_text(encoding="utf-8")), encoding="utf-8")
    (out / "llms.txt").write_text("\n".join([*index, ""]), encoding="utf-8")
    (out / "llms-full.txt").write_text("\n\n\n".join([*full, ""]), encoding="utf-8")
    write_site(out / "protocol")


def _pages(app: Sphinx) -> list[tuple[str, str]]:
    """(name, title) of all pages, in the order of the home page's lists."""
    found = ["index"]
    for name in found:
        found += [one for one in app.env.toctree_includes.get(name, []) if one not in found]
    return [(name, app.env.titles[name].astext()) for name in found]


def _about(text: str) -> str:
    """The first sentence of a page that is no code, list or table."""
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    for part in re.split(r"\n{2,}", prose):
        if part.strip() and part.strip()[0] not in "#<|:-[(":
            sentence = re.split(r"(?<=\.)\s", part.strip().replace("\n", " "))[0].rstrip(":")
            return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", sentence)
    return ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    app.connect("build-finished", _finish)
    return {"version": "1", "parallel_read_safe": True}
