"""Real brokers start from directories that kwire formatted, and report the levels that were asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kwire import messages
from kwire.cli import main
from kwire.net import AuthenticationError, connect
from kwire.storage.formatting import random_uuid, uuid_text
from tools.kafka import broker

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]
SCRAM = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
SECURE = {
    "listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.secure.scram-sha-256.sasl.jaas.config":
        "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "listener.name.secure.scram-sha-512.sasl.jaas.config":
        "org.apache.kafka.common.security.scram.ScramLoginModule required;",
}  # fmt: skip


def start(
    release: str, folder: Path, *flags: str, nodes: int = 1, static: bool = False, listener: str | None = None
) -> broker.Running:
    """Brokers of a release on directories that kwire has formatted with these flags."""
    free = broker.free_ports(2 * nodes)
    options = broker.Options(
        release, folder, nodes, heap="256m", c1=True, static=static, restart=True,
        properties=SECURE if listener else {}, extra_listeners=[listener] if listener else [],
    )
    state = broker.Running(release, str(folder), "kraft", [], free[:nodes], free[nodes:], uuid_text(random_uuid()), 0)
    folder.mkdir()
    broker.configure(options, state, folder)
    quorum = []
    if options.dynamic and nodes == 1:
        quorum = ["--standalone"]
    elif options.dynamic:
        ids = [uuid_text(random_uuid()) for _ in range(nodes)]
        rows = enumerate(zip(state.controller_ports, ids, strict=True), 1)
        quorum = ["--initial-controllers", ",".join(f"{i}@{broker.HOST}:{port}:{one}" for i, (port, one) in rows)]
    for node in range(1, nodes + 1):
        config = str(folder / f"server{node}.properties")
        command = ["storage", "format", "--as", release, "-t", state.cluster_id, "-c", config, *quorum, *flags]
        assert main(command) == 0
        assert main(["storage", "info", "--as", release, "-c", config]) == 0
    state.save()
    return broker.start(options)


def levels(bootstrap: str) -> dict[str, int]:
    """The finalized levels that a broker reports; kraft.version is among them from 3.9 on."""

    async def ask() -> dict[str, int]:
        async with connect(bootstrap.split(",")[0]) as connection:
            version = connection.versions["ApiVersions"][1]
            request = messages.ApiVersionsRequest(client_software_name="kwire", client_software_version="1")
            for _ in range(100):
                response = await connection.send(request, version=min(version, 3))
                found = {one.name: one.max_version_level for one in response.finalized_features}
                if found:
                    return found
                await asyncio.sleep(0.1)
            raise AssertionError("no finalized features")

    return asyncio.run(ask())


def log_in(address: str, *credentials: str) -> None:
    """Connect with SCRAM."""

    async def enter() -> None:
        async with connect(address, sasl=credentials) as connection:
            await connection.send(messages.MetadataRequest(topics=None))

    asyncio.run(enter())


@pytest.mark.parametrize("release", ["4.4.0", pytest.param("4.3.0", marks=pytest.mark.soak),
                                     pytest.param("3.9.1", marks=pytest.mark.soak)])  # fmt: skip
def test_standalone_with_a_scram_user(release: str, tmp_path: Path) -> None:
    (port,) = broker.free_ports(1)
    old = release.startswith("3")
    flags = ["--add-scram", SCRAM, "--add-scram", "SCRAM-SHA-512=[name=bob,iterations=8192,password=b]"]
    flags += [] if old else ["-f", "group.version=0", "-f", "transaction.version=1"]
    listener = f"SECURE:SASL_PLAINTEXT:{port}:{port}"
    with start(release, tmp_path / "broker", *flags, listener=listener) as state:
        found = levels(state.bootstrap)
        if old:
            assert found == {"metadata.version": 21, "kraft.version": 1}
        else:
            assert found == {
                "metadata.version": 33 if release == "4.4.0" else 30, "share.version": 2 if release == "4.4.0" else 1,
                "transaction.version": 1, "kraft.version": 1, "streams.version": 1,
                "eligible.leader.replicas.version": 1,
            }  # fmt: skip
        log_in(f"{broker.HOST}:{port}", "SCRAM-SHA-256", "alice", "alice-secret")
        log_in(f"{broker.HOST}:{port}", "SCRAM-SHA-512", "bob", "b")
        with pytest.raises(AuthenticationError):
            log_in(f"{broker.HOST}:{port}", "SCRAM-SHA-256", "alice", "another")


@pytest.mark.parametrize("release, flags, wanted", [
    ("3.3.2", ["-r", "3.3-IV2"], {"metadata.version": 6}),
    pytest.param("3.9.1", ["-r", "3.6"], {"metadata.version": 14}, marks=pytest.mark.soak),
    pytest.param("4.3.0", ["-r", "4.0"], {
        "metadata.version": 25, "group.version": 1, "transaction.version": 2}, marks=pytest.mark.soak),
    pytest.param("4.4.0", ["-f", "share.version=0", "-f", "metadata.version=31"], {
        "metadata.version": 31, "group.version": 1, "transaction.version": 2, "streams.version": 1,
        "eligible.leader.replicas.version": 1}, marks=pytest.mark.soak),
])  # fmt: skip
def test_static_voters(release: str, flags: list[str], wanted: dict[str, int], tmp_path: Path) -> None:
    with start(release, tmp_path / "broker", *flags, static=True) as state:
        assert levels(state.bootstrap) == wanted


@pytest.mark.soak
@pytest.mark.parametrize("release", ["4.4.0", "4.3.0", "3.9.1"])
def test_initial_controllers(release: str, tmp_path: Path) -> None:
    with start(release, tmp_path / "broker", nodes=3) as state:
        assert levels(state.bootstrap)["kraft.version"] == 1
