"""The root command and its subcommands, each imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from kwire.cli.hints import command_hint
from kwire.suggestions import nearest
from kwire.version import __version__
from kwire_c.printable import brief

# name -> (module:attribute, the line that --help shows)
COMMANDS = {
    "apis": ("kwire.cli.apis:apis", "List the APIs with their versions, of all releases or of one."),
    "audit": ("kwire.cli.audit:audit", "Report what an upgrade breaks, from captured traffic."),
    "decode": ("kwire.cli.messages:decode", "Decode messages to JSON."),
    "encode": ("kwire.cli.messages:encode", "Encode JSON to messages."),
    "features": ("kwire.cli.features:features", "Show and change the feature levels of a cluster."),
    "fleet": ("kwire.cli.fleet:fleet", "Start brokers of any release in this process, for tests of clients."),
    "frame": ("kwire.cli.messages:frame", "Decode request and response frames to JSON."),
    "log": ("kwire.cli.log:log", "Show, count, verify and convert log segments."),
    "messages": ("kwire.cli.apis:messages", "List the messages that can be decoded, with their versions."),
    "protocol": ("kwire.cli.protocol:protocol", "Show or compare the protocol of releases, or write it as HTML."),
    "releases": ("kwire.cli.apis:releases", "List the releases that kwire knows."),
    "snapshot": ("kwire.cli.snapshot:snapshot", "Show, compare and downgrade a cluster's metadata, from its log."),
    "storage": ("kwire.cli.storage:storage", "Format the storage of a KRaft node, as kafka-storage does."),
    "tap": ("kwire.cli.tap:tap", "Proxy a broker and record its traffic."),
    "versions": ("kwire.cli.versions:versions", "Show the API versions of every broker of a cluster."),
}


class OutputClosed(Exception):
    """The reader of the output has closed it."""


class LazyGroup(click.Group):
    """A group whose commands are in a table: name -> (module:attribute, help line); --help imports none of them."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name in self.lazy:
            module, attribute = self.lazy[cmd_name][0].split(":")
            return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; for an unknown one the error has the nearest."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = {one: one for one in self.list_commands(ctx)}
            if ctx.parent is None:  # kwire show for kwire log show
                group = self.get_command(ctx, "log")
                assert isinstance(group, click.Group)
                known = {**{one: f"log {one}" for one in group.list_commands(ctx)}, **known}
            meant = known.get(name) or command_hint(name, ctx) or known.get(nearest(name, known))
            hint = f' (did you mean "{meant}"?)' if meant else ""
            raise click.UsageError(f"No such command {brief(name)}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed output is an error of its own, which click hides."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise OutputClosed from None
        except click.UsageError as error:
            if error.ctx is None and ctx.invoked_subcommand:  # click's parser does not say whose option it is
                error.ctx = click.Context(self, info_name=ctx.invoked_subcommand, parent=ctx)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in --help."""
        rows = []
        for name in self.list_commands(ctx):
            command = None if name in self.lazy else self.get_command(ctx, name)
            rows.append((name, self.lazy[name][1] if command is None else command.get_short_help_str(80)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="kwire")
def root() -> None:
    """The Kafka wire format: read, check and convert what Kafka writes, without a broker."""
