"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kwire import messages
from kwire.fleet.apis.config_resources import (
    APPEND,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    check_altered,
    check_resource_name,
    check_values,
    check_with_zookeeper,
    invalid,
    is_kind,
    known_configs,
)
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.apis.topics import MIN_ISR, cluster_sets_isr
from kwire.fleet.controller.topic_records import BROKER, TOPIC
from kwire.fleet.errors import ApiError
from kwire.fleet.refusals import refusal
from kwire.fleet.releases import offer
from kwire.fleet.topic_configs import (
    FIRST_WITH_TIERS,
    OF_TIERS,
    TYPES,
    TopicConfig,
    check_topic_configs,
    number_of,
    shown,
    topic_configs,
)
from kwire.schema.error_codes import ErrorCode
from kwire_c.secrets import SECRET_SETTING

_FIRST_WITH_OWN_DEFAULTS = {GROUP: "4.0", CLIENT_METRICS: "4.1"}  # which says their defaults
_CLUSTER_CONFIG = 3  # ConfigSource DYNAMIC_DEFAULT_BROKER_CONFIG
_FIRST_GENERATED = "2.7"  # its messages are generated from schemas, whose defaults they have
_TOPIC_CONFIG, _BROKER_CONFIG, _DEFAULT_CONFIG = 1, 2, 5  # DescribeConfigsResponse.ConfigSource
_MOST_CONFIGS = 1_000_000  # of an answer
_LONGEST_VALUE = 32_767  # bytes: of a string in a record
_TOO_LONG = (
    f"The configuration value cannot be added because it exceeds the maximum value size of {_LONGEST_VALUE} bytes.")
_OWN_SOURCE = {CLIENT_METRICS: 7, GROUP: 8}  # DYNAMIC_CLIENT_METRICS_CONFIG, DYNAMIC_GROUP_CONFIG


@handles("DescribeConfigs", controller=True)
def describe_configs(call: Call) -> Any:
    """The configs of topics, with defaults, and of brokers, as they were set."""
    response = messages.DescribeConfigsResponse
    if not all(is_kind(call, one.resource_type) for one in call.message.resources):
        return refusal(call.request, ErrorCode.INVALID_REQUEST)
    rows, left = [], _MOST_CONFIGS
    for asked in {(one.resource_type, one.resource_name): one for one in call.message.resources}.values():
        row = response.DescribeConfigsResult(
            resource_type=asked.resource_type, resource_name=asked.resource_name,
            error_message="" if call.node.offer.at_least(_FIRST_GENERATED) else None)
        try:
            configs, defaults, source = _resource(call, asked)
            wanted = asked.configuration_keys
            names = sorted({*configs, *defaults} if not wanted else {*configs, *defaults} & set(wanted))
            left -= len(names)
            if left < 0:
                raise ApiError(ErrorCode.POLICY_VIOLATION, f"An answer has at most {_MOST_CONFIGS} configs.")
            for name in names:
                value = configs.get(name)
                of = _DEFAULT_CONFIG if value is None else source
                if value is None and name == MIN_ISR and asked.resource_type == TOPIC and cluster_sets_isr(call):
                    of = _CLUSTER_CONFIG
                known = defaults.get(name)
                if known is not None:
                    value = known.default if of != source else shown(configs[name], known)
                config = response.DescribeConfigsResourceResult(
                    name=name, value=value,
                    config_source=of, config_type=TYPES["string" if known is None else known.type], documentation=None)
                if SECRET_SETTING.search(name):  # as Kafka: the value of a password is not given
                    config.is_sensitive, config.value = True, None
                if call.version >= 1 and call.message.include_synonyms:
                    synonym = response.DescribeConfigsSynonym
                    if of == source:
                        config.synonyms.append(synonym(name=name, value=config.value, source=of))
                    if known is not None and name == MIN_ISR and cluster_sets_isr(call):
                        config.synonyms.append(synonym(name=name, value=known.default, source=_CLUSTER_CONFIG))
                    if known is not None and known.synonym is not None:
                        config.synonyms.append(synonym(name=known.synonym, value=known.default, source=_DEFAULT_CONFIG))
                if call.version == 0 and not call.node.offer.at_least(_FIRST_GENERATED):
                    config.is_default = of != source  # later ones leave it false
                row.configs.append(config)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.explanation or row.error_message
        rows.append(row)
    return response(results=rows)


def _resource(call: Call, asked: Any) -> tuple[dict[str, str], Mapping[str, TopicConfig], int]:
    """(the configs that were set, the known ones, where the set ones come from). Raises ApiError."""
    cluster, name = call.cluster, asked.resource_name
    kind = asked.resource_type
    if kind == TOPIC:
        if name not in cluster.topics and not call.node.offer.at_least("2.0"):
            return {}, topic_configs(call.node.release), _TOPIC_CONFIG
        known = topic_configs(call.node.release)
        if not call.node.offer.at_least(FIRST_WITH_TIERS):
            known = {name: config for name, config in known.items() if name not in OF_TIERS}
        return cluster.topic(name).configs, known, _TOPIC_CONFIG
    if kind == BROKER or (kind == BROKER_LOGGER and is_kind(call, kind)):
        if kind == BROKER_LOGGER and not name:
            raise invalid("Broker id must not be empty")
        if name and number_of(name, "int") is None:
            raise invalid(f"Broker id must be an integer, but it is: {name}")
        if name and int(name) not in {node.id for node in cluster.nodes}:
            described = " or empty string," if kind == BROKER else ""
            rest = described if call.request.name == "DescribeConfigs" else ","
            raise invalid(f"Unexpected broker id, expected {call.node.id}{rest} but received {name}")
        return cluster.configs_of(kind, _key(asked)), {}, _BROKER_CONFIG if name else _CLUSTER_CONFIG
    if kind in _OWN_SOURCE and is_kind(call, kind):
        if not name:
            raise invalid(f"{'Group name' if kind == GROUP else 'Client metrics subscription name'} must not be empty")
        has_defaults = call.node.offer.at_least(_FIRST_WITH_OWN_DEFAULTS[kind])
        known = known_configs(kind, call.node.release) if has_defaults else {}
        return cluster.configs_of(kind, name), known, _OWN_SOURCE[kind]
    raise invalid("Unexpected resource type UNKNOWN") if call.request.name != "DescribeConfigs" else ApiError(
        ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.message)


@handles("ListConfigResources")
def list_config_resources(call: Call) -> Any:
    """The resources that have configs; version 0 (ListClientMetricsResources): client metrics alone (KIP-1142)."""
    response = messages.ListConfigResourcesResponse
    cluster = call.cluster
    nodes = [str(node.id) for node in cluster.nodes]
    there = {
        TOPIC: list(cluster.topics), BROKER: nodes, BROKER_LOGGER: nodes,
        CLIENT_METRICS: cluster.names_with_configs(CLIENT_METRICS), GROUP: cluster.names_with_configs(GROUP)}
    kinds = (set(call.message.resource_types) or set(there)) if call.version >= 1 else {CLIENT_METRICS}
    if not kinds <= set(there):
        return response(error_code=ErrorCode.UNSUPPORTED_VERSION)
    row = response.ConfigResource
    return response(config_resources=[
        row(resource_name=name, resource_type=kind) for kind, names in there.items() if kind in kinds
        for name in names])


@handles("AlterConfigs", controller=True)
def alter_configs(call: Call) -> Any:
    """Replace all configs of a resource."""
    return _altered(call, messages.AlterConfigsResponse, lambda old, asked: {
        one.name: one.value for one in asked.configs if one.value is not None})


@handles("IncrementalAlterConfigs", controller=True)
def incremental_alter_configs(call: Call) -> Any:
    """Set, delete, append to or subtract from configs (KIP-339)."""
    release = call.node.release
    return _altered(call, messages.IncrementalAlterConfigsResponse, lambda old, asked: _changed(old, asked, release))


def _changed(old: dict[str, str], asked: Any, release: str) -> dict[str, str]:
    new = dict(old)
    for one in asked.configs:
        known = topic_configs(release).get(one.name)
        if one.config_operation == DELETE:
            new.pop(one.name, None)
        elif one.value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {one.name}")
        elif one.config_operation == SET:
            new[one.name] = one.value
        elif one.config_operation in (APPEND, SUBTRACT):
            if not _is_list(asked.resource_type, known):
                raise _no_list(one, known, release)
            now = _parts(new.get(one.name, known.default if known else ""))
            parts = _parts(one.value)
            if one.config_operation == APPEND:
                there = set(now)
                now += [part for part in dict.fromkeys(parts) if part not in there]
            else:
                gone = set(parts)
                now = [part for part in now if part not in gone]
            new[one.name] = ",".join(now)
            if len(new[one.name].encode()) > _LONGEST_VALUE:  # ConfigurationControlManager.validateAlterConfig
                raise ApiError(ErrorCode.INVALID_CONFIG, _TOO_LONG)
        else:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a NullPointerException of the broker
    return new


def _is_list(kind: int, known: TopicConfig | None) -> bool:
    """Whether a value may be appended to a config, and subtracted. Those of brokers that are not known may be lists.

    KafkaConfigSchema has the configs of topics and brokers alone.
    """
    if kind in _OWN_SOURCE:
        return False
    return kind != TOPIC if known is None else known.type == "list"


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _no_list(one: Any, known: TopicConfig | None, release: str) -> ApiError:
    """The error for what is added to, or taken from, a config that is no list, in the words of a release."""
    word = "append" if one.config_operation == APPEND else "subtract"
    if offer(release).is_kraft:
        return ApiError(
            ErrorCode.INVALID_CONFIG, f"Can't {word.upper()} to key {one.name} because its type is not LIST.")
    if known is None:
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ApiError(ErrorCode.INVALID_REQUEST, f"Config value {word} is not allowed for config key: {one.name}")


def _altered(call: Call, response: Any, change: Callable[[dict[str, str], Any], dict[str, str]]) -> Any:
    rows, asked_for = [], call.message.resources
    if not call.node.offer.is_kraft and (reason := _refused_with_zookeeper(call)) is not None:
        code, text = reason
        return response(responses=[
            response.AlterConfigsResourceResponse(
                error_code=code, error_message=text, resource_type=one.resource_type, resource_name=one.resource_name)
            for one in asked_for])
    times = Counter((one.resource_type, one.resource_name) for one in asked_for)
    if not call.node.offer.is_kraft:  # a map of them: the last one counts
        asked_for = {(one.resource_type, one.resource_name): one for one in asked_for}.values()
    for asked in asked_for:
        row = response.AlterConfigsResourceResponse(
            resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None)
        try:
            if call.node.offer.is_kraft and times[asked.resource_type, asked.resource_name] > 1:
                raise invalid("Each resource must appear at most once.")
            _alter(call, asked, change)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.explanation
        rows.append(row)
    return response(responses=rows)


def _refused_with_zookeeper(call: Call) -> tuple[ErrorCode, str | None] | None:
    """Why a broker with ZooKeeper carries out nothing of a request: code and text, None if it does (KafkaApis)."""
    resources = call.message.resources
    if call.request.name == "AlterConfigs" and any(one.value is None for row in resources for one in row.configs):
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    if all(is_kind(call, row.resource_type) for row in resources):
        return None
    return ErrorCode.INVALID_REQUEST, "Unexpected resource type UNKNOWN"


def _alter(call: Call, asked: Any, change: Callable[[dict[str, str], Any], dict[str, str]]) -> None:
    topic = asked.resource_type == TOPIC
    if call.node.offer.is_kraft:
        check_altered(call, asked, call.request.name == "AlterConfigs")
        if topic or asked.resource_type in _OWN_SOURCE:  # the controller looks at operations, names and values first
            new = change({}, asked)
            check_resource_name(asked.resource_type, asked.resource_name)
        if topic:
            check_topic_configs(new, call.node.release)
    else:
        check_with_zookeeper(call, asked, call.request.name == "AlterConfigs")
        if topic:  # what may not be appended to
            change({}, asked)
    if topic and asked.resource_name not in call.cluster.topics:
        if not call.node.offer.at_least(_FIRST_GENERATED):
            text = None if call.node.offer.at_least("2.6") else f'Topic "{asked.resource_name}" does not exist.'
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{asked.resource_name}' does not exist.")
    if asked.resource_type == BROKER_LOGGER and call.node.offer.is_kraft:
        if asked.configs:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {asked.configs[0].name} does not exist!")
        return
    configs, _, _ = _resource(call, asked)
    new = change(configs, asked)
    if asked.resource_type in _OWN_SOURCE:
        check_values(asked.resource_type, new, call.node.release)
    if topic:
        try:
            check_topic_configs(new, call.node.release)
        except ApiError as error:
            unknown = error.message.startswith("Unknown")
            raise error if unknown else ApiError(
                ErrorCode.INVALID_REQUEST, "Invalid config value for resource ConfigResource(type=TOPIC, "
                f"name='{asked.resource_name}'): {error.message}") from None
    if not call.message.validate_only:
        if topic:
            call.cluster.apply_configs(call.cluster.topic(asked.resource_name), new)
        else:
            call.cluster.set_configs_of(asked.resource_type, _key(asked), new)


def _key(asked: Any) -> str:
    """What the configs of a resource are kept under: a broker's id may be "01"."""
    name: str = asked.resource_name
    return str(int(name)) if asked.resource_type == BROKER and name else name
