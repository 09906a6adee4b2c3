"""Whatever a public function is given for an argument: its error names the argument, and is no foreign one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from tests.types.definitions import public

pytestmark = [pytest.mark.quick, pytest.mark.checkout]


class Wrong:
    """No number, no text, no buffer, nothing to iterate over."""

    def __repr__(self) -> str:
        return "Wrong()"


WRONG = (Wrong(), 3.5, [[]], "\u202etext", 1 << 80)
FETCH = messages.FetchRequest()
BATCH = kwire.build_batch([(1, b"key", b"value")])
FRAME = kwire.encode_request(FETCH, 4, client_id="client")
ANSWER = kwire.encode_response(messages.FetchResponse(), 4)
# function -> arguments with which it works
VALID: dict[str, dict[str, Any]] = {
    "kwire.decode": {"message": "FetchRequest", "version": 4, "data": kwire.encode(FETCH, 4)},
    "kwire.decode_from": {"message": "FetchRequest", "version": 4, "data": kwire.encode(FETCH, 4), "position": 0},
    "kwire.encode": {"message": FETCH, "version": 4},
    "kwire.to_json": {"message": FETCH, "version": 4},
    "kwire.from_json": {"message": "FetchRequest", "version": 4, "value": kwire.to_json(FETCH, 4)},
    "kwire.decode_request": {"frame": FRAME},
    "kwire.decode_request_header": {"data": FRAME},
    "kwire.decode_response": {"frame": ANSWER, "request": None, "api": "Fetch", "version": 4},
    "kwire.encode_request": {
        "message": FETCH, "version": 12, "correlation_id": 0, "client_id": None, "header_tags": {9: b""}},
    "kwire.encode_response": {
        "message": messages.FetchResponse(), "version": 12, "correlation_id": 0, "header_tags": {9: b""}},
    "kwire.pack_frame": {"frame": b""},
    "kwire.decode_metadata_record": {"data": kwire.encode_metadata_record(messages.TopicRecord(), 0)},
    "kwire.encode_metadata_record": {"message": messages.TopicRecord(), "version": 0},
    "kwire.decode_remote_log_record": {
        "data": kwire.encode_remote_log_record(messages.RemoteLogSegmentMetadataUpdateRecord(), 0)},
    "kwire.encode_remote_log_record": {"message": messages.RemoteLogSegmentMetadataUpdateRecord(), "version": 0},
    "kwire.decode_coordinator_record": {
        "kind": "group", "key": b"\0\1" + kwire.encode(messages.OffsetCommitKey(), 0), "value": None},
    "kwire.encode_coordinator_record": {
        "kind": "group", "key": messages.OffsetCommitKey(), "value": messages.OffsetCommitValue(), "value_version": 1},
    "kwire.read_batches": {"data": BATCH, "errors": "raise", "max_batch_bytes": 1000, "position": 0},
    "kwire.build_batch": {
        "records": [(1, b"", b"")], "magic": 2, "codec": "gzip", "level": 1, "base_offset": 0,
        "timestamp_type": "create", "producer_id": -1, "producer_epoch": -1, "base_sequence": -1,
        "partition_leader_epoch": -1, "delete_horizon": None, "base_timestamp": 1, "max_timestamp": 1,
        "last_offset": 0},
    "kwire.build_batches": {
        "columns": kwire.columns(BATCH, ["value"]), "batch_bytes": 1000, "batch_records": 3, "magic": 2,
        "codec": "gzip", "level": 1, "base_offset": 0, "timestamp_type": "create", "producer_id": -1,
        "producer_epoch": -1, "base_sequence": -1, "partition_leader_epoch": -1, "delete_horizon": None},
    "kwire.columns": {"data": BATCH, "fields": ["value"], "errors": "raise", "max_batch_bytes": 1000},
    "kwire.columns_of": {
        "message": "FetchRequest", "version": 4, "payloads": [kwire.encode(FETCH, 4)], "paths": ["max_bytes"],
        "errors": "raise"},
    "kwire.crc32c": {"data": b"", "value": 0},
    "kwire.build_info": {},
    "kwire.schema.releases": {},
    "kwire.schema.apis": {"release": "3.9"},
    "kwire.schema.api": {"name": "Fetch", "release": "3.9"},
    "kwire.schema.api_by_release": {"key": 1},
    "kwire.schema.message": {"name": "FetchRequest"},
    "kwire.schema.canonical": {"name": "FetchRequest"},
    "kwire.schema.message_names": {"type": "request"},
    "kwire.schema.metadata_version": {"wanted": 7},
    "kwire.schema.metadata_versions": {"release": "3.9"},
    "kwire.schema.metadata_bounds": {"release": "3.9"},
    "kwire.schema.features": {"release": "3.9"},
    "kwire.schema.record_type": {"kind": "group", "type": 1},
    "kwire.schema.record_types": {"kind": "group"},
    "kwire.schema.release_name": {"text": "3.9"},
    "kwire.schema.patch_release": {"release": "3.9"},
    "kwire.schema.release_after": {"release": "3.9"},
    "kwire.schema.is_at_least": {"release": "3.9", "other": "3.8"},
    "kwire.schema.message_name": {"name": "FetchRequest", "release": "3.9"},
    "kwire.schema.message_of_release": {"name": "FetchRequest", "release": "3.9"},
    "kwire.schema.section": {"name": "Fetch"},
    "kwire.schema.sections": {"release": "3.9"},
    "kwire.schema.version_notes": {"name": "FetchRequest", "release": "3.9"},
    "kwire.schema.difference": {"old": "3.8", "new": "3.9"},
    "kwire.schema.field_changes": {"api": "Fetch", "name": "FetchRequest", "start": 4, "end": 5},
}
# (function, argument) -> other words by which an error names it
WORDS = {
    ("kwire.encode_coordinator_record", "value_version"): "supports versions",
    ("kwire.schema.api", "name"): "API",
    ("kwire.schema.message", "name"): "message",
    ("kwire.schema.canonical", "name"): "message",
    ("kwire.schema.message_name", "name"): "message",
    ("kwire.schema.message_of_release", "name"): "message",
    ("kwire.schema.version_notes", "name"): "message",
    ("kwire.schema.section", "name"): "API",
    ("kwire.schema.is_at_least", "other"): "release",
    ("kwire.schema.difference", "old"): "release",
    ("kwire.schema.difference", "new"): "release",
    ("kwire.schema.release_name", "text"): "release",
    ("kwire.schema.metadata_version", "wanted"): "metadata.version",
    ("kwire.build_batch", "records"): "record 0",
    ("kwire.columns_of", "payloads"): "payload 0",
    ("kwire.columns_of", "paths"): "has no field",
}


def cases() -> Iterator[tuple[str, str]]:
    """(function, argument) of all that VALID has."""
    for function, arguments in VALID.items():
        for argument in arguments:
            yield function, argument


def call(function: str, arguments: dict[str, Any]) -> None:
    """Call it, and read all that it gives."""
    target: Any = kwire
    for name in function.split(".")[1:]:
        target = getattr(target, name)
    given = target(**arguments)
    if isinstance(given, kwire.BatchIterator):
        list(given)


@pytest.mark.parametrize("function", VALID)
def test_valid(function: str) -> None:
    call(function, VALID[function])


@pytest.mark.parametrize(("function", "argument"), list(cases()))
def test_errors_name_the_argument(function: str, argument: str) -> None:
    for wrong in WRONG:
        try:
            call(function, VALID[function] | {argument: wrong})
        except (TypeError, kwire.KwireError, ValueError, OverflowError, BufferError) as error:
            text = str(error)
            words = rf"\b({argument}|{WORDS.get((function, argument), argument)})"
            assert re.search(words, text, re.I), f"{wrong!r}: {type(error).__name__}: {text}"
            assert "\u202e" not in text and len(text) < 1000


def signature(node: ast.AST) -> list[str]:
    """The parameters of a function but for flags, whose truth counts."""
    assert isinstance(node, ast.FunctionDef)
    parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [one.arg for one in parameters if one.annotation is None or ast.unparse(one.annotation) != "bool"]


def test_every_function_is_in_the_table() -> None:
    functions = {}
    for name, node in public():
        if isinstance(node, ast.FunctionDef) and re.match(r"kwire\.(schema\.)?\w+$", name):
            functions[name] = set(signature(node))
    assert {name: set(arguments) for name, arguments in VALID.items()} == functions


ROWS: list[tuple[Callable[[], object], str]] = [
    (lambda: kwire.build_batch([(1, "key", b"")]), "record 0: key must be bytes, not str"),
    (lambda: kwire.build_batch([(1, b"", b""), (1, b"", 5)]), "record 1: value must be bytes, not int"),
    (lambda: kwire.build_batch([(1.5, b"", b"")]), r"record 0: timestamp must be an int \(milliseconds\), not float"),
    (lambda: kwire.build_batch([(1, b"", b"", [("a", b""), (b"b", b"")])]),
     "record 0: header 1: key must be str, not bytes"),
    (lambda: kwire.build_batch([(1, b"", b"", {"a": "x"})]), "record 0: header 0: value must be bytes, not str"),
    (lambda: kwire.build_batch([(1, b"", b"", ["ab"])]), r"record 0: header 0 must be a pair \(key, value\), not str"),
    (lambda: kwire.build_batch([(1, b"", b"", 7)]), r"record 0: headers must be pairs \(key, value\), not int"),
    (lambda: kwire.build_batch([(1, b"", b"", [("a", b"", 1)])]), "header 0: expected .key, value., got 3 values"),
    (lambda: kwire.build_batch([b"value"]), r"record 0 must be a Record or a tuple .*, not bytes"),
    (lambda: kwire.build_batch([(1, b"")]), r"records\[0\]: expected \(timestamp, key, value\[, headers\]\), got 2"),
    (lambda: kwire.build_batch(kwire.Record()), "records must be an iterable of Records or tuples .*, not .*Record"),
    (lambda: kwire.Record("1"), "offset must be an int, not str"),
    (lambda: kwire.Record(1, 1, "key"), "key must be bytes, not str"),
    (lambda: kwire.Record(1, 1, headers=[("a", 5)]), "header 0: value must be bytes, not int"),
    (lambda: kwire.Record(timestamp_type=2), "timestamp_type must be 'none', 'create' or 'log_append', not 2"),
    (lambda: kwire.columns([BATCH, "x"]), r"data\[1\] must be bytes or another buffer, not str"),
    (lambda: kwire.columns(BATCH, "value"), "fields must be a list of str, not str"),
    (lambda: kwire.columns(BATCH, ["nope"]), "fields: unknown column 'nope': expected one of offset"),
    (lambda: kwire.columns(BATCH)["nope"], "no column 'nope': expected one of offset, timestamp, key, value"),
    (lambda: kwire.columns_of("FetchRequest", 4, [b"", 5], errors="keep"), "payload 1 must be bytes .*, not int"),
    (lambda: kwire.encode(messages.FetchRequest, 4), "message must be a message, as messages.FetchRequest"),
    (lambda: kwire.decode(messages.FetchRequest(), "4", b""), "version must be an int, not str"),
    (lambda: kwire.read_batches(memoryview(BATCH)[::2]), "data must be a contiguous buffer"),
    (lambda: messages.FetchRequest(max_wait_ms="1"), "FetchRequest max_wait_ms: expected int, got str"),
    (lambda: kwire.FrameReader("1"), "max_size must be an int, not str"),
    (lambda: kwire.FrameReader().feed("1"), "data must be bytes or another buffer, not str"),
    (lambda: schema.ErrorCode("35"), "invalid error code '35': expected an int16"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "text"), ROWS)
def test_texts(wrong: Callable[[], object], text: str) -> None:
    with pytest.raises((TypeError, ValueError, LookupError, BufferError), match=text):
        wrong()
