"""Version negotiation: ApiVersions, assumed releases, the version of each request, and local refusals."""

from __future__ import annotations

import asyncio
import doctest
import uuid
from typing import Any

import pytest

import kwire
from kwire import UnsupportedVersionError, messages, schema
from kwire.net import BrokerConnectionError, connect, required_versions
from kwire.net import api_versions as node_api_versions
from kwire.net.api_versions import NodeApiVersions, assumed_versions
from kwire.net.negotiation import Chooser
from kwire.schema import Versions
from tests.net.fake import Broker, Server, api_versions, of_release, run

pytestmark = pytest.mark.quick


def chooser(ranges: dict[str, tuple[int, int]], **keywords: Any) -> Chooser:
    table = {schema.api(name).key: Versions(*span) for name, span in ranges.items()}
    return Chooser(NodeApiVersions(table), where="b:1", **keywords)


@pytest.mark.parametrize(
    ("release", "old", "asked"),
    [
        ("4.4", False, [5]), ("4.3", False, [5, 4]), ("2.8", False, [5, 3]), ("2.0", True, [5, 0]),
        ("0.10.0", True, [5, 0]),
    ],
)
def test_falls_back_to_what_the_answer_offers_or_to_0(release: str, old: bool, asked: list[int]) -> None:
    async def work() -> None:
        async with Broker(of_release(release), old=old) as broker:
            async with connect(broker.address) as connection:
                assert connection.versions == of_release(release)
            assert [r.version for r in broker.requests] == asked

    run(work())


def test_a_broker_that_contradicts_itself_ends_in_an_error() -> None:
    async def work() -> None:
        for error in (35, 42):
            async with Broker({"ApiVersions": (9, 9)}) as broker:
                broker.negotiate = lambda _, error=error: api_versions({"ApiVersions": (9, 9)}, error_code=error)
                with pytest.raises(BrokerConnectionError, match=r"refuses ApiVersions v[05]: (UNSUPPORTED|INVALID)"):
                    async with connect(broker.address):
                        pass
                assert len(broker.requests) <= 2

    run(work())


@pytest.mark.parametrize("closes", [False, True])
def test_a_release_is_assumed_where_nothing_answers(closes: bool) -> None:
    """0.9.0.1 stays silent; KIP-35 speaks of a closed connection."""

    async def work() -> None:
        def answer(request: Any) -> Any:
            tells = messages.MetadataResponse.MetadataResponseBroker(node_id=request.version)
            return messages.MetadataResponse(brokers=[tells])

        async with Broker(of_release("0.9.0"), answer) as broker:
            async def ignores(request: Any) -> None:
                if closes:
                    broker.drop()

            broker.negotiate = ignores
            keywords = {"probe_timeout": 0.2, "assume_release": "0.9.0.1"}
            async with connect(broker.address, **keywords) as connection:
                assert connection.assumed == "0.9.0"
                await asyncio.sleep(0.05)
                assert len(broker._writers) == 1  # the silent one is closed
                assert connection.versions["Fetch"] == (0, 1)
                reply = await connection.send(messages.MetadataRequest(topics=[]))
                assert reply.brokers[0].node_id == 0
                with pytest.raises(UnsupportedVersionError, match=r"CreateTopics \(assumed: Kafka 0\.9\.0\)"):
                    await connection.send(messages.CreateTopicsRequest())
                # each connection is asked again: the broker may have been upgraded
                broker.drop()
                while connection.is_open:
                    await asyncio.sleep(0.01)
                broker.ranges = of_release("3.9")
                del broker.negotiate
                await connection.send(messages.MetadataRequest(topics=[]))
                assert connection.assumed is None and connection.versions["Metadata"] == (0, 12)

    run(work())


def test_tables_of_old_releases() -> None:
    versions = assumed_versions("0.10.1.1").versions()
    assert versions["ListOffsets"] == (0, 1) and versions["ControlledShutdown"] == (1, 1)
    with pytest.raises(UnsupportedVersionError, match=r"9\.9"):
        connect("host:1", assume_release="9.9")
    assert "Vote" not in assumed_versions("3.9").versions()  # of controllers only


def test_ranges_are_inclusive_and_common_versions_only_are_used() -> None:
    newest = schema.api("Fetch").max_version
    choose = chooser({"Fetch": (18, newest + 12), "Metadata": (13, 13), "Produce": (2, 5)})
    assert (choose.newest("Fetch"), choose.newest("Metadata"), choose.newest(0)) == (newest, 13, 5)
    with pytest.raises(UnsupportedVersionError) as caught:
        choose.newest("ListOffsets")
    assert (caught.value.api, caught.value.offered) == ("ListOffsets", None)
    with pytest.raises(kwire.ObsoleteBrokerVersion) as caught:
        chooser({"Fetch": (99, 100)}).newest("Fetch")
    assert (caught.value.api, caught.value.needed, caught.value.offered) == ("Fetch", (0, newest), (99, 100))
    assert str(caught.value) == (
        f"b:1: cannot send Fetch: needs versions 0 to {newest}, the broker supports versions 99 to 100")


def test_a_version_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="version must be an int, not str"):
        chooser({"Metadata": (0, 12)}).version_for(messages.MetadataRequest(), "12")  # type: ignore[arg-type]


def test_denied_and_unstable_versions() -> None:
    ranges = {"Fetch": (0, 12), "InitProducerId": (0, 6)}
    choose = chooser(ranges, deny={"Fetch": {12, 11}, 22: Versions(5, 5)})
    assert (choose.newest("Fetch"), choose.newest("InitProducerId")) == (10, 4)
    assert chooser(ranges).newest("InitProducerId") == 5
    assert chooser(ranges, unstable=True).newest("InitProducerId") == 6
    with pytest.raises(UnsupportedVersionError, match="denied"):
        chooser({"Fetch": (0, 1)}, deny={"Fetch": {0, 1}}).newest("Fetch")


def list_offsets(timestamp: int, **more: Any) -> Any:
    request = messages.ListOffsetsRequest
    partition = request.ListOffsetsPartition(timestamp=timestamp)
    return request(topics=[request.ListOffsetsTopic(name="t", partitions=[partition])], **more)


def test_a_use_whose_meaning_came_later_than_its_layout() -> None:
    """KIP-97's own case: an offset lookup by timestamp."""
    old = chooser({"ListOffsets": (0, 0)})
    assert old.version_for(list_offsets(-1)) == 0
    with pytest.raises(UnsupportedVersionError) as caught:
        old.version_for(list_offsets(0))
    assert (caught.value.api, caught.value.needed, caught.value.offered) == ("ListOffsets", (1, 11), (0, 0))
    assert "KIP-79" in str(caught.value)
    with pytest.raises(UnsupportedVersionError):
        chooser({"ListOffsets": (0, 9)}).version_for(list_offsets(1700000000000), 0)
    for timestamp, first in ((-3, 7), (-4, 8), (-5, 9), (-6, 11)):
        assert chooser({"ListOffsets": (0, first)}).version_for(list_offsets(timestamp)) == first
        with pytest.raises(UnsupportedVersionError):
            chooser({"ListOffsets": (0, first - 1)}).version_for(list_offsets(timestamp))


def test_fields_that_the_broker_lacks() -> None:
    with pytest.raises(UnsupportedVersionError, match="isolation_level needs versions 2 to 11") as caught:
        chooser({"ListOffsets": (0, 1)}).version_for(list_offsets(-1, isolation_level=1))
    assert caught.value.offered == (0, 1)
    topics = [messages.MetadataRequest.MetadataRequestTopic(name="t")]
    request = messages.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    assert chooser({"Metadata": (0, 4)}).version_for(request) == 4
    with pytest.raises(UnsupportedVersionError, match="allow_auto_topic_creation"):
        chooser({"Metadata": (0, 3)}).version_for(request)
    with pytest.raises(UnsupportedVersionError, match="topics=None needs versions 1 to 13"):
        chooser({"Metadata": (0, 0)}).version_for(messages.MetadataRequest(topics=None))
    # ignorable: dropped where the broker has no version with it, as Kafka's own clients do
    fetch = messages.FetchRequest(rack_id="a")
    assert chooser({"Fetch": (0, 3)}).version_for(fetch) == 3


def test_fields_that_newer_versions_lack_choose_an_older_one() -> None:
    request = messages.FetchRequest
    by_name = request(topics=[request.FetchTopic(topic="t", partitions=[request.FetchPartition()])])
    by_id = request(topics=[request.FetchTopic(topic_id=uuid.uuid4(), partitions=[request.FetchPartition()])])
    assert chooser({"Fetch": (4, 18)}).version_for(by_name) == 12
    assert chooser({"Fetch": (4, 18)}).version_for(by_id) == 18
    assert chooser({"DeleteTopics": (1, 6)}).version_for(messages.DeleteTopicsRequest(topic_names=["t"])) == 5
    assert chooser({"DeleteTopics": (1, 6)}).version_for(messages.DeleteTopicsRequest()) == 6


def test_a_topic_by_id_alone_is_never_sent_without_it() -> None:
    """Both fields are ignorable: without either the broker would get a topic without name and id."""
    topic, offset = messages.FetchRequest.FetchTopic, messages.OffsetCommitRequest.OffsetCommitRequestTopic
    number = uuid.uuid4()
    old = chooser({"Fetch": (4, 12), "OffsetCommit": (2, 9)})
    new = chooser({"Fetch": (13, 18), "OffsetCommit": (10, 10)})
    by_name, by_id = {"topic": "t"}, {"topic_id": number}
    for choose, wrong, right in ((old, by_id, by_name), (new, by_name, by_id)):
        with pytest.raises(UnsupportedVersionError, match=r"a topic by its (id|name) alone") as caught:
            choose.version_for(messages.FetchRequest(topics=[topic(**wrong)]))
        assert caught.value.needed == ((13, 18) if choose is old else (0, 12))
        choose.version_for(messages.FetchRequest(topics=[topic(**right)]))
        choose.version_for(messages.FetchRequest(topics=[topic(topic="t", topic_id=number)]))
        with pytest.raises(UnsupportedVersionError):
            commit = {"name" if name == "topic" else name: value for name, value in wrong.items()}
            choose.version_for(messages.OffsetCommitRequest(topics=[offset(**commit)]))


def produce(magic: int, codec: str = "none") -> Any:
    request = messages.ProduceRequest
    batch = kwire.build_batch([(0, None, b"v")], magic=magic, codec=codec)
    partition = request.PartitionProduceData(records=batch)
    return request(acks=1, topic_data=[request.TopicProduceData(name="t", partition_data=[partition])])


def test_produce_goes_by_the_format_of_its_records() -> None:
    old, new = chooser({"Produce": (0, 2), "Fetch": (0, 3)}), chooser({"Produce": (0, 13), "Fetch": (4, 18)})
    assert (old.version_for(produce(0)), old.version_for(produce(1)), new.version_for(produce(2))) == (1, 2, 12)
    with pytest.raises(UnsupportedVersionError, match="magic 2"):
        old.version_for(produce(2))
    with pytest.raises(UnsupportedVersionError, match="magic 1"):  # 4.x offers 0 and has none below 3
        new.version_for(produce(1))
    with pytest.raises(UnsupportedVersionError, match="zstd"):
        chooser({"Produce": (0, 6)}).version_for(produce(2, "zstd"))
    assert chooser({"Produce": (0, 7)}).version_for(produce(2, "zstd")) == 7


def test_what_only_4_deprecates_is_used_with_old_brokers() -> None:
    choose = Chooser(assumed_versions("0.10.2"))
    for row in schema.apis("0.10.2"):
        assert choose.newest(row.key) == row.max_version


def test_an_asked_version_is_checked() -> None:
    choose = chooser({"Metadata": (1, 9)})
    assert choose.version_for(messages.MetadataRequest(topics=[]), 3) == 3
    for version in (0, 10, 99, -1):
        with pytest.raises(UnsupportedVersionError, match=f"version {version} needs"):
            choose.version_for(messages.MetadataRequest(topics=[]), version)
    for wrong in ("MetadataRequest", messages.MetadataRequest, messages.MetadataResponse(), 5):
        with pytest.raises(TypeError, match="message must be a request"):
            choose.version_for(wrong)  # type: ignore[arg-type]


def filled(struct: Any, fields: tuple[schema.Field, ...], only: schema.Field | None) -> Any:
    """A struct with one field set to a value that is not the default, or with each array on the way to it filled."""
    for field in fields:
        if field is only or (only is not None and any(only is below for below in all_of(field))):
            if field.struct:
                item = filled(getattr(type_of(struct), field.struct)(), field.fields, None if field is only else only)
                setattr(struct, field.snake_name, [item] if field.is_array else item)
            else:
                value: Any = {
                    "string": "x", "bytes": b"x", "records": b"x", "float64": 1.5, "uuid": uuid.UUID(int=5),
                    "bool": field.default != "true",
                }.get(field.element, 7)  # fmt: skip
                setattr(struct, field.snake_name, [value] if field.is_array else value)
    return struct


def type_of(struct: Any) -> Any:
    return getattr(messages, type(struct).__qualname__.split(".")[0])


def all_of(field: schema.Field) -> list[schema.Field]:
    return [found for child in field.fields for found in (child, *all_of(child))]


def test_agrees_with_the_encoder_on_every_field_of_every_request() -> None:
    """A field alone, at each version: refused here exactly where the encoder refuses it (uses aside)."""
    seen = refused = 0
    for row in schema.apis():
        definition = schema.message(row.request)
        for _, field in definition.walk():
            message = filled(getattr(messages, row.request)(), definition.fields, field)
            for version in definition.valid_versions.all():
                try:
                    kwire.encode(message, version)
                    fits = True
                except kwire.EncodeError:
                    fits = False
                needs = [need for need in required_versions.needs(message, row.request) if need.what.startswith(".")]
                mine = all(version in need.versions for need in needs if not need.droppable)
                assert mine == fits, (row.name, version, field.name, needs)
                seen += 1
                refused += not fits
    assert seen > 3000 and refused > 300


def test_doctests() -> None:
    done = doctest.testmod(node_api_versions)
    assert done.attempted >= 2 and not done.failed


def test_answers_that_are_not_kafkas() -> None:
    async def talk(reader: Any, writer: Any) -> None:
        data = await reader.read(100)
        writer.write(b"\0\0\0\x08" + data[8:12] + b"\0\0\x7f\xff")
        await reader.read()

    async def work() -> None:
        async with Server(talk) as server:
            with pytest.raises(BrokerConnectionError, match="invalid ApiVersions response"):
                async with connect(server.address):
                    pass

    run(work())
