"""Every script in examples/ runs, and imports only what a user may import."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kwire import messages
from kwire.codec.frames import Request
from tests.net.fake import Broker, of_release, serving

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PUBLIC = {"kwire", "kwire.capture", "kwire.net", "kwire.schema", "kwire.spark", "kwire.storage"}
OURS = {"kwire", "kwire_c", *(path.parent.name for path in ROOT.glob("*/__init__.py"))}


def run(name: str, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.quick
def test_request_and_response() -> None:
    out = run("request_and_response.py").splitlines()
    assert out[0].startswith("request bytes:  00 00 00 2e 00 03 00 0c 00 00 00 07 ")
    assert out[1] == "broker decodes: Metadata version 12 from example"
    assert out[2] == "client decodes: orders with leaders {0: 1}"
    assert out[4].startswith("version 0:      MetadataRequest v0 .topics: ")


@pytest.mark.quick
def test_read_segment() -> None:
    out = run("read_segment.py")
    assert "findings: []" in out
    assert "offsets 200 to 299, zstd\n198 1700000000098 b'customer-98'" in out
    assert out.endswith("300 rows of offset, value\n")


def test_read_segment_of_a_broker(golden: Path) -> None:
    out = run("read_segment.py", str(golden / "data/kafka-4.3.0/data1/alpha-zstd-0/00000000000000000000.log"))
    assert out.startswith("alpha-zstd, partition 0: ") and "\nfindings: []\n" in out


@pytest.mark.quick
@pytest.mark.parametrize("release", ["2.8", "4.3"])
def test_broker_versions(release: str) -> None:
    def answer(request: Request) -> object:
        row = messages.MetadataResponse.MetadataResponseBroker(node_id=5, host="example", port=9092)
        return messages.MetadataResponse(brokers=[row])

    with serving(broker := Broker(of_release(release), answer)):
        out = run("broker_versions.py", broker.address)
    assert f"looks like Kafka {release}\n" in out
    assert "broker 5 at example:9092\n" in out
    assert ("ShareFetch" in out.splitlines()[-1]) == (release == "2.8")


def test_segments_to_dataframe(tmp_path: Path) -> None:
    out = run("segments_to_dataframe.py", "--output", str(tmp_path))
    assert "|alpha-tx          |2         |91     |0         |7883       |42       |" in out
    assert "(21,571 records)" in out and "Throughput: " in out
    assert (tmp_path / "records.png").stat().st_size > 10_000
    assert list(tmp_path.glob("records.parquet/topic=alpha-tx/*.parquet"))


@pytest.mark.quick
def test_each_is_run_here() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert names and all(f'"{name}"' in tests for name in names)


@pytest.mark.quick
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_imports_only_public_names(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in (alias.name for alias in node.names):
                assert name.split(".")[0] not in OURS or name in PUBLIC, name
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in OURS:
            assert node.module in PUBLIC, node.module
            public = {*import_module(node.module).__all__, "java", "messages", "schema"}
            assert public.issuperset(alias.name for alias in node.names), node.module
