"""TLS and SASL with real brokers: 4.4.0 with every mechanism and PEM stores, 0.11.0.3 with tokens without header."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from kwire import messages
from kwire.net import AuthenticationError, BrokerConnectionError, Cluster, connect, keywords_of
from tests.net.test_brokers import kwire_versions
from tools.kafka import broker, tool

pytestmark = pytest.mark.java

USER, PASSWORD = "alice", "sesame-open"
METADATA = messages.MetadataRequest(topics=[])
MODULE = "org.apache.kafka.common.security"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def address(port: int) -> str:
    return f"{broker.HOST}:{port}"


def token() -> str:
    login = f'{MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";'
    found = keywords_of(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": login}
    )
    return str(found["sasl"]._callback())


class Secured:
    """A broker of 4.4.0 with listeners for SASL (sasl), TLS (tls) and both."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        server = authority.issue_cert(broker.HOST)
        key = load_pem_private_key(server.private_key_pem.bytes(), None)
        store = folder / "server.pem"
        store.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + b"".join(part.bytes() for part in server.cert_chain_pems)
        )
        self.trust = authority.cert_pem.bytes().decode()
        self.sasl, self.tls, self.both = broker.free_ports(3)
        bearer = f'{MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="kafka";'
        properties = {}
        for name in ("saslin", "both"):
            prefix = f"listener.name.{name}"
            scram = f"{MODULE}.scram.ScramLoginModule required;"
            properties |= {
                f"{prefix}.sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
                f"{prefix}.plain.sasl.jaas.config":
                    f'{MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
                f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
                f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
                f"{prefix}.oauthbearer.sasl.jaas.config": bearer,
                f"{prefix}.plain.connections.max.reauth.ms": "1500",
            }
        for name in ("tlsin", "both"):
            prefix = f"listener.name.{name}.ssl.keystore"
            properties |= {f"{prefix}.type": "PEM", f"{prefix}.location": str(store)}
        listeners = [
            f"{name}:{protocol}:{port}:{port}"
            for name, protocol, port in (
                ("SASLIN", "SASL_PLAINTEXT", self.sasl), ("TLSIN", "SSL", self.tls), ("BOTH", "SASL_SSL", self.both)
            )
        ]  # fmt: skip
        self.state = broker.start(
            broker.Options("4.4.0", folder / "broker", heap="256m", c1=True, properties=properties,
                           extra_listeners=listeners)
        )  # fmt: skip

    def pem(self, protocol: str = "SSL") -> dict[str, str]:
        return {
            "security.protocol": protocol, "ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.trust
        }


async def make_users(where: str) -> None:
    """SCRAM credentials, by kwire itself."""
    kind = messages.AlterUserScramCredentialsRequest
    async with Cluster(where) as cluster:
        for number, name in ((1, "sha256"), (2, "sha512")):
            salt = os.urandom(16)
            salted = hashlib.pbkdf2_hmac(name, PASSWORD.encode(), salt, 4096)
            user = kind.ScramCredentialUpsertion(
                name=USER, mechanism=number, iterations=4096, salt=salt, salted_password=salted
            )
            (done,) = (await cluster.send(kind(upsertions=[user]), to="controller")).results
            assert done.error_code == 0, done


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    with made.state:
        asyncio.run(make_users(made.state.bootstrap))
        yield made


def test_every_mechanism(secured: Secured) -> None:
    async def work() -> None:
        ways: list[Any] = [(name, USER, PASSWORD) for name in MECHANISMS]
        for how in [*ways, token]:
            async with Cluster(address(secured.sasl), sasl=how) as cluster:
                assert (await cluster.send(METADATA)).brokers[0].port == secured.sasl
            async with connect(address(secured.both), sasl=how, **keywords_of(secured.pem())) as connection:
                assert (await connection.send(METADATA)).brokers[0].port == secured.both
        for name in MECHANISMS:
            with pytest.raises(AuthenticationError) as caught:
                async with connect(address(secured.sasl), sasl=(name, USER, "secret-guess")):
                    pass
            assert f"{name} authentication of user 'alice' failed: SASL_AUTHENTICATION_FAILED" in str(caught.value)
            assert "secret-guess" not in str(caught.value)
        with pytest.raises(AuthenticationError, match="OAUTHBEARER authentication failed"):
            async with connect(address(secured.sasl), sasl=lambda: "no.token.at-all"):
                pass
        with pytest.raises(BrokerConnectionError):  # no login where one is wanted
            async with connect(address(secured.sasl), timeout=5) as connection:
                await connection.send(METADATA)

    asyncio.run(work())


def test_lives_longer_than_the_session(secured: Secured) -> None:
    async def work() -> None:
        async with connect(address(secured.sasl), sasl=("PLAIN", USER, PASSWORD)) as connection:
            channel = connection._channel
            for _ in range(40):
                await connection.send(METADATA)
                await asyncio.sleep(0.1)
            assert connection._channel is channel

    asyncio.run(work())


def test_tls(secured: Secured) -> None:
    async def work() -> None:
        async with Cluster(address(secured.tls), **keywords_of(secured.pem())) as cluster:
            assert (await cluster.send(METADATA)).brokers[0].port == secured.tls
        with pytest.raises(BrokerConnectionError, match="TLS: the certificate is not trusted"):
            async with connect(address(secured.tls), tls=True):
                pass
        with pytest.raises(BrokerConnectionError, match="TLS"):  # spoken to in plain
            async with connect(address(secured.tls), timeout=5):
                pass
        with pytest.raises(BrokerConnectionError, match="TLS"):  # and the other way round
            async with connect(secured.state.bootstrap, tls=True, timeout=5):
                pass

    asyncio.run(work())


def test_the_command(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    login = f'{MODULE}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";'
    how = secured.pem("SASL_SSL") | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login}
    file.write_text("\n".join(f"{name}={value.strip()}".replace("\n", "\\n\\\n") for name, value in how.items()))
    out, _ = kwire_versions(address(secured.both), "--command-config", str(file))
    assert f"{address(secured.both)} (id: 1 rack: null isFenced: false) -> (" in out


def test_tokens_without_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = tmp_path / "login.conf"
    login.write_text(
        f'KafkaServer {{\n  {MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";\n'
        f"  {MODULE}.scram.ScramLoginModule required;\n}};\n"
    )
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.auth.login.config={login}")
    port = broker.free_ports(1)[0]
    options = broker.Options(
        "0.11.0.3", tmp_path / "broker", heap="256m", c1=True, extra_listeners=[f"SASLIN:SASL_PLAINTEXT:{port}:{port}"],
        properties={"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"},
    )  # fmt: skip

    async def work() -> None:
        for name in ("PLAIN", "SCRAM-SHA-256"):
            async with Cluster(address(port), sasl=(name, USER, PASSWORD)) as cluster:
                assert (await cluster.send(METADATA)).brokers[0].port == port
            with pytest.raises(AuthenticationError) as caught:
                async with connect(address(port), sasl=(name, USER, "secret-guess")):
                    pass
            assert "secret-guess" not in str(caught.value)

    with broker.start(options) as state:
        done = tool.run(
            "0.11.0.3", "configs", "--zookeeper", f"{broker.HOST}:{state.zookeeper_port}", "--alter",
            "--add-config", f"SCRAM-SHA-256=[iterations=4096,password={PASSWORD}]",
            "--entity-type", "users", "--entity-name", USER,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        asyncio.run(work())
