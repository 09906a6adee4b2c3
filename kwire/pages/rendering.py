"""The Jinja environment of all HTML pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.version import __version__
from kwire_c.printable import printable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_HERE = Path(__file__).parent
ASSETS = _HERE / "assets"
_SHORT_NAME = 16  # characters, which fit into every column
_LONG_WORD = 45  # characters, which do not fit on a line of a telephone
_WORDS = re.compile(r"(?<=[._])(?=\w)|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def environment(*, untrusted: bool = False) -> Environment:
    """The environment for the templates beside this file.

    untrusted: the page shows text from the wire, such as client ids: characters that are not printable are escaped.
    Without jinja2 raises ImportError, which names the extra to install.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise ImportError("HTML pages need jinja2: pip install 'kwire[report]'") from error
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        finalize=(lambda value: printable(value) if type(value) is str else value) if untrusted else None,
    )
    environment.globals["kwire_version"] = __version__
    environment.filters["breakable"] = breakable
    environment.filters["flowing"] = flowing
    environment.tests["search"] = lambda text, pattern: re.search(pattern, text) is not None
    environment.filters["anchor"] = lambda title: title.lower().replace(" ", "-")
    return environment


def breakable(name: str) -> str | Markup:
    """A long name with places where a line may end: after a dot or _, before a capital. Escaped for HTML."""
    from markupsafe import Markup, escape

    if len(name) <= _SHORT_NAME:
        return name
    return Markup("<wbr>").join(escape(part) for part in _WORDS.split(name))


def flowing(text: str) -> str | Markup:
    """A text whose very long words may be broken as breakable() does. Escaped for HTML."""
    from markupsafe import Markup, escape

    if all(len(word) <= _LONG_WORD for word in text.split(" ")):
        return text
    return Markup(" ").join(breakable(word) if len(word) > _LONG_WORD else escape(word) for word in text.split(" "))
