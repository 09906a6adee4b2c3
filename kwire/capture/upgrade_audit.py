"""The upgrade audit: which client uses which API version, how often, and which of them a target release refuses."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kwire import schema
from kwire.capture.exchange import Exchange, Lost, api_name, shortened
from kwire.capture.files import captures, read_capture
from kwire.codec.arguments import check_type
from kwire.schema import api_keys

_MOST_LOST = 10_000  # different losses that are listed one by one
_MOST_USES = 20_000  # different uses, likewise


class User(NamedTuple):
    """A client: all connections with the same client id, software and host. None: unknown from the capture."""

    client_id: str | None
    software: str | None
    address: str | None


OTHERS = User("(other clients, not listed one by one)", None, None)


@dataclass(slots=True)
class Use:
    """The use of one version of one API by one client.

    count: requests; first, last: microseconds since 1970, None where unknown; breaks: why the target release refuses
    the version, None if it does not; note: a remark on the version in the target release, or None.
    """

    user: User
    api_key: int
    version: int
    breaks: str | None
    note: str | None
    count: int = 0
    first: int | None = None
    last: int | None = None

    @property
    def api(self) -> str:
        """The API's name."""
        return api_name(self.api_key)


@dataclass(slots=True)
class Audit:
    """The result of an audit for a target release ("4.4").

    captures: the files; exchanges: counts by outcome; lost: what is missing or cannot be read, equal losses counted as
    one. After 20,000 different uses those of further clients are counted as OTHERS.
    """

    to: str
    captures: list[str] = field(default_factory=list)
    exchanges: Counter[str] = field(default_factory=Counter)
    _uses: dict[tuple[User, int, int], Use] = field(default_factory=dict)
    _lost: dict[tuple[Any, ...], Lost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.to = schema.release_name(self.to)

    @property
    def uses(self) -> list[Use]:
        """The uses that break, then the others; each by client, API key and version."""
        return sorted(self._uses.values(), key=lambda use: (
            use.breaks is None, *(text or "" for text in use.user), use.api_key, use.version))

    @property
    def lost(self) -> list[Lost]:
        """The losses, in the order in which they were first seen."""
        return list(self._lost.values())

    @property
    def breaks(self) -> bool:
        """Whether the target release refuses any of the uses."""
        return any(use.breaks for use in self._uses.values())

    def add(self, event: Exchange | Lost) -> None:
        """Count one exchange or loss."""
        check_type(event, (Exchange, Lost), "event", "an Exchange or a Lost")
        if isinstance(event, Lost):
            self._add_lost(event)
            return
        self.exchanges[event.outcome] += 1
        user = User(shortened(event.client_id), shortened(event.connection.software), event.connection.address)
        key = (user, event.api_key, event.version)
        use = self._uses.get(key)
        if use is None and len(self._uses) >= _MOST_USES:
            user = OTHERS
            key = (user, event.api_key, event.version)
            use = self._uses.get(key)
        if use is None:
            breaks, note = verdict(event.api_key, event.version, self.to)
            use = self._uses[key] = Use(user, event.api_key, event.version, breaks, note)
        use.count += 1
        time = event.request.time
        if time is not None:
            use.first = time if use.first is None else min(time, use.first)
            use.last = time if use.last is None else max(time, use.last)

    def _add_lost(self, event: Lost) -> None:
        number = event.connection.number if event.connection else None
        key: tuple[Any, ...] = (event.capture, number, event.direction, event.reason)
        known = self._lost.get(key)
        if known is None:
            if len(self._lost) >= _MOST_LOST:
                event = Lost(event.capture, "further losses, not listed", count=event.count)
                key = (event.capture,)
                known = self._lost.get(key)
            if known is None:
                self._lost[key] = event
                return
        known.count += event.count
        if event.bytes is not None:
            known.bytes = (known.bytes or 0) + event.bytes

    def to_json(self) -> dict[str, Any]:
        """{"to", "captures", "exchanges": {outcome: count}, "uses": [...], "lost": [...]}; times as in Use."""
        return {
            "to": self.to, "captures": self.captures, "exchanges": dict(sorted(self.exchanges.items())),
            "uses": [
                {
                    "client_id": use.user.client_id, "software": use.user.software, "address": use.user.address,
                    "api": use.api, "api_key": use.api_key, "version": use.version, "count": use.count,
                    "breaks": use.breaks, "note": use.note, "first": use.first, "last": use.last,
                }
                for use in self.uses
            ],
            "lost": [
                {
                    "capture": lost.capture, "reason": lost.reason, "count": lost.count, "bytes": lost.bytes,
                    "direction": lost.direction, "time": lost.time,
                    "connection": lost.connection.number if lost.connection else None,
                    "client": lost.connection.client if lost.connection else None,
                    "server": lost.connection.server if lost.connection else None,
                }
                for lost in self.lost
            ],
        }


def audit(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], to: str) -> Audit:
    """Audit captures (files, folders, globs) for a target release.

    Raises UnsupportedVersionError for an unknown release, FileNotFoundError, DecodeError for a file that is not a
    capture, LimitError.
    """
    result = Audit(to)
    for path in captures(paths):
        result.captures.append(path)
        add_all(result, read_capture(path))
    return result


def add_all(result: Audit, events: Iterable[Exchange | Lost]) -> None:
    """Count all exchanges and losses of a capture."""
    for event in events:
        result.add(event)


def verdict(api_key: int, version: int, release: str) -> tuple[str | None, str | None]:
    """(why a release refuses that version of an API, or None; a remark on the version in that release, or None).

    An ApiVersions that is too new breaks nothing: by its answer clients learn which version to use (KIP-35, KIP-511).
    """
    offered = dict(schema.api_by_release(api_key))[schema.release_name(release)]
    between = any(row.key == api_key and row.between_brokers for row in schema.apis())
    newer = is_newer(api_key, version, release)
    note = f"sent between brokers, so {'downgraded' if newer else 'upgraded'} with them" if between else None
    if offered is None:
        return _missing(api_key, release), note
    single = offered.min_version == offered.max_version
    supported = f"Kafka {release} supports {'v' if single else ''}{offered.versions}"
    if version < offered.min_version:
        return f"v{version} is too old: {supported}", note
    if version > offered.max_version and api_key == api_keys.API_VERSIONS:
        return None, f"v{version} is answered with UNSUPPORTED_VERSION: {supported}"
    if version > offered.max_version:
        return f"v{version} is too new: {supported}", note
    if version > offered.max_stable_version:
        return None, "unstable: only brokers with unstable.api.versions.enable accept it"
    return None, "deprecated" if version in offered.deprecated else None


def is_newer(api_key: int, version: int, release: str) -> bool:
    """Whether only releases after this one have that version of an API."""
    offered = dict(schema.api_by_release(api_key))[schema.release_name(release)]
    if offered is not None:
        return version > offered.max_version
    supporting = [name for name, row in schema.api_by_release(api_key) if row]
    return bool(supporting) and not schema.is_at_least(release, supporting[0])


def _missing(api_key: int, release: str) -> str:
    """Why a release does not support an API at all."""
    supporting = [name for name, row in schema.api_by_release(api_key) if row]
    if not supporting:
        return f"no Kafka release has {api_name(api_key)}"
    if not schema.is_at_least(release, supporting[0]):
        return f"Kafka {release} does not support {api_name(api_key)}, which Kafka {supporting[0]} added"
    return f"Kafka {schema.release_after(supporting[-1])} removed {api_name(api_key)}"
