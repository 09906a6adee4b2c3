"""Message classes: construction, checks, equality, repr, copies, pickles, the garbage collector."""

from __future__ import annotations

import copy
import enum
import gc
import inspect
import pickle
import subprocess
import sys
import uuid
import weakref
from typing import Any

import pytest

import kwire
from kwire import messages, schema

pytestmark = pytest.mark.quick
R = messages.FetchRequest
LAST = schema.message("FetchRequest").valid_versions.high


def example() -> Any:
    return R(
        max_wait_ms=5, cluster_id="ü", rack_id="r", unknown_tags={7: b"x"},
        topics=[R.FetchTopic(topic="t", topic_id=uuid.UUID(int=5), partitions=[R.FetchPartition(partition=1)])],
        forgotten_topics_data=[R.ForgottenTopic(topic="f", partitions=(1, 2, 70000))],
        replica_state=R.ReplicaState(replica_id=3),
    )


def test_defaults_of_the_schema() -> None:
    value = R()
    assert (value.max_bytes, value.replica_id, value.cluster_id, value.rack_id) == (0x7FFFFFFF, -1, None, "")
    assert value.topics == [] and value.unknown_tags == {} and value.replica_state == R.ReplicaState()
    assert R.FetchPartition().high_watermark == 9223372036854775807
    assert messages.MetadataRequest().topics == [] and messages.MetadataRequest().allow_auto_topic_creation is True
    assert messages.ConsumerGroupHeartbeatResponse().assignment is None
    assert R.FetchTopic().topic_id == uuid.UUID(int=0)
    assert messages.ProduceRequest.PartitionProduceData().records is None


def test_a_default_list_or_struct_is_one_s_own() -> None:
    one, other = R(), R()
    one.topics.append(R.FetchTopic(topic="t"))
    one.replica_state.replica_id = 9
    assert other.topics == [] and other.replica_state.replica_id == -1
    assert one.topics[0].topic == "t" and one != other
    with pytest.raises(kwire.EncodeError) as caught:  # a struct that version 14 lacks
        kwire.encode(one, 14)
    assert caught.value.path == ".replica_state"


@pytest.mark.parametrize("field,value", [
    ("max_wait_ms", "5"), ("max_wait_ms", 5.0), ("topics", 5), ("topics", [5]), ("topics", "ab"), ("rack_id", b"r"),
    ("topics", [R.ForgottenTopic()]), ("replica_state", R.FetchTopic()),
    ("unknown_tags", [1]), ("unknown_tags", {"a": b""}),
])
def test_a_wrong_type_is_a_type_error(field: str, value: Any) -> None:
    message = R()
    with pytest.raises(TypeError):
        setattr(message, field, value)
    with pytest.raises(TypeError):
        R(**{field: value})
    assert message == R()


@pytest.mark.parametrize("field,value", [
    ("max_wait_ms", 1 << 31), ("max_wait_ms", -(1 << 31) - 1), ("isolation_level", 128), ("isolation_level", -129),
    ("max_wait_ms", 1 << 70), ("rack_id", None), ("topics", None), ("max_wait_ms", None), ("unknown_tags", {-1: b""}),
    ("replica_state", None),
])
def test_out_of_range_and_null_are_encode_errors(field: str, value: Any) -> None:
    with pytest.raises(kwire.EncodeError) as caught:
        R(**{field: value})
    assert caught.value.path == f".{field}"


def test_limits_of_every_number() -> None:
    limits = {"int8": (-128, 127), "int16": (-1 << 15, (1 << 15) - 1), "uint16": (0, 65535),
              "int32": (-1 << 31, (1 << 31) - 1), "uint32": (0, (1 << 32) - 1), "int64": (-1 << 63, (1 << 63) - 1)}
    seen = set()
    for name in schema.message_names():
        root = getattr(messages, name)
        owners = [(root, schema.message(name).fields)]
        owners += [(getattr(root, nested), fields) for nested, fields in schema.message(name).structs().items()]
        for owner, field in [(owner, field) for owner, fields in owners for field in fields if field.type in limits]:
            seen.add(field.type)
            low, high = limits[field.type]
            for good in (low, high):
                assert getattr(owner(**{field.snake_name: good}), field.snake_name) == good
            for bad in (low - 1, high + 1):
                with pytest.raises(kwire.EncodeError):
                    owner(**{field.snake_name: bad})
    assert seen == set(limits)


def test_fields_cannot_be_deleted_or_invented() -> None:
    value = R()
    for name in ("max_wait_ms", "topics", "unknown_tags"):
        with pytest.raises(TypeError):
            delattr(value, name)
    with pytest.raises(AttributeError):
        value.no_such_field = 1
    with pytest.raises(TypeError, match="no field"):
        R(no_such_field=1)
    with pytest.raises(TypeError, match="keyword"):
        R(1)
    with pytest.raises(TypeError):
        hash(value)


def test_repr_reads_back() -> None:
    value = example()
    assert eval(repr(value), {"FetchRequest": R, "UUID": uuid.UUID}) == value
    assert repr(R()) == "FetchRequest()"
    inf = messages.QuotaRecord(value=float("-inf"))
    assert eval(repr(inf), {"QuotaRecord": messages.QuotaRecord}) == inf


def test_match() -> None:
    match example():
        case messages.FetchRequest(max_wait_ms=wait, topics=[first, *_]):
            assert (wait, first.topic) == (5, "t")
        case _:
            raise AssertionError
    assert R.__match_args__[0] == "cluster_id" and "topics" in R.__match_args__


def test_copies() -> None:
    value = example()
    shallow, deep = copy.copy(value), copy.deepcopy(value)
    assert shallow == value == deep and shallow is not value
    assert shallow.topics is value.topics and deep.topics is not value.topics
    deep.topics[0].partitions[0].partition = 9
    assert deep != value and shallow == value
    changed = value.__replace__(max_wait_ms=6, unknown_tags={})
    assert (changed.max_wait_ms, changed.unknown_tags, value.max_wait_ms) == (6, {}, 5)
    with pytest.raises(kwire.EncodeError):
        value.__replace__(max_wait_ms=1 << 40)


def test_pickles_by_name() -> None:
    value = example()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value
    part = value.topics[0].partitions[0]
    assert pickle.loads(pickle.dumps(part)) == part
    viewed = kwire.decode("SaslAuthenticateRequest", 0, b"\0\0\0\3abc", views=True)
    assert pickle.loads(pickle.dumps(viewed)) == viewed
    value.unknown_tags = {9: memoryview(b"x"), 10: bytearray(b"y")}
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value and again.unknown_tags == {9: b"x", 10: b"y"}
    value.unknown_tags[9].release()
    with pytest.raises(kwire.EncodeError, match="memoryview in a field was released"):
        pickle.dumps(value)


def test_pickles_cross_a_fresh_process() -> None:
    code = ("import pickle, sys; value = pickle.loads(sys.stdin.buffer.read()); import kwire; "
            "print(type(value).__module__, type(value).__qualname__, kwire.encode(value, 15).hex())")
    pickled = pickle.dumps(example_15())
    ran = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True)
    assert ran.stdout.decode().split() == ["kwire.messages", "FetchRequest", kwire.encode(example_15(), 15).hex()]


def example_15() -> Any:
    return R(max_wait_ms=5, topics=[R.FetchTopic(topic_id=uuid.UUID(int=5))], unknown_tags={9: b"y"})


def test_equality_is_by_content() -> None:
    assert R(topics=()) == R() == R(topics=[])
    assert R.ForgottenTopic(partitions=[1, 2]) == R.ForgottenTopic(partitions=(1, 2))
    assert R(unknown_tags={1: b""}) != R() and R() != messages.FetchResponse() and R() != 5
    a, b = (messages.SaslAuthenticateRequest(auth_bytes=data) for data in (b"x", memoryview(b"x")))
    assert a == b and kwire.encode(a, 0) == kwire.encode(b, 0)
    read = kwire.decode("ApiVersionsRequest", 3, b"\1\1\1\5\1z")
    assert read == messages.ApiVersionsRequest(unknown_tags={5: b"z"})


def test_bytes_come_in_as_any_buffer() -> None:
    for value in (b"abc", bytearray(b"abc"), memoryview(b"abc"), memoryview(b"aXbXcX")[::2]):
        assert messages.SaslAuthenticateRequest(auth_bytes=value).auth_bytes == b"abc"
    for form in "Bbc":  # items of some are signed numbers, or bytes objects
        message = messages.SaslAuthenticateRequest(auth_bytes=memoryview(b"\0\xff").cast(form))
        assert message == messages.SaslAuthenticateRequest(auth_bytes=b"\0\xff")
    gone = memoryview(b"abc")
    message = messages.SaslAuthenticateRequest(auth_bytes=gone)
    gone.release()
    with pytest.raises(kwire.EncodeError):
        kwire.encode(message, 0)


def test_views_keep_their_buffer() -> None:
    data = bytearray(b"\0\0\0\3abc")
    message = kwire.decode("SaslAuthenticateRequest", 0, data, views=True)
    view = message.auth_bytes
    assert isinstance(view, memoryview) and view == b"abc" and message.auth_bytes is view
    data[4:5] = b"X"
    assert view == b"Xbc"
    long = kwire.decode("SaslAuthenticateRequest", 0, b"\0\0\x40\0" + b"z" * 0x4000)
    assert type(long.auth_bytes) is bytes and long.auth_bytes == b"z" * 0x4000


def test_what_cannot_form_a_cycle_is_not_collected() -> None:
    leaf = R.FetchPartition()
    assert not gc.is_tracked(leaf)
    read = kwire.decode("FetchRequest", 12, kwire.encode(R(topics=[R.FetchTopic(topic="t")]), 12))
    assert not gc.is_tracked(read)
    read.topics[0].partitions.append(read)  # wrong, yet no leak

    class Canary(list):  # type: ignore[type-arg]
        pass

    canary = Canary()
    read.topics.append(canary)
    seen = weakref.ref(canary)
    del canary, read
    gc.collect()
    assert seen() is None


def test_wrong_elements_are_found_when_written() -> None:
    value = R()
    value.topics.append(5)
    with pytest.raises(kwire.EncodeError) as caught:
        kwire.encode(value, 12)
    assert caught.value.path == ".topics[0]" and "int" in caught.value.reason
    value.topics[0] = R.FetchTopic(topic="x" * 40000)
    with pytest.raises(kwire.EncodeError) as caught:
        kwire.encode(value, 12)
    assert caught.value.path == ".topics[0].topic"


def test_names() -> None:
    assert set(schema.message_names()) <= set(dir(messages))
    assert messages.AlterIsrRequest is messages.AlterPartitionRequest
    for name in schema.message_names():
        made = getattr(messages, name)
        assert (made.__module__, made.__qualname__, made.__name__) == ("kwire.messages", name, name)
        assert made() == made() and eval(repr(made()), {name: made}) == made()
        for nested in schema.message(name).structs():
            assert getattr(made, nested).__qualname__ == f"{name}.{nested}"
    with pytest.raises(AttributeError):
        messages.NoSuchRequest  # noqa: B018
    assert "int32, versions 0+" in R.max_wait_ms.__doc__ and f"versions 0-{LAST}," in R.__doc__
    assert "max_wait_ms" in inspect.signature(R).parameters


def test_arguments_of_the_face() -> None:
    with pytest.raises(kwire.UnsupportedVersionError):
        kwire.decode("NoSuchRequest", 0, b"")
    for version in (-1, LAST + 1, 1 << 40, 1 << 90):
        with pytest.raises(kwire.UnsupportedVersionError):
            kwire.decode("FetchRequest", version, b"")
        with pytest.raises(kwire.UnsupportedVersionError):
            kwire.encode(R(), version)
    class Name(enum.StrEnum):
        FETCH = "FetchRequest"

    assert kwire.decode(Name.FETCH, 12, kwire.encode(R(), 12)) == R() == kwire.decode(R, 12, kwire.encode(R(), 12))
    for wrong in (5, R.FetchTopic, int, None):
        with pytest.raises(TypeError):
            kwire.decode(wrong, 0, b"")
    with pytest.raises(TypeError):
        kwire.encode(R.FetchTopic(), 0)
    with pytest.raises(TypeError):
        kwire.encode("FetchRequest", 0)
    for position in (-1, 3, 2**63 - 1, 2**63, -(2**63) - 1, 10**5000):
        near = max(min(position, 2**63 - 1), -(2**63))  # Python refuses to write the longest
        for data in (b"ab", bytearray(b"ab")):
            with pytest.raises(kwire.DecodeError, match=f"position {near} is outside the 2 bytes") as caught:
                kwire.decode_from("FetchRequest", 0, data, position)
            assert caught.value.offset == near
    with pytest.raises(TypeError):
        kwire.decode_from("FetchRequest", 0, b"ab", 1.0)  # type: ignore[arg-type]
    base = type(R()).__mro__[1]
    with pytest.raises(TypeError):
        base()
    with pytest.raises(TypeError):
        base.__new__(R)
    with pytest.raises(TypeError):
        type("Mine", (R,), {})
