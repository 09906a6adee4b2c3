"""`kwire storage`: format the storage directories of a KRaft node and look at them, as kafka-storage does."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Sequence
from functools import lru_cache
from typing import Any

import click

from kwire import schema
from kwire.cli.argparse4j import did_you_mean, wrap
from kwire.cli.terminal import print_json
from kwire.errors import UnsupportedVersionError
from kwire.schema import files
from kwire.storage.formatting import Formatter, FormatterError, ServerConfig, random_uuid, storage_info, uuid_text
from kwire.storage.formatting.levels import parse_features
from kwire.storage.formatting.mappings import (
    feature_dependencies,
    feature_dependencies_lines,
    version_mapping,
    version_mapping_lines,
)
from kwire.storage.formatting.rules import Rules, rules_of
from kwire_c.printable import printable

_MOST_ARGUMENTS = 1 << 20  # characters of a file of arguments
_ARGUMENTS = "kwire.cli.storage.arguments"  # the command line, in the context


class _Command(click.Command):
    """A subcommand: with --as, its --help is the text of that release's tool."""

    def get_help(self, ctx: click.Context) -> str:
        """The help, of the release's tool if one is asked for."""
        rules = _asked_rules(ctx)
        text = None if rules is None else help_text(self.name or "", rules)
        return super().get_help(ctx) if text is None else text.rstrip("\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and refuse options that the release's tool does not have."""
        rules = _asked_rules(ctx) or rules_of()
        text = help_text(self.name or "", rules) or ""
        words = [_whole(word, [*_options(text), *_OURS], ctx) for word in _from_files(args, rules, ctx)]
        _check_options(words, self.params, {*_options(text), *_OURS}, ctx)
        return super().parse_args(ctx, words)


class _NoSuchCommandError(click.UsageError):
    """There is no such subcommand."""

    def __init__(self, name: str, ctx: click.Context) -> None:
        super().__init__(f"No such command {name!r}.", ctx)
        self.name = name


class _Group(click.Group):
    """The tool: its usage errors are those of kafka-storage, with its exit code."""

    command_class = _Command

    def get_help(self, ctx: click.Context) -> str:
        """The help, of the release's tool if one is asked for."""
        rules = _asked_rules(ctx)
        return super().get_help(ctx) if rules is None else (help_text("", rules) or "").rstrip("\n")

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None,
                     **extra: Any) -> click.Context:  # fmt: skip
        """Keep the command line: --as may follow the subcommand."""
        extra["obj"] = {_ARGUMENTS: list(args)}
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.exceptions.Exit as done:
            raise click.exceptions.Exit(_exit_code_of_help(done.exit_code, _asked(extra["obj"][_ARGUMENTS]))) from None
        except click.UsageError as error:
            if error.ctx is None:
                raise
            sys.stderr.write(_usage_error(error, error.ctx))
            raise click.exceptions.Exit(1) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand, if there is one of that name."""
        rules = _asked_rules(ctx) or rules_of()
        known = [name for name in self.commands if help_text(name, rules) is not None]
        found = [name for name in known if name == args[0]] or [name for name in known if name.startswith(args[0])]
        if len(found) > 1:
            raise click.UsageError(f"ambiguous command: {args[0]} could match {', '.join(sorted(found))}", ctx)
        if not found:
            raise _NoSuchCommandError(args[0], ctx)
        return super().resolve_command(ctx, [found[0], *args[1:]])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand. A usage error, or one of the tool's own, is shown as the tool shows it."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            sys.stderr.write(_usage_error(error, ctx))
            return 1
        except FormatterError as error:
            sys.stdout.flush()
            print(printable(str(error)), file=sys.stderr)
            return 1
        except click.exceptions.Exit as done:
            return _exit_code_of_help(done.exit_code, _asked_rules(ctx))


def _asked_rules(ctx: click.Context) -> Rules | None:
    """The rules of the release after --as, wherever it is on the command line."""
    return _asked((ctx.find_object(dict) or {}).get(_ARGUMENTS, []))


def _exit_code_of_help(code: int, rules: Rules | None) -> int:
    """The exit code after --help: up to 3.8 the tool's is 1."""
    return 1 if code == 0 and rules is not None and not rules.formatter else code


def _asked(words: Sequence[str]) -> Rules | None:
    for at, word in enumerate(words):
        name = words[at + 1] if word == "--as" and at + 1 < len(words) else word.removeprefix("--as=")
        if word == "--as" or name != word:
            return _rules(name)
    return None


def _rules(release: str | None) -> Rules:
    try:
        return rules_of(release)
    except UnsupportedVersionError as error:
        raise FormatterError(f"--as {release}: {error}") from None


@lru_cache(1)
def _help_texts() -> dict[str, dict[str, str | None]]:
    texts: dict[str, dict[str, str | None]] = files.load("storage_help.json")
    return texts


def help_text(command: str, rules: Rules) -> str | None:
    """What the --help of a release's tool prints ("": of the tool itself); None if it lacks the command."""
    known = [text for first, text in _help_texts()[command].items() if schema.is_at_least(rules.release, first)]
    return known[-1] if known else None


def _check_options(
    words: Sequence[str], params: Sequence[click.Parameter], known: Container[str], ctx: click.Context
) -> None:
    """Raise a usage error for an option that the release's tool lacks, and for one whose value looks like an option."""
    taking = {name for param in params if isinstance(param, click.Option) and not param.is_flag for name in param.opts}
    at = 0
    while at < len(words):
        name = words[at].partition("=")[0] if words[at].startswith("--") else words[at][:2]
        if not _is_flag(words[at]) or name in ("-", "--"):
            at += 1
            continue
        if name not in known:
            raise click.NoSuchOption(name, ctx=ctx)
        at += 1
        if name == words[at - 1] and name in taking:
            if at == len(words) or _is_flag(words[at]):
                raise click.BadOptionUsage(name, "expected one argument", ctx)
            at += 1


def _is_flag(word: str) -> bool:
    """Whether argparse4j takes a word for an option: it begins with a dash, and is no negative number."""
    return word.startswith("-") and not re.fullmatch(r"-[0-9]+", word)


def _from_files(words: Sequence[str], rules: Rules, ctx: click.Context) -> list[str]:
    """The words, and from 3.5 on in place of @FILE the lines of a file. Raises UsageError for one that is not there."""
    if not rules.scram:
        return list(words)
    found: list[str] = []
    for word in words:
        if not word.startswith("@"):
            found.append(word)
            continue
        try:
            with open(word[1:], encoding="utf-8", errors="surrogateescape") as file:
                text = file.read(_MOST_ARGUMENTS + 1)
            if len(text) > _MOST_ARGUMENTS:
                raise ValueError("too long")
            found += text.splitlines()
        except (OSError, ValueError):
            raise click.UsageError(f"Could not read arguments from file '{word[1:]}'", ctx) from None
    return found


def _whole(word: str, options: Sequence[str], ctx: click.Context) -> str:
    """The word, an abbreviated long option written out. Raises UsageError for one that is ambiguous."""
    name, equals, value = word.partition("=")
    if not name.startswith("--") or name == "--" or name in options:
        return word
    found = [option for option in options if option.startswith(name)]
    if len(found) > 1:
        raise click.UsageError(f"ambiguous option: {name} could match {', '.join(found)}", ctx)
    return found[0] + equals + value if found else word


def _options(text: str) -> list[str]:
    """The options that a help text describes."""
    return sorted(set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text)))


def _usage_error(error: click.UsageError, ctx: click.Context) -> str:
    """A usage error as the tool prints it."""
    rules = _asked_rules(ctx) or rules_of()
    command = "" if error.ctx is None or error.ctx is ctx else error.ctx.info_name or ""
    text = help_text(command, rules)
    unknown, known = "", list[str]()
    if text is None:
        text, command = help_text("", rules) or "", ""
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        message = f"unrecognized arguments: '{error.option_name}'"
        unknown = error.option_name.lstrip("-")
        known = [name for name in _options(text) if len(name.lstrip("-")) > 1] if len(unknown) > 1 else []
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        message = f"argument {_name(error.param)} is required"
    elif isinstance(error, click.BadOptionUsage) and error.ctx is not None:
        option = next((one for one in error.ctx.command.params if error.option_name in one.opts), None)
        if option is not None:
            message = f"argument {_name(option)}: expected one argument"
    elif isinstance(error, _NoSuchCommandError):
        text, unknown = help_text("", rules) or "", error.name
        known = text.partition("{")[2].partition("}")[0].split(",")
        message = f"invalid choice: '{unknown}' (choose from {', '.join(repr(name) for name in known)})"
    elif message.startswith("Got unexpected extra argument"):
        message = f"unrecognized arguments: '{message.partition('(')[2].rstrip(')')}'"
    message = re.sub(r"(password=)[^,\]]*", r"\1[hidden]", message)  # of an --add-scram without its option
    usage = text.split("\n\n", 1)[0]
    error_text = wrap(f"kafka-storage: error: {message}\n", 0, "")
    lines = f"{usage}\n{error_text}{did_you_mean(unknown[:200], known)}".splitlines()
    return "".join(f"{printable(line)}\n" if not line.startswith("\t") else f"{line}\n" for line in lines)


def _name(param: click.Parameter) -> str:
    return "/".join(sorted(param.opts, key=len, reverse=True))


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --as and --json."""
    command = click.option("--json", "json_wanted", is_flag=True, help="One JSON object.")(command)
    return click.option("--as", "as_release", metavar="RELEASE",
                        help="Do, write and print what kafka-storage of this release does.  [default: the newest]")(
        command
    )  # fmt: skip


_OURS = ("--as", "--json", "--help", "--metadata-version")
_config = click.option("--config", "-c", required=True, metavar="FILE", help="The Kafka configuration file to use.")


@click.group(cls=_Group, invoke_without_command=True)
@click.option("--as", "as_release", metavar="RELEASE", help="As kafka-storage of this release.  [default: the newest]")
@click.pass_context
def storage(ctx: click.Context, as_release: str | None) -> int | None:
    """Format the log directories of a KRaft node, and look at them, as kafka-storage does.

    Texts, exit codes and files are those of the release after --as, which may also follow the subcommand. With --as,
    --help shows that tool's own help. The commands need no broker and no JVM.
    """
    if ctx.invoked_subcommand is None:
        raise click.UsageError("too few arguments", ctx)
    return None


def _read(path: str, rules: Rules) -> ServerConfig:
    """The configuration. Raises FormatterError for a file that cannot be read."""
    try:
        return ServerConfig.read(path, release=rules.asked)
    except OSError as error:
        raise FormatterError(f"{path}: {error.strerror}") from None


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(printable(line))


@storage.command()
@_config
@_common
@click.pass_context
def info(ctx: click.Context, config: str, as_release: str | None, json_wanted: bool) -> int:
    """Show the log directories of a node, their metadata, and what is wrong with them."""
    try:
        found = storage_info(_read(config, _asked_rules(ctx) or rules_of()))
    except OSError as error:
        raise FormatterError(f"{error.filename}: {error.strerror}") from None
    if json_wanted:
        print_json(found._asdict())
    else:
        _print(found.lines())
    return 1 if found.problems else 0


@storage.command("format")
@click.option("--cluster-id", "-t", required=True, metavar="ID", help="The cluster ID to use; see random-uuid.")
@_config
@click.option("--add-scram", "-S", multiple=True, metavar="CREDENTIAL",
              help="A SCRAM user to begin with: 'SCRAM-SHA-256=[name=alice,password=alice-secret]'. Repeatable.")
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip directories that are formatted already.")
@click.option("--release-version", "-r", metavar="VERSION",
              help="The metadata.version to begin with, such as 4.3 or 4.3-IV0.  [default: the release's own]")
@click.option("--metadata-version", metavar="VERSION", help="KIP-778's name of --release-version.")
@click.option("--feature", "-f", multiple=True, metavar="NAME=LEVEL", help="The level of a feature. Repeatable.")
@click.option("--standalone", "-s", is_flag=True, help="This controller is the only voter of a dynamic quorum.")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="A dynamic quorum whose voters are not given here.")
@click.option("--initial-controllers", "-I", metavar="VOTERS",
              help="The first voters of a dynamic quorum: id@host:port:directory, separated by commas.")
@_common
@click.pass_context
def format_(
    ctx: click.Context, config: str, cluster_id: str, add_scram: tuple[str, ...], ignore_formatted: bool,
    release_version: str | None, metadata_version: str | None, feature: tuple[str, ...], standalone: bool,
    no_initial_controllers: bool, initial_controllers: str | None, as_release: str | None, json_wanted: bool,
) -> int:  # fmt: skip
    """Format the log directories of a node. A directory is formatted wholly or not at all."""
    _refuse_pairs(ctx, ("standalone", "no_initial_controllers", "initial_controllers"))
    _refuse_pairs(ctx, ("release_version", "metadata_version"))
    node = _read(config, _asked_rules(ctx) or rules_of())
    version = metadata_version if release_version is None else release_version
    formatter = Formatter(
        node, cluster_id, release_version=version, features=parse_features(feature), standalone=standalone,
        initial_controllers=initial_controllers, no_initial_controllers=no_initial_controllers,
        scram=add_scram, ignore_formatted=ignore_formatted,
        report=(lambda line: None) if json_wanted else (lambda line: print(printable(line))),
    )  # fmt: skip
    done = formatter.run()
    if json_wanted:
        formatted = {name: meta.to_properties() for name, meta in done.directories.items()}
        print_json({"formatted": formatted, "levels": done.levels})
    return 0


def _refuse_pairs(ctx: click.Context, names: Sequence[str]) -> None:
    """A usage error if more than one of these options is given, as of argparse4j's groups."""
    order = [word.partition("=")[0] for word in ctx.find_object(dict)[_ARGUMENTS]]  # type: ignore[index]
    given = [param for param in ctx.command.params
             if param.name in names and ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE]
    given.sort(key=lambda param: min((order.index(name) for name in param.opts if name in order), default=len(order)))
    if len(given) > 1:
        raise click.UsageError(f"argument {_name(given[1])}: not allowed with argument {_name(given[0])}", ctx)


@storage.command("version-mapping")
@click.option("--release-version", "-r", metavar="VERSION", help="The metadata.version.  [default: the release's own]")
@_common
@click.pass_context
def version_mapping_(
    ctx: click.Context, release_version: str | None, as_release: str | None, json_wanted: bool
) -> None:
    """Show the feature levels that come with a metadata.version."""
    rules = _asked_rules(ctx) or rules_of()
    if json_wanted:
        levels = version_mapping(release_version, rules)
        version = schema.metadata_version(levels["metadata.version"])
        print_json({"metadata_version": version.name, "features": levels})  # as kwire features has it
    else:
        _print(version_mapping_lines(release_version, rules))


@storage.command("feature-dependencies")
@click.option("--feature", "-f", required=True, multiple=True, metavar="NAME=LEVEL", help="A level. Repeatable.")
@_common
@click.pass_context
def feature_dependencies_(
    ctx: click.Context, feature: tuple[str, ...], as_release: str | None, json_wanted: bool
) -> None:
    """Show the levels of other features that a level needs."""
    rules = _asked_rules(ctx) or rules_of()
    if json_wanted:
        needed = [feature_dependencies(one, rules) for one in feature]
        print_json([{"feature": one.feature, "level": one.level, "needs": one.needs} for one in needed])
        return
    for one in feature:
        _print(feature_dependencies_lines(one, rules))


@storage.command("random-uuid")
@_common
def random_uuid_(as_release: str | None, json_wanted: bool) -> None:
    """Print a random UUID."""
    text = uuid_text(random_uuid())
    print_json(text) if json_wanted else print(text)

