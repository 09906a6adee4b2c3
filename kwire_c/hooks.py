"""What kwire hands down to kwire_c, which imports nothing of kwire."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_places: dict[str, str] = {}


def hand_over(*, message_schema: str, decompress: str, compress: str, decode_control: str) -> None:
    """Says where kwire has what kwire_c calls, each as "module:function"; kwire itself calls this, once, on import.

    message_schema(name) -> schema.Message; decompress(codec id, data, *, limit, magic) -> buffer;
    compress(codec id, data, *, level, magic) -> bytes; decode_control(key, value) -> (control type, message or None).
    Nothing is imported before it is called for the first time.
    """
    _places.update(
        message_schema=message_schema, decompress=decompress, compress=compress, decode_control=decode_control
    )


def handed(name: str) -> Callable[..., Any]:
    """The function of that name."""
    from importlib import import_module

    if name not in _places:
        raise RuntimeError("kwire_c works for kwire: import kwire first")
    module, _, function = _places[name].partition(":")
    return getattr(import_module(module), function)  # type: ignore[no-any-return]
