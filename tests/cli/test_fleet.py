"""`kwire fleet`: as a process, until SIGINT."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.net import connect_sync
from kwire.storage import ClusterImage

pytestmark = pytest.mark.quick


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire", "fleet", *arguments], capture_output=True, text=True, timeout=30)


def test_it_prints_where_it_is_and_ends_on_sigint() -> None:
    arguments = ["--release", "2.8", "--release", "3.9", "--topic", "t:3", "--topic", "u"]
    with subprocess.Popen(
        [sys.executable, "-m", "kwire", "fleet", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        bootstrap = process.stdout.readline().strip()
        with connect_sync(bootstrap.split(",")[0]) as connection:
            answer: Any = connection.send(messages.MetadataRequest(topics=None))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    assert [f"{one.host}:{one.port}" for one in answer.brokers] == bootstrap.split(",")
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {"t": 3, "u": 1}


def test_a_folder_keeps_the_data(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kwire", "fleet", "--data", str(tmp_path / "data"), "--topic", "t:3"],
        stdout=subprocess.PIPE, text=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline().startswith("127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    image = ClusterImage.read(tmp_path / "data" / "node-1")
    assert {name: len(topic.partitions) for name, topic in image.topics.items()} == {"t": 3}
    done = run("--data", str(tmp_path))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "holds 'data'" in done.stderr


@pytest.mark.parametrize(("arguments", "told"), [
    (["--release", "9.9"], "unknown Kafka release '9.9'"),
    (["--release", "2.8", "--release", "3.9", "--nodes", "3"], "--nodes is 3, but --release names 2 nodes"),
    (["--topic", "t:x"], "expected NAME or NAME:PARTITIONS"),
    (["--level", "metadata.version"], "expected FEATURE=LEVEL"),
])
def test_slips(arguments: list[str], told: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2 and told in done.stderr and not done.stdout
