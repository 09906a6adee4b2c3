"""Responses in which every error code is the same one: as the getErrorResponse of Kafka's request classes."""

from __future__ import annotations

from typing import Any

from kwire import messages, schema
from kwire.codec.frames import Request
from kwire.schema import Field
from kwire.schema.error_codes import ErrorCode

# a row of a response names what the row of the request named, under one of these names
_SAME = (
    {"name", "topic", "topic_name"}, {"partition", "partition_index", "partition_id", "index"}, {"topic_id"},
    {"group_id"}, {"transactional_id"}, {"key"}, {"member_id"}, {"group_instance_id"},
    {"resource_name"}, {"resource_type"},
)
_REPEATED = {"entity"}  # arrays without errors of a row that the response repeats (AlterClientQuotas)
_EMPTY: dict[str, str | bytes] = {"string": "", "bytes": b"", "records": b""}


def refusal(request: Request, code: ErrorCode) -> Any:
    """The response to a request with this error code in all places, and the rows that the request named."""
    definition = schema.message(f"{request.name}Response")
    asked = schema.message(f"{request.name}Request")
    response = getattr(messages, definition.name)
    answer = response()
    _fill(answer, definition.fields, request.message, asked.fields, request.version, code, response)
    return answer


def _fill(
    row: Any, fields: tuple[Field, ...], asked: Any, asked_fields: tuple[Field, ...], version: int, code: ErrorCode,
    response: Any,
) -> None:
    for field in fields:
        if version not in field.versions:
            continue
        if field.snake_name.endswith("error_code"):
            setattr(row, field.snake_name, code)
        elif field.snake_name.endswith("error_message") and version in field.nullable_versions:
            setattr(row, field.snake_name, code.message)
        elif field.type == "records" and version not in field.nullable_versions:
            setattr(row, field.snake_name, b"")
        elif field.type.startswith("[]") and field.fields and any("error_code" in f.snake_name for f in _all(field)):
            source = _rows(field, asked, asked_fields, version)
            if source is not None:
                setattr(row, field.snake_name, [
                    _row(field, one, source[1], version, code, response) for one in source[0]])
        elif field.snake_name in _REPEATED:
            setattr(row, field.snake_name, [_copied(field, one, response) for one in getattr(asked, field.snake_name)])


def _row(field: Field, one: Any, source: Field, version: int, code: ErrorCode, response: Any) -> Any:
    row = getattr(response, field.type[2:])()
    for inner in field.fields:
        if version not in inner.versions or "error" in inner.snake_name or inner.type.startswith("[]") or inner.fields:
            continue
        if not source.fields:  # an array of names or numbers
            if inner.snake_name in _named("name") | _named("partition") | {"group_id", "key"}:
                setattr(row, inner.snake_name, one)
            continue
        for name in _named(inner.snake_name):
            if hasattr(one, name):
                value = _copied(inner, getattr(one, name), response)
                if value is not None or inner.nullable_versions:
                    setattr(row, inner.snake_name, value)
    for inner in field.fields:  # what the request may leave out, and the response may not
        if inner.type in _EMPTY and version in inner.versions and version not in inner.nullable_versions and (
                getattr(row, inner.snake_name) is None):
            setattr(row, inner.snake_name, _EMPTY[inner.type])
    _fill(row, field.fields, one, source.fields, version, code, response)
    return row


def _copied(field: Field, value: Any, response: Any) -> Any:
    """A value of a request for a field of its response, whose structs are of other classes."""
    if value is None or not field.fields:
        return value
    names = [inner.snake_name for inner in field.fields]
    return getattr(response, field.type.removeprefix("[]"))(**{name: getattr(value, name) for name in names})


def _named(name: str) -> set[str]:
    return next((names for names in _SAME if name in names), {name})


def _all(field: Field) -> list[Field]:
    return [inner for one in field.fields for inner in (one, *_all(one))]


def _rows(field: Field, asked: Any, fields: tuple[Field, ...], version: int) -> tuple[Any, Field] | None:
    """The array of the request that an array of the response mirrors: the first one that names the same."""
    if asked is None:
        return None
    keys = {name for inner in field.fields for name in _named(inner.snake_name)}
    arrays = [one for one in fields if one.type.startswith("[]") and version in one.versions]
    arrays.sort(key=lambda one: not ({inner.snake_name for inner in one.fields} & keys))
    for one in arrays:
        rows = getattr(asked, one.snake_name)
        if rows is not None:
            return rows, one
    return None
