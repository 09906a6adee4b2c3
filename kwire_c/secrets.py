"""Which fields and settings hold a secret, so that their values are not shown."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing
if TYPE_CHECKING:
    from typing import Any

# Kafka's configs of type PASSWORD, and what plug-ins call theirs
SECRET_SETTING = re.compile(
    r"passw|passphrase|secret|jaas|keystore\.(?:key|certificate)|truststore\.certificates|credential|token"
    r"|(?:private|account|access|shared|api|master).?key|connection.?string", re.I)  # fmt: skip

# fields of messages that are secrets or may contain one: of SASL, SCRAM, delegation tokens and Envelopes
SECRET_FIELDS = frozenset((
    "auth_bytes", "hmac", "salt", "salted_password", "stored_key", "server_key", "request_data", "response_data",
))

HIDDEN = "<hidden>"


def without_secrets(value: Any) -> Any:
    """A message, or a part of it, as lists and dicts by field: what is a secret in a struct is replaced by HIDDEN."""
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if not isinstance(value, dict):
        return value
    setting = value.get("name") or value.get("config_name")
    return {name: HIDDEN if item is not None and is_secret(name, setting) else without_secrets(item)
            for name, item in value.items()}


def is_secret(field: str, setting: object) -> bool:
    """Whether a field of a message holds a secret. setting: the name in the same struct, if it is that of a config."""
    is_setting = field == "value" and isinstance(setting, str)
    return field in SECRET_FIELDS or (is_setting and SECRET_SETTING.search(str(setting)) is not None)
