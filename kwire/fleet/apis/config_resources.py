"""What has configs: topics, brokers, client metrics and groups (ConfigResource.Type, Kafka's ConfigAdminManager)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire import schema
from kwire.fleet.apis.registry import Call
from kwire.fleet.cluster import check_topic_name
from kwire.fleet.controller.topic_records import BROKER, TOPIC
from kwire.fleet.errors import ApiError
from kwire.fleet.topic_configs import TopicConfig, check_configs, number_of
from kwire.schema.error_codes import ErrorCode

BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32  # ConfigResource.Type
_FIRST = {TOPIC: "0.9.0", BROKER: "0.9.0", BROKER_LOGGER: "2.3", CLIENT_METRICS: "3.7", GROUP: "4.0"}  # release
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3  # AlterConfigOp.OpType
_NEED_A_NAME = {
    TOPIC: "Default topic resources are not allowed.", GROUP: "Default group resources are not allowed.",
    CLIENT_METRICS: "Subscription name can't be empty"}
_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
_INTERVAL, _MATCH = "interval.ms", "match"
_LEAST_INTERVAL, _MOST_INTERVAL = 100, 3_600_000
_CLIENT_PARTS = (  # ClientMetricsConfigs: what a pattern may look at
    "client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port")
_CLIENT_METRICS = {
    _INTERVAL: TopicConfig("300000", "int", None), _MATCH: TopicConfig("", "list", None),
    "metrics": TopicConfig("", "list", None)}
_GROUP: dict[str, tuple[str, str, str, str]] = {  # default, type, first release, the broker's config (GroupConfig)
    "consumer.assignment.interval.ms": ("1000", "int", "4.3", "group.consumer.assignment.interval.ms"),
    "consumer.heartbeat.interval.ms": ("5000", "int", "4.0", "group.consumer.heartbeat.interval.ms"),
    "consumer.session.timeout.ms": ("45000", "int", "4.0", "group.consumer.session.timeout.ms"),
    "errors.deadletterqueue.copy.record.enable": (
        "false", "boolean", "4.4", "errors.deadletterqueue.copy.record.enable"),
    "errors.deadletterqueue.topic.name": ("", "string", "4.4", "errors.deadletterqueue.topic.name"),
    "share.assignment.interval.ms": ("1000", "int", "4.3", "group.share.assignment.interval.ms"),
    "share.auto.offset.reset": ("latest", "string", "4.0", "share.auto.offset.reset"),
    "share.delivery.count.limit": ("5", "int", "4.3", "group.share.delivery.count.limit"),
    "share.heartbeat.interval.ms": ("5000", "int", "4.0", "group.share.heartbeat.interval.ms"),
    "share.isolation.level": ("read_uncommitted", "string", "4.1", "share.isolation.level"),
    "share.partition.max.record.locks": ("2000", "int", "4.3", "group.share.partition.max.record.locks"),
    "share.record.lock.duration.ms": ("30000", "int", "4.0", "group.share.record.lock.duration.ms"),
    "share.renew.acknowledge.enable": ("true", "boolean", "4.3", "share.renew.acknowledge.enable"),
    "share.session.timeout.ms": ("45000", "int", "4.0", "group.share.session.timeout.ms"),
    "streams.assignment.interval.ms": ("1000", "int", "4.3", "group.streams.assignment.interval.ms"),
    "streams.assignor.name": ("sticky", "string", "4.4", "group.streams.assignors"),
    "streams.heartbeat.interval.ms": ("5000", "int", "4.1", "group.streams.heartbeat.interval.ms"),
    "streams.initial.rebalance.delay.ms": ("3000", "int", "4.2", "group.streams.initial.rebalance.delay.ms"),
    "streams.num.standby.replicas": ("0", "int", "4.1", "group.streams.num.standby.replicas"),
    "streams.rack.aware.assignment.tags": ("", "list", "4.4", "group.streams.rack.aware.assignment.tags"),
    "streams.session.timeout.ms": ("45000", "int", "4.1", "group.streams.session.timeout.ms"),
}


def known_configs(kind: int, release: str) -> Mapping[str, TopicConfig]:
    """The configs that CLIENT_METRICS or GROUP has in a release, by name."""
    if kind == CLIENT_METRICS:
        return _CLIENT_METRICS
    return {
        name: TopicConfig(default, of, None, synonym) for name, (default, of, since, synonym) in _GROUP.items()
        if schema.is_at_least(release, since)}


def invalid(text: str) -> ApiError:
    """INVALID_REQUEST with a text."""
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def is_kind(call: Call, kind: int) -> bool:
    """Whether the node's release has resources of this kind."""
    return kind in _FIRST and call.node.offer.at_least(_FIRST[kind])


def check_altered(call: Call, asked: Any, legacy: bool) -> None:
    """May these configs of this resource be altered (ConfigAdminManager.preprocess)? legacy: AlterConfigs.

    Raises ApiError.
    """
    names = [one.name for one in asked.configs]
    if len(set(names)) < len(names):
        raise invalid("Error due to duplicate config keys")
    unset = [one.name for one in asked.configs if one.value is None and (legacy or one.config_operation != DELETE)]
    if unset:
        raise invalid(f"Null value not supported for : {', '.join(unset)}")
    kind, name = asked.resource_type, asked.resource_name
    if not is_kind(call, kind) or (legacy and kind == BROKER_LOGGER):
        raise invalid(f"Unknown resource type {kind}")
    if kind == BROKER_LOGGER or (kind == BROKER and name):
        if number_of(name, "int") is None:
            raise invalid(f"Node id must be an integer, but it is: {name}")
        if int(name) not in {node.id for node in call.cluster.nodes}:
            raise invalid(
                f"Unexpected broker id, expected {call.node.id}, but received {name}" if kind == BROKER else
                f"Unexpected node id. Expected {call.node.id}, but received {name}")


def check_resource_name(kind: int, name: str) -> None:
    """May a resource have this name (ControllerConfigurationValidator)? Raises ApiError."""
    if not name and kind in _NEED_A_NAME:
        raise invalid(_NEED_A_NAME[kind])
    if kind == TOPIC:
        check_topic_name(name)


def check_with_zookeeper(call: Call, asked: Any, legacy: bool) -> None:
    """Is each config named once, with a value, as a broker with ZooKeeper asks (ZkAdminManager)? Raises ApiError."""
    if not legacy and len({one.name for one in asked.configs}) < len(asked.configs):
        raise invalid("Error due to duplicate config keys")
    for one in asked.configs:
        if one.value is not None or (not legacy and (
                one.config_operation == DELETE or not is_kind(call, asked.resource_type))):
            continue
        if legacy:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        operation = _OPERATIONS.get(one.config_operation, "UNKNOWN")
        raise invalid(f"Null value not supported for : {operation}:{one.name}")


def check_values(kind: int, configs: Mapping[str, str], release: str) -> None:
    """Are they configs of client metrics or of a group, with values that they may have? Raises ApiError."""
    known = known_configs(kind, release)
    for name in configs:
        if name in known:
            continue
        if kind == CLIENT_METRICS:
            raise invalid(f"Unknown client metrics configuration: {name}")
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    check_configs(configs, known)
    if kind == CLIENT_METRICS:
        interval = configs.get(_INTERVAL)
        if interval is not None and not _LEAST_INTERVAL <= int(interval) <= _MOST_INTERVAL:
            raise invalid(
                f"Invalid value {interval} for interval.ms, interval must be between {_LEAST_INTERVAL} and "
                f"{_MOST_INTERVAL} (1 hour)")
        for pattern in configs.get(_MATCH, "").split(","):
            name, *rest = pattern.strip().split("=")
            if pattern and (name.strip() not in _CLIENT_PARTS or len(rest) != 1 or not rest[0].strip()):
                raise ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
