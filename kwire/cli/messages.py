"""`kwire decode`, `kwire encode` and `kwire frame`: messages between bytes and JSON."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, wraps
from typing import IO, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from kwire import schema
from kwire.cli.input_file import MOST_HELD, InputFile, lines, whole
from kwire.cli.terminal import VERSION, api_of, print_json
from kwire.codec import messages as codec
from kwire.codec.frames import FrameReader, decode_request, decode_response
from kwire.codec.json import from_json, json_fault, to_json
from kwire.errors import KwireError, LimitError, UnsupportedVersionError
from kwire_c.json import strict_base64
from kwire_c.printable import brief

T = TypeVar("T")

_SPACE = re.compile(r"\s*")
_PREFIX = re.compile(r"(?:\\x|(?<![0-9A-Za-z])0[xX])([0-9a-fA-F]*)")
_SEPARATORS = str.maketrans("", "", " \t\r\n\v\f:,")
FORMATS = click.Choice(("hex", "base64", "raw"))


class MessageName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The name of a message, with shell completion."""

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names with that prefix, ignoring case."""
        return [CompletionItem(name) for name in schema.message_names() if name.lower().startswith(incomplete.lower())]


def of_kind(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add NAME, VERSION, --request and --response to a command, which gets the name of a message and its version."""

    @click.argument("name", type=MessageName(), required=False)
    @click.argument("version", type=VERSION, required=False)
    @click.option("--request", "kind", flag_value="Request", help="NAME is an API, by name or key: its request.")
    @click.option("--response", "kind", flag_value="Response", help="Likewise: its response.")
    @wraps(command)
    def named(name: str | None, version: int | None, kind: str | None, **options: Any) -> Any:
        if name is None:
            raise click.UsageError("Missing argument 'NAME': kwire messages lists the names")
        message = _message_name(name, kind)
        if version is None:
            raise click.UsageError(f"Missing argument 'VERSION': {message} has versions "
                                   f"{schema.message(message).valid_versions}")
        return command(name=message, version=version, **options)

    return named


def _message_name(name: str, kind: str | None) -> str:
    """The name of the message of that name or, with a kind, of that API. Raises UnsupportedVersionError, UsageError."""
    messages = {known.lower(): known for known in schema.message_names()}
    apis = {api.name.lower(): api.name for api in schema.apis()}
    known = messages.get(name.lower(), name)
    if kind is None:
        if name.lower() not in messages and name.lower() in apis:
            api = apis[name.lower()]
            raise click.UsageError(f"{api} is an API: --request or --response says which of its messages, "
                                   f"{api}Request or {api}Response")
        try:
            return schema.canonical(known)
        except UnsupportedVersionError as error:
            raise UnsupportedVersionError(f"{error}; kwire messages lists all names", api=name) from None
    other = "Response" if kind == "Request" else "Request"
    if known.endswith(other) and name.lower() in messages:
        raise click.UsageError(f"{known} is not a {kind.lower()}")
    api_name = name if name.isascii() and name.isdigit() else apis.get(known.removesuffix(kind).lower(), name)
    return f"{schema.api(api_of(api_name)).name}{kind}"


_MOST_JOINED = 64 << 20  # characters of lines that are tried as one message


def _decoded(file: IO[bytes], form: str, decode: Callable[[bytes], T]) -> Iterator[T]:
    """Each message of the input, decoded: one a line; with raw the whole input is one.

    Where the first line is no message, all lines together are tried as one: dumps of bytes have many.
    """
    if form == "raw":
        yield _at(_name(file), lambda: decode(whole(file)))
        return
    placed = _lines(file)
    first = True
    for where, text in placed:
        try:
            message = _at(where, partial(_decode_text, decode, text, form))
        except click.ClickException:
            found = _decode_joined(decode, [text, *_some(placed)], form) if first else ()
            if not found:
                raise
            yield found[0]
            return
        first = False
        yield message


def _some(placed: Iterator[tuple[str, str]]) -> Iterator[str]:
    """The text of lines, as many as may be one message."""
    left = _MOST_JOINED
    for _, text in placed:
        left -= len(text)
        if left < 0:
            return
        yield text


def _decode_joined(decode: Callable[[bytes], T], texts: list[str], form: str) -> tuple[()] | tuple[T]:
    """The message that several lines together are, if they are one. A line may end inside of a byte."""
    for between in ("\n", "") if len(texts) > 1 else ():
        with suppress(KwireError):
            return (_decode_text(decode, between.join(texts), form),)
    return ()


def _decode_text(decode: Callable[[bytes], T], text: str, form: str) -> T:
    return decode(_bytes(text, form))


def _at(where: str, decode: Callable[[], T]) -> T:
    try:
        return decode()
    except KwireError as error:
        raise _located(where, error) from None


def _lines(file: IO[bytes]) -> Iterator[tuple[str, str]]:
    """(position, text) of each line that is not empty."""
    for number, line in enumerate(_whole_lines(file), 1):
        text = line.removeprefix(BOM_UTF8 if number == 1 else b"").decode("ascii", "replace").strip()
        if text:
            yield f"{_name(file)}, line {number}", text


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    try:
        yield from lines(file)
    except LimitError as error:
        raise _located(_name(file), error) from None


def _bytes(text: str, form: str) -> bytes:
    """The bytes that a text means. Raises KwireError."""
    if form == "hex":
        try:
            return hex_bytes(text)
        except KwireError as error:
            raise KwireError(f"{error}{_other_form(text)}") from None
    try:
        return strict_base64("".join(text.split()))
    except ValueError:
        raise KwireError("invalid base64") from None


def _other_form(text: str) -> str:
    """What a text that is no hex may be, for the end of an error."""
    try:
        strict_base64("".join(text.split()))
    except ValueError:
        return ""
    return " (base64? --from base64)"


def hex_bytes(text: str) -> bytes:
    r"""The bytes of hex digits, between which there may be spaces, line ends, colons, commas, 0x and \x.

    Raises KwireError, which names the first character that is no digit.
    """
    if "x" in text or "X" in text:
        text = _PREFIX.sub(lambda found: f" {'0' * (len(found[1]) % 2)}{found[1]}", text)
    digits = text.translate(_SEPARATORS)
    wrong = re.search("[^0-9a-fA-F]", digits)
    if wrong:
        raise KwireError(f"invalid hex: {brief(wrong[0])} is no hex digit")
    if len(digits) % 2:
        raise KwireError(f"invalid hex: an odd number of digits, {len(digits)}")
    return bytes.fromhex(digits)


def _name(file: IO[bytes]) -> str:
    return str(getattr(file, "name", "-"))


def _located(where: str, error: KwireError) -> click.ClickException:
    return click.ClickException(f"{where}: {error}")


@click.command()
@of_kind
@click.argument("file", type=InputFile(), default="-")
@click.option("--from", "form", type=FORMATS, default="hex", show_default=True, help="The format of the input.")
@click.option("--lenient", is_flag=True, help="Accept everything that Kafka's own classes accept.")
def decode(name: str, version: int, file: IO[bytes], form: str, lenient: bool) -> None:
    """Decode messages to JSON lines, as Kafka's JsonConverter writes them.

    NAME is that of a message, as MetadataRequest or OffsetCommitValue (kwire messages lists them), or with --request or
    --response that of an API, as Metadata, or its key.

    hex and base64: one message a line, or one of many lines; hex digits may have spaces, colons, commas and 0x between
    them. raw: the whole input is one message.
    """
    schema.message(name).check(version)

    def decoded(data: bytes) -> dict[str, Any]:
        return to_json(codec.decode(name, version, data, lenient=lenient), version)

    for value in _decoded(file, form, decoded):
        print_json(value)


@click.command()
@of_kind
@click.argument("file", type=InputFile(), default="-")
@click.option("--to", "form", type=FORMATS, default="hex", show_default=True, help="The format of the output.")
def encode(name: str, version: int, file: IO[bytes], form: str) -> None:
    """Encode JSON values to messages, one a line (raw: concatenated). NAME is as for kwire decode."""
    schema.message(name).check(version)
    for where, value in _values(file):
        try:
            data = codec.encode(from_json(name, version, value), version)
        except KwireError as error:
            raise _located(where, error) from None
        if form == "raw":
            sys.stdout.buffer.write(data)
        else:
            click.echo(data.hex() if form == "hex" else b64encode(data).decode())


_FIRST_READ = 1 << 20  # bytes


def _values(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """(position, value) of each JSON value in the input, which is read in pieces of whole lines.

    A value that may go on in the next lines is parsed again with at least as many bytes more: all takes linear time.
    """
    decoder, pieces = json.JSONDecoder(), _pieces(file)
    text, at, line, more = "", 0, 1, True
    while True:
        start = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        line += text.count("\n", at, start)
        if start < len(text):
            where = f"{_name(file)}, line {line}"
            try:
                value, at = decoder.raw_decode(text, start)
            except json.JSONDecodeError as error:
                if not more or text[error.pos :].strip():
                    column = error.pos - text.rfind("\n", 0, error.pos)
                    there = f"line {line + text.count(chr(10), start, error.pos)} column {column}"
                    raise click.ClickException(f"{where}: invalid JSON: {error.msg}: {there}") from None
            except (ValueError, RecursionError) as error:
                raise click.ClickException(f"{where}: invalid JSON: {json_fault(error)}") from None
            else:
                line += text.count("\n", start, at)
                yield where, value
                continue
            if len(text) - start > MOST_HELD:
                raise _located(where, LimitError("a JSON value holds too many bytes", limit=MOST_HELD))
        elif not more:
            return
        piece = pieces(max(_FIRST_READ, len(text) - start))
        text, at, more = text[start:] + piece, 0, bool(piece)


def _pieces(file: IO[bytes]) -> Callable[[int], str]:
    """A function that reads at least so many bytes of whole lines, or to the end of the input, as text."""
    source, position = _whole_lines(file), 0

    def piece(size: int) -> str:
        nonlocal position
        read: list[bytes] = []
        while size > 0 and (line := next(source, b"")):
            read.append(line)
            size -= len(line)
        data = b"".join(read)
        try:
            text = data.decode("utf-8" if position else "utf-8-sig")  # as Windows writes it
        except UnicodeDecodeError as error:
            raise click.ClickException(f"{_name(file)}: invalid UTF-8 at byte {position + error.start}") from None
        position += len(data)
        return text

    return piece


@click.command()
@click.argument("file", type=InputFile(), default="-")
@click.option("--from", "form", type=FORMATS, default="hex", show_default=True, help="The format of the input.")
@click.option("--api", help="Decode responses of this API (name or key); needs --version.")
@click.option("--version", type=VERSION, help="The API version of the requests that they answer.")
@click.option("--lenient", is_flag=True, help="Accept everything that Kafka's own classes accept.")
def frame(file: IO[bytes], form: str, api: str | None, version: int | None, lenient: bool) -> None:
    """Decode frames (header and body) to JSON lines: requests, or responses of --api.

    hex and base64: one frame a line, without its size, or one of many lines; raw: frames with their 4-byte sizes, as on
    a connection.
    """
    if (api is None) != (version is None):
        raise click.UsageError("--api and --version must be used together")
    if api is not None:
        schema.api(api_of(api))

    def decoded(data: bytes) -> dict[str, Any]:
        try:
            return _request(data, lenient) if api is None else _response(data, api, version, lenient)
        except KwireError as error:
            if form == "raw" or int.from_bytes(data[:4]) != len(data) - 4:
                raise
            raise KwireError(f"{error} (its first 4 bytes are its size: leave them out, or use --from raw)") from None

    if form == "raw":
        for where, data in _frames(file):
            print_json(_at(where, partial(decoded, data)))
    else:
        for value in _decoded(file, form, decoded):
            print_json(value)


def _frames(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    reader, number = FrameReader(), 0
    block = b"-"
    while block:
        block = file.read(1 << 20)  # b"" at the end: feed() then raises what came after the last whole frame
        for data in _at(_name(file), partial(reader.feed, block)):
            number += 1
            yield f"{_name(file)}, frame {number}", data
    if reader.pending:
        raise click.ClickException(f"{_name(file)}: the last frame is truncated: {reader.pending} bytes remaining")


def _request(data: bytes, lenient: bool) -> dict[str, Any]:
    request = decode_request(data, lenient=lenient)
    return {
        "api_key": request.api_key, "api": request.name, "version": request.version,
        "correlation_id": request.correlation_id, "client_id": request.client_id,
        "message": to_json(request.message, request.version),
    }


def _response(data: bytes, api: str, version: int | None, lenient: bool) -> dict[str, Any]:
    response = decode_response(data, api=api_of(api), version=version, lenient=lenient)
    return {
        "api_key": response.api_key, "api": response.name, "version": response.version,
        "correlation_id": response.correlation_id, "message": to_json(response.message, response.version),
    }
