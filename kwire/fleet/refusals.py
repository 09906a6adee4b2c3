"""Responses in which every error code is the same one: as the getErrorResponse of Kafka's request classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

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


class _Source(NamedTuple):
    """An array of the request that one of the response mirrors.

    name: of the array; itself: of the fields of a row that are an element, where elements are no structs; copied:
    (field of a row, name in an element); plan: of what is in a row.
    """

    name: str
    itself: tuple[str, ...]
    copied: tuple[tuple[Field, str], ...]
    plan: _Plan


class _Rows(NamedTuple):
    """An array of the response. make: the class of its rows; empty: their fields that are not null, with a value."""

    name: str
    make: Any
    empty: tuple[tuple[str, str | bytes], ...]
    sources: tuple[_Source, ...]


class _Plan(NamedTuple):
    """What is set in a response, or in a row of it, by the names of its fields. repeated: arrays that are copied."""

    codes: tuple[str, ...]
    texts: tuple[str, ...]
    records: tuple[str, ...]
    rows: tuple[_Rows, ...]
    repeated: tuple[Field, ...]


def refusal(request: Request, code: ErrorCode) -> Any:
    """The response to a request with this error code in all places, and the rows that the request named."""
    definition = schema.message(f"{request.name}Response")
    response = getattr(messages, definition.name)
    answer = response()
    _fill(answer, _plan_of(request.name, request.version), request.message, code, response)
    return answer


@cache
def _plan_of(api: str, version: int) -> _Plan:
    definition = schema.message(f"{api}Response")
    asked = schema.message(f"{api}Request").fields
    return _planned(definition.fields, asked, version, getattr(messages, definition.name))


def _planned(fields: tuple[Field, ...], asked: tuple[Field, ...], version: int, response: Any) -> _Plan:
    codes, texts, records, rows, repeated = list[str](), list[str](), list[str](), list[_Rows](), list[Field]()
    for field in fields:
        if version not in field.versions:
            continue
        if field.snake_name.endswith("error_code"):
            codes.append(field.snake_name)
        elif field.snake_name.endswith("error_message") and version in field.nullable_versions:
            texts.append(field.snake_name)
        elif field.type == "records" and version not in field.nullable_versions:
            records.append(field.snake_name)
        elif field.type.startswith("[]") and field.fields and any("error_code" in f.snake_name for f in _all(field)):
            rows.append(_Rows(
                field.snake_name, getattr(response, field.type[2:]), tuple(_empty(field, version)),
                tuple(_source(field, one, version, response) for one in _arrays(field, asked, version))))
        elif field.snake_name in _REPEATED:
            repeated.append(field)
    return _Plan(tuple(codes), tuple(texts), tuple(records), tuple(rows), tuple(repeated))


def _source(field: Field, source: Field, version: int, response: Any) -> _Source:
    plain = [
        inner for inner in field.fields
        if version in inner.versions and "error" not in inner.snake_name and not inner.type.startswith("[]")
        and not inner.fields]
    itself = () if source.fields else tuple(
        inner.snake_name for inner in plain
        if inner.snake_name in _named("name") | _named("partition") | {"group_id", "key"})
    there = {inner.snake_name for inner in source.fields}
    copied = tuple((inner, name) for inner in plain for name in sorted(_named(inner.snake_name) & there))
    return _Source(
        source.snake_name, itself, copied, _planned(field.fields, source.fields, version, response))


def _empty(field: Field, version: int) -> Iterator[tuple[str, str | bytes]]:
    """What the request may leave out, and the response may not."""
    for inner in field.fields:
        if inner.type in _EMPTY and version in inner.versions and version not in inner.nullable_versions:
            yield inner.snake_name, _EMPTY[inner.type]


def _fill(row: Any, plan: _Plan, asked: Any, code: ErrorCode, response: Any) -> None:
    for name in plan.codes:
        setattr(row, name, code)
    for name in plan.texts:
        setattr(row, name, code.message)
    for name in plan.records:
        setattr(row, name, b"")
    for rows in plan.rows:
        source = next((one for one in rows.sources if getattr(asked, one.name) is not None), None)
        if source is not None:
            setattr(row, rows.name, [_row(rows, source, one, code, response) for one in getattr(asked, source.name)])
    for field in plan.repeated:
        setattr(row, field.snake_name, [_copied(field, one, response) for one in getattr(asked, field.snake_name)])


def _row(rows: _Rows, source: _Source, one: Any, code: ErrorCode, response: Any) -> Any:
    row = rows.make()
    for name in source.itself:
        setattr(row, name, one)
    for inner, name in source.copied:
        value = _copied(inner, getattr(one, name), response)
        if value is not None or inner.nullable_versions:
            setattr(row, inner.snake_name, value)
    for name, value in rows.empty:
        if getattr(row, name) is None:
            setattr(row, name, value)
    _fill(row, source.plan, one, code, response)
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


def _arrays(field: Field, asked: tuple[Field, ...], version: int) -> list[Field]:
    """The arrays of the request that an array of the response may mirror: first those that name the same."""
    keys = {name for inner in field.fields for name in _named(inner.snake_name)}
    arrays = [one for one in asked if one.type.startswith("[]") and version in one.versions]
    return sorted(arrays, key=lambda one: not ({inner.snake_name for inner in one.fields} & keys))
