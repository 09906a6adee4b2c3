"""What clients say before they are let in, each case on a connection of its own, to a fleet and to a real broker."""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Generator, Iterator
from typing import Any

from scramp import ScramClient

import kwire
from kwire import messages
from kwire.errors import KwireError
from kwire.fleet.releases import offer

M = messages
USER, PASSWORD, OTHER = "alice", "sesame-open", "bob"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CLOSED = "closed"
Case = Generator[Any, Any, None]


class Client:
    """A connection of one case. It remembers what it asked, for the header of the answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.frames = kwire.FrameReader()
        self.waiting: list[bytes] = []

    def exchange(self, data: bytes) -> Any:
        """The frame that answers, "closed", or "closed after bytes" if the broker sent what is no frame."""
        try:
            self.socket.sendall(data)
            sent = False
            while not self.waiting:
                piece = self.socket.recv(1 << 16)
                if not piece:
                    return f"{CLOSED} after bytes" if sent else CLOSED
                sent = True
                try:
                    self.waiting.extend(self.frames.feed(piece))
                except KwireError:
                    continue  # an alert of TLS
        except ConnectionError:
            return CLOSED
        except TimeoutError:
            return "silence"
        return self.waiting.pop(0)

    def ask(self, message: Any, version: int) -> Any:
        """The answer as JSON."""
        request = kwire.encode_request(message, version, correlation_id=1, client_id="c")
        frame = self.exchange(kwire.pack_frame(request))
        if isinstance(frame, str):
            return frame
        response = kwire.decode_response(frame, kwire.decode_request_header(request), lenient=True)
        return kwire.to_json(response.message, response.version)


def plain(user: str = USER, password: str = PASSWORD, other: str = "") -> bytes:
    return f"{other}\0{user}\0{password}".encode()


def play(port: int, release: str) -> list[tuple[str, Any]]:
    """(case and step, the normal form of the answer) of all cases."""
    got = []
    for name, case in cases(release):
        client = Client(port)
        talk = case
        try:
            asked = next(talk)
            number = 0
            while True:
                answer = client.exchange(asked) if isinstance(asked, bytes) else client.ask(*asked)
                number += 1
                got.append((f"{name} {number}", normal(answer)))
                asked = talk.send(answer)
        except StopIteration:
            pass
        finally:
            client.socket.close()
    return got


def normal(answer: Any) -> Any:
    """Without what differs by chance: nonces, salts, signatures, sizes of answers to Metadata."""
    if isinstance(answer, bytes):
        return _token(answer)
    if isinstance(answer, dict):
        if "brokers" in answer or "apiKeys" in answer:
            return {"errorCode": answer.get("errorCode", 0)}
        if "authBytes" in answer:
            answer = {**answer, "authBytes": _token(base64.b64decode(answer["authBytes"]))}
        return answer
    return answer


def _token(data: bytes) -> str:
    text = re.sub(r"(?<=[rs]=)[^,]+|(?<=v=).+", "...", data.decode("utf-8", "replace"))
    return text.replace("\0", " ")


def _shake(mechanism: str = "PLAIN", version: int = 1) -> tuple[Any, int]:
    return M.SaslHandshakeRequest(mechanism=mechanism), version


def _token_of(data: bytes, version: int = 0) -> tuple[Any, int]:
    return M.SaslAuthenticateRequest(auth_bytes=data), version


def _scram(mechanism: str, user: str, password: str) -> tuple[ScramClient, bytes]:
    client = ScramClient([mechanism], user, password)
    return client, client.get_client_first().encode()


def cases(release: str) -> Iterator[tuple[str, Case]]:
    """Name and talk of each connection."""
    usable = offer(release).usable
    low, high = usable[17]
    authenticates = range(usable[36][0], usable[36][1] + 1) if 36 in usable else range(0)
    metadata = M.MetadataRequest(topics=None), usable[3][1]
    versions = usable[18][1]

    def say(*steps: Any) -> Case:
        for step in steps:
            answer = yield step
            if isinstance(answer, str):
                return

    def shaken(mechanism: str, *steps: Any, version: int = 1) -> Case:
        return say(_shake(mechanism, version), *steps)

    yield "nothing", say(metadata)
    yield "no frame", say(b"GET / HTTP/1.0\r\n\r\n")
    yield "a large frame", say((1 << 30).to_bytes(4, "big") + b"x" * 100)
    yield "half a header", say(b"\0\0\0\x02\0\x11")
    yield "an empty frame", say(b"\0\0\0\0")
    for version in range(versions + 1):
        more = {"client_software_name": "c", "client_software_version": "1"} if version >= 3 else {}
        asked = M.ApiVersionsRequest(**more), version
        yield f"versions {version}", say(asked, metadata)
        yield f"versions {version} twice", say(asked, asked)
        yield f"versions {version} after the handshake", say(_shake(), asked)
    if versions >= 3:
        bad = M.ApiVersionsRequest(client_software_name="a b", client_software_version="1"), 3
        good = M.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3
        yield "bad versions", say(bad, good, _shake(), _token_of(plain()), metadata)
        yield "versions of the future", say(b"\0\0\0\x0d\0\x12\0\x63\0\0\0\x01\0\x01c\0\0", good, _shake())
    for version in range(low, high + 1):
        for mechanism in (*MECHANISMS, "GSSAPI", "", "plain"):
            yield f"handshake {version} {mechanism}", say(_shake(mechanism, version), _shake(mechanism, version))
            yield f"versions, handshake {version} {mechanism}", say(
                (M.ApiVersionsRequest(), 0), _shake(mechanism, version), metadata)
    raw = kwire.pack_frame
    for name, token in _plain_tokens():
        yield f"raw plain {name}", shaken("PLAIN", raw(token), metadata, version=0)
    for mechanism in MECHANISMS[1:]:
        for password in (PASSWORD, "wrong"):
            yield f"raw {mechanism} {password == PASSWORD}", _raw_scram(mechanism, USER, password, metadata)
        yield f"raw {mechanism} nobody", _raw_scram(mechanism, "nobody", PASSWORD, metadata)
    if not authenticates:
        return
    yield "a token without a handshake", say(_token_of(plain()))
    yield "another request in between", shaken("PLAIN", metadata)
    yield "a handshake in between", shaken("PLAIN", _shake())
    yield "versions in between", shaken("PLAIN", (M.ApiVersionsRequest(), 0))
    yield "a raw token with headers", shaken("PLAIN", raw(plain()))
    yield "a token with headers after handshake 0", shaken("PLAIN", _token_of(plain()), version=0)
    for version in authenticates:
        for name, token in _plain_tokens():
            yield f"plain {version} {name}", shaken("PLAIN", _token_of(token, version), metadata)
        for mechanism in MECHANISMS[1:]:
            for user, password in ((USER, PASSWORD), (USER, "wrong"), ("nobody", PASSWORD), ("", PASSWORD)):
                yield f"{mechanism} {version} {user} {password == PASSWORD}", _scram_talk(
                    mechanism, user, password, version, metadata)
        for name, first in (
            ("no scram", b"hello"), ("empty", b""), ("not utf-8", b"\xff\xfe"),
            ("another user", b"n,a=bob,n=alice,r=x"),
            ("the same user", b"n,a=alice,n=alice,r=x"), ("a channel", b"y,,n=alice,r=x"),
            ("a bound channel", b"p=tls-unique,,n=alice,r=x"), ("an extension", b"n,,n=alice,r=x,e=1"),
            ("mandatory", b"n,,m=a,n=alice,r=x"), ("no nonce", b"n,,n=alice"), ("a bad escape", b"n,,n=a=2X,r=x"),
            ("large", b"n,,n=alice,r=" + b"x" * 5000),
        ):
            yield f"scram {version} {name}", shaken("SCRAM-SHA-256", _token_of(first, version), _token_of(b"c=biws", 0))
        for name, final in (
            ("no final", b"hello"), ("empty", b""), ("another nonce", b"c=biws,r=other,p=YWJj"),
            ("no proof", b"c=biws,r={nonce}"), ("a short proof", b"c=biws,r={nonce},p=YWJj"),
            ("no base64", b"c=biws,r={nonce},p=!!!"), ("another channel", b"c=eSws,r={nonce},p=" + b"A" * 43 + b"="),
        ):
            yield f"scram final {version} {name}", _scram_final(version, final)
        yield f"in {version} and a token again", shaken(
            "PLAIN", _token_of(plain(), version), _token_of(plain(), version), metadata)
        yield f"in {version} and versions", shaken(
            "PLAIN", _token_of(plain(), version), (M.ApiVersionsRequest(), 0), metadata)
        yield f"in {version}, a handshake with it again", shaken(
            "PLAIN", _token_of(plain(), version), _shake(), _token_of(plain(), version), metadata)
        yield f"in {version}, a handshake with another user", shaken(
            "PLAIN", _token_of(plain(), version), _shake(), _token_of(plain(OTHER), version), metadata)
        yield f"in {version}, a handshake with a wrong password", shaken(
            "PLAIN", _token_of(plain(), version), _shake(), _token_of(plain(password="no"), version), metadata)
        yield f"in {version}, a handshake with another mechanism", shaken(
            "PLAIN", _token_of(plain(), version), _shake("SCRAM-SHA-256"), metadata)
        yield f"in {version}, a handshake with no mechanism", shaken(
            "PLAIN", _token_of(plain(), version), _shake("GSSAPI"), metadata)
        yield f"in {version}, a handshake and another request", shaken(
            "PLAIN", _token_of(plain(), version), _shake(), metadata, metadata)
        yield f"in {version}, twice again", shaken(
            "PLAIN", _token_of(plain(), version), _shake(), _token_of(plain(), version), _shake(),
            _token_of(plain(), version), metadata)


def _plain_tokens() -> Iterator[tuple[str, bytes]]:
    yield "right", plain()
    yield "of another", plain(OTHER)
    yield "wrong", plain(password="wrong")
    yield "nobody", plain("nobody")
    yield "no name", plain("")
    yield "no password", plain(password="")
    yield "for itself", plain(other=USER)
    yield "for another", plain(other=OTHER)
    yield "empty", b""
    yield "two parts", b"alice\0sesame-open"
    yield "four parts", b"\0alice\0sesame-open\0"
    yield "six parts", b"\0\0\0\0\0"
    yield "not utf-8", b"\0\xff\0\xff"


def _scram_talk(mechanism: str, user: str, password: str, version: int, metadata: Any) -> Case:
    client, first = _scram(mechanism, user or "x", password)
    if not user:
        first = first.replace(b"n=x", b"n=")
    yield _shake(mechanism)
    answer = yield _token_of(first, version)
    if isinstance(answer, str) or answer["errorCode"]:
        yield metadata
        return
    client.set_server_first(base64.b64decode(answer["authBytes"]).decode())
    answer = yield _token_of(client.get_client_final().encode(), version)
    if not isinstance(answer, str) and not answer["errorCode"]:
        client.set_server_final(base64.b64decode(answer["authBytes"]).decode())
    yield metadata


def _scram_final(version: int, final: bytes) -> Case:
    yield _shake("SCRAM-SHA-256")
    answer = yield _token_of(b"n,,n=alice,r=mine", version)
    nonce = base64.b64decode(answer["authBytes"]).split(b",")[0][2:]
    yield _token_of(final.replace(b"{nonce}", nonce), version)


def _raw_scram(mechanism: str, user: str, password: str, metadata: Any) -> Case:
    client, first = _scram(mechanism, user, password)
    answer = yield _shake(mechanism, 0)
    if isinstance(answer, str):
        return
    answer = yield kwire.pack_frame(first)
    if isinstance(answer, str):
        return
    client.set_server_first(answer.decode())
    answer = yield kwire.pack_frame(client.get_client_final().encode())
    if isinstance(answer, str):
        return
    client.set_server_final(answer.decode())
    yield metadata
