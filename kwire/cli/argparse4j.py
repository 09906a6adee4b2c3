"""Command lines as argparse4j 0.7 reads them and prints help: the library of kafka-features, kafka-storage and others.

Their texts are part of what `--as RELEASE` promises, so the rules are followed to the letter: unique beginnings of
options and commands are enough, an error about a required option waits until the command's own options are read, and
help is justified in 75 columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kwire.output import check_standard_output
from kwire.storage.places.filesystem import shown_text
from kwire_c.printable import printable

_WIDTH = 75
_HELP_COLUMN = 25
_LONGEST_TITLE = 21  # a longer one gets a line of its own
_ALTERNATIVES = re.compile(r"[\[(][^\[\]()]* \| [^\[\]()]*[\])]")  # in a usage
_TITLE = re.compile(r"^  (-\S+(?: [A-Z_]+)?(?:, -\S+(?: [A-Z_]+)?)*)(?:  .*)?$", re.M)  # of an option in a help text
_NEGATIVE = re.compile(r"-\d+")
_MOST_TEXT, _LEAST_TEXT = 1 << 20, 1 << 12  # characters of all files with arguments, and what each counts at least
_FARTHEST = 7  # "Did you mean" offers nothing that differs as much
_CLOSING, _OPENING, _BRACKETS = '!"%),.:;?]}', "$'([{", "([{"  # where lines may end
_SWAP, _SUBSTITUTE, _ADD, _DELETE = 0, 2, 1, 4


class ArgumentError(Exception):
    """A command line that the parser refuses.

    parser: the one of the command. mistaken: the unknown option (without dashes) or command. near: what may be meant.
    str() is the message of the tools that print it themselves, usage_text() what argparse4j prints.
    """

    def __init__(self, message: str, parser: Parser, mistaken: str = "", near: Sequence[str] = ()) -> None:
        super().__init__(printable(shown_text(message)))
        self.parser = parser
        self._mistaken, self._near = mistaken, near

    def usage_text(self) -> str:
        """The usage, the message and the nearest names (ArgumentParserImpl.handleError)."""
        error = wrap(f"{self.parser.root.prog}: error: {self}\n", 0, "")
        return self.parser.usage() + error + did_you_mean(self._mistaken, self._near)


class HelpRequested(Exception):
    """--help was given. text: what to print."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


@dataclass
class Option:
    """An option. kind: "store", "append" (a list), "flag" (true when given) or "help"; type: converts the text.

    hidden: neither in the usage nor in help.
    """

    flags: tuple[str, ...]
    help: str
    kind: str = "store"
    required: bool = False
    type: Callable[[str], Any] = str
    group: Group | None = None
    hidden: bool = False

    @property
    def name(self) -> str:
        """The key of its value: that of the first long flag, in snake case."""
        long = next((flag for flag in self.flags if flag.startswith("--")), self.flags[0])
        return long.lstrip("-").replace("-", "_")

    @property
    def takes_value(self) -> bool:
        """Whether an argument belongs to it."""
        return self.kind in ("store", "append")

    def bare(self) -> str:
        """Its short form in a usage line."""
        return f"{self.flags[0]} {self.name.upper()}" if self.takes_value else self.flags[0]

    def title(self) -> str:
        """Its forms in the list of options."""
        return ", ".join(f"{flag} {self.name.upper()}" if self.takes_value else flag for flag in self.flags)

    def error(self, message: str, parser: Parser) -> ArgumentError:
        """An error about this option."""
        return ArgumentError(f"argument {'/'.join(self.flags)}: {message}", parser)


@dataclass
class Group:
    """Options that exclude each other. required: one of them must be given."""

    required: bool = False
    options: list[Option] = field(default_factory=list)


class _State:
    """The arguments that are left, and the first error that waits until all are read."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments, self.place = list(arguments), 0
        self.separated = False  # after "--"
        self.characters = 0  # read from files
        self.deferred: ArgumentError | None = None

    def flag_follows(self) -> bool:
        """Whether the next argument is an option or "--"."""
        text = self.arguments[self.place]
        if text != "--" and not text.strip("-"):
            return False
        return not self.separated and text.startswith("-") and not _NEGATIVE.fullmatch(text)


class Parser:
    """A parser of options and commands. description: under the usage in help; text: the whole help, if it is known."""

    def __init__(
        self, prog: str, description: str = "", *, parent: Parser | None = None, help: str = "", text: str = ""
    ) -> None:
        self.prog, self.description, self.parent, self.help, self._text = prog, description, parent, help, text
        self.file_prefix = ""  # of an argument that names a file with arguments
        self.options: list[Option] = []
        self.groups: list[Group] = []
        self.commands: dict[str, Parser] = {}
        self.add("-h", "--help", kind="help", help="show this help message and exit")

    @property
    def root(self) -> Parser:
        """The parser of the tool itself."""
        return self.parent.root if self.parent else self

    def add(self, *flags: str, help: str, group: Group | None = None, **more: Any) -> Parser:
        """Add an option; the keywords are Option's."""
        option = Option(flags, help, group=group, **more)
        self.options.append(option)
        if group is not None:
            group.options.append(option)
        return self

    def group(self, *, required: bool = False) -> Group:
        """Add a group of options that exclude each other."""
        self.groups.append(Group(required))
        return self.groups[-1]

    def command(self, name: str, help: str = "", *, text: str = "") -> Parser:
        """Add a command; its parser."""
        self.commands[name] = Parser(name, parent=self, help=help, text=text)
        return self.commands[name]

    def parse(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Name of an option -> value, and "command" -> the command. Raises ArgumentError, HelpRequested."""
        state, values = _State(arguments), dict[str, Any]()
        self._parse(state, values)
        if state.deferred is not None:
            raise state.deferred
        return values

    def _parse(self, state: _State, values: dict[str, Any]) -> None:
        for option in self.options:
            if option.kind != "help":
                values.setdefault(option.name, False if option.kind == "flag" else None)
        used: dict[str, Option] = {}  # by name: an option may be given 100,000 times
        while state.place < len(state.arguments):
            text = state.arguments[state.place]
            if self._names_file(text):
                self._expand(state)
            elif state.flag_follows() and text != "--":
                self._take(state, values, used)
            elif text == "--" and not state.separated:
                state.separated = True
                state.place += 1
            elif not state.separated and self.commands:
                self._check_required(state, used)
                self._parse_command(state, values)
                return
            else:
                rest = " ".join(state.arguments[state.place :])
                raise ArgumentError(f"unrecognized arguments: '{rest}'", self)
        if self.commands:
            raise ArgumentError("too few arguments", self)
        self._check_required(state, used)

    def _names_file(self, text: str) -> bool:
        prefix = self.root.file_prefix
        return bool(prefix) and text.startswith(prefix)

    def _expand(self, state: _State) -> None:
        """Put the lines of a file in the place of the argument that names it. Raises ArgumentError."""
        path = state.arguments[state.place].removeprefix(self.root.file_prefix)
        check_standard_output([path])
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read(_MOST_TEXT + 1)
            state.characters += max(len(text), _LEAST_TEXT)
            if state.characters > _MOST_TEXT:  # also of files that name themselves
                raise ValueError("too long")
        except (OSError, ValueError):
            raise ArgumentError(f"Could not read arguments from file '{path}'", self) from None
        # not splitlines, for which lines also end at form feeds, U+0085 and U+2028, as in a password
        lines = text.removesuffix("\n").split("\n") if text else []
        state.arguments[state.place : state.place + 1] = lines

    def _parse_command(self, state: _State, values: dict[str, Any]) -> None:
        text = state.arguments[state.place]
        names = [text] if text in self.commands else [name for name in self.commands if text and name.startswith(text)]
        if len(names) > 1:
            raise ArgumentError(f"ambiguous command: {text} could match {', '.join(sorted(names))}", self)
        if not names:
            known = ", ".join(f"'{name}'" for name in self.commands)
            raise ArgumentError(f"invalid choice: '{text}' (choose from {known})", self, text, list(self.commands))
        state.place += 1
        self.commands[names[0]]._parse(state, values)
        values["command"] = names[0]

    def _take(self, state: _State, values: dict[str, Any], used: dict[str, Option]) -> None:
        """Read one option with its value, or short options that are one word (-gs, -cFILE)."""
        text = state.arguments[state.place]
        flag, equals, value = text.partition("=")
        state.place += 1
        flags = {name: option for option in self.options for name in option.flags}
        option = self._option(flags, flag)
        if option is not None:
            self._use(option, state, values, used, value if equals else None)
            return
        for end, letter in enumerate(text[1:], 2):
            option = flags.get(f"-{letter}")
            if option is None or text.startswith("--"):
                body = text.lstrip("-")
                near = [name for name, one in flags.items() if len(name.lstrip("-")) > 1 and not one.hidden]
                raise ArgumentError(f"unrecognized arguments: '{text}'", self, body, near if len(body) > 1 else [])
            if option.takes_value:
                self._use(option, state, values, used, text[end:] or None)
                return
            self._use(option, state, values, used)

    def _use(
        self, option: Option, state: _State, values: dict[str, Any], used: dict[str, Option], value: str | None = None
    ) -> None:
        """Take an option. value: what is embedded in its word."""
        for other in used.values():
            if option.group is not None and other.group is option.group and other is not option:
                raise option.error(f"not allowed with argument {'/'.join(other.flags)}", self)
        used.setdefault(option.name, option)
        if not option.takes_value:
            if value is not None:
                raise option.error(f"ignore implicit argument '{value}'", self)
            if option.kind == "help":
                raise HelpRequested(self.help_text())
            values[option.name] = True
            return
        if value is None:
            if state.place < len(state.arguments) and self._names_file(state.arguments[state.place]):
                self._expand(state)
            if state.place >= len(state.arguments) or state.flag_follows():
                raise option.error("expected one argument", self)
            value = state.arguments[state.place]
            state.place += 1
        found = self._converted(option, value)
        if option.kind != "append":
            values[option.name] = found
        elif values[option.name] is None:
            values[option.name] = [found]
        else:
            values[option.name].append(found)

    def _option(self, flags: Mapping[str, Option], flag: str) -> Option | None:
        """The option of a flag, or of its unique beginning; None if there is none. flags: all of this parser."""
        if flag in flags:
            return flags[flag]
        begun = sorted(name for name, option in flags.items() if name.startswith(flag) and not option.hidden)
        if len(begun) > 1:
            raise ArgumentError(f"ambiguous option: {flag} could match {', '.join(begun)}", self)
        return flags[begun[0]] if begun else None

    def _converted(self, option: Option, text: str) -> Any:
        try:
            return option.type(text)
        except ValueError:
            message = f"could not convert '{text}' to Integer (For input string: \"{text}\")"
            raise option.error(message, self) from None

    def _check_required(self, state: _State, used: dict[str, Option]) -> None:
        if state.deferred is not None:
            return
        for option in self.options:
            if option.required and option.name not in used:
                state.deferred = ArgumentError(f"argument {'/'.join(option.flags)} is required", self)
        for group in self.groups:
            if state.deferred is None and group.required and not any(option.group is group for option in used.values()):
                names = " ".join("/".join(option.flags) for option in group.options)
                state.deferred = ArgumentError(f"one of the arguments {names} is required", self)

    def usage(self) -> str:
        """The usage, wrapped."""
        if self._text:
            return self._text.partition("\n\n")[0] + "\n"
        lead = f"usage: {self.root.prog}"
        lines, first = [lead], True
        for part in [*self._upper_usage(), *self._own_usage()]:
            if not first and len(lines[-1]) + 1 + len(part) > _WIDTH:
                lines.append(" " * len(lead))
            else:
                first = False
            lines[-1] += " " + part
        return "\n".join(lines) + "\n"

    def _upper_usage(self) -> list[str]:
        """What the parsers above require, and the name of this command."""
        if self.parent is None:
            return []
        above = self.parent
        parts = above._upper_usage()
        parts += [option.bare() for option in above.options if option.required and option.group is None]
        parts += [part for group in above.groups if group.required for part in _alternatives(group)]
        return [*parts, self.prog]

    def _own_usage(self) -> list[str]:
        parts = [
            option.bare() if option.required else f"[{option.bare()}]"
            for option in self.options if option.group is None and not option.hidden
        ]  # fmt: skip
        parts += [part for group in self.groups for part in _alternatives(group)]
        if self.commands:
            parts += [f"{{{','.join(self.commands)}}}", "..."]
        return parts

    def help_text(self) -> str:
        """The text of --help."""
        if self._text:
            return self._text
        text = self.usage()
        if self.description:
            text += "\n" + wrap(self.description, 0, "") + "\n"
        if self.commands:
            text += "\npositional arguments:\n" + _entry(f"{{{','.join(self.commands)}}}", "")
            text += "".join(_entry(f"  {name}", parser.help) for name, parser in self.commands.items())
        shown = (_entry(option.title(), option.help) for option in self.options if not option.hidden)
        return text + "\noptional arguments:\n" + "".join(shown)


def recorded(texts: Mapping[str, str], repeated: Collection[str] = ()) -> Parser:
    """The parser of a tool by the texts that its --help prints: of its commands, and under "" of the tool itself.

    repeated: the flags that may be given several times.
    """
    parser = Parser(texts[""].split()[1], text=texts[""])
    for name in texts[""].partition("{")[2].partition("}")[0].split(","):
        _read_options(parser.command(name, text=texts[name]), texts[name], repeated)
    return parser


def _read_options(parser: Parser, text: str, repeated: Collection[str]) -> None:
    """Add the options that a help text describes; what its usage has not in brackets is required."""
    usage = " ".join(text.partition("\n\n")[0].split())
    groups = {
        flag.split()[0]: group for alternatives in _ALTERNATIVES.findall(usage)
        for group in [parser.group(required=alternatives[0] == "(")] for flag in alternatives[1:-1].split(" | ")
    }  # fmt: skip
    for title in _TITLE.findall(text.partition("optional arguments:\n")[2]):
        flags, names = zip(*(part.partition(" ")[::2] for part in title.split(", ")), strict=True)
        if "--help" in flags:
            continue
        kind = "flag" if not names[0] else "append" if flags[0] in repeated else "store"
        group = groups.get(flags[0])
        bare = f"{flags[0]} {names[0]}".rstrip()
        parser.add(*flags, help="", kind=kind, group=group, required=group is None and f"[{bare}]" not in usage)


def _alternatives(group: Group) -> list[str]:
    """A group in a usage line: "(--one ONE |", "--other OTHER)"."""
    opening, closing = "()" if group.required else "[]"
    names = [option.bare() for option in group.options]
    names = [opening + names[0], *names[1:-1], names[-1] + closing]
    return [part for name in names for part in (name, "|")][:-1]


def _entry(title: str, help: str) -> str:
    """A line of help, or more: title and text."""
    if not help:
        return f"  {title}\n"
    lead = f"  {title}".ljust(_HELP_COLUMN) if len(title) <= _LONGEST_TITLE else f"  {title}\n" + " " * _HELP_COLUMN
    return lead + wrap(help, _HELP_COLUMN, " " * _HELP_COLUMN) + "\n"


def wrap(text: str, column: int, indent: str) -> str:
    """The text in lines of 75 columns, all but the last justified (TextHelper.wrap).

    column: where the first line begins; indent: before each further line.
    """
    lines, line, width = [], "", column
    for piece in _pieces(text):
        width += len(piece)
        if width > _WIDTH:
            lines.append(_justified(line, _WIDTH - (width - len(piece))))
            line, width = "", len(indent) + len(piece)
        line += piece
        if piece.endswith("\n"):
            lines.append(line[:-1])
            line, width = "", len(indent)
    return f"\n{indent}".join([*lines, line])


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces between which a line may end (the cases of Java's BreakIterator.getLineInstance in ASCII)."""
    start = 0
    for place in range(1, len(text)):
        if _may_end(text, place):
            yield text[start:place]
            start = place
    if text:
        yield text[start:]


def _may_end(text: str, place: int) -> bool:
    last, after, ahead = text[place - 1], text[place], text[place - 2 : place - 1] if place > 1 else ""
    if after.isspace():
        return last == "\n"
    if last.isspace():
        return True
    first = not ahead or ahead.isspace()
    if last in _OPENING or (last == '"' and first):
        return False
    if last == "-":
        return after not in "-$'" and not (first and after.isdigit())
    if last in _CLOSING:
        in_a_number = last in ".," and ahead.isdigit() and after.isdigit()
        return after not in _CLOSING and after not in "$'" and not in_a_number
    return after in _BRACKETS


def _justified(line: str, missing: int) -> str:
    """A line with spaces added between its words, most of them in the middle (TextHelper.adjustSpace)."""
    bare = line.strip(" ")
    missing += len(line) - len(bare)
    gaps = [match.start() for match in re.finditer(" +", bare)]
    if not gaps:
        return bare
    each, rest = divmod(missing, len(gaps))
    first = (len(gaps) - rest + 1) // 2
    for number in range(len(gaps) - 1, -1, -1):
        more = each + (first <= number < first + rest)
        bare = bare[: gaps[number]] + " " * more + bare[gaps[number] :]
    return bare


def did_you_mean(mistaken: str, names: Sequence[str]) -> str:
    """The names nearest to a mistaken one, as argparse4j lists them after an error; "" where none is near."""
    ranked = sorted((_distance(mistaken, name.lstrip("-")), name) for name in names)
    if not ranked or ranked[0][0] >= _FARTHEST:
        return ""
    nearest = (name for distance, name in ranked if distance == ranked[0][0])
    return "\nDid you mean:\n" + "".join(f"\t{name}\n" for name in nearest)


def _distance(text: str, other: str) -> int:
    """Damerau's and Levenshtein's distance with git's costs; 0 if the other begins with the text."""
    if other.startswith(text):
        return 0
    older, old = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, letter in enumerate(text, 1):
        new = [i]
        for j, wanted in enumerate(other, 1):
            cost = old[j - 1] + (0 if letter == wanted else _SUBSTITUTE)
            swapped = i > 1 and j > 1 and letter != wanted and text[i - 2] == wanted and letter == other[j - 2]
            if swapped:
                cost = min(cost, older[j - 2] + _SWAP)
            new.append(min(cost, old[j] + _DELETE, new[j - 1] + _ADD))
        older, old = old, new
    return old[-1]
