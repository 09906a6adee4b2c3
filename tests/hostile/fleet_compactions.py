"""A Fleet's log that is compacted: python -m tests.hostile.fleet_compactions --seconds N [--seed S].

A round appends batches and transactions to a log, in memory or on disk, ends transactions, compacts, rolls and opens it
again, after a clean shutdown or a kill. After each step a read_committed consumer's view is compared with all that was
appended: ascending offsets, only records that were appended and not aborted, and for each key the newest value before
the last stable offset. Searches by timestamp find what a look at every record finds. In the end a log on disk verifies.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kwire import build_batch, read_batches
from kwire.codec.records import Record
from kwire.fleet.disk.segment_store import SegmentStore
from kwire.fleet.logs.batch_store import BatchStore
from kwire.fleet.logs.log_settings import LogSettings
from kwire.fleet.logs.partition_log import PartitionLog
from kwire.fleet.logs.retention import compact
from kwire.storage import LogDirectory
from tests.hostile.rounds import numbers, run, seeded, watched

START = 1_700_000_000_000  # ms
STEPS = 80
WEIGHTS = {"append": 35, "in a transaction": 25, "marker": 18, "compact": 12, "roll": 3, "restart": 7}
KEYS = 5
READ = 300  # bytes of a fetch
PATIENCE = 60.0


@dataclass
class Transaction:
    """Of a producer. is_committed: None while it is open."""

    is_committed: bool | None = None


@dataclass
class Model:
    """All that was appended: (offset, key, value, its transaction or None)."""

    rows: list[tuple[int, bytes, bytes | None, Transaction | None]] = field(default_factory=list)

    def legal(self) -> set[tuple[int, bytes, bytes | None]]:
        """The records that a read_committed consumer may get."""
        return {(offset, key, value) for offset, key, value, of in self.rows if of is None or of.is_committed}

    def newest(self, end: int) -> dict[bytes, bytes]:
        """The newest value of each key before an offset, without deleted keys."""
        found = {key: value for offset, key, value in sorted(self.legal(), key=lambda row: row[0]) if offset < end}
        return {key: value for key, value in found.items() if value is not None}


class Round:
    """A log and the model of it. folder: of the log on disk; None: in memory."""

    def __init__(self, dice: random.Random, folder: Path | None) -> None:
        self._dice, self._folder, self._model = dice, folder, Model()
        self._settings = LogSettings(
            compacts=True, deletes=False, segment_bytes=dice.choice((200, 500, 2000, 1 << 20)),
            index_interval_bytes=dice.choice((0, 200, 4096)), delete_retention_ms=dice.choice((0, 1000, 10**9)))
        self._log = self._opened()
        self._open: dict[int, Transaction] = {}
        self._sequences: dict[int, int] = {}
        self._now, self._epoch = START, 0

    def _opened(self) -> PartitionLog:
        store: BatchStore = BatchStore()
        log = None
        if self._folder is not None:
            store = disk = SegmentStore(
                str(self._folder), "t", 0, interval=self._settings.index_interval_bytes, started=lambda _: None,
                reopened=lambda: None)
            log = disk.open()
        log = log or PartitionLog(store)
        log.settings = self._settings
        return log

    def step(self, number: int) -> str:
        """Do something to the log; what it was."""
        dice = self._dice
        self._now += dice.choice((0, 0, 500, 2000, -700))
        self._epoch += dice.random() < 0.05
        what = dice.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        if what == "append":
            self._append(number, dice.choice((-1, -1, 7)))
        elif what == "in a transaction":
            producer = dice.randrange(3)
            self._append(number, producer, self._open.setdefault(producer, Transaction()))
        elif what == "marker" and self._open:
            producer = dice.choice(sorted(self._open))
            is_committed = dice.random() < 0.5
            self._log.append_marker(producer, 0, is_committed, 0, self._epoch, self._now)
            self._open.pop(producer).is_committed = is_committed
        elif what == "compact":
            compact(self._log, self._now)
        elif what == "roll":
            self._log.roll()
        elif what == "restart" and self._folder is not None and self._model.rows:
            self._restart(self._folder, dice.random() < 0.5)
        return what

    def _append(self, number: int, producer: int, of: Transaction | None = None) -> None:
        dice, values = self._dice, (None, b"v%d" % number, b"w%d" % number)
        rows = [(self._now, b"k%d" % dice.randrange(KEYS), dice.choice(values)) for _ in range(dice.choice((1, 1, 3)))]
        sequence = -1
        if producer >= 0:
            sequence = self._sequences.get(producer, 0)
            self._sequences[producer] = sequence + len(rows)
        data = build_batch(
            rows, codec=dice.choice(("none", "none", "gzip", "lz4")), producer_id=producer,
            producer_epoch=min(producer, 0), base_sequence=sequence, transactional=of is not None)
        base = self._log.append(list(read_batches(data)), self._epoch, self._now).base_offset
        self._model.rows += [(base + at, key, value, of) for at, (_, key, value) in enumerate(rows)]

    def _restart(self, folder: Path, killed: bool) -> None:
        if killed:  # what is in the files now
            shutil.copytree(folder, f"{folder}.killed")
        self.close()
        if killed:
            shutil.rmtree(folder)
            shutil.move(f"{folder}.killed", folder)
        self._log = self._opened()

    def close(self) -> None:
        """A clean shutdown."""
        self._log.store.close()

    def check(self) -> None:
        """Raise AssertionError if the log is not what the model says."""
        seen = [(record.offset, record.key or b"", record.value) for record in committed(self._log)]
        offsets = [offset for offset, _, _ in seen]
        assert offsets == sorted(set(offsets)), f"offsets {offsets}"
        assert set(seen) <= self._model.legal(), f"not committed: {set(seen) - self._model.legal()}"
        newest = {key: value for _, key, value in seen}
        have = {key: value for key, value in newest.items() if value is not None}
        want = self._model.newest(self._log.last_stable_offset)
        assert have == want, f"have {have}, expected {want}"
        self._check_searches()

    def _check_searches(self) -> None:
        log = self._log
        data = log.read(log.start_offset, 1 << 40, log.end_offset, True)
        records = [record for batch in read_batches(data) for record in batch]
        for timestamp in (START, self._now, *(START + self._dice.randrange(-2000, 50_000) for _ in range(4))):
            want = next(((one.offset, one.timestamp) for one in records if one.timestamp >= timestamp), (-1, -1))
            found = log.find(timestamp)[:2]
            assert found == want, f"timestamp {timestamp}: found {found}, expected {want}"


def committed(log: PartitionLog) -> Iterable[Record]:
    """The records that a read_committed consumer gets, by fetches of a few batches. Source: Kafka's CompletedFetch."""
    at = log.start_offset
    while at < log.last_stable_offset:
        batches = list(read_batches(log.read(at, READ, log.last_stable_offset, True)))
        if not batches:
            return
        end = batches[-1].last_offset + 1
        aborted = sorted((one.first_offset, one.producer_id) for one in log.aborted_in(at, end))
        ongoing = set[int]()
        for batch in batches:
            while aborted and aborted[0][0] <= batch.last_offset:
                ongoing.add(aborted.pop(0)[1])
            if batch.is_control:
                if any(record.control_type == "ABORT" for record in batch):
                    ongoing.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in ongoing):
                yield from (record for record in batch if record.offset >= at)
        at = end


def rounds(seconds: float, seed: int, least: int = 1) -> Counter[str]:
    """Logs until the time is over, at least so many; the steps that were checked."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kwire-compactions.") as name:
        folder = Path(name, "log")
        for number in numbers(seconds, least):
            dice = random.Random(seed + number)
            shutil.rmtree(folder, ignore_errors=True)
            on_disk = dice.random() < 0.6
            made = Round(dice, folder if on_disk else None)
            for step in range(STEPS):
                with watched(PATIENCE, f"step {step}: --seed {seed + number} --seconds 0"):
                    counts[made.step(step)] += 1
                    made.check()
            if on_disk:
                made.close()
                problems = LogDirectory(str(folder)).verify() if folder.exists() else []
                assert not problems, f"{problems}: --seed {seed + number} --seconds 0"
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Rounds until the time is over."""
    return run(seeded(__doc__), arguments, lambda given: rounds(given.seconds, given.seed, given.least),
               "steps: nothing lost, nothing that was aborted")


if __name__ == "__main__":
    sys.exit(main())
