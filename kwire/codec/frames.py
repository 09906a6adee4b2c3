"""Requests and responses with their headers, and the frames in the byte stream of a connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from kwire import messages, schema
from kwire.codec.arguments import byte_view, check_int, check_type, schema_of
from kwire.defaults import MAX_FRAME_BYTES
from kwire.errors import DecodeError, EncodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.schema import api_keys, files
from kwire.suggestions import did_you_mean
from kwire_c.decode import decode_from
from kwire_c.encode import encode, encode_after
from kwire_c.errors import alone
from kwire_c.printable import brief

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kwire_c.message_class import Message, RequestMessage

__all__ = [
    "FrameReader", "Request", "Response", "decode_request", "decode_request_header", "decode_response",
    "encode_request", "encode_response", "pack_frame",
]

_MAX_SIZE = (1 << 31) - 1  # the size of a frame is an int32
_UNSUPPORTED_VERSION = 35


@dataclass(slots=True)
class Request:
    """A request frame: header (RequestHeader), message, and trailing bytes that a lenient decode left over."""

    header: messages.RequestHeader
    message: Message
    header_version: int
    trailing: bytes = field(default=b"", repr=False)

    @property
    def api_key(self) -> int:
        """The API key."""
        return self.header.request_api_key

    @property
    def name(self) -> str:
        """The name of the API ("Fetch")."""
        return _api_names()[self.api_key]

    @property
    def version(self) -> int:
        """The version of the request and of the response it expects."""
        return self.header.request_api_version

    @property
    def correlation_id(self) -> int:
        """The correlation id, which the response repeats."""
        return self.header.correlation_id

    @property
    def client_id(self) -> str | None:
        """The client id, None if null."""
        return self.header.client_id

    @property
    def has_response(self) -> bool:
        """Whether the broker responds: a Produce request with acks=0 gets no response."""
        if self.api_key != api_keys.PRODUCE:
            return True
        return not isinstance(self.message, messages.ProduceRequest) or self.message.acks != 0

    def to_bytes(self) -> bytes:
        """The frame: after a strict decode byte for byte as it was read."""
        check_type(self.header, messages.RequestHeader, "header", "a RequestHeader")
        return _frame_of(self)


@dataclass(slots=True)
class Response:
    """A response frame: header (ResponseHeader), message, its version, and trailing bytes left by a lenient decode.

    version: that of the request, or 0 for an ApiVersions response that fell back with UNSUPPORTED_VERSION (35).
    """

    header: messages.ResponseHeader
    message: Message
    api_key: int
    version: int
    header_version: int
    trailing: bytes = field(default=b"", repr=False)

    @property
    def name(self) -> str:
        """The name of the API ("Fetch")."""
        return _api_names()[self.api_key]

    @property
    def correlation_id(self) -> int:
        """The correlation id of the request."""
        return self.header.correlation_id

    def to_bytes(self) -> bytes:
        """The frame: after a strict decode byte for byte as it was read."""
        check_type(self.header, messages.ResponseHeader, "header", "a ResponseHeader")
        return _frame_of(self)


def _frame_of(one: Request | Response) -> bytes:
    frame = encode_after(encode(one.header, one.header_version), one.message, one.version)
    return frame + bytes(byte_view(one.trailing, "trailing"))


@lru_cache(None)
def _api_names() -> dict[int, str]:
    rows = files.index().items()
    return {row[3]: name.removesuffix("Request") for name, row in rows if row[2] == "request" and row[3] is not None}


def _header_with(
    error: UnsupportedVersionError, header: messages.RequestHeader | messages.ResponseHeader | None
) -> UnsupportedVersionError:
    error.header = header
    return error


@lru_cache(4096)
def _request_schema(key: int, version: int) -> tuple[str, int]:
    """(request message, header version). Raises UnsupportedVersionError."""
    if key not in _api_names():
        raise UnsupportedVersionError(f"unknown API key {brief(key)}", api=key)
    definition = schema.message(f"{_api_names()[key]}Request")
    return definition.name, definition.header_version(definition.check(version))


def decode_request(frame: Buffer, *, lenient: bool = False) -> Request:
    """The request in a frame (header and body, without the 4-byte size).

    lenient: as in decode; bytes left over are in .trailing.
    Raises DecodeError, and UnsupportedVersionError for an unknown API or version (its .header is what could be read).
    """
    header, at, name, header_version = _request_header(frame, lenient)
    version = header.request_api_version
    message, end = decode_from(name, version, frame, at, lenient=lenient)
    return Request(header, message, header_version, _left_over(frame, end, lenient, f"{name} v{version}"))


def decode_request_header(data: Buffer, *, lenient: bool = False) -> messages.RequestHeader:
    """The RequestHeader at the start of data; the bytes after it are not read.

    Raises DecodeError, and UnsupportedVersionError for an unknown API or version (its .header is what could be read).
    """
    return _request_header(data, lenient, "data")[0]


def _request_header(
    data: Buffer, lenient: bool, argument: str = "frame"
) -> tuple[messages.RequestHeader, int, str, int]:
    """(header, position after it, name of the request, version of the header)."""
    head = data[:4] if type(data) is bytes else bytes(byte_view(data, argument)[:4])
    if len(head) < 4:
        raise DecodeError(f"4 bytes needed, {len(head)} remaining", what="RequestHeader")
    key, version = int.from_bytes(head[:2], "big", signed=True), int.from_bytes(head[2:], "big", signed=True)
    try:
        name, header_version = _request_schema(key, version)
    except UnsupportedVersionError as error:
        raise _header_with(error, _readable_header(data)) from None
    header, at = decode_from(messages.RequestHeader, header_version, data, lenient=lenient)
    return header, at, name, header_version


def _readable_header(frame: Buffer) -> messages.RequestHeader:
    """The header of a request of an unknown API or version, as far as it can be read."""
    for version in (1, 0):
        try:
            return decode_from(messages.RequestHeader, version, frame, lenient=True)[0]
        except KwireError:
            continue
    view = byte_view(frame, "frame")
    return messages.RequestHeader(
        request_api_key=int.from_bytes(view[:2], "big", signed=True),
        request_api_version=int.from_bytes(view[2:4], "big", signed=True),
    )


def _left_over(frame: Buffer, end: int, lenient: bool, what: str) -> bytes:
    rest = bytes(byte_view(frame, "frame")[end:])
    if rest and not lenient:
        raise DecodeError(f"{len(rest)} bytes remaining after the message", offset=end, what=what)
    return rest


def decode_response(
    frame: Buffer,
    request: Request | messages.RequestHeader | None = None,
    *,
    api: int | str | None = None,
    version: int | None = None,
    lenient: bool = False,
) -> Response:
    """The response in a frame (header and body, without the 4-byte size).

    request: the Request, or its header; or pass api (key or name) and version instead.
    An ApiVersions response with error 35 is read as version 0, as brokers send it for a version they lack (KIP-511).
    Raises DecodeError (also for a correlation id that is not the request's) and UnsupportedVersionError.
    """
    correlation_id = None
    if request is not None:
        header = request.header if isinstance(request, Request) else request
        if not isinstance(header, messages.RequestHeader):
            raise TypeError(f"request must be a Request or its header, not {type(request).__name__}")
        key, asked, correlation_id = header.request_api_key, header.request_api_version, header.correlation_id
    elif api is None or version is None:
        raise TypeError("decode_response needs the request, or api= and version=")
    else:
        key, asked = _key_of(api), check_int(version, "version")
    frame = byte_view(frame, "frame") if type(frame) is not bytes else frame
    try:
        name, header_version = _response_schema(key, asked)
    except UnsupportedVersionError as error:
        raise _header_with(error, _readable_response_header(frame)) from None
    response_header, at = decode_from(messages.ResponseHeader, header_version, frame, lenient=lenient)
    if correlation_id is not None and response_header.correlation_id != correlation_id:
        raise DecodeError(
            f"correlation id for response ({response_header.correlation_id}) does not match request ({correlation_id})",
            path=".correlation_id", what="ResponseHeader",
        )
    if key == api_keys.API_VERSIONS and asked and _starts_with_error(frame, at, _UNSUPPORTED_VERSION):
        try:
            message, end = decode_from(name, 0, frame, at, lenient=lenient)
            rest = _left_over(frame, end, lenient, f"{name} v0")
            return Response(response_header, message, key, 0, header_version, rest)
        except DecodeError:
            pass
    message, end = decode_from(name, asked, frame, at, lenient=lenient)
    rest = _left_over(frame, end, lenient, f"{name} v{asked}")
    return Response(response_header, message, key, asked, header_version, rest)


@lru_cache(4096)
def _response_schema(key: int, version: int) -> tuple[str, int]:
    """(response message, header version). Raises UnsupportedVersionError."""
    if key not in _api_names():
        raise UnsupportedVersionError(f"unknown API key {brief(key)}", api=key)
    definition = schema.message(f"{_api_names()[key]}Response")
    return definition.name, definition.header_version(definition.check(version))


def _starts_with_error(frame: Buffer, at: int, code: int) -> bool:
    return byte_view(frame, "frame")[at : at + 2] == code.to_bytes(2, "big")


def _key_of(api: int | str) -> int:
    if isinstance(api, int):
        return int.__index__(api)  # an int of the caller's class may equal any key
    if not isinstance(api, str):
        raise TypeError(f"api must be a key (int) or a name (str), not {brief(api)}")
    try:
        definition = schema.message(api if api.endswith(("Request", "Response")) else f"{api}Request")
    except UnsupportedVersionError:
        near = did_you_mean(api, [row.name for row in schema.apis()])
        raise UnsupportedVersionError(f"unknown API {brief(api)}{near}", api=api) from None
    if definition.api_key is None or definition.type not in ("request", "response"):
        raise UnsupportedVersionError(f"{brief(api)} is not an API", api=api)
    return definition.api_key


def _readable_response_header(frame: Buffer) -> messages.ResponseHeader | None:
    try:
        return decode_from(messages.ResponseHeader, 0, frame, lenient=True)[0]
    except KwireError:
        return None


def encode_request(
    message: RequestMessage[object],
    version: int,
    *,
    correlation_id: int = 0,
    client_id: str | None = None,
    header_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """The frame of a request: its header and body, without the 4-byte size.

    header_tags: unknown tags of the header (flexible versions only). Raises EncodeError, UnsupportedVersionError.
    """
    definition = schema_of(message)
    if definition.type != "request" or definition.api_key is None:
        raise TypeError(f"message must be a request, not {definition.name}")
    header = messages.RequestHeader(
        request_api_key=definition.api_key, request_api_version=definition.check(version),
        correlation_id=correlation_id, client_id=client_id,
        unknown_tags={} if header_tags is None else _tags(header_tags),
    )
    return encode_after(encode(header, definition.header_version(version)), message, version)


def encode_response(
    message: Message, version: int, *, correlation_id: int = 0, header_tags: Mapping[int, bytes] | None = None
) -> bytes:
    """The frame of a response: its header and body, without the 4-byte size.

    header_tags: unknown tags of the header (flexible versions only). Raises EncodeError, UnsupportedVersionError.
    """
    definition = schema_of(message)
    if definition.type != "response":
        raise TypeError(f"message must be a response, not {definition.name}")
    tags = {} if header_tags is None else _tags(header_tags)
    header = messages.ResponseHeader(correlation_id=correlation_id, unknown_tags=tags)
    return encode_after(encode(header, definition.header_version(definition.check(version))), message, version)


def _tags(header_tags: Mapping[int, bytes]) -> dict[int, bytes]:
    if not isinstance(header_tags, Mapping):
        raise TypeError(f"header_tags must be a dict of int to bytes, not {type(header_tags).__name__}")
    for tag, data in header_tags.items():
        check_int(tag, "header_tags: a tag")
        byte_view(data, f"header_tags: tag {brief(tag)}")
    return dict(header_tags)


def pack_frame(frame: Buffer) -> bytes:
    """The frame prefixed with its 4-byte size, as it is sent. Raises EncodeError for 2 GiB or more."""
    data = frame if type(frame) is bytes else byte_view(frame, "frame")
    if len(data) > _MAX_SIZE:
        raise EncodeError(f"frame of {len(data)} bytes exceeds the maximum of {_MAX_SIZE}")
    return b"".join((len(data).to_bytes(4, "big"), data))


class FrameReader:
    """Split the byte stream of a connection into frames, however the reads were cut.

    max_size: bytes of the largest frame; a larger one is refused by its size, before it is read. Only one thread may
    feed at a time: another gets a ValueError, and so does any feed after one that was interrupted.
    """

    def __init__(self, max_size: int = MAX_FRAME_BYTES) -> None:
        self.max_size = check_int(max_size, "max_size")
        self._rest = bytearray()
        self._read = 0
        self._error: KwireError | None = None  # the error that ended the stream

    def __copy__(self) -> FrameReader:
        raise TypeError("a FrameReader cannot be copied: it holds the state of one stream")

    @property
    def pending(self) -> int:
        """Bytes of an incomplete frame, its size included."""
        return len(vars(self).get("_rest", b""))

    def feed(self, data: Buffer) -> list[bytes]:
        """The frames that these bytes complete, in order, without their sizes.

        Raises LimitError for a size over max_size and DecodeError for a negative one. If whole frames precede it, they
        are returned first and the next feed raises. The stream is lost then: every later feed raises the same error.
        """
        more = data if type(data) is bytes else byte_view(data, "data")
        rest = vars(self).pop("_rest", None)  # atomic: only the thread that popped it goes on, and puts it back
        if rest is None:
            raise ValueError("another thread is in feed(), or was interrupted in it: frames may be lost")
        if self._error is None:
            rest += more
        frames: list[bytes] = []
        at = 0
        try:
            while self._error is None and len(rest) - at >= 4:
                size = int.from_bytes(rest[at : at + 4], "big", signed=True)
                if size < 0:
                    raise DecodeError(f"invalid frame size {size}", offset=self._read)
                if size > self.max_size:
                    raise LimitError(
                        f"frame of {size} bytes exceeds max_size", limit=self.max_size, needed=size, offset=self._read
                    )
                if len(rest) - at - 4 < size:
                    break
                frames.append(bytes(memoryview(rest)[at + 4 : at + 4 + size]))
                at += 4 + size
                self._read += 4 + size
        except KwireError as error:
            self._error = alone(error)
        if at or self._error is not None:  # not shortened in place: a profiler may hold a view of it
            rest = rest[at : None if self._error is None else at + 4]
        self._rest = rest
        if self._error is not None and not frames:
            raise self._error.with_traceback(None)
        return frames
