"""A fleet on a disk that fails: python -m tests.hostile.fleet_disk [--share N] [--only NAME].

Each call to the system that changes a file (write, rename, mkdir, open to write, ...) in turn fails, once or from then
on, or is where the process is killed; a library that is loaded before Python (failing_calls.c) does it, in a child for
each. In the child a fleet on a folder gets records, offsets, transactions and topics, and writes down what it
acknowledged. What must hold: every request has an answer, and the errors are KAFKA_STORAGE_ERROR; the end raises
OSError or nothing; a fleet that starts on the folder afterwards has all that was acknowledged, and nothing else but the
one change that was not answered.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import kwire
from kwire import messages
from kwire.fleet import Fleet
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode
from tests.hostile import failing_calls

RELEASE = "4.4"
ALLOWED = {
    ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}


class Failure(NamedTuple):
    """What happens at a call: an errno, at it alone or at all that follow too; or a signal."""

    error: int = 0
    ending: int = 0
    lasting: bool = False


FAILURES = {
    "full for a moment": Failure(errno.ENOSPC), "bad for a moment": Failure(errno.EIO),
    "full": Failure(errno.ENOSPC, lasting=True), "read-only": Failure(errno.EROFS, lasting=True),
    "killed": Failure(ending=signal.SIGKILL),
}  # fmt: skip


class Broken(AssertionError):
    """Something that was acknowledged is not there, or what was not is."""


class Client:
    """One client, one connection; acknowledged: called with what was."""

    def __init__(self, fleet: Fleet, acknowledged: Any) -> None:
        self.connection, self.acknowledged = connect_sync(fleet.bootstrap, timeout=20), acknowledged
        self.offsets = 0

    def ask(self, message: Any, version: int) -> Any:
        answer = self.connection.send(message, version)
        for code in codes(answer):
            if code and code not in ALLOWED:
                raise Broken(f"{type(message).__name__} is answered with {ErrorCode(code).name}")
        return answer

    def produce(self, value: str, **options: Any) -> bool:
        request = messages.ProduceRequest
        data = kwire.build_batch([(1, b"k", value.encode())], **options)
        answer = self.ask(request(acks=-1, timeout_ms=1000, transactional_id=(options and "x") or None, topic_data=[
            request.TopicProduceData(name="t", partition_data=[
                request.PartitionProduceData(index=0, records=data)])]), 12)
        return not answer.responses[0].partition_responses[0].error_code

    def commit(self, offset: int) -> None:
        request = messages.OffsetCommitRequest
        answer = self.ask(request(group_id="g", topics=[request.OffsetCommitRequestTopic(name="t", partitions=[
            request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)])]), 9)
        self.acknowledged("offset", offset, not answer.topics[0].partitions[0].error_code)

    def create(self, name: str) -> None:
        request = messages.CreateTopicsRequest
        answer = self.ask(request(topics=[
            request.CreatableTopic(name=name, num_partitions=2, replication_factor=1)]), 7)
        self.acknowledged("created", name, not answer.topics[0].error_code)

    def delete(self, name: str) -> None:
        request = messages.DeleteTopicsRequest
        answer = self.ask(request(topics=[request.DeleteTopicState(name=name)]), 6)
        self.acknowledged("deleted", name, not answer.responses[0].error_code)

    def alter(self, value: str) -> None:
        request = messages.IncrementalAlterConfigsRequest
        answer = self.ask(request(resources=[request.AlterConfigsResource(
            resource_type=2, resource_name="t", configs=[
                request.AlterableConfig(name="retention.ms", config_operation=0, value=value)])]), 1)
        self.acknowledged("config", value, not answer.responses[0].error_code)

    def begin_at(self, offset: int) -> None:
        request = messages.DeleteRecordsRequest
        answer = self.ask(request(topics=[request.DeleteRecordsTopic(name="t", partitions=[
            request.DeleteRecordsPartition(partition_index=0, offset=offset)])]), 2)
        self.acknowledged("start", offset, not answer.topics[0].partitions[0].error_code)

    def transaction(self, values: list[str], commit: bool) -> None:
        """Records of one transaction; an end that is refused is asked for again."""
        begun = self.ask(messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
        if begun.error_code:
            return
        ours = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        written = [value for at, value in enumerate(values)
                   if self.produce(value, base_sequence=at, transactional=True, **ours)]
        if len(written) != len(values):
            return
        self.acknowledged("ending", [written, commit], False)
        for _ in range(2):
            ended = self.ask(messages.EndTxnRequest(transactional_id="x", committed=commit, **ours), 4)
            if not ended.error_code:
                self.acknowledged("ending", [written, commit], True)
                return


def codes(row: Any) -> list[int]:
    """All error codes in an answer."""
    found = []
    for name in getattr(row, "__slots__", None) or dir(row):
        if name.startswith("_"):
            continue
        value = getattr(row, name, None)
        if name.endswith("error_code") and isinstance(value, int):
            found.append(int(value))
        elif isinstance(value, list):
            found += [code for one in value if not isinstance(one, (int, str, bytes)) for code in codes(one)]
    return found


def work(folder: str, note: Any) -> None:
    """What the child does. note(kind, what, done): what was asked for, and what came of it."""
    with Fleet(RELEASE, data=folder, topics={"t": 1}) as fleet:
        client = Client(fleet, note)
        with client.connection:
            for number in range(3):
                note("record", f"a{number}", client.produce(f"a{number}"))
            client.commit(1)
            client.create("u")
            client.transaction(["c0", "c1"], True)
            client.alter("1000000")
            client.transaction(["d0"], False)
            fleet.nodes[0].stop()
            fleet.nodes[0].start()
            client.begin_at(1)
            client.commit(2)
            client.delete("u")
            note("record", "z", client.produce("z"))


def child(
    preloaded: Any, folder: Path, number: int, failure: Failure, work: Callable[[str, Any], None] = work
) -> tuple[int, int, list[list[Any]]]:
    """(exit status, calls, what it noted) of work in a child."""
    notes = folder / "notes"
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            signal.alarm(60)
            stream = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            preloaded.calls_leave(stream)

            def note(*what: Any) -> None:
                os.write(stream, (json.dumps(what) + "\n").encode())

            preloaded.calls_begin(number, failure.error, failure.ending, failure.lasting)
            try:
                work(str(folder / "data"), note)
                status = 0
            except (OSError, kwire.KwireError) as error:
                if isinstance(error, (kwire.EncodeError, kwire.DecodeError)):
                    raise
                status = 1
                os.write(stream, (json.dumps(["error", f"{type(error).__name__}: {error}"]) + "\n").encode())
            os.write(stream, (json.dumps(["calls", preloaded.calls_end()]) + "\n").encode())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
    calls = next((line[1] for line in lines if line[0] == "calls"), 0)
    return os.waitstatus_to_exitcode(status), calls, lines


def judged(where: str, folder: Path, status: int, notes: list[list[Any]], failure: Failure) -> None:
    """Raises Broken."""
    if status not in ((-failure.ending,) if failure.ending else (0, 1)):
        raise Broken(f"{where}: the child ended with {status}: {notes[-1:]}")
    with Fleet(RELEASE, data=folder / "data", topics={"t": 1}) as fleet:
        topic = fleet.cluster.topics["t"]
        found = [(record.value or b"").decode() for record in fleet.records("t")]
        group = fleet.cluster.groups.groups.get("g")
        committed = None if group is None or not group.offsets else group.offsets["t", 0].offset
        names = set(fleet.cluster.topics) - {"t", "__consumer_offsets", "__transaction_state"}
        start, retention = topic.partitions[0].log.start_offset, topic.configs.get("retention.ms")
        states = {one.state for one in fleet.cluster.transactions.transactions.values()}
    done = [line for line in notes if line[0] not in ("calls", "error") and line[2]]
    asked = [line[:2] for line in notes if line[0] not in ("calls", "error")]
    records = [line[1] for line in done if line[0] == "record"]
    lost = [one for one in records if one not in found]
    if (lost and not (lost == records[:1] and start == 1)) or len(set(found)) != len(found):
        raise Broken(f"{where}: acknowledged {records}, found {found} from {start}")
    known = {line[1] for line in notes if line[0] == "record"} | {"c0", "c1", "d0", "a0", "a1", "a2", "z"}
    if failed := [line[1] for line in notes if line[0] == "record" and not line[2] and line[1] in found]:
        raise Broken(f"{where}: {failed} were refused, and are there: {found}")
    if not set(found) <= known:
        raise Broken(f"{where}: found {found}")
    offsets = [line[1] for line in done if line[0] == "offset"]
    if offsets and (committed is None or committed < offsets[-1]):
        raise Broken(f"{where}: committed {offsets[-1]}, found {committed}")
    if ["created", "u"] in asked:
        created, deleted = (any(line[0] == kind for line in done) for kind in ("created", "deleted"))
        if created and not deleted and ["deleted", "u"] not in asked and "u" not in names and status >= 0:
            raise Broken(f"{where}: a topic is gone")
        if deleted and "u" in names:
            raise Broken(f"{where}: a deleted topic is there")
    if any(line[0] == "start" for line in done) and start < 1:
        raise Broken(f"{where}: the log begins at {start}, acknowledged 1")
    if any(line[0] == "config" for line in done) and retention != "1000000":
        raise Broken(f"{where}: retention.ms is {retention}")
    if states & {"PrepareCommit", "PrepareAbort"}:
        raise Broken(f"{where}: a transaction is {states}")


def rounds(
    preloaded: Any, only: list[str], share: int, work: Callable[[str, Any], None] = work, judged: Any = judged
) -> int:
    """How many runs there were. Raises Broken."""
    count = 0
    with tempfile.TemporaryDirectory(prefix="kwire-fleet-disk.") as name:
        place = Path(name)
        work(str(place / "warm"), lambda *_: None)  # imports what it needs once, here
        (place / "whole").mkdir()
        status, calls, notes = child(preloaded, place / "whole", 1 << 40, Failure(), work)
        if status or not calls or not all(line[2] for line in notes if line[0] not in ("calls", "ending")):
            raise Broken(f"without a failure: {status}, {notes}")
        judged("without a failure", place / "whole", status, notes, Failure())
        for turn, (title, failure) in enumerate(FAILURES.items()):
            if only and title not in only:
                continue
            for number in range(turn % share, calls, share):
                folder = place / "run"
                folder.mkdir()
                where = f"{title} at call {number} of {calls}"
                status, _, notes = child(preloaded, folder, number, failure, work)
                try:
                    judged(where, folder, status, notes, failure)
                except Broken:
                    raise
                except Exception as error:
                    raise Broken(f"{where}: the next fleet does not start: {type(error).__name__}: {error}") from error
                shutil.rmtree(folder)
                count += 1
    return count


def main(arguments: list[str] | None = None) -> int:
    """Run it."""
    return failing_calls.run_preloaded("fleet_disk", __doc__, FAILURES, rounds, "nothing lost", arguments)


if __name__ == "__main__":
    sys.exit(main())
