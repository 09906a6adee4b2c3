"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: of topics and brokers."""

from __future__ import annotations

from typing import Any, NamedTuple

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

TOPIC, BROKER = 2, 4  # ConfigResource.Type
_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = 1, 2, 3, 5, 6, 7  # DescribeConfigsResponse.ConfigType
_TOPIC_CONFIG, _BROKER_CONFIG, _DEFAULT_CONFIG = 1, 2, 5  # DescribeConfigsResponse.ConfigSource
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3  # AlterConfigOp.OpType


class Config(NamedTuple):
    """A config of a topic: its default, its type, the values that it may have (None: any)."""

    default: str
    type: int
    values: tuple[str, ...] | None = None


_YES = ("true", "false")
# TopicConfig's, with LogConfig's defaults
TOPIC_CONFIGS = {
    "cleanup.policy": Config("delete", _LIST, ("delete", "compact", "compact,delete", "delete,compact", "")),
    "compression.type": Config(
        "producer", _STRING, ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    "delete.retention.ms": Config("86400000", _LONG),
    "file.delete.delay.ms": Config("60000", _LONG),
    "flush.messages": Config("9223372036854775807", _LONG),
    "flush.ms": Config("9223372036854775807", _LONG),
    "follower.replication.throttled.replicas": Config("", _LIST),
    "index.interval.bytes": Config("4096", _INT),
    "leader.replication.throttled.replicas": Config("", _LIST),
    "max.compaction.lag.ms": Config("9223372036854775807", _LONG),
    "max.message.bytes": Config("1048588", _INT),
    "message.timestamp.type": Config("CreateTime", _STRING, ("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Config("0.5", _DOUBLE),
    "min.compaction.lag.ms": Config("0", _LONG),
    "min.insync.replicas": Config("1", _INT),
    "preallocate": Config("false", _BOOLEAN, _YES),
    "retention.bytes": Config("-1", _LONG),
    "retention.ms": Config("604800000", _LONG),
    "segment.bytes": Config("1073741824", _INT),
    "segment.index.bytes": Config("10485760", _INT),
    "segment.jitter.ms": Config("0", _LONG),
    "segment.ms": Config("604800000", _LONG),
    "unclean.leader.election.enable": Config("false", _BOOLEAN, _YES),
}


def check_topic_configs(configs: dict[str, str]) -> None:
    """Are they configs of a topic, with values that they may have? Raises ApiError: INVALID_CONFIG."""
    for name, value in configs.items():
        known = TOPIC_CONFIGS.get(name)
        if known is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
        try:
            if known.type in (_INT, _LONG):
                int(value)
            elif known.type == _DOUBLE:
                float(value)
        except ValueError:
            kind = {_INT: "an INT", _LONG: "a LONG", _DOUBLE: "a DOUBLE"}[known.type]
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Invalid value {value} for configuration {name}: Not a number of type {kind.split()[1]}") from None
        if known.values is not None and value not in known.values:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Invalid value {value} for configuration {name}: String must be one of: {', '.join(known.values)}")


@handles("DescribeConfigs")
def describe_configs(call: Call) -> Any:
    """The configs of topics, with defaults, and of brokers, as they were set."""
    response = messages.DescribeConfigsResponse
    rows = []
    for asked in call.message.resources:
        row = response.DescribeConfigsResult(resource_type=asked.resource_type, resource_name=asked.resource_name)
        try:
            configs, defaults, source = _resource(call, asked)
            wanted = asked.configuration_keys
            names = sorted({*configs, *defaults} if wanted is None else {*configs, *defaults} & set(wanted))
            for name in names:
                value = configs.get(name)
                of = _DEFAULT_CONFIG if value is None else source
                known = defaults.get(name)
                config = response.DescribeConfigsResourceResult(
                    name=name, value=(known.default if known is not None else "") if value is None else value,
                    config_source=of, config_type=_STRING if known is None else known.type)
                if call.version == 0:
                    config.is_default = value is None
                if call.version >= 1 and call.message.include_synonyms:
                    config.synonyms = [
                        response.DescribeConfigsSynonym(name=name, value=config.value, source=of)]
                row.configs.append(config)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        rows.append(row)
    return response(results=rows)


def _resource(call: Call, asked: Any) -> tuple[dict[str, str], dict[str, Config], int]:
    """(the configs that were set, the known ones, where the set ones come from). Raises ApiError."""
    cluster, name = call.cluster, asked.resource_name
    if asked.resource_type == TOPIC:
        return cluster.topic(name).configs, TOPIC_CONFIGS, _TOPIC_CONFIG
    if asked.resource_type == BROKER:
        if name and (not name.isdigit() or int(name) not in {node.id for node in cluster.nodes}):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected one of the fleet, got {name}")
        return cluster.broker_configs.setdefault(name, {}), {}, _BROKER_CONFIG
    raise ApiError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {asked.resource_type}")


@handles("AlterConfigs")
def alter_configs(call: Call) -> Any:
    """Replace all configs of a resource."""
    return _altered(call, messages.AlterConfigsResponse, lambda old, asked: {
        one.name: one.value for one in asked.configs if one.value is not None})


@handles("IncrementalAlterConfigs")
def incremental_alter_configs(call: Call) -> Any:
    """Set, delete, append to or subtract from configs (KIP-339)."""
    return _altered(call, messages.IncrementalAlterConfigsResponse, _changed)


def _changed(old: dict[str, str], asked: Any) -> dict[str, str]:
    new = dict(old)
    for one in asked.configs:
        known = TOPIC_CONFIGS.get(one.name)
        if one.config_operation == _DELETE:
            new.pop(one.name, None)
        elif one.value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {one.name}")
        elif one.config_operation == _SET:
            new[one.name] = one.value
        elif one.config_operation in (_APPEND, _SUBTRACT):
            if known is not None and known.type != _LIST:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG, f"Can't append to key {one.name} because its type is not LIST.")
            now = [part for part in new.get(one.name, known.default if known else "").split(",") if part]
            parts = [part for part in one.value.split(",") if part]
            if one.config_operation == _APPEND:
                now += [part for part in parts if part not in now]
            else:
                now = [part for part in now if part not in parts]
            new[one.name] = ",".join(now)
        else:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {one.config_operation}")
    return new


def _altered(call: Call, response: Any, change: Any) -> Any:
    rows = []
    for asked in call.message.resources:
        row = response.AlterConfigsResourceResponse(
            resource_type=asked.resource_type, resource_name=asked.resource_name)
        try:
            configs, _, _ = _resource(call, asked)
            new = change(configs, asked)
            if asked.resource_type == TOPIC:
                check_topic_configs(new)
            if not call.message.validate_only:
                configs.clear()
                configs.update(new)
                if asked.resource_type == TOPIC:
                    call.cluster.apply_configs(call.cluster.topic(asked.resource_name))
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        rows.append(row)
    return response(responses=rows)
