"""Faults by rule: what goes wrong with which requests; and the list of all that happened."""

from __future__ import annotations

import math
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from kwire import schema
from kwire.codec.frames import Request
from kwire.fleet.clock import Clock
from kwire.schema.error_codes import ErrorCode
from kwire_c.printable import brief

if TYPE_CHECKING:
    from kwire.fleet.connection import Connection

TopicNames = Callable[[uuid.UUID], str | None]  # the name of a topic id, None if unknown
MOST_EVENTS = 1_000_000  # the older ones are forgotten
GARBAGE = bytes.fromhex("0000000f") + b"not Kafka bytes"


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
        if self in self._rules:
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


_KINDS = {int: "an int", float: "a number", str: "a str", bool: "True or False"}
_KEYWORDS: dict[str, type] = {
    "times": int, "version": int, "client_id": str, "topic": str, "node": int, "probability": float, "delay": float,
    "silent": bool, "close": bool, "half": bool, "correlation": int, "garbage": bool, "slow": int, "duplicate": bool,
    "reorder": bool,
}
_RANGES: dict[str, tuple[float, float]] = {
    "times": (0, math.inf), "probability": (0, 1), "delay": (0, math.inf), "slow": (1, math.inf),
    "correlation": (-(1 << 31), (1 << 31) - 1),
}


def _check(rule: Fault) -> None:
    """Raise TypeError or ValueError for a keyword of fault() with a value that no request could be answered by."""
    for name, kind in _KEYWORDS.items():
        value: Any = getattr(rule, name)
        if value is None and Fault.__dataclass_fields__[name].default is None:
            continue
        if not isinstance(value, (int, float) if kind is float else kind):
            raise TypeError(f"{name} must be {_KINDS[kind]}, not {brief(value)}")
        if name not in _RANGES:
            continue
        low, high = _RANGES[name]
        if not low <= getattr(rule, name) <= high:  # NaN too
            wanted = f"at least {low}" if high == math.inf else f"{low} to {high}"
            raise ValueError(f"{name} must be {wanted}, got {brief(value)}")


class Faults:
    """The rules of a fleet, and what happened."""

    def __init__(self, clock: Clock, random: Random, topic_names: TopicNames) -> None:
        self._clock, self._random, self._topic_names = clock, random, topic_names
        self.rules: list[Fault] = []
        self.events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self._held: dict[Connection, bytes] = {}

    def add(self, api: str | None, error: str | int | ErrorCode | None = None, **what: Any) -> Fault:
        """Add a rule. Raises UnsupportedVersionError for an unknown API, ValueError for an unknown error or effect."""
        name = None if api is None else schema.api(api).name
        code = None
        if error is not None:
            try:
                code = ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
            except KeyError:
                raise ValueError(f"unknown error code {error!r}: expected a name of Kafka's Errors") from None
        unknown = sorted(set(what) - set(_KEYWORDS))
        if unknown:
            raise ValueError(f"unknown keyword of fault: {', '.join(unknown)}")
        rule = Fault(name, code, **what)
        _check(rule)
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
        self.events.append(event)

    def note(self, event: str, **what: Any) -> None:
        """Note something else that happened."""
        self.events.append({"event": event, "time": self._clock.now(), **what})

    async def send(self, outcome: Outcome, frame: bytes, connection: Connection) -> None:
        """Send an answer (its size first), as the faults of its request have it."""
        writer = connection.writer
        if not outcome.faults:
            writer.write(frame + self._held.pop(connection, b""))
            if writer.transport.get_write_buffer_size() > 1 << 16:
                await writer.drain()
            return
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
        if outcome.value("reorder"):
            self._held[connection] = self._held.get(connection, b"") + frame
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
                writer.write(frame[at : at + step])
                await writer.drain()
                await self._clock.sleep(step / speed)
        else:
            writer.write(frame)
        await writer.drain()

    def forget(self, connection: Connection) -> None:
        """A connection is gone."""
        self._held.pop(connection, None)


def _effects(fault: Fault) -> dict[str, Any]:
    names = ("delay", "silent", "close", "half", "correlation", "garbage", "slow", "duplicate", "reorder")
    shown = {name: value for name in names if (value := getattr(fault, name)) not in (None, False, 0.0)}
    return shown if fault.error is None else {"error": fault.error.name, **shown}


def topics_of(message: Any, topic_names: TopicNames) -> set[str]:
    """The names of the topics in a request."""
    names: set[str] = set()
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

