"""`kwire storage`: format the storage directories of a KRaft node and look at them, as kafka-storage does."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import click

from kwire import schema
from kwire.cli.argparse4j import ArgumentError, HelpRequested, Parser, recorded
from kwire.cli.terminal import print_json
from kwire.cli.tool_command import ToolCommand
from kwire.errors import UnsupportedVersionError
from kwire.output import check_standard_output
from kwire.schema import files
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.formatting import Formatter, FormatterError, ServerConfig, random_uuid, storage_info, uuid_text
from kwire.storage.formatting.levels import parse_features
from kwire.storage.formatting.mappings import (
    dependencies_lines,
    feature_dependencies,
    mapping_lines,
    version_mapping,
)
from kwire.storage.formatting.rules import Rules, rules_of
from kwire.storage.places.filesystem import shown, shown_text
from kwire_c.printable import printable

_ALIAS = "--metadata-version"  # KIP-778's name of --release-version
_PASSWORD = re.compile(r"(password\s*=).*", re.DOTALL | re.IGNORECASE)  # a password may hold anything
_REPEATED = ("--add-scram", "--feature")
_OWN_OPTIONS = """
options of kwire, anywhere in the line:
  --as RELEASE           Do, write and print what kafka-storage of this
                         release does (3.3 or newer).  [default: the newest]
  --json                 One JSON object.
  --metadata-version VERSION
                         KIP-778's name of --release-version of format.
"""


@click.command(cls=ToolCommand)
@click.option("--as", "as_release", metavar="RELEASE")
@click.option("--json", "as_json", is_flag=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def storage(as_release: str | None, as_json: bool, arguments: tuple[str, ...]) -> int:
    """Format the log directories of a KRaft node, and look at them, as kafka-storage does.

    Texts, exit codes and files are those of the release after --as. The commands need no broker and no JVM.
    """
    try:
        rules = _rules(as_release)
        parser = _parser(rules, "kwire storage" if as_release is None else "kafka-storage")
        values = parser.parse(arguments)
        _take_alias(values, parser)
        return _COMMANDS[values["command"]](values, rules, as_json)
    except HelpRequested as wanted:
        sys.stdout.write(wanted.text + ("" if as_release else _OWN_OPTIONS))
        return 0 if as_release is None or rules.formatter else 1  # up to 3.8 the tool's is 1
    except ArgumentError as error:
        sys.stderr.write(_PASSWORD.sub(r"\1[hidden]\n", error.usage_text()))
    except FormatterError as error:
        sys.stdout.flush()
        text = str(error)  # of listeners, PLAINTEXT://HOST:PORT, nothing is secret
        text = shown_text(text) if "@" in text else text
        print(printable(_PASSWORD.sub(r"\1[hidden]", text)), file=sys.stderr)
    return 1


def _rules(release: str | None) -> Rules:
    try:
        return rules_of(release)
    except UnsupportedVersionError as error:
        raise FormatterError(f"--as {release}: {error}") from None


@lru_cache(1)
def _help_texts() -> dict[str, dict[str, str | None]]:
    texts: dict[str, dict[str, str | None]] = files.load("storage_help.json")
    return texts


def _parser(rules: Rules, prog: str) -> Parser:
    """The parser of a release's tool."""
    texts = {}
    for command, rows in _help_texts().items():
        known = [text for first, text in rows.items() if schema.is_at_least(rules.release, first)]
        if known and known[-1] is not None:
            texts[command] = known[-1].replace("usage: kafka-storage", f"usage: {prog}")
    parser = recorded(texts, _REPEATED)
    parser.prog, parser.file_prefix = prog, "@" if rules.scram else ""
    parser.commands["format"].add(_ALIAS, help="", hidden=True)
    return parser


def _take_alias(values: dict[str, Any], parser: Parser) -> None:
    """Take --metadata-version for --release-version. Raises ArgumentError for both."""
    version = values.pop("metadata_version", None)
    if version is not None:
        if values["release_version"] is not None:
            reason = f"argument --release-version/-r: not allowed with argument {_ALIAS}"
            raise ArgumentError(reason, parser.commands[values["command"]])
        values["release_version"] = version


def _read(path: str, rules: Rules) -> ServerConfig:
    """The configuration. Raises FormatterError for a file that cannot be read."""
    check_standard_output([path])
    try:
        return ServerConfig.read(path, release=rules.asked)
    except OSError as error:
        raise FormatterError(f"{shown(path)}: {error.strerror}") from None


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(printable(line))


def _info(values: Mapping[str, Any], rules: Rules, as_json: bool) -> int:
    """Show the log directories of a node, their metadata, and what is wrong with them."""
    try:
        found = storage_info(_read(values["config"], rules))
    except OSError as error:
        raise FormatterError(f"{error.filename}: {error.strerror}") from None
    if as_json:
        print_json(found._asdict())
    else:
        _print(found.lines())
    return 1 if found.problems else 0


def _format(values: Mapping[str, Any], rules: Rules, as_json: bool) -> int:
    """Format the log directories of a node. A directory is formatted wholly or not at all."""
    node = _read(values["config"], rules)
    formatter = Formatter(
        node, values["cluster_id"], release_version=values["release_version"],
        features=parse_features(values.get("feature") or ()), standalone=values.get("standalone", False),
        initial_controllers=values.get("initial_controllers"),
        no_initial_controllers=values.get("no_initial_controllers", False), scram=values.get("add_scram") or (),
        ignore_formatted=values["ignore_formatted"],
        report=(lambda line: None) if as_json else (lambda line: print(printable(line))),
    )  # fmt: skip
    done = formatter.run()
    if as_json:
        formatted = {name: meta.to_properties() for name, meta in done.directories.items()}
        print_json({"formatted": formatted, "levels": done.levels})
    return 0


def _version_mapping(values: Mapping[str, Any], rules: Rules, as_json: bool) -> int:
    """Show the feature levels that come with a metadata.version."""
    levels = version_mapping(values["release_version"], rules)
    if as_json:
        version = schema.metadata_version(levels[METADATA_VERSION])
        print_json({"metadata_version": version.name, "features": levels})
    else:
        _print(mapping_lines(levels, values["release_version"], rules))
    return 0


def _feature_dependencies(values: Mapping[str, Any], rules: Rules, as_json: bool) -> int:
    """Show the levels of other features that a level needs."""
    if as_json:
        needed = [feature_dependencies(one, rules) for one in values["feature"]]
        print_json([{"feature": one.feature, "level": one.level, "needs": one.needs} for one in needed])
        return 0
    for one in values["feature"]:
        _print(dependencies_lines(feature_dependencies(one, rules), rules))
    return 0


def _random_uuid(values: Mapping[str, Any], rules: Rules, as_json: bool) -> int:
    """Print a random UUID."""
    text = uuid_text(random_uuid())
    if as_json:
        print_json(text)
    else:
        print(text)
    return 0


_COMMANDS: dict[str, Callable[[Mapping[str, Any], Rules, bool], int]] = {
    "info": _info, "format": _format, "version-mapping": _version_mapping,
    "feature-dependencies": _feature_dependencies, "random-uuid": _random_uuid,
}  # fmt: skip
