"""The API keys that the code names are those of ApiKeys."""

from __future__ import annotations

import pytest

from kwire.schema import api_keys, files

pytestmark = pytest.mark.quick


def test_the_keys_are_those_of_kafka() -> None:
    named = {name: key for name, key in vars(api_keys).items() if name.isupper()}
    theirs = {row["enum"]: int(key) for key, row in files.load("releases.json")["apis"].items()}
    assert named and named.items() <= theirs.items()
