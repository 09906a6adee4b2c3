"""A broker's error text: quoted if it is one of Kafka's own, left out otherwise."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from kwire.net.echo import LEFT_OUT, quoted
from tests.limits import processor_time

pytestmark = pytest.mark.quick

SECRET = "hunter2-Grüße"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str, "spelled": " ".join, "reversed": lambda text: text[::-1],
    "UTF-16": lambda text: text.encode("utf-16").decode("latin-1"),
    "octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "base32": lambda text: base64.b32encode(text.encode()).decode(), "one letter": lambda text: text[:1],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("words", ["{}", "Authentication failed: {}", "Authentication failed: invalid credentials {}"])
def test_words_that_are_not_kafkas_are_left_out(form: str, words: str) -> None:
    assert quoted(words.format(FORMS[form](SECRET))) == LEFT_OUT


def test_kafkas_own_words_are_quoted() -> None:
    for words in (
        "Authentication failed: Invalid username or password", "SASL Authentication failed.",
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        "Authentication could not be performed due to an internal error on the server", '{"status":"invalid_token"}',
    ):
        assert quoted(words) == words
    assert quoted(" Authentication failed:\n  invalid credentials ") == "Authentication failed: invalid credentials"
    assert quoted("") == quoted(" \n") == ""


@pytest.mark.parametrize("words", ["&#" + "9" * 5000 + ";", "+" * (1 << 24), "Authentication failed" * 1_000_000])
def test_long_words_take_no_time(words: str) -> None:
    with processor_time(5):
        assert quoted(words) == LEFT_OUT
