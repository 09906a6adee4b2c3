"""Properties files: as java.util.Properties reads them, and in linear time."""

from __future__ import annotations

import re

import javaproperties
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kwire.properties import parse_properties, properties_text

pytestmark = pytest.mark.quick
_BACKSLASH_AND_COMMENT = re.compile(r"(?:^|[\n\r])[ \t\f]*\\[\n\r]+[ \t\f\\\n\r]*[#!]")


@pytest.mark.parametrize("text, wanted", [
    ("a=1\nb: 2\rc 3\r\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
    ("# x=1\n  ! y=1\n\n \t\n z = 1 ", {"z": "1 "}),
    ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}), ("a=1\\\n   2\\\n\n3=4", {"a": "12", "3": "4"}),
    ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}), ("a=\\u00e9\\ud83d\\ude00\\t\\q", {"a": "é\U0001f600\tq"}),
    ("a=1\na=2", {"a": "2"}), ("=x", {"": "x"}), ("a = = b", {"a": "= b"}), ("a=1\\", {"a": "1"}),
    ("a\\\n#b=1", {"a#b": "1"}), ("", {}), ("\\\n#b=1\nc=2", {"c": "2"}), ("\\\n \\\r\n !b\nc=2", {"c": "2"}),
    ("\\\n\n#b", {}),
])  # fmt: skip
def test_as_java_reads_them(text: str, wanted: dict[str, str]) -> None:
    assert parse_properties(text) == wanted


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "\\u=1", "a=\\u 123"])
def test_malformed(text: str) -> None:
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties(text)


@given(st.text(alphabet="ab =:#!\\\n\r\t\fué", max_size=30))
def test_as_another_reader(text: str) -> None:
    assume(not _BACKSLASH_AND_COMMENT.search(text))  # there it takes a comment for a key
    try:
        wanted = javaproperties.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match="Malformed"):
            parse_properties(text)
        return
    assert parse_properties(text) == wanted


@given(st.text(max_size=20))
def test_what_is_written_is_read_again(value: str) -> None:
    if not any(0xD800 <= ord(sign) < 0xE000 for sign in value):
        assert parse_properties(properties_text({"cluster.id": value})) == {"cluster.id": value}


@pytest.mark.parametrize("piece", ["a\\\n", "\\", " ", "a=\\u0041", "k=v\n", "=", "\\\r\n"])
def test_long_files(piece: str) -> None:
    parse_properties(piece * ((1 << 20) // len(piece)))
