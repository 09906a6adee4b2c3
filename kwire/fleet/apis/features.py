"""UpdateFeatures: finalized levels, as the active controller changes them (KIP-584, KIP-778)."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.controller.rules import Update
from kwire.fleet.errors import ApiError
from kwire.java_semantics import put_order
from kwire.schema.error_codes import ErrorCode


@handles("UpdateFeatures", controller=True)
def update_features(call: Call) -> Any:
    """Up to 3.9 a result for each update; from version 2 on, and from 4.0 on for all versions, one error for all."""
    message, response = call.message, messages.UpdateFeaturesResponse
    updates, validate_only = _updates(call), call.version >= 1 and call.message.validate_only
    errors: dict[str, ApiError] = {}
    try:
        if not call.node.offer.features:
            _refuse_old(call)
        errors = call.cluster.controller.update_features(list(updates.values()), validate_only)
    except ApiError as error:
        errors = dict.fromkeys(updates, error)
    new = call.node.offer.at_least("4.0")
    if call.version >= 2 or (errors and new):
        first = next(iter(errors.values()), None)
        if first is None:
            return response(error_message=None)
        reason = f"The update failed for all features since the following feature had an error: {first.message}"
        return response(error_code=first.code, error_message=reason)
    row = response.UpdatableFeatureResult
    return response(error_message=None if new else "", results=[
        row(feature=name, error_code=errors[name].code, error_message=errors[name].message) if name in errors else
        row(feature=name, error_message=ErrorCode.NONE.name if new else None)
        for name in ([one.feature for one in message.feature_updates] if new else updates)])


def _updates(call: Call) -> dict[str, Update]:
    """The updates, in the order in which Kafka's controller has them: the first error is that of the first one.

    Of two of one feature the later one counts. Version 0 has AllowDowngrade in the place of the UpgradeType.
    """
    rules, updates = call.cluster.controller.rules, {}
    for one in call.message.feature_updates:
        kind = int(one.upgrade_type) if call.version >= 1 else rules.kind_of(one.allow_downgrade)
        updates[one.feature] = Update(one.feature, int(one.max_version_level), kind)
    return {name: updates[name] for name in put_order(updates)}


def _refuse_old(call: Call) -> None:
    """With ZooKeeper, and in the preview, no feature is supported. Raises ApiError."""
    if call.node.id != call.cluster.controller_id:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    raise ApiError(ErrorCode.INVALID_REQUEST)
