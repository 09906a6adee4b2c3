"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments, DescribeLogDirs, AlterReplicaLogDirs."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, answered, handles
from kwire.fleet.apis.topics import check_replicas
from kwire.fleet.cluster import Partition, Topic, shortened
from kwire.fleet.errors import ApiError
from kwire.fleet.refusals import refusal
from kwire.schema.error_codes import ErrorCode

_PREFERRED, _UNCLEAN = 0, 1  # ElectionType
Move = tuple[Topic, Partition, list[int], int]  # a partition's new replicas and leader
_NAMES_ALL, _NAMES_ALL_NO_MORE = "2.6", "3.7"  # releases that name topics without a partition too (KAFKA-16807)
_SAYS_NOT_NEEDED = "2.4"  # KIP-460; before, it is no error
_LONGEST_FOLDER, _SUFFIX = 255, ".-future"  # UnifiedLog.logFutureDirName: with 32 characters of a random id
_ID_CHARACTERS = 32
_NOT_NEEDED = "Leader election not needed for topic partition."


@handles("ElectLeaders", controller=True)
def elect_leaders(call: Call) -> Any:
    """Let the first replica of partitions lead them again, if it is up (KIP-183, KIP-460).

    An unclean election changes nothing: a partition without a leader has no replica that is up.
    Source: ReplicationControlManager.electLeaders; with ZooKeeper KafkaController.processReplicaLeaderElection.
    """
    message, cluster = call.message, call.cluster
    kind = message.election_type if call.version >= 1 else _PREFERRED
    if message.topic_partitions == [] and call.node.offer.is_kraft:
        return messages.ElectLeadersResponse()
    if kind not in (_PREFERRED, _UNCLEAN):
        return _unknown_type(call, kind)
    everything = message.topic_partitions is None
    asked = [(one.topic, list(one.partitions)) for one in message.topic_partitions or ()] if not everything else [
        (topic.name, list(range(len(topic.partitions)))) for topic in cluster.topics.values()]
    response = messages.ElectLeadersResponse
    rows, elected, up = [], list[Move](), {node.id for node in cluster.alive()}
    for name, indexes in asked:
        row = response.ReplicaElectionResult(topic=name)
        for index in dict.fromkeys(indexes):  # once, also where KRaft repeats a row with its text
            result = response.PartitionResult(partition_id=index, error_message=None)
            try:
                cluster.check_controller(call.node)
                elected += _election(call, name, index, kind, up)
            except ApiError as error:
                if everything and error.code == ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                result.error_code = error.code
                result.error_message = None if error.code == ErrorCode.NOT_CONTROLLER else error.message
            row.partition_result.append(result)
        if row.partition_result or call.node.offer.is_kraft:
            rows.append(row)
    cluster.move(elected)
    return response(replica_election_results=rows)


def _unknown_type(call: Call, kind: int) -> Any:
    kraft = call.node.offer.is_kraft
    answer = refusal(call.request, ErrorCode.INVALID_REQUEST if kraft else ErrorCode.UNKNOWN_SERVER_ERROR)
    for row in answer.replica_election_results:
        for result in row.partition_result:
            result.error_message = f"Unknown election type {kind}" if kraft else None
    return answer


def _election(call: Call, name: str, index: int, kind: int, up: set[int]) -> list[Move]:
    """A partition's new leader; none where the first replica leads, and the release takes that for a success.

    up: the nodes that are. Raises ApiError.
    """
    cluster, kraft = call.cluster, call.node.offer.is_kraft
    topic = cluster.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        name = shortened(name)
        text = f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text if kraft else "The partition does not exist.")
    partition = topic.partitions[index]
    leader, preferred = partition.leader, partition.replicas[0]
    if leader == preferred if kind == _PREFERRED else leader >= 0:
        if not call.node.offer.at_least(_SAYS_NOT_NEEDED):
            return []
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, None if kraft else _NOT_NEEDED)
    if kind == _UNCLEAN:
        raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    if preferred not in up:
        raise ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return [(topic, partition, partition.replicas, preferred)]


@handles("AlterPartitionReassignments", controller=True)
def alter_partition_reassignments(call: Call) -> Any:
    """Let partitions have other replicas (KIP-455): at once, one copy serves them all.

    The leader stays if it is one of them. Source: ReplicationControlManager.alterPartitionReassignments.
    """
    message, response = call.message, messages.AlterPartitionReassignmentsResponse
    try:
        call.cluster.check_controller(call.node)
    except ApiError as error:  # for all
        return response(error_code=error.code, error_message=error.message)
    if not message.topics and call.node.offer.is_kraft:
        return response()
    keeps_count = call.version >= 1 and not message.allow_replication_factor_change
    moves, up = list[Move](), {node.id for node in call.cluster.alive()}
    rows = [
        response.ReassignableTopicResponse(name=topic.name, partitions=answered(
            topic.partitions,
            lambda one: response.ReassignablePartitionResponse(partition_index=one.partition_index, error_message=None),
            partial(_reassign, call, topic.name, keeps_count, up, moves), attrgetter("explanation")))
        for topic in message.topics if topic.partitions or call.node.offer.is_kraft]
    call.cluster.move(moves)
    answer = response(error_message=None if call.node.offer.is_kraft else "", responses=rows)
    if call.version >= 1:
        answer.allow_replication_factor_change = message.allow_replication_factor_change
    return answer


def _reassign(
    call: Call, name: str, keeps_count: bool, up: set[int], moves: list[Move], asked: Any, _row: Any
) -> None:
    """Add a move. up: the nodes that are. Raises ApiError."""
    cluster, index = call.cluster, asked.partition_index
    topic = cluster.topics.get(name)
    if not call.node.offer.is_kraft:
        _check_with_zookeeper(topic, asked, up)
    if topic is None or not 0 <= index < len(topic.partitions):
        name = shortened(name)
        text = f"Unable to find a topic named {name}." if topic is None else f"Unable to find partition {name}:{index}."
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text if call.node.offer.is_kraft else "The partition does not exist.")
    partition = topic.partitions[index]
    if asked.replicas is None:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = list(asked.replicas)
    check_replicas(call, replicas, None)
    if keeps_count and len(replicas) != len(partition.replicas):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(partition.replicas)} to {len(replicas)}")
    cluster.storage.check_move(topic, partition, replicas)
    leader = partition.leader if partition.leader in replicas else next((node for node in replicas if node in up), -1)
    moves.append((topic, partition, replicas, leader))


def _check_with_zookeeper(topic: Topic | None, asked: Any, up: set[int]) -> None:
    """May replicas be there (KafkaController.validateReplicas)? Raises ApiError."""
    if asked.replicas is None:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        raise ApiError(code, code.message)
    refused = partial(ApiError, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    ids = list(asked.replicas)
    there = topic.partitions[asked.partition_index].replicas if (
        topic is not None and 0 <= asked.partition_index < len(topic.partitions)) else []
    added = [node for node in ids if node not in there]
    if not ids:
        raise refused("Empty replica list specified in partition reassignment.")
    if len(set(ids)) < len(ids):
        raise refused(f"Duplicate replica ids in partition reassignment replica list: {_scala(ids)}")
    if min(ids) < 0:
        raise refused(f"Invalid broker id in replica list: {_scala(ids)}")
    if not set(added) <= up:
        raise refused(
            f"Replica assignment has brokers that are not alive. Replica list: {_scala(added)}, live broker list: "
            f"Set({', '.join(map(str, sorted(up)))})")


def _scala(ids: list[int]) -> str:
    return f"ArrayBuffer({', '.join(map(str, ids))})"


@handles("ListPartitionReassignments", controller=True)
def list_partition_reassignments(call: Call) -> Any:
    """The reassignments that are going on (KIP-455): none, one copy serves all replicas."""
    call.cluster.check_controller(call.node)
    return messages.ListPartitionReassignmentsResponse(
        error_message=None if call.node.offer.is_kraft else "")


@handles("DescribeLogDirs")
def describe_log_dirs(call: Call) -> Any:
    """The one log directory of a node, with the replicas that it has (KIP-113, KIP-827): one copy serves them all."""
    message, response = call.message, messages.DescribeLogDirsResponse
    asked: dict[str, set[int]] = {}
    for one in message.topics or ():
        asked.setdefault(one.topic, set()).update(one.partitions)
    everything = message.topics is None
    place = call.cluster.storage.place_of(call.node.id)
    row = response.DescribeLogDirsResult(log_dir=place.path)
    if call.version >= 4:
        row.total_bytes, row.usable_bytes = place.total_bytes, place.usable_bytes
    names_all = call.node.offer.at_least(_NAMES_ALL) and not call.node.offer.at_least(_NAMES_ALL_NO_MORE)
    for topic in call.cluster.topics.values():
        partitions = [
            response.DescribeLogDirsPartition(partition_index=one.index, partition_size=one.log.store.size)
            for one in topic.partitions
            if call.node.id in one.replicas and (everything or one.index in asked.get(topic.name, ()))]
        if partitions or names_all:
            row.topics.append(response.DescribeLogDirsTopic(name=topic.name, partitions=partitions))
    return response(results=[row])


@handles("AlterReplicaLogDirs")
def alter_replica_log_dirs(call: Call) -> Any:
    """Move replicas to the one log directory of a node, where they are (KIP-113).

    Of two places for a partition the last one counts. Source: ReplicaManager.alterReplicaLogDirs.
    """
    response, path = messages.AlterReplicaLogDirsResponse, call.cluster.storage.place_of(call.node.id).path
    asked: dict[str, dict[int, str]] = {}
    for place in call.message.dirs:
        for topic in place.topics:
            asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, place.path))

    def move(topic: str, one: tuple[int, str], _row: Any) -> None:
        index, wanted = one
        if len(topic) + len(f"-{index}{_SUFFIX}") + _ID_CHARACTERS > _LONGEST_FOLDER:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if wanted != path:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND)
        if call.node.id not in call.cluster.partition(topic, index).replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    return response(results=[
        response.AlterReplicaLogDirTopicResult(topic_name=topic, partitions=answered(
            indexes.items(), lambda one: response.AlterReplicaLogDirPartitionResult(partition_index=one[0]),
            partial(move, topic)))
        for topic, indexes in asked.items() if indexes])
