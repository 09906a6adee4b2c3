"""The code blocks of README.md and docs/ print what the pages show (tests/docs/examples.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.examples import PAGES, Runner, blocks_of, commands_of, main, matches, write
from tools.places import ROOT

pytestmark = pytest.mark.checkout

RUN = [page for page in PAGES if any(block.is_run for block in blocks_of(page))]
# kinds of blocks that are shown and not run: data, and what a python block prints
DATA = {"json", "properties", "text"}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as running:
        yield running


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_a_page_prints_what_it_shows(page: Path, runner: Runner) -> None:
    found = [str(one) for one in runner.differences(page)]
    advice = f"python -m tests.docs.examples --write {page.relative_to(ROOT)} updates it"
    assert not found, "\n\n".join([*found, advice])


@pytest.mark.quick
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    for block in blocks_of(page):
        assert block.is_run or "not run" in block.notes or block.kind in DATA, f"{page.name}, line {block.first + 1}"
        assert block.kind != "text" or block.is_output or block.notes, f"{page.name}, line {block.first + 1}"


@pytest.mark.quick
def test_few_blocks_are_not_run() -> None:
    """A whole page of CONTRIBUTING.md, commands of make and pip, and what waits for a user."""
    skipped = [(page.name, block.lines[0]) for page in PAGES for block in blocks_of(page) if "not run" in block.notes]
    assert len([name for name, _ in skipped if name != "CONTRIBUTING.md"]) <= 12, skipped
    assert len(RUN) > 20


@pytest.mark.quick
@pytest.mark.parametrize(("shown", "printed", "same"), [
    (["a", "b"], ["a", "b"], True), (["a"], ["a", "b"], False), (["a", "...", "d"], ["a", "b", "c", "d"], True),
    (["a", "..."], ["a"], True), (["took ... s"], ["took 0.25 s"], True), (["took ... s"], ["took 1", "2 s"], False),
    (["a.b"], ["axb"], False), ([], [], True), ([], ["a"], False), (["a  "], ["a"], True),
])  # fmt: skip
def test_what_matches(shown: list[str], printed: list[str], same: bool) -> None:
    assert matches(shown, printed) == same


PAGE = """# T

```console
$ echo one
two
$ false
```

<!-- file: given.txt -->
```text
five
```

```python
print(open("given.txt").read(), end="")
```

<!-- not run: no -->
```sh
exit 1
```

```{note}
not a block
```
"""


def test_differences_are_found_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    monkeypatch.setattr("tests.docs.examples.ROOT", tmp_path)
    with Runner() as runner:
        found = list(runner.differences(page))
        assert [(one.code.partition("(")[0], one.shown, one.printed) for one in found] == [
            ("echo one", ["two"], ["one"]), ("false", [], []), ("print", [], ["five"]),
        ]  # fmt: skip
        assert found[1].problem == "ends with 1, not 0"
        write(page, found)
        expected = PAGE.replace("two", "one").replace('end="")\n```', 'end="")\n```\n\n```text\nfive\n```')
        assert page.read_text() == expected
        assert [one.problem for one in runner.differences(page)] == ["ends with 1, not 0"]


@pytest.mark.quick
def test_commands_go_on_in_the_next_line() -> None:
    page = ROOT / "docs" / "tutorial.md"
    block = next(one for one in blocks_of(page) if one.kind == "console")
    block.lines = ["$ cat <<EOF", "> text", "> EOF", "text", "$ true"]
    assert [(command, shown) for command, shown, _ in commands_of(block)] == [
        ("cat <<EOF\ntext\nEOF", ["text"]), ("true", []),
    ]  # fmt: skip


@pytest.mark.quick
def test_those_that_are_not_run_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--not-run", str(ROOT / "docs" / "install.md")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("docs/install.md:7: tests/wheels installs")
