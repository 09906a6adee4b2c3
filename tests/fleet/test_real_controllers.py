"""The same requests to the controller's listener of a fleet and of a real node get the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire import messages as M
from kwire.fleet import Fleet
from kwire.net import connect_sync
from tests.fleet.dialogue import Client
from tests.fleet.test_features import formatted
from tools.kafka import broker

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(600)]

METADATA = "__cluster_metadata"
ID = UUID(int=9 << 90)
FEATURES = ("kraft.version", "transaction.version", "group.version", "eligible.leader.replicas.version",
            "share.version", "streams.version")  # fmt: skip
# what differs by chance, and texts of errors
EXEMPT = ("errorMessage", "clusterId", "brokerEpoch", "logEndOffset", "highWatermark", "leaderEpoch", "port",
          "lastFetchTimestamp", "lastCaughtUpTimestamp", "finalizedFeaturesEpoch", "replicaDirectoryId",
          "throttleTimeMs")  # fmt: skip
Step = tuple[str, Any, int]


def steps(cluster_id: str, versions: dict[str, tuple[int, int]]) -> Iterator[Step]:
    """(what is asked, request, version): each API of controllers in every version, valid and not."""
    def of(name: str) -> range:
        low, high = versions.get(name, (0, -1))
        return range(low, high + 1)

    for version in of("ApiVersions"):
        client = {"client_software_name": "c", "client_software_version": "1"} if version >= 3 else {}
        yield "api versions", M.ApiVersionsRequest(**client), version  # type: ignore[arg-type]
    for version in of("DescribeCluster"):
        for kind in (1, 2, 0, 3) if version else (1,):
            yield f"cluster {kind}", M.DescribeClusterRequest(endpoint_type=kind), version
    for version in of("DescribeQuorum"):
        request = M.DescribeQuorumRequest
        for name, parts in ((METADATA, [0]), (METADATA, [1]), ("t", [0]), (METADATA, [0, 1]), (METADATA, [])):
            topic = request.TopicData(
                topic_name=name, partitions=[request.PartitionData(partition_index=part) for part in parts])
            yield f"quorum {name} {parts}", request(topics=[topic]), version
        yield "quorum of nothing", request(), version
    yield from _registrations(cluster_id, of)
    for cluster in (cluster_id, "other", None):
        for voter in (1, 9):
            label = f"{['other', 'no', 'our'][(cluster is None) + 2 * (cluster == cluster_id)]} {voter}"
            for version in of("AddRaftVoter"):
                listener = M.AddRaftVoterRequest.Listener(name="CONTROLLER", host="127.0.0.1", port=1)
                yield f"add {label}", M.AddRaftVoterRequest(
                    cluster_id=cluster, timeout_ms=300, voter_id=voter, voter_directory_id=ID,
                    listeners=[listener]), version
            for version in of("RemoveRaftVoter"):
                yield f"remove {label}", M.RemoveRaftVoterRequest(
                    cluster_id=cluster, voter_id=voter, voter_directory_id=ID), version
    for version in of("UnregisterBroker"):
        for broker_id in (9, 9, 77):
            yield f"unregister {broker_id}", M.UnregisterBrokerRequest(broker_id=broker_id), version


def _registrations(cluster_id: str, of: Any) -> Iterator[Step]:
    request = M.BrokerRegistrationRequest
    for version in of("BrokerRegistration"):
        for cluster in (cluster_id, "other"):
            for level in (1, 100):
                for broker_id, directories in ((1, [ID]), (9, [ID]), (9, []), (9, [ID, ID]), (9, [UUID(int=7)])):
                    more: Any = {"log_dirs": directories} if version >= 2 else {}
                    supported = [("metadata.version", 1, level)]
                    supported += [(name, 0, 9) for name in FEATURES] if level > 1 else []
                    yield f"register {broker_id} {cluster == cluster_id} {level}", request(
                        broker_id=broker_id, cluster_id=cluster, incarnation_id=UUID(int=5 + broker_id),
                        listeners=[request.Listener(name="PLAINTEXT", host="h", port=1)], **more,
                        features=[request.Feature(name=name, min_supported_version=low, max_supported_version=high)
                                  for name, low, high in supported]), version
    for version in of("BrokerHeartbeat"):
        for broker_id in (9, 8):
            for epoch in (-1, 1 << 40):
                yield f"beat {broker_id} {epoch}", M.BrokerHeartbeatRequest(
                    broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=5), version
    controller = M.ControllerRegistrationRequest
    for version in of("ControllerRegistration"):
        yield "register controller", controller(
            controller_id=9, incarnation_id=ID,
            listeners=[controller.Listener(name="CONTROLLER", host="h", port=1)],
            features=[controller.Feature(
                name="metadata.version", min_supported_version=1, max_supported_version=100)]), version


def play(address: str, cluster_id: str) -> list[tuple[str, Any]]:
    with connect_sync(address) as connection:
        versions = dict(connection.versions)
    client, answers = Client(address), []
    for label, message, version in steps(cluster_id, versions):
        response = client.ask(message, version)
        shown = response if isinstance(response, str) else normal(kwire.to_json(response.message, version))
        answers.append((f"{label} v{version}", shown))
    return answers


def normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: normal(inner) for name, inner in value.items() if name not in EXEMPT}
    return sorted(map(normal, value), key=repr) if isinstance(value, list) else value


@pytest.mark.parametrize(("release", "level"), [
    ("3.3.2", "3.3-IV3"), ("3.9.1", "3.9-IV0"), ("4.3.0", "3.5-IV2"), ("4.3.0", "4.3-IV0"), ("4.4.0", "4.4-IV2")])
def test_answers_are_those_of_a_real_controller(release: str, level: str, tmp_path: Path) -> None:
    with Fleet(release, levels=formatted(release, level)) as fleet:
        ours = play(fleet.bootstrap_controllers, fleet.cluster.cluster_id)
    options = broker.Options(release, tmp_path, heap="256m", c1=True, format_arguments=["--release-version", level])
    with broker.start(options) as state:
        real = play(f"127.0.0.1:{state.controller_ports[0]}", state.cluster_id)
    assert len(ours) > 30
    assert [(mine, theirs) for mine, theirs in zip(ours, real, strict=True) if mine != theirs] == []
