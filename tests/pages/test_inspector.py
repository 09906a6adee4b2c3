"""The inspector in a browser: it reads what kwire reads, and names the byte that kwire names."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire import schema
from kwire.codec.frames import decode_request, decode_response
from kwire.codec.json import to_json
from kwire.codec.messages import decode
from kwire.codec.records import read_batches
from kwire.errors import CorruptBatchError, DecodeError, KwireError, UnsupportedVersionError
from kwire.pages.site import write_site
from kwire_c.record_batch import java_string
from tests.chromium import Chromium
from tools.places import DATA

VECTORS = DATA / "vectors"
EVERY = 23  # one malformed case of so many is compared by make test, all of them by make soak

COMPARE = (Path(__file__).parent / "compare.js").read_text()
Case = list[Any]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    out = tmp_path_factory.mktemp("site") / "new"
    write_site(out)
    with Chromium() as browser:
        browser.open(out / "inspect.html")
        browser.run(COMPARE)
        yield browser


def lines(pattern: str) -> Iterator[dict[str, Any]]:
    paths = sorted(VECTORS.glob(pattern))
    assert paths, pattern
    for path in paths:
        with gzip.open(path, "rt") as file:
            yield from map(json.loads, file)


def plain(value: Any) -> Any:
    """A JSON value whose floats are their bits, which is how the page gives them here."""
    if isinstance(value, float):
        return f"float {struct.pack('>d', value).hex()}"
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def text(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def outcome(kind: str, name: str, version: int, data: bytes, lenient: bool) -> Any:
    """What kwire says: the JSON text of the value, or [byte, reason] of the error."""
    try:
        if kind == "message":
            return text(to_json(decode(name, version, data, lenient=lenient), version))
        if kind == "request":
            read: Any = decode_request(data, lenient=lenient)
            name = f"{read.name}Request"
        else:
            api = schema.message(name).api_key
            read = decode_response(data, api=api, version=version, lenient=lenient)
        header = to_json(read.header, read.header_version)
        message = to_json(read.message, read.version)
        return text({"name": name, "version": read.version, "header": header, "message": message})
    except DecodeError as error:
        return [error.offset, error.reason]


def case(kind: str, name: str, version: int, data: bytes, lenient: bool = False) -> Case:
    name = schema.message(name).name
    return [kind, name, version, lenient, data.hex(), outcome(kind, name, version, data, lenient)]


def compared(browser: Chromium, cases: list[Case]) -> int:
    """How many cases there were, all of them equal in the browser; in portions that the pipe carries."""
    portion: list[Case] = []
    size, found = 0, []
    for one in [*cases, None]:
        if one is None or size > 4_000_000:
            found += browser.run(f"different({json.dumps(portion)})")
            portion, size = [], 0
        if one is not None:
            portion.append(one)
            size += len(one[4]) + len(str(one[5]))
    assert not found, f"{len(found)} of {len(cases)} differ: {found[:3]}"
    return len(cases)


def vectors(pattern: str) -> Iterator[Case]:
    for row in lines(pattern):
        data = bytes.fromhex(row["hex"])
        yield case("message", row["message"], row["version"], data)
        if "framedHex" in row and row["type"] in ("request", "response"):
            yield case(row["type"], row["message"], row["version"], bytes.fromhex(row["framedHex"]))


def malformed(every: int) -> Iterator[Case]:
    number = 0
    for row in lines("malformed-*.jsonl.gz"):
        data = bytes.fromhex(row["hex"])
        variants = [data + b"\0\0\0", *(data[: item["len"]] for item in row["truncated"])]
        for item in row["mutated"]:
            at, sub = item["pos"], bytes.fromhex(item["sub"])
            variants.append(data[:at] + sub + data[at + 1 :])
        for variant in variants:
            number += 1
            if number % every == 0:
                for lenient in (False, True):
                    yield case("message", row["message"], row["version"], variant, lenient)


def test_a_sample_of_the_vectors_of_every_message(browser: Chromium) -> None:
    seen: dict[tuple[str, int], Case] = {}
    for one in vectors("messages-*.jsonl.gz"):
        seen.setdefault((one[0] + one[1], one[2], len(seen) % 3), one)
    assert compared(browser, list(seen.values())) > 1700


def test_malformed_cases_have_their_error_at_the_same_byte(browser: Chromium) -> None:
    cases = list(malformed(EVERY))
    assert compared(browser, cases) > 5000
    assert sum(1 for one in cases if isinstance(one[5], list)) > 2000


def test_quirks(browser: Chromium) -> None:
    cases = []
    for row in lines("quirks.jsonl.gz"):
        if "message" in row and "hex" in row and "version" in row:
            data = bytes.fromhex(row["hex"])
            for lenient in (False, True):
                try:
                    cases.append(case("message", row["message"], row["version"], data, lenient))
                except KwireError:
                    assert "error" in row
    assert compared(browser, cases) > 100


@pytest.mark.soak
def test_all_vectors_and_malformed_cases(browser: Chromium) -> None:
    assert compared(browser, list(vectors("messages-*.jsonl.gz"))) > 12_000
    assert compared(browser, list(malformed(1))) > 100_000


def test_frames_that_cannot_be_read(browser: Chromium) -> None:
    whole = bytes.fromhex("0012000300000007ffff00") + bytes.fromhex("056b776972650231 00".replace(" ", ""))
    bad_name = b"\0\x12\0\x03\0\0\0\7\0\1\xff\0\1\1\0"
    frames = [b"", b"\0", whole[:3], whole[:9], whole, whole + b"\1", whole[:12], bad_name]
    cases = [case("request", "ApiVersionsRequest", 0, frame, lenient) for frame in frames for lenient in (False, True)]
    answer = bytes.fromhex("00000007 0023 00000000")  # UNSUPPORTED_VERSION in version 0 (KIP-511)
    answers = [answer, answer + b"\0", answer[:-1], bytes.fromhex("00000007 0023 00000000 00"), b"\0\0"]
    cases += [case("response", "ApiVersionsResponse", 4, one, lenient) for one in answers for lenient in (False, True)]
    assert compared(browser, cases) == len(frames) * 2 + len(answers) * 2
    unknown = ((b"\x7f\xff\0\0", 0, "unknown API key 32767"), (b"\0\1\0\x63", 2, "FetchRequest supports"))
    for data, place, said in unknown:
        with pytest.raises(UnsupportedVersionError, match=said):
            decode_request(data)
        numbers = ",".join(map(str, data))
        error = browser.run(
            f"(one => [one.offset, one.reason])(kafkaWire.inspect('request', Uint8Array.of({numbers})).error)")
        assert error[0] == place and said in error[1]


def batches(data: bytes) -> tuple[list[dict[str, Any]], tuple[int, str] | None]:
    """The batches as kwire reads them up to the first error, in the form of the page, and (position, reason) of it."""
    found = []
    try:
        for batch in read_batches(data):
            row: dict[str, Any] = {"baseOffset": batch.base_offset, "attributes": batch.attributes}
            if batch.magic == 2:
                row |= {"partitionLeaderEpoch": batch.partition_leader_epoch,
                        "lastOffsetDelta": batch.last_offset - batch.base_offset, "producerId": batch.producer_id,
                        "producerEpoch": batch.producer_epoch, "baseSequence": batch.base_sequence}  # fmt: skip
            if batch.magic < 2 and batch.attributes & 7:
                del row["baseOffset"]  # of a wrapper: that of its first entry, which is compressed
            found.append(row)
            if not batch.attributes & 7:
                row["records"] = [
                    {"offset": one.offset, "timestamp": one.timestamp, "key": hexed(one.key), "value": hexed(one.value),
                     "headers": [[name, hexed(value)] for name, value in one.headers]}
                    for one in batch
                ]  # fmt: skip
    except CorruptBatchError as error:
        return found, (error.position, error.reason)
    return found, None


def hexed(data: Any) -> str | None:
    return None if data is None else bytes(data).hex()


def test_record_batches(browser: Chromium) -> None:
    with zipfile.ZipFile(VECTORS / "records.zip") as archive:
        inputs = [archive.read(name) for name in archive.namelist() if archive.getinfo(name).file_size < 20_000]
    inputs += [bytes.fromhex(row["hex"]) for row in lines("records-corrupt.jsonl.gz")]
    inputs += [inputs[0][:-1], b"", b"\0" * 11, b"\0" * 40]
    compared_batches = errors = 0
    for data in inputs:
        got = browser.run(
            "(one => ({json: kafkaWire.toJson(one.message), end: one.end, tail: one.tail,"
            " error: one.error && [one.error.batch, one.error.reason], covered: one.rows.filter(row => row.size)"
            ".every((row, at, rows) => row.at === (at ? rows[at - 1].at + rows[at - 1].size : 0))}))"
            f"(kafkaRecords.inspect(Uint8Array.from('{data.hex()}'.match(/../g) || [], two => parseInt(two, 16))))")
        expected, error = batches(data)
        assert got["covered"]
        read = json.loads(got["json"])
        if error and not is_inside_compressed(error[1]):
            assert got["error"] == list(error), data.hex()[:200]
            errors += 1
        for ours, theirs in zip(read, expected, strict=False):
            for record in ours.get("records", ()):
                record["headers"] = [[java_string(bytes.fromhex(name)), one] for name, one in record["headers"]]
            assert {name: ours.get(name) for name in theirs} == theirs
            compared_batches += 1
        assert len(read) >= len(expected) - 1
    assert compared_batches > 300 and errors > 40


def is_inside_compressed(reason: str) -> bool:
    """Whether an error is one that only decompressing shows, which the page does not do."""
    return not any(reason.startswith(one) for one in SHALLOW) or " of the records" in reason


SHALLOW = ("invalid batch length", "magic is not", "batch is smaller", "checksum does not", "negative number",
           "number of records exceeds", "bytes remaining", "record ", "negative length of a header", "key or value")


def test_what_is_pasted(browser: Chromium) -> None:
    data = bytes.fromhex("0012000300000007ffff00056b776972650231ff")
    spaced = data.hex(" ")
    forms = [
        data.hex(), data.hex().upper(), spaced, data.hex(":"), spaced.replace(" ", "\n"), "0x" + data.hex(),
        " ".join(f"0x{byte:02x}" for byte in data), ", ".join(f"0x{byte:02X}" for byte in data),
        "".join(f"\\x{byte:02x}" for byte in data),
        f"00000000  {spaced[:23]}  {spaced[24:47]}  |..........kwire2|\n00000010  {spaced[48:]}     |.1..|\n00000014",
        "00000000: " + data[:16].hex(" ", -2) + "  ..........kwire2\n00000010: " + data[16:].hex(" ", -2) + "  .1..",
        "0000   " + spaced[:47] + "   ..........kwire2\n0010   " + spaced[48:] + "   .1..",
    ]
    for one in forms:
        assert browser.run(f"kafkaWire.hex(kafkaWire.bytesOf({json.dumps(one)}).bytes)") == data.hex(), one
    for one in ("ABIAAwAAAAf//wAFa3dpcmUCMf8=", "ABIAAwAAAAf//wAFa3dpcmUCMf8", "ABIAAwAAAAf__wAFa3dpcmUCMf8\n"):
        assert browser.run(f"kafkaWire.hex(kafkaWire.bytesOf({json.dumps(one)}).bytes)") == data.hex(), one
    for one in ("0x0", "abc", "hello, world!", "<b>&", "\u0661\u0662"):
        attempt = f"try {{ kafkaWire.bytesOf({json.dumps(one)}); return 0 }} catch (error) {{ return error.reason }}"
        assert browser.run(f"(() => {{ {attempt} }})()"), one


def test_the_page_shows_each_field_and_the_wrong_byte(browser: Chromium) -> None:
    page = browser.run("location.href").partition("?")[0]
    browser.open(page + "?kind=message&name=MetadataRequest&version=12&bytes=02" + "00" * 16 + "03616200010000")
    cells = "[...row.cells].map(cell => cell.textContent)"
    shown = browser.run(f"[...document.querySelectorAll('#rows tr')].map(row => {cells})")
    assert [row[2:] for row in shown if row[2] == "name"] == [["name", "string", '"ab"']]
    assert "all read" in browser.run("document.getElementById('outcome').textContent")
    browser.open(page + "?kind=message&name=MetadataRequest&version=12&bytes=02" + "00" * 16 + "03c3280001000000")
    assert "invalid UTF-8, at byte 18" in browser.run("document.getElementById('outcome').textContent")
    wrong = "findIndex(one => one.classList.contains('wrong'))"
    assert browser.run(f"[...document.querySelectorAll('.byte')].{wrong}") == 18
    browser.run("document.querySelectorAll('.byte')[3].click()")
    assert "topicId" in browser.run("document.getElementById('picked').textContent")
    for data in ("0005", "000c" + "61" * 12 + "0005"):  # what lacks is after the last byte
        browser.open(f"{page}?kind=message&name=LeaveGroupRequest&version=0&bytes={data}")
        assert f"at byte {len(data) // 2}" in browser.run("document.getElementById('outcome').textContent")
        assert browser.run(f"[...document.querySelectorAll('.byte')].{wrong}") == len(data) // 2
    hostile = b"<img src=x onerror=document.title=1>"
    pasted = (struct.pack(">h", len(hostile)) + hostile).hex()
    browser.open(f"{page}?kind=message&name=SaslHandshakeRequest&version=0&bytes={pasted}")
    assert browser.run("document.querySelectorAll('main img').length") == 0
    assert "onerror" in browser.run("document.getElementById('rows').textContent")


def test_many_fields_in_few_bytes(browser: Chromium) -> None:
    data = "[0xc1, 0x84, 0x3d, ...new Uint8Array(1_000_000), 0]"  # an array of a million int8
    got = browser.run(
        "(one => [one.error, one.rows.length, one.more, one.end, one.message.get('resourceTypes').length])"
        f"(kafkaWire.inspect('message', new Uint8Array({data}), {{name: 'ListConfigResourcesRequest', version: 1}}))")
    assert got == [None, 100_000, 900_003, 1_000_004, 1_000_000]
    for name in ("constructor", "__proto__", "NoSuchRequest"):
        wanted = f"{{name: '{name}', version: 0}}"
        got = browser.run(f"kafkaWire.inspect('message', new Uint8Array(4), {wanted}).error.reason")
        assert got == f'unknown message "{name}"'
