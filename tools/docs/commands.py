"""The command line, as every command's --help says it."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout

import click

from kwire.cli import main
from kwire.cli.root import root


def tree() -> Iterator[tuple[str, ...]]:
    """The words of each command, groups before what is in them."""

    def below(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, ...]]:
        yield words
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                if not inner.hidden:
                    yield from below((*words, name), inner)
        else:  # of one that reads its arguments by itself: {describe,upgrade,...} in its help
            for name in re.findall(r"[\w-]+", "".join(re.findall(r"\{([\w,-]+)\}\s*\.\.\.", help_of(words))[:1])):
                yield (*words, name)

    yield from below((), root)


def help_of(words: tuple[str, ...]) -> str:
    """What `kwire WORDS --help` prints into 100 columns."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            main([*words, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return out.getvalue().rstrip()


def markdown() -> str:
    """A section for each command."""
    lines = []
    for words in tree():
        name = " ".join(("kwire", *words))
        level = "##" if len(words) < 2 else "###"
        lines += [f"({name.replace(' ', '-')})=", f"{level} {name}", "", "```text", help_of(words), "```", ""]
    return "\n".join(lines)
