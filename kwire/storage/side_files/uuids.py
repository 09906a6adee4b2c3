"""Kafka's UUIDs as text: 22 characters of URL-safe base64 (org.apache.kafka.common.Uuid)."""

from __future__ import annotations

import secrets
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Container
from uuid import UUID

_URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BASIC = _URL[:62] + "+/"
_RESERVED = 100  # directory ids below are reserved (DirectoryId: UNASSIGNED, LOST, MIGRATING, ...)


def uuid_text(value: UUID) -> str:
    """A UUID as Kafka writes it."""
    return urlsafe_b64encode(value.bytes)[:22].decode()


def uuid_from_text(text: str) -> UUID:
    """The UUID that Kafka reads from a text. Raises ValueError with the text of Uuid.fromString."""
    if len(text) > 24:
        raise ValueError(f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID")
    data = decode_base64(text, url_safe=True)
    if len(data) != 16:
        raise ValueError(
            f"Input string `{text}` decoded as {len(data)} bytes, which is not equal to the expected 16 bytes of a "
            "base64-encoded UUID"
        )
    return UUID(bytes=data)


def random_uuid() -> UUID:
    """A random UUID of version 4 whose text does not begin with a dash (Uuid.randomUuid)."""
    while uuid_text(value := uuid.uuid4()).startswith("-"):
        pass
    return value


def random_directory_id(others: Container[UUID | None] = ()) -> UUID:
    """A directory id: random, not reserved, its text without a dash first, none of the others.

    Source: MetaPropertiesEnsemble.Copier.generateValidDirectoryId.
    """
    while True:
        value = UUID(bytes=secrets.token_bytes(16))
        if not (uuid_text(value).startswith("-") or is_reserved(value) or value in others):
            return value


def is_reserved(directory_id: UUID) -> bool:
    """Whether a directory id is one of the first hundred, which mean something else (DirectoryId.reserved)."""
    return directory_id.int < _RESERVED


def decode_base64(text: str, url_safe: bool = False) -> bytes:
    """The bytes of base64, as java.util.Base64 reads it. Raises ValueError with Java's text.

    Unlike Python's: nothing is skipped, padding may be absent, the bits after the last byte may be anything.
    """
    source, alphabet = text.encode("latin-1", "replace"), _URL if url_safe else _BASIC
    if len(source) == 1:
        raise ValueError("Input byte[] should at least have 2 bytes for base64 bytes")
    values = {ord(sign): number for number, sign in enumerate(alphabet)}
    end = source.find(b"=")
    digits = source if end < 0 else source[:end]
    for byte in digits:
        if byte not in values:
            raise ValueError(f"Illegal base64 character {byte if byte < 128 else byte - 256:x}")
    left = len(digits) % 4
    if end >= 0 and (left == 0 or (left == 2 and source[end + 1 : end + 2] != b"=")):
        raise ValueError("Input byte array has wrong 4-byte ending unit")
    if left == 1:
        raise ValueError("Last unit does not have enough valid bits")
    padded = end + (2 if left == 2 else 1)
    if end >= 0 and padded < len(source):
        raise ValueError(f"Input byte array has incorrect ending byte at {padded}")
    number = 0
    for byte in digits:
        number = number << 6 | values[byte]
    bits = 6 * len(digits)
    return (number >> bits % 8).to_bytes(bits // 8, "big")
