"""What the commands that talk to brokers share: the options that say which, how, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from kwire.net.address import addresses
from kwire.net.connection import Options
from kwire.net.errors import BrokerConnectionError

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Bootstrap(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """HOST:PORT, or several with commas between them."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, once it is seen to be addresses."""
        try:
            addresses(str(value))
        except BrokerConnectionError as error:
            self.fail(str(error), param, ctx)
        return str(value)


def broker_options(command: _Command) -> _Command:
    """Adds --bootstrap-server, --command-config, --timeout and --assume-release; see keywords()."""
    for option in (
        click.option("--assume-release", metavar="RELEASE",
                     help="The release to assume of a broker that does not answer ApiVersions (before 0.10)."),
        click.option("--timeout", type=click.FloatRange(0, min_open=True), default=None, metavar="SECONDS",
                     help="How long to wait for brokers.  [default: 30]"),
        click.option("--command-config", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
                     help="Properties of the client: security.protocol, ssl.* (PEM), sasl.*, as Kafka names them."),
        click.option("--bootstrap-server", required=True, type=Bootstrap(), metavar="HOST:PORT",
                     help="A broker to start from, or several with commas between."),
    ):  # fmt: skip
        command = option(command)
    return command


def keywords(command_config: str | None, timeout: float | None, assume_release: str | None) -> Options:
    """The keywords of connect() and Cluster that these options stand for."""
    from kwire.net.config import read_config

    found: Options = {} if command_config is None else read_config(command_config)
    if timeout is not None:
        found["timeout"] = timeout
    found["probe_timeout"] = min(5.0, found.get("timeout", 30.0) / 4)
    if assume_release is not None:
        found["assume_release"] = assume_release
    return found


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs a command's coroutine to its end."""
    return asyncio.run(work)
