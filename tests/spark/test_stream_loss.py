"""Streams lose and repeat nothing without a word: what happens to a log between two runs of one query.

Every case is a topic of its own. One query reads them all, then the logs change, then it goes on from its checkpoint:
once for each topic with failOnDataLoss as it is by default, and once for all of them with "false".
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import kwire
from tests.spark.logs import batch, segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def batches(start: int, end: int, count: int = 5) -> bytes:
    """Batches of count records with the offsets from start up to end."""
    return b"".join(batch(base, min(count, end - base)) for base in range(start, end, count))


def cleaned(data: bytes, *kept: int) -> bytes:
    """The batches as Kafka's cleaner writes them when only these offsets are kept: a batch keeps its base offset and
    its last one, and goes when it has no record left."""
    written = []
    for old in kwire.read_batches(data):
        records = [record for record in old if record.offset in kept]
        if len(records) == len(list(old)):
            written.append(bytes(old.raw))
        elif records:
            written.append(kwire.build_batch(records, base_offset=old.base_offset, last_offset=old.last_offset,
                                             partition_leader_epoch=old.partition_leader_epoch))
    return b"".join(written)


def log(folder: Path, base: int) -> Path:
    return folder / f"{base:020d}.log"


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


class Case(NamedTuple):
    """before, after: write the folder. lost: what the query fails with, "" if it goes on. rows: what a query with
    failOnDataLoss=false has written in the end."""

    before: Callable[[Path], object]
    after: Callable[[Path], object]
    lost: str
    rows: list[int]


def gone(folder: Path) -> None:
    append(log(folder, 0), batches(30, 60))
    shutil.rmtree(folder)


def cleaned_around(folder: Path) -> None:
    """The stream is at 20, in the middle of a segment; the cleaner removes whole batches before it."""
    log(folder, 0).write_bytes(batches(0, 5) + batches(15, 30))
    segment(folder, 30, batches(30, 35))


def cleaned_at(folder: Path) -> None:
    """As before, and the batch that was read last goes too, and some of those that are due."""
    log(folder, 0).write_bytes(cleaned(batches(0, 30), 1, 2, 3, 11, 22, 24, 28))
    segment(folder, 30, batches(30, 35))


def cleaned_and_merged(folder: Path) -> None:
    """The cleaner writes segments 0 and 10 into one, named 0."""
    log(folder, 10).unlink()
    log(folder, 0).write_bytes(cleaned(batches(0, 30), *range(3, 30)))
    segment(folder, 30, batches(30, 35))


def deleted_unread(folder: Path) -> None:
    shutil.rmtree(folder)
    segment(folder, 90, batches(90, 95))


def made_anew(folder: Path) -> None:
    shutil.rmtree(folder)
    segment(folder, 0, batches(0, 35, 7))


def made_anew_alike(folder: Path) -> None:
    """Batches at the same offsets and bytes, with other content."""
    shutil.rmtree(folder)
    segment(folder, 0, *(kwire.build_batch([(1, b"k%d" % n, b"w%d" % n) for n in range(base, base + 5)],
                                           base_offset=base) for base in range(0, 40, 5)))


def made_anew_shorter(folder: Path) -> None:
    shutil.rmtree(folder)
    segment(folder, 0, batches(0, 14, 7))


def rewritten(folder: Path) -> None:
    """Truncated to 20, as after a change of leader, and written on with other batches."""
    log(folder, 0).write_bytes(batches(0, 20) + batches(20, 36, 4))


def of_epoch(epoch: int, start: int, end: int) -> bytes:
    return b"".join(batch(base, 5, partition_leader_epoch=epoch) for base in range(start, end, 5))


def rewritten_and_cleaned(folder: Path) -> None:
    """As before, by a leader of the next epoch, and then cleaned: of the batch with offset 29 only 28 is left."""
    log(folder, 0).write_bytes(cleaned(of_epoch(0, 0, 15) + of_epoch(1, 15, 35), *range(10), 16, 28, *range(30, 35)))


def rewritten_and_removed(folder: Path) -> None:
    """As before, and the cleaner removed all of that batch."""
    log(folder, 0).write_bytes(cleaned(of_epoch(0, 0, 15) + of_epoch(1, 15, 35), *range(10), 16, *range(30, 35)))


EPOCH_0: Callable[[Path], object] = lambda folder: segment(folder, 0, of_epoch(0, 0, 30))  # noqa: E731
THIRTY: Callable[[Path], object] = lambda folder: segment(folder, 0, batches(0, 30))  # noqa: E731
TWENTY: Callable[[Path], object] = lambda folder: segment(folder, 0, batches(0, 20))  # noqa: E731
TWO: Callable[[Path], object] = lambda folder: (  # noqa: E731
    segment(folder, 0, batches(0, 10)), segment(folder, 10, batches(10, 20)))

CASES = {
    "gone": Case(THIRTY, gone, r"gone-0 is gone.*offset 30", [*range(30)]),
    "cleaned-around": Case(TWENTY, cleaned_around, "", [*range(35)]),
    "cleaned-at": Case(TWENTY, cleaned_at, "", [*range(20), 22, 24, 28, *range(30, 35)]),
    "cleaned-and-merged": Case(TWO, cleaned_and_merged, "", [*range(35)]),
    "deleted": Case(THIRTY, deleted_unread, r"deleted-0/0+\.log was deleted.*offsets 30\.\.89 are lost",
                    [*range(30), *range(90, 95)]),
    "middle": Case(THIRTY, lambda folder: segment(folder, 90, batches(90, 95)), r"middle-0.*offsets 30\.\.89 ",
                   [*range(30), *range(90, 95)]),
    "read-and-deleted": Case(THIRTY, lambda folder: (log(folder, 0).unlink(), segment(folder, 30, batches(30, 35))), "",
                             [*range(35)]),
    "anew": Case(THIRTY, made_anew, r"anew-0.*deleted and made again.*offset 30", sorted([*range(30), *range(35)])),
    "anew-alike": Case(THIRTY, made_anew_alike, r"anew-alike-0.*deleted and made again",
                       sorted([*range(30), *range(40)])),
    "anew-shorter": Case(THIRTY, made_anew_shorter, r"anew-shorter-0.*deleted and made again.*ends at offset 14",
                         sorted([*range(30), *range(14)])),
    "truncated": Case(THIRTY, lambda folder: log(folder, 0).write_bytes(batches(0, 10)),
                      r"truncated-0.*truncated.*ends at offset 10.*offset 30", [*range(30)]),
    "rewritten": Case(THIRTY, rewritten, r"rewritten-0.*truncated.*written again.*offset 30",
                      [*range(30), *range(30, 36)]),
    "rewritten-cleaned": Case(EPOCH_0, rewritten_and_cleaned, r"cleaned-0.*truncated and written again.*25\.\.29 is of "
                              "leader epoch 1.*were of epoch 0.*goes on at offset 30", [*range(35)]),
    "rewritten-removed": Case(EPOCH_0, rewritten_and_removed, r"removed-0.*truncated and written again.*15\.\.19 is of "
                              "leader epoch 1", [*range(35)]),
    "part": Case(lambda folder: None, lambda folder: (segment(folder, 0, batches(0, 10)),
                                                      segment(folder, 20, batches(20, 25))),
                 r"part-0.*offsets 10\.\.19 ", [*range(10), *range(20, 25)]),
    "added": Case(lambda folder: None, lambda folder: segment(folder, 5, batches(5, 10)),
                  r"added-0.*begins at offset 5", [*range(5, 10)]),
    "before": Case(lambda folder: segment(folder, 30, batches(30, 35)),
                   lambda folder: segment(folder, 0, batches(0, 30)), r"before-0.*offsets 0\.\.29", [*range(30, 35)]),
}  # fmt: skip


def run(spark: SparkSession, logs: str | Path, out: Path, checkpoint: Path, **options: str) -> None:
    """All data that is there now, from the checkpoint on."""
    stream = spark.readStream.format("kwire").options(**options).load(str(logs)).select("topic", "offset")
    query = (
        stream.writeStream.format("parquet").option("path", str(out)).trigger(availableNow=True)
        .option("checkpointLocation", str(checkpoint)).start()
    )
    assert query.awaitTermination(180)


def rows(spark: SparkSession, out: Path) -> dict[str, list[int]]:
    read: dict[str, list[int]] = {}
    for row in spark.read.parquet(str(out)).collect():
        read.setdefault(row.topic, []).append(row.offset)
    return {topic: sorted(offsets) for topic, offsets in read.items()}


@pytest.fixture(scope="module")
def changed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the changed logs, the checkpoint from before, and out, which failOnDataLoss=false has written."""
    home = tmp_path_factory.mktemp("loss")
    for topic, case in CASES.items():
        case.before(home / "logs" / f"{topic}-0")
    run(spark, home / "logs", home / "out", home / "checkpoint")
    shutil.copytree(home / "checkpoint", home / "before")
    for topic, case in CASES.items():
        case.after(home / "logs" / f"{topic}-0")
    for _ in range(2):  # on Spark 4.0 and 4.1 availableNow is one micro-batch, which ends before a gap
        run(spark, home / "logs", home / "out", home / "checkpoint", failOnDataLoss="false")
    return home


@pytest.mark.parametrize("topic", CASES)
def test_a_query_fails_on_data_loss(spark: SparkSession, changed: Path, tmp_path: Path, topic: str) -> None:
    from pyspark.errors import StreamingQueryException

    case = CASES[topic]
    shutil.copytree(changed / "before", tmp_path / "checkpoint")
    if not case.lost:
        run(spark, changed / "logs", tmp_path / "out", tmp_path / "checkpoint", topic=topic)
        return
    with pytest.raises(StreamingQueryException, match=f'(?s){case.lost}.*failOnDataLoss to "false"'):
        for _ in range(2):  # the rows before a gap come first
            run(spark, changed / "logs", tmp_path / "out", tmp_path / "checkpoint", topic=topic)


@pytest.mark.parametrize("topic", CASES)
def test_a_query_goes_on_after_data_loss(spark: SparkSession, changed: Path, topic: str) -> None:
    assert rows(spark, changed / "out")[topic] == CASES[topic].rows


@pytest.fixture
def read_logs(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    for partition in (0, 1):
        segment(tmp_path / "logs" / f"t-{partition}", 0, batches(0, 10))
    run(spark, tmp_path / "logs", tmp_path / "out", tmp_path / "checkpoint")
    yield tmp_path


def test_another_spelling_of_the_path_is_the_same_stream(spark: SparkSession, read_logs: Path) -> None:
    home = read_logs
    (home / "link").symlink_to(home / "logs")
    (home / "current").symlink_to(home / "logs" / "t-0")
    here = os.path.relpath(home / "logs")
    for count, path in enumerate([home / "link", f"{home}//logs/", here, f"file://{home}/logs", home / "logs" / "t-*",
                                  f"{home}/current,{home}/logs/t-1", f"{home}/logs,{home}/link"]):
        append(log(home / "logs" / "t-0", 0), batches(10 + count, 11 + count))
        run(spark, path, home / "out", home / "checkpoint")
        assert rows(spark, home / "out") == {"t": sorted([*range(11 + count), *range(10)])}, path


def test_a_segment_that_arrives_after_its_follower_is_read_in_order(spark: SparkSession, read_logs: Path) -> None:
    from pyspark.errors import StreamingQueryException

    home = read_logs
    segment(home / "logs" / "t-0", 20, batches(20, 30))
    with pytest.raises(StreamingQueryException, match=r"offsets 10\.\.19"):
        run(spark, home / "logs", home / "out", home / "checkpoint")
    segment(home / "logs" / "t-0", 10, batches(10, 15))
    with pytest.raises(StreamingQueryException, match=r"offsets 15\.\.19"):
        for _ in range(2):  # on Spark 4.0 and 4.1 availableNow is one micro-batch
            run(spark, home / "logs", home / "out", home / "checkpoint")
    append(log(home / "logs" / "t-0", 10), batches(15, 20))
    run(spark, home / "logs", home / "out", home / "checkpoint")
    assert rows(spark, home / "out") == {"t": sorted([*range(30), *range(10)])}


def test_a_file_that_goes_between_planning_and_reading(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import DataFrame

    for kind in ("deleted", "truncated"):
        for lenient in ("true", "false"):
            logs = tmp_path / f"{kind}-{lenient}"
            segment(logs / "t-0", 0, batches(0, 10))
            segment(logs / "t-1", 0, batches(0, 10))
            read: list[int] = []

            def change(frame: DataFrame, number: int, logs: Path = logs, kind: str = kind,
                       read: list[int] = read) -> None:
                path = log(logs / "t-0", 0)
                path.unlink() if kind == "deleted" else path.write_bytes(batches(0, 5))
                read.extend(row.offset for row in frame.collect())

            stream = spark.readStream.format("kwire").option("failOnDataLoss", lenient).load(str(logs))
            query = stream.writeStream.foreachBatch(change).trigger(availableNow=True).start()
            if lenient == "true":
                with pytest.raises(StreamingQueryException, match=f"(?s){kind}.*t-0/0+.log.*failOnDataLoss"):
                    query.awaitTermination(180)
            else:
                assert query.awaitTermination(180)
                assert sorted(read) == sorted([*range(10), *(range(5) if kind == "truncated" else ())])
