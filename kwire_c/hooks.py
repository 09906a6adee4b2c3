"""The functions of kwire that kwire_c calls. kwire_c itself imports nothing from kwire."""

from __future__ import annotations

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_places: dict[str, str] = {}


def hand_over(*, message_schema: str, decompress: str, compress: str, decode_control: str) -> None:
    """Register the functions that kwire_c calls, each as "module:function". kwire calls this once, on import.

    message_schema(name) -> schema.Message; decompress(codec id, view, *, limit, magic) -> buffer;
    compress(codec id, data, *, level, magic) -> bytes; decode_control(key, value) -> (control type, message or None).
    A module is imported when its function is first called.
    """
    _places.update(
        message_schema=message_schema, decompress=decompress, compress=compress, decode_control=decode_control
    )


def handed(name: str) -> Callable[..., Any]:
    """The function registered under this name."""
    from importlib import import_module

    if name not in _places:
        raise RuntimeError("kwire_c is internal to kwire: import kwire first")
    module, _, function = _places[name].partition(":")
    return getattr(import_module(module), function)  # type: ignore[no-any-return]
