"""Values that no field takes, and what cannot be written though a field took it: TypeError and EncodeError."""

from __future__ import annotations

import math
import mmap
import uuid
from typing import Any

import pytest

import kwire
from kwire import messages

pytestmark = pytest.mark.quick


class Indexed:
    """A whole number that is no int."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Fake(uuid.UUID):
    """A uuid that loses its bytes."""

    lost: Any = b""

    @property
    def bytes(self) -> Any:
        if self.lost is None:
            raise RuntimeError("gone")
        return self.lost


@pytest.mark.parametrize("name,field,value,kind", [
    ("QuotaRecord", "value", "1", TypeError),
    ("QuotaRecord", "value", 10**400, kwire.EncodeError),
    ("BrokerHeartbeatRequest", "want_fence", 1, TypeError),
    ("BrokerHeartbeatRequest", "offline_log_dirs", [b"x" * 16], TypeError),
    ("BrokerHeartbeatRequest", "offline_log_dirs", {uuid.UUID(int=1)}, TypeError),
    ("ListConfigResourcesRequest", "resource_types", b"ab", TypeError),
    ("ListConfigResourcesRequest", "resource_types", 5, TypeError),
    ("ListConfigResourcesRequest", "resource_types", [1.0], TypeError),
    ("ListConfigResourcesRequest", "resource_types", [300], kwire.EncodeError),
    ("DeleteTopicsRequest", "topic_names", ["a", b"b"], TypeError),
    ("SaslAuthenticateRequest", "auth_bytes", "text", TypeError),
    ("SaslAuthenticateRequest", "auth_bytes", object(), TypeError),
    ("FetchRequest", "max_bytes", Indexed(1 << 31), kwire.EncodeError),
    ("FetchRequest", "unknown_tags", {1: "x"}, TypeError),
    ("FetchRequest", "unknown_tags", {1 << 32: b""}, kwire.EncodeError),
    ("FetchRequest", "unknown_tags", None, kwire.EncodeError),
])
def test_values_that_no_field_takes(name: str, field: str, value: Any, kind: type[Exception]) -> None:
    message = getattr(messages, name)()
    with pytest.raises(kind, match=name):
        setattr(message, field, value)
    assert message == getattr(messages, name)()


def test_values_that_are_converted() -> None:
    class Text(str):
        pass

    class Tags(dict):  # type: ignore[type-arg]
        pass

    value = messages.FetchRequest(max_bytes=Indexed(7), rack_id=Text("r"), unknown_tags=Tags({9: b"x"}))
    assert value.max_bytes == 7 and type(value.rack_id) is str and type(value.unknown_tags) is dict
    assert messages.ListConfigResourcesRequest(resource_types=range(3)).resource_types == (0, 1, 2)
    assert messages.QuotaRecord(value=3).value == 3.0 and math.isnan(messages.QuotaRecord(value=math.nan).value)
    assert messages.QuotaRecord(value=-math.inf) == messages.QuotaRecord(value=-math.inf)
    assert repr(messages.QuotaRecord(value=math.nan)) == "QuotaRecord(value=float('nan'))"
    viewed = kwire.decode("ConsumerProtocolAssignment", 0, b"\0\0\0\0\0\0\0\3abc", views=True)
    assert repr(viewed) == "ConsumerProtocolAssignment(user_data=b'abc')"


@pytest.mark.parametrize("text,reason", [
    ("\ud800", "surrogate"), ("x" * 32768, "32768 bytes"), ("\u20ac" * 10923, "32769 bytes"),
])
def test_text_that_has_no_form_on_the_wire(text: str, reason: str) -> None:
    with pytest.raises(kwire.EncodeError, match=reason) as caught:
        kwire.encode(messages.FetchRequest(rack_id=text), 12)
    assert caught.value.path == ".rack_id"
    with pytest.raises(kwire.EncodeError, match=reason) as caught:
        kwire.encode(messages.DeleteTopicsRequest(topic_names=["ok", text]), 3)
    assert caught.value.path == ".topic_names[1]"
    longest = messages.FetchRequest(rack_id="\u20ac" * 10922 + "x")
    assert kwire.decode("FetchRequest", 12, kwire.encode(longest, 12)) == longest


@pytest.mark.parametrize("element", [5, None, b"x"])
def test_elements_changed_behind_the_setter(element: Any) -> None:
    fields = (("DeleteTopicsRequest", 3, "topic_names"), ("BrokerHeartbeatRequest", 1, "offline_log_dirs"))
    for name, version, field in fields:
        message = getattr(messages, name)()
        getattr(message, field).append(element)
        with pytest.raises(kwire.EncodeError, match=type(element).__name__) as caught:
            kwire.encode(message, version)
        assert caught.value.path == f".{field}[0]"


@pytest.mark.parametrize("lost", [None, b"short", b"x" * 17, "x" * 16])
def test_uuids_are_read_by_their_slot(lost: Any) -> None:
    """What a subclass says of its bytes is not asked: its code does not run, and cannot be believed."""
    one = Fake(int=5)
    Fake.lost = lost
    value = messages.BrokerHeartbeatRequest(offline_log_dirs=[one])
    assert kwire.decode("BrokerHeartbeatRequest", 1, kwire.encode(value, 1)).offline_log_dirs == [uuid.UUID(int=5)]
    record = messages.TopicRecord(topic_id=one)
    assert kwire.decode("TopicRecord", 0, kwire.encode(record, 0)).topic_id == uuid.UUID(int=5)
    assert kwire.to_json(value, 1)["offlineLogDirs"] == ["AAAAAAAAAAAAAAAAAAAABQ"]


@pytest.mark.parametrize("held", [None, -1, 1 << 128, "x"])
def test_uuids_that_hold_no_number(held: Any) -> None:
    odd = uuid.UUID.__new__(uuid.UUID)
    if held is not None:
        object.__setattr__(odd, "int", held)
    with pytest.raises(TypeError, match=r"topic_id: expected uuid\.UUID, got UUID"):
        messages.TopicRecord(topic_id=odd)
    value = messages.BrokerHeartbeatRequest(offline_log_dirs=[odd])
    with pytest.raises(kwire.EncodeError, match=r"offline_log_dirs\[0\]: expected uuid.UUID, got UUID"):
        kwire.encode(value, 1)
    with pytest.raises(kwire.EncodeError, match=r"expected uuid.UUID, got UUID"):
        kwire.to_json(value, 1)


def test_what_only_says_that_it_is_a_uuid() -> None:
    class Liar:
        __class__ = uuid.UUID  # type: ignore[assignment]
        bytes = b"x" * 16
        int = 5

    with pytest.raises(TypeError, match=r"expected uuid\.UUID, got Liar"):
        messages.TopicRecord(topic_id=Liar())
    with pytest.raises(TypeError, match=r"expected a list of uuid\.UUID, got Liar"):
        messages.BrokerHeartbeatRequest(offline_log_dirs=[Liar()])


@pytest.mark.parametrize("tags,reason", [
    ({"a": b""}, "invalid tag number"), ({-1: b""}, "invalid tag number"), ({1 << 31: b""}, "invalid tag number"),
    ({9: "x"}, "expected bytes, got str"), ({0: b"\1"}, "is a known one"),
])
def test_unknown_tags_changed_behind_the_setter(tags: dict[Any, Any], reason: str) -> None:
    message = messages.FetchRequest()
    message.unknown_tags.update(tags)
    with pytest.raises(kwire.EncodeError, match=reason):
        kwire.encode(message, 12)


def test_unknown_tags_between_known_ones() -> None:
    """They are written in order, with the known ones among them, whatever the order in the dict."""
    value = messages.FetchRequest(cluster_id="c", unknown_tags={300: b"b" * 200, 20: memoryview(b"a")})
    data = kwire.encode(value, 12)
    assert data.endswith(b"\3" + b"\0\2\2c" + b"\x14\1a" + b"\xac\2\xc8\1" + b"b" * 200)
    assert kwire.decode("FetchRequest", 12, data) == value
    with pytest.raises(kwire.EncodeError, match="no tagged fields"):
        kwire.encode(messages.FetchRequest(unknown_tags={20: b""}), 11)
    emptied = messages.FetchRequest(unknown_tags={20: b""})
    emptied.unknown_tags.clear()
    assert kwire.encode(emptied, 11) == kwire.encode(messages.FetchRequest(), 11)


def test_tags_that_were_read_out_of_order_are_not_written() -> None:
    data = b"\1\1\2\x15\1b\x14\1a"  # ApiVersionsRequest v3 with tags 21 and 20
    with pytest.raises(kwire.DecodeError):
        kwire.decode("ApiVersionsRequest", 3, data)
    lenient = kwire.decode("ApiVersionsRequest", 3, data, lenient=True)
    with pytest.raises(kwire.EncodeError, match="tags out of order: 20 was read after 21"):
        kwire.encode(lenient, 3)
    assert lenient.unknown_tags == {21: b"b", 20: b"a"}
    assert kwire.encode(lenient, 3) == b"\1\1\2\x14\1a\x15\1b"  # as a dict they have no order


def test_a_list_that_shrinks_while_it_is_written() -> None:
    class Shrinking(bytes):
        def __bytes__(self) -> bytes:
            value.topics.clear()
            return b"x"

    topics = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in "abc"]
    topics[0].unknown_tags = {9: Shrinking(b"x")}
    value = messages.MetadataRequest(topics=topics)
    with pytest.raises(kwire.EncodeError, match="the list changed while it was written") as caught:
        kwire.encode(value, 12)
    assert caught.value.path == ".topics"


def test_bytes_that_no_length_can_tell() -> None:
    """2 GiB of pages that nobody touches."""
    with mmap.mmap(-1, (1 << 31) - 1) as pages, memoryview(pages) as view:
        message = messages.SaslAuthenticateRequest(auth_bytes=view)
        for version in (0, 2):
            with pytest.raises(kwire.EncodeError, match="2147483647 bytes exceed what a field can hold"):
                kwire.encode(message, version)
        del message
