"""A broker's error text, quoted only if it is one of Kafka's own: any other may repeat the credentials."""

from __future__ import annotations

import re

MOST = 300  # characters of a broker's text that are examined
LEFT_OUT = "(the broker's error text is not shown: it may repeat the credentials)"
_KNOWN = re.compile(  # from SaslServerAuthenticator, the mechanisms' servers, Errors, RFC 5802 and RFC 7628
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
    """A broker's text on one line if it is one of Kafka's own, LEFT_OUT for any other, "" for an empty one."""
    line = " ".join(text[: MOST + 1].split())
    return line if not line or (len(text) <= MOST and _KNOWN.fullmatch(line)) else LEFT_OUT
