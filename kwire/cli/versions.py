"""`kwire versions`: the API versions of the brokers of a cluster."""

from __future__ import annotations

import sys
from typing import Any

import click

from kwire import schema
from kwire.cli.broker_options import broker_options, keywords, run
from kwire.cli.terminal import print_json
from kwire.cli.versions_text import against_text, as_json, feature_text, kip97_listing, tool_listing
from kwire.errors import KwireError
from kwire.net import FEATURES, Broker, Cluster, Feature
from kwire.net.api_versions import FinalizedLevels, NodeApiVersions, newest_levels
from kwire.net.compatibility import against, match_release
from kwire.net.connection import Options
from kwire_c.printable import printable


class FeatureName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The name of a built-in feature."""

    name = "feature"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Feature:
        """The feature of that name."""
        if isinstance(value, Feature):
            return value
        if value not in FEATURES:
            self.fail(f"unknown feature {value!r}: expected one of {', '.join(FEATURES)}", param, ctx)
        return FEATURES[value]


@click.command()
@broker_options
@click.option("--as", "as_release", metavar="RELEASE",
              help="Print as kafka-broker-api-versions of this release.  [default: the newest]")
@click.option("--kip97", is_flag=True, help="Print in the format of KIP-97.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object.")
@click.option("--feature", "features", multiple=True, type=FeatureName(), metavar="NAME",
              help="Check a feature, such as headers or transactions; the exit code is 1 if a broker lacks it.")
@click.option("--against", "client", metavar="RELEASE", help="Show what a client of this release cannot use.")
def versions(
    bootstrap_server: str, command_config: str | None, timeout: float | None, assume_release: str | None,
    as_release: str | None, kip97: bool, json_wanted: bool, features: tuple[Feature, ...], client: str | None,
) -> int:  # fmt: skip
    """Show the API versions of every broker of a cluster, as kafka-broker-api-versions does.

    The releases that match each broker's API versions are printed to stderr.
    """
    release = schema.releases()[-1] if as_release is None else schema.release_name(as_release)
    client = None if client is None else schema.release_name(client)
    try:
        options = keywords(command_config, timeout, assume_release)
    except KwireError as invalid:
        raise click.BadParameter(str(invalid), param_hint="'--command-config'") from None
    answers = run(_ask(bootstrap_server, options))
    by_broker = {broker: answer for broker, answer in answers.items() if isinstance(answer, NodeApiVersions)}
    failures = {broker: error for broker, error in answers.items() if not isinstance(error, NodeApiVersions)}
    finalized = newest_levels(api_versions.finalized_levels for api_versions in by_broker.values())
    able = all(
        feature.usable(api_versions.versions(), finalized.levels)
        for feature in features for api_versions in by_broker.values()
    )  # fmt: skip
    if json_wanted:
        print_json(_json(by_broker, release, features, client, finalized))
    elif features or client is not None:
        for feature in features:
            sys.stdout.write(feature_text(feature, by_broker, finalized))
        for broker, api_versions in by_broker.items() if client is not None else ():
            sys.stdout.write(against_text(broker, against(api_versions, client or release)))
    else:
        for broker, answer in answers.items():
            if isinstance(answer, NodeApiVersions):
                sys.stdout.write(kip97_listing(broker, answer) if kip97 else tool_listing(broker, answer, release))
            else:
                print(printable(f"{broker.host}:{broker.port} (id: {broker.id}) -> ERROR: {answer}"))
    for broker, api_versions in by_broker.items():
        assumed = api_versions.assumed
        if assumed:
            release_text = f"no answer to ApiVersions, Kafka {assumed} is assumed"
        else:
            release_text = f"{match_release(api_versions)} by its API versions"
        print(printable(f"{broker.address}: {release_text}"), file=sys.stderr)
    for error in failures.values():
        print(f"kwire: {error}", file=sys.stderr)
    return 0 if able and not failures else 1


async def _ask(bootstrap: str, keywords: Options) -> dict[Broker, NodeApiVersions | KwireError]:
    """The API versions of each broker, or the error if it cannot be asked."""
    async with Cluster(bootstrap, partial=True, **keywords) as cluster:
        reached = {} if len(cluster.unreachable) == len(cluster.brokers) else cluster.api_versions
        return {broker: reached.get(broker.id) or cluster.unreachable[broker.id] for broker in cluster.brokers}


def _json(
    by_broker: dict[Broker, NodeApiVersions], release: str, features: tuple[Feature, ...], client: str | None,
    finalized: FinalizedLevels,
) -> dict[str, Any]:  # fmt: skip
    rows = []
    for broker, api_versions in by_broker.items():
        match = match_release(api_versions)
        row = as_json(broker, api_versions, release)
        row["guess"] = {"releases": list(match.releases), "apart": match.apart, "newer": match.newer}
        if features:
            row["features"] = {
                feature.name: feature.usable(api_versions.versions(), finalized.levels) for feature in features
            }
        if client is not None:
            row["against"] = against(api_versions, client)._asdict()
        rows.append(row)
    return {"brokers": rows, "levels": dict(finalized.levels), "levels_epoch": finalized.epoch}
