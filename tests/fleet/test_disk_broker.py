"""A real broker starts on the folder that a fleet left, and the fleet on the folder that the broker left."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode
from kwire.storage import LogDirectory
from tests.fleet.test_apis import fetch, produce
from tests.fleet.test_disk_storage import Producer, commit, committed, killed
from tools.kafka import broker, tool
from tools.kafka.maven import MissingTool
from tools.kafka.releases import NO_TOOLS

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(600)]
E = ErrorCode
M = messages
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOW = int(time.time() * 1000)  # a broker forgets producers that are older than a day


@contextmanager
def real(
    release: str, data: Path, folder: Path, nodes: int = 1, dynamic: bool = False, **properties: str
) -> Iterator[broker.Running]:
    """A broker for each node's folder; the first one is the controller. dynamic: by bootstrap servers (KIP-853)."""
    folder.mkdir()
    free = broker.free_ports(2 * nodes + 1)
    kraft = broker.version(release) >= (3, 3)
    state = broker.Running(
        release, str(folder), "kraft" if kraft else "zookeeper", [], free[:nodes], free[nodes : 2 * nodes], "",
        free[-1])
    properties = {
        "log.retention.ms": "-1", "offsets.topic.num.partitions": "50", "transaction.state.log.num.partitions": "50",
        "log.cleaner.enable": "false", **properties}
    options = broker.Options(
        release, folder, nodes=nodes, heap="256m", c1=True, static=True, restart=kraft, properties=properties)
    for number in range(1, nodes + 1):
        shutil.move(data / f"node-{number}", folder / f"data{number}")
    broker.configure(options, state, folder)
    for number in range(1, nodes + 1) if kraft else ():
        path = folder / f"server{number}.properties"
        lines = [line for line in path.read_text().splitlines() if not line.startswith("controller.quorum.voters")]
        if number > 1:
            lines = [line.replace("broker,controller", "broker") for line in lines]
            lines = [line.split(",CONTROLLER://")[0] if "listeners=" in line else line for line in lines]
        address = f"127.0.0.1:{state.controller_ports[0]}"
        lines.append(f"controller.quorum.bootstrap.servers={address}" if dynamic else
                     f"controller.quorum.voters=1@{address}")
        path.write_text("\n".join(lines))
    state.save()
    try:
        running = broker.start(options)
    except MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
    try:
        with running:
            yield running
    finally:
        for number in range(1, nodes + 1):
            shutil.move(folder / f"data{number}", data / f"node-{number}")


def until(check: Callable[[], Any]) -> Any:
    """What check returns when it is no error any more; a broker needs a moment for its coordinators."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return check()
        except (AssertionError, IndexError, kwire.KwireError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def fill(fleet: Fleet, connection: Any) -> tuple[Producer, Producer]:
    """Records with all codecs over many segments, a producer with sequences, transactions: (aborted, open)."""
    chance, version = random.Random(3), min(11, connection.versions["Produce"][1])
    for at in range(200):
        codec = CODECS[at % len(CODECS)]
        rows = [(NOW + at, f"k{at % 7}".encode(), chance.randbytes(8000)) for _ in range(5)]
        data = kwire.build_batch(rows, codec=codec, producer_id=900, producer_epoch=1, base_sequence=5 * at)
        assert produce(connection, data, version=version).error_code == E.NONE
    gone, done, going = (Producer(connection, name) for name in ("gone", "done", "going"))
    for one, text in ((gone, "a"), (done, "b"), (gone, "c"), (going, "d")):
        assert one.write(text, topic="u").error_code == E.NONE
    assert (gone.end(commit=False), done.end(commit=True)) == (0, 0)
    commit(connection, 123)
    going.commit_offset(200)
    if fleet.cluster.levels.get("group.version"):
        for epoch in (0, -1):  # one of KIP-848, which its member leaves
            beat = connection.send(M.ConsumerGroupHeartbeatRequest(
                group_id="new", member_id="m", member_epoch=epoch, subscribed_topic_names=["t"],
                rebalance_timeout_ms=1000, topic_partitions=[]), 0)
            assert beat.error_code == E.NONE
        commit(connection, 77, "new")
    return gone, going


def read(connection: Any, topic: str = "t", isolation: int = 0, start: int = 0) -> tuple[list[Any], Any]:
    """(the records of a topic from an offset on, the last row of the answers)."""
    records: list[Any] = []
    while True:
        row = fetch(connection, start, topic=topic, isolation=isolation, version=11)
        assert row.error_code == E.NONE
        batches = list(kwire.read_batches(row.records or b""))
        if not batches:
            return records, row
        records += [record for batch in batches if not batch.is_control for record in batch if record.offset >= start]
        start = batches[-1].last_offset + 1


def check_files(release: str, node: Path) -> None:
    """Kafka's own verifier, and ours, are content with the files."""
    release = "4.3.0" if release in NO_TOOLS else release
    assert LogDirectory(node).verify() == []
    for folder in ("t-0", "u-0"):
        logs = sorted(str(path) for path in (node / folder).glob("*.log"))
        indexes = sorted(str(path) for path in (node / folder).glob("*index") if path.stat().st_size)
        done = tool.run(release, "dump-log", "--files", ",".join(logs + indexes), "--index-sanity-check")
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == 0 and "passed sanity check" in text
        done = tool.run(release, "dump-log", "--files", ",".join(logs + indexes), "--deep-iteration")
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == 0 and "isvalid: true" in text
        for wrong in ("isvalid: false", "Mismatches", "Found timestamp mismatch", "Found out of order", "corrupt"):
            assert wrong not in text


@pytest.mark.parametrize(("release", "is_killed"), [("4.4.0", False), ("4.3.0", True), ("3.9.1", False)])
def test_a_broker_goes_on(tmp_path: Path, release: str, is_killed: bool) -> None:
    data = tmp_path / "data"
    levels = {"transaction.version": 0}  # EndTxn 3 keeps its epoch
    with (
        Fleet(release.rpartition(".")[0], data=data, clock=ManualClock(NOW / 1000), levels=levels) as fleet,
        connect_sync(fleet.bootstrap) as connection,
    ):
        configs = {"segment.bytes": "1048576", "index.interval.bytes": "20000"}
        for name in ("t", "u"):
            fleet.cluster.create_topic(name, 1, configs=configs)
        fleet.cluster.set_configs_of(4, "", {"message.max.bytes": "900001"})
        gone, going = fill(fleet, connection)
        connection.send(M.DeleteRecordsRequest(topics=[M.DeleteRecordsRequest.DeleteRecordsTopic(
            name="t", partitions=[M.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=201)])]))
        written, _ = read(connection, start=201)
        uncommitted, _ = read(connection, "u")
        ids = {topic.name: topic.id for topic in fleet.cluster.topics.values()}
        assert len(fleet.cluster.partition("t", 0).log.store.segments) > 5
        if is_killed:
            data = killed(data, tmp_path)
    if not is_killed:
        check_files(release, data / "node-1")
    with real(release, data, tmp_path / "broker") as running, connect_sync(running.bootstrap) as connection:
        until(lambda: _equal(read(connection, start=201)[0], written))
        found, row = read(connection, start=201)
        assert found == written and row.log_start_offset == 201 and row.high_watermark == 1000
        until(lambda: _equal(read(connection, "u")[0], uncommitted))
        row = fetch(connection, 0, topic="u", isolation=1, version=11)
        assert row.last_stable_offset == 3 and [
            (one.producer_id, one.first_offset) for one in row.aborted_transactions] == [(gone.id, 0)]
        answer: Any = connection.send(M.MetadataRequest(topics=None))
        assert {topic.name: topic.topic_id for topic in answer.topics} == ids
        asked = M.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=4, resource_name="1", configuration_keys=["message.max.bytes"])
        (row,) = connection.send(M.DescribeConfigsRequest(resources=[asked])).results[0].configs
        assert (row.value, row.config_source) == ("900001", 3)  # of all brokers, from the metadata log
        # producers: what was sent is known, the next one follows
        again = kwire.build_batch([(NOW, b"", b"")] * 5, producer_id=900, producer_epoch=1, base_sequence=995)
        until(lambda: _equal(produce(connection, again, version=11).base_offset, 995))  # it may still be fenced
        wrong = produce(connection, kwire.build_batch(
            [(NOW, b"", b"")], producer_id=900, producer_epoch=1, base_sequence=1007), version=11)
        assert wrong.error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        # committed offsets, and the transaction that is open
        for key, kind in (("g", 0), ("going", 1)):
            until(lambda key=key, kind=kind: connection.send(
                M.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])).coordinators[0].port)
        until(lambda: _equal(committed(connection), (-1, E.UNSTABLE_OFFSET_COMMIT)))
        assert committed(connection, stable=False) == (123, E.NONE)
        going.connection = connection
        until(lambda: _equal(going.end(commit=True), E.NONE))
        until(lambda: _equal(committed(connection), (200, E.NONE)))
        if release > "4":
            until(lambda: _equal(committed(connection, "new"), (77, E.NONE)))
            listed = connection.send(M.ListGroupsRequest(), 5).groups
            assert {(row.group_id, row.group_type) for row in listed} == {("g", "classic"), ("new", "consumer")}
        assert until(lambda: _above(fetch(connection, 0, topic="u", isolation=1, version=11), 6))
        made = until(lambda: Producer(connection, "new"))
        assert made.id > going.id
        assert produce(connection, kwire.build_batch([(NOW, b"k", b"real")]), version=11).base_offset == 1000
    check_files(release, data / "node-1")
    with Fleet(release.rpartition(".")[0], data=data) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert read(connection, start=201)[0][-1].value == b"real"
        assert committed(connection) == (200, E.NONE)
        assert produce(connection, kwire.build_batch([(NOW, b"k", b"fleet")]), version=11).base_offset == 1001
        assert Producer(connection, "another").id > made.id


def _equal(found: Any, wanted: Any) -> None:
    assert found == wanted


def _above(row: Any, offset: int) -> bool:
    assert row.last_stable_offset >= offset
    return True


def test_a_broker_with_zookeeper_takes_the_partitions(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Fleet("2.8", data=data) as fleet, connect_sync(fleet.bootstrap) as connection:
        for name in ("t", "u"):
            fleet.cluster.create_topic(name, 1, configs={"segment.bytes": "1048576", "index.interval.bytes": "20000"})
        fill(fleet, connection)
        written, uncommitted = read(connection)[0], read(connection, "u")[0]
    check_files("2.8.2", data / "node-1")
    with real("2.8.2", data, tmp_path / "broker") as running, connect_sync(running.bootstrap) as connection:
        connection.send(M.CreateTopicsRequest(timeout_ms=10_000, topics=[
            M.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in (("t", 1), ("u", 1), ("__consumer_offsets", 50), ("__transaction_state", 50))]))
        until(lambda: _equal(read(connection)[0], written))
        until(lambda: _equal(read(connection, "u")[0], uncommitted))
        assert fetch(connection, 0, topic="u", isolation=1, version=11).last_stable_offset == 3
        until(lambda: _equal(committed(connection, stable=False), (123, E.NONE)))


def test_three_brokers_fetch_what_they_lack(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Fleet("4.3", 3, data=data) as fleet:
        fleet.cluster.create_topic("t", 3, 3)
        for index in range(3):
            fleet.cluster.partition("t", index).log.append(
                list(kwire.read_batches(kwire.build_batch([(NOW, None, b"%d" % index)] * 10))), 0, NOW)
    with real("4.3.0", data, tmp_path / "broker", nodes=3, dynamic=True) as running:
        ports = [f"127.0.0.1:{port}" for port in running.ports]
        with connect_sync(ports[0]) as connection:

            def in_sync() -> None:
                (topic,) = connection.send(M.MetadataRequest(topics=[
                    M.MetadataRequest.MetadataRequestTopic(name="t")])).topics
                for partition in topic.partitions:
                    assert sorted(partition.isr_nodes) == [1, 2, 3]
                    assert partition.leader_id == partition.partition_index + 1

            until(in_sync)
        for index, address in enumerate(ports):
            with connect_sync(address) as connection:
                row = fetch(connection, 0, partition=index, version=11)
                assert [record.value for batch in kwire.read_batches(row.records) for record in batch] == [
                    b"%d" % index] * 10


def heads(folder: Path) -> Iterator[tuple[Any, ...]]:
    """What each batch of a partition is, delete horizons apart, which are times of the cleaner."""
    for batch in LogDirectory(folder).batches():
        has_horizon = batch.delete_horizon is not None
        yield (
            batch.base_offset, batch.last_offset, batch.count, batch.codec, batch.attributes,
            None if has_horizon else batch.base_timestamp, batch.max_timestamp, batch.producer_id,
            batch.producer_epoch, batch.base_sequence, batch.partition_leader_epoch, has_horizon,
            [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in batch])


def fill_compacted(log: Any, chance: random.Random) -> None:
    """Keys that come again, tombstones, producers with sequences, transactions that commit, abort or stay open."""
    sequences: dict[int, int] = {}
    ongoing: set[int] = set()
    for at in range(600):
        producer = chance.choice([-1, 1, 2, 3, 4, 5])
        rows = [
            (NOW - chance.randrange(1000), f"k{chance.randrange(40)}".encode(),
             None if chance.random() < 0.1 else chance.randbytes(chance.choice([10, 4000])))
            for _ in range(chance.randrange(1, 6))]
        log.append(list(kwire.read_batches(kwire.build_batch(
            rows, codec=chance.choice(CODECS), producer_id=producer, producer_epoch=0 if producer > 0 else -1,
            base_sequence=sequences.get(producer, 0) if producer > 0 else -1, transactional=producer > 2))), 0, NOW)
        if producer > 0:
            sequences[producer] = sequences.get(producer, 0) + len(rows)
        if producer > 2:
            ongoing.add(producer)
        if ongoing and chance.random() < 0.3:
            ending = chance.choice(sorted(ongoing))
            log.append_marker(ending, 0, chance.random() < 0.5, 0, 0, NOW)
            ongoing.remove(ending)
        if at == 300:
            log.roll()
    for ending in sorted(ongoing):
        log.append_marker(ending, 0, True, 0, 0, NOW)


@pytest.mark.parametrize("seed", [1, 2])
def test_compaction_keeps_what_a_broker_keeps(tmp_path: Path, seed: int) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with Fleet("4.3", data=data) as fleet:
        fleet.cluster.create_topic("c", 1, configs={
            "cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.0"})
        log = fleet.cluster.partition("c", 0).log
        fill_compacted(log, random.Random(seed))
        log.roll()
        end = log.end_offset
    shutil.copytree(data, copy)
    with Fleet("4.3", data=copy) as fleet:
        assert fleet.compact("c") > 0
    cleaner = {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "100"}
    with real("4.3.0", data, tmp_path / "broker", dynamic=seed == 1, **cleaner):
        checkpoint = tmp_path / "broker" / "data1" / "cleaner-offset-checkpoint"
        until(lambda: _equal(f"c 0 {end}" in checkpoint.read_text(), True))
    theirs, mine = data / "node-1" / "c-0", copy / "node-1" / "c-0"
    assert list(heads(mine)) == list(heads(theirs))
    for kind in ("log", "txnindex"):
        names = [{path.name for path in folder.glob(f"*.{kind}") if path.stat().st_size} for folder in (mine, theirs)]
        assert names[0] == names[1]
    for name in names[0]:
        assert (mine / name).read_bytes() == (theirs / name).read_bytes()
    assert LogDirectory(copy / "node-1").verify() == []
