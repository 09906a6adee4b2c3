"""Arguments that are almost right: arrays, ints that lie, buffers of objects, numbers without end."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kwire
from kwire import capture, compression, messages, net, schema
from kwire.errors import EncodeError
from kwire.net.features import feature
from tests.hostile.wrong_arguments import Liar

pytestmark = pytest.mark.quick

ROWS = [(number, b"key", b"value", [("header", b"x")]) for number in range(3)]
BATCH = kwire.build_batch(ROWS)
OBJECTS = np.array([BATCH], dtype=object)  # as bytes: the addresses of the objects in it
TWO = np.array([1, 2])
NESTED: list[Any] = []
for _ in range(100_000):
    NESTED = [NESTED]


@pytest.mark.parametrize("data", [OBJECTS, memoryview(OBJECTS), (ctypes.py_object * 1)(BATCH)], ids=["np", "view", "c"])
def test_addresses_of_objects_are_no_bytes(data: Any) -> None:
    request = messages.SaslAuthenticateRequest
    calls: list[Callable[[], Any]] = [
        lambda: kwire.columns(data),
        lambda: kwire.columns([data]),
        lambda: kwire.read_batches(data),
        lambda: kwire.build_batch([(1, data, None)]),
        lambda: kwire.build_batch([(1, None, None, [("h", data)])]),
        lambda: kwire.Record(1, 1, data),
        lambda: kwire.crc32c(data),
        lambda: kwire.decode("FetchRequest", 12, data),
        lambda: kwire.decode("FetchRequest", 12, data, views=True),
        lambda: kwire.decode_request(data),
        lambda: kwire.pack_frame(data),
        lambda: kwire.FrameReader().feed(data),
        lambda: kwire.columns_of("FetchRequest", 12, [data]),
        lambda: kwire.decode_metadata_record(data),
        lambda: kwire.decode_coordinator_record("group", data, None),
        lambda: request(auth_bytes=data),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(EncodeError, match="expected bytes"):
        kwire.encode(request(unknown_tags={1: memoryview(data)}), 2)
    assert kwire.crc32c(np.zeros(2, "M8[s]")) == kwire.crc32c(bytes(16))  # numbers, of whatever format, are bytes


def test_a_tag_whose_view_was_released_is_refused() -> None:
    view = memoryview(b"abc")
    message = messages.SaslAuthenticateRequest(unknown_tags={1: view})
    view.release()
    with pytest.raises(EncodeError, match="released"):
        kwire.encode(message, 2)


@pytest.mark.parametrize("call", [
    lambda: kwire.crc32c(b"", TWO),
    lambda: kwire.decode_from("FetchRequest", 12, b"", TWO),
    lambda: kwire.decode_response(b"", api=1, version=TWO),
    lambda: kwire.FrameReader(TWO),
    lambda: kwire.read_batches(BATCH, position=TWO),
    lambda: kwire.columns(BATCH, max_batch_bytes=TWO),
    lambda: kwire.build_batch(ROWS, base_offset=TWO),
    lambda: net.connect("h:1", max_frame=TWO),
])  # fmt: skip
def test_an_array_is_no_integer(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="must be an int, not ndarray"):
        call()


@pytest.mark.parametrize("call", [
    lambda: kwire.read_batches(BATCH, errors=TWO),
    lambda: kwire.columns(BATCH, errors=TWO),
    lambda: kwire.columns_of("FetchRequest", 12, [], errors=TWO),
])  # fmt: skip
def test_an_array_is_no_choice(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="errors must be 'raise' or 'keep', not array"):
        call()


def test_integers_and_names_of_numpy_are_taken() -> None:
    five = np.int64(5)
    assert kwire.crc32c(b"x", five) == kwire.crc32c(b"x", 5)
    name = np.str_("value")
    assert kwire.columns(BATCH, np.array(["value"]))[name].to_pylist() == [b"value"] * 3
    key, value = messages.OffsetCommitKey(), messages.OffsetCommitValue()
    one = kwire.encode_coordinator_record("group", key, value, np.int64(1))
    assert one == kwire.encode_coordinator_record("group", key, value, 1)


@pytest.mark.parametrize(("call", "text"), [
    (lambda: net.keywords_of({"client.id": 5}), r"properties\['client.id'\] must be a str, not int"),
    (lambda: net.keywords_of({"ssl.enabled.protocols": None}), "must be a str, not NoneType"),
    (lambda: feature("headers").usable(None), "versions must be a mapping"),
    (lambda: feature("headers").lacking({"Fetch": 3}), "versions must be API"),
    (lambda: feature("headers").lacking_levels("x"), "levels must be a mapping"),
    (lambda: net.Cluster("h:1").connection([]), "node must be an int"),
    (lambda: asyncio.run(net.Cluster("h:1").update_features(5)), "updates must be a mapping"),
    (lambda: asyncio.run(net.Cluster("h:1").update_features({5: net.FeatureUpdate(1)})), "updates must be a mapping"),
    (lambda: asyncio.run(net.Cluster("h:1").update_features({"x": 1})), r"updates\['x'\] must be a FeatureUpdate"),
    (lambda: capture.Audit("4.4").add(5), "event must be"),
    (lambda: kwire.BadBatch(2**63, b"", None), "position"),
    (lambda: kwire.BadBatch(0, b"", None, 2**31), "source"),
    (lambda: list(schema.field_changes("Fetch", "FetchRequest", None, 3)), "version must be an int"),
    (lambda: kwire.decode_coordinator_record([], b"", None), "kind"),
])  # fmt: skip
def test_a_wrong_argument_is_named(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()


def test_versions_that_no_release_has_are_refused_not_counted() -> None:
    with pytest.raises(kwire.UnsupportedVersionError):
        list(schema.field_changes("Fetch", "FetchRequest", 4, 2**31))


@pytest.mark.parametrize("value", [10**5000, "35", [[]], 2**15, NESTED], ids=["long", "text", "list", "large", "deep"])
def test_no_error_code(value: Any) -> None:
    with pytest.raises(kwire.KwireError, match="invalid error code"):
        schema.ErrorCode(value)


def test_a_long_name_of_a_codec_is_cut_in_the_error() -> None:
    with pytest.raises(EncodeError) as refused:
        compression.compress("x" * 10**6, b"")
    with pytest.raises(kwire.CorruptBatchError) as corrupt:
        compression.decompress("x" * 10**6, b"", limit=1)
    assert len(str(refused.value)) + len(str(corrupt.value)) < 500


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [77, 3, -1])
def test_a_magic_is_read_once(magic: int, codec: str) -> None:
    """It wrote 12 bytes past its memory, and batches of a magic that there is not."""
    with pytest.raises(kwire.EncodeError, match="magic"):
        kwire.build_batch([(0, b"k", b"v")], magic=Liar(magic), codec=codec)


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
@pytest.mark.parametrize("level", [99, 10**30, -(10**30)])
def test_a_level_is_read_once(level: int, codec: str) -> None:
    with pytest.raises(kwire.EncodeError, match="levels are"):
        compression.compress(codec, b"abc" * 100, level=Liar(level))


FRAME = kwire.encode_request(messages.ApiVersionsRequest(client_software_name="a"), 3, correlation_id=7)
DATES: Any = np.frombuffer(FRAME + bytes(-len(FRAME) % 8), "M8[ms]")


def test_arrays_of_dates_are_read_as_their_bytes() -> None:
    assert kwire.decode_request(DATES, lenient=True) == kwire.decode_request(DATES.tobytes(), lenient=True)
    assert kwire.pack_frame(DATES) == kwire.pack_frame(DATES.tobytes())
    assert kwire.FrameReader().feed(np.zeros((3, 0), "u1")) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: kwire.decode("ApiVersionsRequest", 3, DATES, views=True),
        lambda: kwire.columns_of("ApiVersionsRequest", 3, [DATES]),
    ],
)
def test_what_cannot_be_viewed_is_refused(call: Any) -> None:
    with pytest.raises(BufferError, match="must be a contiguous buffer"):
        call()


SCALAR: Any = np.array(5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: kwire.build_batch(SCALAR),
        lambda: kwire.build_batch([SCALAR]),
        lambda: kwire.build_batch([(0, None, b"", SCALAR)]),
        lambda: kwire.build_batch([(0, None, b"", [SCALAR])]),
        lambda: kwire.build_batch([(np.zeros(2, "u1"), None, b"")]),
        lambda: kwire.build_batch([(0, None, b"", np.zeros(2, "u1"))]),
        lambda: messages.FetchRequest(max_wait_ms=np.zeros(2, "u1")),
        lambda: messages.FetchRequest.ForgottenTopic(partitions=SCALAR),
        lambda: messages.FetchRequest.ForgottenTopic(partitions=memoryview(b"abcd").cast("B", (2, 2))),
    ],
)
def test_arrays_in_the_wrong_place_are_named(call: Any) -> None:
    with pytest.raises(TypeError, match=r"record|header|expected|must be"):
        call()


@pytest.mark.parametrize("call", [
    lambda: memoryview(kwire.columns(BATCH)["offset"]).release(),
    lambda: kwire.columns(BATCH)["offset"].to_numpy(),
    *(lambda codec=codec: list(next(kwire.read_batches(kwire.build_batch(ROWS, codec=codec))))
      for codec in ("gzip", "lz4", "zstd")),
], ids=["view", "numpy", "gzip", "lz4", "zstd"])  # fmt: skip
def test_no_reference_is_left(call: Callable[[], Any]) -> None:
    call()
    gc.collect()
    before = sys.getrefcount(None)
    for _ in range(1000):
        call()
    assert sys.getrefcount(None) - before < 500  # other threads may refer to None too


def test_arrays_and_dates_are_refused_by_name() -> None:
    """numpy's own ValueError came out: of a comparison item by item, and of a buffer that Python cannot read."""
    dates, words = np.zeros(2, "M8[s]"), np.array(["create", "none"])
    for call, name in (
        (lambda: kwire.Record(1, 1, dates), "key"),
        (lambda: kwire.Record(1, 1, None, None, [("h", dates)]), "header 0: value"),
        (lambda: messages.SaslAuthenticateRequest(auth_bytes=dates), "SaslAuthenticateRequest auth_bytes"),
    ):
        with pytest.raises(BufferError, match=f"{name} must be a contiguous buffer: cannot include dtype 'M'"):
            call()
    with pytest.raises(ValueError, match="timestamp_type must be 'none', 'create' or 'log_append', not array"):
        kwire.Record(timestamp_type=words)
    with pytest.raises(EncodeError, match="does not support timestamp type array"):
        kwire.build_batch(ROWS, timestamp_type=words)
    for magic in (0, 1):
        for name in ("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"):
            with pytest.raises(TypeError, match=f"{name} must be an int, not ndarray"):
                kwire.build_batch(ROWS, magic=magic, **{name: TWO})
    with pytest.raises(TypeError, match="base_timestamp must be an int, not ndarray"):
        kwire.build_batch(ROWS, delete_horizon=1, base_timestamp=TWO)
