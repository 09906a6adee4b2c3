"""Command lines as argparse4j reads them; the texts of whole tools are compared in test_features."""

from __future__ import annotations

import pytest

from kwire.cli.argparse4j import ArgumentError, HelpRequested, Parser, wrap

pytestmark = pytest.mark.quick


def parser() -> Parser:
    made = Parser("tool", "What it does.")
    group = made.group(required=True)
    made.add("--one", help="the one", group=group).add("--other", help="the other", group=group)
    command = made.command("run", "Run it.")
    command.add("--name", "-n", kind="append", help="a name").add("--force", kind="flag", help="do it")
    command.add("--count", type=int, help="how often")
    return made


def test_values() -> None:
    assert parser().parse(["--one", "1", "run", "--name", "a", "-n", "b", "--count=3"]) == {
        "one": "1", "other": None, "command": "run", "name": ["a", "b"], "force": False, "count": 3,
    }  # fmt: skip
    assert parser().parse(["--on=x=y", "r", "--f", "--c", "-5"]) | {"name": 1} == {
        "one": "x=y", "other": None, "command": "run", "name": 1, "force": True, "count": -5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "force", "name"),
    [
        ("-nx=y", False, "x=y"),
        ("-n=x=y", False, "x=y"),
        ("-fnx=y", True, "x=y"),
        ("-fn=x", True, "=x"),
        ("-n-f", False, "-f"),
    ],
)
def test_short_options_that_are_one_word(word: str, force: bool, name: str) -> None:
    made = Parser("tool").add("--name", "-n", help="").add("--force", "-f", kind="flag", help="")
    assert made.parse([word]) == {"name": name, "force": force}


@pytest.mark.parametrize("word", ["-ff=1", "-f-n", "-fx", "--f-n"])
def test_a_word_of_short_options_with_a_letter_that_is_none(word: str) -> None:
    made = Parser("tool").add("--name", "-n", help="").add("--force", "-f", kind="flag", help="")
    with pytest.raises(ArgumentError) as caught:
        made.parse([word])
    assert str(caught.value) == f"unrecognized arguments: '{word}'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run", "one of the arguments --one --other is required"),
        ("--one 1 --other 2 run", "argument --other: not allowed with argument --one"),
        ("--o 1 run", "ambiguous option: --o could match --one, --other"),
        ("--one 1 run --name", "argument --name/-n: expected one argument"),
        ("--one 1 run --name --force", "argument --name/-n: expected one argument"),
        ("--one 1 run --force=yes", "argument --force: ignore implicit argument 'yes'"),
        ("--one 1 run --count x", "argument --count: could not convert 'x' to Integer (For input string: \"x\")"),
        ("--one 1 run left over", "unrecognized arguments: 'left over'"),
        ("--one 1 run --left over", "unrecognized arguments: '--left'"),
        ("--one 1 walk", "invalid choice: 'walk' (choose from 'run')"),
        ("--one 1", "too few arguments"),
        ("--one 1 -- run", "unrecognized arguments: 'run'"),
    ],
)
def test_errors(line: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parser().parse(line.split())
    assert str(caught.value) == message


def test_an_error_does_not_write_to_the_terminal() -> None:
    with pytest.raises(ArgumentError) as caught:
        parser().parse(["--one", "1", "run", "--\x1b[2J\n"])
    assert "\x1b" not in caught.value.usage_text() and "\\x1b[2J\\x0a" in str(caught.value)


def test_help_comes_first() -> None:
    with pytest.raises(HelpRequested) as caught:
        parser().parse(["run", "--count", "1", "-h", "--unknown"])
    lines = caught.value.text.splitlines()
    assert lines[0] == "usage: tool (--one ONE | --other OTHER) run [-h] [--name NAME] [--force]"
    assert lines[1] == "            [--count COUNT]"


def test_lines_end_where_java_breaks_them() -> None:
    text = "one two three four five six seven eight nine ten eleven 3.7-IV4 and a.b=1 host:port, 127.0.0.1:9092-x (y)"
    lines = wrap(text, 0, "").split("\n")
    assert [len(line) for line in lines[:-1]] == [75] * (len(lines) - 1)
    assert wrap("x" * 200, 0, "") == "\n" + "x" * 200  # nowhere to break it


def test_an_option_that_is_given_very_often() -> None:
    """The time was quadratic: a file of arguments of 1 MiB holds 200,000 options."""
    parser = Parser("tool")
    parser.add("--feature", "-f", kind="append", help="")
    assert parser.parse(["-f", "a"] * 200_000)["feature"] == ["a"] * 200_000
