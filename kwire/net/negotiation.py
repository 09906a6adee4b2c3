"""Version negotiation (KIP-35, KIP-97): a broker's API versions, and the version of each request to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kwire import messages, schema
from kwire.errors import DecodeError, UnsupportedVersionError
from kwire.net.api_versions import FinalizedLevels, NodeApiVersions, api_key, api_name
from kwire.net.channel import Channel
from kwire.net.errors import BrokerConnectionError, BrokerTimeoutError
from kwire.net.features import levelled_apis
from kwire.net.required_versions import LEVEL_RULES, LevelRule, Need, needs
from kwire.schema import Versions, api_keys
from kwire.version import __version__
from kwire_c.message_class import RequestMessage
from kwire_c.plan import message_of
from kwire_c.printable import brief

SOFTWARE = "kwire"


class NoAnswer(BrokerConnectionError):
    """ApiVersions was not answered: the broker sent nothing, or closed the connection."""


class SilentBroker(NoAnswer, BrokerTimeoutError):
    """ApiVersions was not answered in time."""


async def ask(channel: Channel, probe_timeout: float, version: int | None = None) -> NodeApiVersions:
    """Send ApiVersions, falling back to older versions of it as in KIP-35 and KIP-511, and return what it says.

    probe_timeout: seconds for each response. version: the first to try, known from an earlier answer on this channel;
    by default the newest. Raises SilentBroker after that time, NoAnswer if the broker closes the connection,
    BrokerConnectionError for anything else than an ApiVersions response.
    """
    hint = "" if version is not None else _TLS_HINT if channel.has_tls else _HINT
    version = schema.api(api_keys.API_VERSIONS).max_stable_version if version is None else version
    address = str(channel.address)
    while True:
        try:
            async with asyncio.timeout(probe_timeout):
                answer = await channel.request(api_versions_request(), version)
        except BrokerTimeoutError:
            raise
        except TimeoutError:
            raise SilentBroker(f"no answer to ApiVersions within {probe_timeout:g} s{hint}", address=address) from None
        except BrokerConnectionError as error:
            if error.reason.startswith("closed the connection"):
                raise NoAnswer(f"closed the connection on ApiVersions{hint}", address=address) from None
            if hint == _TLS_HINT and error.reason.startswith("connection lost"):
                raise BrokerConnectionError(f"{error.reason}{hint}", address=address) from None
            raise
        except DecodeError as error:
            raise BrokerConnectionError(f"invalid ApiVersions response: {error}", address=address) from None
        if answer.error_code == 0:
            return node_api_versions(answer)
        if answer.error_code != schema.ErrorCode.UNSUPPORTED_VERSION or version == 0:
            code = schema.ErrorCode(answer.error_code)
            raise BrokerConnectionError(f"refuses ApiVersions v{version}: {code.name}", address=address)
        offered = [
            Versions(row.min_version, row.max_version) for row in answer.api_keys
            if row.api_key == api_keys.API_VERSIONS
        ]
        both = offered[0].overlap(Versions(0, version - 1)) if offered else Versions(0, 0)
        version = both.high if both else 0


_HINT = ": a broker before 0.10 (name its release with assume_release), a TLS port, or not a Kafka broker"
# with TLS 1.3 a broker looks at the client's certificate after the handshake
_TLS_HINT = (": a broker that wants a client certificate, or another one; a broker before 0.10 (name its release with "
             "assume_release), or not a Kafka broker")  # fmt: skip


def is_refused(answer: object) -> bool:
    """Whether a response has error 35, by which a broker also refuses what a feature level does not allow.

    The errors of partitions, groups or users are looked at only for the APIs that levels decide about.
    """
    if answer is None:
        return False
    refusal = int(schema.ErrorCode.UNSUPPORTED_VERSION)
    if getattr(answer, "error_code", 0) == refusal:
        return True
    definition = message_of(answer).schema
    return definition.api_key in levelled_apis() and _has_code(refusal, answer, _error_codes(definition.name))


class _Codes(NamedTuple):
    """Where error codes are: a field that is one (below is empty), or a struct or array of structs that have them."""

    name: str
    array: bool
    below: tuple[_Codes, ...]


@lru_cache(None)
def _error_codes(name: str) -> tuple[_Codes, ...]:
    return _codes_of(schema.message(name).fields)


def _codes_of(fields: tuple[schema.Field, ...]) -> tuple[_Codes, ...]:
    codes = (_Codes(field.snake_name, field.is_array, _codes_of(field.fields)) for field in fields)
    return tuple(code for code in codes if code.below or code.name == "error_code")


def _has_code(wanted: int, struct: Any, codes: tuple[_Codes, ...]) -> bool:
    for name, array, below in codes:
        value = getattr(struct, name)
        if not below:
            if value == wanted:
                return True
        elif value is not None and any(_has_code(wanted, item, below) for item in (value if array else (value,))):
            return True
    return False


def api_versions_request() -> messages.ApiVersionsRequest:
    """The ApiVersions request that kwire sends."""
    return messages.ApiVersionsRequest(
        client_software_name=SOFTWARE, client_software_version=__version__.replace("+", ".")
    )


def node_api_versions(answer: messages.ApiVersionsResponse) -> NodeApiVersions:
    """What an ApiVersions response without an error says. Its finalized levels count where their epoch is >= 0."""
    epoch = answer.finalized_features_epoch
    return NodeApiVersions(
        {row.api_key: Versions(row.min_version, row.max_version) for row in answer.api_keys},
        features={row.name: (row.min_version, row.max_version) for row in answer.supported_features},
        finalized={row.name: row.max_version_level for row in answer.finalized_features} if epoch >= 0 else {},
        epoch=max(epoch, -1),
    )


def check_request(message: object) -> None:
    """Raise TypeError for what is not a request."""
    if not isinstance(message, RequestMessage):
        raise TypeError(f"message must be a request, as messages.FetchRequest(), not {brief(message)}")


class Chooser:
    """Chooses the version of each request to one broker.

    deny: API name or key -> versions never to use (KIP-35's deprecated ones); unstable: whether versions that are
    unstable in the newest release may be used; where: the broker's name in errors; levels: returns the cluster's
    finalized levels, by default those that the broker's own answer has.
    """

    def __init__(
        self, api_versions: NodeApiVersions, *, where: str = "the broker",
        deny: Mapping[int | str, Collection[int]] | None = None, unstable: bool = False,
        levels: Callable[[], FinalizedLevels] | None = None,
    ) -> None:  # fmt: skip
        self.api_versions, self.where, self.unstable = api_versions, where, unstable
        self.deny = {api_key(api): versions for api, versions in (deny or {}).items()}
        self._levels = levels

    @property
    def levels(self) -> FinalizedLevels:
        """The finalized levels by which versions are chosen now."""
        return self.api_versions.finalized_levels if self._levels is None else self._levels()

    def newest(self, api: int | str) -> int:
        """The newest common version of an API. Raises UnsupportedVersionError if there is none.

        A level that only some requests of the API need, such as a transactional Produce, is left to version_for.
        """
        key = api_key(api)
        rule = self._unmet(key, None)
        version = _newest(_below(rule, self.usable(key)), self.deny.get(key, ()))
        if version is None:
            raise self._none(key, rule)
        return version

    def usable(self, key: int) -> Versions:
        """The versions that both sides support, denied ones and those that need a level included."""
        row = schema.api(key)
        known = Versions(row.min_version, row.max_version if self.unstable else _stable(row))
        return known.overlap(self.api_versions.spoken(key))

    def version_for(self, message: RequestMessage[object], version: int | None = None) -> int:
        """The newest common version that can carry a request; or the version asked for, after the same checks.

        Ignorable fields are dropped if no version that the broker supports has them. Versions that need a feature level
        which is not finalized are not used (KIP-890). Raises UnsupportedVersionError, without asking the broker, if it
        lacks a version, a field, a meaning or a level that the request needs.
        """
        check_request(message)
        if version is not None and not isinstance(version, int):
            raise TypeError(f"version must be an int, not {type(version).__name__}")
        definition = message_of(message).schema
        key = definition.api_key
        common, denied = self.usable(key), self.deny.get(key, ())
        rule = self._unmet(key, message)
        if version is not None:
            if version not in schema.api(key).versions.overlap(self.api_versions.spoken(key)):
                raise self._lacks(key, f"version {version}", Versions(version, version))
            if rule is not None and version >= rule.first:
                raise self._refused_by(rule, key, version)
            common, denied = Versions(version, version), ()
        common = _below(rule, common)
        if _newest(common, denied) is None:
            raise self._none(key, rule)
        needed = needs(message, definition.name)
        required = [need for need in needed if not need.droppable]
        kept = [
            need for need in needed
            if not need.droppable or _newest(common.overlap(need.versions), denied) is not None
        ]
        for group in (kept, required):
            newest = _newest(_overlap(common, group), denied)
            if newest is not None:
                return newest
        raise self._first_lack(key, required, common, denied, rule)

    def _first_lack(
        self, key: int, required: list[Need], common: Versions, denied: Collection[int], rule: LevelRule | None
    ) -> UnsupportedVersionError:
        for number, need in enumerate(required, 1):
            if _newest(_overlap(common, required[:number]), denied) is None:
                return self._lacks(key, need.what, need.versions, rule)
        raise AssertionError("no need is unmet")

    def _none(self, key: int, rule: LevelRule | None = None) -> UnsupportedVersionError:
        row = schema.api(key)
        return self._lacks(key, f"{row.name}", Versions(row.min_version, _stable(row)), rule)

    def _unmet(self, key: int, message: Any) -> LevelRule | None:
        """The rule by which a request is kept to lower versions at the finalized levels, None if none is.

        message: None for any request of the API.
        """
        rule = LEVEL_RULES.get(key)
        if rule is None or not rule.applies(message) or self.levels.level(rule.feature) >= rule.level:
            return None
        return rule

    def _refused_by(self, rule: LevelRule, key: int, version: int) -> UnsupportedVersionError:
        offered = _below(rule, self.api_versions.spoken(key))
        return UnsupportedVersionError(
            f"{self.where}: cannot send {api_name(key)}: version {version} needs {self._level(rule)}",
            api=api_name(key), needed=(version, version), offered=tuple(offered) if offered else None,
        )

    def _level(self, rule: LevelRule) -> str:
        """The level that a rule needs and the one found, for errors."""
        levels = self.levels
        finalized = f"the finalized level is {levels.level(rule.feature)}"
        if levels.epoch < 0:
            finalized = "the broker gave no finalized levels"
        return f"{rule.feature} {rule.level}, {finalized}"

    def _lacks(
        self, key: int, what: str, needed: Versions, rule: LevelRule | None = None
    ) -> UnsupportedVersionError:
        offered = self.api_versions.spoken(key)
        name = api_name(key)
        low, high = needed.low, max(needed.low, min(needed.high, schema.api(key).max_version))
        support = f"the broker supports {_span(offered)}" if offered else f"the broker does not support {name}"
        if self.api_versions.assumed:
            support += f" (assumed: Kafka {self.api_versions.assumed})"
        denied = self.deny.get(key)
        if denied and offered.overlap(needed):
            support += ", minus denied versions"
        if rule is not None and offered.high >= rule.first:
            support += f"; version {rule.first} and newer need {self._level(rule)}"
        subject = "" if what == name else f"{what.removeprefix('.')} "
        return UnsupportedVersionError(
            f"{self.where}: cannot send {name}: {subject}needs {_span(Versions(low, high))}, {support}",
            api=name, needed=(low, high), offered=tuple(offered) if offered else None,
        )


def _overlap(versions: Versions, needed: Iterable[Need]) -> Versions:
    """The versions that meet all needs."""
    for need in needed:
        versions = versions.overlap(need.versions)
    return versions


def _below(rule: LevelRule | None, versions: Versions) -> Versions:
    """The versions that need no level."""
    return versions if rule is None else versions.overlap(Versions(0, rule.first - 1))


def _newest(versions: Versions, denied: Collection[int]) -> int | None:
    """The highest version that is not denied, None where there is none."""
    return next((version for version in reversed(versions.all()) if version not in denied), None)


def _stable(row: schema.Api) -> int:
    return row.max_stable_version if row.unstable else row.max_version


def _span(versions: Versions) -> str:
    word = "version" if versions.low == versions.high else "versions"
    return f"{word} {str(versions).replace('-', ' to ')}"
