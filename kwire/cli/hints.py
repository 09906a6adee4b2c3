"""What to type instead: where an option or a command is unknown here, but one of Kafka's tools or kcat has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import click

from kwire.errors import UnsupportedVersionError
from kwire_c.printable import printable

# options of other tools, an option or argument that the command must have, what to type
_OPTIONS = (
    ("--files --file --input --path --log-dir --log-dirs", "paths", "name files and folders without an option"),
    ("-b --bootstrap-server --bootstrap-servers --broker-list --zookeeper -C", "paths",
     "files are read here, not brokers"),
    ("-b --broker --brokers --broker-list --bootstrap-servers --bootstrap-controller --server --zookeeper",
     "--bootstrap-server", "use --bootstrap-server HOST:PORT"),
    ("-t", "--topic", "use --topic"),
    ("-p", "--partition", "use --partition"),
    ("-o --offset --offsets", "--start-offset", "use --start-offset N, and --end-offset"),
    ("-c --count --max-messages --max-records --head --first", "--limit", "use -n N"),
    ("--last --to-end --latest", "--tail", "use --tail N"),
    ("--from-beginning -e -q -u", "--start-offset", "not needed: all is read, from the first record to the last"),
    ("--since --after --from --start-time --from-date", "--start-timestamp", "use --start-timestamp -1h"),
    ("--until --before --end-time --to-date", "--end-timestamp", "use --end-timestamp -1h"),
    ("--isolation-level --read-committed --read_committed", "--committed", "use --committed"),
    ("--skip-message-on-error --ignore-errors --skip-errors", "--on-error", "use --on-error skip"),
    ("-J", "--json", "use --json"),
    ("-F --property --formatter --output-format", "--follow", "use --format '%t %p %o %k %s\\n', or --json"),
    ("--output --out", "--follow", "use kwire log export -o FILE, or > FILE"),
    ("--csv --parquet --arrow", "--follow", "use kwire log export -o FILE.csv, FILE.parquet or FILE.arrow"),
    ("-f --format --output-format --csv --parquet --arrow", "--to", "use --to FORMAT"),
    ("--value --filter --where --search", "--grep", "use --grep REGEX"),
    ("--overwrite -y --yes", "--force", "use --force"),
    ("-? -help --usage", "", "use --help"),
    ("-v -version", "--version", "use --version"),
)

_COMMANDS = {
    **dict.fromkeys(("cat", "print", "view", "read", "consume", "consumer", "console-consumer", "less", "records",
                     "cat-log", "grep"), "log show"),
    "tail": "log show --tail 10", "head": "log show -n 10", "follow": "log show --follow",
    **dict.fromkeys(("list", "dir", "topics", "describe", "offsets", "get-offsets"), "log ls"),
    **dict.fromkeys(("count", "info", "stat", "summary"), "log stats"),
    **dict.fromkeys(("check", "fsck", "validate"), "log verify"),
    **dict.fromkeys(("repair", "fix", "recover"), "log salvage"),
    **dict.fromkeys(("convert", "csv", "arrow"), "log export"),
    **dict.fromkeys(("dump-log", "kafka-dump-log", "kafka-dump-log.sh", "dumplog"), "log dump"),
    **dict.fromkeys(("broker-api-versions", "kafka-broker-api-versions", "kafka-broker-api-versions.sh",
                     "api-versions"), "versions"),
    **dict.fromkeys(("kafka-features", "kafka-features.sh"), "features"),
    **dict.fromkeys(("kafka-storage", "kafka-storage.sh"), "storage"),
    **dict.fromkeys(("metadata", "metadata-shell", "metadata-quorum"), "snapshot show"),
    **dict.fromkeys(("site", "diff"), "protocol"),
    **dict.fromkeys(("proxy", "record", "capture", "sniff"), "tap"),
    **dict.fromkeys(("broker", "brokers", "server", "mock"), "fleet"),
}  # fmt: skip


def command_hint(name: str, ctx: click.Context) -> str:
    """What to type for a command that the group of ctx does not have: "log show", "--help"; "" where nothing is known.

    A path is taken for one that log show is to read.
    """
    if name == "help":
        return f"{ctx.command_path.partition(' ')[2]} --help".strip()
    if "/" in name or re.search(r"\.(log|checkpoint|(time|txn)?index)(\.gz)?$", name):
        return f"log show {printable(name)}"
    return _COMMANDS.get(name.lower(), "")


def message(error: click.UsageError) -> str:
    """The text of a usage error, with what to type where that is known."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        hint = _option_hint(error.option_name, error.ctx)
        if hint:
            return f"No such option {printable(error.option_name)!r}: {hint}"
    text = error.format_message()
    extra = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", text)
    if extra is not None and error.ctx is not None:
        return text + _extra_hint(extra[1], error.ctx)
    return re.sub(r" is not a valid integer(?: range)?\.", " is not a whole number", text)


def _extra_hint(words: str, ctx: click.Context) -> str:
    """The end of the error about arguments that a command does not take."""
    path, first = ctx.command_path.split(), printable("".join(words.split()[:1]))
    if not first:  # a blank argument
        return ""
    if path[:2] == ["kwire", "protocol"] and "--api" in _options(ctx.command):
        from kwire import schema

        with suppress(UnsupportedVersionError):
            return f": use kwire protocol diff {path[2]} {schema.release_name(words)}"
        return f": use --api {first}"
    if path == ["kwire", "apis"]:
        return f": use kwire protocol RELEASE --api {first}"
    if "--bootstrap-server" in _options(ctx.command):
        return ": --bootstrap-server takes HOST:PORT,HOST:PORT without spaces"
    return ""


def _option_hint(name: str, ctx: click.Context) -> str:
    """What to type for an option that a command does not have; "" where nothing is known."""
    has = {*_options(ctx.command), *(param.name for param in ctx.command.params if isinstance(param, click.Argument))}
    if name.replace("_", "-").removesuffix("s") in has:  # click names it
        return ""
    for names, needed, hint in _OPTIONS:
        if name in names.split() and (not needed or needed in has):
            return hint
    if name.startswith("--"):
        for other, command in _siblings(ctx):
            if name in _options(command):
                return f"use kwire {other}"
    return ""


def _options(command: click.Command) -> Sequence[str]:
    return [text for param in command.params if isinstance(param, click.Option) for text in param.opts]


def _siblings(ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """(name, command) of the other commands of a command's group; of the root's none."""
    group = ctx.parent
    if group is None or group.parent is None or not isinstance(group.command, click.Group):
        return
    for name in group.command.list_commands(group):
        command = group.command.get_command(group, name)
        if command is not None and command is not ctx.command:
            yield f"{group.command_path.partition(' ')[2]} {name}", command
