"""Lazy packages, whose public names are imported at first use (PEP 562)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any


def explained(missing: ImportError) -> ImportError:
    """The error of a module that is missing: of an extension it says that this is a checkout where none is compiled."""
    if not str(missing.name).startswith("kwire_c."):
        return missing
    import kwire_c

    return ImportError(f"{kwire_c.__path__[0]}: the C extensions are not compiled: make build compiles them; "
                       "an installed kwire is used in any other folder", name=missing.name)


def attach(
    package: str, names: Mapping[str, Collection[str]], rooms: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return (__getattr__, __dir__, __all__) for a package.

    names: module -> the public names that it defines; rooms: its subpackages that importing the package alone makes
    reachable -> the library that one needs, "" for none. dir() lists the public names, and the rooms that can be used.
    """
    below = rooms or {}
    home = {name: module for module, public in names.items() for name in public}
    attributes = sys.modules[package].__dict__

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        module = home.get(name)
        if module is None and name not in below:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if module is None:
                return import_module(f"{package}.{name}")
            value = getattr(import_module(module), name)
        except ModuleNotFoundError as missing:
            raise explained(missing) from None
        attributes[name] = value
        return value

    def __dir__() -> list[str]:
        from importlib.util import find_spec

        usable = (room for room, needed in below.items() if not needed or find_spec(needed))
        return sorted({*attributes["__all__"], *usable})

    return __getattr__, __dir__, list(home)
