"""`kwire log dump`: what kafka-dump-log prints, with its options and exit codes."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

import click

_INT = click.IntRange(0, (1 << 31) - 1)
_NO_LIMIT = (1 << 31) - 1


class KafkaTool(click.Command):
    """A command with the options of a Kafka tool: -option for --option, unambiguous beginnings; usage errors exit 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as Kafka's option parser (joptsimple) does."""
        known = {name for param in self.get_params(ctx) for name in param.opts if name.startswith("--")}
        try:
            return super().parse_args(ctx, [_full_option(arg, known) for arg in args])
        except click.UsageError as error:
            raise click.ClickException(
                f"{error.format_message()} (see {ctx.command_path} --help)") from None


def _full_option(argument: str, known: set[str]) -> str:
    """The argument, an abbreviated option in full: -files, --print-data."""
    dashed, equals, value = argument.partition("=")
    if not re.fullmatch("--?[a-z][a-z-]+", dashed):
        return argument
    name = "--" + dashed.lstrip("-")
    found = [option for option in known if option.startswith(name)]
    if name not in known and len(found) != 1:
        return argument
    return (name if name in known else found[0]) + equals + value


@click.command(cls=KafkaTool)
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@click.option("--files", "listed", metavar="FILE,...", help="The files to dump, as a comma list.")
@click.option("--print-data-log", is_flag=True,
              help="Print keys and values too. Set by every option that names a decoder.")
@click.option("--deep-iteration", is_flag=True, help="Print records, not only batches. Set by --print-data-log.")
@click.option("--skip-record-metadata", is_flag=True,
              help="Print only keys and values of records; control records are left out.")
@click.option("--offsets-decoder", "group", is_flag=True, help="Decode records of __consumer_offsets.")
@click.option("--transaction-log-decoder", "transaction", is_flag=True, help="Decode records of __transaction_state.")
@click.option("--share-group-state-decoder", "share", is_flag=True, help="Decode records of __share_group_state.")
@click.option("--cluster-metadata-decoder", "metadata", is_flag=True, help="Decode records of __cluster_metadata.")
@click.option("--remote-log-metadata-decoder", "remote_log", is_flag=True,
              help="Decode records of __remote_log_metadata.")
@click.option("--key-decoder-class", is_flag=False, flag_value="", metavar="[CLASS]",
              help="Decode keys: a class of org.apache.kafka.tools.api, or a Python function as MODULE:FUNCTION.")
@click.option("--value-decoder-class", is_flag=False, flag_value="", metavar="[CLASS]", help="Decode values likewise.")
@click.option("--max-bytes", type=_INT, default=_NO_LIMIT, help="Read only the batches in so many bytes of each log.")
@click.option("--max-message-size", type=_INT, default=5 << 20, show_default=True,
              help="Bytes of the largest batch that an .index points to.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes without printing their entries.")
@click.option("--index-sanity-check", is_flag=True,
              help="Check only what a broker checks at startup to decide whether it rebuilds an index.")
@click.option("--as", "as_release", metavar="RELEASE",
              help="Print as kafka-dump-log of this release, 3.3 or later.  [default: the newest]")
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a batch, record, entry and finding.")
def dump(paths: tuple[str, ...], listed: str | None, as_lines: bool, **options: Any) -> None:
    """Dump segments, their indexes, producer snapshots and KRaft snapshots as kafka-dump-log does.

    FILE is a .log, .checkpoint, .index, .timeindex, .txnindex or .snapshot file, or a folder: its .log files are
    dumped. A pipe, and - for standard input, is a segment. What does not agree is listed on stderr at the end.
    """
    from kwire.storage.places.path_patterns import comma_list

    names = [name for name in comma_list(listed or "") if name]
    if not names and not paths:
        raise click.ClickException('Missing required argument "[files]" (see kwire log dump --help)')
    from kwire.cli.dump_files import Dump, Output
    from kwire.errors import WrongFileError
    from kwire.java_semantics import java_path

    with Output(as_lines) as out:
        try:
            shown = (name if "://" in name else java_path(name) for name in names)
            Dump(out, **options).run([*shown, *_expanded(paths)])
        except WrongFileError as error:  # the tool's exit code
            raise click.ClickException(str(error)) from None
        except (FileNotFoundError, FileExistsError) as error:
            text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise click.ClickException(text) from None


def _expanded(paths: Iterable[str]) -> Iterator[str]:
    """The files of paths: of a folder its segments, of a glob its matches, sorted.

    A URL without a dot in its last part is a folder.
    """
    for path in paths:
        if os.path.isdir(path) or ("://" in path and "." not in path.rstrip("/").rpartition("/")[2]):
            from kwire.storage import discover
            from kwire.storage.places.filesystem import shown

            files = [file.path for file in discover(path)]
            if not files:
                raise click.ClickException(f"{shown(path)}: no log segments found")
            yield from files
        elif glob.has_magic(path) and "://" not in path and not os.path.exists(path):
            matches = sorted(glob.glob(path))
            if not matches:
                raise click.ClickException(f"{path}: matches no file")
            yield from _expanded(matches)
        else:
            yield path
