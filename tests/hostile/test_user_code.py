"""Code of the user that runs in the middle of a call: it may take away what the call is at work on, never crash it."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import kwire
from kwire import messages
from tests.hostile.fickle import fickle

pytestmark = pytest.mark.quick


class Meddling(bytes):
    """Bytes of an unknown tag; asked for its content it does something else first."""

    meddle: Callable[[], object] = staticmethod(lambda: None)

    def __bytes__(self) -> bytes:
        self.meddle()
        return b"x"


@pytest.fixture
def meddling() -> Iterator[type[Meddling]]:
    yield Meddling
    Meddling.meddle = staticmethod(lambda: None)


def topic(name: str, **fields: Any) -> Any:
    return messages.MetadataRequest.MetadataRequestTopic(name=name, **fields)


def test_the_list_is_replaced(meddling: type[Meddling]) -> None:
    value = messages.MetadataRequest(topics=[topic("a", unknown_tags={9: meddling()}), topic("b")])

    def meddle() -> None:
        value.topics = []
        others.extend(topic("z" * 9) for _ in range(3))  # where those were

    others: list[Any] = []
    wanted = kwire.encode(messages.MetadataRequest(topics=[topic("a", unknown_tags={9: b"x"}), topic("b")]), 12)
    meddling.meddle = staticmethod(meddle)
    assert kwire.encode(value, 12) == wanted


def test_the_list_is_emptied(meddling: type[Meddling]) -> None:
    """The item that is being written stays until it is."""
    Request = messages.CreateTopicsRequest

    def made(name: str, tag: bytes) -> Any:
        config = Request.CreatableTopicConfig(name="c", unknown_tags={5: tag})
        return Request.CreatableTopic(name=name, configs=[config], unknown_tags={7: name.encode()})

    value = Request(topics=[made("a" * 20, meddling())])
    others: list[Any] = []

    def meddle() -> None:
        value.topics.clear()
        others.extend(made("z" * 20, b"z") for _ in range(9))  # where that was

    wanted = kwire.encode(Request(topics=[made("a" * 20, b"x")]), 7)
    meddling.meddle = staticmethod(meddle)
    assert kwire.encode(value, 7) == wanted


def test_the_struct_is_replaced(meddling: type[Meddling]) -> None:
    """Of a struct field: the one that is being written stays until it is."""
    Cursor = messages.DescribeTopicPartitionsRequest.Cursor
    value = messages.DescribeTopicPartitionsRequest(
        topics=[], cursor=Cursor(topic_name="t" * 40, partition_index=7, unknown_tags={5: meddling()}))
    wanted = kwire.encode(messages.DescribeTopicPartitionsRequest(
        topics=[], cursor=Cursor(topic_name="t" * 40, partition_index=7, unknown_tags={5: b"x"})), 0)

    def meddle() -> None:
        value.cursor = None
        others.extend(Cursor(topic_name="z" * 9) for _ in range(3))  # where that was

    others: list[Any] = []
    meddling.meddle = staticmethod(meddle)
    assert kwire.encode(value, 0) == wanted


def test_long_bytes_are_replaced(meddling: type[Meddling]) -> None:
    """Bytes that go straight into the result are held until they are there."""
    Topic = messages.ProduceRequest.TopicProduceData
    Partition = messages.ProduceRequest.PartitionProduceData

    def made(tag: bytes) -> Any:
        return messages.ProduceRequest(topic_data=[Topic(name="t", partition_data=[
            Partition(index=0, records=b"r" * 100_000), Partition(index=1, records=b"s", unknown_tags={3: tag})])])

    value, wanted = made(meddling()), kwire.encode(made(b"x"), 9)

    def meddle() -> None:
        value.topic_data[0].partition_data[0].records = None
        others.extend(b"q" * 100_000 for _ in range(5))

    others: list[Any] = []

    meddling.meddle = staticmethod(meddle)
    assert kwire.encode(value, 9) == wanted


def test_an_exception_of_theirs_comes_out(meddling: type[Meddling]) -> None:
    for kind in (KeyboardInterrupt, MemoryError, RuntimeError, SystemExit, ValueError):
        def meddle(kind: type[BaseException] = kind) -> None:
            raise kind("theirs")

        meddling.meddle = staticmethod(meddle)
        value = messages.MetadataRequest(topics=[topic("a", unknown_tags={9: meddling()})])
        with pytest.raises(kind, match="theirs"):
            kwire.encode(value, 12)
        with pytest.raises(kind, match="theirs"):
            kwire.encode_request(value, 12)


def test_a_view_that_was_released() -> None:
    data = bytearray(b"abc")
    view = memoryview(data)
    value = messages.MetadataRequest(topics=[topic("a", unknown_tags={9: view})])
    record = messages.SaslAuthenticateRequest(auth_bytes=view)
    view.release()
    with pytest.raises(kwire.EncodeError, match="was released"):
        kwire.encode(value, 12)
    with pytest.raises(kwire.EncodeError, match="was released"):
        kwire.encode(record, 2)
    with pytest.raises(kwire.EncodeError, match=r"auth_bytes: .*was released"):
        messages.SaslAuthenticateRequest(auth_bytes=view)


def test_a_view_of_a_tag_that_is_not_contiguous() -> None:
    """to_json raised BufferError, where encode takes it."""
    message = messages.MetadataRequest(unknown_tags={5: memoryview(b"a-b-c")[::2]})
    assert kwire.encode(message, 12) == kwire.encode(messages.MetadataRequest(unknown_tags={5: b"abc"}), 12)
    assert kwire.to_json(message, 12)["_unknownTags"] == {"5": "YWJj"}


def test_comparing_runs_code() -> None:
    """A field is compared with its default by whoever's __eq__ there is."""
    class Text(str):
        def __eq__(self, other: object) -> bool:
            value.topic_names = []
            gc.collect()
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    value = messages.DeleteTopicsRequest(topic_names=[Text("a"), Text("b")])
    other = messages.DeleteTopicsRequest(topic_names=["a", "b"])
    assert value == other
    assert value.topic_names == []


def test_headers_of_other_buffers() -> None:
    """The length of a buffer is that of its bytes, not of its items."""
    two = memoryview(array("H", [0x4142, 0x4344]))
    record = kwire.Record(0, 0, two, array("I", [1]), [("k", two), ("l", None), ("m", bytearray(b"z"))])
    assert (record.key, record.value) == (b"BADC", b"\1\0\0\0")
    assert record.headers == (("k", b"BADC"), ("l", None), ("m", b"z"))
    ((back,),) = kwire.read_batches(kwire.build_batch([record]))
    assert back.headers == record.headers
    for wrong in (5, "text", [1, 2], object()):
        with pytest.raises(TypeError, match=r"^key must be bytes, not"):
            kwire.Record(key=wrong)
        with pytest.raises(TypeError, match="header 0: value must be bytes, not"):
            kwire.Record(headers=[("k", wrong)])
    with pytest.raises(TypeError, match=r"header 0: key must be str, not bytes"):
        kwire.Record(headers=[(b"k", b"v")])
    with pytest.raises(kwire.EncodeError, match="lone surrogate"):
        kwire.Record(headers=[("\ud800", b"v")])


def test_a_record_made_again() -> None:
    """__init__ of a record that others look at: they see the one or the other."""
    record, stop, seen = kwire.Record(value=b"a" * 100), threading.Event(), set()

    def look() -> None:
        while not stop.is_set():
            seen.add(bytes(record.value))

    thread = threading.Thread(target=look)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for number in range(3000):
            record.__init__(value=b"ab"[number % 2 : number % 2 + 1] * (100 + number % 7))  # type: ignore[misc]
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)
    assert all(value in (b"a" * len(value), b"b" * len(value)) for value in seen)


class Lying(str):
    """A text that equals any other, and says that it is another."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("value")

    def __str__(self) -> str:
        return "value"

    def split(self, *_: Any) -> list[Any]:
        return ["value"]


OWN_ITEMS = """
import copy
import pickle
from kwire import messages
message = messages.MetadataRequest(topics=[])
message.topics.append(())
assert repr(message) == "MetadataRequest(topics=[()])"
message.topics[0] = message.topics
assert repr(message) == "MetadataRequest(topics=[[[...]]])"
message.topics[0] = message
try:
    repr(message)
except RecursionError:
    pass
else:
    raise AssertionError
message = messages.MetadataRequest()
message.unknown_tags[5] = message.unknown_tags
assert repr(message) == "MetadataRequest(unknown_tags={5: {5: {...}}})"
assert pickle.dumps(message)
try:
    copy.deepcopy(message)
except TypeError:  # expected int and bytes
    pass
else:
    raise AssertionError
message.unknown_tags[5] = memoryview(b"x").cast("B", ())
assert repr(message) == "MetadataRequest(unknown_tags={5: b'x'})"
"""


def test_a_message_whose_lists_and_tags_hold_what_they_cannot() -> None:
    """An empty tuple was read out of bounds; a list, dict or message that holds itself used up the stack."""
    ran = subprocess.run([sys.executable, "-c", OWN_ITEMS], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()


CHAINS = """
from kwire_c.record_batch import BadBatch
from kwire_c.shared_iterator import SharedIterator
bad = None
for _ in range(1_000_000):
    bad = BadBatch(0, b"", bad)
del bad
items = SharedIterator(iter(()))
try:
    items.__init__(items)
except TypeError:
    pass
else:
    raise AssertionError
"""


def test_objects_that_hold_each_other_a_million_deep() -> None:
    """Freeing BadBatches, each the error of the next, used up the stack; so did an iterator over itself."""
    ran = subprocess.run([sys.executable, "-c", CHAINS], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()


def test_a_pair_of_arrow_capsules_that_gives_others_each_time() -> None:
    """A capsule that nothing holds is freed, and what it points to."""
    batch = pa.record_batch({"value": [b"v" * 50] * 100})

    class Pair(tuple[Any, Any]):
        def __getitem__(self, index: Any) -> Any:
            return batch.__arrow_c_array__()[index]

    class Columns:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return Pair(batch.__arrow_c_array__())

    (built,) = kwire.build_batches(Columns())
    assert built[0] == kwire.build_batches(batch)[0][0]


def test_texts_of_the_caller_s_class_become_plain() -> None:
    value = kwire.to_json(messages.FindCoordinatorRequest(coordinator_keys=[Lying("a")]), 4)
    assert value["coordinatorKeys"] == ["a"] and type(value["coordinatorKeys"][0]) is str
    value["coordinatorKeys"] = [Lying("b")]
    message: Any = kwire.from_json("FindCoordinatorRequest", 4, value)
    assert type(message.coordinator_keys[0]) is str
    group: Any = kwire.from_json("FindCoordinatorRequest", 0, {"key": Lying("g")})
    assert type(group.key) is str and group.key == "g"
    message.coordinator_keys.append(5)
    for call in (kwire.encode, kwire.to_json):
        with pytest.raises(kwire.EncodeError, match=r"coordinator_keys\[1\]: expected str, got int"):
            call(message, 4)


class Sliced(str):
    """A text whose parts are of another text, and whose number is another."""

    __slots__ = ()

    def __getitem__(self, _: Any) -> str:
        return "AQID"

    def __add__(self, _: Any) -> str:
        return "AQID"

    def __int__(self) -> int:
        return 1 << 40


def test_encoded_texts_of_the_caller_s_class() -> None:
    """16 bytes of a uuid were read from the three that its decoded slice had."""
    topic = messages.TopicRecord(name="t", topic_id=UUID(int=5), unknown_tags={7: b"seven"})
    value = kwire.to_json(topic, 0)
    tags = {Sliced(tag): Sliced(data) for tag, data in value["_unknownTags"].items()}
    value |= {"topicId": Sliced(value["topicId"]), "_unknownTags": tags}
    assert kwire.from_json("TopicRecord", 0, value) == topic


def test_keys_of_json_that_are_there_only_once() -> None:
    """Python's KeyError came out."""

    class Once(str):
        def __eq__(self, other: object) -> bool:
            asked.append(other)
            return asked == ["name"]

        def __hash__(self) -> int:
            return hash("name")

    asked: list[object] = []
    value = {Once("other"): "t", "topicId": "A" * 22}
    message: Any = kwire.from_json("TopicRecord", 0, value)
    assert message.name == "t" and asked == ["name"]


def test_an_api_key_that_equals_any() -> None:
    class Key(int):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return hash(9)

    response = kwire.decode_response(kwire.encode_response(messages.HeartbeatResponse(), 0), api=Key(12), version=0)
    assert response.name == "Heartbeat" and type(response.message) is messages.HeartbeatResponse


def test_bytes_of_an_unknown_tag_that_give_bytes_of_a_class() -> None:
    class Others(bytes):
        def __bytes__(self) -> bytes:
            return Others(b"xyz")

    message = messages.MetadataRequest(unknown_tags={100: Others(b"abc")})
    assert kwire.encode(message, 12) == kwire.encode(messages.MetadataRequest(unknown_tags={100: b"xyz"}), 12)


def test_names_of_columns_that_lie() -> None:
    """The column of another name has no buffers: to read it would crash."""
    data = kwire.build_batch([(1, b"k", b"v", [("h", b"x")])])
    columns = kwire.columns(data, [Lying("offset"), "key"])
    assert [*columns] == ["offset", "key"]
    assert columns[Lying("offset")].name == "offset" and columns[Lying("offset")].to_pylist() == [0]
    with pytest.raises(KeyError):
        columns[Lying("value")]
    with pytest.raises(ValueError, match="unknown column 'none'"):
        kwire.columns(data, [Lying("none")])
    read = kwire.columns_of("FindCoordinatorRequest", 0, [b"\0\1g"], [Lying("key")])
    assert [*read] == ["key"] and read[Lying("key")].to_pylist() == ["g"]
    with pytest.raises(KeyError):
        read[Lying("value")]


MADE_AGAIN = """
import gc, kwire
record = kwire.Record(headers=[(f"k{i}", b"a" * 50) for i in range(20000)])
class Finalizer:
    def __del__(self):
        record.__init__(headers=[("z", b"b" * 1000)])
        self.kept = [b"c" * 1000000 for _ in range(3)]
gc.collect()
cycle = Finalizer()
cycle.cycle = cycle
del cycle
assert record.headers == tuple((f"k{i}", b"a" * 50) for i in range(20000))
assert record.headers == (("z", b"b" * 1000),)
"""


def test_a_record_made_again_by_a_finalizer_while_its_headers_are_read() -> None:
    ran = subprocess.run([sys.executable, "-c", MADE_AGAIN], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()


def test_a_buffer_that_is_another_each_time() -> None:
    asked = 0

    def content() -> bytes:
        nonlocal asked
        asked += 1
        return b"\0\0\x13\x88" + bytes([64 + asked % 64]) * 5000

    for _ in range(20):
        message = kwire.decode("SaslAuthenticateRequest", 0, fickle(content), views=True)
        filling = [b"\1\2" * 2502 + bytes(4) for _ in range(10)]
        assert len(set(kwire.encode(message, 0)[4:])) == 1
        del filling
    columns = kwire.columns_of("SaslAuthenticateRequest", 0, [fickle(content)])
    assert len(columns) == 1


def test_batches_in_a_buffer_that_is_another_each_time() -> None:
    sizes = iter(range(1, 1000))

    def content() -> bytes:
        return kwire.build_batch([(0, b"k", b"v" * next(sizes))], codec="gzip")

    for _ in range(10):
        (batch,) = kwire.read_batches(fickle(content))
        ((record,),) = [list(batch)]
        assert set(record.value) == {ord("v")}
        assert len(kwire.columns(fickle(content), views=True)) == 1
        assert kwire.crc32c(fickle(content)) >= 0
        request = kwire.encode_request(messages.MetadataRequest(topics=[]), 12)
        assert kwire.decode_request(fickle(lambda request=request: request)).name == "Metadata"


def test_a_tail_that_looks_at_its_table() -> None:
    columns = kwire.columns(b"")
    seen = []

    class Nosy:
        def __del__(self) -> None:
            seen.append(columns.tail)  # were it still here, it would come back from the dead

    columns.tail = Nosy()
    columns.tail = (1, 2)
    assert seen == [(1, 2)]


COLLECTED = """
import gc, sys, kwire
parts = kwire.messages.ConsumerGroupDescribeResponse
made = lambda: parts.Assignment(topic_partitions=[parts.TopicPartitions()])
tagged = kwire.messages.MetadataRequest(topics=[], unknown_tags={1000 + i: b"x%d" % i for i in range(5000)})
member = parts.Member(assignment=made())
if sys.argv[1] != "represent":
    kwire.encode(tagged, 12)
class Finalizer:
    def __del__(self):
        tagged.unknown_tags, member.assignment = {}, made()
        self.kept = [dict.fromkeys(range(5000)) for _ in range(3)], [made() for _ in range(50)]
gc.collect()
gc.disable()
cycle = Finalizer()
cycle.cycle = cycle
del cycle
gc.set_threshold(int(sys.argv[2]))
gc.enable()
{"encode": lambda: kwire.encode(tagged, 12), "json": lambda: kwire.to_json(tagged, 12),
 "represent": lambda: repr(member)}[sys.argv[1]]()
"""


@pytest.mark.parametrize("threshold", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("call", ["encode", "json", "represent"])
def test_a_finalizer_may_set_the_fields_that_are_read(call: str, threshold: int) -> None:
    ran = subprocess.run([sys.executable, "-c", COLLECTED, call, str(threshold)], capture_output=True, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()


def test_text_that_changes_is_valid_in_columns_of() -> None:
    payload = bytearray(kwire.encode(kwire.messages.MetadataResponse(cluster_id="a" * 20000), 8))
    at, stop = payload.index(b"a"), threading.Event()

    def change() -> None:
        while not stop.is_set():
            payload[at] ^= 0x80

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            with suppress(kwire.DecodeError):
                found = kwire.columns_of("MetadataResponse", 8, [payload], ["cluster_id"])
                pa.array(found["cluster_id"]).validate(full=True)
    finally:
        stop.set()
        thread.join()


def test_garbage_that_is_used_while_it_is_collected() -> None:
    """Python clears one object of a cycle after the other, and code that runs in between finds the others."""
    records = bytes(range(256)) * 40
    data = messages.FetchResponse.PartitionData(records=records)
    topic = messages.FetchResponse.FetchableTopicResponse(partitions=[data])
    frame = kwire.encode(messages.FetchResponse(responses=[topic]), 12)
    batch = kwire.build_batch([(0, None, records)])
    size, seen = len(frame), list[bytes]()

    def between(_reference: object) -> None:
        _others = [bytes(size) for _ in range(20)]  # where what was freed was
        for item in gc.get_objects():
            if type(item) is tuple and item and type(item[0]) is messages.FetchResponse.PartitionData:
                seen.append(bytes(item[0].records))
            elif type(item) is kwire.BatchIterator:
                seen.extend(bytes(record.value) for found in item for record in found)

    code = compile("1", "", "eval")  # not known to the collector: it goes with the list that holds it
    reference = weakref.ref(code, between)
    gc.collect()
    batches = kwire.read_batches(batch)
    holder = (kwire.decode("FetchResponse", 12, frame).responses[0].partitions[0],)
    cycle: list[Any] = [batches, holder]
    cycle += [cycle, code]  # in this order: a list drops its last item first
    assert holder[0].aborted_transactions == []  # from now on the collector knows the message, after all others
    del batches, holder, cycle, code, frame
    gc.collect()
    assert reference() is None
    assert seen and all(value == records for value in seen)


def test_kinds_of_records_by_a_name_that_equals_any() -> None:
    class Group(Lying):
        def __hash__(self) -> int:
            return hash("group")

    for call in (kwire.schema.record_types, lambda kind: kwire.decode_coordinator_record(kind, b"\0\0", None)):
        with pytest.raises(kwire.UnsupportedVersionError):
            call(Group("other"))


def test_an_error_shows_a_value_without_what_a_terminal_obeys() -> None:
    class Loud:
        def __repr__(self) -> str:
            return "\x1b[2J\n"

    calls: list[Callable[[Any], Any]] = [
        lambda value: kwire.encode(value, 0),
        lambda value: kwire.columns(b"", errors=value),
        lambda value: kwire.decode(value, 0, b""),
        lambda value: kwire.build_batch([], codec=value),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError)) as caught:
            call(Loud())
        assert str(caught.value).isprintable()
