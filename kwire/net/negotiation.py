"""Version negotiation (KIP-35, KIP-97): a broker's API versions, and the version of each request to it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kwire import messages, schema
from kwire.errors import DecodeError, UnsupportedVersionError
from kwire.net.api_versions import NodeApiVersions, api_key, api_name
from kwire.net.channel import Channel
from kwire.net.errors import BrokerConnectionError, BrokerTimeoutError
from kwire.net.required_versions import Need, needs
from kwire.schema import Versions, api_keys
from kwire.version import __version__
from kwire_c.plan import message_of

SOFTWARE = "kwire"


class NoAnswer(BrokerConnectionError):
    """ApiVersions was not answered: the broker sent nothing, or closed the connection."""


class SilentBroker(NoAnswer, BrokerTimeoutError):
    """ApiVersions was not answered in time."""


async def ask(channel: Channel, probe_timeout: float) -> NodeApiVersions:
    """Send ApiVersions, falling back to older versions of it as in KIP-35 and KIP-511, and return what it says.

    probe_timeout: seconds for each response. Raises SilentBroker after that time, NoAnswer if the broker closes the
    connection, BrokerConnectionError for anything else than an ApiVersions response.
    """
    known = schema.api(api_keys.API_VERSIONS)
    version = known.max_stable_version
    address = str(channel.address)
    while True:
        request = messages.ApiVersionsRequest(
            client_software_name=SOFTWARE, client_software_version=__version__.replace("+", ".")
        )
        try:
            async with asyncio.timeout(probe_timeout):
                answer = await channel.request(request, version)
        except BrokerTimeoutError:
            raise
        except TimeoutError:
            raise SilentBroker(f"no answer to ApiVersions within {probe_timeout:g} s{_HINT}", address=address) from None
        except BrokerConnectionError as error:
            if error.reason.startswith("closed the connection"):
                raise NoAnswer(f"closed the connection on ApiVersions{_HINT}", address=address) from None
            raise
        except DecodeError as error:
            raise BrokerConnectionError(f"invalid ApiVersions response: {error}", address=address) from None
        if answer.error_code == 0:
            return _node_api_versions(answer)
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


def _node_api_versions(answer: Any) -> NodeApiVersions:
    ranges = {row.api_key: Versions(row.min_version, row.max_version) for row in answer.api_keys}
    return NodeApiVersions(
        ranges,
        features={row.name: (row.min_version, row.max_version) for row in answer.supported_features},
        finalized={row.name: row.max_version_level for row in answer.finalized_features},
    )


class Chooser:
    """Chooses the version of each request to one broker.

    deny: API name or key -> versions never to use (KIP-35's deprecated ones); unstable: whether versions that are
    unstable in the newest release may be used; where: the broker's name in errors.
    """

    def __init__(
        self, api_versions: NodeApiVersions, *, where: str = "the broker",
        deny: Mapping[int | str, Collection[int]] | None = None, unstable: bool = False,
    ) -> None:  # fmt: skip
        self.api_versions, self.where, self.unstable = api_versions, where, unstable
        self.deny = {api_key(api): versions for api, versions in (deny or {}).items()}

    def newest(self, api: int | str) -> int:
        """The newest common version of an API. Raises UnsupportedVersionError if there is none."""
        key = api_key(api)
        version = _newest(self._common(key), self.deny.get(key, ()))
        if version is None:
            raise self._none(key)
        return version

    def _common(self, key: int) -> Versions:
        """The versions that both sides support, denied ones included."""
        row = schema.api(key)
        known = Versions(row.min_version, row.max_version if self.unstable else _stable(row))
        return known.overlap(self.api_versions.spoken(key))

    def version_for(self, message: Any, version: int | None = None) -> int:
        """The newest common version that can carry a request; or the version asked for, after the same checks.

        Ignorable fields are dropped if no version that the broker supports has them. Raises UnsupportedVersionError,
        without asking the broker, if it lacks a version, a field or a meaning that the request needs.
        """
        if isinstance(message, (str, type)):
            raise TypeError(f"expected a request, not {message!r}")
        definition = message_of(message).schema
        if definition.type != "request" or definition.api_key is None:
            raise TypeError(f"{definition.name} is not a request")
        key = definition.api_key
        common, denied = self._common(key), self.deny.get(key, ())
        if version is not None:
            if version not in schema.api(key).versions.overlap(self.api_versions.spoken(key)):
                raise self._lacks(key, f"version {version}", Versions(version, version))
            common, denied = Versions(version, version), ()
        if _newest(common, denied) is None:
            raise self._none(key)
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
        raise self._first_lack(key, required, common, denied)

    def _first_lack(
        self, key: int, required: list[Need], common: Versions, denied: Collection[int]
    ) -> UnsupportedVersionError:
        for number, need in enumerate(required, 1):
            if _newest(_overlap(common, required[:number]), denied) is None:
                return self._lacks(key, need.what, need.versions)
        raise AssertionError("no need is unmet")

    def _none(self, key: int) -> UnsupportedVersionError:
        row = schema.api(key)
        return self._lacks(key, f"{row.name}", Versions(row.min_version, _stable(row)))

    def _lacks(self, key: int, what: str, needed: Versions) -> UnsupportedVersionError:
        offered = self.api_versions.spoken(key)
        name = api_name(key)
        low, high = needed.low, min(needed.high, schema.api(key).max_version)
        support = f"the broker supports {_span(offered)}" if offered else f"the broker does not support {name}"
        if self.api_versions.assumed:
            support += f" (assumed: Kafka {self.api_versions.assumed})"
        denied = self.deny.get(key)
        if denied and offered.overlap(needed):
            support += ", minus denied versions"
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


def _newest(versions: Versions, denied: Collection[int]) -> int | None:
    """The highest version that is not denied, None where there is none."""
    return next((version for version in reversed(versions.all()) if version not in denied), None)


def _stable(row: schema.Api) -> int:
    return row.max_stable_version if row.unstable else row.max_version


def _span(versions: Versions) -> str:
    word = "version" if versions.low == versions.high else "versions"
    return f"{word} {str(versions).replace('-', ' to ')}"
