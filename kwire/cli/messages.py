"""`kwire decode`, `kwire encode` and `kwire frame`: messages between bytes and JSON."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import IO, Any

import click
from click.shell_completion import CompletionItem

from kwire import schema
from kwire.cli.input_file import InputFile
from kwire.cli.terminal import VERSION, api_of, print_json
from kwire.codec import messages as codec
from kwire.codec.frames import FrameReader, decode_request, decode_response
from kwire.codec.json import from_json, to_json
from kwire.errors import DecodeError, KwireError
from kwire_c.json import strict_base64

_SPACE = re.compile(r"\s*")
FORMATS = click.Choice(("hex", "base64", "raw"))


class MessageName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The name of a message, with shell completion."""

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names with that prefix, ignoring case."""
        return [CompletionItem(name) for name in schema.message_names() if name.lower().startswith(incomplete.lower())]


def _inputs(file: IO[bytes], form: str) -> Iterator[tuple[str, bytes]]:
    """(position, bytes) of each message: one a line; with raw the whole input is one."""
    if form == "raw":
        yield _name(file), file.read()
        return
    for number, line in enumerate(file, 1):
        text = line.removeprefix(BOM_UTF8 if number == 1 else b"").translate(None, b" \t\r\n\v\f")
        if not text:
            continue
        where = f"{_name(file)}, line {number}"
        try:
            data = bytes.fromhex(text.decode("ascii")) if form == "hex" else strict_base64(text.decode("ascii"))
        except ValueError:
            raise DecodeError(f"{where}: invalid {form}") from None
        yield where, data


def _name(file: IO[bytes]) -> str:
    return str(getattr(file, "name", "-"))


def _located(where: str, error: KwireError) -> click.ClickException:
    return click.ClickException(f"{where}: {error}")


@click.command()
@click.argument("name", type=MessageName())
@click.argument("version", type=VERSION)
@click.argument("file", type=InputFile(), default="-")
@click.option("--from", "form", type=FORMATS, default="hex", show_default=True, help="The format of the input.")
@click.option("--lenient", is_flag=True, help="Accept everything that Kafka's own classes accept.")
def decode(name: str, version: int, file: IO[bytes], form: str, lenient: bool) -> None:
    """Decode messages to JSON lines, as Kafka's JsonConverter writes them.

    hex and base64: one message a line; raw: the whole input is one message.
    """
    schema.message(name).check(version)
    for where, data in _inputs(file, form):
        try:
            message = codec.decode(name, version, data, lenient=lenient)
            print_json(to_json(message, version))
        except KwireError as error:
            raise _located(where, error) from None


@click.command()
@click.argument("name", type=MessageName())
@click.argument("version", type=VERSION)
@click.argument("file", type=InputFile(), default="-")
@click.option("--to", "form", type=FORMATS, default="hex", show_default=True, help="The format of the output.")
def encode(name: str, version: int, file: IO[bytes], form: str) -> None:
    """Encode JSON values to messages, one a line (raw: concatenated)."""
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


def _values(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """(position, value) of each JSON value in the input."""
    try:
        text = file.read().decode("utf-8-sig")  # as Windows writes it
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{_name(file)}: invalid UTF-8 at byte {error.start}") from None
    decoder, at, line, counted = json.JSONDecoder(), 0, 1, 0
    while (start := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        line, counted = line + text.count("\n", counted, start), start
        where = f"{_name(file)}, line {line}"
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            raise click.ClickException(f"{where}: invalid JSON: {error}") from None
        yield where, value


@click.command()
@click.argument("file", type=InputFile(), default="-")
@click.option("--from", "form", type=FORMATS, default="hex", show_default=True, help="The format of the input.")
@click.option("--api", help="Decode responses of this API (name or key); needs --version.")
@click.option("--version", type=VERSION, help="The API version of the requests that they answer.")
@click.option("--lenient", is_flag=True, help="Accept everything that Kafka's own classes accept.")
def frame(file: IO[bytes], form: str, api: str | None, version: int | None, lenient: bool) -> None:
    """Decode frames (header and body) to JSON lines: requests, or responses of --api.

    hex and base64: one frame a line, without its size; raw: frames with their 4-byte sizes, as on a connection.
    """
    if (api is None) != (version is None):
        raise click.UsageError("--api and --version must be used together")
    for where, data in _frames(file, form):
        try:
            print_json(_request(data, lenient) if api is None else _response(data, api, version, lenient))
        except KwireError as error:
            raise _located(where, error) from None


def _frames(file: IO[bytes], form: str) -> Iterator[tuple[str, bytes]]:
    if form != "raw":
        yield from _inputs(file, form)
        return
    reader, number = FrameReader(), 0
    while block := file.read(1 << 20):
        for data in reader.feed(block):
            number += 1
            yield f"{_name(file)}, frame {number}", data
    if reader.pending:
        raise DecodeError(f"{_name(file)}: the last frame is truncated: {reader.pending} bytes remaining")


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
