"""The protocol site: it says what the schema says, every link has a target, and a browser shows it."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from bs4 import BeautifulSoup

from kwire import schema
from kwire.cli import main
from kwire.pages.site import write_site
from tests.browser import rendered
from tests.schema.test_against_kafka import DATA, SLIPS
from tools.schema import derived


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "new"
    assert write_site(out) == len(list(out.rglob("*.html")))
    return out


def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(), "html.parser")


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
            expected[key] = (definition["name"], past[-1]["versions"], past[-1].get("deprecated", ""))
    table = soup(site / "release" / f"{release}.html").find("table", attrs={"data-release": release})
    rows = [texts(row) for row in table.tbody.find_all("tr")]
    assert {row[0]: (row[1], row[2], row[3]) for row in rows} == expected
    for row in rows:
        low, _, high = row[2].partition("-")
        assert row[-1].split() == [str(version) for version in range(int(low), int(high or low) + 1)]


def test_versions_are_spoken_by_the_releases_of_the_published_table(site):
    table = json.loads(gzip.decompress((DATA / "schema" / "kip-versions.json.gz").read_bytes()))
    for name, cells in table.items():
        api = re.sub("(Request|Response)$", "", name)
        for version, release in cells:
            if release in schema.releases() and (api, version, release) not in SLIPS:
                links = soup(site / "api" / f"{schema.api(api).name}-{version}.html").find_all("a")
                assert f"../release/{release}.html" in {link["href"] for link in links}, (name, version, release)


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
        (page, link.get("href") or link.get("src")) for page in sorted(site.rglob("*.html"))
        for link in soup(page).find_all(["a", "link", "script"])
    ]
    index = json.loads((site / "assets" / "search-index.js").read_text().removeprefix("window.searchIndex = ")[:-2])
    links += [(site / "index.html", row[2]) for row in index]
    assert len(index) > 2000
    for page, link in links:
        path, anchor = urldefrag(link)
        target = (page.parent / unquote(path)).resolve() if path else page
        assert target.is_file(), (page, link)
        if anchor:
            if target not in anchors:
                anchors[target] = {item["id"] for item in soup(target).find_all(id=True)}
            assert anchor in anchors[target], (page, link)


def test_search_in_a_browser(site):
    found = dom(site / "index.html", "?q=isolationlevel%20fetchrequest").find("ul", id="found")
    assert found.li.a.get_text() == "isolationLevel" and found.li.a["href"] == "api/Fetch.html#request"
    assert dom(site / "api" / "Fetch.html", "?q=heartbeat").find("ul", id="found").li.a.get_text() == "Heartbeat"
    assert dom(site / "index.html", "?q=nosuchthing").find("ul", id="found").get_text() == "nothing found"


@pytest.mark.parametrize(
    "page", ["index.html", "release/4.4.html", "api/Fetch.html", "api/Fetch-12.html", "errors.html"]
)
def test_a_narrow_screen_need_not_scroll_sideways(site, page):
    copy = site / page.replace(".html", "-measured.html")
    measure = "let page = document.documentElement; document.body.id = page.scrollWidth - page.clientWidth"
    copy.write_text((site / page).read_text().replace("</body>", f"<script>{measure}</script></body>"))
    assert dom(copy, width=400).body["id"] == "0"
    copy.unlink()


def test_the_command_writes_it_and_names_the_first_page(tmp_path, capsys):
    assert main(["protocol", "site", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    written = len(list((tmp_path / "out").rglob("*.html")))
    assert said.out == "" and said.err.startswith(f"{written} pages: ") and (tmp_path / "out" / "index.html").is_file()
    assert written > derived.read()["requests_and_responses"][1] / 2
    (tmp_path / "file").write_text("")
    assert main(["protocol", "site", str(tmp_path / "file" / "below")]) in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) == 1
