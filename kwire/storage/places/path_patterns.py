"""Paths as people type them to Spark and Hadoop: comma lists and {a,b}, as plain paths and shell patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kwire.errors import KwireError
from kwire.storage.places.filesystem import is_url, shown
from kwire_c.printable import printable

MOST_CHARACTERS = 1 << 20  # of all the paths that one text stands for: each {a,b} doubles them
_SPECIAL = re.compile(r"[,{\\]|\[\^")
# [abc] with the signs of its class, an escaped sign, a sign with a meaning, or a run of others
_TOKEN = re.compile(r"\[([!^]?)(\]?[^\]/]*)\]|\\(.)|([,{}])|[^\[\\,{}]+|.", re.DOTALL)
_NEXT = re.compile(r",(?=[A-Za-z][A-Za-z0-9+.-]*://)")  # before the next URL
# what has no signs in a URL: user and password, also a password with / ? # in it, and a query to the end
_PLAIN = re.compile(
    r"(?<=://)(?:[^/?#]*@|(?!\[)[^/?#@:]*:(?!:|\d*(?:[/?#]|\Z)).*@)|\?[^/]*=.*", re.DOTALL)


class PatternError(KwireError):
    """A glob, or a path with {a,b}, that is too long or expands to too many paths."""


def alternatives(text: str) -> list[str]:
    """The paths and patterns that a text stands for; a text without comma, brace and backslash stands for itself.

    Commas separate, except in {} and []. {a,b} stands for each of its parts, and may be nested. A backslash takes the
    meaning from the sign after it. In the result an escaped sign is [*], and [^a] is [!a]: as Python and fsspec have
    it. Raises PatternError for a text that expands to too many paths.
    """
    if not _SPECIAL.search(text):
        return [text]
    tokens = list(_tokens(text))
    matched = _matched([token if special else "" for token, special in tokens])
    done: list[str] = []  # the finished parts of the innermost {}, and the beginnings of the part that is read
    begun = [""]
    outer: list[tuple[list[str], list[str]]] = []
    for number, (token, special) in enumerate(tokens):
        if special and token == ",":
            done += begun
            begun = [""]
        elif special and token == "{" and number in matched:
            outer.append((done, begun))
            done, begun = [], [""]
        elif special and token == "}" and number in matched:
            parts = done + begun
            done, begun = outer.pop()
            begun = _product(begun, parts, text)
        else:
            begun = _product(begun, [token], text)
    return [stripped for path in done + begun if (stripped := path.strip())]


def comma_list(text: str) -> list[str]:
    """The parts of a comma list; a comma in the password or query of a URL separates nothing."""
    parts, at = [""], 0
    for start, end in [*_plain(text), (len(text), len(text))]:
        first, *others = text[at:start].split(",")
        parts[-1] += first
        parts += others
        parts[-1] += text[start:end]
        at = end
    return parts


def _plain(text: str) -> list[tuple[int, int]]:
    """The places in a text of what has no signs."""
    if not is_url(text):
        return []
    ends = [*(found.start() for found in _NEXT.finditer(text)), len(text)]
    return [plain.span() for start, end in zip([0, *ends], ends, strict=False)
            for plain in _PLAIN.finditer(text, start, end)]


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (token, has it a meaning)."""
    at = 0
    for start, end in [*_plain(text), (len(text), len(text))]:
        for match in _TOKEN.finditer(text, at, start):
            yield _pattern(match), match[4] is not None
        yield text[start:end], False
        at = end


def _pattern(match: re.Match[str]) -> str:
    """A token as Python's shell patterns have it."""
    negated, members, escaped = match[1], match[2], match[3]
    if members is not None:
        return f"[{'!' if negated else ''}{members}]"
    if escaped is not None:
        return f"[{escaped}]" if escaped in "*?[,{}\\" else escaped
    return "[[]" if match[0] == "[" else match[0]


def _matched(signs: list[str]) -> set[int]:
    """The numbers of the braces that belong together; the others mean themselves."""
    found: set[int] = set()
    opened: list[int] = []
    for number, sign in enumerate(signs):
        if sign == "{":
            opened.append(number)
        elif sign == "}" and opened:
            found |= {opened.pop(), number}
    return found


def _product(beginnings: list[str], ends: list[str], text: str) -> list[str]:
    size = len(beginnings) * sum(map(len, ends)) + len(ends) * sum(map(len, beginnings))
    if size > MOST_CHARACTERS:
        raise PatternError(f"{printable(shown(text)[:200])}: its braces stand for too many paths: "
                           f"{len(beginnings) * len(ends)} so far, of {size} characters, at most {MOST_CHARACTERS}")
    return [beginning + end for beginning in beginnings for end in ends]
