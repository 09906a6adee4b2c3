"""`kwire fleet`: embedded brokers, until SIGINT."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from kwire.cli.audit import Release
from kwire.cli.fault_option import add_faults, fault_options
from kwire.cli.signals import stopped
from kwire.fleet.controller.rules import RULES
from kwire.fleet.fleet import Fleet
from kwire.output import check_local

_MOST_DIGITS = 30


@click.command()
@click.option("--release", "releases", multiple=True, type=Release(), metavar="R",
              help="The release of all nodes, or of one node each if given more than once. By default the newest.")
@click.option("--nodes", type=click.IntRange(1, 100),
              help="How many nodes. By default as many as --release names, or 1.")
@click.option("--port", type=click.IntRange(0, 65535), default=0,
              help="The port of the first node; the others follow. By default free ports.")
@click.option("--topic", "topics", multiple=True, metavar="NAME[:PARTITIONS]",
              help="A topic to begin with; 1 partition by default.")
@click.option("--level", "levels", multiple=True, metavar="FEATURE=LEVEL",
              help="A finalized feature level that differs from the release's own.")
@click.option("--data", type=click.Path(file_okay=False), metavar="DIR",
              help="Keep the data in a folder, a Kafka log directory for each node: a new or empty one, or one of an "
                   "earlier run, which goes on. By default the data is in memory and ends with the brokers.")
@click.option("--rules", type=click.Choice(list(RULES)), default="released", show_default=True,
              help="The rules of the controller: those of the releases, or those of KIP-778 as the document has them.")
@fault_options
def fleet(
    releases: tuple[str, ...], nodes: int | None, port: int, topics: tuple[str, ...], levels: tuple[str, ...],
    data: str | None, rules: str, faults: tuple[str, ...], seed: int,
) -> int:
    """Start brokers in this process, for tests of clients.

    They speak as brokers of a Kafka release do, on 127.0.0.1 only. The bootstrap address is printed when they are up.
    It ends on SIGINT, SIGTERM or SIGHUP.
    """
    if len(releases) > 1 and nodes not in (None, len(releases)):
        raise click.UsageError(f"--nodes is {nodes}, but --release names {len(releases)} nodes")
    if data is not None:
        check_local(data)
    settings: dict[str, Any] = {"topics": _topics(topics), "levels": _levels(levels), "port": port, "data": data,
                                "rules": rules, "seed": seed, "keep_events": False}
    try:
        made = Fleet(releases=releases, **settings) if len(releases) > 1 else Fleet(
            releases[0] if releases else None, nodes or 1, **settings)
    except ValueError as error:  # levels that no node has, ports past the last one
        raise click.UsageError(str(error)) from None
    add_faults(made, faults)
    return asyncio.run(_run(made))


async def _run(fleet: Fleet) -> int:
    stop = stopped()
    async with fleet:
        click.echo(fleet.bootstrap)
        await stop.wait()
    return 0


def _topics(texts: tuple[str, ...]) -> dict[str, int]:
    topics = {}
    for text in texts:
        name, colon, count = text.partition(":")
        number = _number(count) if colon else 1
        if not number:
            raise click.BadParameter(f"{text!r}: expected NAME or NAME:PARTITIONS", param_hint="--topic")
        topics[name] = number
    return topics


def _levels(texts: tuple[str, ...]) -> dict[str, int]:
    levels = {}
    for text in texts:
        name, _, level = text.partition("=")
        number = _number(level)
        if number is None:
            raise click.BadParameter(f"{text!r}: expected FEATURE=LEVEL", param_hint="--level")
        levels[name] = number
    return levels


def _number(text: str) -> int | None:
    """The number that a text says, None if it is none. Python itself takes no text of thousands of digits."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
