"""The browser of the tests: it finds what is wrong with a page at its width, and forgets the page before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import Chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as opened:
        yield opened


def page(folder: Path, body: str) -> Path:
    file = folder / "page.html"
    file.write_text(f'<!doctype html><html lang="en"><title>t</title><main><h1>One</h1>{body}</main>')
    return file


def test_a_page_without_a_fault(browser: Chromium, tmp_path: Path) -> None:
    browser.open(page(tmp_path, "<p>Text</p>"), 390)
    assert browser.violations() == [] and browser.overflow() == 0


def test_faults_are_named_with_their_element(browser: Chromium, tmp_path: Path) -> None:
    browser.open(page(tmp_path, '<p style="color: #ccc; width: 500px">Pale and wide</p><img id="x" src="">'), 390)
    found = browser.violations()
    assert {line.split(":")[0] for line in found} == {"color-contrast", "image-alt"}
    assert any(line.startswith("image-alt: #x: ") for line in found)
    assert browser.overflow() == 500 + 8 - 390
    browser.open(tmp_path / "page.html", 1200)
    assert browser.overflow() == 0


def test_scripts_promises_and_the_dark_scheme(browser: Chromium, tmp_path: Path) -> None:
    dark = "matchMedia('(prefers-color-scheme: dark)').matches"
    browser.open(page(tmp_path, "<script>window.state = 5</script>"), dark=True)
    assert browser.run("Promise.resolve(window.state)") == 5 and browser.run(dark) is True
    browser.open(page(tmp_path, ""))
    assert browser.run("window.state === undefined") is True and browser.run(dark) is False
    with pytest.raises(AssertionError, match="nothing is not defined"):
        browser.run("nothing.at.all")


def test_pictures(browser: Chromium, tmp_path: Path) -> None:
    browser.open(page(tmp_path, '<p style="height: 3000px">Long</p>'), 390)
    sizes = []
    for whole in (False, True):
        browser.picture(tmp_path / "page.png", whole=whole)
        data = (tmp_path / "page.png").read_bytes()
        sizes.append((int.from_bytes(data[16:20]), int.from_bytes(data[20:24])))
    assert sizes[0] == (390, 900) and sizes[1][0] == 390 and sizes[1][1] > 3000
