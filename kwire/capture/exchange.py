"""What a capture gives: connections, the frames on them, exchanges of request and response, and what is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kwire import schema
from kwire.capture.redaction import without_secrets
from kwire.codec.frames import Request, Response, decode_request, decode_response
from kwire.codec.json import to_json
from kwire_c.printable import printable

Direction = Literal["request", "response"]  # from the client, from the server
Outcome = Literal["answered", "one-way", "unanswered", "lost"]


@dataclass(slots=True, eq=False)
class Connection:
    """One TCP connection of a capture.

    capture: the file; number: its place in the file, from 0; client, server: "host:port", None where the capture does
    not tell; software: the client's name and version ("librdkafka 2.16.1") once an ApiVersions v3+ told it.
    """

    capture: str
    number: int
    client: str | None = None
    server: str | None = None
    software: str | None = None

    @property
    def address(self) -> str | None:
        """The client's host, without its port."""
        return None if self.client is None else self.client.rpartition(":")[0].strip("[]")


@dataclass(slots=True)
class Frame:
    """One request or response: header and body, without the 4-byte size.

    time: microseconds since 1970 at which its last byte was seen, None where the capture does not tell;
    missing: bytes of it that the capture lacks; data ends where the first of them was. data is in no repr: passwords
    and tokens stand in it as they were sent.
    """

    direction: Direction
    data: bytes = field(repr=False)
    time: int | None = None
    missing: int = 0


@dataclass(slots=True)
class Lost:
    """Something that the capture lacks or that cannot be read.

    reason: what and why, one line; direction: None where it is not one direction's; bytes: how many, None where nobody
    knows; count: how often (1), where alike ones were put together.
    """

    capture: str
    reason: str
    connection: Connection | None = None
    direction: Direction | None = None
    bytes: int | None = None
    time: int | None = None
    count: int = 1

    def __post_init__(self) -> None:
        self.reason = printable(self.reason)  # names of others stand in some


@dataclass(slots=True)
class Exchange:
    """A request, and the response to it.

    outcome: "answered"; "one-way" (Produce with acks=0 has no response); "unanswered" when the connection, or the
    capture, ended before a response; "lost" when the request, its response or a part of them fell into a hole.
    """

    connection: Connection
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    request: Frame
    response: Frame | None = None
    outcome: Outcome = "unanswered"

    @property
    def api(self) -> str:
        """The API's name ("Fetch"); "api 999" for one that no release has."""
        return api_name(self.api_key)

    def decode_request(self) -> Request:
        """The request, read as Kafka reads it, its secrets emptied. Raises DecodeError, UnsupportedVersionError."""
        return without_secrets(decode_request(self.request.data, lenient=True))

    def decode_response(self) -> Response | None:
        """The response, its secrets emptied; None without one. Raises DecodeError, UnsupportedVersionError."""
        if self.response is None:
            return None
        found = decode_response(self.response.data, api=self.api_key, version=self.version, lenient=True)
        return without_secrets(found, decode_request(self.request.data, lenient=True) if _wraps(found) else None)

    def to_json(self) -> dict[str, Any]:
        """Both messages as Kafka's JsonConverter writes them: {"request": ..., "response": ... or None}.

        Raises DecodeError, UnsupportedVersionError.
        """
        request, response = self.decode_request(), self.decode_response()
        return {
            "request": to_json(request.message, request.version),
            "response": None if response is None else to_json(response.message, response.version),
        }


def _wraps(response: Response) -> bool:
    return response.name == "Envelope"


_NAMES = {row.key: row.name for row in schema.apis()}


def api_name(key: int) -> str:
    """The name of the API with that key ("Fetch"); "api 999" for one that no release has."""
    return _NAMES.get(key, f"api {key}")
