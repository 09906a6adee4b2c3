"""Transactions: producer ids, epochs, partitions, markers (Kafka's TransactionCoordinator; KIP-98, 360, 890)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kwire.fleet.clock import Timer
from kwire.fleet.errors import ApiError, certainly
from kwire.schema.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState

EMPTY, ONGOING, COMMITTED, ABORTED = "Empty", "Ongoing", "CompleteCommit", "CompleteAbort"
_PREPARED = {"PrepareCommit": True, "PrepareAbort": False, "PrepareEpochFence": False}  # state -> does it commit
_BLOCK = 1000  # producer ids that are taken at a time (ProducerIdsBlock)
_LARGEST_EPOCH = (1 << 15) - 2  # the last one is kept to fence: Short.MAX_VALUE - 1
_AGAIN = 1.0  # seconds until what the disk refused is tried again
Participant = tuple[str, int] | str  # a partition, or a group whose offsets are committed


@dataclass(frozen=True, eq=False)
class Transaction:
    """The state of one transactional id. timeout: seconds; participants: partitions, and groups by their ids."""

    id: str
    producer_id: int
    epoch: int
    timeout: float
    state: str = EMPTY
    participants: frozenset[Participant] = frozenset()
    last_epoch: int = -1  # before the last bump
    last_producer_id: int = -1
    started: float = 0.0
    is_restored: bool = False  # its groups are known by their partitions alone


class TransactionCoordinator:
    """The transactional ids of a fleet. max_timeout: seconds, transaction.max.timeout.ms."""

    def __init__(self, cluster: ClusterState, max_timeout: float = 900.0) -> None:
        self._cluster, self.max_timeout = cluster, max_timeout
        self.transactions: dict[str, Transaction] = {}
        self._next_producer_id = self._block_end = 0
        self._timer = Timer(cluster.clock, self._end_late)

    def new_producer_id(self) -> int:
        """A producer id that nobody has."""
        if self._next_producer_id >= self._block_end:
            end = self._next_producer_id + _BLOCK
            self._cluster.take_producer_ids(end)
            self._block_end = end
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def init(self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int) -> tuple[int, int]:
        """(producer id, epoch) for a producer that starts, or that goes on after an error (KIP-360).

        An ongoing transaction is aborted, its producer fenced. producer_id, epoch: its own, or -1; who asks again
        after the answer was lost gets the same epoch. Raises ApiError.
        """
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.max_timeout * 1000:
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        known = self.transactions.get(transactional_id)
        if known is None:
            known = Transaction(transactional_id, self.new_producer_id(), -1, timeout_ms / 1000)
        elif producer_id >= 0 and not self._may_go_on(known, producer_id, epoch):
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        self._check_whole(known)
        if known.state == ONGOING:  # fence first, then abort
            fenced = {"epoch": known.epoch + 1, "last_epoch": known.epoch if self._bumps else -1}
            known = self._ended(known, False, fenced)
        if producer_id < 0:
            changes = self._bumped(known) | {"last_epoch": -1}
        elif epoch == known.epoch or known.epoch == -1:
            changes = self._bumped(known)
        elif epoch == known.last_epoch:
            changes = {}
        else:
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        known = self._kept(known, changes | {"timeout": timeout_ms / 1000, "state": EMPTY, "started": 0.0})
        return known.producer_id, known.epoch

    @property
    def _bumps(self) -> bool:
        """Whether each end of a transaction gives a new epoch (transaction.version 2): the fenced one is the last."""
        return self._cluster.levels.get("transaction.version", 0) >= 2

    def _kept(self, known: Transaction, changes: dict[str, Any]) -> Transaction:
        """The transaction with changes, when they are kept. Raises ApiError, MemoryError, and nothing has changed."""
        changed = replace(known, **changes)
        counts = partial(self.transactions.__setitem__, changed.id, changed)
        self._cluster.storage.transaction_changed(changed)
        certainly(counts)
        return changed

    @staticmethod
    def _may_go_on(known: Transaction, producer_id: int, epoch: int) -> bool:
        return known.producer_id == producer_id or (known.last_producer_id == producer_id and epoch >= _LARGEST_EPOCH)

    def _bumped(self, known: Transaction) -> dict[str, Any]:
        """What changes with the next epoch, or the next producer id."""
        if known.epoch >= _LARGEST_EPOCH:
            return {"last_producer_id": known.producer_id, "last_epoch": known.epoch,
                    "producer_id": self.new_producer_id(), "epoch": 0}
        return {"last_epoch": known.epoch, "epoch": known.epoch + 1}

    def of(self, transactional_id: str, producer_id: int, epoch: int) -> Transaction:
        """The transaction of a producer. Raises ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED."""
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        known = self.transactions.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if known.epoch != epoch or epoch > _LARGEST_EPOCH:  # that one only fences: no producer was given it
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        return known

    def join(self, transactional_id: str, producer_id: int, epoch: int, participants: Set[Participant]) -> None:
        """Let partitions or groups take part; the first ones begin the transaction. Raises ApiError."""
        known = self.of(transactional_id, producer_id, epoch)
        self._check_whole(known)
        goes_on = known.state == ONGOING
        there = known.participants if goes_on else frozenset[Participant]()
        started = known.started if goes_on else self._cluster.clock.now()
        self._timer.within(started + known.timeout - self._cluster.clock.now())
        if not goes_on or not participants <= there:
            self._kept(known, {"state": ONGOING, "started": started, "participants": there | participants})

    @staticmethod
    def _check_whole(known: Transaction) -> None:
        """Raises ApiError, CONCURRENT_TRANSACTIONS, while the markers of a transaction cannot be written."""
        if known.state in _PREPARED:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)

    def restore(self, transactions: dict[str, Transaction], next_producer_id: int) -> None:
        """Go on with these, by transactional id: those that were about to end are ended. Raises ApiError."""
        self.transactions, self._next_producer_id = transactions, next_producer_id
        self._block_end = next_producer_id
        for known in list(transactions.values()):
            if known.state in _PREPARED:
                self._complete(known)
            elif known.state == ONGOING:
                self._timer.within(known.started + known.timeout - self._cluster.clock.now())

    def check_member(
        self, transactional_id: str | None, producer_id: int, epoch: int, participant: Participant, *,
        join: bool, refusal: ErrorCode | None,
    ) -> None:
        """Does the participant belong to the producer's transaction (KIP-890)? join: it joins by this request.

        refusal: the error if it does not, None: the release does not look (before 3.6). Raises ApiError: that one and
        others.
        """
        if join and transactional_id:
            self.join(transactional_id, producer_id, epoch, {participant})
            return
        if refusal is None or not transactional_id:
            return
        known = self.of(transactional_id, producer_id, epoch)
        if known.state != ONGOING or participant not in known.participants:
            raise ApiError(refusal)

    def verify(
        self, transactional_id: str | None, producer_id: int, epoch: int, participant: Participant, *,
        join: bool, refusal: ErrorCode | None,
    ) -> None:
        """As check_member, for who writes (AddPartitionsToTxnManager): INVALID_PRODUCER_EPOCH for PRODUCER_FENCED."""
        try:
            self.check_member(transactional_id, producer_id, epoch, participant, join=join, refusal=refusal)
        except ApiError as error:
            if error.code == ErrorCode.PRODUCER_FENCED:
                raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH) from None
            raise

    def end(self, transactional_id: str, producer_id: int, epoch: int, commit: bool, bump: bool) -> tuple[int, int]:
        """End a transaction; the producer id and epoch of the next one. bump: a new epoch each (EndTxn 5, KIP-890).

        A repeated request for the same end is no error. Raises ApiError.
        """
        known = self.transactions.get(transactional_id)
        done = COMMITTED if commit else ABORTED
        if bump and known is not None and known.state in (COMMITTED, ABORTED) and (
                self._was_bumped(known, producer_id, epoch)):
            if known.state != done:
                raise ApiError(ErrorCode.INVALID_TXN_STATE)
            return known.producer_id, known.epoch
        if known is not None and known.producer_id == producer_id and _PREPARED.get(known.state) == commit:
            self._check_whole(known)
        known = self.of(transactional_id, producer_id, epoch)
        if known.state == done and not bump:
            return known.producer_id, known.epoch
        if known.state in _PREPARED or (known.state != ONGOING and not (bump and not commit)):
            raise ApiError(ErrorCode.INVALID_TXN_STATE)
        last = bump and known.epoch >= _LARGEST_EPOCH  # its markers have the old producer id
        known = self._ended(
            known, commit, {"epoch": known.epoch + 1} if last else self._bumped(known) if bump else {})
        if last:
            known = self._kept(known, self._bumped(known))
        return known.producer_id, known.epoch

    @staticmethod
    def _was_bumped(known: Transaction, producer_id: int, epoch: int) -> bool:
        """Is this the epoch before the one that the end of the transaction gave (endTxnEpochBumped, retryOnOverflow)?
        """
        if known.producer_id == producer_id:
            return known.epoch == epoch + 1
        return known.last_producer_id == producer_id and epoch == _LARGEST_EPOCH and known.epoch == 0

    def _ended(self, known: Transaction, commit: bool, changes: dict[str, Any]) -> Transaction:
        """The transaction with changes, when it has ended.

        Raises ApiError, MemoryError. If it was prepared until then it ends so all the same, when it can.
        """
        try:
            return self._complete(self._kept(known, changes | {"state": "PrepareCommit" if commit else "PrepareAbort"}))
        except (ApiError, MemoryError):
            certainly(self._end_again)
            raise

    def _end_again(self) -> None:
        self._timer.within(_AGAIN)

    def _complete(self, known: Transaction) -> Transaction:
        """Write the markers with the epoch as it is now, and let the offsets count or not. Raises ApiError."""
        commit = _PREPARED[known.state]
        self._mark(known, commit, self._cluster.clock.now_ms())
        names = [one for one in known.participants if isinstance(one, str)]
        self._cluster.groups.end_transaction(known.producer_id, commit, None if known.is_restored else names)
        return self._kept(known, {
            "participants": frozenset(), "is_restored": False, "state": COMMITTED if commit else ABORTED})

    def _mark(self, known: Transaction, commit: bool, now: int) -> None:
        for topic, index in self._cluster.storage.marked(known.participants):
            known_topic = self._cluster.topics.get(topic)
            if known_topic is None or index >= len(known_topic.partitions):
                continue  # deleted meanwhile
            partition = known_topic.partitions[index]
            partition.log.append_marker(known.producer_id, known.epoch, commit, 0, partition.leader_epoch, now)

    def _end_late(self) -> float | None:
        """Abort the transactions whose time is over, and complete those that could not be.

        In how many seconds to look again. Time is the clock's, as a transaction may have begun in another process.
        """
        now, due = self._cluster.clock.now(), list[float]()
        for one in list(self.transactions.values()):
            if one.state in _PREPARED or (one.state == ONGOING and one.started + one.timeout <= now):
                try:
                    if one.state == ONGOING:
                        self._ended(one, False, {"epoch": one.epoch + 1})
                    else:
                        self._complete(one)
                except (ApiError, MemoryError):  # the disk is full: another time
                    due.append(_AGAIN)
            elif one.state == ONGOING:
                due.append(one.started + one.timeout - now)
        return min(due, default=None)

    def close(self) -> None:
        """End its timer."""
        self._timer.close()
