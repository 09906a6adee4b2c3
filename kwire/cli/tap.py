"""`kwire tap`: a proxy that records."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import click

from kwire.capture.tap import Tap
from kwire.net.address import Address, address
from kwire.net.errors import BrokerConnectionError
from kwire_c.printable import printable


class HostPort(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """HOST:PORT; port 0, where it is allowed, stands for any free one."""

    name = "host:port"

    def __init__(self, any_port: bool = False) -> None:
        self.any_port = any_port

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """The address."""
        if isinstance(value, Address):
            return value
        try:
            if self.any_port and str(value).endswith(":0"):
                return Address(address(f"{value[:-1]}1").host, 0)
            return address(str(value))
        except BrokerConnectionError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option("--listen", required=True, type=HostPort(any_port=True), help="Where clients are to connect.")
@click.option("--target", required=True, type=HostPort(), help="The broker that they are passed on to.")
@click.option("--out", required=True, metavar="NAME",
              help="Record to NAME.jsonl.gz and NAME.bin.gz, which must be new.")
def tap(listen: Address, target: Address, out: str) -> int:
    """Pass every byte on between clients and a broker, and record the frames, for `kwire audit` and Spark.

    It ends on SIGINT or SIGTERM. What is recorded is on disk a second later at most. Passwords and SASL tokens are left
    out; TLS passes through unread. Clients learn the broker's own address from it (advertised.listeners) and go there
    directly for all but their first requests: to see everything, have the broker advertise the address of the tap.
    """
    return asyncio.run(_run(listen, target, out))


async def _run(listen: Address, target: Address, out: str) -> int:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with Tap(listen, target, out, say=_say) as tap:
        _say(f"listening on {Address(*tap.address)} for {target}, recording to {out}.jsonl.gz")
        await ended.wait()
    _say(f"{tap.writer.frames} frames of {tap.connections} connections in {out}.jsonl.gz")
    return 1 if tap.failed else 0


def _say(line: str) -> None:
    click.echo(f"kwire tap: {printable(line)}", err=True)
