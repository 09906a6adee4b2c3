"""Growable buffers of the C core: what they hold, memory that falls short, which freed ones come back, threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.primitives import checks

pytestmark = pytest.mark.checkout


@pytest.mark.parametrize("sanitizers", ["address,undefined", "undefined", "thread"])
def test_the_c_alone(sanitizers: str, tmp_path: Path) -> None:
    options = ("-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=undefined")
    checks.build("buffers_check", tmp_path / "check", *options)
    assert checks.run(tmp_path / "check") == ["sound"]
