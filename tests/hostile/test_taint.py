"""No secret leaves the process, and nothing that a terminal obeys; and the harness that looks for them finds faults."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.hostile import taint
from tests.hostile.taint import Tainted
from tools.places import ROOT


@pytest.mark.parametrize("room", taint.ROOMS, ids=lambda room: room.__name__)
def test_every_room(room: Any) -> None:
    for seed in range(3):
        taint.one_round(room, seed)


def raw(text: str) -> str:
    return text


def unescaped(value: Any, *, indent: int | None = None) -> None:
    sys.stdout.write(json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


# what each room must find: a fault put into the place of something that keeps secrets or signs back
FAULTS: list[tuple[Callable[..., None], str, Any]] = [
    (taint.logs, "kwire.cli.log.printable", raw),
    (taint.logs, "kwire.cli.log.print_json", unescaped),
    (taint.logs, "kwire.cli.terminal.printable", raw),
    (taint.logs, "kwire_c.printable.printable", raw),
    (taint.logs, "kwire.storage.reading.verify.printable", raw),
    (taint.captures, "kwire.capture.recorder.may_have_secrets", lambda *_: False),
    (taint.captures, "kwire.capture.redaction._inner", raw),
    (taint.captures, "kwire.capture.redaction._WORDS", {}),
    (taint.captures, "kwire.capture.exchange.without_secrets", lambda frame, *_: frame),
    (taint.captures, "kwire.capture.exchange.printable", raw),
    (taint.captures, "kwire.pages.rendering.printable", raw),
    (taint.captures, "kwire.cli.audit.as_text", lambda data, _: data.decode("utf-8", "replace")),
    (taint.captures, "kwire.spark.capture.storable", raw),
    (taint.codec, "kwire.cli.messages.print_json", unescaped),
    (taint.brokers, "kwire.net.sasl.quoted", str),
    (taint.brokers, "kwire.net.echo._KNOWN", re.compile(".*")),
    (taint.brokers, "kwire.cli.versions_text.printable", raw),
    (taint.brokers, "kwire.cli.versions.print_json", unescaped),
    (taint.brokers, "kwire_c.errors.printable", raw),
    (taint.spark, "kwire.spark.reader.printable", raw),
    (taint.spark, "kwire.storage.places.discovery.printable", raw),
    (taint.cluster, "kwire.cli.snapshot.printable", raw),
    (taint.cluster, "kwire.cli.snapshot.print_json", unescaped),
    (taint.cluster, "kwire.storage.metadata.record_json.SECRET_SETTING", re.compile("(?!)")),
    (taint.cluster, "kwire.storage.metadata.record_json._SECRET_FIELDS", {}),
    (taint.formatted, "kwire.cli.storage.printable", raw),
]


@pytest.mark.parametrize(("room", "place", "fault"), FAULTS, ids=[f"{room.__name__} {at}" for room, at, _ in FAULTS])
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, room: Any, place: str, fault: Any) -> None:
    monkeypatch.setattr(place, fault)
    with pytest.raises((Tainted, UnicodeEncodeError)):
        for seed in range(12):
            taint.one_round(room, seed)


@pytest.mark.soak
def test_for_ten_minutes() -> None:
    command = [sys.executable, "-m", "tests.hostile.taint", "--seconds", "600", "--seed", "1000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
