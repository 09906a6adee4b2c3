"""What controllers are asked, mostly by brokers: registrations, heartbeats, the quorum."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import METADATA_VERSION

METADATA_TOPIC = "__cluster_metadata"
BROKERS, CONTROLLERS = 1, 2  # DescribeClusterRequest.EndpointType
_TYPES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}
_RESERVED_IDS = 100  # the first ids of directories are Kafka's own (DirectoryId)


@handles("BrokerRegistration", broker=False, controller=True)
def broker_registration(call: Call) -> Any:
    """Register a broker, which stays fenced until its heartbeats ask for more; or refuse it at these levels."""
    message, response = call.message, messages.BrokerRegistrationResponse
    try:
        if message.cluster_id != call.cluster.cluster_id:
            raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID)
        call.cluster.controller.check_incarnation(message.broker_id, message.incarnation_id)
        directories = list(message.log_dirs) if call.version >= 2 else []
        if call.cluster.controller.log.can.get("isDirectoryAssignmentSupported"):
            _check_directories(directories)
        epoch = _active(call).register_broker(
            message.broker_id, {METADATA_VERSION: (1, 1), **_features(message)}, _listeners(message), message.rack,
            message.incarnation_id, directories)
        return response(broker_epoch=epoch)
    except ApiError as error:
        return response(error_code=error.code)


@handles("BrokerHeartbeat", broker=False, controller=True)
def broker_heartbeat(call: Call) -> Any:
    """A registered broker is fenced or not as it wants, once it has read its registration; or it may shut down."""
    message, response = call.message, messages.BrokerHeartbeatResponse
    try:
        controller = _active(call)
        caught_up = message.current_metadata_offset >= message.broker_epoch
        leaves = message.want_fence or message.want_shut_down
        controller.heartbeat(message.broker_id, message.broker_epoch, False if leaves else True if caught_up else None)
        fenced = controller.log.brokers[message.broker_id].fenced
        return response(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=message.want_shut_down)
    except ApiError as error:
        return response(error_code=error.code)


@handles("UnregisterBroker", controller=True)
def unregister_broker(call: Call) -> Any:
    """Forget a broker that is down for good."""
    message, response = call.message, messages.UnregisterBrokerResponse
    try:
        controller = call.cluster.controller
        controller.check_active()
        if message.broker_id not in controller.log.brokers:
            raise ApiError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {message.broker_id} is not currently registered")
        controller.unregister_broker(message.broker_id)
        call.cluster.elect()
        return response()
    except ApiError as error:
        return response(error_code=error.code, error_message=error.message)


@handles("ControllerRegistration", broker=False, controller=True)
def controller_registration(call: Call) -> Any:
    """Register a controller, from metadata.version 3.7-IV0 on (KIP-919)."""
    message, response = call.message, messages.ControllerRegistrationResponse
    try:
        _active(call).register_controller(
            message.controller_id, _features(message), _listeners(message), message.incarnation_id)
        return response()
    except ApiError as error:
        return response(error_code=error.code, error_message=error.message)


@handles("DescribeQuorum", controller=True)
def describe_quorum(call: Call) -> Any:
    """The leader and the voters of the metadata log; brokers are its observers (KIP-595, KIP-836, KIP-853)."""
    message, cluster, response = call.message, call.cluster, messages.DescribeQuorumResponse
    log, active = cluster.controller.log, cluster.controller.active
    asked = [(topic.topic_name, [part.partition_index for part in topic.partitions]) for topic in message.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return response(topics=[
            response.TopicData(topic_name=name, partitions=[
                response.PartitionData(
                    partition_index=index, error_code=unknown,
                    error_message=unknown.message if call.version >= 2 else "") for index in dict.fromkeys(indexes)])
            for name, indexes in asked])
    state, now = response.ReplicaState, cluster.clock.now_ms()

    def replica(node: Any) -> Any:
        row = state(replica_id=node.id, log_end_offset=log.offset + 1)
        if call.version >= 1:
            row.last_fetch_timestamp = row.last_caught_up_timestamp = now
        return row

    voters = cluster.controller.voters()
    ids = {node.id for node in voters}
    partition = response.PartitionData(
        partition_index=0, leader_id=-1 if active is None else active.id, leader_epoch=log.epoch,
        high_watermark=log.offset + 1, current_voters=[replica(node) for node in voters],
        observers=[replica(node) for node in cluster.alive() if node.id not in ids])
    answer = response(topics=[response.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])])
    if call.version >= 2:
        answer.nodes = [
            response.Node(node_id=node.id, listeners=[
                response.Listener(name="CONTROLLER", host=node.host, port=node.controller_port)])
            for node in voters]
    return answer


@handles("AddRaftVoter", controller=True)
def add_raft_voter(call: Call) -> Any:
    """Voters are added from kraft.version 1 on (KIP-853); those of a fleet are all voters already."""
    response = messages.AddRaftVoterResponse
    try:
        voters = _dynamic_voters(call)
        if call.message.voter_id in voters:
            raise ApiError(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id {call.message.voter_id} is already part of the set of voters {sorted(voters)}.")
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
    except ApiError as error:
        return response(error_code=error.code, error_message=error.message)


@handles("RemoveRaftVoter", controller=True)
def remove_raft_voter(call: Call) -> Any:
    """Voters are removed from kraft.version 1 on (KIP-853); those of a fleet stay."""
    response = messages.RemoveRaftVoterResponse
    try:
        _dynamic_voters(call)
        raise ApiError(ErrorCode.VOTER_NOT_FOUND)
    except ApiError as error:
        return response(error_code=error.code, error_message=error.message)


def _dynamic_voters(call: Call) -> set[int]:
    """The ids of the voters. Raises ApiError: INCONSISTENT_CLUSTER_ID, UNSUPPORTED_VERSION at kraft.version 0."""
    controller = call.cluster.controller
    controller.check_active()
    if call.message.cluster_id not in (None, call.cluster.cluster_id):
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not controller.log.kraft_version:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Cluster doesn't support adding or removing voters: kraft.version is 0, expected 1.")
    return {node.id for node in controller.voters()}


@handles("DescribeCluster", broker=False, controller=True)
def describe_cluster(call: Call) -> Any:
    """The controllers (KIP-919), from version 1 and metadata.version 3.7-IV0 on."""
    response, cluster = messages.DescribeClusterResponse, call.cluster
    controller = cluster.controller
    try:
        if not controller.log.can.get("isControllerRegistrationSupported"):
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "Direct-to-controller communication is not supported with the current MetadataVersion.")
        check_endpoint_type(call, CONTROLLERS)
    except ApiError as error:
        return response(error_code=error.code, error_message=error.message)
    row, active = response.DescribeClusterBroker, controller.active
    return response(
        cluster_id=cluster.cluster_id, controller_id=-1 if active is None else active.id, endpoint_type=CONTROLLERS,
        brokers=[row(broker_id=node.id, host=node.host, port=node.controller_port)
                 for node in controller.voters() if node.alive])


def check_endpoint_type(call: Call, expected: int) -> None:
    """Is DescribeCluster meant for this listener? Version 0 is for brokers.

    Raises ApiError: INVALID_REQUEST, UNSUPPORTED_ENDPOINT_TYPE, MISMATCHED_ENDPOINT_TYPE. Source: AuthHelper.
    """
    asked = call.message.endpoint_type if call.version >= 1 else BROKERS
    if call.version == 0 and expected == CONTROLLERS:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid request version 0, expected 1 or newer")
    if asked not in _TYPES:
        raise ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {asked}")
    if asked != expected:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {_TYPES[expected]}, but we wanted an endpoint of type "
            f"{_TYPES[asked]}")


def _active(call: Call) -> Any:
    """The controller, if this node is the active one. Raises ApiError: NOT_CONTROLLER."""
    controller = call.cluster.controller
    if controller.check_active() is not call.node:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    return controller


def _features(message: Any) -> dict[str, tuple[int, int]]:
    return {one.name: (one.min_supported_version, one.max_supported_version) for one in message.features}


def _check_directories(directories: list[Any]) -> None:
    """Raises ApiError, INVALID_REGISTRATION, unless there are some, different ones. Source: ClusterControlManager."""
    if not directories:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if len(set(directories)) != len(directories):
        raise ApiError(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for one in directories:
        if one.int < _RESERVED_IDS:
            raise ApiError(ErrorCode.INVALID_REGISTRATION, f"Reserved directory ID in request: {one}")


def _listeners(message: Any) -> list[tuple[str, str, int]]:
    return [(one.name, one.host, one.port) for one in message.listeners]
