"""A fleet whose memory fails: python -m tests.hostile.fleet_allocations [--seconds N] [--seed N] [--least N].

Requests that change something are handled while one request for memory, or a few in a row, fail (failing.c, loaded
before Python). What must hold: an answer, or the end of the connection; what was refused has changed nothing, but for
a transaction, which may have been prepared; the metadata log and the fleet have the same topics; a transaction that was
prepared ends; a fleet that starts on the folder afterwards has what this one had.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import kwire
from kwire import messages
from kwire.codec.frames import decode_request, encode_request
from kwire.fleet import Fleet
from kwire.fleet.connection import Connection
from tests.hostile import allocations
from tests.hostile.clients import difference, kept
from tests.hostile.rounds import numbers, run, seeded, watched
from tests.hostile.sanitized import ROOT

MOST = 900  # of the requests for memory: those of one handler
TURNS = 13
ENDS = ("EndTxn", "InitProducerId")  # an end that is decided stays so
PATIENCE = 15.0  # seconds for a transaction that is prepared


class Broken(AssertionError):
    """Something was lost, is half there, or never ends."""


class Silent:
    """A stream that nobody reads."""

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None:
        pass


def requests(turn: int, fleet: Fleet) -> Iterator[tuple[Any, int]]:
    """(message, version), each made as the fleet is then."""
    new = f"n{turn}"
    create, produce, commit = messages.CreateTopicsRequest, messages.ProduceRequest, messages.OffsetCommitRequest
    alter, acls, begin_at = (
        messages.IncrementalAlterConfigsRequest, messages.CreateAclsRequest, messages.DeleteRecordsRequest)
    grow, add, delete = messages.CreatePartitionsRequest, messages.AddPartitionsToTxnRequest, messages.DeleteAclsRequest

    def produced(index: int, transactional_id: str | None, **options: Any) -> Any:
        data = kwire.build_batch([(1, b"k", b"%d" % turn)] * 3, **options)
        return produce(acks=-1, timeout_ms=1, transactional_id=transactional_id, topic_data=[produce.TopicProduceData(
            name="t", partition_data=[produce.PartitionProduceData(index=index, records=data)])])

    yield create(timeout_ms=1, topics=[create.CreatableTopic(name=new, num_partitions=2, replication_factor=1)]), 7
    yield produced(0, None), 9
    yield commit(group_id="g", generation_id_or_member_epoch=-1, topics=[commit.OffsetCommitRequestTopic(
        name="t", partitions=[commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=turn)])]), 8
    yield alter(resources=[alter.AlterConfigsResource(resource_type=2, resource_name="t", configs=[
        alter.AlterableConfig(name="retention.ms", config_operation=0, value=str(turn))])]), 1
    yield acls(creations=[acls.AclCreation(
        resource_type=2, resource_name=new, resource_pattern_type=3, principal="User:a", host="*", operation=3,
        permission_type=3)]), 3
    yield messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4
    known = fleet.cluster.transactions.transactions.get("x")
    if known is not None:
        ours = {"producer_id": known.producer_id, "producer_epoch": known.epoch}
        yield add(
            v3_and_below_transactional_id="x", v3_and_below_producer_id=known.producer_id,
            v3_and_below_producer_epoch=known.epoch,
            v3_and_below_topics=[add.AddPartitionsToTxnTopic(name="t", partitions=[1])]), 3
        yield produced(1, "x", base_sequence=0, transactional=True, **ours), 9
        yield messages.EndTxnRequest(transactional_id="x", committed=bool(turn % 2), **ours), 3
    yield grow(timeout_ms=1, topics=[
        grow.CreatePartitionsTopic(name="u", count=2 + turn % 3, assignments=None)]), 3
    yield messages.DeleteTopicsRequest(
        timeout_ms=1, topics=[messages.DeleteTopicsRequest.DeleteTopicState(name=new)]), 6
    yield begin_at(timeout_ms=1, topics=[begin_at.DeleteRecordsTopic(
        name="t", partitions=[begin_at.DeleteRecordsPartition(partition_index=0, offset=turn // 2)])]), 2
    yield delete(filters=[delete.DeleteAclsFilter(
        resource_type_filter=2, resource_name_filter=new, pattern_type_filter=3, principal_filter=None,
        host_filter=None, operation=1, permission_type=1)]), 3
    yield messages.DeleteGroupsRequest(groups_names=["g"]), 2


def seen(fleet: Fleet) -> dict[Any, Any]:
    """What a fleet has: what a folder keeps, ACLs, configs."""
    log, found = fleet.cluster.controller.log, kept(fleet)
    found["acls"] = sorted(log.acl_set)
    found["configs"] = [log.configs_of(2, name) for name in sorted(fleet.cluster.topics)]
    return found


def codes(answer: Any) -> set[int]:
    """The error codes at the top and in the first rows of an answer."""
    found = {answer.error_code} if hasattr(answer, "error_code") else set[int]()
    for name in dir(answer):
        value = getattr(answer, name) if not name.startswith("_") else None
        for row in value if isinstance(value, list) else ():
            found |= codes(row)
    return found


async def handled(fleet: Fleet, c: Any, dice: random.Random, message: Any, version: int) -> str:
    """What came of one request during which memory fails. Raises Broken."""
    node = fleet.nodes[0]
    request = decode_request(encode_request(message, version, correlation_id=1, client_id="c"))
    connection, before = Connection(Silent()), seen(fleet)  # type: ignore[arg-type]
    at = int(dice.random() ** 2 * MOST)
    answer = None
    c.failing_begin(dice.choice((1, 1, 1, 2)), at, at + dice.choice((1, 1, 2, 3, 4, 5)))
    try:
        answer = await node._clients._handled(request, connection)
    except MemoryError:
        connection.close()
    finally:
        c.failing_end()
    where, after = f"{request.name} at {at}", seen(fleet)
    refused = any(codes(answer)) if answer is not None else False
    if refused and before != after and request.name not in ENDS:
        raise Broken(f"{where} was refused, and has changed {difference(before, after)}")
    log = fleet.cluster.controller.log
    if sorted((one.name, len(one.partitions)) for one in log.topics.values()) != sorted(
            (one.name, len(one.partitions)) for one in fleet.cluster.topics.values()):
        raise Broken(f"{where}: the topics of the metadata log and of the fleet are not the same")
    if len(log.acls) != len(log.acl_set):
        raise Broken(f"{where}: {len(log.acls)} ACLs, of which the set has {len(log.acl_set)}")
    until = time.monotonic() + PATIENCE
    while any(one.state.startswith("Prepare") for one in fleet.cluster.transactions.transactions.values()):
        if time.monotonic() > until:
            raise Broken(f"{where}: a transaction does not end")
        await asyncio.sleep(0.05)
    if answer is None and not connection.closing:
        raise Broken(f"{where} has no answer")
    return "refused" if refused else "answered" if answer is not None else "ended"


async def one_round(c: Any, dice: random.Random, folder: str | None, counts: Counter[str]) -> None:
    """A fleet in memory, or on a folder on which the next one starts. Raises Broken."""
    async with Fleet("4.4", topics={"t": 2, "u": 1}, data=folder) as fleet:
        for turn in range(1, TURNS + 1):
            for message, version in requests(turn, fleet):
                counts[await handled(fleet, c, dice, message, version)] += 1
        before = seen(fleet)
    if folder is not None:
        async with Fleet("4.4", data=folder) as fleet:
            if seen(fleet) != before:
                raise Broken(f"after the next start: {difference(before, seen(fleet))}")


def rounds(seconds: float, seed: int, least: int) -> Counter[str]:
    """What came of the requests, and how often, in as many rounds as the time allows. Raises Broken."""
    c, counts = allocations.preloaded(), Counter[str]()
    for number in numbers(seconds, least):
        with watched(120, f"seed {seed + number}"), tempfile.TemporaryDirectory(prefix="kwire-memory.") as folder:
            data = None if number % 4 == 3 else os.path.join(folder, "data")
            asyncio.run(one_round(c, random.Random(seed + number), data, counts))
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Run it."""
    if "LD_PRELOAD" not in os.environ:
        environment = os.environ | {"LD_PRELOAD": str(allocations.library())}
        command = [sys.executable, "-W", "ignore", "-m", "tests.hostile.fleet_allocations", *sys.argv[1:]]
        return subprocess.run(command, env=environment, cwd=ROOT).returncode
    return run(seeded(__doc__), arguments, lambda given: rounds(given.seconds, given.seed, given.least),
               "requests: nothing half done")


if __name__ == "__main__":
    sys.exit(main())
