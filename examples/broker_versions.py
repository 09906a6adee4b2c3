"""Ask a broker which versions of which APIs it has, and guess its release by them.

    python examples/broker_versions.py HOST:PORT

Works with every broker from 0.9 on. `kwire versions` does more: all brokers of a cluster, features, other formats.
"""

from __future__ import annotations

import sys

import kwire
from kwire import messages, schema
from kwire.net import connect_sync


def likely_release(versions: dict[str, tuple[int, int]]) -> str:
    """Find the release whose brokers offer most of the same ranges; the older one where two are alike."""

    def same(release: str) -> int:
        ranges = {api.name: (api.min_version, api.max_stable_version) for api in schema.apis(release)}
        return len(ranges.items() & versions.items()) - len(ranges.keys() ^ versions.keys())

    return max(schema.releases(), key=same)


def main(address: str) -> None:
    """Run the example."""
    # Opening a connection asks with ApiVersions what the broker has (KIP-35).
    with connect_sync(address, client_id="example", timeout=10) as broker:
        for api, (low, high) in sorted(broker.versions.items()):
            print(f"{api:<32} {low:>3} to {high}")
        print("looks like Kafka", likely_release(broker.versions))

        # send takes the newest version that both sides have.
        metadata = messages.MetadataRequest(topics=[])
        print("Metadata goes out in version", broker.version_for(metadata))
        for node in broker.send(metadata).brokers:
            print(f"broker {node.node_id} at {node.host}:{node.port}")

        # What the broker is too old for fails before a byte is sent (KIP-97).
        try:
            broker.version_for(messages.ShareFetchRequest())
        except kwire.UnsupportedVersionError as error:
            print(error)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except kwire.KwireError as error:  # refused, timed out, not a Kafka broker, ...
        sys.exit(str(error))
