"""`kwire versions`: what the brokers of a cluster speak."""

from __future__ import annotations

import sys
from typing import Any

import click

from kwire import schema
from kwire.cli import brokers
from kwire.cli.terminal import print_json
from kwire.net import FEATURES, Broker, Cluster, Feature
from kwire.net.connection import Options
from kwire.net.guess import against, guess
from kwire.net.listing import against_text, as_json, feature_text, kip97_listing, tool_listing
from kwire.net.offer import Offer
from kwire_c.errors import KwireError
from kwire_c.printable import printable


class FeatureName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The name of a built-in feature."""

    name = "feature"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Feature:
        """The feature of that name."""
        if isinstance(value, Feature):
            return value
        if value not in FEATURES:
            self.fail(f"no feature {value!r}: there are {', '.join(FEATURES)}", param, ctx)
        return FEATURES[value]


@click.command()
@brokers.broker_options
@click.option("--as", "as_release", metavar="RELEASE", help="Print as the tool of this release.  [default: the newest]")
@click.option("--kip97", is_flag=True, help="Print as KIP-97 shows it.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object.")
@click.option("--feature", "features", multiple=True, type=FeatureName(), metavar="NAME",
              help="Say whether the brokers can do it, as headers or transactions; exit 1 where one cannot.")
@click.option("--against", "client", metavar="RELEASE", help="Say what a client of this release could not do.")
def versions(
    bootstrap_server: str, command_config: str | None, timeout: float | None, assume_release: str | None,
    as_release: str | None, kip97: bool, json_wanted: bool, features: tuple[Feature, ...], client: str | None,
) -> int:  # fmt: skip
    """Show the API versions of every broker of a cluster, as kafka-broker-api-versions does.

    What the ranges say about the broker's release goes to stderr.
    """
    release = schema.releases()[-1] if as_release is None else schema.release_name(as_release)
    client = None if client is None else schema.release_name(client)
    found = brokers.run(_ask(bootstrap_server, brokers.keywords(command_config, timeout, assume_release)))
    offers = {broker: offer for broker, offer in found.items() if isinstance(offer, Offer)}
    failures = {broker: error for broker, error in found.items() if not isinstance(error, Offer)}
    able = all(feature.usable(offer.versions()) for feature in features for offer in offers.values())
    if json_wanted:
        print_json(_json(offers, release, features, client))
    elif features or client is not None:
        for feature in features:
            sys.stdout.write(feature_text(feature, offers))
        for broker, offer in offers.items() if client is not None else ():
            sys.stdout.write(against_text(broker, against(offer, client or release)))
    else:
        for broker, offer in found.items():
            if isinstance(offer, Offer):
                sys.stdout.write(kip97_listing(broker, offer) if kip97 else tool_listing(broker, offer, release))
            else:
                print(printable(f"{broker.host}:{broker.port} (id: {broker.id}) -> ERROR: {offer}"))
    for broker, offer in offers.items():
        told = f"silent, so Kafka {offer.assumed} is assumed" if offer.assumed else f"{guess(offer)} by its ranges"
        print(printable(f"{broker.address}: {told}"), file=sys.stderr)
    for error in failures.values():
        print(f"kwire: {error}", file=sys.stderr)
    return 0 if able and not failures else 1


async def _ask(bootstrap: str, keywords: Options) -> dict[Broker, Offer | KwireError]:
    """What each broker offers, or why it does not say."""
    async with Cluster(bootstrap, partial=True, **keywords) as cluster:
        reached = {} if len(cluster.unreachable) == len(cluster.brokers) else cluster.offers
        return {broker: reached.get(broker.id) or cluster.unreachable[broker.id] for broker in cluster.brokers}


def _json(
    offers: dict[Broker, Offer], release: str, features: tuple[Feature, ...], client: str | None
) -> dict[str, Any]:
    rows = []
    for broker, offer in offers.items():
        found = guess(offer)
        row = as_json(broker, offer, release)
        row["guess"] = {"releases": list(found.releases), "apart": found.apart, "newer": found.newer}
        if features:
            row["features"] = {feature.name: feature.usable(offer.versions()) for feature in features}
        if client is not None:
            row["against"] = against(offer, client)._asdict()
        rows.append(row)
    return {"brokers": rows}
