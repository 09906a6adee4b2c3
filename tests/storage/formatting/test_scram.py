"""Credentials of --add-scram."""

from __future__ import annotations

import pytest

from kwire.storage.formatting.scram_parser import parse_argument, parse_argument_before_3_9

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("parse", [parse_argument, parse_argument_before_3_9])
def test_a_repr_has_no_password(parse: object) -> None:
    assert callable(parse)
    found = parse("SCRAM-SHA-256=[name=alice,password=hunter22]")
    assert found.password == "hunter22" and repr(found) == "Credential(mechanism='SCRAM_SHA_256', name='alice')"
