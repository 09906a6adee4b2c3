"""kwire decode, encode and frame."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import subprocess
import sys
import time
from typing import Any

import pytest

import kwire.schema
from kwire.cli import main

pytestmark = pytest.mark.quick
MESSAGE = kwire.messages.FindCoordinatorRequest(key="grp", key_type=1)
DATA = kwire.encode(MESSAGE, 3)
VALUE = {"key": "grp", "keyType": 1}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Any:
    def ran(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(arguments)
        sys.stdout.flush()
        seen = capfdbinary.readouterr()
        return code, seen.out, seen.err.decode()

    return ran


def test_decode_each_format(run: Any, tmp_path: Any) -> None:
    for form, data in (("hex", DATA.hex().encode() + b"\n\n" + DATA.hex(" ").encode()),
                       ("base64", base64.b64encode(DATA) + b"\n" + base64.b64encode(DATA))):
        code, out, _ = run("decode", "FindCoordinatorRequest", "3", "--from", form, stdin=data)
        assert code == 0 and [json.loads(line) for line in out.splitlines()] == [VALUE, VALUE]
    (tmp_path / "m.bin").write_bytes(DATA)
    code, out, _ = run("decode", "FindCoordinatorRequest", "3", str(tmp_path / "m.bin"), "--from", "raw")
    assert code == 0 and json.loads(out) == VALUE


def test_encode_each_format(run: Any) -> None:
    lines = json.dumps(VALUE).encode() + b"\n" + json.dumps(VALUE, indent=2).encode()
    code, out, _ = run("encode", "FindCoordinatorRequest", "3", stdin=lines)
    assert code == 0 and out.split() == [DATA.hex().encode()] * 2
    assert run("encode", "FindCoordinatorRequest", "3", "--to", "base64", stdin=lines)[1].split() == [
        base64.b64encode(DATA)] * 2
    assert run("encode", "FindCoordinatorRequest", "3", "--to", "raw", stdin=lines)[1] == DATA * 2


def test_frames(run: Any) -> None:
    frame = kwire.encode_request(MESSAGE, 3, correlation_id=4, client_id="c")
    for form, data in (("hex", frame.hex().encode()), ("raw", kwire.pack_frame(frame))):
        code, out, _ = run("frame", "--from", form, stdin=data)
        assert code == 0 and json.loads(out) == {
            "api_key": 10, "api": "FindCoordinator", "version": 3, "correlation_id": 4, "client_id": "c",
            "message": VALUE,
        }
    answer = kwire.encode_response(kwire.messages.HeartbeatResponse(error_code=5), 0, correlation_id=4)
    for api in ("Heartbeat", "12"):
        code, out, _ = run("frame", "--api", api, "--version", "0", stdin=answer.hex().encode())
        assert code == 0 and json.loads(out)["message"] == {"errorCode": 5} and json.loads(out)["api"] == "Heartbeat"


@pytest.mark.parametrize("arguments,stdin,code,words", [
    (("decode", "FindCoordinatorRequest", "3"), DATA[:-1].hex().encode(), 1, "line 1: FindCoordinatorRequest v3"),
    (("decode", "FindCoordinatorRequest", "3"), b"xyz", 1, "line 1: invalid hex"),
    (("decode", "FindCoordinatorRequest", "99"), b"", 1, "versions 0-6"),
    (("decode", "NoSuch", "0"), b"", 1, "NoSuch"),
    (("decode", "FindCoordinatorRequest", "x"), b"", 2, "kwire decode"),
    (("decode", "FindCoordinatorRequest", "3", "/no/such/file"), b"", 2, "/no/such/file"),
    (("encode", "FindCoordinatorRequest", "3"), b'\n{"key": 5, "keyType": 1}', 1, "line 2: FindCoordinatorRequest v3"),
    (("encode", "FindCoordinatorRequest", "3"), b'{"key"', 1, "invalid JSON"),
    (("encode", "FindCoordinatorRequest", "3"), b"9" * 5000, 1, "invalid JSON: a number of too many digits\n"),
    (("encode", "FindCoordinatorRequest", "3"), b"[" * 100_000, 1, "invalid JSON: too many levels\n"),
    (("frame",), b"0003", 1, "4 bytes needed"),
    (("frame", "--from", "raw"), b"\0\0\0\5a", 1, ": the last frame is truncated: 5 bytes remaining\n"),
    (("frame", "--from", "raw"), b"\x7f\xff\xff\xff", 1, ": frame of 2147483647 bytes exceeds max_size"),
    (("frame", "--api", "Fetch"), b"", 2, "--version"),
])
def test_failures_are_one_line(run: Any, arguments: tuple[str, ...], stdin: bytes, code: int, words: str) -> None:
    seen, out, err = run(*arguments, stdin=stdin)
    assert seen == code and out == b"" and words in err and err.count("\n") == 1, (seen, err)


@pytest.mark.parametrize("rest,words", [
    (b"\xff\xff\xff\xff", ": invalid frame size -1, at byte 22\n"), (b"\0\0", ": the last frame is truncated: 2 bytes"),
])
def test_what_follows_the_last_whole_frame(run: Any, tmp_path: Any, rest: bytes, words: str) -> None:
    frame = kwire.pack_frame(kwire.encode_request(MESSAGE, 3, correlation_id=4, client_id="c"))
    (tmp_path / "frames").write_bytes(frame + rest)
    code, out, err = run("frame", "--from", "raw", str(tmp_path / "frames"))
    assert code == 1 and json.loads(out)["message"] == VALUE
    assert err.startswith(f"kwire: {tmp_path / 'frames'}{words}") and err.count("\n") == 1


def test_shells_complete_commands_and_names(tmp_path: Any) -> None:
    """By the command that the README names; bash runs it, zsh and fish get a script of their own."""
    command = tmp_path / "kwire"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kwire "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
                                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}  # fmt: skip

    def completed(*words: str) -> list[str]:
        script = (
            'eval "$(_KWIRE_COMPLETE=bash_source kwire)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '_kwire_completion kwire; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        ran = subprocess.run(["bash", "-c", script, "bash", *words], env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.split()

    assert completed("kwire", "decode", "Heartb") == ["HeartbeatRequest", "HeartbeatResponse"]
    assert len(completed("kwire", "encode", "")) == len(kwire.schema.message_names())
    assert "frame" in completed("kwire", "fr")
    assert completed("kwire", "decode", "--from", "he") == ["hex"]
    for shell in ("zsh", "fish"):
        ran = subprocess.run([str(command)], env=environment | {"_KWIRE_COMPLETE": f"{shell}_source"},
                             capture_output=True, text=True)  # fmt: skip
        assert ran.returncode == 0 and "_KWIRE_COMPLETE" in ran.stdout


def test_many_values_are_read_in_a_time_that_grows_with_them(run: Any) -> None:
    """60,000 lines took ten seconds, and their double forty."""

    def taken(count: int) -> float:
        values = (json.dumps(VALUE).encode() + b"\n") * count
        best = 1e9
        for _ in range(3):
            started = time.process_time()
            code, out, _ = run("encode", "FindCoordinatorRequest", "3", stdin=values)
            best = min(best, time.process_time() - started)
            assert code == 0 and out == (DATA.hex().encode() + b"\n") * count
        return best

    assert taken(20_000) < 4 * max(taken(10_000), 0.05)


def test_an_error_names_the_line_of_a_value(run: Any) -> None:
    value = json.dumps(VALUE, indent=2).encode()
    code, out, err = run("encode", "FindCoordinatorRequest", "3", stdin=value + b"\n\n" + value + b"\n{}")
    assert code == 1 and len(out.split()) == 2
    assert f", line {2 * len(value.splitlines()) + 2}: " in err


# names, kinds, and bytes as people paste them


def test_names_of_messages(run: Any) -> None:
    code, out, _ = run("messages", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0 and tuple(rows) == kwire.schema.message_names()
    fetch = kwire.schema.message("FetchRequest")
    assert rows["FetchRequest"] == {
        "name": "FetchRequest", "type": "request", "api_key": 1, "versions": str(fetch.valid_versions),
        "min_version": fetch.valid_versions.low, "max_version": fetch.valid_versions.high, "flexible_from": 12,
    }  # fmt: skip
    code, out, _ = run("messages", "heartbeatre", "--type", "request")
    assert code == 0 and {line.split()[0] for line in out.decode().splitlines()[1:]} == {
        name for name in kwire.schema.message_names("request") if "HeartbeatRe" in name}
    assert rows["SaslHandshakeRequest"]["flexible_from"] is None
    code, out, _ = run("messages", "fetchREQ*", "--json")
    assert [row["name"] for row in json.loads(out)] == ["FetchRequest"]


@pytest.mark.parametrize("release", ["2.2", "3.3", "3.9.1", "4.4"])
def test_messages_of_a_release(run: Any, release: str) -> None:
    """Requests and responses are those of its APIs, in its versions."""
    code, out, _ = run("messages", "--release", release, "--json")
    assert code == 0
    rows = json.loads(out)
    for kind in ("Request", "Response"):
        of_kind = {row["api_key"]: (row["name"], row["min_version"], row["max_version"]) for row in rows
                   if row["type"] == kind.lower()}
        assert of_kind == {api.key: (api.name + kind, api.min_version, api.max_version)
                           for api in kwire.schema.apis(release)}
    names = {row["name"] for row in rows}
    assert ("TopicRecord" in names) == (release != "2.2") and "RequestHeader" in names
    assert ("ShareSnapshotValue" in names) == (release == "4.4")


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (("messages", "FetchRequst"), 1, 'did you mean "FetchRequest"?'), (("messages", "--release", "3.99"), 1, "3.9"),
    (("decode",), 2, "kwire messages lists the names"), (("decode", "FetchRequest"), 2, "has versions 0-18"),
    (("decode", "Fetch", "12"), 2, "--request or --response"), (("encode", "Fetch", "12"), 2, "FetchResponse"),
    (("decode", "FetchRequst", "12"), 1, 'did you mean "FetchRequest"?'),
    (("decode", "Fetsh", "12", "--request"), 1, 'did you mean "Fetch"?'),
    (("decode", "999", "12", "--request"), 1, "unknown API key 999"),
    (("decode", "FetchResponse", "12", "--request"), 2, "not a request"),
    (("apis", "--release", "3.99"), 1, 'did you mean "3.9"?'),
])
def test_what_is_unknown_names_what_is_near(run: Any, arguments: tuple[str, ...], code: int, words: str) -> None:
    seen, out, err = run(*arguments, stdin=b"00")
    assert (seen, out, err.count("\n")) == (code, b"", 1) and words in err, err


@pytest.mark.parametrize("name", [
    ("FindCoordinatorRequest",), ("findcoordinatorREQUEST",), ("FindCoordinator", "--request"), ("--request", "10"),
    ("findcoordinator", "--request"), ("FindCoordinatorRequest", "--request"),
])
def test_a_message_by_its_api(run: Any, name: tuple[str, ...]) -> None:
    words = [word for word in name if not word.startswith("-")]
    flags = [word for word in name if word.startswith("-")]
    code, out, err = run("decode", *words, "3", *flags, stdin=DATA.hex().encode())
    assert (code, err, json.loads(out)) == (0, "", VALUE)
    code, out, _ = run("encode", *words, "3", *flags, stdin=json.dumps(VALUE).encode())
    assert (code, out) == (0, DATA.hex().encode() + b"\n")


LONG = kwire.messages.FindCoordinatorRequest(key="group-of-a-name-that-fills-more-than-one-line", key_type=0)
HEX = kwire.encode(LONG, 3).hex()


@pytest.mark.parametrize("text", [
    HEX.upper(), " ".join(HEX[at : at + 4] for at in range(0, len(HEX), 4)),
    ":".join(HEX[at : at + 2] for at in range(0, len(HEX), 2)),
    ", ".join(f"0x{HEX[at : at + 2]}" for at in range(0, len(HEX), 2)),
    " ".join(hex(int(HEX[at : at + 2], 16)) for at in range(0, len(HEX), 2)), f"0x{HEX}",
    "".join(rf"\x{HEX[at : at + 2]}" for at in range(0, len(HEX), 2)),
    "\n".join(HEX[at : at + 16] for at in range(0, len(HEX), 16)), "\r\n\r\n".join((HEX[:30], HEX[30:])),
    "\n".join(HEX[at : at + 7] for at in range(0, len(HEX), 7)),
])
def test_hex_as_people_paste_it(run: Any, text: str) -> None:
    code, out, err = run("decode", "FindCoordinatorRequest", "3", stdin=text.encode())
    assert (code, err, json.loads(out)["key"]) == (0, "", LONG.key)


def test_many_lines_of_base64_and_of_a_frame(run: Any) -> None:
    lines = base64.encodebytes(kwire.encode(LONG, 3))
    code, out, _ = run("decode", "FindCoordinatorRequest", "3", "--from", "base64", stdin=lines)
    assert code == 0 and json.loads(out)["key"] == LONG.key
    frame = kwire.encode_request(LONG, 3, correlation_id=4, client_id="c").hex()
    code, out, _ = run("frame", stdin="\n".join(frame[at : at + 20] for at in range(0, len(frame), 20)).encode())
    assert code == 0 and json.loads(out)["message"]["key"] == LONG.key


@pytest.mark.parametrize(("text", "words"), [
    ("02g0", "line 1: invalid hex: 'g' is no hex digit"), ("020", "an odd number of digits, 3"),
    ("02\x1b", "'\\x1b'"), (f"{HEX}\n00", "line 2: "), (f"00\n{HEX}", "line 1: "), ("00\n" * 50, "line 1: "),
])
def test_what_is_no_message(run: Any, text: str, words: str) -> None:
    code, _, err = run("decode", "FindCoordinatorRequest", "3", stdin=text.encode())
    assert (code, err.count("\n")) == (1, 1) and words in err, err


@pytest.mark.parametrize(("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_doubles_that_json_has_no_numbers_for(value: float, text: str, run: Any) -> None:
    """They are strings, as Jackson writes them; kwire encode takes them back."""
    data = kwire.encode(kwire.messages.QuotaRecord(key="k", value=value), 0).hex().encode()
    code, out, _ = run("decode", "QuotaRecord", "0", stdin=data)
    assert (code, json.loads(out, parse_constant=pytest.fail)["value"]) == (0, text)
    assert run("encode", "QuotaRecord", "0", stdin=out) == (0, data + b"\n", "")


DIGITS = "9" * 5000  # more than Python converts


@pytest.mark.parametrize("key", [DIGITS, f"-{DIGITS}", "4294967296", "-1", "1.5", "٣", "x"])
def test_what_is_no_tag_is_refused_on_one_line(run: Any, key: str) -> None:
    value = {"topics": [], "allowAutoTopicCreation": True, "includeTopicAuthorizedOperations": False,
             "includeClusterAuthorizedOperations": False, "_unknownTags": {key: ""}}  # fmt: skip
    code, out, err = run("encode", "MetadataRequest", "9", stdin=json.dumps(value).encode())
    assert (code, out, err.count("\n")) == (1, b"", 1) and "tag" in err and len(err) < 500


def test_a_json_number_that_python_refuses(run: Any) -> None:
    code, out, err = run("encode", "MetadataResponse", "9", stdin=f'{{"throttleTimeMs": {DIGITS}}}'.encode())
    assert (code, out, err.count("\n")) == (1, b"", 1) and len(err) < 500
