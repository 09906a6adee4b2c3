"""Keys of TLS: from the properties into the context, never onto a disk."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trustme

from kwire.net.errors import BrokerConnectionError
from kwire.net.tls import context_of

pytestmark = pytest.mark.quick


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Where each key was loaded from: what the path that OpenSSL opens leads to."""
    seen: list[str] = []
    real = ssl.SSLContext.load_cert_chain

    def load(self: ssl.SSLContext, path: Any, *more: Any, **named: Any) -> None:
        seen.append(os.path.realpath(path))
        assert not list(tmp_path.iterdir())
        real(self, path, *more, **named)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return seen


def test_a_key_is_never_on_disk(loaded: list[str], tmp_path: Path) -> None:
    mine = trustme.CA().issue_cert("client.example")
    key, chain = mine.private_key_pem.bytes().decode(), mine.cert_chain_pems[0].bytes().decode()
    before = len(os.listdir("/proc/self/fd"))
    context_of({"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain})
    for wrong in (key[: len(key) // 2], "", "-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----\n"):
        with pytest.raises(BrokerConnectionError) as caught:
            context_of({"ssl.keystore.key": wrong, "ssl.keystore.certificate.chain": chain})
        assert key[60:80] not in str(caught.value)
    assert len(loaded) == 4 and all(path.startswith("/memfd:") for path in loaded), loaded
    assert not list(tmp_path.iterdir()) and len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("between", [" ", "\r", "\n  ", " \t"])
def test_entries_on_one_line(between: str) -> None:
    """As values of properties have them; kafka-clients 4.2 reads these, and a byte order mark before them."""
    authority = trustme.CA()
    mine = authority.issue_cert("client.example")
    trusted, key, chain = (blob.bytes().decode().replace("\n", between)
                           for blob in (authority.cert_pem, mine.private_key_pem, mine.cert_chain_pems[0]))
    context = context_of({
        "ssl.truststore.certificates": f"\xef\xbb\xbf{trusted} {trusted}", "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
    })  # fmt: skip
    assert context.cert_store_stats()["x509_ca"] == 1
    with pytest.raises(BrokerConnectionError, match="cannot load the store of"):
        context_of({"ssl.truststore.certificates": trusted.replace("END", "NO")})
