"""What the sixth attack found in the engine, the network and captures: arrays, numbers, references, cancellation."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import gc
import math
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kwire
from kwire import capture, compression, messages, net, schema
from kwire.errors import EncodeError, WrongFileError
from kwire.net.features import feature
from tests.net.fake import Broker, cluster, of_release, run, serving, sockets

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


@pytest.mark.parametrize("name", ["timeout", "probe_timeout"])
def test_seconds_of_any_size(name: str) -> None:
    keywords: Any = {name: 10**400}
    assert getattr(net.connect("h:1", **keywords), name) == math.inf
    keywords = {name: math.nan}
    with pytest.raises(ValueError, match=f"{name} must be a number of seconds, not nan"):
        net.connect("h:1", **keywords)
    with pytest.raises(ValueError, match=name):
        net.Cluster("h:1", **keywords)


def test_a_request_waits_for_ever_so_long() -> None:
    async def work() -> None:
        request = messages.MetadataRequest()
        async with (
            Broker(of_release("4.4"), lambda _: messages.MetadataResponse(cluster_id="c")) as broker,
            net.connect(broker.address, timeout=10**400) as connection,
        ):
            assert (await connection.send(request, timeout=10**400)).cluster_id == "c"
            with pytest.raises(ValueError, match="timeout must be"):
                await connection.send(request, timeout=math.nan)

    run(work())


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


def test_a_recording_refuses_what_is_no_frame(tmp_path: Any) -> None:
    with capture.FrameWriter(str(tmp_path / "a")) as writer:
        connection, frame = capture.Connection("c", 0), capture.Frame("request", b"x")
        for name, arguments in {"connection": (5, frame, None), "frame": (connection, 5, None),
                                "exchange": (connection, frame, 5)}.items():  # fmt: skip
            with pytest.raises(TypeError, match=f"{name} must be"):
                writer.write(*arguments)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="lost must be"):
            writer.note(5)  # type: ignore[arg-type]
        writer.write(connection, frame, None)
        assert writer.frames == 1


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


def test_a_wrong_file_can_be_pickled() -> None:
    error = WrongFileError("an index")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other)) == (WrongFileError, "an index")


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


def test_a_connection_that_nobody_refers_to_is_closed() -> None:
    broker = Broker(of_release("4.4"), lambda _: messages.MetadataResponse())
    with serving(broker):
        before = sockets()
        connection = net.connect_sync(broker.address, timeout=10)
        connection.open()
        assert len(sockets()) > len(before)
        del connection
        deadline = time.monotonic() + 20
        while len(sockets()) > len(before) and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.01)
        assert len(sockets()) <= len(before)


def test_a_cancelled_close_leaves_nothing_open() -> None:
    """At each turn of the loop, twice: what cleans up is cancelled as well."""

    async def use(brokers: list[Broker]) -> None:
        async with net.Cluster(brokers[0].address, timeout=5) as found:
            await found.send(messages.MetadataRequest(topics=[]))
            await found.refresh()

    async def work(turns: int) -> bool:
        brokers = cluster(of_release("4.4"), of_release("4.4"))
        async with brokers[0], brokers[1]:
            task = asyncio.create_task(use(brokers))
            for _ in range(turns):
                await asyncio.sleep(0)
            ended = task.done()
            for _ in range(2):
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait([task])
            for _ in range(20):
                await asyncio.sleep(0)
            left = [one for one in asyncio.all_tasks() if one.get_name().startswith("kwire reads")]
            assert not left, f"cancelled after {turns} turns"  # before the brokers close their side
        return ended

    assert any(run(work(turns)) for turns in range(400))
