"""What the eighth attack found in connections: finalizers where Python ends, time after error 35, locals, reprs."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.net import BrokerConnectionError, Cluster, connect, connect_sync, read_config
from tests.net.fake import Broker, of_release, run, serving
from tools.places import ROOT

pytestmark = pytest.mark.quick

AT_EXIT = """
import sys
from kwire import messages
from kwire.net import connect_sync

class Owner:
    def __init__(self, connection):
        self.connection, self.request = connection, messages.MetadataRequest(topics=[])
    def __del__(self):
        assert sys.is_finalizing()
        try:
            self.connection.send(self.request)
        except RuntimeError as error:
            print(error)
        self.connection.close()
        print("ended", flush=True)

connection = connect_sync(sys.argv[1])
connection.open()
sys.modules["owner"] = Owner(connection)  # so it lives until Python ends
"""


def test_a_finalizer_where_python_ends_does_not_wait_for_ever() -> None:
    """The thread of the connection does not run any more then."""
    broker = Broker(of_release("4.4"))
    with serving(broker):
        child = subprocess.run(
            [sys.executable, "-c", AT_EXIT, broker.address], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert child.stdout == "Python ends: the connection's thread does not run any more\nended\n", child.stderr


def test_a_send_keeps_its_timeout_also_after_error_35() -> None:
    async def work() -> None:
        def refuse(request: Any) -> Any:
            return messages.EndTxnResponse(error_code=35)

        broker = Broker(of_release("4.3"), refuse)
        async with broker, connect(broker.address, probe_timeout=60) as connection:
            broker.negotiate = lambda _: None  # type: ignore[method-assign] # silent from now on
            begin = time.monotonic()
            answer = await connection.send(messages.EndTxnRequest(), timeout=0.3)
            assert answer.error_code == 35 and connection.is_open and time.monotonic() - begin < 10

    run(work())


@pytest.mark.parametrize("make", [connect, connect_sync, Cluster])
@pytest.mark.parametrize("wrong", [{"timeout": "x"}, {"tls": 3}, {"deny": 3}])
def test_the_locals_of_a_wrong_argument_can_be_shown(make: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as caught:
        make("localhost:9092", **wrong)
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "not made>" in "".join(shown.format())


@pytest.mark.parametrize("line", ["sasl.jaas.config=x required password=hunter2 ==;", "sasl.jaas.config=hunter2 \\u00"])
def test_the_locals_of_a_wrong_file_hold_no_password(tmp_path: Path, line: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{line}\n")
    with pytest.raises(BrokerConnectionError) as caught:
        read_config(path)
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [frame for frame in shown.stack if frame.name == "read_config"]
    assert frames and "hunter2" not in str([frame.locals for frame in shown.stack if frame.filename != __file__])
