"""The Jinja environment of all HTML pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kwire.version import __version__
from kwire_c.printable import printable

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent
ASSETS = _HERE / "assets"


def environment(*, untrusted: bool = False) -> Environment:
    """The environment for the templates beside this file.

    untrusted: the page shows text from the wire, such as client ids: characters that are not printable are escaped.
    Without jinja2 raises ImportError, which names the extra to install.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("HTML pages need jinja2: pip install 'kwire[report]'") from error
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        finalize=(lambda value: printable(value) if type(value) is str else value) if untrusted else None,
    )
    environment.globals["kwire_version"] = __version__
    return environment
