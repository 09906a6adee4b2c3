"""A peer's words in an error: only those that Kafka itself uses, as any others may repeat the credentials."""

from __future__ import annotations

import re

MOST = 300  # characters of a peer's words that are looked at
LEFT_OUT = "(the broker's words are left out: they may repeat the credentials)"
_KNOWN = re.compile(  # of SaslServerAuthenticator, the mechanisms' servers, ErrorCode, RFC 5802 and RFC 7628
    r"Authentication failed during (?:re-)?authentication due to invalid credentials with SASL mechanism"
    r" (?:PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|OAUTHBEARER)"
    r"|Authentication failed during (?:re-)?authentication due to invalid credentials"
    r"|Authentication failed(?:: (?:Invalid username or password|invalid credentials|Invalid user credentials"
    r"|username not specified|password not specified|Invalid JSON parameter|Credentials could not be obtained"
    r"|Client requested an authorization id that is different from (?:username|the token's principal name)))?\.?"
    r"|SASL Authentication failed\.?|Client credentials verification failed|invalid token"
    r"|Authentication could not be performed due to an internal error on the server"
    r"|\{\"status\":\s?\"(?:invalid_token|insufficient_scope|invalid_request)\"\}"
    r"|The server returned the error: (?:invalid-encoding|invalid-proof|unknown-user|other-error|invalid-encoding"
    r"|extensions-not-supported|no-resources)|The server signature doesn't match\.?", re.I)  # fmt: skip


def quoted(text: str) -> str:
    """A peer's words as one line, where they are Kafka's own; LEFT_OUT for any others; nothing for none."""
    line = " ".join(text[: MOST + 1].split())
    return line if not line or (len(text) <= MOST and _KNOWN.fullmatch(line)) else LEFT_OUT
