"""Finalized feature levels (KIP-584, KIP-778): what they allow, which versions are sent, and when they change."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import Any

import pytest

import kwire
from kwire import UnsupportedVersionError, messages, schema
from kwire.net import FEATURES, BrokerConnectionError, Cluster, Feature, connect, connect_sync
from kwire.net.api_versions import FinalizedLevels, NodeApiVersions, assumed_versions, newest_levels
from kwire.net.negotiation import Chooser, is_refused
from kwire.net.required_versions import LEVEL_RULES
from kwire.schema import Versions
from tests.net.fake import Broker, cluster_answer, finalized, of_release, run, serving
from tools.places import ROOT

pytestmark = pytest.mark.quick

# of a 4.3 cluster as it is formatted by default, and after an upgrade from 3.3 whose levels nobody raised
NEW = {"metadata.version": 30, "transaction.version": 2, "group.version": 1, "share.version": 1, "streams.version": 1,
       "kraft.version": 1, "eligible.leader.replicas.version": 1}  # fmt: skip
OLD = {"metadata.version": 7}
LEVELLED = [
    "delegation-tokens", "scram-users", "consumer-groups", "raft-voters", "server-side-regex", "transactions-v2",
    "eligible-leader-replicas", "share-groups", "streams-groups", "cordoned-log-dirs", "share-dead-letter-queues",
    "cidr-acls", "unregister-controllers",
]  # fmt: skip

END = messages.EndTxnRequest(transactional_id="t", producer_id=1)
COMMIT = messages.TxnOffsetCommitRequest(transactional_id="t", group_id="g", producer_id=1)


def produce(transactional_id: str | None = None, **topic: Any) -> Any:
    request = messages.ProduceRequest
    batch = kwire.build_batch([(0, None, b"v")])
    row = request.TopicProduceData(**topic or {"name": "t"})
    row.partition_data = [request.PartitionProduceData(records=batch)]
    return request(acks=1, transactional_id=transactional_id, topic_data=[row])


def chooser(levels: dict[str, int], release: str = "4.3", epoch: int = 5, **keywords: Any) -> Chooser:
    ranges = {row.key: Versions(row.min_version, row.max_stable_version) for row in schema.apis(release)}
    return Chooser(NodeApiVersions(ranges, finalized=levels, epoch=epoch), where="b:1", **keywords)


@pytest.mark.parametrize(
    ("levels", "wanted"),
    [
        (NEW, (5, 5, 12, 12)), ({"transaction.version": 1}, (4, 4, 11, 12)), (OLD, (4, 4, 11, 12)),
        ({"transaction.version": 3}, (5, 5, 12, 12)),
    ],
)  # fmt: skip
def test_versions_of_transactions_follow_the_level(levels: dict[str, int], wanted: tuple[int, ...]) -> None:
    """As Kafka's builders of these requests: a Produce without transaction is not limited."""
    choose = chooser(levels)
    found = (choose.version_for(END), choose.version_for(COMMIT), choose.version_for(produce("t")),
             choose.version_for(produce()))  # fmt: skip
    assert found == wanted
    assert (choose.newest("EndTxn"), choose.newest("TxnOffsetCommit"), choose.newest("Produce")) == (*wanted[:2], 13)


def test_unknown_levels_count_as_0_as_in_kafkas_clients() -> None:
    for choose in (chooser(NEW | {"transaction.version": 0}), chooser({}, epoch=-1), Chooser(assumed_versions("4.3"))):
        assert (choose.version_for(END), choose.version_for(produce("t")), choose.version_for(produce())) == (4, 11, 12)


def test_brokers_without_the_newer_versions_are_not_limited() -> None:
    choose = chooser({}, "2.8", epoch=-1)
    assert (choose.version_for(END), choose.version_for(COMMIT), choose.version_for(produce("t"))) == (3, 3, 9)


def test_errors_name_the_level_needed_and_the_one_found() -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        chooser(OLD).version_for(END, 5)
    assert str(caught.value) == (
        "b:1: cannot send EndTxn: version 5 needs transaction.version 2, the finalized level is 0")
    assert (caught.value.api, caught.value.needed, caught.value.offered) == ("EndTxn", (5, 5), (0, 4))
    with pytest.raises(UnsupportedVersionError, match="the broker gave no finalized levels"):
        chooser({}, epoch=-1).version_for(COMMIT, 5)
    assert chooser(NEW).version_for(END, 5) == 5 and chooser(OLD).version_for(END, 3) == 3
    with pytest.raises(UnsupportedVersionError) as caught:  # a topic id needs 13
        chooser({"transaction.version": 1}).version_for(produce("t", topic_id=uuid.uuid4()))
    assert str(caught.value) == (
        "b:1: cannot send Produce: a topic by its id alone (KIP-516) needs version 13, the broker supports versions "
        "3 to 13; "
        "version 12 and newer need transaction.version 2, the finalized level is 1")
    assert chooser({"transaction.version": 1}).version_for(produce(topic_id=uuid.uuid4())) == 13
    with pytest.raises(UnsupportedVersionError, match="denied versions; version 5 and newer need"):
        chooser(OLD, deny={"EndTxn": range(5)}).version_for(END)
    with pytest.raises(UnsupportedVersionError, match="version 6 needs version 6, the broker supports"):
        chooser(OLD).version_for(END, 6)


def test_a_feature_needs_versions_and_levels() -> None:
    feature = Feature("f", needs={"EndTxn": (5, 9)}, levels={"transaction.version": 2, "made.up": 1}, since="KIP-890")
    versions = {"EndTxn": (0, 5)}
    assert feature.usable(versions) and feature.usable(versions, {"transaction.version": 3, "made.up": 1})
    assert not feature.usable({"EndTxn": (0, 4)}, {"transaction.version": 2, "made.up": 1})
    assert not feature.usable(versions, {"transaction.version": 2}) and not feature.usable(versions, {})
    assert feature.lacking_levels({"transaction.version": 1}) == {"transaction.version": 2, "made.up": 1}
    assert Feature("f", {"EndTxn": (5, 9)}, {"transaction.version": 2, "made.up": 1}, "KIP-890") == feature
    for wrong in ({"levels": "KIP-890"}, {"needs": None}, {"levels": {"a": "2"}}, {"kraft_levels": {1: 2}},
                  {"levels": {"a": True}}):  # fmt: skip
        with pytest.raises(TypeError, match="must be"):
            Feature("f", **wrong)
    assert Feature("only a level", levels={"metadata.version": 25}).usable({}, {"metadata.version": 25})


def test_built_in_features_that_need_levels() -> None:
    assert [name for name, row in FEATURES.items() if row.levels or row.kraft_levels] == LEVELLED
    known = {name: {row.level for row in feature.levels} for name, feature in schema.features().items()}
    for name in LEVELLED:
        for feature, level in {**FEATURES[name].levels, **FEATURES[name].kraft_levels}.items():
            assert level in known[feature], (name, feature)
    versions = {row.name: (row.min_version, row.max_version) for row in schema.apis("4.4")}

    def able(levels: dict[str, int]) -> list[str]:
        return [name for name in LEVELLED if FEATURES[name].usable(versions, levels)]

    of_4_4 = ("share-dead-letter-queues", "cidr-acls", "unregister-controllers")
    assert able(NEW) == [name for name in LEVELLED if name not in of_4_4]
    assert able(OLD) == []
    assert able({}) == ["delegation-tokens", "scram-users"]  # ZooKeeper: no metadata.version
    assert able({"metadata.version": 13}) == ["scram-users"]
    assert able({"metadata.version": 14}) == ["delegation-tokens", "scram-users"]
    assert able(NEW | {"metadata.version": 33, "share.version": 2}) == LEVELLED


@pytest.mark.checkout
def test_the_docs_have_the_same_tables() -> None:
    lines = (ROOT / "docs" / "levels.md").read_text().splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")]
    found = [row for row in rows if row[0] in FEATURES]
    assert [name for name, kip, _ in found if FEATURES[name].since == kip] == LEVELLED
    for name, _, text in found:
        ((feature, level),) = {**FEATURES[name].levels, **FEATURES[name].kraft_levels}.items()
        named = f" ({schema.metadata_version(level).name})" if feature == "metadata.version" else ""
        assert text == f"{feature} {level}{named}" + (", with KRaft" if FEATURES[name].kraft_levels else "")
    limits = {row[0].split()[0]: int(row[1]) + 1 for row in rows if len(row) == 3 and row[1].isdigit()}
    assert limits == {schema.api(key).name: rule.first for key, rule in LEVEL_RULES.items()}


def test_the_newest_epoch_wins() -> None:
    old, new = FinalizedLevels({"a": 2}, 3), FinalizedLevels({"b": 1}, 8)
    assert newest_levels([old, new]) is newest_levels([new, FinalizedLevels(), old]) is new
    assert newest_levels([]) == FinalizedLevels({}, -1) and FinalizedLevels().level("a") == 0


def test_a_connection_tells_the_levels() -> None:
    async def work() -> None:
        async with Broker(of_release("4.3"), levels=NEW, epoch=82) as broker, connect(broker.address) as connection:
            assert (connection.levels, connection.levels_epoch) == (NEW, 82)
            connection.levels.clear()  # a copy
            assert connection.levels == NEW
        for release, levels, epoch in (("4.3", NEW, -1), ("4.3", NEW, -7), ("2.2", NEW, 82)):
            async with (
                Broker(of_release(release), levels=levels, epoch=epoch) as broker,
                connect(broker.address) as connection,
            ):
                assert (connection.levels, connection.levels_epoch) == ({}, -1)
        with pytest.raises(BrokerConnectionError, match="not opened yet"):
            _ = connect("host:1").levels
        with pytest.raises(BrokerConnectionError, match="the cluster is not open"):
            _ = Cluster("host:1").levels

    run(work())


def test_levels_are_asked_for_again_on_request() -> None:
    async def work() -> None:
        async with Broker(of_release("4.3"), levels=OLD, epoch=5) as broker, connect(broker.address) as connection:
            assert connection.version_for(END) == 4
            broker.levels, broker.epoch, broker.requests = NEW, 9, []
            await connection.refresh()
            assert (connection.levels, connection.levels_epoch, connection.version_for(END)) == (NEW, 9, 5)
            assert [request.version for request in broker.requests] == [4]  # as negotiated: 4.3 has no 5
            broker.drop()
            while connection.is_open:
                await asyncio.sleep(0.01)
            broker.requests = []
            await connection.refresh()  # opens it again, which asks
            assert connection.is_open and [request.version for request in broker.requests] == [5, 4]
            await connection.close()
            with pytest.raises(BrokerConnectionError, match="was closed"):
                await connection.refresh()

    run(work())


def test_a_refresh_that_is_not_answered() -> None:
    async def work() -> None:
        async with (
            Broker(of_release("4.3"), levels=OLD) as broker,
            connect(broker.address, timeout=5, probe_timeout=0.1) as connection,
        ):
            negotiate, broker.negotiate = broker.negotiate, lambda _: None
            with pytest.raises(BrokerConnectionError) as caught:
                await connection.refresh()
            assert str(caught.value) == f"{broker.address}: no answer to ApiVersions within 0.1 s"
            assert connection.is_open and connection.levels == OLD
            broker.negotiate = negotiate
            await connection.refresh()

    run(work())


def test_an_assumed_release_is_not_asked_again() -> None:
    async def work() -> None:
        async with Broker(of_release("0.9.0")) as broker:
            broker.negotiate = lambda _: None
            async with connect(broker.address, assume_release="0.9.0.1", probe_timeout=0.1) as connection:
                asked = len(broker.requests)
                await connection.refresh()
                assert connection.assumed == "0.9.0" and len(broker.requests) == asked

    run(work())


def refuses(request: Any) -> Any:
    """Refuses what comes with error 35, each API in its own place."""
    if request.name == "ConsumerGroupDescribe":
        group = messages.ConsumerGroupDescribeResponse.DescribedGroup(error_code=35)
        return messages.ConsumerGroupDescribeResponse(groups=[group])
    if request.name == "AlterUserScramCredentials":
        result = messages.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(user="u", error_code=35)
        return messages.AlterUserScramCredentialsResponse(results=[result])
    if request.name == "Metadata":
        return messages.MetadataResponse()
    return getattr(messages, f"{request.name}Response")(error_code=35)


@pytest.mark.parametrize(
    "message",
    [END, messages.ConsumerGroupHeartbeatRequest(), messages.ConsumerGroupDescribeRequest(group_ids=["g"]),
     messages.AlterUserScramCredentialsRequest(), messages.DescribeClusterRequest()],
)  # fmt: skip
def test_after_error_35_levels_are_asked_for_again(message: Any) -> None:
    """Once, however many requests were refused; the request itself is not repeated."""

    async def work() -> None:
        async with (
            Broker(of_release("4.3"), refuses, levels=NEW, epoch=5) as broker,
            connect(broker.address) as connection,
        ):
            broker.levels, broker.epoch, broker.requests = OLD, 9, []
            answers = await asyncio.gather(*(connection.send(message) for _ in range(5)))
            assert all(is_refused(answer) for answer in answers)
            assert (connection.levels, connection.levels_epoch) == (OLD, 9)
            counts = Counter(request.name for request in broker.requests)
            assert counts == {"ApiVersions": 1, broker.requests[0].name: 5}
            assert connection.version_for(END) == 4
            broker.requests = []
            await connection.send(messages.MetadataRequest(topics=[]))
            assert [request.name for request in broker.requests] == ["Metadata"]

    run(work())


def test_error_35_is_given_even_where_levels_cannot_be_asked_for() -> None:
    async def work() -> None:
        for answer in (lambda _: None, lambda _: broker.drop(), lambda _: b"\0\0\0\1\0"):
            async with (
                Broker(of_release("4.3"), refuses, levels=NEW) as broker,
                connect(broker.address, probe_timeout=0.1) as connection,
            ):
                broker.negotiate = answer
                assert (await connection.send(END)).error_code == 35

    run(work())


def test_what_is_refused() -> None:
    response = messages.TxnOffsetCommitResponse
    partition = response.TxnOffsetCommitResponsePartition
    topics = [response.TxnOffsetCommitResponseTopic(partitions=[partition(), partition(error_code=35)])]
    assert is_refused(response(topics=topics)) and not is_refused(response(topics=topics[:0]))
    assert not is_refused(None) and not is_refused(messages.EndTxnResponse(error_code=42))
    fetched = messages.FetchResponse.FetchableTopicResponse(
        partitions=[messages.FetchResponse.PartitionData(error_code=35)])
    assert not is_refused(messages.FetchResponse(responses=[fetched]))  # no level decides about Fetch


def test_without_async() -> None:
    broker = Broker(of_release("4.3"), levels=OLD, epoch=5)
    with serving(broker), connect_sync(broker.address) as connection:
        assert (connection.levels, connection.levels_epoch, connection.version_for(END)) == (OLD, 5, 4)
        broker.levels, broker.epoch = NEW, 6
        connection.refresh()
        assert (connection.levels, connection.levels_epoch, connection.version_for(END)) == (NEW, 6, 5)
    with pytest.raises(BrokerConnectionError, match="was closed"):
        connection.refresh()


class Brokers:
    """Brokers of one cluster, with levels and epochs of their own, for `async with`."""

    def __init__(self, *rows: tuple[str, dict[str, int], int]) -> None:
        self.all = [Broker(of_release(release), levels=levels, epoch=epoch) for release, levels, epoch in rows]

    async def __aenter__(self) -> list[Broker]:
        for broker in self.all:
            await broker.__aenter__()
        metadata = cluster_answer(*self.all)
        for broker in self.all:
            broker.answer = lambda request: metadata(request) or refuses(request)
        return self.all

    async def __aexit__(self, *_: object) -> None:
        for broker in self.all:
            await broker.__aexit__()


def test_a_cluster_goes_by_the_newest_epoch() -> None:
    """A broker whose own answer is older gets the versions of the newest levels too."""

    async def work() -> None:
        async with (
            Brokers(("4.3", OLD, 5), ("4.3", NEW, 9), ("4.3", {}, -1)) as brokers,
            Cluster(brokers[0].address) as cluster,
        ):
            assert (cluster.levels, cluster.levels_epoch) == (NEW, 9)
            assert cluster.can("transactions-v2") and cluster.can("consumer-groups")
            assert [cluster.connection(node).version_for(END) for node in (1, 2, 3)] == [5, 5, 5]
            assert [cluster.connection(node).levels_epoch for node in (1, 2, 3)] == [5, 9, -1]
            brokers[2].levels, brokers[2].epoch = OLD, 12
            await cluster.send(END, to=3)  # error 35
            assert (cluster.levels, cluster.levels_epoch) == (OLD, 12)
            assert not cluster.can("transactions-v2")
            assert [cluster.connection(node).version_for(END) for node in (1, 2, 3)] == [4, 4, 4]
            brokers[0].levels, brokers[0].epoch = NEW, 15
            await cluster.refresh()
            assert (cluster.levels, cluster.levels_epoch) == (NEW, 15) and cluster.can("share-groups")

    run(work())


def test_a_cluster_in_the_middle_of_a_rolling_upgrade() -> None:
    """3.9 and 4.3: levels are of the cluster, the APIs of every broker."""

    async def work() -> None:
        async with (
            Brokers(("3.9", {"metadata.version": 21, "kraft.version": 1}, 7), ("4.3", {}, -1)) as brokers,
            Cluster(brokers[1].address) as cluster,
        ):
            assert cluster.levels == {"metadata.version": 21, "kraft.version": 1}
            assert cluster.can("raft-voters") and cluster.can("scram-users")
            assert not cluster.can("consumer-groups") and not cluster.can("transactions-v2")
            assert [cluster.connection(node).version_for(END) for node in (1, 2)] == [4, 4]

    run(work())


def test_a_cluster_that_was_made_again_starts_with_a_low_epoch() -> None:
    """The answers of lost connections do not count while others are open (KIP-35)."""

    async def work() -> None:
        async with Brokers(("4.3", NEW, 500), ("4.3", NEW, 500)) as brokers, Cluster(brokers[0].address) as cluster:
            for broker in brokers:
                broker.drop()
                broker.levels, broker.epoch = OLD, 5
            while cluster.connection(1).is_open or cluster.connection(2).is_open:
                await asyncio.sleep(0.01)
            assert cluster.levels_epoch == 500  # of the last time
            await cluster.send(messages.MetadataRequest(topics=[]), to=1)
            assert (cluster.levels, cluster.levels_epoch) == (OLD, 5)
            assert cluster.connection(2).version_for(END) == 4

    run(work())


def test_a_broker_that_cannot_be_reached_has_no_say() -> None:
    async def work() -> None:
        async with Brokers(("4.3", OLD, 5), ("4.3", NEW, 9)) as brokers:
            await brokers[1].__aexit__()
            async with Cluster(brokers[0].address, partial=True) as cluster:
                assert (cluster.levels, cluster.levels_epoch) == (OLD, 5)
                await cluster.refresh()
                assert list(cluster.unreachable) == [2]

    run(work())


@pytest.mark.parametrize("partial", [False, True])
def test_a_broker_that_does_not_answer_a_refresh(partial: bool) -> None:
    async def work() -> None:
        async with (
            Brokers(("4.3", OLD, 5), ("4.3", OLD, 5)) as brokers,
            Cluster(brokers[0].address, partial=partial, probe_timeout=0.1) as cluster,
        ):
            brokers[1].negotiate = lambda _: None
            brokers[0].levels, brokers[0].epoch = NEW, 9
            if partial:
                await cluster.refresh()
                assert list(cluster.unreachable) == [2]
                brokers[1].negotiate = brokers[0].negotiate
                await cluster.refresh()
                assert cluster.unreachable == {} and list(cluster.api_versions) == [1, 2]
            else:
                with pytest.raises(BrokerConnectionError, match=f"{brokers[1].address}: no answer to ApiVersions"):
                    await cluster.refresh()
            assert cluster.levels == NEW and cluster.can("consumer-groups")

    run(work())


def test_hostile_levels_are_kept_as_they_are() -> None:
    rows = finalized({"transaction.version": -5, "\x1b[2J": 32767}, 2**63 - 1)
    rows["finalized_features"].append(rows["finalized_features"][0])

    async def work() -> None:
        async with Broker(of_release("4.3")) as broker:
            broker.negotiate = lambda request: messages.ApiVersionsResponse(
                api_keys=[messages.ApiVersionsResponse.ApiVersion(api_key=26, min_version=0, max_version=5)], **rows
            ) if request.version == 4 else Broker.negotiate(broker, request)  # fmt: skip
            async with connect(broker.address) as connection:
                assert connection.levels == {"transaction.version": -5, "\x1b[2J": 32767}
                assert connection.version_for(END) == 4
                with pytest.raises(UnsupportedVersionError, match="the finalized level is -5"):
                    connection.version_for(END) or await connection.send(END, 5)
                    await connection.send(END, 5)
                with pytest.raises(BrokerConnectionError):  # it did not offer ApiVersions
                    broker.negotiate = lambda _: b"\0\0\0\1"
                    await connection.refresh()

    run(work())


@pytest.mark.parametrize("needs", [
    {"Fetch": 4}, {"Fetch": "4-9"}, {"Fetch": (4,)}, {"Fetch": ("4", "9")}, {4.0: (1, 2)},
])  # fmt: skip
def test_needs_of_wrong_types(needs: Any) -> None:
    with pytest.raises(TypeError, match=r"needs must be API -> \(min, max\) version, not "):
        Feature("x", needs)
