"""Packages whose public names are imported at first use (PEP 562): what their __getattr__ and __dir__ do."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any


def attach(
    package: str, home: Mapping[str, str], rooms: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """(__getattr__, __dir__) for a package.

    home: public name -> the module that defines it; rooms: packages below it that its name alone makes reachable.
    """
    names = sys.modules[package].__dict__

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in rooms:
            return import_module(f"{package}.{name}")
        place = home.get(name)
        if place is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(place), name)
        names[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(set(names) | set(names["__all__"]))

    return __getattr__, __dir__
