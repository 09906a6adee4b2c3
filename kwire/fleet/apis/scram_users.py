"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.fleet.scram import Secret
from kwire.schema.error_codes import ErrorCode
from kwire.storage.metadata.scram import MECHANISMS

_BY_NUMBER = {mechanism.type: mechanism for mechanism in MECHANISMS.values()}
_NO_NAME = "Username must not be empty"


@handles("DescribeUserScramCredentials")
def describe_user_scram_credentials(call: Call) -> Any:
    """The mechanisms of users, of all if none is named (ScramImage.describe)."""
    response = messages.DescribeUserScramCredentialsResponse
    kept, named = call.cluster.scram, dict.fromkeys(row.name for row in call.message.users or ())
    known: dict[str, list[Any]] = {}
    for name, number in ((name, number) for name in named for number in _BY_NUMBER) if named else sorted(kept):
        if (name, number) in kept:
            known.setdefault(name, []).append(response.CredentialInfo(
                mechanism=number, iterations=kept[name, number].iterations))
    asked = Counter(row.name for row in call.message.users or ()) or Counter(known.keys())
    rows = []
    for name, times in asked.items():
        row = response.DescribeUserScramCredentialsResult(user=name, credential_infos=known.get(name, []))
        if times > 1:
            row.error_code, row.credential_infos = ErrorCode.DUPLICATE_RESOURCE, []
            row.error_message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        elif not row.credential_infos:
            row.error_code = ErrorCode.RESOURCE_NOT_FOUND
            row.error_message = _NO_NAME if not name and not call.node.offer.is_kraft else (
                f"Attempt to describe a user credential that does not exist: {name}")
        rows.append(row)
    return response(results=rows)


@handles("AlterUserScramCredentials", controller=True)
def alter_user_scram_credentials(call: Call) -> Any:
    """Make and delete credentials, of each user as a whole (ScramControlManager.alterCredentials)."""
    call.cluster.check_controller(call.node)
    message, response = call.message, messages.AlterUserScramCredentialsResponse
    changes = [*message.deletions, *message.upsertions]
    kraft = call.node.offer.is_kraft
    if kraft:
        call.cluster.controller.check_active()
    times = Counter((one.name, one.mechanism) for one in changes)
    done: dict[str, list[Any]] = {}
    failed: dict[str, ApiError] = {}
    for one in changes:
        if kraft and one.name in failed:
            continue
        try:
            if one.name in done if kraft else times[one.name, one.mechanism] > 1:
                raise ApiError(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
            done.setdefault(one.name, []).append(_record(call, one))
        except ApiError as error:
            failed.setdefault(one.name, error)
    call.cluster.change_scram(*(
        record for name, records in done.items() if name not in failed for record in records))
    if call.node.users is not None:
        call.node.users.forget((one.name, one.mechanism) for one in message.deletions if one.name not in failed)
    text = None if kraft else ""

    def said(error: ApiError) -> str | None:
        return error.explanation if kraft else error.message

    row = response.AlterUserScramCredentialsResult
    return response(results=[
        row(user=name, error_code=failed[name].code, error_message=said(failed[name])) if name in failed else
        row(user=name, error_message=text) for name in dict.fromkeys(one.name for one in changes)])


def _record(call: Call, one: Any) -> Any:
    """The record of a change. Raises ApiError."""
    if call.node.offer.is_kraft and not call.cluster.controller.log.can.get("isScramSupported"):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not one.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, _NO_NAME)
    if one.mechanism not in _BY_NUMBER:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(one, messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion):
        if (one.name, one.mechanism) not in call.cluster.scram:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return messages.RemoveUserScramCredentialRecord(name=one.name, mechanism=one.mechanism)
    mechanism = _BY_NUMBER[one.mechanism]
    if one.iterations < mechanism.min_iterations:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if one.iterations > mechanism.max_iterations:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not one.salted_password:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    made = Secret.salted(mechanism, bytes(one.salted_password), bytes(one.salt), one.iterations)
    return messages.UserScramCredentialRecord(
        name=one.name, mechanism=one.mechanism, salt=made.salt, stored_key=made.stored_key,
        server_key=made.server_key, iterations=made.iterations)
