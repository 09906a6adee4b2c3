"""Each run of kafka-storage, done again by kwire: the same texts, exit codes and files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.storage.formatting.runs import Outcome, again, releases, sequences

RANDOM_UUID = re.compile(r"[\w-]{22}\n")
# A directory that the tool of 3.3 leaves half formatted, with meta.properties alone, is left as it was
HALF_FORMATTED = {"version-3.2-IV0", "version-2.8"}
# What 3.5 to 3.8 say of a malformed --add-scram, and 4.0 of a malformed --feature; kwire says what is wrong with it
OBSCURE = ("Index 1 out of bounds", "Input byte[] should", "key not found: ", "[Ljava.lang.String;@")


@pytest.mark.parametrize("release", releases())
def test_runs(release: str, tmp_path: Path) -> None:
    count, wrong = 0, []
    for name, rows in sequences(release):
        for row, wanted, found in again(release, rows, tmp_path / "node"):
            count += 1
            difference = differ(row, wanted, found)
            if difference and not (name in HALF_FORMATTED and "meta.properties" in difference):
                wrong.append(f"{name} {row['arguments']}:\n{difference}")
    assert count > 100
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)


def differ(row: dict[str, Any], wanted: Outcome, found: Outcome) -> str:
    """How kwire's run differs from the tool's; empty if it does not."""
    stdout, stderr = wanted.stdout, wanted.stderr
    if row["arguments"] == ["random-uuid"]:
        return "" if RANDOM_UUID.fullmatch(found.stdout) and found.exit == 0 else repr(found)
    failed = stderr.startswith("Exception in thread")
    lines = []
    if found.exit != wanted.exit:
        lines.append(f"exit: {found.exit}, expected {wanted.exit}")
    if row["arguments"][:1] == ["info"]:  # its stack traces
        traces = re.compile(r"\tat |\t\.\.\. |Caused by: |java\.lang\.RuntimeException: ")
        stdout = "\n".join(line for line in stdout.split("\n") if not traces.match(line))
    if found.stdout != stdout:
        lines.append(f"stdout:   {found.stdout!r}\nexpected: {stdout!r}")
    if failed:  # one clear line in place of a stack trace, with the exception's own words
        reason = stderr.split("\n")[0].partition(": ")[2]
        if found.stderr.count("\n") != 1 or not (reason in found.stderr or reason.startswith(OBSCURE)):
            lines.append(f"stderr:   {found.stderr!r}\nexpected: {reason!r}")
    elif found.stderr != stderr:
        lines.append(f"stderr:   {found.stderr!r}\nexpected: {stderr!r}")
    if found.files != wanted.files:
        lines.append(f"files:    {found.files}\nexpected: {wanted.files}")
    return "\n".join(lines)
