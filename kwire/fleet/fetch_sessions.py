"""Fetch sessions (KIP-227): what a client fetches, kept by the broker, and answered where something changed."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.fleet.apis.registry import Call

SLOTS = 1000  # max.incremental.fetch.session.cache.slots
MOST_OF_ONE, MOST_PARTITIONS = 10_000, 100_000  # partitions of a session, and of all sessions of a node
IDLE = 120.0  # seconds: min.incremental.fetch.session.eviction.ms
_LARGEST = (1 << 31) - 1
_NO_ID = uuid.UUID(int=0)


class FetchKey(NamedTuple):
    """A partition of a fetch: topic is "" where the version names it by id."""

    topic: str
    topic_id: uuid.UUID
    partition: int


class FetchSession:
    """One session; its id is 0 if it is none, and the request is answered as it is."""

    def __init__(self, by_id: bool) -> None:
        self.by_id = by_id  # whether it names topics by their ids
        self.id, self.epoch, self.incremental = 0, 1, False
        self.used = 0.0  # of Clock.elapsed
        self.partitions: dict[FetchKey, Any] = {}
        self._said: dict[FetchKey, tuple[int, int, int]] = {}

    def forget(self, key: FetchKey) -> None:
        """A partition that is not fetched any more."""
        self.partitions.pop(key, None)
        self._said.pop(key, None)

    def answered(self, rows: list[tuple[FetchKey, Any]]) -> list[tuple[FetchKey, Any]]:
        """The rows that an answer names: all of a full fetch; those with news of an incremental one."""
        if not self.id:
            return rows
        news = []
        for key, row in rows:
            now = (row.high_watermark, row.log_start_offset, row.error_code)
            if not self.incremental or len(row.records) or row.error_code or self._said.get(key) != now or (
                    row.diverging_epoch.epoch >= 0):
                news.append((key, row))
            if key in self.partitions:
                self._said[key] = now
            if self.incremental and len(row.records) and key in self.partitions:
                self.partitions[key] = self.partitions.pop(key)  # the others come first the next time
        return news


class FetchSessions:
    """The sessions of one node. Where there is no room for one, clients go on without.

    A session that was not used for IDLE seconds makes room for others (FetchSessionCache.tryEvict). Unlike Kafka's, a
    session has MOST_OF_ONE partitions at most, and all together MOST_PARTITIONS.
    """

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._last = 0

    def of(self, call: Call) -> FetchSession:
        """The session of a request, brought up to date with it.

        Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
        FETCH_SESSION_TOPIC_ID_ERROR. Source: FetchManager.newContext.
        """
        message = call.message
        session_id, epoch = (message.session_id, message.session_epoch) if call.version >= 7 else (0, -1)
        if epoch in (0, -1):  # a full fetch; -1 ends the session
            self._sessions.pop(session_id, None)
            session = FetchSession(call.version >= 13)
            self._take(session, call)
            if epoch == 0 and self._has_room(session, call.cluster.clock.elapsed()):
                self._last = self._last % _LARGEST + 1
                session.id = self._last
                self._sessions[session.id] = session
            return session
        known = self._sessions.get(session_id)
        if known is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if known.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if known.by_id != (call.version >= 13):
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        known.incremental, known.epoch = True, known.epoch % _LARGEST + 1
        self._take(known, call)
        del self._sessions[session_id]
        if not known.partitions:  # nothing is left of it
            return FetchSession(known.by_id)
        if not self._has_room(known, call.cluster.clock.elapsed()):
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)  # the client begins again
        self._sessions[session_id] = known
        return known

    def _has_room(self, session: FetchSession, now: float) -> bool:
        """May a session be kept? Those that are idle go, as far as needed. It is used now."""
        session.used, size = now, len(session.partitions)
        if size > MOST_OF_ONE:
            return False
        kept = sum(len(one.partitions) for one in self._sessions.values())
        while len(self._sessions) >= self._slots or kept + size > MOST_PARTITIONS:
            idle = next(iter(self._sessions.values()), None)  # the one that was used last of all is the last
            if idle is None or now - idle.used <= IDLE:
                return False
            kept -= len(self._sessions.pop(idle.id).partitions)
        return True

    def _take(self, session: FetchSession, call: Call) -> None:
        by_id = call.version >= 13
        for topic in call.message.topics:
            for one in topic.partitions:
                session.partitions[_key(topic, one.partition, by_id)] = one
        for topic in call.message.forgotten_topics_data if call.version >= 7 else ():
            for partition in topic.partitions:
                session.forget(_key(topic, partition, by_id))


def _key(topic: Any, partition: int, by_id: bool) -> FetchKey:
    return FetchKey("" if by_id else topic.topic, topic.topic_id if by_id else _NO_ID, partition)
