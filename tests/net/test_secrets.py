"""Local variables in a traceback hold no secret of a connection."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from kwire import LimitError
from kwire.net import BrokerConnectionError, Cluster, connect, connect_sync, read_config

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("make", [connect, connect_sync, Cluster])
@pytest.mark.parametrize("wrong", [{"timeout": "x"}, {"tls": 3}, {"deny": 3}])
def test_the_locals_of_a_wrong_argument_can_be_shown(make: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as caught:
        make("localhost:9092", **wrong)
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "not made>" in "".join(shown.format())


@pytest.mark.parametrize("line", [
    "sasl.jaas.config=x required password=hunter2 ==;", "sasl.jaas.config=hunter2 \\u00",
    "security.protocol=SSL\nssl.key.password=hunter2\nssl.keystore.location=/dev/zero",
])  # fmt: skip
def test_the_locals_of_a_wrong_file_hold_no_password(tmp_path: Path, line: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{line}\n")
    with pytest.raises((BrokerConnectionError, LimitError)) as caught:
        read_config(path)
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [frame for frame in shown.stack if frame.name == "read_config"]
    assert frames and "hunter2" not in str([frame.locals for frame in shown.stack if frame.filename != __file__])
