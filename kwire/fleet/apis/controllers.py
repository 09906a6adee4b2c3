"""What controllers are asked, mostly by brokers: registrations, heartbeats, the quorum."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import METADATA_VERSION

METADATA_TOPIC = "__cluster_metadata"
_CONTROLLERS = 2  # DescribeClusterRequest.EndpointType


@handles("BrokerRegistration", broker=False, controller=True)
def broker_registration(call: Call) -> Any:
    """Register a broker, which stays fenced until its heartbeats ask for more; or refuse it at these levels."""
    message, response = call.message, messages.BrokerRegistrationResponse
    try:
        if message.cluster_id != call.cluster.cluster_id:
            raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID)
        known = {node.id for node in call.cluster.alive()}
        if message.broker_id in known:
            raise ApiError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        epoch = _active(call).register_broker(
            message.broker_id, {METADATA_VERSION: (1, 1), **_features(message)}, _listeners(message), message.rack,
            message.incarnation_id)
        return response(broker_epoch=epoch)
    except ApiError as error:
        return response(error_code=error.code)


@handles("BrokerHeartbeat", broker=False, controller=True)
def broker_heartbeat(call: Call) -> Any:
    """A registered broker is fenced or not as it wants, once it has read its registration; or it may shut down."""
    message, response = call.message, messages.BrokerHeartbeatResponse
    try:
        controller = _active(call)
        controller.check_epoch(message.broker_id, message.broker_epoch)
        caught_up = message.current_metadata_offset >= message.broker_epoch
        if message.want_fence or message.want_shut_down:
            controller.fence(message.broker_id, message.broker_epoch)
        elif caught_up:
            controller.unfence(message.broker_id, message.broker_epoch)
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
    asked = [(topic.topic_name, part.partition_index) for topic in message.topics for part in topic.partitions]
    if asked != [(METADATA_TOPIC, 0)]:
        return response(error_code=ErrorCode.INVALID_REQUEST)
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
                ErrorCode.DUPLICATE_VOTER, f"The voter id for ReplicaKey(id={call.message.voter_id}) is already part "
                f"of the set of voters {sorted(voters)}.")
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
    """The ids of the voters. Raises ApiError: UNSUPPORTED_VERSION at kraft.version 0."""
    controller = call.cluster.controller
    controller.check_active()
    if not controller.log.kraft_version:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Cluster doesn't support adding or removing voters: kraft.version is 0, expected 1.")
    return {node.id for node in controller.voters()}


def describe_controllers(call: Call) -> Any:
    """DescribeCluster at a controller's listener: the controllers (KIP-919)."""
    response, cluster = messages.DescribeClusterResponse, call.cluster
    if call.message.endpoint_type != _CONTROLLERS:
        return response(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, endpoint_type=_CONTROLLERS,
            error_message="The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type "
            "BROKER")
    controller = cluster.controller
    if not controller.log.can.get("isControllerRegistrationSupported"):
        return response(
            error_code=ErrorCode.UNSUPPORTED_VERSION, endpoint_type=_CONTROLLERS,
            error_message="Direct-to-controller communication is not supported with the current MetadataVersion.")
    row = response.DescribeClusterBroker
    active = controller.active
    return response(
        cluster_id=cluster.cluster_id, controller_id=-1 if active is None else active.id, endpoint_type=_CONTROLLERS,
        brokers=[row(broker_id=node.id, host=node.host, port=node.controller_port)
                 for node in controller.voters() if node.alive])


def _active(call: Call) -> Any:
    """The controller, if this node is the active one. Raises ApiError: NOT_CONTROLLER."""
    controller = call.cluster.controller
    if controller.check_active() is not call.node:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    return controller


def _features(message: Any) -> dict[str, tuple[int, int]]:
    return {one.name: (one.min_supported_version, one.max_supported_version) for one in message.features}


def _listeners(message: Any) -> list[tuple[str, str, int]]:
    return [(one.name, one.host, one.port) for one in message.listeners]
