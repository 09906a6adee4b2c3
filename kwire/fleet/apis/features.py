"""UpdateFeatures: finalized levels, as a release's controller changes them (KIP-584, KIP-778)."""

from __future__ import annotations

from typing import Any

from kwire import messages, schema
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import METADATA_VERSION

_UPGRADE, _SAFE, _UNSAFE = 1, 2, 3  # FeatureUpdate.UpgradeType


@handles("UpdateFeatures")
def update_features(call: Call) -> Any:
    """All updates or none; from version 2 on one error for all of them."""
    message, response, cluster = call.message, messages.UpdateFeaturesResponse, call.cluster
    new, errors = dict(cluster.levels), {}
    for update in message.feature_updates:
        try:
            if call.node.id != cluster.controller_id and not call.node.offer.at_least("3.3"):
                raise ApiError(ErrorCode.NOT_CONTROLLER)
            if not call.node.offer.features:  # ZooKeeper: none is supported
                raise ApiError(ErrorCode.INVALID_REQUEST)
            new[update.feature] = _checked(call, update)
        except ApiError as error:
            errors[update.feature] = error
    if not errors and not (call.version >= 1 and message.validate_only):
        cluster.set_levels({name: level for name, level in new.items() if level > 0})
    if call.version >= 2 or (errors and call.node.offer.at_least("4.0")):
        first = next(iter(errors.values()), None)
        if first is None:
            return response()
        reason = f"The update failed for all features since the following feature had an error: {first.message}"
        return response(error_code=first.code, error_message=reason)
    row = response.UpdatableFeatureResult
    results = [
        row(feature=one.feature) if one.feature not in errors else
        row(feature=one.feature, error_code=errors[one.feature].code, error_message=errors[one.feature].message)
        for one in message.feature_updates]
    return response(results=results)


def _checked(call: Call, update: Any) -> int:
    """The level that an update asks for, if the nodes can have it (FeatureControlManager.updateFeature)."""
    name, level = update.feature, int(update.max_version_level)
    have = call.cluster.levels.get(name, 0)
    kind = update.upgrade_type if call.version >= 1 else (_SAFE if update.allow_downgrade else _UPGRADE)
    if kind not in (_UPGRADE, _SAFE, _UNSAFE):
        raise _invalid(name, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(name, f"A feature version cannot be less than {0}.")
    for node in call.cluster.alive():
        low, high = node.offer.features.get(name, (0, 0))
        if name not in node.offer.features or (level and not low <= level <= high) or level > high:
            raise _invalid(
                name, f"Broker {node.id} does not support this feature." if name not in node.offer.features else
                f"Broker {node.id} only supports versions {low}-{high}")
    if level < have and kind == _UPGRADE:
        raise _invalid(name, "Can't downgrade the version of this feature without setting the upgrade type to either "
                       "safe or unsafe downgrade.")
    if level > have and kind != _UPGRADE:
        raise _invalid(name, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_version(have, level, kind)
    return level


def _check_metadata_version(have: int, level: int, kind: int) -> None:
    """Downgrades of metadata.version as released: only where no level on the way changed the metadata."""
    lossy = any(level < row.level <= have and row.changed for row in schema.metadata_versions())
    if level >= have or not lossy:
        return
    if kind == _UNSAFE:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid metadata.version {level}. Unsafe metadata downgrade is not supported in this version.")
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid metadata.version {level}. Refusing to perform the requested downgrade because it might delete "
        "metadata information.")


def _invalid(name: str, reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version for feature {name}. {reason}")
