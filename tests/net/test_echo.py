"""A peer's words in an error: whatever form of a secret they repeat, no piece of it is told."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse
from collections.abc import Callable

import pytest

from kwire.net.echo import LEFT_OUT, MOST, quoted

pytestmark = pytest.mark.quick

SECRET = 'Grüße  "an"\\alle\tvon ab-Zyx9'
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str, "repr": repr, "JSON": json.dumps, "its first half": lambda text: text[: len(text) // 2],
    "its last half": lambda text: text[len(text) // 2 :], "its middle": lambda text: text[9:20],
    "on one line": lambda text: " ".join(text.split()), "percent": urllib.parse.quote, "plus": urllib.parse.quote_plus,
    "hex": lambda text: text.encode().hex(), "HEX": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "urlsafe base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 of PLAIN": lambda text: base64.b64encode(f"\0alice\0{text}".encode()).decode(),
    "base64 of a longer name": lambda text: base64.b64encode(f"\0alices\0{text}".encode()).decode(),
    "base64 of the longest name": lambda text: base64.b64encode(f"\0alicess\0{text}".encode()).decode(),
    "HTML": html.escape, "bytes": lambda text: repr(text.encode()), "upper case": str.upper, "lower case": str.lower,
}


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_secret_is_quoted(form: str) -> None:
    assert quoted(f"token {FORMS[form](SECRET)} was refused", [SECRET]) == LEFT_OUT


@pytest.mark.parametrize("secret", ['"\\"\\"\\"\\', "пароль", "\t\r\n\x1b", "&<>&"])
def test_a_secret_each_of_whose_signs_is_escaped(secret: str) -> None:
    for form in ("plain", "repr", "JSON", "percent", "plus", "hex", "base64", "HTML", "bytes"):
        assert quoted(f"<{FORMS[form](secret)}>", [secret]) == LEFT_OUT, form


def test_a_secret_at_the_place_where_the_text_is_cut() -> None:
    for at in range(MOST - len(SECRET) - 2, MOST + 2):
        assert quoted("x" * at + SECRET + "y" * 50, [SECRET]) == LEFT_OUT
    assert quoted("x" * 1000, [SECRET]) == "x" * MOST


def test_short_secrets() -> None:
    assert quoted("the password a1 is wrong", ["a1"]) == LEFT_OUT
    assert quoted("wrong", ["a1"]) == "wrong"


def test_other_words_are_quoted() -> None:
    assert quoted(" Authentication failed:\n  invalid credentials ", [SECRET]) == (
        "Authentication failed: invalid credentials")
