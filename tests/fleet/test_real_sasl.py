"""What clients say before they are let in, and on a port of another protocol: a fleet answers as real brokers do."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from kwire import messages
from kwire.fleet import Fleet
from kwire.net import connect_sync
from tests.fleet import dialogue_sasl
from tests.fleet.dialogue_sasl import MECHANISMS, OTHER, PASSWORD, USER
from tools.kafka import broker

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(600)]
MODULE = "org.apache.kafka.common.security"
# before 3.7.2 the nonce of a final message is not looked at (CVE-2024-56128), and its proof is
DIFFERENT = {"2.8.2": ("another nonce",)}


def make_users(bootstrap: str) -> None:
    kind = messages.AlterUserScramCredentialsRequest
    with connect_sync(bootstrap) as connection:
        for user in (USER, OTHER):
            for number, name in ((1, "sha256"), (2, "sha512")):
                salt = os.urandom(16)
                salted = hashlib.pbkdf2_hmac(name, PASSWORD.encode(), salt, 4096)
                done: Any = connection.send(kind(upsertions=[kind.ScramCredentialUpsertion(
                    name=user, mechanism=number, iterations=4096, salt=salt, salted_password=salted)]))
                assert not done.results[0].error_code


@pytest.mark.parametrize("release", ["4.4.0", "4.3.0", "3.9.1", "2.8.2"])
def test_logins_are_those_of_a_real_broker(release: str, tmp_path: Path) -> None:
    with Fleet(release, sasl={USER: PASSWORD, OTHER: PASSWORD}) as fleet:
        ours = dialogue_sasl.play(fleet.nodes[0].port, release)
        assert [event for event in fleet.events if event["event"] == "failed"] == []
    (port,) = broker.free_ports(1)
    prefix = "listener.name.saslin"
    scram = f"{MODULE}.scram.ScramLoginModule required;"
    properties = {
        f"{prefix}.sasl.enabled.mechanisms": ",".join(MECHANISMS), "connection.failed.authentication.delay.ms": "0",
        f"{prefix}.plain.sasl.jaas.config": f'{MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}" '
                                            f'user_{OTHER}="{PASSWORD}";',
        f"{prefix}.scram-sha-256.sasl.jaas.config": scram, f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
    }  # fmt: skip
    with broker.start(broker.Options(
            release, tmp_path, heap="256m", c1=True, properties=properties,
            extra_listeners=[f"SASLIN:SASL_PLAINTEXT:{port}:{port}"])) as state:
        make_users(state.bootstrap)
        real = dialogue_sasl.play(port, release)
    assert [step for step, _ in ours] == [step for step, _ in real] and len(ours) > 600
    assert [(step, mine, theirs) for (step, mine), (_, theirs) in zip(ours, real, strict=True)
            if mine != theirs and not any(name in step for name in DIFFERENT.get(release, ()))] == []


def on_another_protocol(plain: int, tls: int) -> list[str]:
    """How connections end that speak TLS to a plain listener, and not TLS to one of TLS."""
    ends = []
    request = b"\0\0\0\x0d\0\x03\0\x00\0\0\0\x01\0\x01c\0\0"
    for data in (request, b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 70_000,
                 b"\x15\x03\x01\0\x02\x01\0"):
        with socket.create_connection(("127.0.0.1", tls), timeout=20) as client:
            client.sendall(data)
            ends.append(end_of(client))
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        unchecked.minimum_version = unchecked.maximum_version = version
        with socket.create_connection(("127.0.0.1", plain), timeout=20) as client:
            try:
                unchecked.wrap_socket(client)
            except OSError:
                ends.append("no handshake")
        with (
            socket.create_connection(("127.0.0.1", tls), timeout=20) as client,
            unchecked.wrap_socket(client) as inside,
        ):
            ends.append(str(inside.version()))
            inside.sendall(request)
            ends.append("answer" if len(inside.recv(8)) else "end")
    return ends


def end_of(client: socket.socket) -> str:
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return "end"


def test_another_protocol_than_the_listeners(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert(broker.HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with Fleet("4.3.0", tls=context) as inside, Fleet("4.3.0") as plain:
        ours = on_another_protocol(plain.nodes[0].port, inside.nodes[0].port)
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    store = tmp_path / "server.pem"
    store.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + b"".join(part.bytes() for part in certificate.cert_chain_pems))
    (port,) = broker.free_ports(1)
    prefix = "listener.name.tlsin.ssl.keystore"
    with broker.start(broker.Options(
            "4.3.0", tmp_path / "broker", heap="256m", c1=True, extra_listeners=[f"TLSIN:SSL:{port}:{port}"],
            properties={f"{prefix}.type": "PEM", f"{prefix}.location": str(store)})) as state:
        real = on_another_protocol(state.ports[0], port)
    assert ours == real
