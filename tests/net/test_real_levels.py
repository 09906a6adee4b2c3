"""Feature levels with real brokers: can() equals what the broker answers, and transactions commit, at every level."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwire import messages, schema
from kwire.net import BrokerConnectionError, Cluster, connect
from kwire.net.negotiation import is_refused
from tests.net import levels
from tests.net.test_brokers import kwire_versions
from tools.kafka import broker, maven, releases

pytestmark = pytest.mark.java

OLDEST = ("--release-version", "3.3-IV3")  # the lowest that 4.x formats: all other features are at 0
V1, V2 = {"Produce": 11, "TxnOffsetCommit": 4, "EndTxn": 4}, {"Produce": 12, "TxnOffsetCommit": 5, "EndTxn": 5}


@contextmanager
def running(release: str, folder: Path, *arguments: str, static: bool = False) -> Iterator[broker.Running]:
    options = broker.Options(
        release, folder, heap="256m", c1=True, static=static, format_arguments=list(arguments)
    )
    with broker.start(options) as state:
        yield state


async def sent(cluster: Cluster) -> dict[str, int]:
    """The versions that a transaction was sent in, of the requests that a level decides about."""
    versions = await levels.transaction(cluster)
    return {api: versions[api] for api in V1}


async def raises_levels(where: str) -> None:
    """A cluster whose levels nobody has raised since 3.3; then each is raised while it runs."""
    async with Cluster(where) as cluster:
        await levels.create_topic(cluster)
        assert cluster.levels == {"metadata.version": 7} and cluster.levels_epoch >= 0
        assert not any((await levels.check(cluster)).values())
        assert await sent(cluster) == V1
        assert not await levels.takes_implicit_partitions(cluster, where)
        connection = cluster.connection(cluster.brokers[0].id)
        expected = {"metadata.version": 11}
        await levels.update(cluster, metadata_version=11)
        assert (await levels.check(cluster))["scram-users"]
        raised: dict[str, list[str]] = {
            "metadata.version": ["cordoned-log-dirs"], "group.version": ["consumer-groups", "server-side-regex"],
            "share.version": ["share-groups"], "streams.version": ["streams-groups"],
        }  # fmt: skip
        able = {"scram-users"}
        for feature, names in raised.items():
            level = schema.features("4.3")[feature].maximum
            await levels.update(cluster, **{feature.replace(".", "_"): level})
            expected[feature], able = level, able | set(names)
            assert cluster.levels == expected
            assert {name for name, can in (await levels.check(cluster)).items() if can} == able
        await levels.update(cluster, transaction_version=1)
        assert await sent(cluster) == V1 and not cluster.can("transactions-v2")
        await levels.update(cluster, transaction_version=2)
        assert cluster.can("transactions-v2") and connection.newest("EndTxn") == 5
        assert await sent(cluster) == V2
        assert await levels.takes_implicit_partitions(cluster, where)
        async with Cluster(where) as another:  # it has not seen the old levels
            assert (another.levels, await sent(another)) == (expected | {"transaction.version": 2}, V2)


async def asks_again(where: str) -> None:
    """A level that is lowered is noticed at the first error 35."""
    async with Cluster(where) as other, Cluster(where) as cluster:
        assert cluster.can("consumer-groups")
        request = messages.UpdateFeaturesRequest
        row = request.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
        assert (await other.send(request(feature_updates=[row], timeout_ms=20000), to="controller")).error_code == 0
        answer = await levels.until(
            lambda: cluster.send(levels.consumer_heartbeat()), lambda answer: 3 if answer.error_code == 0 else 0
        )
        assert is_refused(answer) and not cluster.can("consumer-groups")
        assert cluster.levels_epoch > other.levels_epoch


def test_levels_that_are_raised_while_the_broker_runs(tmp_path: Path) -> None:
    with running("4.3.0", tmp_path, *OLDEST, static=True) as state:
        asyncio.run(raises_levels(state.bootstrap))
        out, _ = kwire_versions(state.bootstrap, "--feature", "transactions-v2", "--feature", "consumer-groups")
        assert out == "transactions-v2 (KIP-890): yes\nconsumer-groups (KIP-848): yes\n"
        asyncio.run(asks_again(state.bootstrap))


async def as_it_comes(where: str, able: set[str], transactions: dict[str, int]) -> None:
    async with Cluster(where) as cluster:
        await levels.create_topic(cluster)
        can = await levels.check(cluster)
        assert {name for name, able in can.items() if able} == able
        assert await sent(cluster) == transactions
        assert cluster.can("transactions-v2") == (transactions == V2)


ALL = {"scram-users", "consumer-groups", "server-side-regex", "share-groups", "streams-groups", "cordoned-log-dirs",
       "raft-voters"}  # fmt: skip
COMING = [
    ("4.4.0", (), False, ALL | {"unregister-controllers"}, V2),
    ("4.3.0", (), False, ALL, V2),
    ("4.3.0", (), True, ALL - {"raft-voters"}, V2),
    ("4.3.0", OLDEST, False, {"raft-voters"}, V1),
    ("4.3.0", ("--feature", "transaction.version=0"), False, ALL, V1),
    ("4.3.0", ("--feature", "transaction.version=1"), False, ALL, V1),
    ("4.3.0", ("--feature", "group.version=0"), False, ALL - {"consumer-groups", "server-side-regex"}, V2),
    ("4.3.0", ("--feature", "share.version=0"), False, ALL - {"share-groups"}, V2),
    ("4.3.0", ("--feature", "streams.version=0"), False, ALL - {"streams-groups"}, V2),
    ("4.3.0", ("--feature", "eligible.leader.replicas.version=0"), False, ALL, V2),
    ("4.0.1", (), False, {"scram-users", "consumer-groups", "server-side-regex", "raft-voters"}, V2),
    ("3.9.1", (), True, {"scram-users"}, V1),
    ("3.9.1", (), False, {"scram-users", "raft-voters"}, V1),
    ("3.3.2", (), False, set(), {"Produce": 9, "TxnOffsetCommit": 3, "EndTxn": 3}),
]


def case(row: tuple[str, tuple[str, ...], bool, set[str], dict[str, int]]) -> str:
    return " ".join([row[0], *row[1][1:], *(["static"] if row[2] else [])])


@pytest.mark.parametrize(("release", "arguments", "static", "able", "transactions"), [
    pytest.param(*row, id=case(row), marks=[] if row in (COMING[0], COMING[11]) else pytest.mark.soak)
    for row in COMING
])  # fmt: skip
def test_brokers_as_they_come(
    release: str, arguments: tuple[str, ...], static: bool, able: set[str], transactions: dict[str, int],
    tmp_path: Path,
) -> None:  # fmt: skip
    with running(release, tmp_path, *arguments, static=static) as state:
        asyncio.run(as_it_comes(state.bootstrap, able, transactions))


async def raises_metadata(where: str, sasl: str) -> None:
    """What metadata.version alone decides, up to the levels of 4.4."""
    acls, token = messages.CreateAclsRequest, messages.CreateDelegationTokenRequest(max_lifetime_ms=-1)
    cidr = acls.AclCreation(resource_type=2, resource_name="t", resource_pattern_type=3, principal="User:a",
                            host="10.0.0.0/8", operation=3, permission_type=3)  # fmt: skip
    async with Cluster(where) as cluster, connect(sasl, sasl=("PLAIN", "alice", "pw")) as secured:
        for level in (13, 14, 31, 32, 33):
            if level > 13:
                await levels.update(cluster, metadata_version=level)
            answers = {
                "delegation-tokens": await secured.send(token),
                "cidr-acls": await cluster.send(acls(creations=[cidr])),
                "unregister-controllers": await cluster.send(messages.UnregisterControllerRequest(controller_id=99)),
            }
            for name, answer in answers.items():
                assert cluster.can(name) != is_refused(answer), (level, name, answer)
            able = [name for name, first in zip(answers, (14, 32, 33), strict=True) if level >= first]
            assert [name for name in answers if cluster.can(name)] == able


@pytest.mark.soak
def test_what_metadata_version_decides(tmp_path: Path) -> None:
    (port,) = broker.free_ports(1)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties = {
        "listener.name.saslin.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.saslin.plain.sasl.jaas.config": f'{module} required user_alice="pw";',
        "delegation.token.secret.key": "key", "super.users": "User:ANONYMOUS;User:alice",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    }
    options = broker.Options(
        "4.4.0", tmp_path, heap="256m", c1=True, static=True, properties=properties,
        extra_listeners=[f"SASLIN:SASL_PLAINTEXT:{port}:{port}"], format_arguments=["--release-version", "3.6-IV1"],
    )  # fmt: skip
    with broker.start(options) as state:
        asyncio.run(raises_metadata(state.bootstrap, f"{broker.HOST}:{port}"))


@pytest.mark.soak
def test_a_cluster_of_3_9_that_runs_4_3_now(tmp_path: Path) -> None:
    """The levels stay at those of 3.9 until somebody raises them."""
    with running("3.9.1", tmp_path, static=True) as state:
        asyncio.run(as_it_comes(state.bootstrap, {"scram-users"}, V1))
    options = broker.Options("4.3.0", tmp_path, heap="256m", c1=True, static=True, restart=True)
    with broker.start(options) as state:
        asyncio.run(as_it_comes(state.bootstrap, {"scram-users"}, V1))


def replace(state: broker.Running, node: int, release: str) -> None:
    """Stop one node (from 1) and start it with the jars of another release, as a rolling upgrade does."""
    pid, folder = state.pids[node - 1], Path(state.dir)
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while broker.alive(pid):
        assert time.monotonic() < deadline, "the node does not stop"
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.05)
    jars = os.pathsep.join(releases.classpath(release))
    flags = [*releases.java_flags("256m", True), *releases.log_flags(release, folder)]
    with open(folder / f"server{node}.log", "ab") as log:
        process = subprocess.Popen(
            [maven.java(), *flags, "-cp", jars, "kafka.Kafka", str(folder / f"server{node}.properties")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True,
        )  # fmt: skip
    state.pids[node - 1] = process.pid
    state.save()
    while any(broker.brokers_seen(port, release) < len(state.ports) for port in state.ports):
        assert time.monotonic() < deadline and broker.alive(process.pid), f"see {folder}/server{node}.log"
        time.sleep(0.1)


async def rolls(state: broker.Running) -> None:
    """3.9.1 and 4.3.0 together, then 4.3.0 alone, then with its levels."""
    async with Cluster(state.bootstrap) as cluster:
        await levels.create_topic(cluster)
        levels_of_3_9 = {"metadata.version": 21}
        assert cluster.levels == levels_of_3_9 and await sent(cluster) == V1
        for node in (2, 1):
            await asyncio.to_thread(replace, state, node, "4.3.0")
            with contextlib.suppress(BrokerConnectionError):
                await cluster.send(messages.MetadataRequest(topics=[]), to=node)
            await cluster.refresh()
            newest = {api.ranges[68].high for api in cluster.api_versions.values()}  # ConsumerGroupHeartbeat
            assert newest == ({0, 1} if node == 2 else {1})
            assert cluster.levels == levels_of_3_9
            assert not cluster.can("consumer-groups") and not cluster.can("transactions-v2")
            assert [cluster.connection(n).newest("EndTxn") for n in (1, 2)] == [4, 4]
            assert await sent(cluster) == V1
        await levels.update(cluster, metadata_version=30, transaction_version=2, group_version=1)
        assert cluster.can("consumer-groups") and cluster.can("transactions-v2")
        assert [cluster.connection(n).newest("EndTxn") for n in (1, 2)] == [5, 5]
        assert await sent(cluster) == V2


@pytest.mark.soak
def test_a_rolling_upgrade_of_two_nodes(tmp_path: Path) -> None:
    options = broker.Options("3.9.1", tmp_path, nodes=2, heap="256m", c1=True, static=True)
    with broker.start(options) as state:
        asyncio.run(rolls(state))
