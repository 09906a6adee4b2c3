"""What a client authenticated with is found wherever it is repeated, and is not recorded."""

from __future__ import annotations

import random
import string
import time
from base64 import b64decode
from pathlib import Path

import pytest

import kwire
from kwire import messages
from kwire.capture import Connection, FrameWriter, Lost, read_capture
from kwire.capture.credentials import Credentials
from kwire.capture.recorder import Recording
from tests.capture.making import hello, metadata, welcome

pytestmark = pytest.mark.quick


DICE = random.Random(8)


def word(size: int) -> str:
    return "".join(DICE.choices(string.ascii_letters + string.digits, k=size))


def plain(password: str) -> bytes:
    return f"\0alice\0{password}".encode()


def bearer(token: str, scheme: str = "auth=Bearer ") -> bytes:
    return f"n,,\x01{scheme}{token}\x01\x01".encode()


FIRST, SECOND, LONG, LONGER = word(10), word(10), word(2000), word(20_000)
TOKENS = [word(9000) for _ in range(6)]
# what Java's client sent for kafka/broker-one.kafka.test.local, with a KDC of MIT Kerberos, and after it
TICKET = b64decode(
    b"YIIC2gYJKoZIhvcSAQICAQBuggLJMIICxaADAgEFoQMCAQ6iBwMFAAAAAACjggHeYYIB2jCCAdagAwIBBaEMGwpURVNULkxPQ0FMoi8w"
    b"LaADAgEAoSYwJBsFa2Fma2EbG2Jyb2tlci1vbmUua2Fma2EudGVzdC5sb2NhbKOCAY4wggGKoAMCARKhAwIBAqKCAXwEggF4rSsH7yGY"
    b"MxJuvdNxylPlHC7QafxXhAuKiwhqxAoInx+u3qF+Ua1YWtmr1vkNrRRvUQtzLLZBxAcYFj7LCf9GQrKiDUbluVi4+KgP9FGVLOmSRfPu"
    b"eGt/fMLJC3AourvpQuQqS0tmXn6EAonf1/nyDbl65vOPq9H3BuD0NcXn4XGyFScXzQN/rirCqvpnx33fucSbjss8PgjZk6kpuVur03dO"
    b"sA6osuS6nKkpNMF7uqhHsWS/+LXjgqlXPQEmSaljVjyvZc5KpEhCLgsw2Z/FqSrWKyLj3vZSk/sY3y1IovpKQ6TWDpkYiLCFIIfiJtrF"
    b"pYMNqy+REbeGr8uNr+Thek8NbGvv8IZK24/lHO1fP4qg9ly2cexIUDBQsntnGsQ2aAZsACQFNCX4UJDQKMhQyc8EUhDuA63StR+cC/M9"
    b"olOm5hptoXI97hYuwF/hP7ZPpxooVSyOhAiMc0viT3XeRQp2MKOQ0yhWPtrhaYRsa6LGRT9VrgTnzaSBzTCByqADAgESooHCBIG/qDQ2"
    b"HbfDDKvbrLmucH1kR9okc0XrlkASeqhROi98krixo7TDmkObuS1wVe8JpqyXDBnmE3wlRO27VuTpH/SEWJdyaodqXEX0D4Kh4iTa+TES"
    b"dwEsc32DEI0qk81VLHJH673eBrh5RVeGUj2Wjj2f3fY+LuSoubrXjt5upMdnZggoOIJYtOUjRzY3KsDgDTeoKDJ4KFlG3D869h0WaBA6"
    b"T4X7YMEJUOqoFDnZep2SnofdLAmReLRmDuuEfHQ6fbw=")
WRAPPED = b64decode(b"BQQA/wAMAAAAAAAAO3OXdQEAAABhbGljZUBURVNULkxPQ0FMf+Ev1eNZ1zkmEWbd")


@pytest.mark.parametrize(("tokens", "repeated", "size"), [
    ([plain(FIRST)], FIRST[2:], 3 << 20),
    ([plain(FIRST), plain(SECOND)], SECOND, 3 << 20),  # a re-authentication
    ([bearer(LONG)], LONG[501:516], 3 << 20),
    ([bearer(LONG, "auth=BEARER  ")], LONG[500:515], 0),
    ([bearer(token) for token in TOKENS], TOKENS[-1], 0),
    ([bearer(LONGER)], LONGER[15_000:15_020], 0),
    ([b"\x60\x82" + FIRST.encode() + b"\0" + SECOND.encode()], FIRST, 0),  # a mechanism that kwire does not know
], ids=["a part in a large frame", "the second in a large frame", "a long one in a large frame", "as Kafka reads it",
        "the last of many", "the end of a long one", "before a zero byte"])
def test_credentials_are_found_where_they_are_repeated(
    tmp_path: Path, tokens: list[bytes], repeated: str, size: int
) -> None:
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)

        def say(request: bytes, response: bytes) -> None:
            recording.feed("request", kwire.pack_frame(request))
            recording.feed("response", kwire.pack_frame(response))

        say(hello(), welcome())
        for number, token in enumerate(tokens):
            login = messages.SaslAuthenticateRequest(auth_bytes=token)
            say(kwire.encode_request(login, 2, correlation_id=number, client_id="me"),
                kwire.encode_response(messages.SaslAuthenticateResponse(), 2, correlation_id=number))
        topic = messages.MetadataResponse.MetadataResponseTopic
        around = [topic(name="x" * 30_000) for _ in range(size // 60_000)]
        echo = messages.MetadataResponse(topics=[*around, topic(name=repeated), *around])
        say(metadata(99)[0], kwire.encode_response(echo, 9, correlation_id=99))
        say(*metadata(100, 40))
        recording.close()
    events = list(read_capture(tmp_path / "t.jsonl.gz"))
    lost = [one for one in events if isinstance(one, Lost)]
    assert [one.reason for one in lost if "repeats" in one.reason] == [
        "a response that repeats the client's credentials"]
    held = b"".join((one.request.data + (one.response.data if one.response else b""))
                    for one in events if not isinstance(one, Lost))
    assert repeated.encode() not in held


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_loss_does_not_repeat_credentials(tmp_path: Path, gives_up: bool) -> None:
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)
        recording._credentials.add(plain(FIRST))
        (recording.give_up if gives_up else recording.conversation.pairing.lose)(f"bytes of {FIRST}")
        recording.close()
    (lost,) = read_capture(tmp_path / "t.jsonl.gz")
    assert isinstance(lost, Lost) and lost.reason == "a loss whose text repeats the client's credentials"


def test_what_is_kept_of_credentials_is_bounded() -> None:
    """However often a client authenticates; and data is searched once, not once a piece."""
    kept = Credentials()
    for number in range(300):
        kept.add(bearer(f"{number:08}" * 300))
    assert len(kept._pieces) <= 8192
    assert kept.are_in(b"x" + b"00000299" * 3) and not kept.are_in(bytes(1 << 16))


def test_a_long_token_is_kept_in_linear_time() -> None:
    """A mebibyte took 12 seconds, in which the tap forwarded nothing."""
    kept, token, before = Credentials(), random.Random(1).randbytes(1 << 20), time.process_time()
    kept.add(token, "OTHER")
    assert time.process_time() - before < 4
    assert len(kept._pieces) == 8192 and kept.are_in(token[-16:])


@pytest.mark.parametrize("login", [True, False])
def test_bytes_that_are_no_frames_are_shown_in_part_only(tmp_path: Path, login: bool) -> None:
    """They may be a password; also as the first frame of a connection."""
    secret = b"SecretPassword99"
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)
        if login:
            for message in (messages.SaslHandshakeRequest(mechanism="PLAIN"),
                            messages.SaslAuthenticateRequest(auth_bytes=plain(secret.decode()))):
                recording.feed("request", kwire.pack_frame(kwire.encode_request(message, 1, correlation_id=1)))
            recording.feed("request", secret)
        else:
            recording.feed("request", kwire.pack_frame(secret))
        recording.close()
    (reason,) = {one.reason for one in read_capture(tmp_path / "t.jsonl.gz") if isinstance(one, Lost)}
    assert reason.startswith("not the Kafka protocol") and "53 65 63 72" in reason and "53 65 63 72 65" not in reason


@pytest.mark.parametrize("mechanism", ["GSSAPI", "PLAIN-OF-OURS", None])
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("token", [
    f"{FIRST}\0\0tail", f"{FIRST},p=tail", f"{FIRST}auth=Bearer tail", f"n,{FIRST},r=tail",
])  # fmt: skip
def test_the_whole_token_of_an_unknown_mechanism_is_secret(
    tmp_path: Path, mechanism: str | None, version: int, token: str
) -> None:
    """Whatever known token it looks like."""
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)

        def say(request: bytes) -> None:
            recording.feed("request", kwire.pack_frame(request))

        say(hello())
        if mechanism:
            say(kwire.encode_request(messages.SaslHandshakeRequest(mechanism=mechanism), version, correlation_id=1))
        if mechanism and version == 0:
            say(token.encode())
        else:
            say(kwire.encode_request(messages.SaslAuthenticateRequest(auth_bytes=token.encode()), 1, correlation_id=2))
        say(kwire.encode_request(messages.MetadataRequest(), 9, correlation_id=3, client_id=FIRST))
        recording.close()
    events = list(read_capture(tmp_path / "t.jsonl.gz"))
    assert "a request that repeats the client's credentials" in [one.reason for one in events if isinstance(one, Lost)]
    assert FIRST.encode() not in b"".join(one.request.data for one in events if not isinstance(one, Lost))


@pytest.mark.parametrize("version", [0, 1])
def test_of_a_kerberos_ticket_what_is_in_the_clear_is_no_secret(tmp_path: Path, version: int) -> None:
    """The broker's host name, the client's principal, and bytes that many frames have."""
    with FrameWriter(str(tmp_path / "t")) as writer:
        recording = Recording(Connection("t", 0, "a:1", "b:9092"), writer)

        def say(request: bytes, response: bytes) -> None:
            recording.feed("request", kwire.pack_frame(request))
            recording.feed("response", kwire.pack_frame(response))

        handshake = messages.SaslHandshakeRequest(mechanism="GSSAPI")
        say(kwire.encode_request(handshake, version, correlation_id=1),
            kwire.encode_response(messages.SaslHandshakeResponse(), version, correlation_id=1))
        for token in (TICKET, b"", WRAPPED):
            if version == 0:
                say(token, b"answer")
            else:
                say(kwire.encode_request(messages.SaslAuthenticateRequest(auth_bytes=token), 1, correlation_id=2),
                    kwire.encode_response(messages.SaslAuthenticateResponse(), 1, correlation_id=2))
        for number, name in enumerate(("broker-one.kafka.test.local", "User:alice@TEST.LOCAL"), 3):
            broker = messages.MetadataResponse.MetadataResponseBroker(host=name)
            say(metadata(number)[0],
                kwire.encode_response(messages.MetadataResponse(brokers=[broker]), 9, correlation_id=number))
        heartbeat = kwire.encode_response(messages.HeartbeatResponse(), 4, correlation_id=12)
        assert WRAPPED[4:12] in heartbeat
        say(kwire.encode_request(messages.HeartbeatRequest(), 4, correlation_id=12), heartbeat)
        for number, at in enumerate((250, 600), 13):  # in the ticket, and in its authenticator
            request, response = metadata(number)
            say(request, response + TICKET[at : at + 15])
        recording.close()
    events = list(read_capture(tmp_path / "t.jsonl.gz"))
    lost = [one.reason for one in events if isinstance(one, Lost) and "SASL tokens" not in one.reason]
    assert lost == ["a response that repeats the client's credentials"] * 2
    said = [(one.api, one.outcome) for one in events if not isinstance(one, Lost) and "Sasl" not in one.api]
    assert said == [("Metadata", "answered")] * 2 + [("Heartbeat", "answered")] + [("Metadata", "lost")] * 2


def test_what_follows_a_bearer_token_is_no_secret() -> None:
    """Host and port of RFC 7628, and Kafka's extensions, which brokers and metadata repeat."""
    kept = Credentials()
    kept.add(f"n,,\x01host=broker.example.com\x01auth=Bearer {LONG}\x01logicalCluster=lkc-12345678901234\x01"
             "host=broker.example.com\x01\x01".encode(), "OAUTHBEARER")
    assert kept.are_in(LONG[-15:].encode())
    assert not kept.are_in(b"broker.example.com") and not kept.are_in(b"lkc-12345678901234")


@pytest.mark.parametrize(("mechanism", "token", "secret"), [
    ("OAUTHBEARER", b"n,,\x01xauth=Bearer foo\x01auth=Bearer THEREALTOKEN123456\x01\x01", b"REALTOKEN"),
    ("OAUTHBEARER", b"n,a=auth=bearer x,\x01auth=Bearer THEREALTOKEN123456\x01\x01", b"REALTOKEN"),
    ("GSSAPI", b"\x60\x0c\x04\x00\x80\x08secretse", b"secretse"),  # DER, but no octet string is long enough
    ("GSSAPI", b"\x04\x10sixteen bytes it" + b"\x04\x00" * (1 << 18) + b"\x80\x14the end of the token",
     b"end of the token"),
])
def test_what_is_not_understood_of_a_token_is_secret(mechanism: str, token: bytes, secret: bytes) -> None:
    """So is a token that no broker takes, as it is too large."""
    credentials = Credentials()
    credentials.add(token, mechanism)
    assert credentials.are_in(b"some " + secret + b" of it")
