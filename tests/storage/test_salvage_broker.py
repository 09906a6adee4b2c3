"""A real broker starts on a salvaged log directory, and serves all that was kept."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.net import connect_sync
from kwire.storage import LogDirectory, salvage_log
from tests.storage.restarts import start_on

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.0"


@pytest.fixture
def folder(golden: Path, tmp_path: Path) -> Path:
    """A broker's folder: data1 is salvaged from a golden log directory with damages in nearly all of its segments."""
    chance, damaged = random.Random(15), tmp_path / "damaged"
    shutil.copytree(golden / "data" / f"kafka-{RELEASE}" / "data1", damaged)
    for path in sorted(damaged.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        if path.suffix != ".log" or path.stat().st_size < 1000 or path.parent.name.startswith("__cluster"):
            continue
        data = bytearray(path.read_bytes())
        for _ in range(2):
            at = chance.randrange(len(data))
            data[at : at + 40] = chance.randbytes(len(data[at : at + 40]))
        path.write_bytes(data[: -chance.randrange(1, 60)])
    (tmp_path / "broker").mkdir()
    done = salvage_log(damaged, tmp_path / "broker" / "data1")
    assert len(done.lost) > 80 and not done.files_lost
    return tmp_path / "broker"


def fetched(connection: Any, topic: Any, partition: int, start: int, end: int) -> Iterator[bytes]:
    """The batches that a broker gives of a partition, up to offset end at least."""
    request = kwire.messages.FetchRequest
    while True:
        wanted = request.FetchPartition(partition=partition, fetch_offset=start, partition_max_bytes=1 << 24,
                                        current_leader_epoch=-1, log_start_offset=-1, last_fetched_epoch=-1)
        topics = [request.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[wanted])]
        answer = connection.send(request(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=topics,
                                         session_id=0, session_epoch=-1))
        (found,) = answer.responses[0].partitions
        assert found.error_code == 0, (topic.name, partition, kwire.schema.ErrorCode(found.error_code))
        batches = [one for one in kwire.read_batches(found.records or b"") if one.last_offset >= start]
        if not batches and start >= end:
            return
        if not batches:  # it has just become the leader
            time.sleep(0.2)
            continue
        yield from (one.raw for one in batches)
        start = batches[-1].last_offset + 1


def test_a_broker_serves_what_was_kept(folder: Path) -> None:
    kept = {(one.topic, one.partition): one for one in LogDirectory(folder / "data1")}
    before = {key: [one.raw for one in partition.batches()] for key, partition in kept.items()}
    with start_on(RELEASE, folder) as running, connect_sync(running.bootstrap) as connection:
        topics = connection.send(kwire.messages.MetadataRequest(topics=None)).topics
        assert len(topics) > 15
        compared = 0
        for topic in topics:
            if topic.name.startswith("__"):
                continue  # their coordinators write to them
            for number in range(len(topic.partitions)):
                batches = before[topic.name, number]
                start = 41 if (topic.name, number) == ("alpha-snappy", 0) else 0  # log-start-offset-checkpoint
                wanted = [raw for raw in batches if next(iter(kwire.read_batches(raw))).last_offset >= start]
                end = next(iter(kwire.read_batches(wanted[-1]))).last_offset + 1 if wanted else 0
                served = list(fetched(connection, topic, number, start, end))
                assert served[: len(wanted)] == wanted, (topic.name, number)
                # the transaction coordinator may have ended a transaction again, whose end it had lost
                assert all(one.is_control for one in kwire.read_batches(b"".join(served[len(wanted) :])))
                compared += len(wanted)
        assert compared > 300
    text = (folder / "server1.log").read_text()
    assert " ERROR " not in text
