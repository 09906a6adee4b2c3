"""Small clients on kwire.net, for simulated schedules: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import kwire
from kwire import messages
from kwire.errors import KwireError
from kwire.fleet import Fleet, Simulation
from kwire.net import Cluster
from kwire.schema.error_codes import ErrorCode as E

M: Any = messages
RETRIES = 200
PORT = 40_000
RELEASES = ("2.8", "3.9", "4.4")


class Producer:
    """One record a batch, one in flight, idempotent: sent until it is acknowledged."""

    def __init__(self, cluster: Cluster, transactional_id: str | None = None) -> None:
        self.cluster, self.name = cluster, transactional_id
        self.id = self.epoch = -1
        self.sequences: dict[int, int] = {}

    async def start(self) -> None:
        answer = await self._until(M.InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=60_000), coordinated=self.name is not None)
        self.id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}

    async def _coordinator(self) -> int:
        while True:
            answer: Any = await self._tried(M.FindCoordinatorRequest(key=self.name, key_type=1), "any", 3)
            if answer is not None and answer.error_code == 0:
                return int(answer.node_id)
            await asyncio.sleep(0.05)

    async def _tried(self, request: Any, node: Any, version: int | None = None) -> Any:
        try:
            return await self.cluster.send(request, to=node, version=version)
        except KwireError:
            return None

    async def _until(self, request: Any, coordinated: bool, good: tuple[int, ...] = ()) -> Any:
        for _ in range(RETRIES):
            answer = await self._tried(request, await self._coordinator() if coordinated else "any")
            if answer is not None:
                code = E(answer.error_code)
                if not code or code in good:
                    return answer
                if not code.retriable:
                    raise AssertionError(f"{type(request).__name__}: {code!r}")
            await asyncio.sleep(0.05)
        raise AssertionError(f"{type(request).__name__}: no answer")

    async def send(self, partition: int, value: bytes) -> int:
        """The offset of a record, once it is acknowledged."""
        sequence = self.sequences.get(partition, 0)
        records = kwire.build_batch(
            [(1, None, value)], producer_id=self.id, producer_epoch=self.epoch, base_sequence=sequence,
            transactional=self.name is not None)
        if self.name is not None:
            row = M.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[partition])
            request = M.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name, v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch, v3_and_below_topics=[row])
            for _ in range(RETRIES):
                answer = await self._tried(request, await self._coordinator(), 3)
                if answer is not None and not answer.results_by_topic_v3_and_below[
                        0].results_by_partition[0].partition_error_code:
                    break
                await asyncio.sleep(0.05)
        topic = M.ProduceRequest.TopicProduceData(name="t", partition_data=[
            M.ProduceRequest.PartitionProduceData(index=partition, records=records)])
        request = M.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic], transactional_id=self.name)
        for _ in range(RETRIES):
            answer = await self._tried(request, await self._leader(partition), 9)
            if answer is not None:
                part = answer.responses[0].partition_responses[0]
                code = E(part.error_code)
                if not code:
                    self.sequences[partition] = sequence + 1
                    return int(part.base_offset)
                if not code.retriable:
                    raise AssertionError(f"produce: {code!r}")
            await asyncio.sleep(0.05)
        raise AssertionError("produce: no answer")

    async def _leader(self, partition: int) -> int:
        row = M.MetadataRequest.MetadataRequestTopic(name="t")
        while True:
            answer = await self._tried(M.MetadataRequest(topics=[row]), "any", 9)
            if answer is not None and answer.topics and not answer.topics[0].error_code:
                leader = answer.topics[0].partitions[partition].leader_id
                if leader >= 0:
                    return int(leader)
            await asyncio.sleep(0.05)

    async def end(self, commit: bool) -> None:
        await self._until(M.EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commit),
            coordinated=True, good=())


def trouble(fleet: Fleet, simulation: Simulation, *apis: str) -> None:
    for api in apis:
        for effect in (
            {"error": "NOT_LEADER_OR_FOLLOWER"} if api == "Produce" else {"error": "COORDINATOR_NOT_AVAILABLE"},
            {"close": True}, {"half": True}, {"delay": simulation.random.uniform(0.1, 3.0)}, {"silent": True},
        ):
            fleet.fault(api, probability=simulation.random.uniform(0.0, 0.15), **effect)


class Running:
    """A fleet of three nodes with a topic t, in trouble. data: its folder, None in memory; apis: that fail at times.

    With a folder the whole fleet ends now and then, half of the times as by a kill, and starts again.
    """

    def __init__(self, simulation: Simulation, releases: tuple[str, ...], data: Path | None, *apis: str) -> None:
        self.simulation, self.release, self.apis = simulation, simulation.random.choice(releases), apis
        self._data, self._done = data, False
        self._chaos: asyncio.Future[None] | None = None
        self.bootstrap = ",".join(f"127.0.0.1:{PORT + number}" for number in range(3))

    async def __aenter__(self) -> Running:
        await self._start()
        self.fleet.cluster.create_topic("t", 2, 3)
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._done = True
        if self._chaos is not None:
            self._chaos.cancel()
        await self.fleet.__aexit__(None, None, None)

    async def _start(self) -> None:
        random = self.simulation.random
        self.fleet = Fleet(
            self.release, 3, data=self._data, port=PORT, clock=self.simulation.clock, seed=random.randrange(1000))
        await self.fleet.__aenter__()
        trouble(self.fleet, self.simulation, *self.apis)

    def restarts(self) -> None:
        """Let nodes, and on disk the fleet, stop and start from now on."""
        self._chaos = asyncio.ensure_future(self._restarts())

    async def settled(self) -> None:
        """The last restart is over."""
        self._done = True
        if self._chaos is not None:
            await self._chaos

    async def _restarts(self) -> None:
        random = self.simulation.random
        while not self._done:
            await asyncio.sleep(random.uniform(0.2, 3.0))
            if self._data is not None and random.random() < 0.3:
                await self._start_again(is_killed=random.random() < 0.5)
                continue
            node = random.choice(self.fleet.nodes)
            node.stop()
            await asyncio.sleep(random.uniform(0.0, 1.0))
            node.start()

    async def _start_again(self, is_killed: bool) -> None:
        assert self._data is not None
        if is_killed:  # what it has written so far is all that is left of it
            copy = self._data.with_name(f"{self._data.name}-")
            shutil.copytree(self._data, copy)
            for node in self.fleet.nodes:
                node.stop()
            await self.fleet.__aexit__(None, None, None)
            shutil.rmtree(self._data)
            self._data = copy
        else:
            await self.fleet.__aexit__(None, None, None)
        await asyncio.sleep(self.simulation.random.uniform(0.0, 1.0))
        await self._start()


async def idempotent_producers(simulation: Simulation, data: Path | None = None) -> None:
    """No acknowledged record is lost or doubled, whatever happens to connections and leaders."""
    async with Running(simulation, RELEASES, data, "Produce") as running:
        running.restarts()
        acknowledged: dict[tuple[int, int], bytes] = {}

        async def produce(name: int) -> None:
            async with Cluster(running.bootstrap, timeout=2, probe_timeout=1, lazy=True) as cluster:
                producer = Producer(cluster)
                await producer.start()
                for at in range(6):
                    partition, value = at % 2, b"%d-%d" % (name, at)
                    offset = await producer.send(partition, value)
                    assert (partition, offset) not in acknowledged
                    acknowledged[partition, offset] = value

        await asyncio.gather(produce(1), produce(2))
        await running.settled()
        written = {
            (partition, record.offset): record.value for partition in range(2)
            for record in running.fleet.records("t", partition)}
        assert written == acknowledged, (written, acknowledged)


async def transactions(simulation: Simulation, data: Path | None = None) -> None:
    """Committed transactions are read whole, aborted ones not at all."""
    async with Running(simulation, RELEASES[:2], data, "Produce", "AddPartitionsToTxn") as running:
        running.restarts()
        committed: list[bytes] = []
        async with Cluster(running.bootstrap, timeout=2, probe_timeout=1, lazy=True) as cluster:
            producer = Producer(cluster, "x")
            await producer.start()
            for number in range(4):
                values = [b"%d-%d" % (number, at) for at in range(3)]
                for at, value in enumerate(values):
                    await producer.send(at % 2, value)
                commit = simulation.random.random() < 0.6
                await producer.end(commit)
                committed += values if commit else []
        await running.settled()
        seen = []
        for partition in range(2):
            log = running.fleet.cluster.partition("t", partition).log
            aborted = {(one.producer_id, one.first_offset, one.last_offset) for one in log.aborted}
            for batch in kwire.read_batches(log.read(0, 1 << 30, log.last_stable_offset, True)):
                if batch.is_control or any(
                    batch.producer_id == who and first <= batch.base_offset <= last for who, first, last in aborted
                ):
                    continue
                seen += [record.value for record in batch]
        assert sorted(seen) == sorted(committed), (seen, committed)


async def on_disk(work: Any, simulation: Simulation) -> None:
    """A schedule with its data in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        await work(simulation, Path(folder, "data"))


async def idempotent_producers_on_disk(simulation: Simulation) -> None:
    await on_disk(idempotent_producers, simulation)


async def transactions_on_disk(simulation: Simulation) -> None:
    await on_disk(transactions, simulation)
