"""Commands that take the command line of a Kafka tool, with kwire's own options anywhere in it."""

from __future__ import annotations

from typing import Any

import click


class ToolCommand(click.Command):
    """A command whose arguments, but for kwire's own options, are for the tool's parser; also the "--" in them.

    It takes them as its one argument, of type click.UNPROCESSED, and prints the tool's help itself.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options |= {"add_help_option": False, "context_settings": {"ignore_unknown_options": True}}
        super().__init__(*args, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read kwire's own options, up to "--"."""
        place = args.index("--") if "--" in args else len(args)
        ours = {name for param in self.params if isinstance(param, click.Option) and not param.is_flag
                for name in param.opts}
        if place and args[place - 1] in ours:
            raise click.BadOptionUsage(args[place - 1], f"Option {args[place - 1]!r} requires an argument.", ctx)
        return super().parse_args(ctx, [*args[:place], "--", *args[place:]])
