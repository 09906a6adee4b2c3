"""Secret fields of requests and responses, and how they are removed before a frame is shown or recorded."""

from __future__ import annotations

from typing import Any, TypeVar

from kwire import messages, schema
from kwire.codec.frames import Request, Response, decode_request, decode_response
from kwire.codec.message_columns import columns_of
from kwire.codec.messages import decode_from
from kwire.errors import KwireError
from kwire_c.secrets import SECRET_SETTING

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
# message -> path of a broker's error text, which may repeat what it was sent
_WORDS: dict[str, tuple[str, ...]] = {
    "SaslAuthenticateResponse": ("error_message",),
    "AlterUserScramCredentialsResponse": ("results", "error_message"),
    "AlterConfigsResponse": ("responses", "error_message"),
    "IncrementalAlterConfigsResponse": ("responses", "error_message"),
}
# message -> path of configs; the value is a secret (Kafka's type PASSWORD) if the name matches SECRET_SETTING
_SETTINGS: dict[str, tuple[str, ...]] = {
    "AlterConfigsRequest": ("resources", "configs"),
    "IncrementalAlterConfigsRequest": ("resources", "configs"),
    "DescribeConfigsResponse": ("results", "configs"),
}
_ENVELOPES = ("EnvelopeRequest", "EnvelopeResponse")
_METADATA_LOG = "__cluster_metadata"  # holds SCRAM keys, delegation tokens and configs
_METADATA_ID = (1).to_bytes(16, "big")
_BY_ID = 13  # the first version of Fetch whose topics have ids, and no names
_MOST_TOPICS = 100_000  # of a Fetch response, among which the metadata log is searched


def without_secrets(frame: Message, request: Request | None = None) -> Message:
    """Empty the passwords, tokens and other secrets of a request or response, in place, and return it.

    request: the one that an EnvelopeResponse answers, which says what the Envelope contains. The content of an Envelope
    that cannot be read is emptied whole.
    """
    name = _name(frame)
    message: Any = frame.message
    for *structs, field in _FIELDS.get(name, ()):
        for item in _inside(message, structs):
            setattr(item, field, b"" if getattr(item, field) is not None else None)
    if name in _WORDS:
        *structs, field = _WORDS[name]
        for item in _inside(message, structs):
            if getattr(item, field):
                setattr(item, field, "(removed)")
    setting: Any
    for setting in _inside(message, _SETTINGS[name]) if name in _SETTINGS else []:
        hidden = getattr(setting, "is_sensitive", False)
        for config in (setting, *getattr(setting, "synonyms", ())):
            if config.value is not None and (hidden or SECRET_SETTING.search(config.name)):
                config.value = ""
    if name == "FetchResponse":
        for topic in message.responses:
            if topic.topic == _METADATA_LOG or topic.topic_id.bytes == _METADATA_ID:
                for partition in topic.partitions:
                    partition.records = b"" if partition.records is not None else None
    if name == "EnvelopeRequest":
        message.request_data = _inner(message.request_data)
    elif name == "EnvelopeResponse" and message.response_data is not None:
        message.response_data = _inner_answer(message.response_data, request)
    if has_secrets(name):
        frame.trailing = b""
        frame.header.unknown_tags = {}
        pending = [message]
        while pending:
            part = pending.pop()
            if isinstance(part, list):
                pending += part
            elif hasattr(part, "unknown_tags"):
                part.unknown_tags = {}
                pending += [value for field in type(part).__match_args__ if isinstance(
                    value := getattr(part, field), list) or hasattr(value, "unknown_tags")]
    return frame


def has_secrets(name: str) -> bool:
    """Whether a message of that name ("SaslAuthenticateRequest") can hold a secret."""
    return name in _FIELDS or name in _SETTINGS or name in _WORDS or name in _ENVELOPES or name == "FetchResponse"


def may_have_secrets(name: str, version: int, data: bytes) -> bool:
    """Whether a frame can hold a secret; a Fetch response only if the metadata log is among its topics."""
    return _has_metadata_log(data, version) if name == "FetchResponse" else has_secrets(name)


def _has_metadata_log(data: bytes, version: int) -> bool:
    """Whether the metadata log is among the topics of a Fetch response; True also where that cannot be read."""
    field, wanted = ("topic_id", _METADATA_ID) if version >= _BY_ID else ("topic", _METADATA_LOG)
    if (wanted if isinstance(wanted, bytes) else wanted.encode()) not in data:
        return False
    name, path = "FetchResponse", f"responses.{field}"  # records too may hold these bytes, by chance
    try:
        _, at = decode_from(messages.ResponseHeader, schema.message(name).header_version(version), data, lenient=True)
        topics = columns_of(name, version, [memoryview(data)[at:]], [path], lenient=True)
    except (KwireError, ValueError):
        return True
    return len(topics) > _MOST_TOPICS or wanted in topics[path].to_pylist()


def _name(frame: Request | Response) -> str:
    return f"{frame.name}{'Request' if isinstance(frame, Request) else 'Response'}"


def _inner(data: bytes) -> bytes:
    """The request in an Envelope without its secrets; b"" if it cannot be read or is an Envelope itself."""
    try:
        inner = decode_request(data, lenient=True)
        return b"" if _name(inner) in _ENVELOPES else without_secrets(inner).to_bytes()
    except KwireError:
        return b""


def _inner_answer(data: bytes, request: Request | None) -> bytes:
    """The response in an Envelope without its secrets, read by the request in the Envelope that it answers."""
    if request is None or not isinstance(request.message, messages.EnvelopeRequest):
        return b""
    try:
        inner_request = decode_request(request.message.request_data, lenient=True)
        if _name(inner_request) in _ENVELOPES:
            return b""
        inner = decode_response(data, api=inner_request.api_key, version=inner_request.version, lenient=True)
        return without_secrets(inner).to_bytes()
    except KwireError:
        return b""


def _inside(message: Any, structs: tuple[str, ...] | list[str]) -> list[Any]:
    items = [message]
    for name in structs:
        items = [inner for item in items for inner in getattr(item, name) or ()]
    return items
