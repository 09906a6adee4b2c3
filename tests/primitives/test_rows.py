"""Rows in the C core: those of Arrow arrays with wrong spans, rows as text where memory falls short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.primitives import checks

pytestmark = [pytest.mark.quick, pytest.mark.checkout]


@pytest.mark.parametrize("name", ["arrow_rows_check", "record_text_check"])
def test_the_c_alone(name: str, tmp_path: Path) -> None:
    checks.build(name, tmp_path / "check", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
    assert checks.run(tmp_path / "check") == ["sound"]
