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


@pytest.mark.parametrize("between", ["", "\\\n", "\\\n  ", " "])
@pytest.mark.parametrize("line", [
    "ssl.enabled.protocols=TLSv1.2", "ssl.truststore.location=/nowhere", "ssl.keystore.location=/nowhere",
    "client.id=me", "security.protocol=SSL",
])  # fmt: skip
@pytest.mark.parametrize("secret", [
    "ssl.key.password=hunter2", "sasl.jaas.config = x required password=hunter2;", "ssl.keystore.password hunter2",
])  # fmt: skip
def test_a_setting_that_has_taken_in_a_secret_is_refused_and_not_shown(
    tmp_path: Path, line: str, between: str, secret: str
) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"security.protocol=SSL\n{line}{between}{secret}\n")
    with pytest.raises(BrokerConnectionError, match="its value holds another setting, with a secret") as caught:
        read_config(path)
    assert "hunter2" not in str(caught.value)


def test_a_value_may_be_named_like_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=PLAINTEXT\nclient.id=token: of ssl\nssl.a=/ssl.keystore.key.pem\n")
    assert read_config(path) == {"client_id": "token: of ssl"}


@pytest.mark.parametrize("text", [
    "kafka://alice:hunter2@host:9092", "SASL_SSL://hunter2@host:9092", "alice:hunter2@host",
    "host:9092?password=hunter2", "host:9092?password=x@hunter2", "https://host?hunter2:9092",
])  # fmt: skip
@pytest.mark.parametrize("make", [connect, connect_sync, Cluster])
def test_user_password_and_query_of_an_address_are_not_shown(make: Any, text: str) -> None:
    with pytest.raises(BrokerConnectionError, match="invalid broker address: expected HOST:PORT") as caught:
        make(text)
    assert "hunter2" not in f"{caught.value!r}"
