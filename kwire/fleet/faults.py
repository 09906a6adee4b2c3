"""Faults by rule: what goes wrong with which requests; and the list of all that happened."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from kwire import schema
from kwire.codec.arguments import check_seconds, check_type
from kwire.codec.frames import Request
from kwire.errors import KwireError
from kwire.fleet.clock import Clock
from kwire.schema.error_codes import ErrorCode
from kwire.suggestions import did_you_mean
from kwire_c.printable import brief

if TYPE_CHECKING:
    from kwire.fleet.connection import Connection

TopicNames = Callable[[uuid.UUID], str | None]  # the name of a topic id, None if unknown
MOST_EVENTS, MOST_EVENT_TEXT = 1_000_000, 64 << 20  # the older ones are forgotten; characters of texts in them
GARBAGE = bytes.fromhex("0000000f") + b"not Kafka bytes"

_INT16, _INT32 = 0x7FFF, 0x7FFFFFFF
# what a rule may say besides its API and error -> (type, smallest, largest)
VERBS: dict[str, tuple[type, int, int]] = {
    "times": (int, 1, _INT32), "version": (int, 0, _INT16), "client_id": (str, 0, 0), "topic": (str, 0, 0),
    "node": (int, -1, _INT32), "probability": (float, 0, 1), "delay": (float, 0, _INT32), "silent": (bool, 0, 0),
    "close": (bool, 0, 0), "half": (bool, 0, 0), "correlation": (int, -_INT32 - 1, _INT32), "garbage": (bool, 0, 0),
    "slow": (int, 1, _INT32), "duplicate": (bool, 0, 0), "reorder": (bool, 0, 0),
}
_ARTICLES: dict[type, str] = {int: "a number", float: "a number", bool: "true or false", str: "text"}
EFFECTS = ("delay", "silent", "close", "half", "correlation", "garbage", "slow", "duplicate", "reorder")


@dataclass(eq=False)
class Fault:
    """A rule. hits: how often it was applied.

    Which requests: api (a name, None: all), version, client_id, topic, node (an id); times: at most so often (None: for
    ever); probability: of each request that matches, by the seed of the fleet.
    What happens: error: the answer has this error code and nothing is done. All others come after the request was
    carried out: delay: seconds before the answer; silent: no answer; close: the connection ends instead; half: half of
    the answer, then the end; correlation: the answer has this correlation id; garbage: other bytes, then the end; slow:
    the answer in so many bytes a second; duplicate: the answer twice; reorder: the answer after the next one.
    """

    api: str | None
    error: ErrorCode | None = None
    times: int | None = None
    version: int | None = None
    client_id: str | None = None
    topic: str | None = None
    node: int | None = None
    probability: float = 1.0
    delay: float = 0.0
    silent: bool = False
    close: bool = False
    half: bool = False
    correlation: int | None = None
    garbage: bool = False
    slow: int | None = None
    duplicate: bool = False
    reorder: bool = False
    hits: int = 0
    _rules: list[Fault] = field(default_factory=list, repr=False)

    def remove(self) -> None:
        """End the rule."""
        with suppress(ValueError):  # it was removed before
            self._rules.remove(self)

    def matches(self, request: Request, node: int, topic_names: TopicNames) -> bool:
        """Whether the rule is about this request to the node with that id."""
        return (
            (self.api is None or self.api == request.name)
            and (self.times is None or self.hits < self.times)
            and (self.version is None or self.version == request.version)
            and (self.client_id is None or self.client_id == request.client_id)
            and (self.node is None or self.node == node)
            and (self.topic is None or self.topic in topics_of(request.message, topic_names))
        )


@dataclass
class Outcome:
    """What the faults make of one request."""

    error: ErrorCode | None = None
    faults: list[Fault] = field(default_factory=list)

    def value(self, name: str) -> Any:
        """The first set value of an effect."""
        return next((value for fault in self.faults if (value := getattr(fault, name)) not in (None, False, 0.0)), None)


class Faults:
    """The rules of a fleet, and what happened, if events are kept."""

    def __init__(self, clock: Clock, random: Random, topic_names: TopicNames, keep_events: bool = True) -> None:
        check_type(keep_events, bool, "keep_events", "True or False")
        self._clock, self._random, self._topic_names, self._keeps = clock, random, topic_names, keep_events
        self.rules: list[Fault] = []
        self.events: deque[dict[str, Any]] = deque()
        self._text = 0  # characters in them
        self._held: dict[Connection, bytes] = {}

    def add(self, api: str | None, error: str | int | ErrorCode | None = None, **what: Any) -> Fault:
        """Add a rule. Raises UnsupportedVersionError for an unknown API, ValueError for an unknown error or effect."""
        name = None if api is None else schema.api(api).name
        code = None if error is None else error_code(error)
        checked = {verb: _checked(verb, value) for verb, value in what.items() if value is not None}
        if code is None and not set(checked) & set(EFFECTS):
            raise ValueError(f"a fault without an effect: expected error or one of {', '.join(EFFECTS)}")
        rule = Fault(name, code, **checked)
        rule._rules = self.rules
        self.rules.append(rule)
        return rule

    def before(self, request: Request, node: int) -> Outcome:
        """The faults of a request, counted."""
        outcome = Outcome()
        for rule in list(self.rules):
            if rule.matches(request, node, self._topic_names) and (
                    rule.probability >= 1 or self._random.random() < rule.probability):
                rule.hits += 1
                outcome.faults.append(rule)
                outcome.error = outcome.error or rule.error
        return outcome

    def record(self, request: Request, node: int, outcome: Outcome, answered: bool) -> None:
        """Note a request."""
        event: dict[str, Any] = {
            "event": "request", "time": self._clock.now(), "node": node, "api": request.name,
            "version": request.version, "client_id": request.client_id, "correlation_id": request.correlation_id,
            "answered": answered,
        }
        if outcome.faults:
            event["faults"] = [_effects(fault) for fault in outcome.faults]
        self._keep(event)

    def note(self, event: str, **what: Any) -> None:
        """Note something else that happened."""
        self._keep({"event": event, "time": self._clock.now(), **what})

    def _keep(self, event: dict[str, Any]) -> None:
        if not self._keeps:
            return
        self.events.append(event)
        self._text += _text_of(event)
        while len(self.events) > MOST_EVENTS or self._text > MOST_EVENT_TEXT:
            self._text -= _text_of(self.events.popleft())

    async def send(self, outcome: Outcome, frame: bytes, connection: Connection) -> None:
        """Send an answer (its size first), as the faults of its request have it."""
        if outcome.faults:
            with connection.waits():  # a client that goes need not be waited for
                await self._send(outcome, frame, connection)
            return
        connection.write(frame + self._held.pop(connection, b""))
        if connection.writer.transport.get_write_buffer_size() > 1 << 16:
            await connection.writer.drain()

    async def _send(self, outcome: Outcome, frame: bytes, connection: Connection) -> None:
        writer = connection.writer
        if delay := outcome.value("delay"):
            await self._clock.sleep(delay)
        if outcome.value("silent"):
            return
        if outcome.value("close"):
            connection.close()
            return
        correlation = outcome.value("correlation")
        if correlation is not None:
            frame = frame[:4] + correlation.to_bytes(4, "big", signed=True) + frame[8:]
        if outcome.value("reorder") and connection not in self._held:  # else it is the next one of one that waits
            self._held[connection] = frame
            return
        if outcome.value("garbage"):
            frame = GARBAGE
            connection.close()
        elif outcome.value("half"):
            frame = frame[: len(frame) // 2]
            connection.close()
        elif outcome.value("duplicate"):
            frame += frame
        frame += self._held.pop(connection, b"")
        if speed := outcome.value("slow"):
            step = max(1, speed // 10)
            for at in range(0, len(frame), step):
                connection.write(frame[at : at + step])
                await writer.drain()
                await self._clock.sleep(step / speed)
        else:
            connection.write(frame)
        await writer.drain()

    def forget(self, connection: Connection) -> None:
        """A connection is gone."""
        self._held.pop(connection, None)


def _text_of(event: dict[str, Any]) -> int:
    """The characters of what clients choose in an event."""
    return sum(len(value) for value in (event.get("client_id"), event.get("reason")) if value)


def error_code(error: str | int) -> ErrorCode:
    """An error code by name or number. Raises ValueError for one that Kafka does not have."""
    try:
        code = ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, KwireError):
        code = None
    if code is None or not code.known or code == ErrorCode.NONE:
        near = did_you_mean(error, (one.name for one in ErrorCode))
        raise ValueError(f"unknown error code {brief(error)}{near}: expected a name of Kafka's Errors")
    return code


def kind_of(verb: str) -> type:
    """The type of a verb's value. Raises ValueError if there is no such verb."""
    if verb not in VERBS:
        raise ValueError(f"unknown word {verb!r} in a fault{did_you_mean(verb, ['error', *VERBS])}: expected error or "
                         f"one of {', '.join(VERBS)}")
    return VERBS[verb][0]


def _checked(verb: str, value: Any) -> Any:
    """The value of a verb. Raises ValueError if there is no such verb, or the value is out of its range."""
    kind: Any = kind_of(verb)
    _, low, high = VERBS[verb]
    if kind is float and type(value) is int:
        value = check_seconds(value, verb)  # of any size
    if type(value) is not kind:
        raise ValueError(f"{verb} must be {_ARTICLES[kind]}, not {brief(value)}")
    if kind in (int, float) and not low <= value <= high:
        raise ValueError(f"{verb} must be {low} to {high}, not {brief(value)}")
    return value


def _effects(fault: Fault) -> dict[str, Any]:
    shown = {name: value for name in EFFECTS if (value := getattr(fault, name)) not in (None, False, 0.0)}
    return shown if fault.error is None else {"error": fault.error.name, **shown}


def topics_of(message: Any, topic_names: TopicNames) -> set[str]:
    """The names of the topics in a request."""
    names: set[str] = set()
    for attribute in ("groups", "transactions"):  # rows that have topics of their own
        for row in getattr(message, attribute, None) or ():
            names |= topics_of(row, topic_names)
    for attribute in ("topics", "topic_data", "topic_names", "v3_and_below_topics"):
        for row in getattr(message, attribute, None) or ():
            if isinstance(row, str):
                names.add(row)
                continue
            for key in ("name", "topic"):
                if isinstance(value := getattr(row, key, None), str) and value:
                    names.add(value)
            topic_id = getattr(row, "topic_id", None)
            if topic_id is not None and (known := topic_names(topic_id)) is not None:
                names.add(known)
    return names

