"""The protocol site: it says what the schema says, every link has a target, and a browser shows it."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from bs4 import BeautifulSoup

from kwire import schema
from kwire.cli import main
from kwire.pages.site import write_site
from tests.browser import rendered
from tests.chromium import Chromium
from tests.schema.test_against_kafka import DATA, SLIPS
from tools.schema import derived


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "new"
    assert write_site(out) == len(list(out.rglob("*.html")))
    return out


def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(), "html.parser")


def api_on(page: Path, name: str) -> BeautifulSoup:
    """The section of an API on the page of a release."""
    text = page.read_text()
    start = text.index(f'<section class="api" id="{name}"')
    return BeautifulSoup(text[start : text.index("</section>", start)], "html.parser").section


def dom(page: Path, query: str = "", width: int = 1200) -> BeautifulSoup:
    return BeautifulSoup(rendered(page, query, width), "html.parser")


def texts(row) -> list[str]:
    return [" ".join(cell.get_text().split()) for cell in row.find_all(["td", "th"])]


@pytest.mark.parametrize("release", schema.releases(old=True))
def test_a_page_a_release_with_its_ranges(site, release):
    raw = json.loads((Path(schema.__file__).parent / "releases.json").read_text())["apis"]
    order = schema.releases(old=True)
    expected = {}
    for key, definition in raw.items():
        past = [change for change in definition["changes"] if order.index(change["release"]) <= order.index(release)]
        if past and past[-1]["versions"] != "none":
            name = past[-1].get("name", definition["name"])  # the release's own
            expected[key] = (name, past[-1]["versions"], past[-1].get("deprecated", ""))
    text = (site / "release" / f"{release}.html").read_text()
    table = BeautifulSoup(text[text.index("<table") : text.index("</table>")], "html.parser")
    assert table.table["data-release"] == release
    rows = [texts(row) for row in table.tbody.find_all("tr")]
    assert {row[0]: (row[1], row[2], row[3]) for row in rows} == expected
    for row in rows:
        low, _, high = row[2].partition("-")
        assert row[-1].split() == [str(version) for version in range(int(low), int(high or low) + 1)]


def test_versions_are_spoken_by_the_releases_of_the_published_table(site):
    table = json.loads(gzip.decompress((DATA / "schema" / "kip-versions.json.gz").read_bytes()))
    links: dict[str, set[str]] = {}
    for name, cells in table.items():
        api = re.sub("(Request|Response)$", "", name)
        for version, release in cells:
            if release in schema.releases() and (api, version, release) not in SLIPS:
                page = f"{schema.api(api).name}-{version}.html"
                if page not in links:
                    links[page] = set(re.findall('<a href="([^"]*)"', (site / "api" / page).read_text()))
                assert f"../release/{release}.html" in links[page], (name, version, release)


def test_every_version_has_its_fields_and_headers(site):
    pages = 0
    for api in schema.apis():
        for version in api.versions.all():
            page = soup(site / "api" / f"{api.name}-{version}.html")
            pages += 1
            found = {table["data-message"]: table for table in page.find_all("table", class_="fields")}
            assert set(found) == {"RequestHeader", "ResponseHeader", api.request, api.response}
            assert found["RequestHeader"]["data-version"] == str(api.request_header_version(version))
            assert found["ResponseHeader"]["data-version"] == str(api.response_header_version(version))
            for name in (api.request, api.response):
                shown = [row["data-path"] for row in found[name].find_all("tr", attrs={"data-path": True})]
                assert shown == fields(name, version), (name, version)
    assert 2 * pages == derived.read()["requests_and_responses"][1]


def fields(name: str, version: int) -> list[str]:
    """Paths of the version's fields, by the schema's own JSON."""

    def below(prefix, items):
        for item in items:
            if version in item.versions:
                yield prefix + item.json_name
                yield from below(f"{prefix}{item.json_name}.", item.fields)

    return list(below("", schema.message(name).fields))


def test_null_tag_default_and_life_of_a_field(site):
    page = soup(site / "api" / "Fetch-12.html")
    request, response = (
        page.find("table", attrs={"data-message": name}) for name in ("FetchRequest", "FetchResponse")
    )
    row = texts(request.find("tr", attrs={"data-path": "clusterId"}))
    assert row[:6] == ["clusterId", "COMPACT_NULLABLE_STRING", "yes", "0", "null", "12+"]
    row = texts(request.find("tr", attrs={"data-path": "maxBytes"}))
    assert row[:6] == ["maxBytes", "INT32", "", "", "0x7fffffff", "3+"]
    row = texts(response.find("tr", attrs={"data-path": "responses.partitions.abortedTransactions"}))
    assert row[1] == "COMPACT_NULLABLE_ARRAY of AbortedTransaction"
    old = soup(site / "api" / "Fetch-3.html").get_text(" ", strip=True)
    assert "Since 0.10.1. Deprecated in 3.7. Removed in 4.0." in " ".join(old.split())
    assert "Unstable in 4.1, 4.2, 4.3, 4.4." in soup(site / "api" / "InitProducerId-6.html").get_text()
    assert "Removed in 4.0." in soup(site / "api" / "LeaderAndIsr.html").get_text()


def test_every_link_leads_to_a_page_and_a_place(site):
    anchors: dict[Path, set[str]] = {}
    links = [
        (page, html.unescape(link)) for page in sorted(site.rglob("*.html"))
        for link in set(re.findall(r'<(?:a|link|script)\b[^>]*? (?:href|src)="([^"]*)"', page.read_text()))
    ]
    assert len(links) > 5000
    index = json.loads((site / "assets" / "search-index.js").read_text().removeprefix("window.searchIndex = ")[:-2])
    links += [(site / "index.html", row[2]) for row in index]
    assert len(index) > 2000
    for page, link in links:
        path, anchor = urldefrag(link)
        target = (page.parent / unquote(path)).resolve() if path else page
        assert target.is_file(), (page, link)
        if anchor:
            if target not in anchors:
                anchors[target] = set(re.findall(r'<[a-z0-9]+\b[^>]*? id="([^"]*)"', target.read_text()))
            assert anchor in anchors[target], (page, link)


def test_search_in_a_browser(site):
    found = dom(site / "index.html", "?q=isolationlevel%20fetchrequest").find("ul", id="found")
    assert found.li.a.get_text() == "isolationLevel" and found.li.a["href"] == "api/Fetch.html#request"
    assert dom(site / "api" / "Fetch.html", "?q=heartbeat").find("ul", id="found").li.a.get_text() == "Heartbeat"
    assert dom(site / "index.html", "?q=nosuchthing").find("ul", id="found").get_text() == "nothing found"


PAGES = ("index.html", "release/4.4.html", "release/2.2.html", "release/0.9.0.html", "api/Fetch.html",
         "api/Fetch-12.html", "api/StreamsGroupTopologyDescriptionUpdate-0.html", "errors.html", "inspect.html")
INSPECTED = "?kind=message&name=MetadataRequest&version=12&bytes=02" + "00" * 16 + "03c3280001000000"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.mark.parametrize("page", PAGES)
def test_a_narrow_screen_need_not_scroll_sideways(site, browser, page):
    query = INSPECTED if page == "inspect.html" else ""
    for width in (360, 390):
        browser.open((site / page).as_uri() + query, width=width)
        browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert browser.overflow() == 0, (page, width)
    assert browser.run(SPLIT) == []


# Words of names that are broken between two lines inside a word: not where a <wbr> or another element is.
SPLIT = """
[...document.querySelectorAll("td code, td a, td, th, h1, h2, h3, summary, li a")].flatMap(
    element => [...element.childNodes]).filter(node => {
  if (node.nodeType !== 3 || !/^\\S+$/.test(node.data.trim()) || !node.parentElement.offsetParent) return false;
  const range = document.createRange();
  range.selectNodeContents(node);
  const lines = new Set([...range.getClientRects()].filter(one => one.width > 0).map(one => Math.round(one.top)));
  return lines.size > 1;
}).map(node => node.data)
"""


@pytest.mark.parametrize("page", ["index.html", "release/4.4.html", "api/Fetch.html", "api/Fetch-12.html",
                                  "errors.html", "inspect.html"])  # fmt: skip
def test_axe_finds_nothing(site, browser, page):
    query = INSPECTED if page == "inspect.html" else ""
    for width, dark in ((390, False), (1200, True)):
        browser.open((site / page).as_uri() + query, width=width, dark=dark)
        browser.run("[...document.querySelectorAll('details')].slice(0, 2).forEach(one => one.open = true)")
        assert browser.violations() == [], (page, width, dark)


def squeezed(text: str) -> str:
    return " ".join(text.replace("KIP_", "KIP-").split())


def messages_of(page: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """(message, (first flexible version of its API, text of its details)) on the page of a release."""
    for api in page.read_text().split('<section class="api"')[1:]:
        flexible = re.search(r'data-flexible-from="(\d*)"', api)
        for name, inside in re.findall(r'<details data-message="(\w+)">(.*?)</details>', api, re.DOTALL):
            yield name, (flexible[1], squeezed(html.unescape(re.sub(r"<[^>]+>", " ", inside.replace("<wbr>", "")))))


def test_the_noted_cells_of_the_published_table_are_on_the_pages_of_their_releases(site):
    table = json.loads(gzip.decompress((DATA / "schema" / "kip-notes.json.gz").read_bytes()))
    pages: dict[str, dict[str, tuple[str, str]]] = {}
    found, missing = 0, []
    for name, cells in table["notes"].items():
        for version, release, text in cells:
            release = release.removeprefix("≤") or "4.3"
            if release not in pages:
                pages[release] = dict(messages_of(site / "release" / f"{release}.html"))
            flexible_from, said = pages[release][name]
            note = squeezed(text.removesuffix("Flexible encoding enabled."))
            if note not in said:
                missing.append((name, version, release, text))
                continue
            found += 1
            if text.endswith("Flexible encoding enabled."):
                assert int(flexible_from) <= version
    assert found + len(missing) == 515
    assert [row[:2] for row in missing] == [("BrokerRegistrationRequest", 5)]  # of Kafka's trunk, in no release yet


def test_a_release_has_its_own_names_sections_and_deprecations(site):
    api = api_on(site / "release" / "3.1.html", "AlterPartition")
    assert "AlterIsr key 56, today AlterPartition" in " ".join(api.h3.get_text().split())
    assert api.find("details").summary.get_text().startswith("AlterIsrRequest")
    fields = [row.td.code.get_text() for row in api.find("details").table.tbody.find_all("tr")]
    assert "currentIsrVersion" in fields and "partitionEpoch" not in fields
    titles = {
        release: re.findall("<h2[^>]*>(.*?)</h2>", (site / "release" / f"{release}.html").read_text())[1:-1]
        for release in ("3.1", "4.4")
    }  # fmt: skip
    assert titles["3.1"] == [row.title for row in schema.sections("3.1")] and "Share Groups" not in titles["3.1"]
    assert titles["4.4"] == [row.title for row in schema.sections("4.4")] and len(titles["4.4"]) == 12
    produce = api_on(site / "release" / "3.9.html", "Produce")
    assert "Versions 0-11. 0-2 deprecated since 3.7." in " ".join(produce.p.get_text().split())
    old = api_on(site / "release" / "2.2.html", "Fetch")
    assert "maxWait today maxWaitMs" in " ".join(old.find("details").table.get_text(" ").split())
    note = "Version 4 adds IsolationLevel."
    assert note in old.get_text() and note in soup(site / "api" / "Fetch-4.html").get_text()
    assert note not in soup(site / "api" / "Fetch-5.html").get_text()
    assert note in soup(site / "api" / "Fetch.html").get_text()


def test_the_command_writes_it_and_names_the_first_page(tmp_path, capsys):
    assert main(["protocol", "site", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    written = len(list((tmp_path / "out").rglob("*.html")))
    assert said.out == "" and said.err.startswith(f"{written} pages: ") and (tmp_path / "out" / "index.html").is_file()
    assert written > derived.read()["requests_and_responses"][1] / 2
    (tmp_path / "file").write_text("")
    assert main(["protocol", "site", str(tmp_path / "file" / "below")]) in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) == 1
