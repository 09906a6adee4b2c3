"""The server's side of SCRAM, as Kafka's brokers speak it (RFC 5802; ScramSaslServer, ScramMessages)."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import NamedTuple

from kwire.storage.metadata.scram import Mechanism

_SAFE, _VALUE, _PRINTABLE = "[\x01-+\\--<>-\x7f]", "[\x01-+\\--\x7f]", "[!-+\\--~]"
_NAME = f"(?:{_SAFE}|=2C|=3D)+"
_BASE64 = "(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = f"(?:,[A-Za-z]+={_VALUE}+)*"
_FIRST = re.compile(
    f"n,(?:a=(?P<authzid>{_NAME}))?,(?:m={_VALUE}+,)?n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE}+)"
    f"(?P<extensions>{_EXTENSIONS})")
_FINAL = re.compile(f"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}+){_EXTENSIONS},p=(?P<proof>{_BASE64})")


class ScramError(Exception):
    """A client that is not let in."""


class OtherIdentityError(ScramError):
    """A client that wants to act for another user."""


class BrokenProofError(ScramError):
    """A proof of another size: a broker cannot compare it, and ends the connection."""


class Secret(NamedTuple):
    """What a server keeps of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"Secret(iterations={self.iterations})"

    @classmethod
    def of(cls, mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> Secret:
        """Of a password, as it is: Kafka does not prepare it (SASLprep)."""
        salted = mechanism.salted(password.encode("utf-8", "replace"), salt, iterations)
        return cls.salted(mechanism, salted, salt, iterations)

    @classmethod
    def salted(cls, mechanism: Mechanism, salted: bytes, salt: bytes, iterations: int) -> Secret:
        """Of a password that is salted already."""
        return cls(salt, *mechanism.keys(salted), iterations)


class ScramServer:
    """One exchange. digest: the name of a hash; secret_of: gives what is kept of a user, or raises KeyError."""

    def __init__(self, digest: str, secret_of: Callable[[str], Secret]) -> None:
        self._digest, self._secret_of = digest, secret_of
        self._said = self._nonce = ""
        self.user = ""

    def first(self, data: bytes) -> bytes:
        """The answer to the client's first message. Raises ScramError."""
        found = _FIRST.fullmatch(data.decode("utf-8", "replace"))
        if found is None:
            raise ScramError("not a first message")
        self.user = found["name"].replace("=2C", ",").replace("=3D", "=")
        try:
            self._secret = self._secret_of(self.user)
        except KeyError:
            raise ScramError("no such user") from None
        if found["authzid"] is not None and found["authzid"] != self.user:
            raise OtherIdentityError
        self._nonce = found["nonce"] + secrets.token_urlsafe(24)
        answer = f"r={self._nonce},s={b64encode(self._secret.salt).decode()},i={self._secret.iterations}"
        self._said = f"n={found['name']},r={found['nonce']}{found['extensions']},{answer}"
        return answer.encode()

    def final(self, data: bytes) -> bytes:
        """The answer to the client's final message, which proves that it knows the password. Raises ScramError."""
        found = _FINAL.fullmatch(data.decode("utf-8", "replace"))
        if found is None or found["nonce"] != self._nonce:
            raise ScramError("not a final message")
        message = f"{self._said},c={found['channel']},r={found['nonce']}".encode()
        signature = hmac.digest(self._secret.stored_key, message, self._digest)
        proof = b64decode(found["proof"])
        if len(proof) != len(signature):
            raise BrokenProofError
        key = bytes(one ^ other for one, other in zip(signature, proof, strict=True))
        if not hmac.compare_digest(hashlib.new(self._digest, key).digest(), self._secret.stored_key):
            raise ScramError("another password")
        return b"v=" + b64encode(hmac.digest(self._secret.server_key, message, self._digest))
