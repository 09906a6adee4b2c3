"""Which fields and settings hold a secret, so that their values are not shown."""

from __future__ import annotations

import re

# Kafka's configs of type PASSWORD, and what plug-ins call theirs
SECRET_SETTING = re.compile(
    r"passw|passphrase|secret|jaas|keystore\.(?:key|certificate)|truststore\.certificates|credential|token"
    r"|(?:private|account|access|shared|api|master).?key|connection.?string", re.I)  # fmt: skip

# fields of messages that are secrets or may contain one: of SASL, SCRAM, delegation tokens and Envelopes
SECRET_FIELDS = frozenset((
    "auth_bytes", "hmac", "salt", "salted_password", "stored_key", "server_key", "request_data", "response_data",
))
