"""A client's configuration as a properties file (--command-config), turned into keywords of connect()."""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from kwire.codec.arguments import check_type
from kwire.errors import LimitError
from kwire.net.connection import Options
from kwire.net.errors import AuthenticationError, BrokerConnectionError
from kwire.net.sasl import MECHANISMS, Credentials, TokenCallback, credentials
from kwire.net.tls import context_of
from kwire.properties import configuration_bytes, parse_properties
from kwire_c.printable import brief
from kwire_c.secrets import SECRET_SETTING

# Kafka's types STRING and LIST, whose values Java trims; passwords and certificates are taken as they are
_TRIMMED = (
    "security.protocol", "sasl.mechanism", "client.id", "ssl.truststore.location", "ssl.truststore.type",
    "ssl.keystore.location", "ssl.keystore.type", "ssl.endpoint.identification.algorithm", "ssl.enabled.protocols",
)  # fmt: skip
_BLANK = "".join(map(chr, range(ord(" ") + 1)))
_READ = ("security.protocol", "ssl.", "sasl.", "client.id", "request.timeout.ms")
_MOST_TIMEOUT = (1 << 31) - 1  # ms
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# possessive: linear time; quoted as java.io.StreamTokenizer reads it
_OPTION = re.compile(
    r"""(?<![\w.$-])([\w.$-]++)\s*+=\s*+("(?:[^"\\\r\n]|\\.)*+"|'(?:[^'\\\r\n]|\\.)*+'|[^\s;"']++)""")
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SETTING = re.compile(r"(?<![\w.-])([\w.-]++)(?:\s*+[=:]|\s)")  # a name and what separates it from its value
_OURS = re.compile(r"(?:ssl|sasl)\.")
_ENTRY = re.compile(r"[\w.$]++\s++(?:required|requisite|sufficient|optional)\b", re.I)


def read_config(path: str | Path) -> Options:
    """The keywords of connect() in a properties file; see keywords_of.

    Raises OSError for a file that cannot be read, BrokerConnectionError for invalid properties, LimitError for a file
    of more than 16 MiB.
    """
    check_type(path, (str, os.PathLike), "path", "a str or os.PathLike")
    try:  # raised here, where no local variable holds a secret: some tools show those of a traceback
        return keywords_of(_properties_in(path))
    except LimitError as error:
        raise error.with_traceback(None) from None
    except BrokerConnectionError as error:
        raise type(error)(error.reason, address=str(path)) from None
    except ValueError as error:
        raise BrokerConnectionError(f"{path}: {error}") from None


def _properties_in(path: str | Path) -> dict[str, str]:
    data = configuration_bytes(path)
    try:
        return parse_properties(data.decode())
    except UnicodeDecodeError:  # as java.util.Properties does
        return parse_properties(data.decode("latin-1"))


def keywords_of(properties: Mapping[str, str]) -> Options:
    """The keywords of connect() in a client's properties.

    Read are security.protocol, ssl.* (PEM), sasl.mechanism, sasl.jaas.config, client.id and request.timeout.ms; others
    are ignored. Raises AuthenticationError and BrokerConnectionError for invalid values.
    """
    check_type(properties, Mapping, "properties", "a mapping of str to str")
    for name in properties:
        if isinstance(name, str) and name.startswith(_READ):
            check_type(properties[name], str, f"properties[{brief(name)}]", "a str")
            if not SECRET_SETTING.search(name) and _holds_secret(properties[name]):
                raise BrokerConnectionError(
                    f"{name}: its value holds another setting, with a secret: is a line end missing before that one?")
    properties = {**properties, **{name: properties[name].strip(_BLANK) for name in _TRIMMED if name in properties}}
    keywords: Options = {}
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        known = ", ".join(_PROTOCOLS)
        raise BrokerConnectionError(f"invalid security.protocol{_shown(protocol)}: expected one of {known}")
    if protocol.endswith("SSL"):
        keywords["tls"] = context_of(properties)
    if protocol.startswith("SASL"):
        keywords["sasl"] = _sasl(properties)
    if "client.id" in properties:
        keywords["client_id"] = properties["client.id"]
    if "request.timeout.ms" in properties:
        text = properties["request.timeout.ms"].strip()
        if not (len(text) <= 10 and text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_TIMEOUT):
            raise BrokerConnectionError(
                f"invalid request.timeout.ms{_shown(text)}: expected 1 to {_MOST_TIMEOUT} milliseconds")
        keywords["timeout"] = int(text) / 1000
    return keywords


def _holds_secret(value: str) -> bool:
    """Whether a value has taken in the line of a secret: after a backslash, or a lost line end."""
    return any(SECRET_SETTING.search(name) and _OURS.search(name) for name in _SETTING.findall(value))


def _shown(value: str) -> str:
    """A value for an error, if it is a plain name: after a lost line end the password may follow it."""
    return f" {value}" if re.fullmatch(r"[\w.-]{1,30}", value) else ""


def _sasl(properties: Mapping[str, str]) -> Credentials | None:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise AuthenticationError(f"unsupported sasl.mechanism{_shown(mechanism)}: expected one of {known}")
    entry = properties.get("sasl.jaas.config")
    if entry is None:
        raise AuthenticationError("sasl.jaas.config is missing")
    options = jaas_options(entry)
    if mechanism == "OAUTHBEARER":
        return credentials(_unsecured(options))
    lacking = [name for name in ("username", "password") if name not in options]
    if lacking:
        raise AuthenticationError(f"sasl.jaas.config has no {lacking[0]}")
    if mechanism.startswith("SCRAM") and options.get("tokenauth", "").lower() == "true":
        raise AuthenticationError("sasl.jaas.config has tokenauth: a login by delegation token is not supported")
    return credentials((mechanism, options["username"], options["password"]))


def jaas_options(text: str) -> dict[str, str]:
    """The options of a JAAS entry: `org.apache...PlainLoginModule required username="me" password="...";`.

    Raises AuthenticationError, whose text does not quote the entry.
    """
    entry = text.strip().removesuffix(";")
    module = _ENTRY.match(entry)
    options = "" if module is None else entry[module.end() :]
    if module is None or _OPTION.sub("", options).strip():
        raise AuthenticationError(
            'invalid sasl.jaas.config: expected MODULE required username="..." password="...";'
        )
    return {name: _unquoted(value) for name, value in _OPTION.findall(options)}


def _unquoted(value: str) -> str:
    """The text of a value: in quotes of either kind with Java's escapes, else as it is."""
    if value[0] not in "\"'":
        return value
    return _ESCAPE.sub(lambda found: _unescaped(found[1]), value[1:-1])


def _unescaped(code: str) -> str:
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)


def _unsecured(options: Mapping[str, str]) -> TokenCallback:
    """Kafka's unsecured tokens, for tests (unsecuredLoginStringClaim_sub); see connect(sasl=callback) for real ones."""
    subject = options.get("unsecuredLoginStringClaim_sub")
    if subject is None:
        raise AuthenticationError(
            "OAUTHBEARER in properties supports only unsecuredLoginStringClaim_sub: for other tokens pass a function "
            "as sasl= to connect()"
        )

    text = options.get("unsecuredLoginLifetimeSeconds", "3600")
    if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", text):  # a double in Kafka
        raise AuthenticationError("sasl.jaas.config: unsecuredLoginLifetimeSeconds must be a number of seconds")
    lifetime = float(text)

    def token() -> str:
        now = int(time.time())
        claims = {"sub": subject, "iat": now, "exp": round(now + lifetime)}
        parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."

    return token
