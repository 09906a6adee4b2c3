"""Writes kwire/messages.pyi from kwire/schema, so that editors and type checkers know every message.

    python -m tools.schema.stub
"""

from __future__ import annotations

import keyword

from kwire import schema
from kwire.schema import Field, Message, api_keys
from tools import places

STUB = places.ROOT / "kwire" / "messages.pyi"
HEAD = '''"""The classes of all messages, for editors and type checkers.

Written from kwire/schema by `python -m tools.schema.stub`; do not edit.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeAlias, TypeVar
from uuid import UUID

from kwire_c.message_class import Message, RequestMessage, Struct

_T = TypeVar("_T")
_Many: TypeAlias = list[_T] | tuple[_T, ...]

'''
_PLAIN = {"bool": "bool", "float64": "float", "uuid": "UUID", "string": "str", "bytes": "bytes", "records": "bytes"}


def kept(field: Field, message: str) -> str:
    """The type that the attribute has."""
    one = f"{message}.{field.struct}" if field.struct else _PLAIN.get(field.element, "int")
    if field.is_array:
        one = "tuple[int, ...]" if one == "int" else f"list[{one}]"
    return f"{one} | None" if nullable(field) else one


def taken(field: Field, message: str) -> str:
    """The type that the constructor takes."""
    if not field.is_array:
        return kept(field, message)
    one = f"{message}.{field.struct}" if field.struct else _PLAIN.get(field.element, "int")
    many = "Sequence[int]" if one == "int" else f"_Many[{one}]"
    return f"{many} | None" if nullable(field) else many


def nullable(field: Field) -> bool:
    """Whether its value may be None in some version."""
    return bool(field.nullable_versions) or field.default == "null" or field.type == "records"


def default(field: Field) -> str:
    """The default as the stub shows it."""
    if field.default == "null" or field.type == "records":
        return "None"
    if field.is_array or field.type == "uuid" or field.struct:
        return "..."
    value = field.default_value
    return f'"{value}"' if isinstance(value, str) else repr(value).replace("b''", 'b""')


def struct_lines(name: str, fields: tuple[Field, ...], message: str, indent: str) -> list[str]:
    """The class of a message or struct without what is nested in it."""
    for field in fields:
        if keyword.iskeyword(field.snake_name):
            raise ValueError(f"{message}: {field.snake_name!r} cannot be an attribute")
    lines = [f"{indent}__match_args__: ClassVar[tuple[str, ...]]"]
    lines += [f"{indent}{field.snake_name}: {kept(field, message)}" for field in fields]
    lines += [f"{indent}def __init__(", f"{indent}    self,", f"{indent}    *,"]
    lines += [f"{indent}    {field.snake_name}: {taken(field, message)} = {default(field)}," for field in fields]
    return [*lines, f"{indent}    unknown_tags: dict[int, bytes] = ...,", f"{indent}) -> None: ..."]


def base(message: Message) -> str:
    """The base class of a message's own class; that of a request names the response."""
    if message.type != "request":
        return "Message"
    response = message.name.removesuffix("Request") + "Response"
    schema.message(response)
    one_way = " | None" if message.api_key == api_keys.PRODUCE else ""  # with acks=0
    return f"RequestMessage[{response}{one_way}]"


def message_lines(message: Message) -> list[str]:
    """The classes of a message."""
    name = message.name
    lines = [f"class {name}({base(message)}):"]
    for struct, fields in message.structs().items():
        lines += [f"    class {struct}(Struct):", *struct_lines(struct, fields, name, "        "), ""]
    return [*lines, *struct_lines(name, message.fields, name, "    "), ""]


def text() -> str:
    """The whole stub. Requests come last: mypy wants the class of a response before the request that names it."""
    lines: list[str] = []
    for message in sorted(map(schema.message, schema.message_names()), key=lambda one: one.type == "request"):
        lines += message_lines(message)
    return HEAD + "\n".join(lines)


if __name__ == "__main__":
    STUB.write_text(text())
