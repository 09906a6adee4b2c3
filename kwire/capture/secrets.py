"""Which fields of requests and responses are secrets, and how they are left out of records."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import kwire

Message = TypeVar("Message", kwire.Request, kwire.Response)

# message -> (path of structs, field), every one of type bytes
_FIELDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "SaslAuthenticateRequest": (("auth_bytes",),),
    "SaslAuthenticateResponse": (("auth_bytes",),),
    "AlterUserScramCredentialsRequest": (("upsertions", "salt"), ("upsertions", "salted_password")),
    "CreateDelegationTokenResponse": (("hmac",),),
    "RenewDelegationTokenRequest": (("hmac",),),
    "ExpireDelegationTokenRequest": (("hmac",),),
    "DescribeDelegationTokenResponse": (("tokens", "hmac"),),
}
# where values of broker and topic settings stand; those whose name says so are passwords (Kafka's type PASSWORD)
_SETTINGS: dict[str, tuple[str, ...]] = {
    "AlterConfigsRequest": ("resources", "configs"),
    "IncrementalAlterConfigsRequest": ("resources", "configs"),
}
_SECRET_SETTING = re.compile(r"password|secret|jaas\.config|keystore\.key$|credentials?", re.I)


def without_secrets(frame: Message) -> Message:
    """The same request or response with passwords, tokens and their like emptied, in place."""
    kind = "Request" if isinstance(frame, kwire.Request) else "Response"
    name = f"{frame.name}{kind}"
    for *structs, field in _FIELDS.get(name, ()):
        for item in _inside(frame.message, structs):
            setattr(item, field, b"")
    for item in _inside(frame.message, _SETTINGS[name]) if name in _SETTINGS else ():
        if item.value is not None and _SECRET_SETTING.search(item.name):
            item.value = ""
    return frame


def has_secrets(name: str) -> bool:
    """Whether a message of that name ("SaslAuthenticateRequest") can hold one."""
    return name in _FIELDS or name in _SETTINGS


def _inside(message: Any, structs: tuple[str, ...] | list[str]) -> list[Any]:
    found = [message]
    for name in structs:
        found = [inner for item in found for inner in getattr(item, name) or ()]
    return found
