"""The options of commands that connect to brokers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from kwire.net.address import addresses
from kwire.net.connection import Options
from kwire.net.errors import BrokerConnectionError
from kwire.output import check_standard_output
from kwire_c.printable import brief

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Bootstrap(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A list of HOST:PORT, separated by commas."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, if it is a valid list of addresses."""
        try:
            addresses(str(value))
        except BrokerConnectionError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Seconds(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number of seconds above 0; inf: no limit."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not seconds > 0:  # also nan
            self.fail(f"{brief(value)} is not a number of seconds above 0", param, ctx)
        return seconds


def broker_options(command: _Command) -> _Command:
    """Add --bootstrap-server, --command-config, --timeout and --assume-release; see keywords()."""
    for option in (
        click.option("--assume-release", metavar="RELEASE",
                     help="The release to assume for a broker that does not answer ApiVersions (before 0.10)."),
        click.option("--timeout", type=Seconds(), default=None, metavar="SECONDS",
                     help="How long to wait for brokers.  [default: 30]"),
        click.option("--command-config", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
                     help="A property file with client configs: security.protocol, ssl.* (PEM), sasl.*."),
        click.option("--bootstrap-server", required=True, type=Bootstrap(), metavar="HOST:PORT",
                     help="The servers to connect to, separated by commas."),
    ):  # fmt: skip
        command = option(command)
    return command


def keywords(command_config: str | None, timeout: float | None, assume_release: str | None) -> Options:
    """These options as keywords of connect() and Cluster."""
    from kwire.net.config import read_config

    options: Options = {}
    if command_config is not None:
        check_standard_output([command_config])
        options = read_config(command_config)
    if timeout is not None:
        options["timeout"] = timeout
    options["probe_timeout"] = min(5.0, options.get("timeout", 30.0) / 4)
    if assume_release is not None:
        options["assume_release"] = assume_release
    return options


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a command's coroutine and return its result."""
    return asyncio.run(work)
