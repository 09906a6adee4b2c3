"""Small clients on kwire.net, for simulated schedules: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
from typing import Any

import kwire
from kwire import messages
from kwire.errors import KwireError
from kwire.fleet import Fleet, Simulation
from kwire.net import Cluster
from kwire.schema.error_codes import ErrorCode as E

M: Any = messages
RETRIES = 200
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


async def restarts(fleet: Fleet, simulation: Simulation) -> None:
    while True:
        await asyncio.sleep(simulation.random.uniform(0.2, 3.0))
        node = simulation.random.choice(fleet.nodes)
        node.stop()
        await asyncio.sleep(simulation.random.uniform(0.0, 1.0))
        node.start()


async def idempotent_producers(simulation: Simulation) -> None:
    """No acknowledged record is lost or doubled, whatever happens to connections and leaders."""
    release = simulation.random.choice(RELEASES)
    async with Fleet(release, 3, clock=simulation.clock, seed=simulation.seed) as fleet:
        fleet.cluster.create_topic("t", 2, 3)
        trouble(fleet, simulation, "Produce")
        chaos = asyncio.ensure_future(restarts(fleet, simulation))
        acknowledged: dict[tuple[int, int], bytes] = {}

        async def produce(name: int) -> None:
            async with Cluster(fleet.bootstrap, timeout=2, probe_timeout=1, lazy=True) as cluster:
                producer = Producer(cluster)
                await producer.start()
                for at in range(6):
                    partition, value = at % 2, b"%d-%d" % (name, at)
                    offset = await producer.send(partition, value)
                    assert (partition, offset) not in acknowledged
                    acknowledged[partition, offset] = value

        await asyncio.gather(produce(1), produce(2))
        chaos.cancel()
        written = {
            (partition, record.offset): record.value for partition in range(2)
            for record in fleet.records("t", partition)}
        assert written == acknowledged, (written, acknowledged)


async def transactions(simulation: Simulation) -> None:
    """Committed transactions are read whole, aborted ones not at all."""
    release = simulation.random.choice(("2.8", "3.9"))
    async with Fleet(release, 3, clock=simulation.clock, seed=simulation.seed) as fleet:
        fleet.cluster.create_topic("t", 2, 3)
        trouble(fleet, simulation, "Produce", "AddPartitionsToTxn")
        committed: list[bytes] = []
        async with Cluster(fleet.bootstrap, timeout=2, probe_timeout=1, lazy=True) as cluster:
            producer = Producer(cluster, "x")
            await producer.start()
            for number in range(4):
                values = [b"%d-%d" % (number, at) for at in range(3)]
                for at, value in enumerate(values):
                    await producer.send(at % 2, value)
                commit = simulation.random.random() < 0.6
                await producer.end(commit)
                committed += values if commit else []
        seen = []
        for partition in range(2):
            log = fleet.cluster.partition("t", partition).log
            aborted = {(one.producer_id, one.first_offset, one.last_offset) for one in log.aborted}
            for batch in kwire.read_batches(log.read(0, 1 << 30, log.last_stable_offset, True)):
                if batch.is_control or any(
                    batch.producer_id == who and first <= batch.base_offset <= last for who, first, last in aborted
                ):
                    continue
                seen += [record.value for record in batch]
        assert sorted(seen) == sorted(committed), (seen, committed)
