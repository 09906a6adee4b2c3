"""The SCRAM mechanisms that Kafka keeps credentials of, and what it keeps (ScramMechanism, RFC 5802)."""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple


class Mechanism(NamedTuple):
    """A SCRAM mechanism: Kafka's number and name, its hash, the iterations that Kafka accepts (ScramMechanism)."""

    type: int
    name: str
    digest: str
    min_iterations: int = 4096
    max_iterations: int = 16384

    def salted(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        """The salted password."""
        return hashlib.pbkdf2_hmac(self.digest, password, salt, iterations)

    def keys(self, salted: bytes) -> tuple[bytes, bytes]:
        """(stored key, server key) of a salted password."""
        client_key = hmac.digest(salted, b"Client Key", self.digest)
        return hashlib.new(self.digest, client_key).digest(), hmac.digest(salted, b"Server Key", self.digest)


MECHANISMS = {
    "SCRAM-SHA-256": Mechanism(1, "SCRAM_SHA_256", "sha256"),
    "SCRAM-SHA-512": Mechanism(2, "SCRAM_SHA_512", "sha512"),
}
