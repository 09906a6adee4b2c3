"""Logging in: PLAIN and SCRAM, as kwire.net and kafka-python do."""

from __future__ import annotations

import hashlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka as kafka_python
import pytest

import kwire
from kwire import messages
from kwire.fleet import Fleet
from kwire.net import AuthenticationError, BrokerConnectionError, connect_sync
from kwire.schema.error_codes import ErrorCode
from tests.fleet import dialogue_sasl

pytestmark = pytest.mark.quick
SECRET = "marker-secret-7"


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet("3.9", sasl={"user": SECRET}, topics={"t": 1}) as fleet:
        yield fleet


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in(fleet: Fleet, mechanism: str) -> None:
    with connect_sync(fleet.bootstrap, sasl=(mechanism, "user", SECRET)) as connection:
        answer: Any = connection.send(messages.MetadataRequest(topics=None))
        assert [topic.name for topic in answer.topics] == ["t"]
    for user, password in (("user", "wrong"), ("nobody", SECRET)):
        with pytest.raises(AuthenticationError), connect_sync(fleet.bootstrap, sasl=(mechanism, user, password)):
            pass
    assert SECRET not in repr(fleet) + repr(fleet.events) + repr(fleet.nodes[0].users)


def test_nobody_gets_in_without(fleet: Fleet) -> None:
    with pytest.raises(BrokerConnectionError), connect_sync(fleet.bootstrap) as connection:
        connection.send(messages.MetadataRequest(topics=None))


def test_tokens_without_headers_of_old_releases() -> None:
    with Fleet("0.10.2", sasl={"user": SECRET}, topics={"t": 1}) as fleet:
        producer = kafka_python.KafkaProducer(
            bootstrap_servers=fleet.bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
            sasl_plain_username="user", sasl_plain_password=SECRET)
        producer.send("t", b"a").get(20)
        producer.close()
        assert [record.value for record in fleet.records("t")] == [b"a"]


def logs_in(fleet: Fleet, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> bool:
    try:
        with connect_sync(fleet.bootstrap, sasl=(mechanism, user, password)) as connection:
            return connection.send(messages.MetadataRequest(topics=None)) is not None
    except AuthenticationError:
        return False


def test_the_metadata_log_has_the_users(tmp_path: Path) -> None:
    """As kafka-storage format --add-scram has them; without the password those that were there log in by SCRAM."""
    with Fleet("4.4", data=tmp_path, sasl={"user": SECRET, "other": "o"}) as fleet:
        scram, offset = fleet.image.scram, fleet.image.offset
        assert set(scram) == {(name, number) for name in ("user", "other") for number in (1, 2)}
        assert SECRET not in repr(fleet.image.to_json())
        assert logs_in(fleet, "user", SECRET) and fleet.image.offset == offset
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    with Fleet("4.4", data=tmp_path, sasl={"user": SECRET, "other": "changed"}) as fleet:
        again = fleet.image.scram
        assert again["user", 1] == scram["user", 1] and again["other", 1] != scram["other", 1]
        assert logs_in(fleet, "other", "changed") and not logs_in(fleet, "other", "o")
    with Fleet("4.4", data=tmp_path, sasl={}) as fleet:
        assert fleet.image.scram == again
        assert logs_in(fleet, "user", SECRET, "SCRAM-SHA-512") and not logs_in(fleet, "user", "wrong")
        assert not logs_in(fleet, "user", SECRET, "PLAIN") and not logs_in(fleet, "nobody", SECRET)
    with Fleet("3.4", sasl={"user": SECRET}) as fleet:  # its level has no such records
        assert fleet.image.scram == {} and logs_in(fleet, "user", SECRET)


@pytest.mark.parametrize("password", ["", "\0", "\ud800", "\u0221", "é"])
def test_an_odd_password(password: str) -> None:
    """Brokers take it as it is, without SASLprep."""
    with Fleet("4.4", sasl={"odd": password, "user": SECRET}) as fleet:
        assert {name for name, _ in fleet.image.scram} == {"odd", "user"}
        assert logs_in(fleet, "odd", "é") == (password == "é")
        assert logs_in(fleet, "user", SECRET) and not logs_in(fleet, "odd", "x")
        assert [event for event in fleet.events if event["event"] == "failed"] == []


def test_users_are_made_by_the_wire(fleet: Fleet) -> None:
    """AlterUserScramCredentials, as kafka-configs --alter --add-config SCRAM-SHA-256=... sends it (KIP-554)."""
    change, show = messages.AlterUserScramCredentialsRequest, messages.DescribeUserScramCredentialsRequest
    salted = hashlib.pbkdf2_hmac("sha256", b"p", b"a salt of 16 by", 4096)
    row = change.ScramCredentialUpsertion(
        name="new", mechanism=1, iterations=4096, salt=b"a salt of 16 by", salted_password=salted)
    few = change.ScramCredentialUpsertion(
        name="few", mechanism=2, iterations=1, salt=b"a salt of 16 by", salted_password=salted)
    with connect_sync(fleet.bootstrap, sasl=("PLAIN", "user", SECRET)) as connection:
        answer: Any = connection.send(change(upsertions=[row, few]))
        assert [(one.user, one.error_code, one.error_message) for one in answer.results] == [
            ("new", 0, None), ("few", ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")]
        assert logs_in(fleet, "new", "p") and not logs_in(fleet, "new", "q")
        shown: Any = connection.send(show(users=[show.UserName(name=name) for name in ("new", "few")]))
        assert [(one.user, one.error_code, [(info.mechanism, info.iterations) for info in one.credential_infos])
                for one in shown.results] == [("new", 0, [(1, 4096)]), ("few", ErrorCode.RESOURCE_NOT_FOUND, [])]
        gone = change.ScramCredentialDeletion(name="new", mechanism=1)
        assert connection.send(change(deletions=[gone])).results[0].error_code == 0
        assert connection.send(change(deletions=[gone])).results[0].error_code == ErrorCode.RESOURCE_NOT_FOUND
    assert not logs_in(fleet, "new", "p")


def test_it_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "scramp", None)
        with Fleet("4.4", sasl={"user": SECRET}) as fleet:
            assert len(fleet.image.scram) == 2 and logs_in(fleet, "user", SECRET, "PLAIN")


def test_users_that_are_made_by_the_wire(tmp_path: Path) -> None:
    request = messages.AlterUserScramCredentialsRequest
    salt = b"sixteen bytes ok"
    salted = hashlib.pbkdf2_hmac("sha256", b"its password", salt, 4096)
    new = request.ScramCredentialUpsertion(
        name="new", mechanism=1, iterations=4096, salt=salt, salted_password=salted)
    gone = request.ScramCredentialDeletion(name="new", mechanism=1)

    def codes(connection: Any, *deletions: Any, upsertions: Any = ()) -> list[int]:
        answer = connection.send(request(deletions=list(deletions), upsertions=list(upsertions)))
        return [row.error_code for row in answer.results]

    with Fleet("3.9", sasl={"user": SECRET}, data=tmp_path / "data") as fleet:
        assert not logs_in(fleet, "new", "its password")
        with connect_sync(fleet.bootstrap, sasl=("SCRAM-SHA-256", "user", SECRET)) as connection:
            assert codes(connection, upsertions=[new]) == [0]
        assert logs_in(fleet, "new", "its password") and not logs_in(fleet, "new", "another")
    with Fleet("3.9", sasl={"user": SECRET}, data=tmp_path / "data") as fleet:
        assert logs_in(fleet, "new", "its password")
        with connect_sync(fleet.bootstrap, sasl=("PLAIN", "user", SECRET)) as connection:
            described: Any = connection.send(messages.DescribeUserScramCredentialsRequest(users=None))
            assert {(row.user, one.mechanism, one.iterations) for row in described.results
                    for one in row.credential_infos} == {("new", 1, 4096), ("user", 1, 4096), ("user", 2, 4096)}
            few = request.ScramCredentialUpsertion(
                name="few", mechanism=1, iterations=1, salt=b"s", salted_password=b"p")
            assert codes(connection, gone, upsertions=[few]) == [0, ErrorCode.UNACCEPTABLE_CREDENTIAL]
            assert codes(connection, gone) == [ErrorCode.RESOURCE_NOT_FOUND]
            assert codes(connection, gone, upsertions=[new, new]) == [ErrorCode.RESOURCE_NOT_FOUND]
            assert codes(connection, upsertions=[new, new]) == [ErrorCode.DUPLICATE_RESOURCE]
        assert not logs_in(fleet, "new", "its password")


def test_a_user_that_is_deleted_by_the_wire() -> None:
    """Also one of sasl=: its password counts for PLAIN alone."""
    request = messages.AlterUserScramCredentialsRequest
    with Fleet("4.4", sasl={"user": SECRET}) as fleet:
        with connect_sync(fleet.bootstrap, sasl=("PLAIN", "user", SECRET)) as connection:
            connection.send(request(deletions=[request.ScramCredentialDeletion(name="user", mechanism=1)]))
        assert not logs_in(fleet, "user", SECRET, "SCRAM-SHA-256")
        assert logs_in(fleet, "user", SECRET, "SCRAM-SHA-512") and logs_in(fleet, "user", SECRET, "PLAIN")


def test_an_old_level_keeps_no_users() -> None:
    with Fleet("3.9", levels={"metadata.version": 8}) as fleet, connect_sync(fleet.bootstrap) as connection:
        one = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name="a", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
        answer: Any = connection.send(messages.AlterUserScramCredentialsRequest(upsertions=[one]))
        assert answer.results[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def said(port: int, *steps: Any) -> list[Any]:
    """What a connection gets for (message, version) or bytes, one after the other; "closed" at its end."""
    client = dialogue_sasl.Client(port)
    got = [dialogue_sasl.normal(client.exchange(one) if isinstance(one, bytes) else client.ask(*one)) for one in steps]
    client.socket.close()
    return got


SHAKE = messages.SaslHandshakeRequest(mechanism="PLAIN"), 1
VERSIONS = messages.ApiVersionsRequest(), 0
ANY = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0
LATE: dict[str, Any] = {"errorCode": ErrorCode.ILLEGAL_SASL_STATE}


def test_what_is_out_of_order(fleet: Fleet) -> None:
    """As SaslServerAuthenticator has it: an answer with an error or none, then the end of the connection."""
    port, token = fleet.nodes[0].port, messages.SaslAuthenticateRequest(auth_bytes=f"\0user\0{SECRET}".encode())
    assert said(port, ANY) == said(port, (token, 0)) == ["closed"]
    assert said(port, VERSIONS, VERSIONS) == [{"errorCode": 0}, "closed"]
    assert said(port, SHAKE, ANY, SHAKE)[1:] == [LATE, "closed"]
    assert said(port, SHAKE, SHAKE)[1] == {**LATE, "mechanisms": []}
    unknown = said(port, (messages.SaslHandshakeRequest(mechanism="GSSAPI"), 1), SHAKE)
    assert unknown == [{"errorCode": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": [
        "PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]}, "closed"]
    again = said(port, SHAKE, (token, 0), SHAKE, (token, 0), ANY)[1:]
    assert [one["errorCode"] for one in again] == [
        0, LATE["errorCode"], LATE["errorCode"], ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize(("token", "reason"), [
    (b"\0\0x", "Authentication failed: username not specified"),
    (b"\0user\0", "Authentication failed: password not specified"),
    (b"other\0user\0" + SECRET.encode(),
     "Authentication failed: Client requested an authorization id that is different from username"),
    (b"\0\0\0\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
])
def test_why_plain_is_refused(fleet: Fleet, token: bytes, reason: str) -> None:
    answer = said(fleet.nodes[0].port, SHAKE, (messages.SaslAuthenticateRequest(auth_bytes=token), 0), ANY)[1:]
    assert (answer[0]["errorCode"], answer[0]["errorMessage"]) == (ErrorCode.SASL_AUTHENTICATION_FAILED, reason)
    assert answer[1] == "closed"


@pytest.mark.parametrize(("first", "code"), [
    (b"n,,n=user,r=x,e=1", 0), (b"n,a=user,m=1,n=user,r=x", 0), (b"y,,n=user,r=x", 58), (b"n,,n=a=2X,r=x", 58),
    (b"n,,n=user,r=", 58), (b"n,,n=user", 58), (b"n,,n=us\0er,r=x", 58), (b"n,,n=user,r=\x7f", 58)])
def test_first_messages_of_scram(fleet: Fleet, first: bytes, code: int) -> None:
    shake = messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1
    token = messages.SaslAuthenticateRequest(auth_bytes=first), 0
    assert said(fleet.nodes[0].port, shake, token)[1]["errorCode"] == code


def test_who_has_not_logged_in_is_not_told_that_it_is_another_broker() -> None:
    """SaslServerAuthenticator answers, which does not look."""
    asked = messages.ApiVersionsRequest(
        client_software_name="a", client_software_version="1", cluster_id="other", node_id=9)
    with Fleet("4.4", sasl={"user": SECRET}) as fleet:
        with socket.create_connection((fleet.nodes[0].host, fleet.nodes[0].port), timeout=20) as client:
            client.sendall(kwire.pack_frame(kwire.encode_request(asked, 5, correlation_id=1)))
            head = client.recv(10, socket.MSG_WAITALL)
        assert head[4:] == b"\0\0\0\x01\0\0"
        with connect_sync(fleet.bootstrap, sasl=("PLAIN", "user", SECRET)) as connection:
            assert connection.send(asked, 5).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
