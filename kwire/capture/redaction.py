"""Which fields of requests and responses are secrets, and how they are left out of records."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from kwire.codec.frames import Request, Response, decode_request, decode_response
from kwire.errors import KwireError

Message = TypeVar("Message", Request, Response)

# message -> (path of structs, field), of type bytes or string: emptied
_FIELDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "SaslAuthenticateRequest": (("auth_bytes",),),
    "SaslAuthenticateResponse": (("auth_bytes",),),
    "AlterUserScramCredentialsRequest": (("upsertions", "salt"), ("upsertions", "salted_password")),
    "CreateDelegationTokenResponse": (("hmac",),),
    "RenewDelegationTokenRequest": (("hmac",),),
    "ExpireDelegationTokenRequest": (("hmac",),),
    "DescribeDelegationTokenResponse": (("tokens", "hmac"),),
    "FetchSnapshotResponse": (("topics", "partitions", "unaligned_records"),),  # of the metadata log
}
# where a broker's words stand, which may repeat what it was sent
_WORDS: dict[str, tuple[str, ...]] = {
    "SaslAuthenticateResponse": ("error_message",),
    "AlterUserScramCredentialsResponse": ("results", "error_message"),
    "AlterConfigsResponse": ("responses", "error_message"),
    "IncrementalAlterConfigsResponse": ("responses", "error_message"),
}
# where values of broker and topic settings stand; those whose name says so are passwords (Kafka's type PASSWORD)
_SETTINGS: dict[str, tuple[str, ...]] = {
    "AlterConfigsRequest": ("resources", "configs"),
    "IncrementalAlterConfigsRequest": ("resources", "configs"),
    "DescribeConfigsResponse": ("results", "configs"),
}
_SECRET_SETTING = re.compile(
    r"passw|passphrase|secret|jaas|keystore\.key|credential|token|private.?key|api.?key|master\.key", re.I)
_ENVELOPES = ("EnvelopeRequest", "EnvelopeResponse")
_METADATA_LOG = "__cluster_metadata"  # in it stand SCRAM keys, tokens and settings
_METADATA_ID = (1).to_bytes(16, "big")


def without_secrets(frame: Message, request: Request | None = None) -> Message:
    """The same request or response with passwords, tokens and their like emptied, in place.

    request: that a response answers, by which the content of an Envelope is told. What cannot be told is emptied whole.
    """
    name = _name(frame)
    for *structs, field in _FIELDS.get(name, ()):
        for item in _inside(frame.message, structs):
            setattr(item, field, b"" if getattr(item, field) is not None else None)
    if name in _WORDS:
        *structs, field = _WORDS[name]
        for item in _inside(frame.message, structs):
            if getattr(item, field):
                setattr(item, field, "(left out)")
    setting: Any
    for setting in _inside(frame.message, _SETTINGS[name]) if name in _SETTINGS else []:
        hidden = getattr(setting, "is_sensitive", False)
        for one in (setting, *getattr(setting, "synonyms", ())):
            if one.value is not None and (hidden or _SECRET_SETTING.search(one.name)):
                one.value = ""
    if name == "FetchResponse":
        for topic in frame.message.responses:
            if topic.topic == _METADATA_LOG or topic.topic_id.bytes == _METADATA_ID:
                for partition in topic.partitions:
                    partition.records = b"" if partition.records is not None else None
    if name == "EnvelopeRequest":
        frame.message.request_data = _inner(frame.message.request_data)
    elif name == "EnvelopeResponse" and frame.message.response_data is not None:
        frame.message.response_data = _inner_answer(frame.message.response_data, request)
    if has_secrets(name):
        frame.trailing = b""
        frame.header.unknown_tags = {}
        left = [frame.message]
        while left:
            one = left.pop()
            if isinstance(one, list):
                left += one
            elif hasattr(one, "unknown_tags"):
                one.unknown_tags = {}
                left += [value for field in type(one).__match_args__ if isinstance(
                    value := getattr(one, field), list) or hasattr(value, "unknown_tags")]
    return frame


def has_secrets(name: str) -> bool:
    """Whether a message of that name ("SaslAuthenticateRequest") can hold one."""
    return name in _FIELDS or name in _SETTINGS or name in _WORDS or name in _ENVELOPES or name == "FetchResponse"


def may_have_secrets(name: str, data: bytes) -> bool:
    """The same of its bytes: fetched records are the metadata log's only where its name or id stands in front."""
    return has_secrets(name) and (name != "FetchResponse" or _METADATA_LOG.encode() in data or _METADATA_ID in data)


def _name(frame: Request | Response) -> str:
    return f"{frame.name}{'Request' if isinstance(frame, Request) else 'Response'}"


def _inner(data: bytes) -> bytes:
    """The request in an Envelope; nothing where it cannot be read, or is an Envelope itself."""
    try:
        inner = decode_request(data, lenient=True)
        return b"" if _name(inner) in _ENVELOPES else without_secrets(inner).to_bytes()
    except KwireError:
        return b""


def _inner_answer(data: bytes, request: Request | None) -> bytes:
    """The response in an Envelope, told by the request in the one that it answers."""
    if request is None:
        return b""
    try:
        asked = decode_request(request.message.request_data, lenient=True)
        if _name(asked) in _ENVELOPES:
            return b""
        inner = decode_response(data, api=asked.api_key, version=asked.version, lenient=True)
        return without_secrets(inner).to_bytes()
    except KwireError:
        return b""


def _inside(message: Any, structs: tuple[str, ...] | list[str]) -> list[Any]:
    found = [message]
    for name in structs:
        found = [inner for item in found for inner in getattr(item, name) or ()]
    return found
