"""Client properties with Kafka's names, and the TLS and SASL that they configure."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key

from kwire import LimitError, messages
from kwire.cli import main
from kwire.net import AuthenticationError, BrokerConnectionError, connect, keywords_of, read_config
from kwire.net.address import address
from kwire.net.config import jaas_options
from kwire.net.sasl import Credentials
from tests.limits import processor_time
from tests.net.fake import HOST, Broker, cluster_answer, of_release, run, serving
from tests.net.test_sasl import PASSWORD, USER, Guarded

pytestmark = pytest.mark.quick

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_jaas() -> None:
    text = f'{PLAIN} required\n  username="al\\"ice"\n  password="a b;c=d\\\\" other=5;'
    assert jaas_options(text) == {"username": 'al"ice', "password": "a b;c=d\\", "other": "5"}
    assert jaas_options(f"{PLAIN} required username=me password=you;") == {"username": "me", "password": "you"}
    for wrong in ("", "required;", f'{PLAIN} username="secret-guess";', f'{PLAIN} required password="secret-guess'):
        with pytest.raises(AuthenticationError) as caught:
            jaas_options(wrong)
        assert "secret-guess" not in str(caught.value)


def test_invalid_properties() -> None:
    sasl = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    for properties, reason in (
        ({"security.protocol": "TLS"}, "security.protocol TLS: expected one of PLAINTEXT, SSL"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms"),
        ({"request.timeout.ms": "2147483648"}, "request.timeout.ms 2147483648: expected 1 to 2147483647 milliseconds"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism GSSAPI"),
        (sasl, "sasl.jaas.config is missing"),
        ({**sasl, "sasl.jaas.config": f"{PLAIN} required username=u;"}, "no password"),
        ({**sasl, "sasl.mechanism": "SCRAM-SHA-256",
          "sasl.jaas.config": f'{PLAIN} required username=id password=hmac tokenauth="True";'}, "has tokenauth"),
        ({**sasl, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config":
          f"{PLAIN} required unsecuredLoginStringClaim_sub=a unsecuredLoginLifetimeSeconds=soon;"}, "of seconds"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "unknown TLS version 'SSLv3'"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere.pem"}, "/nowhere.pem: No such file"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "x"}, "must be set together"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": "x"}, r"of ssl\.truststore\.\*: .*[^?]$"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": ""}, r"of ssl\.truststore\.\*: no certificate"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "y"},
         r"of ssl\.keystore\.\*: .*\(wrong ssl\.key\.password\?\)$"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "y",
          "ssl.key.password": "p" * 1025}, r"ssl\.key\.password: expected at most 1024 bytes, found 1025$"),
    ):  # fmt: skip
        with pytest.raises(BrokerConnectionError, match=reason):
            keywords_of(properties)
    assert keywords_of({"request.timeout.ms": "2147483647"}) == {"timeout": 2147483.647}  # the most in Kafka
    assert keywords_of({"client.id": "me", "request.timeout.ms": "1500", "acks": "all"}) == {
        "client_id": "me", "timeout": 1.5,
    }  # fmt: skip


def test_stores_other_than_pem_are_named(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    for kind in ({}, {"ssl.truststore.type": "JKS"}):
        with pytest.raises(BrokerConnectionError, match=r"trust\.jks: .*kwire reads PEM stores only"):
            keywords_of({"security.protocol": "SSL", "ssl.truststore.location": str(store), **kind})


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def broker_with(authority: trustme.CA, name: str = HOST, wants_client: bool = False) -> Broker:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    if wants_client:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    broker = Broker(of_release("4.4"), tls=context)
    broker.answer = cluster_answer(broker)
    return broker


def opened(broker: Broker, properties: dict[str, str]) -> None:
    async def work() -> None:
        async with broker, connect(broker.address, timeout=3, **keywords_of(properties)) as connection:
            await connection.send(messages.MetadataRequest(topics=[]))
        await asyncio.sleep(0.05)

    run(work())


def test_trust(authority: trustme.CA, tmp_path: Path) -> None:
    pem = authority.cert_pem.bytes().decode()
    file = tmp_path / "trust.pem"
    file.write_text(pem)
    tls = {"security.protocol": "SSL"}
    opened(broker_with(authority), {**tls, "ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem})
    trusting = {**tls, "ssl.truststore.type": "PEM", "ssl.truststore.location": str(file)}
    opened(broker_with(authority), {**trusting, "ssl.enabled.protocols": "TLSv1.2,TLSv1.3"})
    with pytest.raises(BrokerConnectionError, match="TLS: the certificate is not trusted"):
        opened(broker_with(trustme.CA()), trusting)
    with pytest.raises(BrokerConnectionError, match=r"not trusted: .*not valid for '127"):
        opened(broker_with(authority, "other.example"), trusting)
    names = "ssl.endpoint.identification.algorithm"
    for nothing in ("", " "):
        opened(broker_with(authority, "other.example"), {**trusting, names: nothing})
    for checked in ("https ", " HTTPS\t", "ldaps"):
        with pytest.raises(BrokerConnectionError, match=r"not trusted: .*not valid for '127"):
            opened(broker_with(authority, "other.example"), {**trusting, names: checked})


@pytest.mark.parametrize("names", ["http", "none", "https\u00a0", "secret-guess"])
def test_names_are_not_left_unchecked_by_mistake(names: str) -> None:
    with pytest.raises(BrokerConnectionError, match="expected https, or nothing") as caught:
        keywords_of({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": names})
    assert "guess" not in str(caught.value)


def test_texts_are_trimmed_as_kafka_does_and_passwords_are_not(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=sasl_plaintext \nsasl.mechanism=PLAIN\t\nclient.id=me \n"
                    f"sasl.jaas.config={PLAIN} required username=\"alice \" password=\" b \"; \n")
    keywords = read_config(file)
    sasl = keywords["sasl"]
    assert isinstance(sasl, Credentials) and next(sasl._plain()) == b"\0alice \0 b "
    assert (sasl.mechanism, keywords["client_id"], set(keywords)) == ("PLAIN", "me", {"sasl", "client_id"})


@pytest.mark.parametrize("form", ["file", "properties", "encrypted"])
def test_a_certificate_of_the_client(authority: trustme.CA, tmp_path: Path, form: str) -> None:
    mine = authority.issue_cert("client.example")
    key, chain = mine.private_key_pem.bytes(), b"".join(part.bytes() for part in mine.cert_chain_pems)
    how = {"security.protocol": "SSL", "ssl.truststore.certificates": authority.cert_pem.bytes().decode()}
    if form == "file":
        (tmp_path / "key.pem").write_bytes(key + chain)
        how |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "key.pem")}
    else:
        if form == "encrypted":
            secret = BestAvailableEncryption(b"secret-guess")
            key = load_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)
            with pytest.raises(BrokerConnectionError, match=r"ssl\.key\.password"):
                keywords_of(
                    {**how, "ssl.keystore.key": key.decode(), "ssl.keystore.certificate.chain": chain.decode()}
                )
            how["ssl.key.password"] = "secret-guess"
        how |= {"ssl.keystore.key": key.decode(), "ssl.keystore.certificate.chain": chain.decode()}
    opened(broker_with(authority, wants_client=True), how)
    assert not list(Path("/tmp").glob("kwire-*pem*"))


def test_the_command_takes_a_file(capsys: Any, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    login = f'{SCRAM} required \\\n  username="{USER}" \\\n  password="{PASSWORD}";'
    how = "# who\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config="
    file.write_text(f"{how}{login}\n")
    assert repr(read_config(file)) == "{'sasl': Credentials('SCRAM-SHA-256', 'alice', password=...)}"
    broker = Guarded("4.4", "SCRAM-SHA-256")
    with serving(broker):
        command = ["versions", "--bootstrap-server", broker.address, "--command-config", str(file)]
        assert main(command) == 0
        assert "Fetch(1): 4 to 18" in capsys.readouterr().out
        file.write_text(file.read_text().replace(PASSWORD, "secret-guess"))
        assert main(command) == 1
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1 and "authentication of user 'alice' failed" in said.err
        assert broker.address in said.err and "secret-guess" not in said.err
        for text, wrong in (("a=\\u12", "Malformed"), ("security.protocol=TLS", "invalid security.protocol TLS"),
                            ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing")):
            file.write_text(text)
            assert main(command) == 2
            said = capsys.readouterr()
            assert (said.out, said.err.count("\n")) == ("", 1) and "client.properties" in said.err
            assert wrong in said.err and "Invalid value for '--command-config'" in said.err


def test_unsecured_tokens() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    login = f'{module} required unsecuredLoginStringClaim_sub="alice";'
    made = keywords_of(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": login}
    )["sasl"]
    header, claims, signature = made._callback().split(".")
    assert signature == "" and json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"] == "alice"




def test_files_that_never_end(tmp_path: Path) -> None:
    """A device, or a file of the wrong kind: neither is read to its end."""
    properties = {"security.protocol": "SSL", "ssl.truststore.location": "/dev/zero", "ssl.truststore.type": "PEM"}
    for work in (lambda: read_config("/dev/zero"), lambda: keywords_of(properties)):
        with pytest.raises(LimitError, match="/dev/zero: too large"):
            work()


def test_a_truststore_may_have_comments_in_any_language(tmp_path: Path) -> None:
    import trustme

    pem = trustme.CA().cert_pem.bytes()
    file = tmp_path / "ca.pem"
    file.write_bytes("# Müller\n".encode() + pem)
    tls = keywords_of({"security.protocol": "SSL", "ssl.truststore.location": str(file)})["tls"]
    assert isinstance(tls, ssl.SSLContext) and len(tls.get_ca_certs()) == 1


@pytest.mark.parametrize("more", [
    {"ssl.truststore.certificates": ""}, {"ssl.truststore.location": "a\0b"}, {"request.timeout.ms": "9" * 5000},
    {"request.timeout.ms": "9" * 400}, {"ssl.keystore.key": "key\ud800", "ssl.keystore.certificate.chain": "c"},
])  # fmt: skip
def test_properties_that_cannot_be_used_are_errors_of_the_family(more: dict[str, str]) -> None:
    with pytest.raises(BrokerConnectionError) as caught:
        keywords_of({"security.protocol": "SSL", **more})
    assert not isinstance(caught.value.__context__, UnicodeError)


@pytest.mark.parametrize(("text", "password"), [  # as Kafka 4.4's JaasContext reads them
    ("'a b'", "a b"), ("''", ""), ("'say \"no\"'", 'say "no"'), ("\"it's\"", "it's"), ("'it\\'s'", "it's"),
    ('"a\\tb\\n"', "a\tb\n"), ('"\\101\\400\\18\\0"', "A 0\x018\0"), ('"\\x\\\\"', "x\\"), ("'#;='", "#;="),
])  # fmt: skip
def test_jaas_quotes_and_escapes_are_those_of_java(text: str, password: str) -> None:
    assert jaas_options(f"{PLAIN} required user_name=$me a-b={text} password={text};") == {
        "user_name": "$me", "a-b": password, "password": password}


@pytest.mark.parametrize("text", ["it's", "'secret-guess", '"secret-guess\n"', "\"secret-guess'"])
def test_jaas_with_a_quote_that_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(AuthenticationError) as caught:
        jaas_options(f"{PLAIN} required password={text};")
    assert "guess" not in str(caught.value)


def test_a_port_of_many_digits_is_no_address() -> None:
    with pytest.raises(BrokerConnectionError):
        address("h:" + "9" * 5000)


@pytest.mark.parametrize("text", ["a.B required " + "a" * 200_000, " " * 200_000 + "x", "a.B required " + "a " * 99_999,
                                  "a.B" + " " * 200_000, 'a.B required a="' + "\\" * 200_001])
def test_jaas_takes_linear_time(text: str) -> None:
    with processor_time(10), pytest.raises(AuthenticationError):
        jaas_options(text)


def test_properties_that_are_no_mapping() -> None:
    with pytest.raises(TypeError, match="properties must be a mapping"):
        keywords_of("security.protocol=SSL")  # type: ignore[arg-type]
