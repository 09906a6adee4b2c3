"""What a partition's log says of its producers: as ProducerStateManager keeps it, for snapshots and the .txnindex."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import islice
from typing import Any

from kwire.errors import KwireError, LimitError
from kwire.storage.side_files.checkpoints import ProducerState
from kwire.storage.side_files.indexes import AbortedTransaction

MOST_PRODUCERS = 1_000_000  # of one partition: a snapshot of them has 46 MB
_LARGEST_SEQUENCE = (1 << 31) - 1


class ProducerStates:
    """The producers of a partition, batch by batch. known: what a snapshot says of them at the beginning."""

    def __init__(self, known: Iterable[ProducerState] = ()) -> None:
        self._states = {state.producer_id: state for state in known}
        self._most = len(self._states)
        self._ongoing = {
            state.producer_id: first for state in self._states.values()
            if (first := state.current_transaction_first_offset) >= 0
        }
        # (first offset, producer id) of ongoing transactions and of some that have ended, a heap
        self._heap = sorted((first, producer) for producer, first in self._ongoing.items())

    def add(self, batch: Any) -> AbortedTransaction | None:
        """Follow one RecordBatch of the log; the entry for the .txnindex if it aborts a transaction.

        As ProducerAppendInfo.append for what was replicated: nothing is refused. Raises LimitError for more than
        MOST_PRODUCERS.
        """
        producer = batch.producer_id
        if producer < 0:
            return None
        state = self._states.get(producer) or ProducerState(producer, -1, -1, -1, 0, -1, -1, -1)
        if producer not in self._states and len(self._states) >= MOST_PRODUCERS:
            needed = len(self._states) + 1
            raise LimitError("too many producers in one partition", limit=MOST_PRODUCERS, needed=needed, offset=None)
        aborted = None
        if batch.is_control:
            marker = _marker(batch)
            if marker is None:
                return None
            aborts, coordinator_epoch, timestamp = marker
            if producer in self._ongoing:
                first = self._ongoing.pop(producer)
                if aborts:
                    stable = self._first_ongoing()
                    stable = batch.base_offset + 1 if stable is None else stable
                    aborted = AbortedTransaction(0, producer, first, batch.base_offset, stable)
            state = _in_epoch(state, batch.producer_epoch)._replace(
                coordinator_epoch=coordinator_epoch, timestamp=timestamp, current_transaction_first_offset=-1)
        else:
            first = state.current_transaction_first_offset
            if batch.is_transactional and first < 0:
                first = self._ongoing[producer] = batch.base_offset
                heappush(self._heap, (first, producer))
            delta = batch.last_offset - batch.base_offset
            state = _in_epoch(state, batch.producer_epoch)._replace(
                last_sequence=_last_sequence(batch.base_sequence, delta), last_offset=batch.last_offset,
                offset_delta=delta, timestamp=batch.max_timestamp, current_transaction_first_offset=first)
        self._states[producer] = state
        self._most = max(self._most, len(self._states))
        return aborted

    def _first_ongoing(self) -> int | None:
        while self._heap and self._ongoing.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def open_transactions(self) -> list[tuple[int, int]]:
        """(first offset, producer id) of the ongoing transactions, ascending."""
        return sorted((first, producer) for producer, first in [*self._ongoing.items()])  # others may change it

    def in_order(self) -> list[ProducerState]:
        """The producers in the order in which a snapshot has them: that of a java.util.HashMap of Longs."""
        buckets = 16
        while self._most > buckets * 3 // 4:
            buckets *= 2

        def bucket(state: ProducerState) -> int:
            value = (state.producer_id ^ state.producer_id >> 32) & 0xFFFFFFFF
            return (value ^ value >> 16) & (buckets - 1)

        return sorted(self._states.values(), key=bucket)


def _in_epoch(state: ProducerState, epoch: int) -> ProducerState:
    """In a new epoch, what was written in the one before is forgotten."""
    if state.producer_epoch == epoch:
        return state
    return state._replace(producer_epoch=epoch, last_sequence=-1, last_offset=-1, offset_delta=0)


def _last_sequence(base: int, delta: int) -> int:
    """The sequence of a batch's last record, which wraps to 0 (DefaultRecordBatch.lastSequence)."""
    if base < 0:
        return -1
    return base + delta if base + delta <= _LARGEST_SEQUENCE else base + delta - _LARGEST_SEQUENCE - 1


def _marker(batch: Any) -> tuple[bool, int, int] | None:
    """(does it abort, coordinator epoch, timestamp) of a transaction marker; None for an empty or other batch."""
    try:
        record = next(islice(batch, 1), None)
        if record is None or record.control_type not in ("ABORT", "COMMIT"):
            return None
        marker = record.control
        return record.control_type == "ABORT", -1 if marker is None else marker.coordinator_epoch, record.timestamp
    except KwireError:  # its records are damaged, though its checksum is right
        return None
