"""Comma lists, {a,b}, [^a] and backslashes, as Hadoop's globs have them."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from pathlib import Path

import pytest

from kwire.storage import discover
from kwire.storage.places.filesystem import plain
from kwire.storage.places.path_patterns import alternatives
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick

CASES = {
    "/logs/a-0": ["/logs/a-0"],
    "/[a": ["/[a"],
    "/[a,b": ["/[[]a", "b"],
    r"/\\,b": ["/[\\]", "b"],
    "/a,/b": ["/a", "/b"],
    " /a , /b ,": ["/a", "/b"],
    "/logs/{a,b}-*": ["/logs/a-*", "/logs/b-*"],
    "/{a,c{d,e}}/x,/z": ["/a/x", "/cd/x", "/ce/x", "/z"],
    "/{a,b}{1,2}": ["/a1", "/a2", "/b1", "/b2"],
    "/{a,}b": ["/ab", "/b"],
    "/[a,b]{1,2}": ["/[a,b]1", "/[a,b]2"],
    "/[^a]": ["/[!a]"],
    "/[^]a],b": ["/[!]a]", "b"],
    r"/a\,b": ["/a[,]b"],
    r"/\*\{a,b\}": ["/[*][{]a", "b[}]"],
    r"/a\b": ["/ab"],
    "/{a,b": ["/{a", "b"],
    "/a}{b": ["/a}{b"],
    "/{{a,b}": ["/{a", "/{b"],
    "s3://bucket/{a,b}/*": ["s3://bucket/a/*", "s3://bucket/b/*"],
    "s3://u:p,{q@bucket/a,b": ["s3://u:p,{q@bucket/a", "b"],
    "s3://a,s3://b@c/d": ["s3://a", "s3://b@c/d"],
    "http://h/a?x=1,2&y={3,4},http://h/b": ["http://h/a?x=1,2&y={3,4}", "http://h/b"],
    "s3://b/t-?/x={a,b}": ["s3://b/t-?/x=a", "s3://b/t-?/x=b"],
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_what_a_text_stands_for(text: str) -> None:
    assert alternatives(text) == CASES[text]


def test_what_it_stands_for_stands_for_itself() -> None:
    chance = random.Random(14)
    for _ in range(3000):
        text = "".join(chance.choices("ab,{}[]^!\\* /", k=chance.randrange(14)))
        found = alternatives(text)
        assert [alternatives(path) for path in found] == [[path] for path in found], text


def test_braces_that_stand_for_too_many_paths_are_refused() -> None:
    tracemalloc.start()
    try:
        for text in ("{a,b}" * 60, "x" * 100_000 + "{a,b}" * 12, "{" + "a," * 5000 + "}" + "{" + "b," * 5000 + "}"):
            with pytest.raises(ValueError, match="its braces stand for too many paths"):
                alternatives(text)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert alternatives("{" * 100_000) == ["{" * 100_000]
    assert alternatives("{" * 50_000 + "}" * 50_000) == []


def test_secrets_of_a_url_are_not_in_the_error() -> None:
    with pytest.raises(ValueError, match="too many") as caught:
        alternatives("s3://user:hunter2@bucket/" + "{a,b}" * 60)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("text", "path"), [
    ("file:/x", "/x"), ("file:///x", "/x"), ("file://localhost/x", "/x"), ("file://x", "x"), ("local:///x", "/x"),
    ("file:x", "file:x"), ("s3://b/x", "s3://b/x"),
])  # fmt: skip
def test_local_urls(text: str, path: str) -> None:
    assert plain(text) == path


def test_segments_by_patterns(tmp_path: Path) -> None:
    for topic, number in itertools.product(("a", "b", "{c,d}"), (0, 1)):
        write_segment(tmp_path / f"{topic}-{number}", 0, [batch(0)])

    def found(text: str) -> list[str]:
        return [f"{file.topic}-{file.partition}" for file in discover(text)]

    assert found(f"file:{tmp_path}/{{a,b}}-0") == ["a-0", "b-0"]
    assert found(f"{tmp_path}/{{a-*,b-[^0]}}/*.log") == ["a-0", "a-1", "b-1"]
    assert found(f"{tmp_path}/{{c,d}}-0") == ["{c,d}-0"]  # a file of that name goes first
    assert found(f"{tmp_path}/\\{{c\\,d\\}}-*") == ["{c,d}-0", "{c,d}-1"]
    assert found(f"{tmp_path}/a-0,file:{tmp_path}/b-1") == ["a-0", "b-1"]
    with pytest.raises(FileNotFoundError, match="z-0: no such file"):
        found(f"{tmp_path}/{{a,z}}-0")
