"""Errors that say that a broker may want a client certificate."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import trustme

from kwire.fleet import Fleet
from kwire.net import BrokerConnectionError, connect_sync
from tests.net.fake import HOST

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def contexts(authority: trustme.CA, version: ssl.TLSVersion) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a server that wants a certificate, and of a client that has none."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(HOST).configure_cert(server)
    for context in (server, client):
        authority.configure_trust(context)
    server.verify_mode = ssl.CERT_REQUIRED
    server.maximum_version = version
    return server, client


@contextmanager
def refusing(context: ssl.SSLContext) -> Iterator[str]:
    """A server that tells its clients, by an alert, why it refuses them."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), connection, context.wrap_socket(connection, server_side=True):
                    pass

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"{HOST}:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("tells", [True, False])
def test_a_broker_that_wants_a_client_certificate(authority: trustme.CA, version: ssl.TLSVersion, tells: bool) -> None:
    server, client = contexts(authority, version)
    if tells:
        with refusing(server) as address, pytest.raises(BrokerConnectionError, match="client certificate"):
            connect_sync(address, tls=client, timeout=10).open()
    else:
        with Fleet("4.4", tls=server) as fleet, pytest.raises(BrokerConnectionError, match="client certificate"):
            connect_sync(fleet.bootstrap, tls=client, timeout=10).open()
