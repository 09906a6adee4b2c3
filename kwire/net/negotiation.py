"""KIP-35 and KIP-97: ask a broker what it speaks, and choose the version that a message goes out with."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import kwire
from kwire import messages, schema
from kwire.net.channel import Channel
from kwire.net.failure import BrokerConnectionError, BrokerTimeoutError
from kwire.net.meaning import Need, needs
from kwire.net.offer import Offer, api_key, api_name
from kwire.schema import Versions
from kwire_c.errors import DecodeError, UnsupportedVersionError
from kwire_c.plan import message_of

API_VERSIONS = 18
_UNSUPPORTED = 35

SOFTWARE = "kwire"


class NoAnswer(BrokerConnectionError):
    """ApiVersions was not answered: the broker was silent, or closed the connection."""


class SilentBroker(NoAnswer, BrokerTimeoutError):
    """ApiVersions was not answered in time."""


async def ask(channel: Channel, probe_timeout: float) -> Offer:
    """What the broker answers to ApiVersions; falls back to older versions of the question as KIP-35 and KIP-511 say.

    probe_timeout: seconds for each answer. Raises NoAnswer (silent: SilentBroker; or closed on the question), and
    BrokerConnectionError where what comes is no answer of Kafka.
    """
    known = schema.api(API_VERSIONS)
    version = known.max_stable_version
    address = str(channel.address)
    while True:
        request = messages.ApiVersionsRequest(
            client_software_name=SOFTWARE, client_software_version=kwire.__version__.replace("+", ".")
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
            raise BrokerConnectionError(f"answers ApiVersions with what is none: {error}", address=address) from None
        if answer.error_code == 0:
            return _offer(answer)
        if answer.error_code != _UNSUPPORTED or version == 0:
            told = schema.ErrorCode(answer.error_code)
            raise BrokerConnectionError(f"refuses ApiVersions v{version}: {told.name}", address=address)
        offered = [Versions(row.min_version, row.max_version) for row in answer.api_keys if row.api_key == API_VERSIONS]
        both = offered[0].overlap(Versions(0, version - 1)) if offered else Versions(0, 0)
        version = both.high if both else 0


_HINT = ": a broker before 0.10 (then name its release: assume_release), a TLS port, or no Kafka broker"


def _offer(answer: Any) -> Offer:
    ranges = {row.api_key: Versions(row.min_version, row.max_version) for row in answer.api_keys}
    return Offer(
        ranges,
        features={row.name: (row.min_version, row.max_version) for row in answer.supported_features},
        finalized={row.name: row.max_version_level for row in answer.finalized_features},
    )


class Chooser:
    """Chooses versions for one broker.

    offer: what it speaks; deny: API name or key -> versions never to use (KIP-35's deprecated ones); unstable: whether
    versions that the newest release calls unstable may be used; where: the broker's name in errors.
    """

    def __init__(
        self, offer: Offer, *, where: str = "the broker",
        deny: Mapping[int | str, Collection[int]] | None = None, unstable: bool = False,
    ) -> None:  # fmt: skip
        self.offer, self.where, self.unstable = offer, where, unstable
        self.deny = {api_key(api): versions for api, versions in (deny or {}).items()}

    def usable(self, api: int | str) -> list[int]:
        """The common versions of an API, rising: known, offered, not denied, not unstable."""
        key = api_key(api)
        row = schema.api(key)
        known = Versions(row.min_version, row.max_version if self.unstable else _stable(row))
        denied = self.deny.get(key, ())
        return [version for version in known.overlap(self.offer.spoken(key)).all() if version not in denied]

    def newest(self, api: int | str) -> int:
        """The newest common version of an API. Raises UnsupportedVersionError where there is none."""
        versions = self.usable(api)
        if not versions:
            raise self._none(api_key(api))
        return versions[-1]

    def version_for(self, message: Any, version: int | None = None) -> int:
        """The newest common version that carries all that a request says; or the one asked for, checked likewise.

        Fields that Kafka calls ignorable are dropped where no version that the broker offers has them. Raises
        UnsupportedVersionError, without asking the broker, where a version, a field or a use is lacking.
        """
        if isinstance(message, (str, type)):
            raise TypeError(f"a request is sent, not {message!r}")
        facts = message_of(message).schema
        if facts.type != "request" or facts.api_key is None:
            raise TypeError(f"{facts.name} is no request")
        key = facts.api_key
        usable = self.usable(key)
        if version is not None:
            if version not in schema.api(key).versions.overlap(self.offer.spoken(key)):
                raise self._lacks(key, f"version {version}", Versions(version, version))
            usable = [version]
        if not usable:
            raise self._none(key)
        wanted = needs(message, facts.name)
        must = [need for need in wanted if not need.droppable]
        kept = [need for need in wanted if not need.droppable or any(item in need.versions for item in usable)]
        for group in (kept, must):
            fitting = [item for item in usable if all(item in need.versions for need in group)]
            if fitting:
                return fitting[-1]
        raise self._first_lack(key, must, usable)

    def _first_lack(self, key: int, must: list[Need], usable: list[int]) -> UnsupportedVersionError:
        left = usable
        for need in must:
            fitting = [item for item in left if item in need.versions]
            if not fitting:
                return self._lacks(key, need.what, need.versions)
            left = fitting
        raise AssertionError("every need is met")

    def _none(self, key: int) -> UnsupportedVersionError:
        row = schema.api(key)
        return self._lacks(key, f"{row.name}", Versions(row.min_version, _stable(row)))

    def _lacks(self, key: int, what: str, needed: Versions) -> UnsupportedVersionError:
        offered = self.offer.spoken(key)
        name = api_name(key)
        low, high = needed.low, min(needed.high, schema.api(key).max_version)
        told = f"it offers {name} {_span(offered)}" if offered else f"it does not offer {name}"
        if self.offer.assumed:
            told += f" (assumed: Kafka {self.offer.assumed})"
        denied = self.deny.get(key)
        if denied and offered.overlap(needed):
            told += ", less what is denied"
        subject = "" if what == name else f"{what.removeprefix('.')} "
        return UnsupportedVersionError(
            f"{self.where} cannot do {name}: {subject}needs {_span(Versions(low, high))}, {told}",
            api=name, needed=(low, high), offered=tuple(offered) if offered else None,
        )


def _stable(row: schema.Api) -> int:
    return row.max_stable_version if row.unstable else row.max_version


def _span(versions: Versions) -> str:
    word = "version" if versions.low == versions.high else "versions"
    return f"{word} {str(versions).replace('-', ' to ')}"


