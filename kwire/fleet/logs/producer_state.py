"""What a partition knows of its producers: idempotence and fencing, checked as Kafka's ProducerStateManager does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import NamedTuple

from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

_KEPT_BATCHES = 5  # ProducerStateEntry.NUM_BATCHES_TO_RETAIN: as many as a producer may have in flight
_LARGEST_SEQUENCE = (1 << 31) - 1
MOST_UNVERIFIED = 10_000  # producers of a partition


class WrittenBatch(NamedTuple):
    """A batch that was written: its first and last sequence, its first offset, and its timestamp in milliseconds."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    timestamp: int


class Producer:
    """The state of one producer id in one partition (ProducerStateEntry)."""

    def __init__(self) -> None:
        self.epoch = -1
        self.batches: deque[WrittenBatch] = deque(maxlen=_KEPT_BATCHES)
        self.first_offset: int | None = None  # of the ongoing transaction
        self.coordinator_epoch = -1
        self.last_timestamp = -1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record written, -1 if none is known."""
        return self.batches[-1].last_sequence if self.batches else -1


class _Unverified(NamedTuple):
    """Batches of a transaction of which none is written yet (VerificationStateEntry)."""

    epoch: int
    lowest_sequence: int  # with which one of them begins
    bumps_epoch: bool


def sequence_after(sequence: int, records: int) -> int:
    """The sequence so many records later: after 2^31-1 comes 0 (DefaultRecordBatch.incrementSequence)."""
    return (sequence + records) & _LARGEST_SEQUENCE


class ProducerStates:
    """The producers of one partition."""

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self._open: dict[int, int] = {}  # producer id -> the first offset of its ongoing transaction, ascending
        self.unverified: dict[int, _Unverified] = {}  # by producer id

    def must_verify(self, producer_id: int, epoch: int, first: int, *, bumps_epoch: bool, in_epoch: bool) -> bool:
        """Is a transaction's coordinator to be asked about a batch (UnifiedLog.maybeStartTransactionVerification)?

        Not while the transaction goes on here; in_epoch: in the same epoch. Until a batch of a transaction is written
        no batch of the producer may begin after the lowest sequence that was asked about. bumps_epoch: whether the end
        of the transaction gives a new epoch.
        """
        known = self.producers.get(producer_id)
        if known is not None and known.first_offset is not None and (known.epoch == epoch or not in_epoch):
            return False
        before = self.unverified.get(producer_id, _Unverified(epoch, first, bumps_epoch))
        if epoch > before.epoch or (epoch == before.epoch and first < before.lowest_sequence):
            before = before._replace(epoch=epoch, lowest_sequence=first)
        self.unverified[producer_id] = before
        if len(self.unverified) > MOST_UNVERIFIED:  # the oldest of those that never go on
            del self.unverified[next(iter(self.unverified))]
        return True

    def check(
        self, producer_id: int, epoch: int, first: int, last: int, *, transactional: bool = False,
        begins_at_zero: bool = False, refuses_unknown: bool = False,
    ) -> WrittenBatch | None:
        """Is a batch of these sequences the next one (ProducerAppendInfo)? The batch itself if it was written before.

        begins_at_zero: where no batch is known, the first one of a transaction that bumps the epoch has sequence 0;
        refuses_unknown: so does any first batch. Raises ApiError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER,
        UNKNOWN_PRODUCER_ID, INVALID_TXN_STATE.
        """
        known = self.producers.get(producer_id)
        if known is not None and epoch == known.epoch:
            for batch in known.batches:
                if (batch.first_sequence, batch.last_sequence) == (first, last):
                    return batch
        self.check_epoch(producer_id, epoch)
        self._check_unverified(
            producer_id, first, at_zero=begins_at_zero and not (known is not None and known.batches))
        no_sequence = known is None or known.epoch == -1 != epoch or (epoch == known.epoch and not known.batches)
        if first and refuses_unknown and no_sequence:
            raise ApiError(ErrorCode.UNKNOWN_PRODUCER_ID)
        if known is None:
            return None
        if epoch == known.epoch:
            follows = known.epoch == -1 or first == sequence_after(known.last_sequence, 1)
            reason = f"{first} (incoming seq. number), {known.last_sequence} (current end sequence number)"
        else:
            follows = first == 0 or known.epoch == -1
            reason = f"{first} (incoming seq. number) for new epoch {epoch}"
        if not follows:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id}: {reason}")
        if known.first_offset is not None and not transactional:
            raise ApiError(ErrorCode.INVALID_TXN_STATE)
        return None

    def _check_unverified(self, producer_id: int, first: int, *, at_zero: bool) -> None:
        """May a batch begin with this sequence, beside those that must_verify was asked about? Raises ApiError."""
        asked = self.unverified.get(producer_id)
        if asked is None:
            return
        if at_zero and asked.bumps_epoch and first:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for producer {producer_id}: {first} (incoming seq. number). Expected "
                "sequence 0 for transactions v2 idempotent producer with no existing state.")
        if first > asked.lowest_sequence:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id}: {first} (incoming seq. number), "
                f"{asked.lowest_sequence} (earliest seen sequence)")

    def adding(
        self, producer_id: int, epoch: int, batch: WrittenBatch, *, transactional: bool
    ) -> Callable[[], None]:
        """What is to be called when a batch was written; it may be called again after a MemoryError."""
        known = self._in_epoch(producer_id, epoch)
        known.batches.append(batch)
        known.last_timestamp = batch.timestamp
        if transactional and known.first_offset is None:
            known.first_offset = batch.first_offset
        return partial(self._keep, producer_id, known, transactional)

    def _in_epoch(self, producer_id: int, epoch: int) -> Producer:
        """A copy of what is known of a producer, in this epoch of it."""
        old = self.producers.get(producer_id) or Producer()
        known = copy(old)
        known.batches, known.epoch = deque(old.batches if epoch == old.epoch else (), _KEPT_BATCHES), epoch
        return known

    def _keep(self, producer_id: int, known: Producer, verified: bool) -> None:
        if verified:
            self.unverified.pop(producer_id, None)
        if known.first_offset is None:
            self._open.pop(producer_id, None)
        else:
            self._open[producer_id] = known.first_offset
        self.producers[producer_id] = known

    def check_epoch(self, producer_id: int, epoch: int, coordinator_epoch: int | None = None) -> None:
        """May a producer write in this epoch, or a coordinator its marker?

        Raises ApiError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        known = self.producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {known.epoch}")
        if known is not None and coordinator_epoch is not None and coordinator_epoch < known.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"The coordinator epoch is {coordinator_epoch}, the last seen one {known.coordinator_epoch}")

    def ending(
        self, producer_id: int, epoch: int, coordinator_epoch: int, timestamp: int
    ) -> tuple[int | None, Callable[[], None]]:
        """(the first offset of the transaction that a marker ends, None if none is ongoing; as adding())."""
        known = self._in_epoch(producer_id, epoch)
        first, known.first_offset = known.first_offset, None
        known.coordinator_epoch, known.last_timestamp = coordinator_epoch, timestamp
        asked = self.unverified.get(producer_id)
        of_next = asked is not None and asked.bumps_epoch and asked.epoch == epoch  # batches of the next transaction
        return first, partial(self._keep, producer_id, known, not of_next)

    def restore(self, producers: Mapping[int, Producer]) -> None:
        """Go on with these, by producer id."""
        self.producers.update(producers)
        ongoing = [(one.first_offset, number) for number, one in producers.items() if one.first_offset is not None]
        self._open.update({number: first for first, number in sorted(ongoing)})

    def first_unstable(self, without: int = -1) -> int | None:
        """The first offset of the oldest ongoing transaction, but that of a producer; None if there is none."""
        return next((first for producer_id, first in self._open.items() if producer_id != without), None)
