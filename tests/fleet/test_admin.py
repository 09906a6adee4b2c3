"""Topics and configs: what drawn requests to brokers of 4.4.0, 3.9.1 and 2.8.2 were answered."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import build_batch
from kwire import messages as M
from kwire.fleet import Fleet
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode as E
from tests.fleet.dialogue import Client

pytestmark = pytest.mark.quick
NEW, OLD = "4.4", "2.8"
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, APPEND, SUBTRACT = 0, 2, 3
NO_ID = uuid.UUID(int=0)


class Admin:
    """A client of a fleet of one node."""

    def __init__(self, fleet: Fleet, send: Any) -> None:
        self.fleet, self.send = fleet, send

    def create(self, name: str, partitions: int = 1, replicas: int = 1, version: int = 5, **more: Any) -> Any:
        kind = M.CreateTopicsRequest
        configs = [kind.CreatableTopicConfig(name=key, value=value) for key, value in more.get("configs", {}).items()]
        assignments = [
            kind.CreatableReplicaAssignment(partition_index=at, broker_ids=ids)
            for at, ids in more.get("assignments", ())]
        topic = kind.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, configs=configs, assignments=assignments)
        return self.send(kind(timeout_ms=1000, topics=[topic] * more.get("times", 1)), version).topics

    def metadata(self, version: int, *topics: tuple[str | None, uuid.UUID], **more: Any) -> Any:
        row = M.MetadataRequest.MetadataRequestTopic
        rows = [row(name=name, **({"topic_id": topic_id} if version >= 10 else {})) for name, topic_id in topics]
        return self.send(M.MetadataRequest(topics=rows, **more), version)

    def alter(self, kind: int, name: str, *configs: tuple[str, str | None, int]) -> Any:
        request = M.IncrementalAlterConfigsRequest
        rows = [request.AlterableConfig(name=key, value=value, config_operation=op) for key, value, op in configs]
        [row] = self.send(request(resources=[request.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=rows)]), 1).responses
        return row.error_code, row.error_message

    def described(self, kind: int, name: str, *keys: str, version: int = 4) -> Any:
        request = M.DescribeConfigsRequest
        [row] = self.send(request(include_synonyms=True, resources=[request.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)]), version).results
        return row

    def add(self, count: int, *assignments: list[int]) -> Any:
        request = M.CreatePartitionsRequest
        rows = [request.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
        [row] = self.send(request(timeout_ms=1000, topics=[request.CreatePartitionsTopic(
            name="t", count=count, assignments=rows or None)]), 2).results
        return row.error_code, row.error_message

    def delete(self, *rows: tuple[str | None, uuid.UUID]) -> Any:
        request = M.DeleteTopicsRequest
        return [(row.name, row.error_code, row.error_message) for row in self.send(request(timeout_ms=1000, topics=[
            request.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in rows]), 6).responses]


@pytest.fixture
def admin(request: pytest.FixtureRequest) -> Iterator[Admin]:
    with Fleet(request.param, topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        yield Admin(fleet, connection.send)


new = pytest.mark.parametrize("admin", [NEW], indirect=True)
old = pytest.mark.parametrize("admin", [OLD], indirect=True)
both = pytest.mark.parametrize("admin", [NEW, "3.9", OLD], indirect=True)


@new
def test_metadata_by_an_id_leaves_names_out(admin: Admin) -> None:
    known, unknown = admin.fleet.cluster.topics["t"].id, uuid.UUID(int=7)
    answer = admin.metadata(13, ("t", NO_ID), ("nobody", unknown), (None, unknown), ("new", NO_ID), (None, known))
    assert [(row.name, row.topic_id, row.error_code) for row in answer.topics] == [
        (None, unknown, E.UNKNOWN_TOPIC_ID), ("t", known, 0)]
    assert list(admin.fleet.cluster.topics) == ["t"]


@new
def test_metadata_of_neither_a_name_nor_an_id(admin: Admin) -> None:
    answer = admin.metadata(13, (None, NO_ID), ("t", NO_ID))
    assert answer.error_code == E.UNKNOWN_SERVER_ERROR
    assert (answer.brokers, [(row.name, row.error_code) for row in answer.topics]) == ([], [("", -1), ("t", -1)])


@both
def test_operations_are_said_of_topics_that_are_not_there(admin: Admin) -> None:
    asked = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": True}
    [row] = admin.metadata(9, ("nobody", NO_ID), **asked).topics
    assert (row.error_code, row.topic_authorized_operations) == (E.UNKNOWN_TOPIC_OR_PARTITION, 3576)


@pytest.mark.parametrize(("admin", "code"), [
    (NEW, E.UNKNOWN_TOPIC_OR_PARTITION), (OLD, E.INVALID_TOPIC_EXCEPTION)], indirect=["admin"])
def test_a_topic_that_collides_is_not_created_by_itself(admin: Admin, code: int) -> None:
    admin.create("a.b")
    assert [row.error_code for row in admin.metadata(1, ("a_b", NO_ID)).topics] == [code]


@pytest.mark.parametrize(("release", "internal"), [("4.4", True), ("3.9", True), ("3.7", False)])
def test_the_topic_of_share_groups_is_internal(release: str, internal: bool) -> None:
    with Fleet(release) as fleet, connect_sync(fleet.bootstrap) as connection:
        admin = Admin(fleet, connection.send)
        [row] = admin.metadata(9, ("__share_group_state", NO_ID), allow_auto_topic_creation=False).topics
        assert row.is_internal is internal


@pytest.mark.parametrize(("release", "code", "text"), [
    ("4.4", E.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."),
    ("3.9", E.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."),
    ("3.8", E.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."), (OLD, 0, None)])
def test_the_topic_of_the_controllers_is_not_created(release: str, code: int, text: str | None) -> None:
    with Fleet(release) as fleet, connect_sync(fleet.bootstrap) as connection:
        [row] = Admin(fleet, connection.send).create("__cluster_metadata")
        assert (row.error_code, row.error_message) == (code, text)


@both
def test_an_internal_topic_that_a_client_creates_has_no_configs_of_its_own(admin: Admin) -> None:
    [row] = admin.create("__consumer_offsets", 3, replicas=-1)
    assert (row.num_partitions, row.replication_factor) == (3, 1)
    assert {config.name: config.value for config in row.configs}["cleanup.policy"] == "delete"
    admin.send(M.FindCoordinatorRequest(key="x", key_type=1), 1)
    assert admin.fleet.cluster.topics["__transaction_state"].configs["cleanup.policy"] == "compact"


@old
@pytest.mark.parametrize(("asked", "code", "text"), [
    ({"partitions": 0}, E.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
    ({"replicas": -2}, E.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
    ({"replicas": 4}, E.INVALID_REPLICATION_FACTOR, "Replication factor: 4 larger than available brokers: 1."),
    ({"partitions": -1, "replicas": -1, "assignments": [(0, [1]), (1, [])]}, E.INVALID_REPLICA_ASSIGNMENT,
     "All partitions should have the same number of replicas"),
    ({"partitions": -1, "replicas": -1, "assignments": [(1, [1])]}, E.INVALID_REPLICA_ASSIGNMENT,
     "partitions should be a consecutive 0-based integer sequence"),
])
def test_with_zookeeper_numbers_are_looked_at_before_configs(admin: Admin, asked: Any, code: int, text: str) -> None:
    [row] = admin.create("new", **asked, configs={"no.such": "1"})
    assert (row.error_code, row.error_message) == (code, text)


@pytest.mark.parametrize(("admin", "rows"), [
    (NEW, [(E.INVALID_REQUEST, "Duplicate topic name.")]),
    (OLD, [(E.INVALID_REQUEST, "Found multiple entries for this topic.")] * 2)], indirect=["admin"])
def test_topics_named_twice_are_refused_before_they_are_counted(admin: Admin, rows: Any) -> None:
    answer = admin.create("new", 9_000, times=2)
    assert [(row.error_code, row.error_message) for row in answer] == rows


@pytest.mark.parametrize("admin", ["3.9", OLD], indirect=True)
def test_message_format_versions(admin: Admin) -> None:
    name = "message.format.version"
    tick = "`" if admin.fleet.nodes[0].release == OLD else ""
    for value in ("x", "5.0", ""):
        [row] = admin.create("new", configs={name: value})
        assert (row.error_code, row.error_message) == (
            E.INVALID_CONFIG,
            f"Invalid value {value} for configuration {name}: Version {tick}{value}{tick} is not a valid version")
    for at, value in enumerate(("0.8.2", "2.8", "2.8-IV1", "0.10.0-IV0")):
        assert admin.create(f"new{at}", configs={name: value})[0].error_code == 0


@both
def test_values_are_described_as_a_broker_reads_them(admin: Admin) -> None:
    given = {"cleanup.policy": " compact , delete ", "retention.ms": " +5", "preallocate": " TRUE ",
             "min.cleanable.dirty.ratio": ".25"}
    created = {row.name: row.value for row in admin.create("new", configs=given)[0].configs}
    shown = {"cleanup.policy": "compact,delete", "retention.ms": "5", "preallocate": "true",
             "min.cleanable.dirty.ratio": "0.25"}
    assert {name: created[name] for name in given} == (shown if admin.fleet.nodes[0].release == OLD else given)
    row = admin.described(TOPIC, "new", *given)
    assert {one.name: one.value for one in row.configs} == shown
    assert {one.name: one.synonyms[0].value for one in row.configs} == shown


@new
def test_the_cluster_is_a_synonym_of_min_insync_replicas(admin: Admin) -> None:
    admin.create("new", configs={"min.insync.replicas": "2"})
    [row] = admin.described(TOPIC, "new", "min.insync.replicas").configs
    assert [(one.value, one.source) for one in row.synonyms] == [("2", 1), ("1", 3), ("1", 5)]


@new
@pytest.mark.parametrize(("kind", "name"), [(METRICS, "m"), (METRICS, ""), (GROUP, "g")])
def test_configs_of_groups_and_metrics_are_no_lists(admin: Admin, kind: int, name: str) -> None:
    for operation, word in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
        assert admin.alter(kind, name, ("match", "client_id=a", operation)) == (
            E.INVALID_CONFIG, f"Can't {word} to key match because its type is not LIST.")


@new
def test_operations_are_looked_at_before_names(admin: Admin) -> None:
    assert admin.alter(TOPIC, "..", ("no.such", "1", APPEND))[0] == E.INVALID_CONFIG
    assert admin.alter(TOPIC, "..", ("retention.ms", "1", SET))[0] == E.INVALID_TOPIC_EXCEPTION
    assert admin.alter(TOPIC, "", ("retention.ms", "1", SET)) == (
        E.INVALID_REQUEST, "Default topic resources are not allowed.")
    assert admin.alter(METRICS, "") == (E.INVALID_REQUEST, "Subscription name can't be empty")


@new
@pytest.mark.parametrize(("pattern", "valid"), [
    ("client_id=a", True), (" client_id = a ", True), ("client_id=a,client_source_port=1", True), ("foo=x", False),
    ("client_id", False), ("client_id=", False), ("=x", False), ("client_id=a=b", False), ("CLIENT_ID=x", False)])
def test_patterns_of_client_metrics(admin: Admin, pattern: str, valid: bool) -> None:
    assert admin.alter(METRICS, "m", ("match", pattern, SET)) == (
        (0, None) if valid else (E.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"))


@both
def test_ids_of_brokers_are_numbers(admin: Admin) -> None:
    assert admin.alter(BROKER, "01", ("log.retention.ms", "5000", SET)) == (0, None)
    for name in ("1", "01", "+1"):
        assert [(one.name, one.value) for one in admin.described(BROKER, name).configs] == [
            ("log.retention.ms", "5000")]
    assert admin.described(BROKER, "9").error_message == (
        "Unexpected broker id, expected 1 or empty string, but received 9")
    assert admin.described(LOGGER, "9").error_message == "Unexpected broker id, expected 1 but received 9"
    assert admin.described(LOGGER, "").error_message == "Broker id must not be empty"
    assert admin.described(LOGGER, "1").error_code == 0


@old
def test_with_zookeeper_one_unknown_kind_refuses_all(admin: Admin) -> None:
    request = M.AlterConfigsRequest
    good = request.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[
        request.AlterableConfig(name="retention.ms", value="5")])
    unknown = request.AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=[])
    text = "Unexpected resource type UNKNOWN"
    rows = admin.send(request(resources=[good, unknown]), 2).responses
    assert [(row.error_code, row.error_message) for row in rows] == [(E.INVALID_REQUEST, text)] * 2
    null = request.AlterConfigsResource(resource_type=TOPIC, resource_name="u", configs=[
        request.AlterableConfig(name="retention.ms", value=None)])
    rows = admin.send(request(resources=[good, null]), 2).responses
    assert [row.error_code for row in rows] == [E.UNKNOWN_SERVER_ERROR] * 2
    assert admin.fleet.cluster.topics["t"].configs == {}
    asked = M.DescribeConfigsRequest
    rows = admin.send(asked(resources=[asked.DescribeConfigsResource(
        resource_type=kind, resource_name="t", configuration_keys=None) for kind in (TOPIC, GROUP)]), 4).results
    assert [(row.error_code, row.configs) for row in rows] == [(E.INVALID_REQUEST, [])] * 2


@old
def test_with_zookeeper_config_keys_are_named_once(admin: Admin) -> None:
    assert admin.alter(TOPIC, "t", ("no.such", "1", SET), ("no.such", "1", APPEND)) == (
        E.INVALID_REQUEST, "Error due to duplicate config keys")


@pytest.mark.parametrize(("admin", "texts"), [
    (NEW, ("The manual partition assignment includes an empty replica list.",
           "The manual partition assignment includes broker 9, but no such broker is registered.",
           "The manual partition assignment includes the broker 1 more than once.",
           "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.")),
    (OLD, ("Cannot have replication factor of 0 for partition id 1.",
           "Some brokers specified for partition id 1 are not available. Specified brokers: 9, available brokers: 1.",
           "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 1.",
           "Increasing the number of partitions by 2 but 1 assignments provided."))], indirect=["admin"])
def test_where_new_partitions_may_not_be(admin: Admin, texts: Any) -> None:
    for ids, text in zip(([], [9], [1, 1]), texts, strict=False):
        assert admin.add(2, ids) == (E.INVALID_REPLICA_ASSIGNMENT, text)
    assert admin.add(3, [1]) == (E.INVALID_REPLICA_ASSIGNMENT, texts[-1])


def test_new_partitions_have_as_many_replicas_as_the_others() -> None:
    for release, text in ((NEW, (
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with "
            "previous partitions, which have 1 replica(s).")), (OLD, (
            "Inconsistent replication factor between partitions, partition 0 has 1 while partitions [1] have "
            "replication factors [2], respectively."))):
        with Fleet(release, nodes=2, topics={"t": 1}) as fleet, connect_sync(fleet.nodes[0].address) as connection:
            assert Admin(fleet, connection.send).add(2, [1, 2]) == (E.INVALID_REPLICA_ASSIGNMENT, text)


@new
def test_too_many_new_partitions_refuse_all(admin: Admin) -> None:
    admin.create("u")
    request = M.CreatePartitionsRequest
    rows = admin.send(request(timeout_ms=1000, topics=[
        request.CreatePartitionsTopic(name="t", count=20_000, assignments=None),
        request.CreatePartitionsTopic(name="u", count=2, assignments=None)]), 2).results
    assert [(row.error_code, row.error_message) for row in rows] == [
        (E.POLICY_VIOLATION, "Excessively large number of additional partitions per request.")] * 2


@new
def test_deletion_of_what_is_named_by_both_and_by_neither(admin: Admin) -> None:
    of_both = "You may not specify both topic name and topic id."
    neither = "Neither topic name nor id were specified."
    assert admin.delete(("t", uuid.UUID(int=7)), (None, NO_ID), (None, NO_ID), ("t", NO_ID)) == [
        ("t", E.INVALID_REQUEST, of_both), (None, E.INVALID_REQUEST, neither), (None, E.INVALID_REQUEST, neither),
        ("t", 0, None)]


@old
def test_with_zookeeper_a_name_with_an_id_deletes_nothing(admin: Admin) -> None:
    assert admin.delete(("u", uuid.UUID(int=7)), ("t", NO_ID)) == [
        ("u", E.INVALID_REQUEST, None), ("t", E.INVALID_REQUEST, None)]
    assert "t" in admin.fleet.cluster.topics


@new
def test_descriptions_of_a_topic_without_a_name(admin: Admin) -> None:
    request = M.DescribeTopicPartitionsRequest
    answer = admin.send(request(topics=[request.TopicRequest(name=name) for name in ("t", "")]), 0)
    assert [(row.name, row.error_code) for row in answer.topics] == [("t", -1), ("", -1)]


@both
def test_replicas_stay_in_the_one_log_directory(admin: Admin) -> None:
    path = admin.send(M.DescribeLogDirsRequest(topics=[]), 1).results[0].log_dir
    request = M.AlterReplicaLogDirsRequest

    def move(*places: tuple[str, str, list[int]]) -> Any:
        rows = admin.send(request(dirs=[request.AlterReplicaLogDir(path=where, topics=[
            request.AlterReplicaLogDirTopic(name=name, partitions=indexes)]) for where, name, indexes in places]), 1)
        return [(row.topic_name, [(one.partition_index, one.error_code) for one in row.partitions])
                for row in rows.results]

    long = "x" * 230
    assert move((path, "t", [0, 1]), (path, long, [0]), ("/none", "u", [0])) == [
        ("t", [(0, 0), (1, E.UNKNOWN_TOPIC_OR_PARTITION)]), (long, [(0, E.INVALID_TOPIC_EXCEPTION)]),
        ("u", [(0, E.LOG_DIR_NOT_FOUND)])]
    assert move((path, "t", [0]), ("/none", "t", [0])) == [("t", [(0, E.LOG_DIR_NOT_FOUND)])]
    assert move(("/none", "t", [])) == []


@old
def test_with_zookeeper_each_reassignment_begins_an_epoch(admin: Admin) -> None:
    request = M.AlterPartitionReassignmentsRequest
    admin.send(request(timeout_ms=1000, topics=[request.ReassignableTopic(name="t", partitions=[
        request.ReassignablePartition(partition_index=0, replicas=[1])])]), 0)
    assert admin.fleet.cluster.topics["t"].partitions[0].leader_epoch == 1
    election = M.ElectLeadersRequest
    rows = admin.send(election(election_type=0, timeout_ms=1000, topic_partitions=[
        election.TopicPartitions(topic="t", partitions=[9, 9])]), 2).replica_election_results
    assert [[one.partition_id for one in row.partition_result] for row in rows] == [[9]]


@pytest.mark.parametrize(("admin", "found"), [(NEW, True), ("3.7", False), (OLD, False)], indirect=["admin"])
def test_states_of_groups_in_another_case(admin: Admin, found: bool) -> None:
    request = M.OffsetCommitRequest
    admin.send(request(group_id="g", topics=[request.OffsetCommitRequestTopic(name="t", partitions=[
        request.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)])]), 7)
    for state, there in (("Empty", True), ("empty", found), ("EMPTY", found), ("Stable", False)):
        groups = admin.send(M.ListGroupsRequest(states_filter=[state]), 4).groups
        assert [group.group_id for group in groups] == ["g"] * there


@both
def test_groups_named_twice_are_deleted_once(admin: Admin) -> None:
    rows = admin.send(M.DeleteGroupsRequest(groups_names=["g", "h", "g"]), 1).results
    assert [(row.group_id, row.error_code) for row in rows] == [
        ("g", E.GROUP_ID_NOT_FOUND), ("h", E.GROUP_ID_NOT_FOUND)]


@new
def test_texts_of_quorums_and_features(admin: Admin) -> None:
    request = M.DescribeQuorumRequest
    [topic] = admin.send(request(topics=[request.TopicData(topic_name="t", partitions=[
        request.PartitionData(partition_index=0)])]), 2).topics
    assert topic.partitions[0].error_message == "This server does not host this topic-partition."
    for version in (1, 2):
        assert admin.send(M.UpdateFeaturesRequest(validate_only=True), version).error_message is None


@pytest.mark.parametrize(("release", "answers"), [  # by (version, timestamp): code, offset, timestamp
    ("3.9", {(6, -3): (35, -1, -1), (7, -3): (0, 1, 9), (7, -4): (35, -1, -1), (8, -9): (35, -1, -1)}),
    ("3.8", {(6, -3): (0, 1, 9), (7, -4): (0, 0, -1), (8, -5): (0, 0, 5), (8, -9): (0, 0, 5)}),
    ("3.0", {(1, -3): (0, 1, 9), (7, -4): (0, 0, 5)}), (OLD, {(6, -3): (0, 0, 5)})])
def test_timestamps_that_are_special_in_a_later_version(release: str, answers: Any) -> None:
    with Fleet(release, topics={"t": 1}) as fleet:
        client, produce = Client(fleet.bootstrap), M.ProduceRequest  # no client of kwire.net would ask so
        client.ask(produce(acks=-1, timeout_ms=1000, topic_data=[produce.TopicProduceData(
            name="t", partition_data=[produce.PartitionProduceData(
                index=0, records=build_batch([(5, b"k", b"a"), (9, b"k", b"b"), (7, b"k", b"c")]))])]), 7)
        request = M.ListOffsetsRequest
        for (version, timestamp), expected in answers.items():
            [topic] = client.ask(request(replica_id=-1, topics=[request.ListOffsetsTopic(
                name="t", partitions=[request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)])]),
                version).message.topics
            [row] = topic.partitions
            assert (row.error_code, row.offset, row.timestamp) == expected, (version, timestamp)
        client.socket.close()


def acl(principal: str = "User:a", host: str = "*", operation: int = 3, pattern: int = 3) -> Any:
    return M.CreateAclsRequest.AclCreation(
        resource_type=TOPIC, resource_name="t", resource_pattern_type=pattern, principal=principal, host=host,
        operation=operation, permission_type=3)


@pytest.mark.parametrize(("admin", "wrong"), [
    (release, wrong) for release, kinds in (
        (NEW, [acl(operation=1), acl(pattern=1), acl(pattern=2)]), (OLD, [acl(operation=1), acl("")]))
    for wrong in kinds], indirect=["admin"])
def test_acls_beside_one_that_kafka_fails_by_are_not_kept(admin: Admin, wrong: Any) -> None:
    rows = admin.send(M.CreateAclsRequest(creations=[acl(), wrong]), 2).results
    assert [(row.error_code, row.error_message) for row in rows] == [(E.UNKNOWN_SERVER_ERROR, None)] * 2
    assert admin.fleet.cluster.controller.log.acls == {}


@both
def test_acls_beside_one_without_a_type_of_principal_are_kept(admin: Admin) -> None:
    rows = admin.send(M.CreateAclsRequest(creations=[acl(), acl("nobody")]), 2).results
    assert (rows[0].error_code, bool(rows[1].error_code)) == (0, True)
    assert len(admin.fleet.cluster.controller.log.acls) == 1


@pytest.mark.parametrize(("host", "reason"), [
    ("", "Host pattern cannot be null or empty"), ("host", None), ("1.2.3.4/24", None), ("1.2.3.4/0", None),
    ("::1/64", None), ("1.2.3", None),
    ("1.2.3.4/33", "Invalid CIDR notation '1.2.3.4/33': Value [33] not in range [0,32]"),
    ("::1/129", "Invalid CIDR notation '::1/129': Could not parse [::1/129] - prefix length must be between 0 and 128"),
    *((host, f"Invalid CIDR notation '{host}': Could not parse [{host}]") for host in (
        "1.2.3.4/", "/24", "a/b", "*/8", "1.2.3.4/a", "1.2.3.4/-1", "1.2.3.0/024", "10.0.0.0/8,11.0.0.0/8")),
])
@pytest.mark.parametrize("admin", [NEW, "4.3"], indirect=True)
def test_hosts_of_acls_may_be_networks(admin: Admin, host: str, reason: str | None) -> None:
    [row] = admin.send(M.CreateAclsRequest(creations=[acl(host=host)]), 2).results
    refused = reason if admin.fleet.nodes[0].release == NEW else None
    assert (row.error_code, row.error_message) == ((E.INVALID_REQUEST, refused) if refused else (0, ""))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize(("admin", "texts"), [
    (NEW, ["Quota consumer_byte_rate must be a finite number", "Quota request_percentage must be a finite number"]),
    ("4.3", None)], indirect=["admin"])
def test_quotas_are_finite(admin: Admin, texts: list[str] | None, value: float) -> None:
    request = M.AlterClientQuotasRequest
    rows = [admin.send(request(validate_only=True, entries=[request.EntryData(
        entity=[request.EntityData(entity_type="user", entity_name="u")],
        ops=[request.OpData(key=key, value=value)])]), 1).entries[0]
        for key in ("consumer_byte_rate", "request_percentage")]
    if texts is not None:
        assert [(row.error_code, row.error_message) for row in rows] == [(E.INVALID_REQUEST, text) for text in texts]
    else:
        assert [row.error_code for row in rows] == [
            0 if value != value else E.INVALID_REQUEST, E.INVALID_REQUEST if value < 0 else 0]
