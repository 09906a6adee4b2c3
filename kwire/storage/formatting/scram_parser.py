"""--add-scram: the SCRAM credentials that a formatted cluster begins with (KIP-900, ScramParser, ScramFormatter)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Any, NamedTuple

from kwire import messages
from kwire.java_semantics import java_int
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.rules import Rules
from kwire.storage.metadata.scram import MECHANISMS, Mechanism
from kwire.storage.side_files.uuids import decode_base64

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_KEYS = ("name", "salt", "iterations", "password", "saltedpassword")
_HIDDEN = "[hidden]"
_SECRET = re.compile("passw(?:or)?d|pass|pwd|secret", re.IGNORECASE)


class Credential(NamedTuple):
    """What one --add-scram says. salt, iterations: None where Kafka chooses; one of the two passwords is there."""

    mechanism: Mechanism
    name: str
    salt: bytes | None
    iterations: int | None
    password: str | None
    salted_password: bytes | None

    def __repr__(self) -> str:  # the rest is secret
        return f"Credential(mechanism={self.mechanism.name!r}, name={self.name!r})"

    def record(self, rules: Rules) -> Any:
        """The UserScramCredentialRecord. Raises FormatterError for too few or too many iterations, and a surrogate."""
        try:
            self.name.encode()
            password = (self.password or "").encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise FormatterError("the name or password of add-scram has a lone surrogate, which UTF-8 cannot encode"
                                 ) from None
        salt = random_salt() if self.salt is None else self.salt
        iterations = self.mechanism.min_iterations if self.iterations is None else self.iterations
        using = f" using {self.mechanism.name}" if rules.formatter else ""
        for limit, sign, wrong in (
            (self.mechanism.min_iterations, ">=", iterations < self.mechanism.min_iterations),
            (self.mechanism.max_iterations, "<=", iterations > self.mechanism.max_iterations),
        ):
            if wrong:
                raise FormatterError(f"The 'iterations' value must be {sign} {limit} for add-scram{using}")
        salted = self.salted_password
        if b"" in (salted, None if self.password is None else password):
            raise FormatterError("The password given to add-scram is empty")
        if salted is None:
            salted = self.mechanism.salted(password, salt, iterations)
        stored_key, server_key = self.mechanism.keys(salted)
        return messages.UserScramCredentialRecord(
            name=self.name, mechanism=self.mechanism.type, salt=salt, iterations=iterations,
            stored_key=stored_key, server_key=server_key,
        )  # fmt: skip


def random_salt() -> bytes:
    """130 random bits as a number in base 36 (ScramFormatter.secureRandomBytes)."""
    number, text = secrets.randbits(130), ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text.encode()


def scram_records(arguments: Iterable[str], rules: Rules) -> list[Any]:
    """The records of these arguments of --add-scram, such as SCRAM-SHA-256=[name=alice,password=secret].

    Raises FormatterError; its text is Kafka's, but never shows a password.
    """
    parse = parse_argument if rules.formatter else parse_argument_before_3_9
    return [parse(argument).record(rules) for argument in arguments]


def parse_argument(argument: str) -> Credential:
    """One argument, as Kafka 3.9 and later read it. Raises FormatterError."""
    argument = argument.strip()
    name, equals, config = argument.partition("=")
    if not equals:
        raise FormatterError(f"Failed to find equals sign in SCRAM argument '{_shown(argument)}'")
    mechanism = _mechanism(name)
    if not config.startswith("["):
        raise FormatterError("Expected configuration string to start with [")
    if not config.endswith("]"):
        raise FormatterError("Expected configuration string to end with ]")
    components: dict[str, str] = {}
    texts: dict[str, str] = {}
    before = ""
    unknown: set[str] = set()
    for part in _split(config[1:-1]):
        key, equals, value = part.partition("=")
        if not equals:
            raise FormatterError(f"No equals sign found in SCRAM component: {_shown(part, before)}")
        if key not in _KEYS:
            unknown.add(_shown(key, before))
        components[key] = value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value
        texts[key] = _shown(components[key], before)
        before += part
    user = components.pop("name", None)
    if user is None:
        raise FormatterError("You must supply 'name' to add-scram")
    salt = _decoded(components.pop("salt", None), "salt", texts.get("salt"))
    iterations = components.pop("iterations", None)
    try:
        count = None if iterations is None else java_int(iterations)
    except ValueError:
        raise FormatterError(f"Failed to parse iterations count: {texts['iterations']}") from None
    password, salted_password = components.pop("password", None), components.pop("saltedpassword", None)
    salted = None
    if password is None:
        if salted_password is None:
            raise FormatterError("You must supply one of 'password' or 'saltedpassword' to add-scram")
        if salt is None:
            raise FormatterError("You must supply 'salt' with 'saltedpassword' to add-scram")
        salted = _decoded(salted_password, "saltedPassword")
    if unknown:
        raise FormatterError(f"Unknown SCRAM configurations: {', '.join(sorted(unknown))}")
    return Credential(mechanism, user, salt, count, password, salted)


def parse_argument_before_3_9(argument: str) -> Credential:
    """One argument, as Kafka 3.5 to 3.8 read it: iterations count only beside a salt. Raises FormatterError."""
    name, equals, config = re.split(r"[ \t\n\x0b\f\r]+", argument)[0].partition("=")
    mechanism = _mechanism(name)
    if not equals:
        raise FormatterError(f"Failed to find equals sign in SCRAM argument '{_shown(argument)}'")
    components: dict[str, str] = {}
    texts: dict[str, str] = {}
    before = ""
    for part in _split(config[1:-1]):
        pair = _split_outside_quotes(part)
        if len(pair) < 2 or not pair[1]:
            raise FormatterError(f"No equals sign found in SCRAM component: {_shown(part, before)}")
        components[pair[0]] = pair[1].replace('"', "")
        texts[pair[0]] = _shown(components[pair[0]], before)
        before += part
    if "name" not in components:
        raise FormatterError("You must supply 'name' to add-scram")
    salt = _decoded(components.get("salt"), "salt", texts.get("salt"))
    count = None
    if salt is not None:
        try:
            count = java_int(components["iterations"])
        except KeyError:
            raise FormatterError("You must supply 'iterations' with 'salt' to add-scram") from None
        except ValueError:
            raise FormatterError(f"Failed to parse iterations count: {texts['iterations']}") from None
    salted = None
    if "password" in components and "saltedpassword" in components:
        raise FormatterError("You must only supply one of 'password' or 'saltedpassword' to add-scram")
    if "password" not in components:
        if "saltedpassword" not in components:
            raise FormatterError("You must supply one of 'password' or 'saltedpassword' to add-scram")
        if salt is None:
            raise FormatterError("You must supply 'salt' with 'saltedpassword' to add-scram")
        salted = _decoded(components["saltedpassword"], "saltedPassword")
    return Credential(mechanism, components["name"], salt, count, components.get("password"), salted)


def _shown(text: str, before: str = "") -> str:
    """A piece of an argument for an error, without what comes after a word for a password, in it or before it.

    A password may have commas in it, and a slip of the keyboard anywhere.
    """
    if _SECRET.search(before):
        return _HIDDEN
    found = _SECRET.search(text)
    return text[: found.end()] + _HIDDEN if found and found.end() < len(text) else text


def _mechanism(name: str) -> Mechanism:
    if name not in MECHANISMS:
        raise FormatterError(f"The add-scram mechanism {_shown(name)} is not supported.")
    return MECHANISMS[name]


def _split(config: str) -> list[str]:
    """String.split(","): empty pieces at the end do not count."""
    parts = config.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _split_outside_quotes(text: str) -> list[str]:
    """The text cut at each equals sign that an even number of quotation marks follows."""
    pieces, end, odd = [], len(text), False
    for at in range(len(text) - 1, -1, -1):
        if text[at] == '"':
            odd = not odd
        elif text[at] == "=" and not odd:
            pieces.append(text[at + 1 : end])
            end = at
    return [text[:end], *pieces[::-1]]


def _decoded(text: str | None, what: str, shown: str | None = _HIDDEN) -> bytes | None:
    if text is None:
        return None
    try:
        return decode_base64(text)
    except ValueError:
        raise FormatterError(f"Failed to decode given {what}: {shown}") from None
