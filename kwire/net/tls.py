"""TLS contexts: from True, or from Kafka's ssl.* properties with PEM stores."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping

from kwire.errors import LimitError
from kwire.net.errors import BrokerConnectionError
from kwire.properties import configuration_bytes

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1, "TLSv1.1": ssl.TLSVersion.TLSv1_1, "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}  # fmt: skip
_MOST_PASSWORD = 1024  # bytes, the most that the ssl module takes
_ENTRY = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-:]*)-----END \1-----")  # those with headers are left alone


def tls_context(tls: bool | ssl.SSLContext) -> ssl.SSLContext | None:
    """The context for tls=False (none), True (the system's trusted certificates, host names checked) or a context."""
    if isinstance(tls, ssl.SSLContext):
        return tls
    if tls is not None and not isinstance(tls, bool):
        raise TypeError(f"tls must be True, False or an ssl.SSLContext, not {type(tls).__name__}")
    return ssl.create_default_context() if tls else None


def context_of(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The context for Kafka's ssl.* properties; stores are PEM, in a file or in the property itself.

    Raises BrokerConnectionError for stores of other types, files that cannot be read and invalid certificates or keys,
    LimitError for a file of more than 16 MiB.
    """
    with _loading("truststore"):
        context = _context(properties)
    with _loading("keystore", " (wrong ssl.key.password?)"):
        _add_certificate(context, properties)
    names = properties.get("ssl.endpoint.identification.algorithm", "https").lower()
    if names not in ("https", "ldaps", ""):  # Java then refuses all certificates
        raise BrokerConnectionError("ssl.endpoint.identification.algorithm: expected https, or nothing")
    if not names:
        context.check_hostname = False
    enabled = [part.strip() for part in properties.get("ssl.enabled.protocols", "").split(",") if part.strip()]
    unknown = [name for name in enabled if name not in _VERSIONS]
    if unknown:
        raise BrokerConnectionError(
            f"ssl.enabled.protocols: unknown TLS version {unknown[0]!r}, expected one of {', '.join(_VERSIONS)}"
        )
    if enabled:
        context.minimum_version = min(_VERSIONS[name] for name in enabled)
        context.maximum_version = max(_VERSIONS[name] for name in enabled)
    return context


@contextlib.contextmanager
def _loading(store: str, hint: str = "") -> Iterator[None]:
    """Raise BrokerConnectionError, which names the store, for what ssl makes of one that it cannot load."""
    try:
        yield
    except ssl.SSLError as error:
        text = (error.reason or str(error)).replace("_", " ").lower()
        raise BrokerConnectionError(f"cannot load the store of ssl.{store}.*: {text}{hint}") from None
    except (BrokerConnectionError, LimitError):
        raise
    except OSError as error:
        raise BrokerConnectionError(f"{error.filename}: {error.strerror}") from None
    except ValueError:  # an empty store, a NUL in a path
        text = f"cannot load the store of ssl.{store}.*: no certificate, or an invalid path"
        raise BrokerConnectionError(text) from None


def _context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """A context that trusts only the truststore's certificates, as Kafka does; the system's if none is configured."""
    text = _store(properties, "truststore", "ssl.truststore.certificates")
    if text is None:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    text = in_lines(text).encode("ascii", "replace").decode()  # comments may be in any language
    context.load_verify_locations(cadata=text)
    return context


def _add_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Load the client's key and certificate chain, if they are configured."""
    key, chain = properties.get("ssl.keystore.key"), properties.get("ssl.keystore.certificate.chain")
    if (key is None) != (chain is None):
        raise BrokerConnectionError("ssl.keystore.key and ssl.keystore.certificate.chain must be set together")
    text = f"{key}\n{chain}\n" if key is not None else _store(properties, "keystore", "")
    if text is None:
        return
    password = properties.get("ssl.key.password", "").encode("utf-8", "replace")
    if len(password) > _MOST_PASSWORD:
        raise BrokerConnectionError(
            f"ssl.key.password: expected at most {_MOST_PASSWORD} bytes, found {len(password)}")
    with _private_file(in_lines(text)) as path:  # the ssl module loads keys from files only
        context.load_cert_chain(path, password=lambda: password)


def _store(properties: Mapping[str, str], store: str, inline: str) -> str | None:
    """The PEM text of a store, None if none is configured."""
    if inline and inline in properties:
        return properties[inline]
    path, kind = properties.get(f"ssl.{store}.location"), properties.get(f"ssl.{store}.type")
    if path is None:
        return None
    text = configuration_bytes(path, "PEM file").decode("latin-1")
    if (kind or "PEM").upper() != "PEM" or "-----BEGIN" not in text:
        raise BrokerConnectionError(
            f"{path}: not a PEM file (ssl.{store}.type={kind or 'not set'}): kwire reads PEM stores only, convert it "
            "with keytool or openssl"
        )
    return text


def in_lines(text: str) -> str:
    """PEM text whose entries have the lines that OpenSSL wants.

    In properties they are often on one line, with blanks between: DefaultSslEngineFactory.PemStore takes any white
    space, and a byte order mark before the first one.
    """
    def rewritten(entry: re.Match[str]) -> str:
        data = re.findall(".{1,64}", "".join(entry[2].split()))
        return "\n".join(["", f"-----BEGIN {entry[1]}-----", *data, f"-----END {entry[1]}-----", ""])

    return _ENTRY.sub(rewritten, text)


@contextlib.contextmanager
def _private_file(text: str) -> Iterator[str]:
    """A temporary file that only this process can read; in memory where the system supports that."""
    data = text.encode("utf-8", "replace")  # an error of encode would hold the key
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("kwire"), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    handle, path = tempfile.mkstemp(prefix="kwire-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield path
    finally:
        os.unlink(path)
