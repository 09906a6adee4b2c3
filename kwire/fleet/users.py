"""The users of a fleet with SASL, and what they say to be let in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

PLAIN, SCRAM_SHA_256, SCRAM_SHA_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"


class Exchange(Protocol):
    """The steps of one mechanism. user: who was let in, None so far."""

    user: str | None

    def step(self, data: bytes) -> bytes:
        """The answer to what the client says. Raises ApiError: SASL_AUTHENTICATION_FAILED."""


class Users:
    """Names and passwords; a password is never shown."""

    mechanisms = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = dict(passwords)

    def __repr__(self) -> str:
        return f"Users({', '.join(sorted(self._passwords))})"

    def begin(self, mechanism: str) -> Exchange:
        """A new exchange."""
        return _Plain(self._passwords) if mechanism == PLAIN else _Scram(self._passwords, mechanism)


def _failed(mechanism: str) -> ApiError:
    reason = (
        "Authentication failed: Invalid username or password" if mechanism == PLAIN else
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}")
    return ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, reason)


class _Plain:
    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user: str | None = None

    def step(self, data: bytes) -> bytes:
        parts = data.split(b"\0")
        if len(parts) != 3:
            raise ApiError(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        name, password = parts[1].decode("utf-8", "replace"), parts[2].decode("utf-8", "replace")
        if self._passwords.get(name) != password:
            raise _failed(PLAIN)
        self.user = name
        return b""


class _Scram:
    def __init__(self, passwords: Mapping[str, str], mechanism: str) -> None:
        from scramp import ScramMechanism  # type: ignore[import-untyped,unused-ignore]

        self.user: str | None = None
        self._mechanism, self._name, self._steps = mechanism, "", 0
        made = ScramMechanism(mechanism)

        def credentials(name: str) -> Any:
            if name not in passwords:
                raise KeyError(name)
            self._name = name
            return made.make_auth_info(passwords[name], iteration_count=4096)

        self._server = made.make_server(credentials)

    def step(self, data: bytes) -> bytes:
        self._steps += 1
        first: Callable[[str], None] = self._server.set_client_first
        final: Callable[[str], None] = self._server.set_client_final
        try:
            if self._steps == 1:
                first(data.decode())
                return str(self._server.get_server_first()).encode()
            final(data.decode())
            answer = str(self._server.get_server_final()).encode()
        except Exception as error:  # scramp's own, a KeyError for an unknown user, bad UTF-8
            raise _failed(self._mechanism) from error
        self.user = self._name
        return answer
