"""`kwire tap`: a recording proxy."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from kwire.capture.tap import Tap
from kwire.cli.signals import stopped
from kwire.net.address import Address, address
from kwire.net.errors import BrokerConnectionError
from kwire_c.printable import printable


class HostPort(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """HOST:PORT; port 0, if allowed, means any free port."""

    name = "host:port"

    def __init__(self, any_port: bool = False) -> None:
        self.any_port = any_port

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """The address."""
        if isinstance(value, Address):
            return value
        try:
            return address(str(value), any_port=self.any_port)
        except BrokerConnectionError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option("--listen", required=True, type=HostPort(any_port=True),
              help="The address for clients to connect to; port 0: any free port.")
@click.option("--target", required=True, type=HostPort(), help="The broker to forward to.")
@click.option("--out", required=True, metavar="NAME",
              help="Record to NAME.jsonl.gz and NAME.bin.gz, which must not exist.")
def tap(listen: Address, target: Address, out: str) -> int:
    """Forward every byte between clients and a broker, and record the frames, for `kwire audit` and Spark.

    It ends on SIGINT or SIGTERM. Recorded frames are on disk within a second. Passwords and SASL tokens are not
    recorded; TLS is forwarded but cannot be read. Clients learn the broker's own address (advertised.listeners) from
    their first requests and then connect to it directly: to record everything, let the broker advertise the address of
    the tap.
    """
    if out in ("", "-"):
        raise click.UsageError(f"--out is the beginning of two file names, not {out!r}: standard output cannot be both")
    return asyncio.run(_run(listen, target, out))


async def _run(listen: Address, target: Address, out: str) -> int:
    stop = stopped()
    async with Tap(listen, target, out, say=_say) as tap:
        _say(f"listening on {Address(*tap.address)} for {target}, recording to {out}.jsonl.gz")
        await stop.wait()
    _say(f"{tap.writer.frames} frames of {tap.connections} connections in {out}.jsonl.gz")
    return 1 if tap.failed else 0


def _say(line: str) -> None:
    click.echo(f"kwire tap: {printable(line)}", err=True)
