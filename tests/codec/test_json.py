"""from_json and to_json where a value does not fit: always an EncodeError that names the field."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from kwire.codec.json import json_text, message_json

pytestmark = pytest.mark.quick
Fetch, Directories, Quota = "FetchRequest", "BrokerHeartbeatRequest", "QuotaRecord"
WHOLE = {
    Fetch: (17, kwire.to_json(messages.FetchRequest(topics=[messages.FetchRequest.FetchTopic(
        partitions=[messages.FetchRequest.FetchPartition()])]), 17)),
    Directories: (1, kwire.to_json(messages.BrokerHeartbeatRequest(offline_log_dirs=[uuid.UUID(int=3)]), 1)),
    Quota: (0, kwire.to_json(messages.QuotaRecord(), 0)),
    "MetadataRequest": (12, kwire.to_json(messages.MetadataRequest(), 12)),
    "SaslAuthenticateRequest": (2, kwire.to_json(messages.SaslAuthenticateRequest(), 2)),
    "ListConfigResourcesRequest": (1, kwire.to_json(messages.ListConfigResourcesRequest(), 1)),
    "DeleteTopicsRequest": (3, kwire.to_json(messages.DeleteTopicsRequest(topic_names=["a"]), 3)),
}


@pytest.mark.parametrize("name,changes,path,reason", [
    (Fetch, {"maxBytes": "5"}, ".max_bytes", "a number, got str"),
    (Fetch, {"maxBytes": True}, ".max_bytes", "a number, got bool"),
    (Fetch, {"maxBytes": 5.5}, ".max_bytes", "a number, got float"),
    (Fetch, {"maxBytes": None}, ".max_bytes", "null"),
    (Fetch, {"isolationLevel": 257}, ".isolation_level", "out of range"),
    (Fetch, {"maxBytes": 1 << 31}, ".max_bytes", "out of range of int32"),
    (Fetch, {"rackId": 5}, ".rack_id", "a string, got int"),
    (Fetch, {"rackId": None}, ".rack_id", "null"),
    (Fetch, {"topics": {}}, ".topics", "a list, got dict"),
    (Fetch, {"topics": [5]}, ".topics[0]", "an object, got int"),
    (Fetch, {"topics": [{}]}, ".topics[0].topic_id", "needs the key 'topicId'"),
    (Fetch, {"topics": [{"topicId": "AAAA", "partitions": []}]}, ".topics[0].topic_id", "uuid"),
    (Fetch, {"topics": [{"topicId": "A" * 22, "partitions": [{"partition": 1 << 31}]}]},
     ".topics[0].partitions[0].partition", "out of range of int32"),
    (Fetch, {"topics": [{"topicId": 5, "partitions": []}]}, ".topics[0].topic_id", "uuid, got int"),
    *((Fetch, {"topics": [{"topicId": text, "partitions": []}]}, ".topics[0].topic_id", "uuid") for text in (
        "AAAA AAAA!AAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAA+Q", "AAAAAAAAAAAAAAAAAAAAAQ==AAAA", "A" * 21 + "Q=",
        "AAAAAAAAAAAAAAAAAAAAAQ\n")),
    (Fetch, {"forgottenTopicsData": [{"topicId": "A" * 22, "partitions": [1, 2, "3"]}]},
     ".forgotten_topics_data[0].partitions[2]", "a number, got str"),
    (Fetch, {"replicaState": []}, ".replica_state", "an object, got list"),
    (Fetch, {"_unknownTags": []}, "._unknownTags", "an object, got list"),
    (Fetch, {"_unknownTags": {"x": ""}}, "._unknownTags", "invalid tag number"),
    (Fetch, {"_unknownTags": {"-1": ""}}, "._unknownTags", "invalid tag number"),
    (Fetch, {"_unknownTags": {"\u0663": ""}}, "._unknownTags", "invalid tag number"),
    (Fetch, {"_unknownTags": {"2147483648": ""}}, "._unknownTags", "invalid tag number"),
    (Fetch, {"_unknownTags": {"9": "", "09": "AA=="}}, "._unknownTags", "invalid tag number '09'"),
    (Fetch, {"_unknownTags": {"9": "?"}}, "._unknownTags.9", "base64"),
    (Fetch, {"_unknownTags": {"9": b""}}, "._unknownTags.9", "base64, got bytes"),
    (Directories, {"offlineLogDirs": ["x"]}, ".offline_log_dirs[0]", "uuid"),
    (Directories, {"offlineLogDirs": [None]}, ".offline_log_dirs[0]", "uuid, got NoneType"),
    (Directories, {"wantFence": 1}, ".want_fence", "expected bool, got int"),
    (Quota, {"value": "much"}, ".value", "number"),
    (Quota, {"value": []}, ".value", "expected float, got list"),
    (Quota, {"value": True}, ".value", "expected a number, got bool"),
    *((Quota, {"value": text}, ".value", "invalid number") for text in ("1_0", " 1", "\u0663", "nan", "1e", ".")),
    ("SaslAuthenticateRequest", {"authBytes": "*"}, ".auth_bytes", "base64"),
    ("SaslAuthenticateRequest", {"authBytes": 5}, ".auth_bytes", "base64, got int"),
    *((Fetch, {"isolationLevel": number}, ".isolation_level", f"{number} is out of range of int8")
      for number in (128, 255, 256, -129)),  # Kafka's converters take 128 to 256 less 128
    ("ListConfigResourcesRequest", {"resourceTypes": [1, "2"]}, ".resource_types[1]", "a number, got str"),
    ("ListConfigResourcesRequest", {"resourceTypes": [128]}, ".resource_types", "out of range of int8"),
    ("DeleteTopicsRequest", {"topicNames": ["a", 5]}, ".topic_names[1]", "a string, got int"),
])
def test_a_value_that_does_not_fit(name: str, changes: dict[str, Any], path: str, reason: str) -> None:
    version, whole = WHOLE[name]
    assert kwire.from_json(name, version, whole) is not None
    with pytest.raises(kwire.EncodeError) as caught:
        kwire.from_json(name, version, {**whole, **changes})
    assert caught.value.path == path and reason in caught.value.reason


@pytest.mark.parametrize("name", WHOLE)
def test_no_key_may_be_missing(name: str) -> None:
    """Every key that to_json writes is needed, but for tagged fields."""
    version, whole = WHOLE[name]
    for key in whole.keys() - {field.json_name for field in schema.message(name).fields if field.tag is not None}:
        with pytest.raises(kwire.EncodeError, match=f"needs the key '{key}'"):
            kwire.from_json(name, version, {other: whole[other] for other in whole if other != key})
    for wrong in (None, [], "x", 5):
        with pytest.raises(kwire.EncodeError, match="expected an object"):
            kwire.from_json(name, version, wrong)


def test_what_kafka_s_converters_take_too() -> None:
    """Numbers in text where they are float64, old names, tags that are null."""
    assert kwire.from_json(Quota, 0, {**WHOLE[Quota][1], "value": "1.5"}).value == 1.5
    assert kwire.from_json(Quota, 0, {**WHOLE[Quota][1], "value": 2}).value == 2.0
    old = kwire.to_json(messages.ListConfigResourcesResponse(), 0)
    old["clientMetricsResources"] = old.pop("configResources", None) or [{"name": "n"}]
    assert kwire.from_json("ListConfigResourcesResponse", 0, old).config_resources[0].resource_name == "n"
    assert kwire.from_json(Fetch, 17, {**WHOLE[Fetch][1], "_unknownTags": None}).unknown_tags == {}
    assert kwire.from_json(Fetch, 17, {**WHOLE[Fetch][1], "_unknownTags": {"9": "eA"}}).unknown_tags == {9: b"x"}
    assert kwire.from_json("MetadataRequest", 12, {**WHOLE["MetadataRequest"][1], "topics": None}).topics is None


def test_messages_that_have_no_json() -> None:
    fetch = messages.FetchRequest(topics=[messages.FetchRequest.FetchTopic()])
    fetch.topics[0].partitions.append(5)
    with pytest.raises(kwire.EncodeError, match=r"expected FetchRequest\.FetchPartition, got int") as caught:
        kwire.to_json(fetch, 12)
    assert caught.value.path == ".topics[0].partitions[0]"
    with pytest.raises(kwire.EncodeError, match="null in a field that is not nullable in this version") as caught:
        kwire.to_json(messages.MetadataRequest(topics=None), 0)
    assert caught.value.path == ".topics"
    with pytest.raises(kwire.EncodeError, match="lacks this field") as caught:
        kwire.to_json(messages.FetchRequest(replica_state=messages.FetchRequest.ReplicaState(replica_id=4)), 12)
    assert caught.value.path == ".replica_state"
    for wrong in ("FetchRequest", messages.FetchRequest, 5):
        with pytest.raises(TypeError):
            kwire.to_json(wrong, 12)


@pytest.mark.parametrize(("value", "text"), [
    (1e7, "1.0E7"), (1.048576e7, "1.048576E7"), (9999999.0, "9999999.0"), (0.001, "0.001"), (1e-4, "1.0E-4"),
    (1.234e-5, "1.234E-5"), (-2e10, "-2.0E10"), (1e300, "1.0E300"), (5e-324, "4.9E-324"), (0.0, "0.0"), (-0.0, "-0.0"),
    (123456789012345680.0, "1.2345678901234568E17"), (float("nan"), '"NaN"'), (float("-inf"), '"-Infinity"'),
    ("\x1b\\u001b\n\"é\x7f", '"\\u001B\\\\u001b\\n\\"é\x7f"'), ({"a": [True, None, 5]}, '{"a":[true,null,5]}'),
    ({"é": 1e7, "b": ["\x01", {"c": 0.5}]}, '{"é":1.0E7,"b":["\\u0001",{"c":0.5}]}'),
])
def test_text_as_kafka_s_tools_print_it(value: Any, text: str) -> None:
    """As Jackson's JsonNode.toString, with doubles as Java's Double.toString."""
    assert json_text(value) == text


def test_a_message_as_json_for_every_reader() -> None:
    for value, text in ((float("nan"), '"NaN"'), (float("inf"), '"Infinity"'), (1.5, "1.5")):
        message = messages.ClientQuotaRecord(entity=[], key="é", value=value)
        assert message_json(message, 0) == f'{{"entity": [], "key": "é", "value": {text}, "remove": false}}'


def test_tagged_fields_are_where_the_schema_has_them() -> None:
    value = messages.TransactionLogValue(producer_id=1, previous_producer_id=2, client_transaction_version=3)
    value.unknown_tags[99] = b"x"
    names = list(kwire.to_json(value, 1))
    assert names[:3] == ["producerId", "previousProducerId", "producerEpoch"]
    assert names[-2:] == ["clientTransactionVersion", "_unknownTags"]
    assert list(kwire.to_json(messages.TransactionLogValue(), 0))[1] == "producerEpoch"


def test_keys_are_in_the_order_of_the_schema() -> None:
    """Tagged fields too, as Kafka's JsonConverter writes them (kafka-dump-log prints it so)."""
    value = messages.TransactionLogValue(previous_producer_id=8, next_producer_id=9, client_transaction_version=2)
    assert list(kwire.to_json(value, 1)) == [
        "producerId", "previousProducerId", "nextProducerId", "producerEpoch", "transactionTimeoutMs",
        "transactionStatus", "transactionPartitions", "transactionLastUpdateTimestampMs", "transactionStartTimestampMs",
        "clientTransactionVersion",
    ]  # fmt: skip
    for name in schema.message_names():
        definition = schema.message(name)
        for version in range(definition.valid_versions.low, definition.valid_versions.high + 1):
            json_names = [field.json_name for field in definition.fields]
            keys = list(kwire.to_json(getattr(messages, name)(), version))
            assert keys == sorted(keys, key=json_names.index), (name, version)
