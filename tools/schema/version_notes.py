"""The comments in Kafka's schemas: which message or field they are about, and how they are kept over the releases.

kwire/schema/version_notes.json has, for each message (or "Message.Field.Field") with comments, a row a note:
"text" if every release of the message has it, [text, since] if not all have it and the newest does,
[text, since, until] otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from tools.schema.tables import order

Row = tuple[str, str, str]  # text, the first and the last release that has it
Rows = dict[str, list[Any]]

_TOKEN = re.compile(
    r'"name"\s*:\s*"(?P<name>\w+)"|"(?:\\.|[^"\\])*"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<bracket>[{}])', re.DOTALL
)
_LICENSE_END = "limitations under the License."
_VERSIONS = r"(?:(?:Starting |Since |From )?(?:in |from |with )?)?[Vv]ersions? \d"
_NEW_NOTE = re.compile(rf"(?:{_VERSIONS}|Supported errors|Note:|N\.B\.)", re.IGNORECASE)
_ITEM = re.compile(r"(?:- |\d+ +- )")  # a line of a list
_SENTENCE = re.compile(rf"(?<=[.)]) (?={_VERSIONS})", re.IGNORECASE)


def of_text(text: str) -> dict[str, list[str]]:
    """"" or the path of a field ("Topics.Name") -> its notes, as a schema has them in its comments.

    What stands before the first field is about the message. A note begins after an empty line, or where a line or
    sentence begins with a version; the items of a list stay lines of their note.
    """
    found: dict[str, list[str]] = {}
    for path, lines in _blocks(text):
        found.setdefault(path, []).extend(_notes(lines))
    return {path: notes for path, notes in found.items() if notes}


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """(path, lines) of the comments that are about one thing, in order."""
    start = text.find(_LICENSE_END) + 1 and text.index(_LICENSE_END) + len(_LICENSE_END)
    names: list[str] = []  # of the objects around, "" until its name is read
    lines: list[str] = []
    before, fields = start, False
    for token in _TOKEN.finditer(text, start):
        if token["comment"]:
            if lines and text.count("\n", before, token.start()) > 1:
                lines.append("")
            lines += [_plain(line) for line in token["comment"].strip("/*").split("\n")]
            before = token.end()
        elif token["bracket"] == "{":
            if len(names) == 1 and not fields:  # the first field: what was said until here is about the message
                yield "", lines
                lines, fields = [], True
            names.append("")
        elif token["bracket"] and names:  # one file has a brace too many
            names.pop()
        elif token["name"] and names:
            names[-1] = token["name"]
            if len(names) > 1 and lines:
                yield ".".join(names[1:]), lines
                lines = []
    yield "", lines


def _plain(line: str) -> str:
    return " ".join(line.strip().lstrip("*").split())


def _notes(lines: list[str]) -> list[str]:
    notes: list[str] = []
    new = True
    for line in lines:
        if line and _ITEM.match(line) and notes:
            notes[-1] += "\n" + line
        elif line and (new or _NEW_NOTE.match(line)):
            notes.append(line)
        elif line:
            notes[-1] += " " + line
        new = not line
    return [part for note in notes for part in _SENTENCE.split(note)]


def put(table: Rows, known: Sequence[str], message: str, spans: tuple[Sequence[str] | None, Sequence[str]],
        release: str, notes: dict[str, list[str]]) -> None:
    """Put in the notes that a release has of a message.

    known: all known releases, ascending, this one included; spans: the first and the last release that has the
    message, before (None: it is new) and now; notes: as of_text gives them.
    """
    old, (first, last) = spans
    named = {f"{message}.{path}" if path else message: texts for path, texts in notes.items()}
    for key in sorted({*named, *(key for key in table if key.partition(".")[0] == message)}):
        rows = _rows(table.get(key, []), old)
        by_release = {
            one: [text for text, since, until in rows if order(since) <= order(one) <= order(until)]
            for one in known if order(first) <= order(one) <= order(last)
        } | {release: named.get(key, [])}
        rows, before = [], ""
        for one in sorted(by_release, key=order):
            rows = _with(rows, before, one, by_release[one])
            before = one
        table[key] = [_short(row, first, last) for row in rows]
        if not rows:
            del table[key]


def text(table: Rows) -> Rows:
    """The table as it is written: messages by name, a message before its fields."""
    return dict(sorted(table.items()))


def _rows(stored: list[Any], span: Sequence[str] | None) -> list[Row]:
    if span is None:
        return []
    first, last = span
    return [(row, first, last) if isinstance(row, str) else (row[0], row[1], row[2] if len(row) > 2 else last)
            for row in stored]


def _short(row: Row, first: str, last: str) -> Any:
    note, since, until = row
    return note if (since, until) == (first, last) else [note, since] if until == last else [note, since, until]


def _with(rows: list[Row], before: str, release: str, texts: list[str]) -> list[Row]:
    """The rows with those of the next release: what it has as before lasts on, what is new is put where it has it."""
    lasting = [index for index, row in enumerate(rows) if row[2] == before]
    had = [rows[index][0] for index in lasting]
    same = [("equal", 0, len(had), 0, len(texts))]
    changes = same if had == texts else SequenceMatcher(None, had, texts, autojunk=False).get_opcodes()
    out = list(rows)
    fresh: list[tuple[int, list[Row]]] = []
    for kind, low, high, new_low, new_high in changes:
        if kind == "equal":
            for index in lasting[low:high]:
                out[index] = (rows[index][0], rows[index][1], release)
        else:
            at = lasting[high - 1] + 1 if high else 0 if lasting else len(rows)
            fresh.append((at, [(note, release, release) for note in texts[new_low:new_high]]))
    for at, new in reversed(fresh):
        out[at:at] = new
    return out
