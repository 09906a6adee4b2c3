"""`kwire versions` against fake brokers, compared with what Kafka's own tools printed for real ones."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from kwire import schema
from kwire.cli import main
from kwire.cli.versions_text import kip97_listing, tool_listing
from kwire.net.api_versions import NodeApiVersions, api_name, release_table
from kwire.net.cluster import Broker as Node
from kwire.net.compatibility import against, match_release
from kwire.schema import Versions
from tests.net.fake import HOST, Broker, Server, cluster, of_release, serving
from tests.net.texts import nothings, ranges, texts, without_port

pytestmark = pytest.mark.quick

# KIP-97's own listing, of a broker of 0.10.1
KIP97 = """\
aurora:9092 (id: 0 rack: null) -> {
  Produce(0): 0 to 2,
  Fetch(1): 0 to 3,
  Offsets(2): 0 to 1,
  Metadata(3): 0 to 2,
  LeaderAndIsr(4): 0,
  StopReplica(5): 0,
  UpdateMetadata(6): 0 to 2,
  ControlledShutdown(7): 1,
  OffsetCommit(8): 0 to 2,
  OffsetFetch(9): 0 to 1,
  GroupCoordinator(10): 0,
  JoinGroup(11): 0 to 1,
  Heartbeat(12): 0,
  LeaveGroup(13): 0,
  SyncGroup(14): 0,
  DescribeGroups(15): 0,
  ListGroups(16): 0,
  SaslHandshake(17): 0,
  ApiVersions(18): 0,
  CreateTopics(19): 0,
  DeleteTopics(20): 0
}
"""


def offer_of(text: str) -> NodeApiVersions:
    return NodeApiVersions({key: Versions(*span) for key, span in ranges(text).items()})


def named(text: str) -> dict[str, tuple[int, int]]:
    return {api_name(key): span for key, span in ranges(text).items()}


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = main(["versions", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_there_are_texts() -> None:
    assert (len(texts()), len(nothings())) == (32, 15)
    assert {tool for tool, _ in texts()} == {"2.8.2", "3.3.2", "3.9.1", "4.3.0", "4.4.0"}


@pytest.mark.parametrize(("tool", "broker"), sorted(texts()))
def test_equals_the_tools_text(tool: str, broker: str) -> None:
    text = texts()[tool, broker]
    assert without_port(tool_listing(Node(0, HOST, 0), offer_of(text), tool)) == without_port(text)


@pytest.mark.parametrize("release", sorted(nothings()))
def test_what_each_release_looks_for(release: str) -> None:
    """The APIs that it calls UNSUPPORTED, under the names that they had then."""
    assert tool_listing(Node(0, HOST, 0), NodeApiVersions({}), release).partition("-> ")[2] == nothings()[release]


def test_kip97s_own_listing() -> None:
    assert kip97_listing(Node(0, "aurora", 9092), NodeApiVersions(release_table("0.10.1", "zkBroker"))) == KIP97


@pytest.mark.parametrize("broker", sorted({broker for tool, broker in texts() if tool == "4.3.0"}))
def test_guesses_the_release(broker: str) -> None:
    found = match_release(offer_of(texts()["4.3.0", broker]))
    assert schema.release_name(broker.removesuffix("zk")) in found.releases
    assert (found.apart, found.newer) == (0, False) and len(found.releases) <= 2


def test_guesses_beyond_what_is_known() -> None:
    offered = dict(release_table("4.4", "broker"))
    assert str(match_release(NodeApiVersions(offered | {1: Versions(4, 99)}))) == "newer than Kafka 4.4"
    assert str(match_release(NodeApiVersions(offered | {999: Versions(0, 0)}))) == "newer than Kafka 4.4"
    del offered[74]
    assert str(match_release(NodeApiVersions(offered))) == "like Kafka 4.4 (1 APIs differ)"


def test_what_a_client_of_a_release_could_not_do() -> None:
    new, old = offer_of(texts()["4.4.0", "4.4.0"]), offer_of(texts()["4.3.0", "2.8.2"])
    assert against(new, "4.4") == ("4.4", {}, {}, [])
    assert against(new, "3.9").unusable == {}
    lost = against(new, "0.10.2.1").unusable  # KIP-896
    assert lost["Fetch"] == ((0, 3), (4, 18)) and lost["Produce"] == ((0, 2), (3, 13)) and "Metadata" not in lost
    found = against(old, "4.4")
    assert found.unusable["ConsumerGroupHeartbeat"] == ((0, 1), None)
    assert found.older["Fetch"] == (18, 12)
    assert "share-groups" in found.features and "headers" not in found.features


def test_all_brokers_as_the_tool_prints_them(capsys: Any) -> None:
    new, old = texts()["4.3.0", "4.4.0"], texts()["4.3.0", "3.9.1"]
    brokers = cluster(named(new), named(old))
    with serving(*brokers):
        code, out, err = run(capsys, "--bootstrap-server", brokers[1].address, "--as", "4.3")
    assert (code, without_port(out)) == (0, without_port(new + old))
    assert [f":{broker.port} (id: {i} " in out for i, broker in enumerate(brokers, 1)] == [True, True]
    assert err.splitlines() == [
        f"{brokers[0].address}: Kafka 4.4 by its API versions", f"{brokers[1].address}: Kafka 3.9 by its API versions",
    ]  # fmt: skip


def test_default_is_the_newest_release(capsys: Any) -> None:
    text = texts()["4.4.0", "4.4.0"]
    brokers = cluster(named(text))
    with serving(*brokers):
        code, out, _ = run(capsys, "--bootstrap-server", brokers[0].address)
        _, named_out, _ = run(capsys, "--bootstrap-server", brokers[0].address, "--as", schema.releases()[-1])
        _, older_out, _ = run(capsys, "--bootstrap-server", brokers[0].address, "--as", schema.releases()[-2])
        _, recorded, _ = run(capsys, "--bootstrap-server", brokers[0].address, "--as", "4.4")
    assert (code, out) == (0, named_out) and out != older_out
    assert without_port(recorded) == without_port(text)


def test_json(capsys: Any) -> None:
    brokers = cluster({**of_release("2.8"), "InitProducerId": (0, 6)})
    with serving(*brokers):
        code, out, _ = run(
            capsys, "--bootstrap-server", brokers[0].address, "--json", "--feature", "headers", "--against", "4.4"
        )
    (row,) = json.loads(out)["brokers"]
    assert (code, row["host"], row["port"], row["id"], row["rack"]) == (0, HOST, brokers[0].port, 1, None)
    assert row["apis"]["Fetch"] == {"key": 1, "min": 0, "max": 12, "usable": 12}
    assert row["apis"]["LeaderAndIsr"] == {"key": 4, "min": 0, "max": 5, "usable": None}
    assert row["apis"]["InitProducerId"]["usable"] == 5  # 6 is unstable
    assert (row["features"], row["assumed"]) == ({"headers": True}, None)
    assert row["against"]["unusable"]["ShareFetch"] == [[1, 2], None]


def test_features(capsys: Any) -> None:
    brokers = cluster(of_release("4.4"), of_release("0.10.2"), old=True)
    with serving(*brokers):
        at = ["--bootstrap-server", brokers[0].address]
        code, out, _ = run(capsys, *at, "--feature", "timestamps", "--feature", "headers")
        assert code == 1
        assert out.splitlines()[:2] == ["timestamps (KIP-32): yes", "headers (KIP-82): no"]
        assert f"  {brokers[1].address} (id: 2): needs Fetch 4 or newer, the broker supports 0 to 3" in out
        assert run(capsys, *at, "--feature", "offsets-for-times")[:2] == (0, "offsets-for-times (KIP-79): yes\n")
        code, out, err = run(capsys, *at, "--feature", "magic")
        assert (code, out, err.count("\n")) == (2, "", 1) and "share-groups" in err


def test_features_that_need_a_level(capsys: Any) -> None:
    """The level is the cluster's: what the newest epoch says, in one line."""
    brokers = cluster(of_release("4.3"), of_release("4.3"))
    brokers[0].levels, brokers[0].epoch = {"metadata.version": 7}, 5
    brokers[1].levels, brokers[1].epoch = {"metadata.version": 30, "group.version": 1}, 9
    with serving(*brokers):
        at = ["--bootstrap-server", brokers[0].address]
        code, out, _ = run(capsys, *at, "--feature", "consumer-groups", "--feature", "transactions-v2")
        assert (code, out) == (1, "consumer-groups (KIP-848): yes\ntransactions-v2 (KIP-890): no\n"
                                  "  needs transaction.version 2 or higher, finalized: 0\n")  # fmt: skip
        assert run(capsys, *at, "--feature", "scram-users")[0] == 0
        code, out, _ = run(capsys, *at, "--json", "--feature", "share-groups", "--feature", "consumer-groups")
        found = json.loads(out)
        assert (code, found["levels"], found["levels_epoch"]) == (1, brokers[1].levels, 9)
        assert found["brokers"][0]["features"] == {"share-groups": False, "consumer-groups": True}
        for broker in brokers:
            broker.epoch = -1
        code, out, _ = run(capsys, *at, "--feature", "raft-voters")
        assert code == 1 and out.endswith("  needs kraft.version 1 or higher, the brokers gave no finalized levels\n")
        code, out, _ = run(capsys, *at, "--feature", "headers", "--json")
        assert (json.loads(out)["levels"], json.loads(out)["levels_epoch"]) == ({}, -1)


def test_against_counts_levels_where_they_are_known() -> None:
    new = offer_of(texts()["4.4.0", "4.4.0"])
    low = new._replace(finalized={"metadata.version": 33, "transaction.version": 1}, epoch=5)
    lost = ["consumer-groups", "raft-voters", "server-side-regex", "transactions-v2", "eligible-leader-replicas",
            "share-groups", "streams-groups", "share-dead-letter-queues"]  # fmt: skip
    assert against(low, "4.4").features == lost
    # what that client has itself
    assert against(low, "3.9").features == ["consumer-groups", "raft-voters", "eligible-leader-replicas"]
    older = new._replace(finalized={"metadata.version": 7}, epoch=5)
    assert against(older, "2.8").features == ["delegation-tokens", "scram-users"]  # no CIDR, no cordoned folders
    assert {"cidr-acls", "cordoned-log-dirs", "unregister-controllers"} <= set(against(older, "4.4").features)


def test_against_for_people(capsys: Any) -> None:
    brokers = cluster(of_release("4.4"))
    with serving(*brokers):
        code, out, _ = run(capsys, "--bootstrap-server", brokers[0].address, "--against", "0.10.2")
        assert code == 0 and "  cannot use Fetch: the client supports 0 to 3, the broker supports 4 to 18\n" in out
        _, out, _ = run(capsys, "--bootstrap-server", brokers[0].address, "--against", "4.4")
    assert out == f"{brokers[0].address} (id: 1), a client of Kafka 4.4: fully compatible\n"


def test_an_assumed_release_is_said_to_be_assumed(capsys: Any) -> None:
    brokers = cluster(of_release("0.9.0"))
    brokers[0].negotiate = lambda _: None
    with serving(*brokers):
        at = ["--bootstrap-server", brokers[0].address, "--timeout", "1"]
        code, out, err = run(capsys, *at, "--assume-release", "0.9.0.1")
        head = f"{brokers[0].address} (id: 1 rack: null isFenced: false) -> assumed 0.9.0 ("
        assert code == 0 and out.startswith(head)
        assert "\tFetch(1): 0 to 1 [unusable: node too old],\n" in out and "assumed" in err
        _, out, _ = run(capsys, *at, "--assume-release", "0.9.0.1", "--kip97")
        assert "-> assumed 0.9.0 {\n" in out
        _, out, _ = run(capsys, *at, "--assume-release", "0.9.0", "--json")
        assert json.loads(out)["brokers"][0]["assumed"] == "0.9.0"
        code, out, err = run(capsys, *at)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert brokers[0].address in err and "assume" in err


def test_failures_are_one_line_with_host_and_port(capsys: Any, tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as closed:
        port = closed.getsockname()[1]

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server, nobody = Server(silent), Broker(of_release("4.4"))
    with serving(server, nobody):
        for address in (f"{HOST}:{port}", server.address, nobody.address):
            code, out, err = run(capsys, "--bootstrap-server", address, "--timeout", "0.5")
            assert (code, out, err.count("\n")) == (1, "", 1), err
            assert address in err
        code, _, err = run(capsys, "--bootstrap-server", f"{HOST}:{port},{server.address}", "--timeout", "0.5")
        assert code == 1 and f"{HOST}:{port}" in err
    assert run(capsys, "--bootstrap-server", "nowhere")[0] == 2
    assert run(capsys, "--bootstrap-server", "a:1", "--as", "9.9")[0] == 1
    assert run(capsys, "--bootstrap-server", "a:1", "--command-config", str(tmp_path / "none"))[0] == 2


def test_a_broker_that_cannot_be_reached_does_not_hide_the_others(capsys: Any) -> None:
    with socket.create_server((HOST, 0)) as closed:
        port = closed.getsockname()[1]
    brokers = cluster(of_release("4.4"))
    answer = brokers[0].answer

    def tells_of_another(request: Any) -> Any:
        reply = answer(request)
        reply.brokers.append(type(reply).MetadataResponseBroker(node_id=2, host=HOST, port=port))
        return reply

    brokers[0].answer = tells_of_another
    with serving(*brokers):
        code, out, err = run(capsys, "--bootstrap-server", brokers[0].address)
    assert code == 1 and "Fetch(1): 4 to 18" in out and f"{HOST}:{port} (id: 2) -> ERROR: " in out
    assert f"{HOST}:{port}: connection refused" in err
