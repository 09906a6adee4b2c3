"""--fault, which may be given more than once: a rule of what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import click

from kwire.errors import KwireError
from kwire.fleet.fault_text import read_fault
from kwire.fleet.faults import Fault

Command = TypeVar("Command", bound=Callable[..., Any])


class Faulty(Protocol):
    """What has rules: a Fleet or a Proxy."""

    def fault(self, api: str | None = None, **what: Any) -> Fault:
        """Add a rule."""


def fault_options(command: Command) -> Command:
    """--fault and --seed, of a command."""
    fault = click.option(
        "--fault", "faults", multiple=True, metavar="RULE",
        help="What goes wrong: an API, or none for all, then words as in Fleet.fault, for example "
             "\"Produce error=NOT_LEADER_OR_FOLLOWER times=3\" or \"Fetch topic=t delay=0.5 probability=0.1\".")
    seed = click.option("--seed", type=int, default=0, help="Of the faults with a probability; 0 by default.")
    return fault(seed(command))


def add_faults(target: Faulty, rules: Sequence[str]) -> list[tuple[str, Fault]]:
    """Add the rules, each with the text that it was given as. Raises UsageError for one that is none."""
    added = []
    for rule in rules:
        try:
            api, what = read_fault(rule)
            added.append((rule, target.fault(api, **what)))
        except (KwireError, ValueError) as error:
            raise click.BadParameter(str(error), param_hint="--fault") from error
    return added
