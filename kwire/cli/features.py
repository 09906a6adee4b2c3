"""`kwire features`: the feature levels of a cluster, as kafka-features of a release shows and changes them."""

from __future__ import annotations

import os
import stat
import sys
from typing import Any

import click

from kwire import schema
from kwire.cli.argparse4j import ArgumentError, HelpRequested
from kwire.cli.broker_options import Seconds, keywords, run
from kwire.cli.features_tool import DISABLE, DOWNGRADE, UPGRADE, Failure, Tool, java_exception, results_text
from kwire.cli.terminal import print_json
from kwire.cli.tool_command import ToolCommand
from kwire.net import Cluster, RequestRefusedError
from kwire.net.address import addresses
from kwire.net.feature_updates import FeatureMetadata, FeatureUpdate, FeatureUpdateError
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.places.filesystem import shown, shown_text
from kwire_c.printable import printable

_OWN_OPTIONS = """
options of kwire, anywhere in the line:
  --as RELEASE           Read and print as kafka-features of this release (3.3
                         or newer).  [default: the newest]
  --json                 One JSON object.
  --timeout SECONDS      How long to wait for brokers.  [default: 30]
"""
_NO_NODE = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: {}"


@click.command(cls=ToolCommand)
@click.option("--as", "as_release", metavar="RELEASE")
@click.option("--json", "as_json", is_flag=True)
@click.option("--timeout", type=Seconds(), default=None, metavar="SECONDS")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def features(as_release: str | None, as_json: bool, timeout: float | None, arguments: tuple[str, ...]) -> int:
    """Show and change the feature levels of a cluster, with the options and texts of kafka-features."""
    tool = Tool(schema.releases()[-1] if as_release is None else as_release, strict=as_release is not None)
    parser = tool.parser("kwire features" if as_release is None else "kafka-features")
    try:
        values = parser.parse(arguments)
        command = values["command"]
        if command == "version-mapping" and tool.since("4.3"):
            return _mapping(tool, values, as_json)
        if command == "feature-dependencies" and tool.since("4.3"):
            return _dependencies(tool, values["feature"], as_json)
        controllers = values["bootstrap_server"] is None
        bootstrap = values.get("bootstrap_controller") if controllers else values["bootstrap_server"]
        if bootstrap is None:
            raise ArgumentError("You must specify either --bootstrap-controller or --bootstrap-server.", parser)
    except HelpRequested as wanted:
        sys.stdout.write(wanted.text + ("" if as_release else _OWN_OPTIONS))
        return tool.help_code if as_release else 0
    except ArgumentError as error:
        sys.stderr.write(tool.usage_error(error) + ("\n" if sys.stderr.isatty() else ""))
        return 1
    except Failure as failure:
        return _fail(failure)
    try:
        addresses(bootstrap)
        options = keywords(_config(tool, values["command_config"]), timeout, None)
        if command == "version-mapping":
            return _mapping(tool, values, as_json)
        if command == "feature-dependencies":
            return _dependencies(tool, values["feature"], as_json)
        cluster = Cluster(bootstrap, lazy=True, controllers=controllers, **options | {"deny": tool.denied})
        if command == "describe":
            return _describe(tool, cluster, values.get("node_id"), as_json)
        return _change(tool, cluster, command, values, as_json)
    except Failure as failure:
        return _fail(failure)


def _fail(failure: Failure) -> int:
    """Print the lines that come before a failure, then what it says. Returns the exit code."""
    for line in failure.args[1:]:
        print(line)
    sys.stdout.flush()
    print(printable(shown_text(failure.args[0])), file=sys.stderr)
    return 1


def _config(tool: Tool, path: str | None) -> str | None:
    """The path of --command-config. Raises Failure if it cannot be read."""
    if path is None:
        return None
    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):  # a pipe is opened once
            open(path, "rb").close()
    except FileNotFoundError:
        if tool.since("3.6"):  # whose text is the path alone
            raise Failure(f"{shown(path)}: No such file or directory") from None
        raise Failure(f"Properties file {shown(path)} does not exists!") from None
    except OSError as error:
        raise Failure(f"kwire: {shown(path)}: {error.strerror}") from None
    return path


def _mapping(tool: Tool, values: dict[str, Any], as_json: bool) -> int:
    text = values["release_version"] if values["release_version"] is not None else values.get("metadata")
    if not as_json:
        sys.stdout.write(tool.mapping_text(text))
        return 0
    levels = tool.mapping(text)
    print_json({"metadata_version": tool.levels[levels[METADATA_VERSION]].name, "features": levels})
    return 0


def _dependencies(tool: Tool, texts: list[str], as_json: bool) -> int:
    if as_json:
        rows = [tool.dependencies(text) for text in texts]
        print_json([{"feature": row.feature, "level": row.level, "needs": row.needs} for row in rows])
        return 0
    for text in texts:
        sys.stdout.write(tool.dependencies_text(text))
    return 0


def _describe(tool: Tool, cluster: Cluster, node: int | None, as_json: bool) -> int:
    if node is not None and node < 0:
        raise Failure(f"Invalid node id {node}: must be non-negative.")

    async def ask() -> FeatureMetadata:
        async with cluster:
            if node is not None and all(broker.id != node for broker in cluster.brokers):
                raise Failure(_NO_NODE.format("describeFeatures"))
            return await cluster.describe_features(node)

    try:
        metadata = run(ask())
    except RequestRefusedError as error:
        raise Failure(java_exception(error.code, error.text)) from None
    if as_json:
        print_json(_metadata_json(tool, metadata))
    else:
        sys.stdout.write(tool.description(metadata))
    return 0


def _metadata_json(tool: Tool, metadata: FeatureMetadata) -> dict[str, Any]:
    """{"epoch": offset or null, "features": {name: {"min", "max", "finalized"}}}; metadata.version: with names."""
    rows: dict[str, Any] = {}
    for name in sorted({*metadata.supported, *metadata.finalized}):
        low, high = metadata.supported.get(name, (None, None))
        row: dict[str, Any] = {"min": low, "max": high, "finalized": metadata.finalized.get(name, 0)}
        if name == METADATA_VERSION:
            row["names"] = {
                key: tool.levels[level].name if level in tool.levels else None for key, level in row.items()
            }
        rows[name] = row
    return {"epoch": metadata.epoch if metadata.epoch >= 0 else None, "features": rows}


def _change(tool: Tool, cluster: Cluster, op: str, values: dict[str, Any], as_json: bool) -> int:
    assert op in (UPGRADE, DOWNGRADE, DISABLE)
    lines, updates = tool.updates(op, values)
    dry_run = values["dry_run"]
    if not as_json:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    async def ask() -> dict[str, FeatureUpdateError | None]:
        async with cluster:
            return await cluster.update_features(updates, dry_run=dry_run)

    try:
        results = run(ask())
    except RequestRefusedError as error:
        results = {name: FeatureUpdateError(name, error.code, error.text) for name in updates}
    if as_json:
        print_json({"dry_run": dry_run, "results": _results_json(updates, results)})
    else:
        sys.stdout.write(results_text(op, dry_run, updates, results))
    failed = sum(error is not None for error in results.values())
    if failed:
        sys.stdout.flush()
        print(f"{failed} out of {len(updates)} operation(s) failed.", file=sys.stderr)
    return 1 if failed else 0


def _results_json(
    updates: dict[str, FeatureUpdate], results: dict[str, FeatureUpdateError | None]
) -> dict[str, Any]:
    """{feature: {"level", "downgrade", "error": null or {"code", "name", "message"}}}."""
    return {
        name: {
            "level": updates[name].level, "downgrade": updates[name].downgrade,
            "error": None if error is None
            else {"code": int(error.code), "name": error.code.name, "message": error.reason},
        }
        for name, error in sorted(results.items())
    }  # fmt: skip
