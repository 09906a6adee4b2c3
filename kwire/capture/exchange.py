"""The contents of a capture: connections, their frames, exchanges of request and response, and losses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kwire import schema
from kwire.capture.redaction import without_secrets
from kwire.codec.frames import Request, Response, decode_request, decode_response
from kwire.codec.json import to_json
from kwire_c.printable import printable

Direction = Literal["request", "response"]  # from the client, from the server
_MOST_NAME = 500  # characters
Outcome = Literal["answered", "one-way", "unanswered", "lost"]


@dataclass(slots=True, eq=False)
class Connection:
    """One TCP connection of a capture.

    capture: the file; number: of the connection in the file, from 0; client, server: "host:port", None where unknown;
    software: the client's name and version ("librdkafka 2.16.1") from its ApiVersions v3+ request, up to 500
    characters; None before it.
    """

    capture: str
    number: int
    client: str | None = None
    server: str | None = None
    software: str | None = None

    @property
    def address(self) -> str | None:
        """The client's host, without the port."""
        return None if self.client is None else self.client.rpartition(":")[0].strip("[]")


@dataclass(slots=True)
class Frame:
    """One request or response: header and body, without the 4-byte size.

    time: of its last byte, in microseconds since 1970, None where unknown; missing: how many of its bytes the capture
    lacks: data ends before the first of them. The repr leaves data out, as it holds passwords and tokens as they were
    sent.
    """

    direction: Direction
    data: bytes = field(repr=False)
    time: int | None = None
    missing: int = 0


@dataclass(slots=True)
class Lost:
    """Something that is missing from the capture or that cannot be read.

    reason: what and why, one line; direction: None where it concerns both; bytes: how many, None where unknown; time:
    microseconds since 1970, None where unknown; count: how many equal losses this one stands for.
    """

    capture: str
    reason: str
    connection: Connection | None = None
    direction: Direction | None = None
    bytes: int | None = None
    time: int | None = None
    count: int = 1

    def __post_init__(self) -> None:
        self.reason = printable(self.reason)  # some contain names from the wire


@dataclass(slots=True)
class Exchange:
    """A request and its response.

    outcome: "answered"; "one-way" (Produce with acks=0 has no response); "unanswered" if the connection, or the
    capture, ended before a response; "lost" if bytes of the request or of its response are missing from the capture,
    or are not read.
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
        """The API's name ("Fetch"); "api 999" for a key that no known release has."""
        return api_name(self.api_key)

    def decode_request(self) -> Request:
        """The request, read leniently, without its secrets. Raises DecodeError, UnsupportedVersionError."""
        return without_secrets(decode_request(self.request.data, lenient=True))

    def decode_response(self) -> Response | None:
        """The response, without its secrets; None if there is none. Raises DecodeError, UnsupportedVersionError."""
        if self.response is None:
            return None
        response = decode_response(self.response.data, api=self.api_key, version=self.version, lenient=True)
        request = decode_request(self.request.data, lenient=True) if _is_envelope(response) else None
        return without_secrets(response, request)

    def to_json(self) -> dict[str, Any]:
        """Both messages as Kafka's JsonConverter writes them: {"request": ..., "response": ... or None}.

        Raises DecodeError, UnsupportedVersionError.
        """
        request, response = self.decode_request(), self.decode_response()
        return {
            "request": to_json(request.message, request.version),
            "response": None if response is None else to_json(response.message, response.version),
        }


def shortened(name: str | None) -> str | None:
    """The name of a client, or of its software, where many are kept: up to 500 characters."""
    return name if name is None or len(name) <= _MOST_NAME else name[: _MOST_NAME - 1] + "…"


def _is_envelope(response: Response) -> bool:
    return response.name == "Envelope"


_NAMES = {row.key: row.name for row in schema.apis()}


def api_name(key: int) -> str:
    """The name of the API with that key ("Fetch"); "api 999" for a key that no known release has."""
    return _NAMES.get(key, f"api {key}")
