"""No public function, method or attribute gives Any where the type is known."""

from __future__ import annotations

import ast
import re

import pytest

from tests.types.definitions import public, returned

pytestmark = [pytest.mark.quick, pytest.mark.checkout]

# JSON objects, and what another library's own annotations say
KNOWN = ("dict[str, Any]", "NDArray[Any]")
# full name -> why its type cannot be known
UNKNOWN = {
    "kwire.Column.__iter__": "Iterator[Any]",  # of the column's type
    "kwire.Column.to_pylist": "list[Any]",  # of the column's type
    "kwire.storage.SideFile.rows": "Sequence[tuple[Any, ...]]",  # of the kind of file
}


def test_no_any() -> None:
    found = {}
    for name, node in public():
        for place, annotation in returned(name, node):
            if annotation is None:
                found[place] = "no annotation"
                continue
            text = ast.unparse(annotation).strip("'\"")
            unknown = text
            for known in KNOWN:
                unknown = unknown.replace(known, "")
            if re.search(r"\bAny\b", unknown):
                found[place] = text
    assert found == UNKNOWN
