"""`kwire fleet`: embedded brokers, until SIGINT."""

from __future__ import annotations

import asyncio

import click

from kwire.cli.audit import Release
from kwire.cli.signals import stopped
from kwire.fleet.fleet import Fleet


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
def fleet(
    releases: tuple[str, ...], nodes: int | None, port: int, topics: tuple[str, ...], levels: tuple[str, ...]
) -> int:
    """Start brokers in this process, for tests of clients; their data is in memory and ends with them.

    They speak as brokers of a Kafka release do, on 127.0.0.1 only. The bootstrap address is printed when they are up.
    It ends on SIGINT or SIGTERM.
    """
    if len(releases) > 1 and nodes not in (None, len(releases)):
        raise click.UsageError(f"--nodes is {nodes}, but --release names {len(releases)} nodes")
    if len(releases) > 1:
        made = Fleet(releases=releases, topics=_topics(topics), levels=_levels(levels), port=port)
    else:
        release = releases[0] if releases else None
        made = Fleet(release, nodes or 1, topics=_topics(topics), levels=_levels(levels), port=port)
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
        if colon and not (count.isdecimal() and int(count) > 0):
            raise click.BadParameter(f"{text!r}: expected NAME or NAME:PARTITIONS", param_hint="--topic")
        topics[name] = int(count) if colon else 1
    return topics


def _levels(texts: tuple[str, ...]) -> dict[str, int]:
    levels = {}
    for text in texts:
        name, _, level = text.partition("=")
        if not level.isdecimal():
            raise click.BadParameter(f"{text!r}: expected FEATURE=LEVEL", param_hint="--level")
        levels[name] = int(level)
    return levels
