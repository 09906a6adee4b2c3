"""HTML out of the templates beside this file: one Jinja environment for all pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kwire.version import __version__
from kwire_c.printable import printable

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent
ASSETS = _HERE / "assets"


def environment(*, foreign_text: bool = False) -> Environment:
    """The environment that all pages are made with. ImportError without jinja2 names the extra.

    foreign_text: the page shows what others wrote (names of clients): signs that are not printable are escaped.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("HTML pages need jinja2: pip install 'kwire[report]'") from error
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        finalize=(lambda value: printable(value) if type(value) is str else value) if foreign_text else None,
    )
    made.globals["kwire_version"] = __version__
    return made
