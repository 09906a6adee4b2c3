"""Frames: captured ones byte for byte, headers, fallbacks, and streams cut at any byte."""

from __future__ import annotations

import array
import gc
import random
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
import pytest

import kwire
from kwire import LimitError, messages
from kwire.codec.frames import FrameReader, pack_frame
from tests.codec import vectors, wire

pytestmark = pytest.mark.quick


def test_every_real_frame_comes_back() -> None:
    count, left_over = 0, 0
    for capture in wire.captures():
        requests: dict[tuple[int, int], kwire.Request] = {}
        for known, frame in wire.frames(capture):
            count += 1
            if known["dir"] == "c2s":
                try:
                    request = kwire.decode_request(frame)
                except kwire.DecodeError as error:
                    assert "librdkafka" in capture and error.reason == "3 bytes remaining after the message"
                    request = kwire.decode_request(frame, lenient=True)
                    assert request.name == "Metadata" and len(request.trailing) == 3
                    left_over += 1
                header = (request.api_key, request.version, request.client_id, request.correlation_id)
                assert header == (known["api_key"], known["api_version"], known["client_id"], known["corr"])
                requests[known["conn"], known["corr"]] = request
                assert request.to_bytes() == frame
            else:
                request = requests[known["conn"], known["corr"]]
                response = kwire.decode_response(frame, request)
                assert response.name == request.name and response.to_bytes() == frame
                again = kwire.decode_response(frame, api=request.name, version=request.version)
                assert again.message == response.message
    assert (count, left_over) == (10002, 5)


@pytest.mark.parametrize("name", vectors.KINDS)
def test_frames_of_the_vectors(name: str) -> None:
    for vector in vectors.with_this_layout(name):
        if "framedHex" not in vector:
            continue
        frame, version = bytes.fromhex(vector["framedHex"]), vector["version"]
        message = kwire.decode(vector["message"], version, bytes.fromhex(vector["hex"]))
        header = vector["frame"]
        if vector["schemaType"] == "request":
            seen = kwire.decode_request(frame)
            assert (seen.message, seen.correlation_id) == (message, header["correlationId"])
            # the client id of a header of version 0 is not written
            assert seen.client_id == (header["clientId"] if header["headerVersion"] else "")
            assert seen.header_version == header["headerVersion"] and seen.to_bytes() == frame
            made = kwire.encode_request(
                message, version, correlation_id=seen.correlation_id, client_id=header.get("clientId")
            ) if header["headerVersion"] else frame
            assert made == frame
        elif vector["schemaType"] == "response":
            answer = kwire.decode_response(frame, api=vector["apiKey"], version=version)
            assert answer.message == message and answer.to_bytes() == frame
            assert kwire.encode_response(message, version, correlation_id=header["correlationId"]) == frame


def test_header_tags_and_null_client_id() -> None:
    message = messages.ApiVersionsRequest(client_software_name="a", client_software_version="b")
    frame = kwire.encode_request(message, 3, correlation_id=7, header_tags={9: b"x"})
    request = kwire.decode_request(frame)
    assert request.client_id is None and request.header.unknown_tags == {9: b"x"}
    assert request.to_bytes() == frame
    with pytest.raises(kwire.EncodeError):
        kwire.encode_request(message, 0, header_tags={9: b"x"})
    with pytest.raises(TypeError):
        kwire.encode_request(messages.ApiVersionsResponse(), 3)


def test_what_the_facts_lack_keeps_its_header() -> None:
    frame = bytes.fromhex("03e700010000000500016301020304")
    with pytest.raises(kwire.UnsupportedVersionError) as caught:
        kwire.decode_request(frame)
    header = caught.value.header
    assert (header.request_api_key, header.correlation_id, header.client_id) == (999, 5, "c")
    with pytest.raises(kwire.UnsupportedVersionError) as caught:
        kwire.decode_request(bytes.fromhex("0003006300000001ffff00"))
    assert (caught.value.header.request_api_version, caught.value.header.client_id) == (99, None)
    with pytest.raises(kwire.UnsupportedVersionError) as caught:
        kwire.decode_request(bytes.fromhex("00030063"))
    assert caught.value.header.request_api_key == 3
    with pytest.raises(kwire.DecodeError):
        kwire.decode_request(b"\0\3\0")


def test_api_versions_falls_back_to_version_0() -> None:
    request = kwire.decode_request(kwire.encode_request(messages.ApiVersionsRequest(), 4, correlation_id=3))
    for body, keys in (("002300000001001200000004", [18]), ("002300000000", [])):
        response = kwire.decode_response(bytes.fromhex("00000003" + body), request)
        assert response.version == 0 and response.message.error_code == 35
        assert [row.api_key for row in response.message.api_keys] == keys
        assert response.to_bytes() == bytes.fromhex("00000003" + body)
    with pytest.raises(kwire.DecodeError, match="correlation id"):
        kwire.decode_response(bytes.fromhex("00000004002300000000"), request)


def test_acks_0_has_no_response() -> None:
    for acks, answered in ((0, False), (1, True), (-1, True)):
        frame = kwire.encode_request(messages.ProduceRequest(acks=acks), 9)
        assert kwire.decode_request(frame).has_response is answered


def test_reader_cuts_frames_wherever_reads_fell() -> None:
    dice = random.Random(5)
    frames = [dice.randbytes(dice.choice((0, 1, 3, 4, 5, 200, 70000))) for _ in range(60)]
    stream = b"".join(kwire.pack_frame(frame) for frame in frames)
    for sizes in ((1,), (3,), (4,), (5, 1), (4096,), (1 << 20,)):
        reader, seen, at = kwire.FrameReader(), [], 0
        while at < len(stream):
            size = dice.choice(sizes) if sizes != (1,) else dice.choice((1, 5000))
            seen += reader.feed(stream[at : at + size])
            at += size
        assert seen == frames and reader.pending == 0
    reader = kwire.FrameReader()
    assert reader.feed(b"\0\0\0\2a") == [] and reader.pending == 5


def test_reader_refuses_sizes() -> None:
    reader = kwire.FrameReader(max_size=10)
    assert reader.feed(kwire.pack_frame(b"0123456789")) == [b"0123456789"]
    with pytest.raises(kwire.LimitError) as caught:
        reader.feed(b"\0\0\0\x0b")
    assert (caught.value.limit, caught.value.needed, caught.value.offset) == (10, 11, 14)
    with pytest.raises(kwire.DecodeError):
        kwire.FrameReader().feed(b"\xff\xff\xff\xff")


def test_frames_come_in_as_any_buffer() -> None:
    frame = kwire.encode_request(messages.HeartbeatRequest(group_id="g", member_id="mm"), 4, correlation_id=3)
    answer = kwire.encode_response(messages.HeartbeatResponse(error_code=7), 4, correlation_id=3)
    wide = frame + b"\0" * (-len(frame) % 4)
    forms = (bytearray(frame), memoryview(frame), np.frombuffer(frame, np.int8), array.array("b", frame))
    for data in forms:
        request = kwire.decode_request(data)
        assert request.to_bytes() == frame
        assert kwire.pack_frame(data) == len(frame).to_bytes(4, "big") + frame
    assert kwire.decode_request(np.frombuffer(wide, np.int32), lenient=True).message == request.message
    for data in (np.frombuffer(answer, np.int8), array.array("b", answer)):
        assert kwire.decode_response(data, request).message.error_code == 7
    packed = kwire.pack_frame(frame)
    assert kwire.FrameReader().feed(np.frombuffer(packed, np.int8)) == [frame]
    record = kwire.encode_metadata_record(messages.NoOpRecord(), 0)
    assert kwire.decode_metadata_record(array.array("b", record)) == (messages.NoOpRecord(), 0)


@pytest.mark.parametrize("wrong", [5, None, "text", [1, 2], 1.5])
def test_what_is_no_buffer_is_a_type_error(wrong: Any) -> None:
    for call in (kwire.decode_request, kwire.pack_frame, kwire.FrameReader().feed, kwire.decode_metadata_record,
                 lambda data: kwire.decode_response(data, api=12, version=0)):
        with pytest.raises(TypeError):
            call(wrong)
    if wrong is not None:
        with pytest.raises(TypeError):
            kwire.decode_response(b"\0" * 10, wrong)
    if not isinstance(wrong, int | str):
        with pytest.raises(TypeError):
            kwire.decode_response(b"\0" * 10, api=wrong, version=0)


def test_a_frame_reader_gives_whole_frames_first_and_keeps_nothing_after_an_error() -> None:
    import copy

    stream = pack_frame(b"one") + pack_frame(b"two") + b"\x7f\xff\xff\xff"
    for size in (1, 3, 7, 100):
        reader, frames = FrameReader(10), []
        with pytest.raises(LimitError):
            for at in range(0, 200, size):
                frames += reader.feed(stream[at : at + size])
        assert frames == [b"one", b"two"], size
        for _ in range(3):
            with pytest.raises(LimitError):
                reader.feed(bytes(1 << 20))
        assert reader.pending == 4
    reader = FrameReader(10)
    assert len(reader.feed(stream)) == 2
    traces = [one for one in gc.get_objects() if isinstance(one, TracebackType)]
    assert all(trace.tb_frame.f_locals.get("self") is not reader for trace in traces)  # which holds the whole frames
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(FrameReader())


def test_where_views_of_the_reader_s_buffer_live_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profilers and leak detectors take all objects that there are, and hold them for a while."""
    held: list[memoryview] = []
    monkeypatch.setattr("kwire.codec.frames.memoryview", held_view(held), raising=False)
    stream, reader = (pack_frame(b"one") + pack_frame(b"another")) * 10, FrameReader(10)
    found = [frame for at in range(0, len(stream), 9) for frame in reader.feed(stream[at : at + 9])]
    assert found == [b"one", b"another"] * 10 and len(held) == 20
    assert reader.feed(stream[:18] + b"\x7f\xff\xff\xff....") == [b"one", b"another"] and reader.pending == 4


def held_view(held: list[memoryview]) -> Callable[[Any], memoryview]:
    """memoryview, each of which is held."""

    def view(data: Any) -> memoryview:
        held.append(memoryview(data))
        return held[-1]

    return view


def test_near_names_of_what_is_not_known() -> None:
    with pytest.raises(kwire.UnsupportedVersionError, match=r'unknown API \'Fetsh\' \(did you mean "Fetch"\?\)'):
        kwire.decode_response(b"\0\0\0\1", api="Fetsh", version=12)
    with pytest.raises(AttributeError, match=r'\(did you mean "MetadataRequest"\?\)'):
        _ = messages.MetadataRequests
