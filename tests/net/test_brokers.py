"""Real brokers, one release after another on one port: API versions, KIP-97's test plan, the rolling upgrade."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire import messages, schema
from kwire.net import Cluster, connect
from kwire.net.api_versions import NodeApiVersions
from kwire.net.compatibility import match_release
from tests.cli.test_versions import KIP97
from tests.net.fake import of_release
from tests.net.plan import whole_plan
from tests.net.texts import texts, without_port
from tools.kafka import broker, maven, tool
from tools.places import ROOT

pytestmark = pytest.mark.java

ALL = [
    "0.9.0.1", "0.10.0.1", "0.10.1.1", "0.11.0.3", "1.1.1", "2.2.2", "2.8.2", "3.3.2", "3.9.1", "4.0.1", "4.3.0",
    "4.4.0",
]
SOME = ["0.9.0.1", "2.2.2", "4.4.0"]
ASSUMED = {"assume_release": "0.9.0.1", "probe_timeout": 1.0, "timeout": 30}


@pytest.fixture(scope="session", autouse=True)
def _needs_java() -> None:
    try:
        maven.java()
    except maven.MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)


def kwire_versions(address: str, *arguments: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "kwire", "versions", "--bootstrap-server", address, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def start(release: str, folder: Path, port: int) -> broker.Running:
    properties = {"delete.topic.enable": "true"} if release.startswith("0.") else {}
    return broker.start(broker.Options(release, folder, port=port, heap="256m", c1=True, properties=properties))


def check_text(release: str, address: str) -> None:
    """`kwire versions` prints what the tool of 4.3.0 does; the one of 4.4 where that release's clients wrote it."""
    if release == "0.9.0.1":  # that tool fails there
        out, _ = kwire_versions(address, "--as", "4.3", "--assume-release", "0.9.0.1")
        assert "-> assumed 0.9.0 (" in out and "\tFetch(1): 0 to 1 [unusable: node too old],\n" in out
        return
    wanted = texts().get(("4.3.0", release))
    if wanted is None:
        done = tool.run("4.3.0", "api-versions", "--bootstrap-server", address)
        assert done.returncode == 0, done.stderr
        wanted = done.stdout.decode()
    out, err = kwire_versions(address, "--as", "4.3")
    assert without_port(out) == without_port(wanted)
    assert schema.release_name(release) in err
    if release == "0.10.1.1":  # the broker of KIP-97's own listing
        out, _ = kwire_versions(address, "--kip97")
        assert out.splitlines()[1:] == KIP97.splitlines()[1:]
    if release == "4.4.0":
        assert without_port(kwire_versions(address)[0]) == without_port(texts()["4.4.0", release])


async def rolls(releases: list[str], folder: Path) -> None:
    """One connection lives through all releases; it negotiates with each, and the whole plan runs on it."""
    port = broker.free_ports(1)[0]
    address = f"{broker.HOST}:{port}"
    seen: list[Any] = []
    connection = connect(address, **ASSUMED)
    try:
        for release in releases:
            state = await asyncio.to_thread(start, release, folder / release, port)
            try:
                await connection.send(messages.MetadataRequest(topics=[]))
                api_versions: NodeApiVersions = connection.api_versions
                match = match_release(api_versions)
                assert schema.release_name(release) in match.releases, (release, match)
                assert connection.assumed == ("0.9.0" if release == "0.9.0.1" else None)
                seen.append(connection.versions["Fetch"])
                await asyncio.to_thread(check_text, release, address)
                async with Cluster(address, **ASSUMED) as cluster:
                    await whole_plan(cluster, release, f"plan-{release}")
            finally:
                await asyncio.to_thread(broker.stop, Path(state.dir))
            while connection.is_open:
                await asyncio.sleep(0.01)
    finally:
        await connection.close()
    assert seen == [of_release(schema.release_name(release))["Fetch"] for release in releases]


def test_oldest_middle_and_newest(tmp_path: Path) -> None:
    asyncio.run(rolls(SOME, tmp_path))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_all(tmp_path: Path) -> None:
    asyncio.run(rolls(ALL, tmp_path))
