"""The site that `make docs` writes: no warning or broken link, every public name, few clicks, nothing for axe-core."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from bs4 import BeautifulSoup

from tests.chromium import Chromium
from tools.docs import commands, reference, site, speed
from tools.places import ROOT

pytestmark = pytest.mark.checkout

# what is looked at in the browser: home, a task, tables and pictures, the reference, commands, search
SEEN = ("index", "tutorial", "spark-start", "speed", "reference-kwire", "command-line", "errors", "search", "genindex")

# names that users were promised, beside those that the packages list: (class, attribute)
MEMBERS = {
    "kwire.FrameReader": ("feed", "pending"), "kwire.Request": ("to_bytes", "client_id"),
    "kwire.RecordBatch": ("codec", "is_valid", "base_offset"), "kwire.Record": ("headers", "control_type"),
    "kwire.RecordColumns": ("__arrow_c_stream__",), "kwire.Column": ("to_numpy",), "kwire.BatchIterator": ("tail",),
    "kwire.storage.LogSegment": ("batches", "read", "columns", "verify"), "kwire.storage.LogDirectory": ("read",),
    "kwire.storage.ClusterImage": ("read", "diff", "to_json", "write_snapshot", "downgrade"),
    "kwire.storage.SegmentWriter": ("append", "roll", "close"), "kwire.net.Connection": ("send", "levels", "refresh"),
    "kwire.net.Cluster": ("send", "can", "describe_features", "update_features"),
}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(out / "doctrees"), "-b", "html", "docs",
         str(out / "html")], cwd=ROOT, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr[-5000:]
    return out / "html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as opened:
        yield opened


@cache
def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(page: Path) -> set[str]:
    return {str(item["id"]) for item in soup(page).find_all(id=True)}


def pages(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.html"))


@pytest.mark.quick
def test_an_installed_kwire_comes_before_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the Docs installs kwire: the checkout there has no compiled extensions."""
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", list(before))
    runpy.run_path(str(ROOT / "docs" / "conf.py"))
    assert sys.path == [*before, str(ROOT)]


def test_every_link_leads_to_a_page_and_a_place(built: Path) -> None:
    broken, seen = [], 0
    for page in pages(built):
        for item in soup(page).find_all(["a", "link", "script", "img"]):
            link = item.get("href") or item.get("src")
            if not link or link.startswith(("data:", "mailto:")):
                continue
            seen += 1
            path, anchor = urldefrag(str(link))
            parts = urlsplit(path)
            if parts.scheme:
                if parts.scheme != "https" or "." not in parts.netloc or " " in path:
                    broken.append((page.name, link))
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.is_file() or (anchor and target.suffix == ".html" and anchor not in anchors(target)):
                broken.append((page.name, link))
    assert seen > 2000 and not broken, broken[:20]


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    for page in pages(built):
        for item in soup(page).find_all(["link", "script", "img", "iframe"]):
            assert not str(item.get("src") or (item.get("rel") != ["canonical"] and item.get("href")) or "").startswith(
                ("http:", "https:", "//")), (page.name, item)  # fmt: skip


def test_the_reference_has_every_public_name(built: Path) -> None:
    data = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    there = {line.split()[0] for line in zlib.decompress(data).decode().splitlines() if " py:" in line}
    for package in reference.PACKAGES:
        public = set(import_module(package).__all__) - {"__version__"}
        assert {f"{package}.{name}" for name in public} <= there, package
    assert {f"{kind}.{name}" for kind, names in MEMBERS.items() for name in names} <= there


def test_signatures_have_types_and_docstrings_are_prose(built: Path) -> None:
    text = soup(built / "reference-kwire.html")
    assert not [page.name for page in pages(built) if "ForwardRef" in page.read_text(encoding="utf-8")]
    decode = text.find(id="kwire.decode").get_text()
    assert "version: int" in decode and "lenient: bool = False" in decode
    described = text.find(id="kwire.decode").find_next_sibling("dd").get_text()
    assert "which must fill the data" in described and "decode(message" not in described
    assert "codec: str" in text.find(id="kwire.RecordBatch.codec").get_text()
    assert "`" not in text.find("article").get_text()


def test_every_command_is_there(built: Path) -> None:
    text = soup(built / "command-line.html")
    words = list(commands.tree())
    assert len(words) > 30 and ("log", "to-parquet") in words and ("features", "describe") in words
    for command in words:
        section = text.find(id="-".join(("kwire", *command)))
        assert section is not None, command
        assert commands.help_of(command).splitlines()[0] in text.get_text()


# question -> (page, words in it)
QUESTIONS = {
    "read a folder into Spark": ("spark-start", 'spark.read.format("kwire")'),
    "only committed records": ("committed", "readCommitted"),
    "what an error means": ("errors", "CorruptBatchError"),
    "limits for untrusted bytes": ("untrusted-bytes", "max_batch_bytes"),
    "add a release": ("new-release", "make schema RELEASE"),
    "how fast beside aiokafka": ("speed", "Beside aiokafka"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_within_two_clicks_of_home(built: Path, question: str) -> None:
    """By the links in the text of the pages, not those of the sidebar."""
    page, words = QUESTIONS[question]
    known = {"index.html"}
    for _ in range(2):
        links = [link for name in known for link in soup(built / name).find("article").find_all("a", href=True)]
        known |= {urldefrag(str(link["href"]))[0] for link in links if re.match(r"[\w-]+\.html", str(link["href"]))}
    assert f"{page}.html" in known and words in soup(built / f"{page}.html").find("article").get_text()


def test_llms_txt(built: Path) -> None:
    text = (built / "llms.txt").read_text()
    links = re.findall(r"^- \[(.+?)\]\((.+?)\): (.+)$", text, re.M)
    assert text.startswith("# kwire\n\n> ") and len(links) == len(list((ROOT / "docs").glob("*.md")))
    for _, name, about in links:
        assert (built / name).stat().st_size and len(about) > 8, name
    whole = (built / "llms-full.txt").read_text()
    assert "py:function:: decode(" in whole and "kwire log to-parquet" in whole and "<!-- made" not in whole
    assert (built / "protocol" / "index.html").is_file()


def test_no_page_is_left_over() -> None:
    """Each page is once in the lists of the home page, the last of which has those that no other names."""
    home = site.expand((ROOT / "docs" / "index.md").read_text(), ROOT / "docs")
    lists = re.findall(r"```\{toctree\}\n(.*?)```", home, re.S)
    listed = [name for block in lists for name in re.findall(r"^[\w-]+$", block, re.M)]
    assert sorted([*listed, "index"]) == sorted(page.stem for page in (ROOT / "docs").glob("*.md"))


def test_a_page_that_no_list_names_is_in_one_of_its_own(tmp_path: Path) -> None:
    for name in ("index", "known", "new"):
        (tmp_path / f"{name}.md").write_text("")
    made = site.expand("```{toctree}\nknown\n```\n<!-- made: other pages -->\n", tmp_path)
    assert made.endswith(":hidden:\n\nnew\n```\n")
    (tmp_path / "new.md").unlink()
    assert "More" not in site.expand("```{toctree}\nknown\n```\n<!-- made: other pages -->\n", tmp_path)


def test_search_finds_offline(built: Path, browser: Chromium) -> None:
    browser.open(f"{(built / 'search.html').as_uri()}?q=read_batches")
    found = browser.run("""new Promise(done => { const look = () => {
        const links = [...document.querySelectorAll("#search-results li a")].map(link => link.getAttribute("href"));
        links.length ? done(links) : setTimeout(look, 50) }; look() })""")
    assert any(link.startswith("reference-kwire.html") for link in found), found


@pytest.mark.parametrize("name", SEEN)
def test_a_page_has_no_fault_for_axe(built: Path, browser: Chromium, name: str) -> None:
    assert not faults(built / f"{name}.html", browser)


def faults(page: Path, browser: Chromium) -> list[str]:
    """What axe-core finds in a page, and whether it is wider than the window."""
    found = []
    for width, dark in ((390, False), (1200, True)):
        browser.open(page, width, dark=dark)
        found += [f"{page.name} {width}: {line}" for line in browser.violations()]
        found += [f"{page.name} {width}: too wide"] * bool(browser.overflow())
    return found


@pytest.mark.soak
def test_no_page_has_a_fault_for_axe(built: Path, browser: Chromium) -> None:
    found = [fault for page in pages(built) for fault in faults(page, browser)]
    assert not found, "\n".join(found)


def test_no_heading_of_a_table_is_empty(built: Path) -> None:
    """As axe-core wants it; in all pages, those that it is not run on too."""
    tables = [(page.name, head) for page in pages(built) for head in soup(page).find_all("th")]
    assert len(tables) > 100 and not [name for name, head in tables if not head.get_text().strip()]


def test_the_bars_are_those_of_the_tables() -> None:
    text = (ROOT / "docs" / "speed.md").read_text()
    rows = dict(speed.rows(text, "aiokafka"))
    assert rows["W1 to Arrow columns, checksums verified"] == 19.5 and len(rows) == 10
    assert speed.markdown(text, "Java").count("<rect") == len(speed.rows(text, "Java")) == 14


def test_the_messages_of_the_errors_page_are_in_the_code() -> None:
    text = (ROOT / "docs" / "errors.md").read_text().partition("## Batches")[2]
    rows = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    messages = [part for row in rows for part in re.findall(r"`([^`]+)`", row)]
    assert len(messages) > 20
    sources = [*(ROOT / "kwire").rglob("*.py"), *(ROOT / "kwire_c").rglob("*.py"), *(ROOT / "kwire_c").rglob("*.h")]
    code = "".join(file.read_text(encoding="utf-8") for file in sources)
    for message in messages:
        for piece in message.split("..."):
            assert piece.strip() in code, message


def test_every_error_class_is_on_the_errors_page() -> None:
    import kwire

    text = (ROOT / "docs" / "errors.md").read_text()
    for package in reference.PACKAGES:
        for name in import_module(package).__all__:
            thing = getattr(import_module(package), name)
            if isinstance(thing, type) and issubclass(thing, kwire.KwireError):
                assert f"`{name}`" in text, name
