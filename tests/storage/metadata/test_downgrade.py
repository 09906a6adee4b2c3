"""Downgrades: the table of levels, what is refused, and the records and losses of Kafka's own writer."""

from __future__ import annotations

import copy
import doctest
import gc
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire import messages as m
from kwire.schema import metadata_version, metadata_versions
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.metadata import ClusterImage, Downgrade, DowngradeError, Loss, is_lossless, levels
from kwire.storage.metadata.image_json import MECHANISM_NAMES
from tests.storage.metadata.records import ELR, Cluster, canonicals, framed, image_of
from tests.storage.metadata.test_snapshots import goldens
from tools.kafka.images import ImageOracle
from tools.kafka.maven import MissingTool

# the release whose classes write a level: 4.x does not have those below 3.3-IV3
WRITERS = {"4.4.0": range(7, 35), "4.3.0": range(7, 31), "3.9.1": range(1, 7)}


@pytest.fixture(scope="module")
def oracles() -> Iterator[dict[str, ImageOracle]]:
    with ExitStack() as stack:
        try:
            yield {release: stack.enter_context(ImageOracle(release)) for release in WRITERS}
        except MissingTool as missing:
            pytest.fail(str(missing), pytrace=False)


def kafka_losses(losses: list[Loss]) -> list[str]:
    """Our losses as the texts that Kafka gives its loss handler: one for all controllers, SCRAM users, tokens."""
    fields = {
        "cordoned_log_dirs": "the cordoned log directories of one or more brokers",
        "log_dirs": "the online log directories of one or more brokers",
        "is_migrating_zk_broker": "the isMigratingZkBroker state of one or more brokers",
        "in_controlled_shutdown": "the inControlledShutdown state of one or more brokers",
        "directories": "the directory assignment state of one or more replicas",
    }
    texts = [fields[loss.field] for loss in losses if loss.field in fields]
    names: dict[str, list[Any]] = {type(loss.record).__name__: loss.value for loss in losses if loss.field is None}
    if "RegisterControllerRecord" in names:
        texts.append("controller registration data")
    if "UserScramCredentialRecord" in names:
        users: dict[int, list[str]] = {}
        for one in names["UserScramCredentialRecord"]:
            users.setdefault(one.mechanism, []).append(one.name)
        texts.append("scram " + repr({MECHANISM_NAMES[kind]: sorted(found) for kind, found in sorted(users.items())}))
    if "DelegationTokenRecord" in names:
        texts.append("tokens " + repr(sorted(one.token_id for one in names["DelegationTokenRecord"])))
    if "FeatureLevelRecord" in names:
        texts.append("feature flag(s): " + ", ".join(sorted(one.name for one in names["FeatureLevelRecord"])))
    return sorted(texts)


def as_ours(text: str) -> str:
    """One of Kafka's texts; of what it lists from hash maps in one order."""
    if text.startswith("ScramImage({"):
        parts = [part.split(":") for part in text[12:].removesuffix("})").split("},{") if part]
        return "scram " + repr({kind.replace("_", "-"): sorted(names.split(", ")) for kind, names in sorted(parts)})
    if text.startswith("DelegationTokenImage("):
        return "tokens " + repr(sorted(text[21:-1].split(", ")))
    return text


def as_lowered(records: list[bytes], result: Downgrade) -> list[bytes]:
    """Kafka's records with the features lowered that lack what they need: its writer leaves them as they are."""
    changed = []
    for record in records:
        message, version = kwire.decode_metadata_record(record)
        if type(message).__name__ == "FeatureLevelRecord" and message.name in result.lowered:
            message.feature_level = result.lowered[message.name][1]
        changed.append(kwire.encode_metadata_record(message, version))
    return changed


def check(image: ClusterImage, oracles: dict[str, ImageOracle], releases: list[str]) -> int:
    """Compare the image with Kafka's writers at every level; the number of levels."""
    count = 0
    source = framed(image)
    below = image if image.metadata_version < 21 else image.downgrade(21, unsafe=True).image  # 3.9 can read it
    below.tables.configs = {  # but for configs of groups
        resource: settings for resource, settings in below.tables.configs.items() if resource[0] != 32}
    for release in releases:
        for level in WRITERS[release]:
            if level > image.metadata_version:
                break
            given, records = (below, framed(below)) if release == "3.9.1" else (image, source)
            result = given.downgrade(level, unsafe=True)
            eligible = given.features.get(ELR, 0) > 0 and ELR not in result.lowered
            written = oracles[release].write(records, level, eligible=eligible)
            place = f"{release} at level {level}"
            assert canonicals(framed(result.image)) == canonicals(as_lowered(written.records, result)), place
            ours = [loss for loss in result.losses if loss.field not in ("eligible_leader_replicas", "last_known_elr")]
            assert kafka_losses(ours) == sorted(map(as_ours, written.losses)), place
            assert len(ours) == len(written.losses), place
            count += 1
    return count


@pytest.mark.java
def test_golden_snapshots_at_every_level_are_as_kafka_writes_them(
    golden: Path, oracles: dict[str, ImageOracle]
) -> None:
    files = [file for file in goldens(golden) if "data2" not in str(file) and "data3" not in str(file)]
    images = [image for file in files if (image := ClusterImage.read(file)).metadata_version]
    assert len(images) == 7
    assert sum(check(image, oracles, ["4.3.0", "3.9.1"]) for image in images) == 7 * (24 + 6)
    assert check(images[2], oracles, ["4.4.0"]) == 24


@pytest.mark.java
def test_images_with_all_there_is_at_every_level(oracles: dict[str, ImageOracle]) -> None:
    for seed in range(4):
        image = image_of(list(Cluster(seed).records(200)))
        assert check(image, oracles, ["4.4.0", "3.9.1"]) == 27 + 6


def test_the_example_of_the_kip() -> None:
    done = doctest.testmod(levels)
    assert done.attempted >= 6 and done.failed == 0


quick = pytest.mark.quick


@quick
def test_the_counts_on_the_golden_snapshot(golden: Path) -> None:
    image = ClusterImage.read(next(file for file in goldens(golden) if "0255-" in file.name))
    assert len(framed(image)) == 107
    found = {}
    for level in ("4.2-IV1", "3.6-IV2", "3.5-IV1"):
        result, losses = image.downgrade(level, unsafe=True)
        found[level] = len(framed(result)), len(losses)
    assert found == {"4.2-IV1": (107, 1), "3.6-IV2": (106, 44), "3.5-IV1": (102, 46)}
    losses = image.downgrade("3.5-IV1", unsafe=True).losses
    assert Counter((type(loss.record).__name__, loss.field) for loss in losses) == {
        ("PartitionRecord", "directories"): 41, ("RegisterBrokerRecord", "log_dirs"): 1,
        ("RegisterBrokerRecord", "cordoned_log_dirs"): 1, ("RegisterControllerRecord", None): 1,
        ("UserScramCredentialRecord", None): 1, ("DelegationTokenRecord", None): 1,
    }  # fmt: skip
    for loss in losses:
        if loss.field is not None:
            assert loss.value == getattr(loss.record, loss.field) and [*loss.each()] == [loss.record]
    users = next(loss for loss in losses if type(loss.record).__name__ == "UserScramCredentialRecord")
    assert [one.name for one in users.value] == ["admin", "alice", "bob"] == [one.name for one in users.each()]
    assert users.record is users.value[0]


@quick
def test_lossless_is_a_matter_of_the_table_alone() -> None:
    rows = metadata_versions()
    for high in rows:
        for low in rows:
            if low.level <= high.level:
                wanted = not [row for row in rows if low.level < row.level <= high.level and row.changed]
                assert is_lossless(high.level, low.level) == wanted
                image = image_of([m.FeatureLevelRecord(name="metadata.version", feature_level=high.level)])
                if wanted:
                    assert image.downgrade(low.level).losses == []
                else:  # nothing of this image would go
                    with pytest.raises(DowngradeError, match="of this image nothing") as caught:
                        image.downgrade(low.level)
                    assert caught.value.losses == [] and caught.value.lowered == {}
                    assert image.downgrade(low.name, unsafe=True).losses == []


@quick
def test_a_lossless_downgrade_changes_one_record(golden: Path) -> None:
    images = [image_of(list(Cluster(3).records(300, level=31)))]  # 31 to 30 is lossless
    images += [ClusterImage.read(file).downgrade(29, unsafe=True).image
               for file in goldens(golden) if "0255" in file.name]
    for image, target in zip(images, (30, 25), strict=True):
        before = framed(image)
        result = image.downgrade(target)
        assert result.losses == [] and result.lowered == {}
        changed = [(one, other) for one, other in zip(before, framed(result.image), strict=True) if one != other]
        assert len(changed) == 1
        message, _ = kwire.decode_metadata_record(changed[0][1])
        assert (message.name, message.feature_level) == ("metadata.version", target)
        assert framed(image) == before, "the image itself does not change"
        assert (result.image.offset, result.image.epoch) == (image.offset, image.epoch)


@quick
def test_a_feature_that_needs_a_higher_level_is_lowered_only_if_unsafe() -> None:
    topic = UUID(int=4)
    image = image_of([
        m.FeatureLevelRecord(name="metadata.version", feature_level=29),
        m.FeatureLevelRecord(name=ELR, feature_level=1), m.FeatureLevelRecord(name="group.version", feature_level=1),
        m.TopicRecord(name="t", topic_id=topic),
        m.PartitionRecord(partition_id=0, topic_id=topic, replicas=(1, 2), isr=(1,), leader=1,
                          eligible_leader_replicas=(2,), last_known_elr=()),
    ])  # fmt: skip
    assert image.downgrade(23).lowered == {}
    with pytest.raises(DowngradeError, match=f"{ELR} 1 does not work with it and would be lowered to 0") as caught:
        image.downgrade(22)
    assert caught.value.lowered == {ELR: (1, 0)} and len(caught.value.losses) == 1
    result, losses = downgrade = image.downgrade(22, unsafe=True)
    assert downgrade.lowered == {ELR: (1, 0)} and result.features == {"metadata.version": 22, "group.version": 1}
    assert [(loss.field, loss.value) for loss in losses] == [("eligible_leader_replicas", (2,))]
    features = [one for one, _ in result.records() if type(one).__name__ == "FeatureLevelRecord"]
    assert [one.feature_level for one in features] == [22, 0, 1]
    assert result.topics["t"].partitions[0].eligible_leader_replicas is None
    assert image.topics["t"].partitions[0].eligible_leader_replicas == (2,)
    assert result.diff(image_of([one for one, _ in result.records()])) == []


@quick
def test_eligible_replicas_without_their_feature_are_not_written() -> None:
    """As Kafka's PartitionRegistration.toRecord: they have no effect, so nothing is lost."""
    topic = UUID(int=4)
    image = image_of([
        m.FeatureLevelRecord(name="metadata.version", feature_level=29), m.TopicRecord(name="t", topic_id=topic),
        m.PartitionRecord(partition_id=0, topic_id=topic, replicas=(1, 2), isr=(1,), leader=1, last_known_elr=(2,)),
    ])  # fmt: skip
    assert [*image.records()][-1][0].last_known_elr is None
    result, losses = image.downgrade(22, unsafe=True)
    assert losses == [] and result.topics["t"].partitions[0].last_known_elr is None


@quick
def test_dependencies_pull_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"a": {1: {"metadata.version": 5}, 2: {"metadata.version": 9}}, "b": {1: {"a": 1}, 2: {"a": 2}},
             "c": {1: {"b": 2}}, "d": {}}
    monkeypatch.setattr(levels, "_dependencies", lambda name: needs[name])
    start = {"metadata.version": 9, "a": 2, "b": 2, "c": 1, "d": 7}
    assert levels.lowered_features(start) == {}
    assert levels.lowered_features({**start, "metadata.version": 8}) == {"a": 1, "b": 1, "c": 0}
    assert levels.lowered_features({**start, "metadata.version": 4}) == {"a": 0, "b": 0, "c": 0}


@quick
def test_names_of_features_are_not_kept() -> None:
    """Each name in an image that was looked at stayed in a cache for ever."""

    class Name(str):
        pass

    name = Name("some.version")
    known = weakref.ref(name)
    assert levels.lowered_features({METADATA_VERSION: 25, name: 1}) == {}
    del name
    gc.collect()
    assert known() is None


def test_levels_that_are_no_downgrade() -> None:
    image = image_of([m.FeatureLevelRecord(name="metadata.version", feature_level=25)])
    assert image.downgrade(25).image == image and image.downgrade("4.0").losses == []
    for higher in (26, "4.1-IV0", "4.4"):
        with pytest.raises(DowngradeError, match=r"is not below the 25 \(4\.0-IV3\) of the image"):
            image.downgrade(higher, unsafe=True)
    for unknown in (0, 99, -1, "4.0-IV9", "x", ""):
        with pytest.raises(kwire.UnsupportedVersionError, match=r"metadata\.version"):
            image.downgrade(unknown, unsafe=True)
    with pytest.raises(kwire.UnsupportedVersionError, match="before KRaft"):
        image.downgrade("2.8-IV1", unsafe=True)
    newer = image_of([m.FeatureLevelRecord(name="metadata.version", feature_level=99)])
    with pytest.raises(kwire.UnsupportedVersionError, match=r"unknown metadata\.version 99"):
        newer.downgrade(25, unsafe=True)


@quick
def test_below_feature_level_records_nothing_says_the_level() -> None:
    image = image_of([m.FeatureLevelRecord(name="metadata.version", feature_level=7), m.TopicRecord(name="t")])
    result, losses = image.downgrade("3.2-IV0", unsafe=True)
    assert losses == [] and result.metadata_version is None and len(framed(result)) == 1
    assert metadata_version(4).name == "3.3-IV0" and image.downgrade(4, unsafe=True).image.metadata_version == 4


@quick
def test_the_zookeeper_migration_state() -> None:
    level = m.FeatureLevelRecord(name="metadata.version", feature_level=21)
    for state, lost in ((0, 0), (2, 1)):
        image = image_of([level, m.ZkMigrationStateRecord(zk_migration_state=state)])
        assert len(framed(image.downgrade(8, unsafe=True).image)) == 2
        result, losses = image.downgrade(7, unsafe=True)
        assert len(framed(result)) == 1 and len(losses) == lost


@quick
def test_copies_are_independent() -> None:
    """The tables of a downgraded image are its own: changing a copy changes nothing else."""
    image = image_of(list(Cluster(5).records(200)))
    before = framed(copy.deepcopy(image))
    result = image.downgrade(7, unsafe=True).image
    result.tables.topics.clear()
    result.tables.configs.clear()
    assert framed(image) == before
