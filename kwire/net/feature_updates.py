"""Feature levels of a cluster, read (KIP-584) and changed (KIP-778, KIP-1022): ApiVersions and UpdateFeatures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kwire import messages, schema
from kwire.codec.arguments import check_type
from kwire.errors import DecodeError, KwireError, UnsupportedVersionError
from kwire.net.errors import AuthenticationError, BrokerConnectionError, BrokerTimeoutError
from kwire.net.negotiation import api_versions_request
from kwire.net.waiting import NoneAnswered, first_answer, within
from kwire.schema.feature_levels import METADATA_VERSION
from kwire_c.printable import brief, printable

if TYPE_CHECKING:
    from kwire.net.cluster import Cluster
    from kwire.net.connection import Connection

_UPGRADE_TYPES = {"NONE": 1, "SAFE": 2, "UNSAFE": 3}  # KIP-778's DowngradeType -> FeatureUpdate.UpgradeType as shipped
_HIGHEST_LEVEL = (1 << 15) - 1
_LONGEST_TIMEOUT = 2_147_483  # seconds, that milliseconds in an int32 can say
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts to find the controller


@dataclass(frozen=True)
class FeatureUpdate:
    """The level that a feature shall get.

    level: an int from 0 to 32,767 (0 disables the feature), or a name ("4.3-IV0", "4.3", "TV_2"). downgrade: "NONE"
    (only upwards), "SAFE" (downwards where no metadata is lost) or "UNSAFE", as in KIP-778. allow_downgrade: KIP-584's
    flag instead of it, True is "SAFE". Raises ValueError for other values, TypeError for other types.
    """

    level: int | str
    downgrade: str = "NONE"
    allow_downgrade: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.level, bool) or not isinstance(self.level, (int, str)):
            raise TypeError(f"level must be an int or a name, not {brief(self.level)}")
        if isinstance(self.level, int) and not 0 <= self.level <= _HIGHEST_LEVEL:
            raise ValueError(f"level out of range: expected 0 to {_HIGHEST_LEVEL:,}, found {self.level}")
        if not isinstance(self.downgrade, str) or self.downgrade not in _UPGRADE_TYPES:
            raise ValueError(f"downgrade must be NONE, SAFE or UNSAFE, not {brief(self.downgrade)}")
        if self.allow_downgrade is not None:
            if self.allow_downgrade and self.downgrade == "NONE":
                object.__setattr__(self, "downgrade", "SAFE")
            elif self.allow_downgrade != (self.downgrade != "NONE"):
                raise ValueError(f'allow_downgrade=False contradicts downgrade="{self.downgrade}"')
        if self.level == 0 and self.downgrade == "NONE":
            raise ValueError("level 0 disables the feature: SAFE or UNSAFE is needed")

    @property
    def upgrade_type(self) -> int:
        """The value of UpgradeType in UpdateFeatures v1 and newer: 1 NONE, 2 SAFE, 3 UNSAFE."""
        return _UPGRADE_TYPES[self.downgrade]

    def level_of(self, feature: str) -> int:
        """The level as a number. Raises UnsupportedVersionError for a name that the feature does not have."""
        check_type(feature, str, "feature", "the name of a feature")
        if isinstance(self.level, int):
            return self.level
        if feature == METADATA_VERSION:
            return schema.metadata_version(self.level).level
        known = schema.features().get(feature)
        for row in known.levels if known else ():
            if row.name == self.level:
                return row.level
        raise UnsupportedVersionError(f"unknown level of {brief(feature)}: {brief(self.level)}", needed=self.level)


class FeatureMetadata(NamedTuple):
    """The features of a cluster, as one node reports them.

    finalized: feature -> level; supported: feature -> (min, max) level of that node, both included; epoch: the epoch of
    the finalized levels, in KRaft the offset of the metadata log up to which they hold, -1 if unknown.
    """

    finalized: dict[str, int]
    supported: dict[str, tuple[int, int]]
    epoch: int


class FeatureUpdateError(KwireError):
    """The controller refused the update of a feature. code: the ErrorCode; reason: the controller's text."""

    def __init__(self, feature: str, code: schema.ErrorCode, reason: str | None) -> None:
        self.feature, self.code = printable(feature), code
        self.reason = printable(code.message if reason is None else reason)
        super().__init__(f"{self.feature}: {code.name}: {self.reason}")


async def describe_features(cluster: Cluster, node: int | None = None) -> FeatureMetadata:
    """What Cluster.describe_features does."""
    if node is not None:
        return await _described(cluster.connection(node))
    if cluster.controllers:
        return await _described(await _controller(cluster))
    where = ",".join(map(str, cluster.bootstrap))
    connections = [cluster.connection(broker.id) for broker in cluster.brokers]
    connections.sort(key=lambda connection: not connection.is_open)

    def is_final(_: Connection, error: BrokerConnectionError) -> bool:
        return isinstance(error, AuthenticationError)

    async with within(cluster.timeout, where):
        try:
            return (await first_answer(connections, _described, cluster.timeout, is_final))[1]
        except NoneAnswered as none:
            if none.errors:
                raise none.errors[-1][1] from None
            raise BrokerConnectionError("the cluster is not open", address=where) from None


async def _described(connection: Connection) -> FeatureMetadata:
    try:
        answer = await connection.send(api_versions_request())
    except DecodeError as error:
        raise BrokerConnectionError(f"invalid ApiVersions response: {error}", address=str(connection.address)) from None
    if answer.error_code:
        code = schema.ErrorCode(answer.error_code)
        raise BrokerConnectionError(f"refuses ApiVersions: {code.name}", address=str(connection.address))
    return FeatureMetadata(
        {row.name: row.max_version_level for row in answer.finalized_features},
        {row.name: (row.min_version, row.max_version) for row in answer.supported_features},
        answer.finalized_features_epoch,
    )


async def update_features(
    cluster: Cluster, updates: Mapping[str, FeatureUpdate], dry_run: bool
) -> dict[str, FeatureUpdateError | None]:
    """What Cluster.update_features does. Follows the controller while it moves, within the cluster's timeout."""
    check_type(updates, Mapping, "updates", "a mapping of features to FeatureUpdates")
    check_type(dry_run, bool, "dry_run", "a bool")
    for feature, update in updates.items():
        check_type(feature, str, "updates", "a mapping of features (str) to FeatureUpdates")
        check_type(update, FeatureUpdate, f"updates[{brief(feature)}]", "a FeatureUpdate")
    levels = {feature: update.level_of(feature) for feature, update in updates.items()}
    if not updates:
        raise ValueError("no feature to update")
    if not all(feature.strip() for feature in updates):
        raise ValueError("the name of a feature is empty")
    pause, end = _FIRST_PAUSE, asyncio.get_running_loop().time() + cluster.timeout
    while True:
        try:
            connection = await _controller(cluster)
            await connection.open()
            request = _request(connection, updates, levels, dry_run, cluster.timeout)
            version = connection.version_for(request)
            answer = await connection.send(request, version)
            if answer.error_code != schema.ErrorCode.NOT_CONTROLLER:
                return _results(updates, answer, version)
            where = str(connection.address)
            failed = BrokerConnectionError("refuses UpdateFeatures: NOT_CONTROLLER", address=where)
        except (AuthenticationError, BrokerTimeoutError):
            raise
        except DecodeError as error:
            where = str(connection.address)
            raise BrokerConnectionError(f"invalid UpdateFeatures response: {error}", address=where) from None
        except BrokerConnectionError as error:
            failed = error
        if asyncio.get_running_loop().time() + pause > end:
            raise failed
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        try:
            await cluster.refresh()
        except BrokerConnectionError as error:
            if asyncio.get_running_loop().time() > end:
                raise error from None


async def _controller(cluster: Cluster) -> Connection:
    """The connection to the controller: in KRaft the active one, or a broker that forwards to it."""
    if cluster.controller is None:
        for broker in cluster.brokers:
            if cluster.connection(broker.id).is_open:
                cluster.connection(broker.id).newest("UpdateFeatures")  # raises, where a broker is that old
        raise BrokerConnectionError("no controller is known", address=",".join(map(str, cluster.bootstrap)))
    return cluster.connection(cluster.controller)


def _request(
    connection: Connection, updates: Mapping[str, FeatureUpdate], levels: Mapping[str, int], dry_run: bool,
    timeout: float,
) -> messages.UpdateFeaturesRequest:  # fmt: skip
    """The request in the form that the broker's versions need: 0 has AllowDowngrade, later ones UpgradeType.

    Raises UnsupportedVersionError for what version 0 cannot say, if the broker has no later one.
    """
    row = messages.UpdateFeaturesRequest.FeatureUpdateKey
    newest = connection.newest("UpdateFeatures")
    unsafe = next((feature for feature, update in updates.items() if update.downgrade == "UNSAFE"), None)
    if newest == 0 and (dry_run or unsafe is not None):
        what = "a dry run" if dry_run else f"an unsafe downgrade ({brief(unsafe)})"
        raise UnsupportedVersionError(
            f"{connection.address}: {what} needs UpdateFeatures version 1 or newer, the broker supports version 0",
            api="UpdateFeatures", needed=(1, schema.api("UpdateFeatures").max_version), offered=(0, 0),
        )  # fmt: skip
    rows = [
        row(feature=feature, max_version_level=levels[feature], allow_downgrade=update.downgrade == "SAFE")
        if newest == 0
        else row(feature=feature, max_version_level=levels[feature], upgrade_type=update.upgrade_type)
        for feature, update in updates.items()
    ]
    return messages.UpdateFeaturesRequest(
        timeout_ms=int(min(timeout, _LONGEST_TIMEOUT) * 1000), feature_updates=rows, validate_only=dry_run
    )


def _results(
    updates: Mapping[str, FeatureUpdate], answer: messages.UpdateFeaturesResponse, version: int
) -> dict[str, FeatureUpdateError | None]:
    """The outcome of each feature, as KafkaAdminClient.updateFeatures reads a response."""
    if answer.error_code:
        code = schema.ErrorCode(answer.error_code)
        return {feature: FeatureUpdateError(feature, code, answer.error_message) for feature in updates}
    if version >= 2:  # which says no more than that all is well
        return dict.fromkeys(updates)
    rows = {row.feature: row for row in answer.results}
    results: dict[str, FeatureUpdateError | None] = {}
    for feature in updates:
        lost = "The controller response did not contain a result for feature " + feature
        if feature not in rows:
            results[feature] = FeatureUpdateError(feature, schema.ErrorCode.UNKNOWN_SERVER_ERROR, lost)
        elif rows[feature].error_code:
            code = schema.ErrorCode(rows[feature].error_code)
            results[feature] = FeatureUpdateError(feature, code, rows[feature].error_message)
        else:
            results[feature] = None
    return results
