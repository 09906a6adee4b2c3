"""SaslHandshake and SaslAuthenticate: PLAIN and SCRAM (KIP-43, KIP-84, KIP-152)."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.fleet.users import UnansweredError
from kwire.schema.error_codes import ErrorCode

_NAMES_NONE = "1.1"  # before, who needs not log in gets the broker's sasl.enabled.mechanisms, GSSAPI by default


@handles("SaslHandshake", controller=True)
def sasl_handshake(call: Call) -> Any:
    """Choose a mechanism; the connection ends after one that is not known."""
    users, response = call.node.users, messages.SaslHandshakeResponse
    if users is None or call.connection.principal is not None:
        by_default = [] if call.node.offer.at_least(_NAMES_NONE) else ["GSSAPI"]
        return response(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=by_default)
    if call.message.mechanism not in users.mechanisms:
        call.connection.close()
        return response(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(users.mechanisms))
    call.connection.exchange = users.begin(call.message.mechanism)
    call.connection.raw_sasl = call.version == 0
    return response(mechanisms=list(users.mechanisms))


@handles("SaslAuthenticate", controller=True)
def sasl_authenticate(call: Call) -> Any:
    """One step of the exchange; the connection ends after a failed one."""
    connection = call.connection
    if connection.exchange is None:
        return messages.SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication")
    try:
        return messages.SaslAuthenticateResponse(auth_bytes=connection.authenticate(bytes(call.message.auth_bytes)))
    except UnansweredError:
        return None
    except ApiError as error:
        return messages.SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
