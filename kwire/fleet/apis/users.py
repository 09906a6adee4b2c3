"""DescribeUserScramCredentials, AlterUserScramCredentials (KIP-554): SASL of a fleet with users knows them at once."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, answered, handles
from kwire.fleet.controller.metadata_log import MetadataLog
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

_HASHES = {1: "sha256", 2: "sha512"}  # of each ScramMechanism
_LEAST_ITERATIONS, _MOST_ITERATIONS = 4096, 16384


@handles("DescribeUserScramCredentials", controller=True)
def describe_user_scram_credentials(call: Call) -> Any:
    """The mechanisms and iterations of users, of all if none is named. Source: ScramImage.describe."""
    message, response = call.message, messages.DescribeUserScramCredentialsResponse
    known: dict[str, list[Any]] = {}
    for (name, mechanism), record in sorted(call.cluster.controller.log.scram.items()):
        known.setdefault(name, []).append(
            response.CredentialInfo(mechanism=mechanism, iterations=record.iterations))
    asked = Counter(one.name for one in message.users or ()) or Counter(known.keys())

    def fill(name: str, row: Any) -> None:
        if asked[name] > 1:
            raise ApiError(
                ErrorCode.DUPLICATE_RESOURCE,
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}")
        if name not in known:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {name}")
        row.credential_infos = known[name]

    return response(error_message="", results=answered(
        asked, lambda name: response.DescribeUserScramCredentialsResult(user=name, error_message=""), fill,
        lambda error: error.message))


@handles("AlterUserScramCredentials", controller=True)
def alter_user_scram_credentials(call: Call) -> Any:
    """Set and delete credentials: one of a user in a request. Source: ScramControlManager.alterCredentials."""
    message, response = call.message, messages.AlterUserScramCredentialsResponse
    log = call.cluster.controller.log
    call.cluster.controller.check_active()
    records: dict[str, Any] = {}
    errors: dict[str, ApiError] = {}
    for one in (*message.deletions, *message.upsertions):
        if one.name in errors:
            continue
        try:
            if records.pop(one.name, None) is not None:
                raise ApiError(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
            if not log.can.get("isScramSupported"):
                raise ApiError(
                    ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
            _check(one)
            sets = isinstance(one, messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion)
            records[one.name] = _credential(one) if sets else _removal(log, one)
        except ApiError as error:
            errors[one.name] = error
    log.append(*records.values())
    row = response.AlterUserScramCredentialsResult
    return response(results=[
        *(row(user=name, error_message=None) for name in records),
        *(row(user=name, error_code=error.code, error_message=error.message) for name, error in errors.items())])


def _check(one: Any) -> None:
    """Has it a name and a mechanism? Raises ApiError."""
    if not one.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if one.mechanism not in _HASHES:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _removal(log: MetadataLog, one: Any) -> Any:
    """The record without which a credential is gone. Raises ApiError."""
    if (one.name, one.mechanism) not in log.scram:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    return messages.RemoveUserScramCredentialRecord(name=one.name, mechanism=one.mechanism)


def _credential(one: Any) -> Any:
    """The record of a credential: stored key and server key of RFC 5802, from the salted password. Raises ApiError."""
    if not _LEAST_ITERATIONS <= one.iterations <= _MOST_ITERATIONS:
        much = "few" if one.iterations < _LEAST_ITERATIONS else "many"
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Too {much} iterations")
    kind, salted = _HASHES[one.mechanism], bytes(one.salted_password)
    client_key, server_key = (hmac.digest(salted, text, kind) for text in (b"Client Key", b"Server Key"))
    return messages.UserScramCredentialRecord(
        name=one.name, mechanism=one.mechanism, salt=one.salt, stored_key=hashlib.new(kind, client_key).digest(),
        server_key=server_key, iterations=one.iterations)
