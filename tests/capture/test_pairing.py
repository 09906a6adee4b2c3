"""Which response belongs to which request; what is one-way, unanswered, or not the Kafka protocol."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import kwire
from kwire import messages
from kwire.capture import Connection, Exchange, Frame, Lost
from kwire.capture.pairing import Pairing
from tests.capture.making import Talk, hello, metadata, outcomes_of, produce, read, welcome, write_pcap


def paired(*frames: tuple[str, bytes]) -> tuple[list[Exchange], list[Lost]]:
    """What a connection of these frames ("c" from the client, "s" from the server) gives."""
    pairing = Pairing(Connection("here", 0))
    for who, data in frames:
        if who == "c":
            pairing.request(Frame("request", data, 1))
        else:
            pairing.response(Frame("response", data, 2))
    pairing.close()
    events = pairing.events
    assert pairing.held == 0
    return [one for one in events if isinstance(one, Exchange)], [one for one in events if isinstance(one, Lost)]


def handshake(version: int, mechanism: str = "PLAIN") -> list[tuple[str, bytes]]:
    return [
        ("c", kwire.encode_request(messages.SaslHandshakeRequest(mechanism=mechanism), version, correlation_id=5)),
        ("s", kwire.encode_response(messages.SaslHandshakeResponse(), version, correlation_id=5)),
    ]


def test_by_correlation_id_with_many_in_flight() -> None:
    requests = [("c", metadata(number)[0]) for number in range(50)]
    responses = [("s", metadata(number)[1]) for number in range(48)]
    exchanges, lost = paired(*requests, *responses)
    assert outcomes_of(exchanges) == [("Metadata", 9, n, "answered" if n < 48 else "unanswered") for n in range(50)]
    assert not lost
    assert all(kwire.decode_response(one.response.data, one.decode_request()) for one in exchanges if one.response)


def test_an_id_used_again_is_answered_in_order() -> None:
    (ask, answer), (_, other) = metadata(0), metadata(0, topics=2)
    exchanges, lost = paired(("c", ask), ("c", ask), ("s", answer), ("s", other))
    assert [one.response.data for one in exchanges if one.response] == [answer, other] and not lost


def test_a_response_that_was_seen_before_its_request() -> None:
    exchanges, lost = paired(("c", hello()), ("s", welcome()), ("s", metadata(1)[1]), ("c", metadata(1)[0]))
    assert outcomes_of(exchanges)[1] == ("Metadata", 9, 1, "answered") and not lost


def test_a_response_without_a_request_is_reported() -> None:
    exchanges, lost = paired(("c", hello()), ("s", welcome()), ("s", metadata(77)[1]))
    assert len(exchanges) == 1 and "whose request is not in" in lost[0].reason and lost[0].direction == "response"


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks_0_has_no_answer(acks: int) -> None:
    exchanges, lost = paired(("c", produce(1, acks)), ("c", metadata(2)[0]), ("s", metadata(2)[1]))
    assert outcomes_of(exchanges) == sorted(outcomes_of(exchanges), key=lambda row: acks and -row[2])
    assert ("Produce", 7, 1, "one-way" if acks == 0 else "unanswered") in outcomes_of(exchanges) and not lost


def test_who_asks() -> None:
    exchanges, _ = paired(("c", hello(1, "me", "made", 3)), ("c", metadata(2)[0]))
    assert {one.connection.software for one in exchanges} == {"made 1.0"}
    exchanges, _ = paired(("c", hello(1, "me", "made", 2)))
    assert [one.connection.software for one in exchanges] == [None]
    newer = hello(1)[:2] + (9).to_bytes(2, "big") + hello(1)[4:]  # no release has it
    assert outcomes_of(paired(("c", newer), ("s", welcome(1, 0)))[0]) == [("ApiVersions", 9, 1, "answered")]


@pytest.mark.parametrize(("mechanism", "tokens"), [
    ("PLAIN", [b"\0user\0secret", b""]),
    ("SCRAM-SHA-256", [b"n,,n=user,r=abc", b"r=abcdef,s=c2FsdA==,i=4096", b"c=biws,r=abcdef,p=cHJvb2Y=", b"v=c2ln"]),
    ("OAUTHBEARER", [b"n,,\x01auth=Bearer ey.ey.x\x01\x01", b""]),
    ("GSSAPI", [b"\x60\x82\x02\x4e" + bytes(80), bytes(90), b"", b"\x05\x04\x05\xff" + bytes(28), b"\x05\x04\0\xff"]),
])  # fmt: skip
@pytest.mark.parametrize("late", [False, True])
def test_raw_sasl_tokens_are_told_and_skipped(mechanism: str, tokens: list[bytes], late: bool) -> None:
    before = [("c", hello(4)), ("s", welcome(4)), *handshake(0, mechanism)]
    said = [("sc"[place % 2 == 0], token) for place, token in enumerate(tokens)]
    after = [("c", metadata(6)[0]), ("s", metadata(6)[1])]
    if late:  # every token of the server's was seen before the client's that it answers
        swapped = [one for place in range(1, len(said), 2) for one in (said[place], said[place - 1])]
        said = swapped + said[len(swapped) :]
    exchanges, (lost,) = paired(*before, *said, *after)
    assert outcomes_of(exchanges) == [("ApiVersions", 3, 4, "answered"), ("SaslHandshake", 0, 5, "answered"),
                               ("Metadata", 9, 6, "answered")]  # fmt: skip
    assert lost.reason == f"{len(tokens)} raw SASL tokens ({mechanism}) after SaslHandshake v0: not readable"
    assert lost.bytes == sum(map(len, tokens))
    assert not any(b"secret" in one.request.data for one in exchanges)


@pytest.mark.parametrize("name", ["p\x1bss-word", "päss\u202eword", "PLAIN" * 8, "plain", ""])
def test_a_mechanism_without_a_valid_name_is_not_repeated(name: str) -> None:
    """Where it is a secret, its escaped text would not be found as one."""
    _, (lost,) = paired(("c", hello(4)), ("s", welcome(4)), *handshake(0, name), ("c", b"\0u\0secret"))
    assert lost.reason == "1 raw SASL tokens (the mechanism has no valid name) after SaslHandshake v0: not readable"


def test_a_refused_handshake_and_one_whose_tokens_are_framed() -> None:
    for version in (0, 1):
        exchanges, lost = paired(*handshake(version), ("c", metadata(6)[0]), ("s", metadata(6)[1]))
        assert outcomes_of(exchanges)[1] == ("Metadata", 9, 6, "answered") and not lost


def test_secrets_are_left_out_of_what_is_decoded() -> None:
    request = messages.SaslAuthenticateRequest(auth_bytes=b"\0user\0secret")
    ((one,), _) = paired(("c", kwire.encode_request(request, 2)))
    assert one.to_json()["request"]["authBytes"] == ""
    setting = messages.IncrementalAlterConfigsRequest.AlterableConfig
    configs = [setting(name=name, value="x") for name in ("ssl.keystore.password", "sasl.jaas.config", "retention.ms")]
    resource = messages.IncrementalAlterConfigsRequest.AlterConfigsResource(configs=configs)
    request = messages.IncrementalAlterConfigsRequest(resources=[resource])
    ((one,), _) = paired(("c", kwire.encode_request(request, 1)))
    assert [item["value"] for item in one.to_json()["request"]["resources"][0]["configs"]] == ["", "", "x"]


HELLO_TLS = bytes.fromhex("1603010200010001fc0303") + bytes(600)
ZOOKEEPER = bytes(4) + bytes(8) + struct.pack(">i", 30000) + bytes(8) + struct.pack(">i", 16) + bytes(16) + b"\0"


@pytest.mark.parametrize(("said", "answer", "reason"), [
    (HELLO_TLS, b"\x16\x03\x03\x00\x7a" + bytes(122), "TLS: not readable"),
    (b"GET /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", "HTTP, not the Kafka protocol"),
    (b"SSH-2.0-OpenSSH_9.6\r\n", b"SSH-2.0-OpenSSH_9.6\r\n", "not the Kafka protocol: 53 53 48 2d is"),
    (kwire.pack_frame(ZOOKEEPER), kwire.pack_frame(bytes(37)), "not the Kafka protocol: the connection begins with 00"),
    (b"\0\0\0\x06hello!", b"", "not the Kafka protocol: the connection begins with 68 65"),
    (bytes(4), b"", "not the Kafka protocol: the connection begins with an empty frame"),
], ids=["TLS", "HTTP", "SSH", "ZooKeeper", "words", "nothing"])  # fmt: skip
def test_another_protocol_is_reported_once(tmp_path: Path, said: bytes, answer: bytes, reason: str) -> None:
    talk = Talk().open().say(True, said)
    for _ in range(3):
        talk.say(False, answer).say(True, said)
    exchanges, (lost,) = read(write_pcap(tmp_path / "a.pcap", talk.close().bytes()))
    assert not exchanges and lost.reason.startswith(reason)
    assert lost.connection is not None and lost.connection.client == "10.0.0.7:51234"


def test_losses_of_many_kinds_are_bounded() -> None:
    pairing = Pairing(Connection("x", 0))
    for number in range(50_000):
        pairing.lose(f"loss {number}", "request", 4)
    events = pairing.take_events()
    assert len(events) == 1001 and isinstance(events[-1], Lost) and events[-1].count == 49_000
    pairing.lose("loss 1", "request", 4)
    assert len(pairing.take_events()) == 1


@pytest.mark.parametrize("version", [0, 2, 3, 7, 8, 9, 11])
@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("name", [None, "", "x" * 200])
def test_a_large_produce_is_one_way_by_its_acks(version: int, acks: int, name: str | None) -> None:
    request = messages.ProduceRequest(acks=acks, timeout_ms=0, topic_data=[])
    if version >= 3:
        request.transactional_id = name
    data = kwire.encode_request(request, version, correlation_id=1, client_id="me")
    pairing = Pairing(Connection("x", 0), readable=True, most_decoded=10)
    exchange = pairing.request(Frame("request", data))
    assert exchange is not None and (exchange.outcome == "one-way") == (acks == 0)


def test_one_way_requests_of_one_block_are_events(tmp_path: Path) -> None:
    pairing = Pairing(Connection("x", 0), readable=True)
    for number in range(3):
        pairing.request(Frame("request", produce(number, 0)))
    assert [type(one) for one in pairing.take_events()] == [Exchange] * 3


def test_a_stream_that_goes_wrong_keeps_what_was_whole(tmp_path: Path) -> None:
    talk = Talk().open().exchange(hello(), welcome()).say(True, b"\x7f\xff\xff\xff" + bytes(100)).exchange(*metadata(1))
    exchanges, (lost,) = read(write_pcap(tmp_path / "a.pcap", talk.bytes()))
    assert outcomes_of(exchanges) == [("ApiVersions", 3, 0, "answered")]
    assert "7f ff ff ff" in lost.reason
