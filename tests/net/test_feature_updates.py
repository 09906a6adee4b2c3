"""Feature levels read and changed: the requests that go out, and what is made of the responses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kwire import KwireError, UnsupportedVersionError, messages, schema
from kwire.net import (
    BrokerConnectionError,
    BrokerTimeoutError,
    Cluster,
    FeatureMetadata,
    FeatureUpdate,
    FeatureUpdateError,
    RequestRefusedError,
)
from tests.net.fake import Broker, cluster_answer, of_release, run
from tests.net.features import Node

pytestmark = pytest.mark.quick

UP = {"group.version": FeatureUpdate(1)}


@pytest.mark.parametrize(
    ("arguments", "upgrade_type", "level"),
    [
        ((1,), 1, 1),
        ((0, "SAFE"), 2, 0),
        ((3, "UNSAFE"), 3, 3),
        ((0, "NONE", True), 2, 0),
        ((1, "UNSAFE", True), 3, 1),
        ((2, "NONE", False), 1, 2),
        (("GV_1",), 1, 1),
    ],
)
def test_a_feature_update(arguments: tuple[Any, ...], upgrade_type: int, level: int) -> None:
    update = FeatureUpdate(*arguments)
    assert (update.upgrade_type, update.level_of("group.version")) == (upgrade_type, level)


def test_names_of_levels() -> None:
    assert FeatureUpdate("4.3-IV0").level_of("metadata.version") == 30
    assert FeatureUpdate("4.0").level_of("metadata.version") == 25
    assert FeatureUpdate("TV_2").level_of("transaction.version") == 2
    for feature, name in (("metadata.version", "4.3-IV9"), ("transaction.version", "GV_1"), ("nope", "TV_2")):
        with pytest.raises(UnsupportedVersionError, match="unknown"):
            FeatureUpdate(name).level_of(feature)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "level 0 disables the feature: SAFE or UNSAFE is needed"),
        ((-1, "SAFE"), ValueError, "expected 0 to 32,767, found -1"),
        ((1 << 15,), ValueError, "found 32768"),
        ((True,), TypeError, "not True"),
        ((1.5,), TypeError, "not 1.5"),
        ((1, "safe"), ValueError, "NONE, SAFE or UNSAFE, not 'safe'"),
        ((1, "SAFE", False), ValueError, "contradicts"),
    ],
)
def test_an_invalid_feature_update(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FeatureUpdate(*arguments)


def test_described() -> None:
    node = Node({"metadata.version": (7, 30), "kraft.version": (0, 1)}, {"metadata.version": 25}, epoch=7)

    async def work() -> None:
        async with node, Cluster(node.address) as cluster:
            assert await cluster.describe_features() == FeatureMetadata(
                {"metadata.version": 25}, {"metadata.version": (7, 30), "kraft.version": (0, 1)}, 7
            )
            node.finalized, node.epoch = {"metadata.version": 26}, 9  # it asks each time
            assert (await cluster.describe_features(1)).finalized == {"metadata.version": 26}
            with pytest.raises(BrokerConnectionError, match="no broker 5 in the cluster, which has: 1"):
                await cluster.describe_features(5)

    run(work())


def test_a_broker_before_2_7_has_no_features() -> None:
    broker = Broker(of_release("2.3"), old=True)
    broker.answer = cluster_answer(broker)

    async def work() -> None:
        async with broker, Cluster(broker.address) as cluster:
            assert await cluster.describe_features() == FeatureMetadata({}, {}, -1)
            with pytest.raises(UnsupportedVersionError, match="the broker does not support UpdateFeatures"):
                await cluster.update_features(UP)

    run(work())


def test_another_broker_describes_when_the_first_is_gone() -> None:
    first, second = Broker(of_release("4.3")), Node({}, {"group.version": 1})
    second._answer = cluster_answer(first, second)  # type: ignore[method-assign]
    second.answer = cluster_answer(first, second)

    async def work() -> None:
        async with first, second, Cluster(second.address, lazy=True) as cluster:
            assert (first.connections, second.connections) == (0, 1)  # lazy
            await first.__aexit__()
            second.drop()
            while cluster.connection(2).is_open:
                await asyncio.sleep(0.01)
            assert cluster.brokers[0].port == first.port  # which is tried first, now that none is open
            assert (await cluster.describe_features()).finalized == {"group.version": 1}
            with pytest.raises(BrokerConnectionError, match="refused"):
                await cluster.describe_features(1)

    run(work())


@pytest.mark.parametrize("newest", [0, 1, 2])
def test_requests_of_each_version(newest: int) -> None:
    node = Node({}, {}, versions=(0, newest))
    updates = {"a": FeatureUpdate(1), "b": FeatureUpdate(0, "SAFE"), "metadata.version": FeatureUpdate("4.0-IV3")}

    async def work() -> None:
        async with node, Cluster(node.address) as cluster:
            assert await cluster.update_features(updates) == dict.fromkeys(updates)
            unsafe = {"c": FeatureUpdate(2, "UNSAFE")}
            if newest:
                assert await cluster.update_features(unsafe, dry_run=True) == {"c": None}
            else:  # nothing is sent
                with pytest.raises(UnsupportedVersionError, match=r"an unsafe downgrade \('c'\) needs UpdateFeatures"):
                    await cluster.update_features(unsafe)
                with pytest.raises(UnsupportedVersionError, match="a dry run needs UpdateFeatures") as caught:
                    await cluster.update_features(updates, dry_run=True)
                assert (caught.value.needed, caught.value.offered) == ((1, 2), (0, 0))

    run(work())
    first, *more = node.asked("UpdateFeatures")
    assert first.version == newest and len(more) == (1 if newest else 0)
    rows = [(r.feature, r.max_version_level, r.allow_downgrade, r.upgrade_type) for r in first.message.feature_updates]
    if newest:
        assert rows == [("a", 1, False, 1), ("b", 0, False, 2), ("metadata.version", 25, False, 1)]
        assert (more[0].message.validate_only, more[0].message.feature_updates[0].upgrade_type) == (True, 3)
    else:
        assert rows == [("a", 1, False, 1), ("b", 0, True, 1), ("metadata.version", 25, False, 1)]
    assert not first.message.validate_only and first.message.timeout_ms == 30_000


def test_errors_of_features() -> None:
    node = Node({}, {})
    node.refuse("b", 95, "because")
    node.refuse("c", 31, None)
    node.refuse("d", 12_345, None)
    updates = {"a": FeatureUpdate(1), "b": FeatureUpdate(1)}

    async def work() -> None:
        async with node, Cluster(node.address) as cluster:
            results = await cluster.update_features(updates)
            assert [(name, str(error)) for name, error in results.items()] == [
                ("a", "a: INVALID_UPDATE_VERSION: because"), ("b", "b: INVALID_UPDATE_VERSION: because"),
            ]  # fmt: skip
            (error,) = (await cluster.update_features({"c": FeatureUpdate(1)})).values()
            assert isinstance(error, KwireError) and error.code == schema.ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert error.reason == "Cluster authorization failed."
            (error,) = (await cluster.update_features({"d": FeatureUpdate(1)})).values()
            assert str(error) == "d: UNKNOWN_CODE_12345: "
        async with node, Cluster(node.address, deny={"UpdateFeatures": [2]}) as cluster:
            results = await cluster.update_features(updates)
            assert results["a"] is None and str(results["b"]) == "b: INVALID_UPDATE_VERSION: because"

    run(work())


def test_a_response_that_lacks_a_feature() -> None:
    node = Node({}, {}, versions=(0, 1))
    row = messages.UpdateFeaturesResponse.UpdatableFeatureResult
    results = [row(feature="other", error_code=1), row(feature="a")]
    node._update = lambda request: messages.UpdateFeaturesResponse(results=results)  # type: ignore[method-assign]

    async def work() -> None:
        async with node, Cluster(node.address) as cluster:
            found = await cluster.update_features({"a": FeatureUpdate(1), "b": FeatureUpdate(1)})
            assert found["a"] is None and set(found) == {"a", "b"}
            assert isinstance(found["b"], FeatureUpdateError) and "did not contain a result" in found["b"].reason
            results.clear()
            assert await cluster.update_features({"a": FeatureUpdate(1)}) != {"a": None}

    run(work())


@pytest.mark.parametrize("name", ["x" * 40_000, "\udcff"])
def test_a_name_that_cannot_be_sent(name: str) -> None:
    node = Node({}, {})

    async def work() -> None:
        async with node, Cluster(node.address) as cluster:
            with pytest.raises(KwireError):
                await cluster.update_features({name: FeatureUpdate(1)})
            assert await cluster.update_features(UP) == {"group.version": None}  # on the same connection

    run(work())
    assert node.connections == 1


def test_what_is_wrong_before_a_request() -> None:
    node = Node({}, {})

    async def work() -> None:
        async with node, Cluster(node.address) as cluster:
            for updates, message in ((dict[str, FeatureUpdate](), "no feature"), ({" ": FeatureUpdate(1)}, "empty")):
                with pytest.raises(ValueError, match=message):
                    await cluster.update_features(updates)

    run(work())
    assert not node.asked("UpdateFeatures")


def test_the_controller_is_asked_until_it_is_one() -> None:
    node = Node({}, {})
    node.moved = 3

    async def work() -> None:
        async with node, Cluster(node.address) as cluster:
            assert await cluster.update_features(UP) == {"group.version": None}
        assert len(node.asked("UpdateFeatures")) == 4
        node.moved = 1_000_000
        async with node, Cluster(node.address, timeout=0.5) as cluster:
            with pytest.raises(BrokerConnectionError, match="refuses UpdateFeatures: NOT_CONTROLLER"):
                await cluster.update_features(UP)

    run(work())


def test_controllers() -> None:
    """The address is a controller's that does not lead: the request goes to the one that does (KIP-919)."""
    follower, leader = Node({}, {}, controller=True), Node({"a": (0, 3)}, {"a": 2}, controller=True)

    async def work() -> None:
        async with leader, follower:
            follower.leader = leader
            async with Cluster(follower.address, controllers=True) as cluster:
                assert {broker.port for broker in cluster.brokers} == {follower.port, leader.port}
                assert cluster.controller is not None
                assert cluster.brokers[cluster.controller].port == leader.port
                assert (await cluster.describe_features()).finalized == {"a": 2}
                follower_id = next(broker.id for broker in cluster.brokers if broker.port == follower.port)
                assert (await cluster.describe_features(follower_id)).finalized == {}
                assert await cluster.update_features({"a": FeatureUpdate(3)}) == {"a": None}
                leader.moved, leader.leader = 1, follower  # the quorum elects another
                follower.leader = follower
                assert await cluster.update_features({"a": FeatureUpdate(3)}) == {"a": None}
                assert len(follower.asked("UpdateFeatures")) == 1

    run(work())
    assert {request.message.endpoint_type for request in follower.asked("DescribeCluster")} == {2}


def test_a_quorum_without_a_leader() -> None:
    node = Node({}, {}, controller=True)
    row = messages.DescribeClusterResponse.DescribeClusterBroker

    async def work() -> None:
        async with node:
            node.answer = lambda _: messages.DescribeClusterResponse(
                cluster_id="c", controller_id=-1, brokers=[row(broker_id=0, host="127.0.0.1", port=node.port)]
            )
            async with Cluster(node.address, controllers=True, timeout=0.4) as cluster:
                for call in (cluster.update_features(UP), cluster.describe_features()):
                    with pytest.raises(BrokerConnectionError, match="no controller is known"):
                        await call

    run(work())


def test_brokers_are_no_controllers_and_the_other_way_round() -> None:
    broker, controller = Broker(of_release("4.3")), Node({}, {}, controller=True)
    broker.answer = lambda _: messages.DescribeClusterResponse(error_code=114, cluster_id="", error_message="x")

    async def work() -> None:
        async with broker, controller:
            with pytest.raises(RequestRefusedError, match="a broker, not a controller"):
                async with Cluster(f"{broker.address},{controller.address}", controllers=True):
                    pass
            with pytest.raises(RequestRefusedError, match="a controller, not a broker"):
                async with Cluster(controller.address):
                    pass
            broker.answer = lambda _: messages.DescribeClusterResponse(error_code=31, cluster_id="")
            with pytest.raises(RequestRefusedError, match="DescribeCluster: CLUSTER_AUTHORIZATION_FAILED: Cluster a"):
                async with Cluster(broker.address, controllers=True):
                    pass
            broker.ranges["DescribeCluster"] = (0, 0)  # before 3.7
            with pytest.raises(UnsupportedVersionError, match="cannot send DescribeCluster: endpoint_type needs"):
                async with Cluster(broker.address, controllers=True):
                    pass

    run(work())


@pytest.mark.parametrize("garbage", [b"", b"\0\0\0\1", b"\0\0\0\1" + b"\xff" * 40])
def test_garbage_is_one_clear_error(garbage: bytes) -> None:
    node = Node({}, {})

    async def work() -> None:
        async with node, Cluster(node.address, timeout=1.5) as cluster:
            node._update = lambda _: garbage  # type: ignore[method-assign]
            with pytest.raises(BrokerConnectionError) as caught:
                await cluster.update_features(UP)
            assert node.address in str(caught.value)

    run(work())


def test_a_silent_controller() -> None:
    node = Node({}, {})
    node._update = lambda _: None  # type: ignore[method-assign]

    async def work() -> None:
        async with node, Cluster(node.address, timeout=0.3) as cluster:
            async with asyncio.timeout(5):
                with pytest.raises(BrokerTimeoutError, match=r"no answer within 0\.3 s"):
                    await cluster.update_features(UP)

    run(work())
