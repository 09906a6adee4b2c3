"""The users of a fleet with SASL, and what they say to be let in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Protocol

from kwire import messages
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

PLAIN, SCRAM_SHA_256, SCRAM_SHA_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
_NUMBERS = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}  # ScramMechanism
_ITERATIONS = 4096
Secret = tuple[bytes, bytes, bytes, int]  # what a server keeps: salt, stored key, server key, iterations
Kept = Mapping[tuple[str, int], messages.UserScramCredentialRecord]


class Exchange(Protocol):
    """The steps of one mechanism. user: who was let in, None so far."""

    user: str | None

    def step(self, data: bytes) -> bytes:
        """The answer to what the client says. Raises ApiError: SASL_AUTHENTICATION_FAILED."""


class Users:
    """Names and passwords, for PLAIN and SCRAM, and the SCRAM users of the metadata log; a password is never shown.

    kept: gives those of the log, by name and ScramMechanism.
    """

    mechanisms = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)

    def __init__(self, passwords: Mapping[str, str], kept: Callable[[], Kept]) -> None:
        self._passwords, self._kept = dict(passwords), kept

    def __repr__(self) -> str:
        return f"Users({', '.join(sorted(self._passwords))})"

    def begin(self, mechanism: str) -> Exchange:
        """A new exchange."""
        return _Plain(self._passwords) if mechanism == PLAIN else _Scram(self._secret, mechanism)

    def _secret(self, mechanism: str, name: str) -> Secret:
        """What SCRAM needs of a user. Raises KeyError."""
        known = self._kept().get((name, _NUMBERS[mechanism]))
        return _secret(mechanism, self._passwords[name]) if known is None else (
            known.salt, known.stored_key, known.server_key, known.iterations)

    def new_records(self, new_salt: Callable[[], bytes]) -> Iterator[messages.UserScramCredentialRecord]:
        """The credentials of passwords that the metadata log does not have: of new users, or other passwords.

        None where SCRAM is not installed, and none of a password that it does not take.
        """
        for name, password in self._passwords.items() if find_spec("scramp") is not None else ():
            if not _is_taken(password):
                continue
            for mechanism, number in _NUMBERS.items():
                known = self._kept().get((name, number))
                if known is not None and known.iterations == _ITERATIONS and (
                        _secret(mechanism, password, known.salt)[:2] == (known.salt, known.stored_key)):
                    continue
                salt, stored_key, server_key, iterations = _secret(mechanism, password, new_salt())
                yield messages.UserScramCredentialRecord(
                    name=name, mechanism=number, salt=salt, stored_key=stored_key, server_key=server_key,
                    iterations=iterations)


def _is_taken(password: str) -> bool:
    """Whether SCRAM takes a password (SASLprep)."""
    from scramp import ScramException  # type: ignore[import-untyped,unused-ignore]

    try:
        _secret(SCRAM_SHA_256, password)
    except (ScramException, ValueError):
        return False
    return True


def _secret(mechanism: str, password: str, salt: bytes | None = None) -> Secret:
    from scramp import ScramMechanism  # type: ignore[import-untyped,unused-ignore]

    made: Secret = ScramMechanism(mechanism).make_auth_info(password, iteration_count=_ITERATIONS, salt=salt)
    return made


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
    def __init__(self, secret: Callable[[str, str], Secret], mechanism: str) -> None:
        from scramp import ScramMechanism

        self.user: str | None = None
        self._mechanism, self._name, self._steps = mechanism, "", 0

        def credentials(name: str) -> Any:
            found = secret(mechanism, name)
            self._name = name
            return found

        self._server = ScramMechanism(mechanism).make_server(credentials)

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
