"""`kwire tap`: a recording proxy."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import click

from kwire.capture.recorder import Recorder
from kwire.capture.tap import Tap
from kwire.cli.fault_option import add_faults, fault_options
from kwire.cli.signals import stopped
from kwire.fleet.faults import Fault
from kwire.fleet.proxy import Proxy
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
@click.option("--out", metavar="NAME",
              help="Record to NAME.jsonl.gz and NAME.bin.gz, which must not exist. Needed without --fault.")
@fault_options
def tap(listen: Address, target: Address, out: str | None, faults: tuple[str, ...], seed: int) -> int:
    """Forward every byte between clients and a broker, and record the frames, for `kwire audit` and Spark.

    It ends on SIGINT, SIGTERM or SIGHUP. Recorded frames are on disk within a second. Passwords and SASL tokens are not
    recorded; TLS is forwarded but cannot be read. Clients learn the broker's own address (advertised.listeners) from
    their first requests and then connect to it directly: to record everything, let the broker advertise the address of
    the tap.

    With --fault, requests fail by rule. The tap then opens a port for every broker of the cluster, and puts its own
    addresses into the responses that name brokers, so that clients stay with it.
    """
    if out in ("", "-"):
        raise click.UsageError(f"--out is the beginning of two file names, not {out!r}: standard output cannot be both")
    if faults:
        proxy = Proxy(str(target), str(listen), seed=seed, record=out, say=_say, keep_events=False)
        return asyncio.run(_run_proxy(proxy, add_faults(proxy, faults), target, out))
    if out is None:
        raise click.UsageError("Missing option '--out': without --fault a tap only records.")
    return asyncio.run(_run(listen, target, out))


async def _run(listen: Address, target: Address, out: str) -> int:
    stop = stopped()
    async with Tap(listen, target, out, say=_say) as tap:
        _say(f"listening on {Address(*tap.address)} for {target}, recording to {out}.jsonl.gz")
        await stop.wait()
    return _said_what_is_recorded(tap.recorder, out)


async def _run_proxy(proxy: Proxy, rules: list[tuple[str, Fault]], target: Address, out: str | None) -> int:
    stop = stopped()
    async with proxy:
        _say(f"listening on {proxy.bootstrap} for {target}" + (f", recording to {out}.jsonl.gz" if out else ""))
        await stop.wait()
    for text, rule in rules:
        _say(f"{text}: {rule.hits} times")
    return 0 if proxy.recorder is None or out is None else _said_what_is_recorded(proxy.recorder, out)


def _said_what_is_recorded(recorder: Recorder, out: str) -> int:
    frames = recorder.writer.flushed
    left_out = f" ({recorder.writer.frames - frames} more may be missing)" if recorder.failed else ""
    _say(f"{frames} frames of {recorder.connections} connections in {out}.jsonl.gz{left_out}")
    return 1 if recorder.failed else 0


def _say(line: str) -> None:
    """Say it on standard error. Where nobody can read it, connections and the recording go on without it."""
    with suppress(OSError, ValueError):
        click.echo(f"kwire tap: {printable(line)}", err=True)
