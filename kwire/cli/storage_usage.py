"""Usage errors of kafka-storage, from its own help texts, as argparse4j 0.7 prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence

WIDTH = 75
_SWAP, _SUBSTITUTE, _ADD, _DELETE = 0, 2, 1, 4  # what a difference between two names costs
_FAR = 7
# where java.text.BreakIterator lets a line of such a text end: after spaces, and after a hyphen within a word
_PIECES = re.compile(r"[^ \n-]*(?:-+(?=[^\W\d])|-*[ ]+\n?|-*\n|-+|$)|.", re.S)


def usage_error(help_text: str, message: str, unknown: str | None = None, known: Sequence[str] = ()) -> str:
    """The text of an error: the usage in a command's help, the message, and what may have been meant.

    unknown: the option or command that does not exist; known: all that do.
    """
    usage = help_text.split("\n\n", 1)[0]
    text = f"{usage}\n{wrap(f'kafka-storage: error: {message}')}\n"
    near = _candidates(unknown, known) if unknown is not None else []
    if near:
        text += "\nDid you mean:\n" + "".join(f"\t{name}\n" for name in near)
    return text


def wrap(text: str, width: int = WIDTH) -> str:
    """Text in lines of at most this width; each but the last is filled up with spaces (TextHelper.wrap)."""
    lines, line = [], ""
    for piece in filter(None, _PIECES.findall(text)):
        if line and len(line) + len(piece) > width:
            lines.append(_justified(line, width))
            line = ""
        line += piece
    return "\n".join([*lines, line])


def _justified(line: str, width: int) -> str:
    """The line with its gaps widened; where they cannot be equal, those in the middle get more."""
    words = line.strip(" ").split(" ")
    gaps = len(words) - 1
    if gaps == 0:
        return words[0]
    each, rest = divmod(width - len(" ".join(words)), gaps)
    start = (gaps - rest + 1) // 2
    text = words[0]
    for gap, word in enumerate(words[1:]):
        text += " " * (1 + each + (start <= gap < start + rest)) + word
    return text


def _candidates(unknown: str, known: Sequence[str]) -> list[str]:
    """The names nearest to an unknown one, if they are near enough."""
    is_option = unknown.startswith("-")
    body = unknown.lstrip("-") if is_option else unknown
    if is_option and len(body) < 2:
        return []
    rows = []
    for name in known:
        other = name.lstrip("-") if is_option else name
        if len(other) > 1 or not is_option:
            rows.append((0 if other.startswith(body) else _distance(body, other), name))
    rows.sort()
    return [name for cost, name in rows if cost == rows[0][0] < _FAR]


def _distance(one: str, other: str) -> int:
    """What it costs to make one name of the other (Levenshtein's distance with swaps)."""
    one, other = one[:200], other[:200]
    before: list[int] = []
    last = [_ADD * at for at in range(len(other) + 1)]
    for i, sign in enumerate(one, 1):
        row = [_DELETE * i]
        for j, wanted in enumerate(other, 1):
            cost = min(last[j - 1] + (sign != wanted) * _SUBSTITUTE, last[j] + _DELETE, row[j - 1] + _ADD)
            if i > 1 and j > 1 and sign == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + _SWAP)
            row.append(cost)
        before, last = last, row
    return last[-1]
