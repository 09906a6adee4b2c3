"""Numbers of more digits than Python converts: refused as others that are out of range, in words that can be shown."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from kwire.net import AuthenticationError, BrokerConnectionError, BrokerTimeoutError, FrameSizeError

pytestmark = pytest.mark.quick
HUGE = 10**5000  # int() and str() refuse more than 4,300 digits
DIGITS = "9" * 5000


CALLS: dict[str, Callable[[int], Any]] = {
    "a field": lambda huge: messages.MetadataResponse(throttle_time_ms=huge),
    "an element": lambda huge: kwire.encode(messages.ListOffsetsRequest(replica_id=huge), 1),
    "from_json": lambda huge: kwire.from_json("MetadataResponse", 9, {"throttleTimeMs": huge}),
    "decode": lambda huge: kwire.decode("MetadataResponse", huge, b""),
    "encode": lambda huge: kwire.encode(messages.MetadataResponse(), huge),
    "to_json": lambda huge: kwire.to_json(messages.MetadataResponse(), huge),
    "columns_of": lambda huge: kwire.columns_of("MetadataResponse", huge, []),
    "check": lambda huge: schema.message("MetadataResponse").check(huge),
    "decode_response": lambda huge: kwire.decode_response(b"\0\0\0\0", api=3, version=huge),
    "api key": lambda huge: kwire.decode_response(b"\0\0\0\0", api=huge, version=1),
    "encode_request": lambda huge: kwire.encode_request(messages.MetadataRequest(), huge),
    "correlation id": lambda huge: kwire.encode_request(messages.MetadataRequest(), 9, correlation_id=huge),
    "unknown tag": lambda huge: kwire.encode(messages.MetadataRequest(unknown_tags={huge: b""}), 9),
    "header tag": lambda huge: kwire.encode_request(messages.MetadataRequest(), 9, header_tags={huge: b""}),
    "record": lambda huge: kwire.Record(offset=huge),
    "build_batch": lambda huge: kwire.build_batch([(huge, b"", b"")]),
    "base_offset": lambda huge: kwire.build_batch([], base_offset=huge),
    "crc32c": lambda huge: kwire.crc32c(b"", huge),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_number_of_any_length_is_refused_in_short_words(call: str) -> None:
    for huge in (HUGE, -HUGE, 1 << 64, -(1 << 63) - 1):
        with pytest.raises((kwire.KwireError, TypeError, OverflowError, ValueError)) as caught:
            CALLS[call](huge)
        assert "digits" not in str(caught.value) and len(str(caught.value)) < 400
        assert type(caught.value) is not ValueError, caught.value


@pytest.mark.parametrize("key", [DIGITS, f"-{DIGITS}", "4294967296", "-1", "1.5", "٣", "x"])
def test_keys_of_unknown_tags(key: str) -> None:
    value = {"topics": [], "allowAutoTopicCreation": True, "includeTopicAuthorizedOperations": False,
             "includeClusterAuthorizedOperations": False, "_unknownTags": {key: ""}}  # fmt: skip
    with pytest.raises(kwire.EncodeError) as caught:
        kwire.from_json("MetadataRequest", 9, value)
    assert len(str(caught.value)) < 400


ERRORS: list[kwire.KwireError] = [
    kwire.KwireError("a\x1b"), kwire.DecodeError("r", offset=3, path=".a[1]", what="W v1"),
    kwire.EncodeError("r", path=".p"), kwire.CorruptBatchError("r", position=4, offset=5),
    kwire.LimitError("r", limit=1, needed=2, offset=3),
    kwire.UnsupportedVersionError("r", api=3, needed=(1, 2), offered=None), kwire.MissingCodecError("lz4: no library"),
    BrokerConnectionError("r\x1b", address="h:1"), BrokerTimeoutError("late", address="h:1"),
    AuthenticationError("no", address="h:1"), FrameSizeError("r", address="h:1", limit=1, needed=2),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_are_pickled(error: kwire.KwireError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and (str(again), vars(again)) == (str(error), vars(error))
    assert again.args == error.args and str(error).isprintable()


HUGE = 10**5000


@pytest.mark.parametrize(
    "call",
    [
        lambda: kwire.decode(HUGE, 1, b""),  # type: ignore[arg-type]
        lambda: kwire.encode([HUGE], 1),
        lambda: kwire.to_json((HUGE,), 1),
        lambda: kwire.build_batch([], codec=(HUGE,)),  # type: ignore[arg-type]
        lambda: kwire.build_batch([(1, None, b"")], codec="gzip", level=(HUGE,)),  # type: ignore[arg-type]
        lambda: kwire.decode_response(b"", api=[HUGE], version=1),  # type: ignore[arg-type, call-overload]
    ],
)
def test_containers_of_long_numbers_are_refused_by_our_errors(call: Callable[[], object]) -> None:
    with pytest.raises((TypeError, kwire.KwireError)):
        call()


@pytest.mark.parametrize("tag", [-5, 1 << 32, HUGE, "1"], ids=["negative", "large", "huge", "text"])
def test_json_refuses_what_is_no_tag(tag: Any) -> None:
    message = kwire.messages.MetadataRequest(topics=[], unknown_tags={99: b""})
    message.unknown_tags[tag] = b"x"
    with pytest.raises(kwire.EncodeError, match="invalid tag number"):
        kwire.to_json(message, 12)


def test_released_memoryviews_in_fields() -> None:
    view = memoryview(b"abc")
    message = kwire.messages.ConsumerProtocolAssignment(user_data=view)
    view.release()
    assert "released" in repr(message)
    for call in (lambda: kwire.to_json(message, 2), lambda: pickle.dumps(message), lambda: copy.deepcopy(message)):
        with pytest.raises(kwire.EncodeError, match="released"):
            call()
