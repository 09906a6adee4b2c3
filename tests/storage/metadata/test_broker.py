"""Real brokers: their metadata logs as images, and a rewritten snapshot from which one boots."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kwire.messages import CreateTopicsRequest, IncrementalAlterConfigsRequest
from kwire.net import connect_sync
from kwire.schema import metadata_version
from kwire.storage.metadata import ClusterImage, metadata_log
from tools.kafka import broker
from tools.kafka.maven import MissingTool

pytestmark = pytest.mark.java

# release, nodes, the level that it is formatted with, the level to go down to, whether that is lossless
CASES = [
    ("4.3.0", 1, "4.2-IV1", "4.0-IV1", True), ("4.3.0", 3, "4.2-IV1", "4.0-IV3", True),
    ("4.4.0", 1, "4.2-IV1", "4.1-IV0", True), ("3.9.1", 1, "3.9-IV0", "3.7-IV2", True),
    ("4.3.0", 1, "4.3-IV0", "3.9-IV0", False), ("4.4.0", 1, "4.4-IV2", "3.3-IV3", False),
]  # fmt: skip


def _start(options: broker.Options) -> broker.Running:
    try:
        return broker.start(options)
    except MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)


def _fill(state: broker.Running) -> None:
    """Topics with partitions, and a config of one."""
    topics = CreateTopicsRequest.CreatableTopic
    configs = IncrementalAlterConfigsRequest
    with connect_sync(state.bootstrap.split(",")[0]) as connection:
        made = connection.send(CreateTopicsRequest(
            topics=[topics(name=name, num_partitions=count, replication_factor=1)
                    for name, count in (("one", 1), ("many", 20))], timeout_ms=30_000))
        assert [topic.error_code for topic in made.topics] == [0, 0], made
        changed = connection.send(configs(resources=[configs.AlterConfigsResource(
            resource_type=2, resource_name="one",
            configs=[configs.AlterableConfig(name="retention.ms", config_operation=0, value="123456")])]))
        assert changed.responses[0].error_code == 0, changed


def _finalized(state: broker.Running) -> dict[str, int]:
    """The levels that the broker says are finalized."""
    from kwire.messages import ApiVersionsRequest

    with connect_sync(state.bootstrap.split(",")[0]) as connection:
        answer = connection.send(ApiVersionsRequest(client_software_name="kwire", client_software_version="1"))
    return {feature.name: feature.max_version_level for feature in answer.finalized_features}


def _put_in_place(data: Path, snapshot: str) -> None:
    """As docs/metadata.md says: the log and its snapshots away, the rewritten snapshot in."""
    away = data.parent / f"away-{data.name}"  # a broker does not start with other folders in its log directory
    away.mkdir()
    log = data / metadata_log.FOLDER
    for file in log.iterdir():
        if file.suffix in (".log", ".index", ".timeindex", ".snapshot", ".checkpoint"):
            shutil.move(file, away)
    shutil.copy(snapshot, log)


@pytest.mark.parametrize(("release", "nodes", "level", "target", "lossless"), [
    pytest.param(*row, marks=pytest.mark.soak if number else ()) for number, row in enumerate(CASES)
])
def test_a_broker_boots_from_a_rewritten_snapshot(
    release: str, nodes: int, level: str, target: str, lossless: bool, tmp_path: Path
) -> None:
    options = broker.Options(release, tmp_path / "broker", nodes=nodes, heap="256m", c1=True, wait=240,
                             format_arguments=["--release-version", level])
    with _start(options) as state:
        _fill(state)
        assert _finalized(state)["metadata.version"] == metadata_version(level).level
    folders = [tmp_path / "broker" / f"data{node}" for node in range(1, nodes + 1)]
    before = max(map(ClusterImage.read, folders), key=lambda image: image.offset)
    assert before.metadata_version == metadata_version(level).level
    assert len(before.topics["many"].partitions) == 20 and before.configs[2, "one"] == {"retention.ms": "123456"}

    forecast, losses = before.downgrade(target, unsafe=not lossless)
    assert bool(losses) != lossless
    if lossless:
        assert [change.key for change in before.diff(forecast)] == ["metadata.version"]
    snapshot = forecast.write_snapshot(tmp_path)
    for data in folders:
        _put_in_place(data, snapshot)
        assert ClusterImage.read(snapshot) == ClusterImage.read(data) == forecast

    options.restart = True
    with _start(options) as state:
        assert _finalized(state)["metadata.version"] == metadata_version(target).level
    after = max(map(ClusterImage.read, folders), key=lambda image: image.offset)
    assert after.offset > forecast.offset
    # the broker has registered again and leads its partitions again; the rest is as forecast
    assert {change.record for change in forecast.diff(after)} <= {
        "RegisterBrokerRecord", "RegisterControllerRecord", "PartitionRecord", "ProducerIdsRecord"}
    assert after.features == forecast.features and after.configs == forecast.configs
    assert after.topics.keys() == forecast.topics.keys()
    for name, topic in after.topics.items():
        for number, partition in topic.partitions.items():
            other = forecast.topics[name].partitions[number]
            assert partition.replicas == other.replicas
            assert partition.directories == other.directories or not lossless  # the broker says them again
            assert partition.leader_epoch >= other.leader_epoch


@pytest.mark.soak
@pytest.mark.parametrize("release", ["3.0.2", "3.2.3"])
def test_the_log_of_a_preview_broker(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker.Options, "kraft", property(lambda self: True))
    options = broker.Options(release, tmp_path / "broker", heap="256m", c1=True, static=True)
    with _start(options) as state:
        _fill(state)
    image = ClusterImage.read(tmp_path / "broker" / "data1")
    assert image == ClusterImage.read(tmp_path / "broker" / "data1", release=release)
    assert image.features == {} and image.configs == {(2, "one"): {"retention.ms": "123456"}}
    assert {name: len(topic.partitions) for name, topic in image.topics.items()} == {"one": 1, "many": 20}
