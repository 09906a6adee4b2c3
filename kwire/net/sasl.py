"""Authentication: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER, over SaslAuthenticate or as raw tokens."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from kwire import messages, schema
from kwire.errors import KwireError
from kwire.net.address import Address
from kwire.net.channel import Channel
from kwire.net.echo import MOST, quoted
from kwire.net.errors import AuthenticationError, BrokerConnectionError
from kwire.net.negotiation import Chooser
from kwire.schema import api_keys

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_OTHER_MECHANISMS = ("GSSAPI", "EXTERNAL", "DIGEST-MD5", "CRAM-MD5", "NTLM", "ANONYMOUS", "SCRAM-SHA-1", "AWS_MSK_IAM")
_MOST_RECEIVED = 64 << 10  # bytes of a token from the broker: SCRAM's have a few hundred
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 200_000  # SCRAM; Kafka's brokers keep 4096 to 16384

Token = str | tuple[str, dict[str, str]]
TokenCallback = Callable[[], Token | Awaitable[Token]]
_Dialogue = Generator[bytes, bytes, None]  # yields the token to send, gets the one received

# of an extension, as in Kafka's OAuthBearerClientInitialResponse
_NAME, _VALUE = re.compile("[A-Za-z]+"), re.compile("[\x21-\x7e \t\r\n]+")


class Refused(Exception):
    """An exchange of tokens failed. The text holds no secret."""


class Credentials:
    """A mechanism, a user and a secret. No repr and no error shows the secret."""

    def __init__(
        self, mechanism: str, user: str = "", password: str = "", callback: TokenCallback | None = None
    ) -> None:
        if mechanism not in MECHANISMS:
            # shown only if it is a known mechanism: after a mistake it may be the password
            name = f" {mechanism!r}" if mechanism.upper() in (*MECHANISMS, *_OTHER_MECHANISMS) else ""
            raise AuthenticationError(f"unsupported SASL mechanism{name}: expected one of {', '.join(MECHANISMS)}")
        if any("\ud800" <= char <= "\udfff" for char in user + password):  # UnicodeEncodeError would hold them
            raise AuthenticationError("the user or the password holds a lone surrogate, which UTF-8 cannot encode")
        self.mechanism, self.user, self._password, self._callback = mechanism, user, password, callback

    def __repr__(self) -> str:
        if not hasattr(self, "mechanism"):
            return "<Credentials, not made>"
        return f"Credentials({self.mechanism!r}, {self.user!r}, password=...)"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle credentials: they hold a secret")

    async def authenticate(self, channel: Channel, chooser: Chooser) -> float:
        """Authenticate a connection; return the session's lifetime in seconds, 0 if it does not expire (KIP-368).

        Raises AuthenticationError, or BrokerConnectionError if the connection fails for another reason.
        """
        try:
            return await self._authenticate(channel, chooser)
        except (KwireError, Refused) as error:
            raise self.failure(error, channel.address) from None

    def failure(self, error: Exception, address: Address) -> BrokerConnectionError:
        """The error of a failed authentication: AuthenticationError, or the connection's own error."""
        if isinstance(error, BrokerConnectionError):
            if isinstance(error, AuthenticationError) or not error.reason.startswith("closed the connection"):
                return error
            reason = "the broker closed the connection: wrong credentials?"
        elif isinstance(error, (KwireError, Refused)):
            reason = getattr(error, "reason", str(error))
        else:
            reason = type(error).__name__
        who = f" of user {self.user!r}" if self.user else ""
        return AuthenticationError(f"{self.mechanism} authentication{who} failed: {reason}", address=str(address))

    async def _authenticate(self, channel: Channel, chooser: Chooser) -> float:
        version = chooser.newest(api_keys.SASL_HANDSHAKE)
        framed = api_keys.SASL_AUTHENTICATE in chooser.api_versions.ranges and version >= 1
        request = messages.SaslHandshakeRequest(mechanism=self.mechanism)
        handshake = await channel.request(request, version if framed else 0)
        if handshake.error_code:
            known = [name for name in (*MECHANISMS, *_OTHER_MECHANISMS) if name in handshake.mechanisms]
            enabled = ", ".join(known) or ("mechanisms unknown to kwire" if handshake.mechanisms else "none")
            raise Refused(f"{schema.ErrorCode(handshake.error_code).name}; the broker has {enabled} enabled")
        dialogue = await self._dialogue()
        lifetime = 0
        try:
            token = next(dialogue)
            while True:
                if framed:
                    answer = await channel.request(
                        messages.SaslAuthenticateRequest(auth_bytes=token), chooser.newest(api_keys.SASL_AUTHENTICATE)
                    )
                    if answer.error_code:
                        text = quoted(answer.error_message or "")
                        raise Refused(f"{schema.ErrorCode(answer.error_code).name}: {text}".rstrip(": "))
                    lifetime = max(lifetime, answer.session_lifetime_ms)
                    received = answer.auth_bytes
                else:
                    received = await channel.exchange_token(token)
                if len(received) > _MOST_RECEIVED:
                    raise Refused(f"the broker's token of {len(received)} bytes exceeds {_MOST_RECEIVED}")
                token = dialogue.send(bytes(received))
        except StopIteration:
            return lifetime / 1000

    async def _dialogue(self) -> _Dialogue:
        """The client's side of the mechanism."""
        if self.mechanism == "PLAIN":
            return self._plain()
        if self.mechanism == "OAUTHBEARER":
            assert self._callback is not None
            task = asyncio.current_task()
            try:
                token = self._callback()
                if inspect.isawaitable(token):
                    token = await token
                text, extensions = (token, {}) if isinstance(token, str) else token
                extensions = dict(extensions)
                if not all(isinstance(part, str) for part in (text, *extensions, *extensions.values())):
                    raise TypeError
            except asyncio.CancelledError:
                if task is None or task.cancelling():
                    raise  # of this call
                raise Refused("the token callback was cancelled") from None
            except Exception as error:
                raise Refused(f"the token callback failed: {type(error).__name__}") from None
            return self._bearer(text, extensions)
        return self._scram()

    def _plain(self) -> _Dialogue:
        yield f"\0{self.user}\0{self._password}".encode()

    def _scram(self) -> _Dialogue:
        try:
            from scramp import ScramClient, ScramException
        except ModuleNotFoundError as missing:
            raise Refused(f"SCRAM needs {missing.name}: pip install 'kwire[net]'") from None
        except ImportError as error:
            raise Refused(f"SCRAM: its library cannot be loaded: {error}") from None
        try:
            client = ScramClient([self.mechanism], "user" if self.user else "", "")
            # unchanged: Kafka's brokers and clients do not apply SASLprep
            client.username.username, client.password = self.user, self._password.encode()
            client.set_server_first((yield client.get_client_first().encode()).decode())
            if not LEAST_ITERATIONS <= (count := int(client.iterations)) <= MOST_ITERATIONS:
                raise Refused(f"the broker asks for {count} iterations, not {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
            client.set_server_final((yield client.get_client_final().encode()).decode())
        except ScramException as error:
            raise Refused(quoted(str(error))) from None
        except (ValueError, IndexError, KeyError) as error:
            raise Refused(f"invalid SCRAM message from the broker ({type(error).__name__})") from None

    def _bearer(self, token: str, extensions: dict[str, str]) -> _Dialogue:
        if not token or any(not 33 <= ord(char) <= 126 for char in token):
            raise Refused("the token callback returned an invalid bearer token")
        if "auth" in extensions or not all(
            _NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in extensions.items()
        ):
            raise Refused("the token callback returned invalid SASL extensions")
        pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        problem = yield f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()
        if problem:  # RFC 7628: the client acknowledges, then the broker fails the exchange
            yield b"\x01"
            raise Refused(f"the token was refused: {quoted(problem[:MOST].decode(errors='replace'))}")


def credentials(sasl: Any) -> Credentials | None:
    """The credentials of (mechanism, user, password), or of a function that returns an OAUTHBEARER token."""
    if sasl is None or isinstance(sasl, Credentials):
        return sasl
    if callable(sasl):
        return Credentials("OAUTHBEARER", callback=sasl)
    if not isinstance(sasl, (tuple, list)) or len(sasl) != 3 or not all(isinstance(part, str) for part in sasl):
        raise AuthenticationError("sasl must be (mechanism, user, password), or a function that returns a token")
    mechanism, user, password = sasl
    if mechanism == "OAUTHBEARER":
        raise AuthenticationError("OAUTHBEARER needs a function that returns the token, not a user and a password")
    return Credentials(mechanism, user, password)
