"""Authentication with fake brokers: every mechanism, both framings, refusals, and servers that lie."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import pickle
import re
import traceback
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from scramp import ScramException, ScramMechanism

import kwire
from kwire import messages
from kwire.codec.frames import FrameReader
from kwire.net import AuthenticationError, BrokerConnectionError, Cluster, connect, sasl
from tests.limits import processor_time
from tests.net.fake import Broker, cluster_answer, of_release, run

pytestmark = pytest.mark.quick

METADATA = messages.MetadataRequest(topics=[])
USER, PASSWORD = "alice", "sesame, open = this"
OLD = "0.11.0"  # SaslHandshake v0, tokens without header
NEW = "4.4"


class Login:
    """The server's side of one exchange: tokens in, (token out, error) back; done once it is through."""

    def __init__(
        self, mechanism: str, *, iterations: int = 4096, change: Callable[[str], str] = str,
        echo: Callable[[bytes], str] | None = None,
    ) -> None:
        self.mechanism, self.change, self.echo, self.done = mechanism, change, echo, False
        self.step = 0
        if mechanism.startswith("SCRAM"):
            known = ScramMechanism(mechanism)
            auth = known.make_auth_info(PASSWORD, iteration_count=iterations)
            self.scram = known.make_server(lambda user: auth if user == USER else None)

    def take(self, token: bytes) -> tuple[bytes, str | None]:
        self.step += 1
        if self.echo is not None and self.step == 1 + self.mechanism.startswith("SCRAM"):
            text = self.echo(token)
            return (text.encode(), None) if self.mechanism == "OAUTHBEARER" and text.startswith("{") else (b"", text)
        if self.mechanism == "PLAIN":
            self.done = token == f"\0{USER}\0{PASSWORD}".encode()
            return b"", None if self.done else f"no such user, or {token!r} is wrong"
        if self.mechanism == "OAUTHBEARER":
            if token == b"\x01":
                return b"", "invalid token"
            self.done = token.startswith(b"n,,\x01auth=Bearer good.one.\x01")
            return (b"", None) if self.done else (b'{"status":"invalid_token"}', None)
        try:
            if self.step == 1:
                self.scram.set_client_first(token.decode())
                return self.change(self.scram.get_server_first()).encode(), None
            self.scram.set_client_final(token.decode())
            self.done = True
        except ScramException:
            return b"", "Authentication failed during authentication due to invalid credentials"
        return self.change(self.scram.get_server_final()).encode(), None


class Guarded(Broker):
    """Answers nothing but ApiVersions before a login."""

    def __init__(self, release: str, mechanism: str, lifetime: int = 0, **login: Any) -> None:
        super().__init__(of_release(release), old=release < "2.4")
        self.raw, self.mechanism, self.lifetime, self.options = release == OLD, mechanism, lifetime, login
        self.logins = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames, login = FrameReader(), Login(self.mechanism, **self.options)
        tokens = False

        def reply(request: Any, message: Any, version: int | None = None) -> None:
            version = request.version if version is None else version
            frame = kwire.encode_response(message, version, correlation_id=request.correlation_id)
            writer.write(kwire.pack_frame(frame))

        while data := await reader.read(1 << 16):
            for frame in frames.feed(data):
                if tokens and not login.done:
                    token, error = login.take(frame)
                    if error:
                        return
                    self.logins += login.done
                    writer.write(kwire.pack_frame(token))
                    continue
                request = kwire.decode_request(frame)
                self.requests.append(request)
                if request.name == "ApiVersions":
                    message = self.negotiate(request)
                    reply(request, message, 0 if message.error_code else request.version)
                elif request.name == "SaslHandshake":
                    there = request.message.mechanism == self.mechanism
                    login = Login(self.mechanism, **self.options)
                    tokens = self.raw and there
                    answer = messages.SaslHandshakeResponse(error_code=0 if there else 33, mechanisms=[self.mechanism])
                    reply(request, answer)
                elif request.name == "SaslAuthenticate":
                    token, error = login.take(request.message.auth_bytes)
                    self.logins += login.done
                    answer = messages.SaslAuthenticateResponse(
                        error_code=58 if error else 0, error_message=error, auth_bytes=token,
                        session_lifetime_ms=self.lifetime,
                    )  # fmt: skip
                    reply(request, answer)
                    if error:
                        await writer.drain()
                        return
                elif not login.done:
                    return
                else:
                    reply(request, cluster_answer(self)(request))


MECHANISMS = [(name, (name, USER, PASSWORD)) for name in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")] + [
    ("OAUTHBEARER", lambda: "good.one.")
]


@pytest.mark.parametrize("release", [OLD, "1.0", "2.8", NEW])
@pytest.mark.parametrize(("mechanism", "how"), MECHANISMS, ids=[row[0] for row in MECHANISMS])
def test_every_mechanism(release: str, mechanism: str, how: Any) -> None:
    async def work() -> None:
        async with Guarded(release, mechanism) as broker:
            async with connect(broker.address, sasl=how) as connection:
                assert (await connection.send(METADATA)).brokers
                asked = [(r.name, r.version) for r in broker.requests if r.name.startswith("Sasl")]
                if release == OLD:
                    assert asked == [("SaslHandshake", 0)]
                else:
                    newest = connection.versions["SaslAuthenticate"][1]
                    assert asked[:2] == [("SaslHandshake", 1), ("SaslAuthenticate", newest)]
            async with Cluster(broker.address, sasl=how) as cluster:
                assert await cluster.send(METADATA)

    run(work())


WRONG = [(name, (name, USER, "secret-guess")) for name in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")] + [
    ("OAUTHBEARER", lambda: "secret-guess")
]


@pytest.mark.parametrize("release", [OLD, NEW])
@pytest.mark.parametrize(("mechanism", "how"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_password(release: str, mechanism: str, how: Any, caplog: Any) -> None:
    """The broker of this test quotes the password; the error does not."""

    async def work() -> None:
        async with Guarded(release, mechanism) as broker:
            connection = connect(broker.address, sasl=how, timeout=2)
            with pytest.raises(AuthenticationError) as caught:
                await connection.open()
            text = str(caught.value)
            assert text.startswith(f"{broker.address}: {mechanism} authentication") and "\n" not in text
            everything = "".join(traceback.format_exception(caught.value)) + repr(caught.value.__dict__)
            everything += repr(connection) + repr(connection._sasl) + caplog.text
            assert "secret-guess" not in everything
            assert "secret-guess" not in repr(pickle.dumps(caught.value))

    run(work())


ECHOES: dict[str, Callable[[bytes], str]] = {
    "plain": lambda token: f"cannot use {token.decode()}", "repr": repr,
    "base64": lambda token: f"token {base64.b64encode(token).decode()}", "hex": bytes.hex,
    "percent": lambda token: urllib.parse.quote(token), "half": lambda token: token[len(token) // 2 :].decode(),
    "where it is cut": lambda token: "x" * (295 - len(token)) + token.decode(),
    "far into it": lambda token: "x" * 250 + token.decode() * 3,
    "JSON": lambda token: json.dumps({"status": "invalid", "scope": token.decode()}),
    "words": lambda token: "Authentication failed: " + " ".join(re.split(r"[,\0\x01 ]+", token.decode())),
}
SPACED = "open  sesame\tsays-the-thief  of-Baghdad"


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
def test_what_a_broker_echoes_is_not_shown(mechanism: str, echo: str, caplog: Any) -> None:
    """Neither the password nor the token nor SCRAM's proof, which lets one guess the password, nor a piece of them."""
    token = "bearer-eyJhbGciOi.Q2xhaW1z.c2lnbmF0dXJl-SECRET"
    how: Any = (lambda: token) if mechanism == "OAUTHBEARER" else (mechanism, USER, SPACED)
    seen: list[bytes] = []

    def echoed(sent: bytes) -> str:
        seen.append(sent)
        return ECHOES[echo](sent)

    async def work() -> None:
        async with Guarded(NEW, mechanism, echo=echoed) as broker:
            connection = connect(broker.address, sasl=how, timeout=5)
            with pytest.raises(AuthenticationError) as caught:
                await connection.open()
            everything = "".join(traceback.format_exception(caught.value)) + repr(caught.value.__dict__) + caplog.text
            everything += repr(connection) + repr(pickle.dumps(caught.value))
            secret = {"PLAIN": SPACED, "OAUTHBEARER": token}.get(mechanism) or seen[0].decode().rpartition("p=")[2]
            readings = (everything, urllib.parse.unquote(everything))
            for form in (secret, secret.encode().hex(), *(
                base64.b64encode(secret.encode()[skip:]).decode().rstrip("=") for skip in range(3)
            )):
                pieces = {form[at : at + 6] for at in range(len(form) - 5)}
                assert not [piece for piece in pieces if any(piece in one for one in readings)], everything

    run(work())
    assert seen


def test_a_mechanism_that_the_broker_lacks_or_that_there_is_not() -> None:
    async def work() -> None:
        async with Guarded(NEW, "PLAIN") as broker:
            with pytest.raises(AuthenticationError, match="UNSUPPORTED_SASL_MECHANISM; the broker has PLAIN"):
                async with connect(broker.address, sasl=("SCRAM-SHA-256", USER, PASSWORD)):
                    pass

    run(work())
    with pytest.raises(AuthenticationError, match="unsupported SASL mechanism 'GSSAPI'"):
        connect("b:1", sasl=("GSSAPI", USER, PASSWORD))
    for wrong in (("PLAIN", USER), ("OAUTHBEARER", USER, PASSWORD), 5):
        with pytest.raises(AuthenticationError):
            connect("b:1", sasl=wrong)


def lie(what: str) -> Callable[[str], str]:
    def change(message: str) -> str:
        if what == "signature" and message.startswith("v="):
            return "v=" + "A" * (len(message) - 3) + "="
        if what == "iterations" and "i=" in message:
            return message.partition("i=")[0] + "i=2000000000"
        if what == "many iterations" and "i=" in message:
            return message.partition("i=")[0] + "i=1000000"
        if what == "few iterations" and "i=" in message:
            return message.partition("i=")[0] + "i=1"
        if what == "long number" and "i=" in message:
            return message.partition("i=")[0] + "i=" + "9" * 9000
        if what == "long" and "i=" in message:
            return message + ",x=y" * 20_000
        if what == "nonce" and message.startswith("r="):
            return "r=else" + message[2:]
        if what == "error" and message.startswith("v="):
            return "e=other-error"
        if what == "nothing":
            return ""
        return "no scram \0" if what == "noise" else message

    return change


LIES = (
    "signature", "iterations", "many iterations", "few iterations", "long number", "long", "nonce", "error", "nothing",
    "noise",
)


@pytest.mark.parametrize("release", [OLD, NEW])
@pytest.mark.parametrize("what", LIES)
def test_a_server_that_lies_is_found_out(what: str, release: str) -> None:
    async def work() -> None:
        async with Guarded(release, "SCRAM-SHA-256", change=lie(what)) as broker:
            with pytest.raises(AuthenticationError, match=r"SHA-256 authentication of user 'alice' failed: .") as why:
                async with connect(broker.address, sasl=("SCRAM-SHA-256", USER, PASSWORD)):
                    pass
            assert what != "long" or re.search("token of 80[0-9]{3} bytes exceeds 65536", str(why.value))
            assert what != "many iterations" or "asks for 1000000 iterations, not 4096 to 200000" in str(why.value)

    run(work())


def test_authenticates_again_before_the_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.net.connection._LEAST_SESSION", 0)

    async def work() -> None:
        broker, how = Guarded(NEW, "SCRAM-SHA-512", lifetime=300), ("SCRAM-SHA-512", USER, PASSWORD)
        async with broker, connect(broker.address, sasl=how) as connection:
            while broker.logins < 4:
                await connection.send(METADATA)
                await asyncio.sleep(0.01)
            assert broker.connections == 1
            names = [r.name for r in broker.requests]
            for at, name in enumerate(names):  # nothing in between
                if name == "SaslHandshake":
                    assert names[at + 1 : at + 3] == ["SaslAuthenticate", "SaslAuthenticate"]

    run(work())


def test_does_not_authenticate_again_while_it_is_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker reads nothing then; when the connection is lost, nobody waits any more."""
    monkeypatch.setattr("kwire.net.connection._LEAST_SESSION", 0)
    monkeypatch.setattr("tests.net.test_sasl.cluster_answer", lambda broker: lambda request: messages.MetadataResponse(
        throttle_time_ms=60_000))

    async def work() -> None:
        broker, how = Guarded(NEW, "PLAIN", lifetime=1000), ("PLAIN", USER, PASSWORD)
        async with broker, connect(broker.address, sasl=how) as connection:
            await connection.send(METADATA)
            logins = broker.logins
            await asyncio.sleep(1.2)
            assert broker.logins == logins and connection.is_open
            broker.drop()
            assert isinstance(await connection.send(METADATA), messages.MetadataResponse)
            assert broker.connections == 2

    run(work())


def test_a_password_that_changes_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.net.connection._LEAST_SESSION", 0)

    async def work() -> None:
        broker, how = Guarded(NEW, "PLAIN", lifetime=200), ("PLAIN", USER, PASSWORD)
        async with broker, connect(broker.address, sasl=how) as connection:
            broker.mechanism = "SCRAM-SHA-256"
            while connection.is_open:
                await asyncio.sleep(0.01)
            with pytest.raises(AuthenticationError, match="UNSUPPORTED_SASL_MECHANISM"):
                await connection.send(METADATA)

    run(work())


def test_tokens_of_awaitables_extensions_and_callbacks_that_fail() -> None:
    async def token() -> tuple[str, dict[str, str]]:
        return "good.one.", {"traceparent": "1"}

    async def fails() -> str:
        raise RuntimeError("secret-guess")

    async def work() -> None:
        async with Guarded(NEW, "OAUTHBEARER") as broker:
            async with connect(broker.address, sasl=token) as connection:
                await connection.send(METADATA)
            sent = next(r for r in broker.requests if r.name == "SaslAuthenticate").message.auth_bytes
            assert sent == b"n,,\x01auth=Bearer good.one.\x01traceparent=1\x01\x01"
            bad: Any = ((fails, "RuntimeError"), (lambda: "", "invalid bearer token"), (lambda: 5, "TypeError"),
                        (lambda: ("good.one.", {"auth": "Bearer x"}), "invalid SASL extensions"))
            for callback, reason in bad:
                with pytest.raises(AuthenticationError, match=reason) as caught:
                    async with connect(broker.address, sasl=callback):
                        pass
                assert "secret-guess" not in str(caught.value)

    run(work())


def test_a_token_callback_that_is_cancelled_is_an_authentication_error() -> None:
    """Its own task was: nobody has cancelled the call."""
    given: list[str] = ["good.one."]

    async def token() -> str:
        if given:
            return given.pop()
        task = asyncio.ensure_future(asyncio.sleep(9, ""))
        task.cancel()
        return await task

    async def work() -> None:
        async with (
            Guarded(NEW, "OAUTHBEARER", lifetime=1) as broker, asyncio.timeout(9),
            connect(broker.address, sasl=token) as connection,
        ):  # fmt: skip
            while connection.is_open:  # until it should authenticate again
                await asyncio.sleep(0.01)
            with pytest.raises(AuthenticationError, match="the token callback was cancelled"):
                await connection.send(METADATA)

    run(work())


def test_a_call_that_is_cancelled_in_its_token_callback_is_cancelled() -> None:
    began = asyncio.Event()

    async def token() -> str:
        began.set()
        await asyncio.sleep(9)
        return ""

    async def work() -> None:
        async with Guarded(NEW, "OAUTHBEARER") as broker:
            opening = asyncio.ensure_future(connect(broker.address, sasl=token).open())
            await began.wait()
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening

    run(work())


def test_a_broker_that_hangs_up_or_is_silent_while_authenticating() -> None:
    async def work() -> None:
        async with Broker(of_release(NEW)) as broker:
            with pytest.raises(BrokerConnectionError, match=r"no answer within 0\.3 s"):
                async with connect(broker.address, sasl=("PLAIN", USER, PASSWORD), timeout=0.3):
                    pass
            broker.answer = lambda _: broker.drop()
            with pytest.raises(AuthenticationError, match="closed the connection: wrong credentials"):
                async with connect(broker.address, sasl=("PLAIN", USER, PASSWORD), timeout=5):
                    pass

    run(work())


@pytest.mark.parametrize("words", ["&#" + "9" * 5000 + ";", "h u n t e r", "+" * 32_000])
def test_any_words_of_a_broker_are_an_authentication_error(words: str) -> None:
    async def work() -> None:
        async with Guarded("4.4", "PLAIN", echo=lambda _: words) as broker:
            with pytest.raises(AuthenticationError, match=r"_AUTHENTICATION_FAILED: .the broker's error text is not"):
                async with connect(broker.address, sasl=("PLAIN", USER, "hunter"), timeout=2):
                    pass

    run(work())


def test_a_long_refusal_of_a_token_takes_no_time() -> None:
    async def work() -> None:
        async with Guarded("4.4", "OAUTHBEARER", echo=lambda _: "{" + "+" * (1 << 20)) as broker:
            with processor_time(10), pytest.raises(AuthenticationError):
                async with connect(broker.address, sasl=lambda: "".join(f"{n:04x}" for n in range(250)), timeout=5):
                    pass

    run(work())


def test_a_broker_cannot_have_a_client_authenticate_all_the_time() -> None:
    async def work() -> None:
        async with Guarded("4.4", "PLAIN", lifetime=1) as broker:
            async with connect(broker.address, sasl=("PLAIN", USER, PASSWORD)):
                await asyncio.sleep(0.3)
            assert broker.logins <= 3

    run(work())


def test_what_utf_8_cannot_carry_is_refused_without_the_secret() -> None:
    with pytest.raises(AuthenticationError) as caught:
        connect("b:1", sasl=("PLAIN", USER, "hunter\ud800"))
    assert caught.value.__context__ is None and "hunter" not in str(caught.value)

    async def work() -> None:
        async with Guarded("4.4", "OAUTHBEARER") as broker:
            with pytest.raises(AuthenticationError, match="invalid SASL extensions") as caught:
                async with connect(broker.address, sasl=lambda: ("good.one.", {"a": "hunter\ud800"})):
                    pass
            assert not any(isinstance(one, UnicodeError) for one in (caught.value, caught.value.__context__))

    run(work())


@pytest.mark.parametrize("token", [("tok", None), 5, (b"tok", {}), ("tok", {1: "a"}), ("tok", 5), None])
def test_a_callback_that_returns_no_token_is_an_authentication_error(token: Any) -> None:
    async def work() -> None:
        async with Guarded("4.4", "OAUTHBEARER") as broker:
            with pytest.raises(AuthenticationError, match="callback"):
                async with connect(broker.address, sasl=lambda: token):
                    pass

    run(work())


def test_kafka_takes_passwords_as_they_are() -> None:
    """Without SASLprep: characters that it forbids or maps are sent as UTF-8."""
    name, password = "SCRAM-SHA-256", "ª\u00adｐ"
    dialogue = sasl.Credentials(name, USER, password)._scram()
    known = ScramMechanism(name)
    salt = known.make_auth_info("x", iteration_count=4096)[0]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 4096)
    key = hmac.digest(salted, b"Client Key", "sha256")
    info = (salt, hashlib.sha256(key).digest(), hmac.digest(salted, b"Server Key", "sha256"), 4096)
    peer = known.make_server(lambda _: info)
    peer.set_client_first(next(dialogue).decode())
    peer.set_client_final(dialogue.send(peer.get_server_first().encode()).decode())
    with pytest.raises(StopIteration):
        dialogue.send(peer.get_server_final().encode())


@pytest.mark.parametrize(("user", "sent"), [
    ("ｆull", "ｆull"), ("so\u00adft", "so\u00adft"), ("a\tb", "a\tb"), ("a=b,c", "a=3Db=2Cc"),
])  # fmt: skip
def test_kafka_takes_users_as_they_are(user: str, sent: str) -> None:
    """Without SASLprep, which would make another user's name of one."""
    first = next(sasl.Credentials("SCRAM-SHA-512", user, "x")._scram()).decode()
    assert first.startswith(f"n,,n={sent},r=")
