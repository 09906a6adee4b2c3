"""The users of a fleet with SASL, and what they say to be let in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Protocol

from kwire import messages
from kwire.fleet.errors import ApiError
from kwire.fleet.scram import BrokenProofError, OtherIdentityError, ScramError, ScramServer, Secret
from kwire.schema.error_codes import ErrorCode
from kwire.storage.metadata.scram import MECHANISMS

PLAIN, SCRAM_SHA_256, SCRAM_SHA_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
_SALT_BYTES = 16
_OTHER_IDENTITY = "Authentication failed: Client requested an authorization id that is different from username"
Kept = Mapping[tuple[str, int], messages.UserScramCredentialRecord]


class Exchange(Protocol):
    """The steps of one mechanism. user: who was let in, None so far."""

    user: str | None

    def step(self, data: bytes) -> bytes:
        """The answer to what the client says. Raises ApiError: SASL_AUTHENTICATION_FAILED, UnansweredError."""


class UnansweredError(ApiError):
    """The connection ends without an answer."""


class Users:
    """Names and passwords, for PLAIN and SCRAM, and the SCRAM users of the metadata log; a password is never shown.

    kept: gives those of the log, by name and ScramMechanism.
    """

    mechanisms = (PLAIN, SCRAM_SHA_512, SCRAM_SHA_256)  # in the order in which brokers name them

    def __init__(self, passwords: Mapping[str, str], kept: Callable[[], Kept]) -> None:
        self._passwords, self._kept = dict(passwords), kept
        self._gone = set[tuple[str, int]]()  # names and ScramMechanisms that were deleted

    def __repr__(self) -> str:
        return f"Users({', '.join(sorted(self._passwords))})"

    def begin(self, mechanism: str) -> Exchange:
        """A new exchange."""
        return _Plain(self._passwords) if mechanism == PLAIN else _Scram(mechanism, self._secret)

    def _secret(self, mechanism: str, name: str) -> Secret:
        """What SCRAM needs of a user. Raises KeyError."""
        known = self._kept().get((name, MECHANISMS[mechanism].type))
        if known is None and (name, MECHANISMS[mechanism].type) in self._gone:
            raise KeyError(name)
        return _secret(mechanism, self._passwords[name], secrets.token_bytes(_SALT_BYTES)) if known is None else Secret(
            known.salt, known.stored_key, known.server_key, known.iterations)

    def forget(self, users: Iterable[tuple[str, int]]) -> None:
        """SCRAM users, by name and ScramMechanism, that were deleted: their passwords count for PLAIN alone."""
        self._gone.update(users)

    def new_records(self, new_salt: Callable[[], bytes]) -> Iterator[messages.UserScramCredentialRecord]:
        """The credentials of passwords that the metadata log does not have: of new users, or other passwords."""
        for name, password in self._passwords.items():
            for mechanism, kind in MECHANISMS.items():
                known = self._kept().get((name, kind.type))
                if known is not None and known.iterations == kind.min_iterations and (
                        _secret(mechanism, password, known.salt).stored_key == known.stored_key):
                    continue
                made = _secret(mechanism, password, new_salt())
                yield messages.UserScramCredentialRecord(
                    name=name, mechanism=kind.type, salt=made.salt, stored_key=made.stored_key,
                    server_key=made.server_key, iterations=made.iterations)


def _secret(mechanism: str, password: str, salt: bytes) -> Secret:
    kind = MECHANISMS[mechanism]
    return Secret.of(kind, password, salt, kind.min_iterations)


class _Plain:
    """PLAIN (RFC 4616; Kafka's PlainSaslServer)."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user: str | None = None

    def step(self, data: bytes) -> bytes:
        parts = data.split(b"\0", 3)
        if len(parts) != 3:
            raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        acts_for, name, password = (part.decode("utf-8", "replace") for part in parts)
        if not name:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        if self._passwords.get(name) != password:
            raise _refused("Authentication failed: Invalid username or password")
        if acts_for not in ("", name):
            raise _refused(_OTHER_IDENTITY)
        self.user = name
        return b""


class _Scram:
    def __init__(self, mechanism: str, secret_of: Callable[[str, str], Secret]) -> None:
        self.user: str | None = None
        self._mechanism = mechanism
        self._server = ScramServer(MECHANISMS[mechanism].digest, partial(secret_of, mechanism))
        self._steps = 0

    def step(self, data: bytes) -> bytes:
        self._steps += 1
        try:
            if self._steps == 1:
                return self._server.first(data)
            answer = self._server.final(data)
        except BrokenProofError:
            raise UnansweredError(ErrorCode.SASL_AUTHENTICATION_FAILED) from None
        except OtherIdentityError:
            raise _refused(_OTHER_IDENTITY) from None
        except ScramError:
            raise _refused(
                f"Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self._mechanism}") from None
        self.user = self._server.user
        return answer


def _refused(reason: str) -> ApiError:
    return ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, reason)
