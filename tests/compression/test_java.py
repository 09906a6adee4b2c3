"""Damaged and odd payloads get the verdict, and the bytes, of Kafka's own streams."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from pathlib import Path

import pytest

from kwire import KwireError, compression
from kwire_c.codecs import CODECS
from tests.compression.payloads import damaged
from tools.kafka import maven
from tools.kafka.classes import class_path
from tools.kafka.oracle import NEWEST

# isal reads some incomplete Huffman tables that zlib refuses; what comes out has the right checksum all the same
_REFUSED = "error java.util.zip.ZipException: invalid "
INCOMPLETE = (_REFUSED + "distances", _REFUSED + "literal")

pytestmark = pytest.mark.java


def java(cases: list[tuple[int, int, bytes]]) -> list[str]:
    try:
        jars = class_path(NEWEST)
        classes = maven.compiled([Path(__file__).parent / "java" / "Inflate.java"], jars, "inflate")
        runtime = maven.java()
    except maven.MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
    text = "".join(f"{codec} {magic} {payload.hex()}\n" for codec, magic, payload in cases)
    command = [runtime, "-Xmx768m", "-XX:+UseSerialGC", "-cp", os.pathsep.join([str(classes), jars]), "Inflate"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.splitlines()


def verdict(codec: int, magic: int, payload: bytes) -> str:
    try:
        out = bytes(compression.decompress(codec, payload, limit=64 << 20, magic=magic))
    except KwireError as error:
        return f"error {error}"
    return f"ok {len(out)} {hashlib.md5(out).hexdigest()}"


def agree(seed: int, count: int) -> None:
    cases = list(damaged(seed, count))
    answers = java(cases)
    assert len(answers) == count
    wrong = []
    for (codec, magic, payload), answer in zip(cases, answers, strict=True):
        ours = verdict(codec, magic, payload)
        if ours.startswith("ok") and answer.startswith(INCOMPLETE):
            continue
        if ours != answer and not (ours.startswith("error") and answer.startswith("error")):
            name = CODECS[codec]
            what = f"{name} magic {magic} {payload[:60].hex()} ({len(payload)} bytes)"
            wrong.append(f"{what}: Java {answer}, kwire {ours}")
    assert not wrong, "\n".join(wrong[:10])
    accepted = sum(answer.startswith("ok") for answer in answers)
    assert count // 10 < accepted < count * 9 // 10  # both kinds were there


def test_verdicts_of_kafka() -> None:
    agree(20, 2000)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 106))
def test_verdicts_of_kafka_at_length(seed: int) -> None:
    agree(seed, 5000)


def test_a_gzip_header_after_the_last_member() -> None:
    """Java takes it for another member where it crosses the end of the 8 KiB that it reads at a time."""
    more = bytes.fromhex("1f8b0800000000000000 0300 0000000000000000")
    cases = []
    for step in (8192, 16384):
        for size in range(step - 30, step + 40):
            member = zlib.compress(bytes(size), 0, 31)
            cases += [(1, 2, member + more[:extra]) for extra in (9, 10, 17, 18, 19, 20)]
    answers = [(answer, verdict(*case)) for case, answer in zip(cases, java(cases), strict=True)]
    refused = sum(java_says.startswith("error") for java_says, _ in answers)
    assert 2 * 70 < refused < len(cases) // 2  # more than those with 19 bytes
    for java_says, ours in answers:
        assert ours == java_says or (ours.startswith("error") and java_says.startswith("error"))
