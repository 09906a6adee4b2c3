"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from __future__ import annotations

import uuid
from collections import Counter
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from kwire import messages
from kwire.fleet.apis.registry import Call, answered, handles
from kwire.fleet.cluster import (
    INTERNAL_TOPICS,
    MOST_PARTITIONS,
    TOO_MANY_PARTITIONS,
    Topic,
)
from kwire.fleet.errors import ApiError, certainly
from kwire.fleet.logs.partition_log import PartitionLog
from kwire.fleet.topic_configs import FIRST_WITH_TIERS, OF_TIERS, check_topic_configs, shown, topic_configs
from kwire.schema.error_codes import ErrorCode
from kwire.storage.places.discovery import is_topic_name

MIN_ISR = "min.insync.replicas"
ELR = "eligible.leader.replicas.version"
_FIRST_WITH_DEFAULTS = "2.4"  # KIP-464: -1 partitions or replicas are the broker's default, in every version
_FIRST_TO_REFUSE_NULL = "2.6"  # a config without a value, with ZooKeeper
_FIRST_WITH_CORDONS = "4.3"  # KIP-1066
_METADATA_TOPIC, _FIRST_TO_PROHIBIT = "__cluster_metadata", "3.9"  # before, nobody is authorized to create it
_TOO_MANY_MORE = "Excessively large number of additional partitions per request."
_NO_PARTITIONS = "Number of partitions must be larger than 0."
_NO_REPLICAS = "Replication factor must be larger than 0."
_NO_ID = uuid.UUID(int=0)


@handles("CreateTopics", controller=True)
def create_topics(call: Call) -> Any:
    """Create topics, or only check them (validate_only)."""
    message, kraft = call.message, call.node.offer.is_kraft
    validate = call.version >= 1 and message.validate_only
    names = Counter(row.name for row in message.topics)
    default = call.cluster.default_partitions
    partitions = sum(
        len(row.assignments) or (default if row.num_partitions == -1 else max(row.num_partitions, 0))
        for row in message.topics if names[row.name] == 1)
    result = messages.CreateTopicsResponse.CreatableTopicResult
    rows = []
    for row in {row.name: row for row in message.topics}.values() if kraft else message.topics:
        try:
            call.cluster.check_controller(call.node)
            if names[row.name] > 1:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "Duplicate topic name." if kraft else "Found multiple entries for this topic.")
            if row.name == _METADATA_TOPIC and kraft:
                prohibited = call.node.offer.at_least(_FIRST_TO_PROHIBIT)
                raise ApiError(
                    ErrorCode.INVALID_REQUEST if prohibited else ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    f"Creation of internal topic {row.name} is prohibited." if prohibited else "Authorization failed.")
            if partitions > MOST_PARTITIONS:
                raise ApiError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
            topic = _create(call, row)
            rows.append(result(
                name=row.name, topic_id=topic.id if kraft or not validate else _NO_ID,
                num_partitions=len(topic.partitions), replication_factor=topic.replication_factor,
                configs=_configs(call, topic) if call.version >= 5 else None, error_message=None))
        except ApiError as error:
            text = (
                error.explanation if error.code == ErrorCode.UNKNOWN_SERVER_ERROR else
                "" if error.code == ErrorCode.NOT_CONTROLLER else error.message)
            rows.append(result(name=row.name, error_code=error.code, error_message=text))
    return messages.CreateTopicsResponse(topics=rows)


def _create(call: Call, row: Any) -> Topic:
    assignments = {one.partition_index: list(one.broker_ids) for one in row.assignments}
    if not assignments and not call.node.offer.at_least(_FIRST_WITH_DEFAULTS):
        if row.num_partitions == -1:
            raise ApiError(ErrorCode.INVALID_PARTITIONS, _NO_PARTITIONS)
        if row.replication_factor == -1:
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, _NO_REPLICAS)
    configs = {one.name: one.value for one in row.configs}
    try:
        if call.node.offer.is_kraft:
            call.cluster.check_new_topic(row.name)
            _check_new_configs(call, row)
            _check_assignments(call, row)
        else:
            _check_with_zookeeper(call, row)
        return call.cluster.create_topic(
            row.name, row.num_partitions, row.replication_factor, configs, assignments,
            validate_only=call.version >= 1 and call.message.validate_only)
    except ApiError as error:
        if error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
            raise
        raise ApiError(error.code, _words(call, row, error)) from None


def _check_with_zookeeper(call: Call, row: Any) -> None:
    """May a broker with ZooKeeper create this topic (ZkAdminManager.createTopics)? Raises ApiError."""
    if row.name in call.cluster.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{row.name}' already exists.")
    unset = [one.name for one in row.configs if one.value is None]
    if unset and not call.node.offer.at_least(_FIRST_TO_REFUSE_NULL):  # a NullPointerException
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if unset:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for topic configs : {','.join(unset)}")
    if row.assignments and (row.num_partitions != -1 or row.replication_factor != -1):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Both numPartitions or replicationFactor and replicasAssignments were set. Both "
            "cannot be used at the same time.")
    if not row.assignments:
        if row.num_partitions <= 0 and row.num_partitions != -1:
            raise ApiError(ErrorCode.INVALID_PARTITIONS)
        if (row.replication_factor <= 0 and row.replication_factor != -1) or (
                row.replication_factor > len(call.cluster.alive())):
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)
    call.cluster.check_new_topic(row.name)
    _check_assignments_with_zookeeper({one.partition_index: list(one.broker_ids) for one in row.assignments})
    try:
        check_topic_configs({one.name: one.value for one in row.configs}, call.node.release)
    except ApiError as error:
        if not error.message.startswith("Unknown") and not call.node.offer.at_least("2.1"):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from None
        raise


def _check_assignments_with_zookeeper(assignments: dict[int, list[int]]) -> None:
    """May replicas be where the request wants them (AdminZkClient.validateTopicCreate)? Raises ApiError."""
    refused = partial(ApiError, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    if len({len(ids) for ids in assignments.values()}) > 1:
        raise refused("All partitions should have the same number of replicas")
    if any(len(set(ids)) < len(ids) for ids in assignments.values()):
        raise refused("Duplicate replica assignment found")
    if sorted(assignments) != list(range(len(assignments))):
        raise refused("partitions should be a consecutive 0-based integer sequence")


def _check_new_configs(call: Call, row: Any) -> None:
    """May a topic be created with these configs (ControllerConfigurationValidator)? Raises ApiError."""
    unset = [one.name for one in row.configs if one.value is None]
    if unset:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(unset)}")
    check_topic_configs({one.name: one.value for one in row.configs}, call.node.release)


def _check_assignments(call: Call, row: Any) -> None:
    """May the replicas be where the request wants them (ReplicationControlManager.createTopic)? Raises ApiError."""
    if row.assignments and (row.replication_factor != -1 or row.num_partitions != -1):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "A manual partition assignment was specified, but "
            f"{'replication factor' if row.replication_factor != -1 else 'numPartitions'} was not set to -1.")
    if not row.assignments and (row.replication_factor < -1 or row.replication_factor == 0):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.")
    seen: set[int] = set()
    replicas: int | None = None
    for one in row.assignments:
        index = one.partition_index
        if index in seen:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}")
        check_replicas(call, list(one.broker_ids), replicas)
        _check_in_service(call, index, one.broker_ids)
        seen.add(index)
        replicas = len(one.broker_ids)
    if seen != set(range(len(seen))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence")


def check_replicas(call: Call, ids: list[int], replicas: int | None) -> None:
    """May a partition be on these brokers? replicas: how many it must have, None: any number. Raises ApiError."""
    refused = partial(ApiError, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    start = "The manual partition assignment includes"
    if not ids:
        raise refused(f"{start} an empty replica list.")
    known = call.cluster.broker_ids
    ascending = sorted(ids)
    for at, node in enumerate(ascending):
        if node not in known:
            raise refused(f"{start} broker {node}, but no such broker is registered.")
        if at and node == ascending[at - 1]:
            raise refused(f"{start} the broker {node} more than once.")
    if replicas is not None and len(ids) != replicas:
        raise refused(
            f"{start} a partition with {len(ids)} replica(s), but this is not consistent with previous partitions, "
            f"which have {replicas} replica(s).")


def _check_in_service(call: Call, index: int, ids: list[int]) -> None:
    """Is any of these brokers up and not fenced (ReplicationControlManager)? Raises ApiError."""
    if not any(node.id in ids for node in call.cluster.alive()):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "All brokers specified in the manual partition assignment for "
            f"partition {index} are fenced or in controlled shutdown.")


def _words(call: Call, row: Any, error: ApiError) -> str:
    """Why a topic is not created, in the words of the node's release."""
    offer, name = call.node.offer, row.name
    if offer.is_kraft:
        cordoned = error.code == ErrorCode.INVALID_REPLICATION_FACTOR and offer.at_least(_FIRST_WITH_CORDONS)
        return error.message.replace(
            "registered.", "registered or some brokers have all their log directories cordoned.") if cordoned else (
                error.message)
    if error.code == ErrorCode.INVALID_PARTITIONS:
        return _NO_PARTITIONS
    if error.code == ErrorCode.INVALID_REPLICATION_FACTOR:
        nodes = len(call.cluster.alive())
        return _NO_REPLICAS if row.replication_factor <= 0 else (
            f"Replication factor: {row.replication_factor} larger than available brokers: {nodes}.")
    if error.code == ErrorCode.INVALID_TOPIC_EXCEPTION and not is_topic_name(name):
        return (
            "Topic name is illegal, it can't be empty" if not name else
            'Topic name cannot be "." or ".."' if name in (".", "..") else
            f"Topic name is illegal, it can't be longer than 249 characters, topic name: {name}" if len(name) > 249 else
            f'Topic name "{name}" is illegal, it contains a character other than ASCII alphanumerics, '
            "'.', '_' and '-'")
    return error.message.replace("collides with existing topic:", "collides with existing topics:")


def cluster_sets_isr(call: Call) -> bool:
    """Whether a feature has made min.insync.replicas a config of the cluster (KIP-966)."""
    return bool(call.cluster.levels.get(ELR, 0))


def _configs(call: Call, topic: Topic) -> list[Any]:
    row = messages.CreateTopicsResponse.CreatableTopicConfigs
    rows = []
    inner = () if call.node.offer.is_kraft or call.node.offer.at_least(FIRST_WITH_TIERS) else OF_TIERS
    for name, known in topic_configs(call.node.release).items():
        if name in inner:
            continue
        source = 1 if name in topic.configs else 5
        if source == 5 and name == MIN_ISR and cluster_sets_isr(call):
            source = 3
        value = topic.configs.get(name, known.default)  # a controller says it as it was given
        value = value if call.node.offer.is_kraft else shown(value, known)
        rows.append(row(name=name, value=value, config_source=source))
    return rows


@handles("DeleteTopics", controller=True)
def delete_topics(call: Call) -> Any:
    """Delete topics by name, or by id from version 6 on."""
    message, result = call.message, messages.DeleteTopicsResponse.DeletableTopicResult
    asked = message.topics if call.version >= 6 else [
        messages.DeleteTopicsRequest.DeleteTopicState(name=name) for name in message.topic_names]

    kraft = call.node.offer.is_kraft
    names = Counter(one.name for one in asked if one.name is not None and one.topic_id == _NO_ID)
    ids = Counter(one.topic_id for one in asked if one.name is None and one.topic_id != _NO_ID)
    if kraft:  # what is named twice stays: ControllerApis.deleteTopics
        named = {call.cluster.topics[name].id for name in names if name in call.cluster.topics}
        proper = {(one.name, one.topic_id): one for one in asked if (one.name is None) != (one.topic_id == _NO_ID)}
        asked = [
            *(one for one in asked if (one.name is None) == (one.topic_id == _NO_ID)),
            *(one for one in proper.values() if one.name is not None or one.topic_id not in named)]

    def has_both(one: Any) -> bool:
        return one.name is not None and one.topic_id != _NO_ID

    refused = not kraft and any(map(has_both, asked))  # all of it: KafkaApis.handleDeleteTopicsRequest

    def delete(one: Any, row: Any) -> None:
        call.cluster.check_controller(call.node)
        if refused:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if has_both(one):
            raise ApiError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if one.name is None and one.topic_id == _NO_ID:
            if not kraft:
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            raise ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if kraft and (names[one.name] > 1 or ids[one.topic_id] > 1):
            what = "id" if one.name is None else "name"
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
        if one.name is not None and one.name not in call.cluster.topics:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic = call.cluster.topic(one.name) if one.name is not None else call.cluster.topic_of_id(one.topic_id)
        row.name = topic.name
        if kraft or one.name is None:
            row.topic_id = topic.id
        if kraft and one.name is not None and topic.id in ids:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")
        call.cluster.delete_topic(topic)

    return messages.DeleteTopicsResponse(responses=answered(
        asked, lambda one: result(name=one.name, topic_id=one.topic_id), delete,
        attrgetter("message" if kraft else "explanation")))


@handles("CreatePartitions", controller=True)
def create_partitions(call: Call) -> Any:
    """Let topics have more partitions."""
    result, kraft = messages.CreatePartitionsResponse.CreatePartitionsTopicResult, call.node.offer.is_kraft
    names = Counter(row.name for row in call.message.topics)
    wanted = {row.name: row for row in call.message.topics}
    topics = call.cluster.topics
    new = sum(
        max(row.count - len(topics[name].partitions), 0) for name, row in wanted.items()
        if name in topics and names[name] == 1)

    def add(asked: Any, _row: Any) -> None:
        call.cluster.check_controller(call.node)
        if names[asked.name] > 1:
            what = "Duplicate topic name." if kraft else "Duplicate topic in request."
            raise ApiError(ErrorCode.INVALID_REQUEST, what)
        if new > MOST_PARTITIONS:
            raise ApiError(ErrorCode.POLICY_VIOLATION, _TOO_MANY_MORE)
        have = len(topics[asked.name].partitions) if asked.name in topics else 0
        if not kraft and not have:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{asked.name}' does not exist.")
        if not kraft and asked.count <= have:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partitions." if asked.count == have else
                f"Topic currently has {have} partitions, which is higher than the requested {asked.count}.")
        if not have:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic = call.cluster.topic(asked.name)
        if asked.name in INTERNAL_TOPICS:  # by their number each key has its partition
            raise ApiError(ErrorCode.INVALID_REQUEST, f"The partitions of {asked.name} are fixed.")
        assignments = None if asked.assignments is None else [list(one.broker_ids) for one in asked.assignments]
        more = asked.count - have
        if assignments is not None and len(assignments) == more and kraft:
            for index, ids in enumerate(assignments, have):
                check_replicas(call, ids, topic.replication_factor)
                _check_in_service(call, index, ids)
        elif assignments is not None and not kraft:
            _check_more_with_zookeeper(call, topic, more, assignments)
        call.cluster.add_partitions(topic, asked.count, assignments, call.message.validate_only)

    return messages.CreatePartitionsResponse(results=answered(
        wanted.values(), lambda asked: result(name=asked.name), add, attrgetter("explanation")))


def _check_more_with_zookeeper(call: Call, topic: Topic, more: int, assignments: list[list[int]]) -> None:
    """May new partitions be there (ZkAdminManager, AdminZkClient.validateReplicaAssignment)? Raises ApiError."""
    refused = partial(ApiError, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    if len(assignments) != more:
        raise refused(f"Increasing the number of partitions by {more} but {len(assignments)} assignments provided.")
    known = sorted(call.cluster.broker_ids)
    for at, ids in enumerate(assignments, len(topic.partitions)):
        text = ", ".join(map(str, ids))
        if not ids:
            raise refused(f"Cannot have replication factor of 0 for partition id {at}.")
        if len(set(ids)) < len(ids):
            raise refused(f"Duplicate brokers not allowed in replica assignment: {text} for partition id {at}.")
        if not set(ids) <= set(known):
            raise refused(
                f"Some brokers specified for partition id {at} are not available. Specified brokers: {text}, available "
                f"brokers: {', '.join(map(str, known))}.")
    have = topic.replication_factor
    bad = {at: len(ids) for at, ids in enumerate(assignments, len(topic.partitions)) if len(ids) != have}
    if bad:
        raise refused(
            f"Inconsistent replication factor between partitions, partition 0 has {have} while partitions "
            f"[{', '.join(map(str, bad))}] have replication factors [{', '.join(map(str, bad.values()))}], "
            "respectively.")


@handles("DeleteRecords")
def delete_records(call: Call) -> Any:
    """Move the starts of logs."""
    response = messages.DeleteRecordsResponse
    moves: dict[int, list[_Move]] = {}  # by the node that has the log

    def row_of(one: Any) -> Any:
        return response.DeleteRecordsPartitionResult(partition_index=one.partition_index, low_watermark=-1)

    def delete(topic: str, one: Any, row: Any) -> None:
        partition = call.cluster.partition(topic, one.partition_index)
        if topic in INTERNAL_TOPICS:  # ReplicaManager.deleteRecordsOnLocalLog
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        call.cluster.leads(call.node, partition)
        if not partition.log.settings.deletes:  # Partition.deleteRecordsOnLeader
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        moves.setdefault(partition.replicas[0], []).append(
            _Move((topic, partition.index), partition.log, partition.log.start_by(one.offset), row))

    answer = response(topics=[
        response.DeleteRecordsTopicResult(
            name=topic.name, partitions=answered(
                {one.partition_index: one for one in topic.partitions}.values(), row_of, partial(delete, topic.name)))
        for topic in call.message.topics if topic.partitions])
    for home, of_home in moves.items():
        _begin(call, home, of_home)
    return answer


class _Move(NamedTuple):
    """The start that a log is to have, and the row of an answer that says so."""

    partition: tuple[str, int]
    log: PartitionLog
    start: int
    row: Any


def _begin(call: Call, home: int, moves: list[_Move]) -> None:
    """Let logs that a node has begin at their new starts, which are kept at once, or say in their rows why not.

    Of several starts of one log the last in the log counts.
    """
    starts: dict[tuple[str, int], int] = {}
    for move in moves:
        if move.start > move.log.start_offset:
            starts[move.partition] = max(move.start, starts.get(move.partition, 0))
    refused: ApiError | None = None
    try:
        if starts:
            call.cluster.storage.keep_starts(home, starts)
    except ApiError as error:
        refused = error
    for move in moves:
        try:
            if refused is not None and move.partition in starts:
                raise refused
            certainly(partial(move.log.begin_at, starts.get(move.partition, move.start)))
            move.row.low_watermark = move.log.start_offset
        except ApiError as error:
            move.row.error_code = error.code
