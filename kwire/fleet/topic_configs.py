"""The configs of topics, by release, from topic_configs.json (Kafka's TopicConfig and LogConfig)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from kwire import schema
from kwire.codec.json import java_double as written_double
from kwire.fleet.errors import ApiError
from kwire.java_semantics import java_double
from kwire.schema.error_codes import ErrorCode

# type -> DescribeConfigsResponse.ConfigType
TYPES = {"boolean": 1, "string": 2, "int": 3, "long": 5, "double": 6, "list": 7}
FIRST_WITH_TIERS = "3.6"  # KIP-405: its configs were internal before
_FORMAT, _FIRST_WITH_METADATA_VERSION = "message.format.version", "3.3"
_REMOTE = "remote.storage.enable"
OF_TIERS = ("local.retention.bytes", "local.retention.ms", _REMOTE)
_BITS, _INTEGER = {"int": 31, "long": 63}, re.compile(r"[+-]?[0-9]{1,30}")
_REPLICA = re.compile(r"([0-9]+:[0-9]+)?", re.ASCII)


class TopicConfig(NamedTuple):
    """A config: its default, its type ("int", "long", "list", ...), the values that it may have, a list its
    parts (None: any).

    synonym: the broker's config with its default, None if there is none (ServerTopicConfigSynonyms); least, most: of a
    number, None: any; besides: the one number that is allowed outside of them; replicas: what a list of replicas must
    be, in the release's words.
    """

    default: str
    type: str
    values: tuple[str, ...] | None
    synonym: str | None = None
    least: int | None = None
    most: int | None = None
    besides: int | None = None
    replicas: str | None = None


@lru_cache(None)
def topic_configs(release: str) -> Mapping[str, TopicConfig]:
    """The configs that topics of a release have, by name, ascending."""
    table: dict[str, dict[str, Any]] = json.loads(files("kwire.fleet").joinpath("topic_configs.json").read_text())
    configs = {}
    for name, row in table.items():
        if not schema.is_at_least(release, row.get("since", "0.9.0")):
            continue
        if "before" in row and schema.is_at_least(release, row["before"]):
            continue
        default = _of_release(row.get("default", ""), row.get("defaults", {}), release)
        if name == _FORMAT and not schema.is_at_least(release, "3.0"):
            default = [row.name for row in schema.metadata_versions(old=True) if row.release == release][-1]
        values = _of_release(row.get("values"), row.get("values_later", {}), release)
        least = _of_release(row.get("least"), row.get("least_later", {}), release)
        replicas = _replicas(release) if name.endswith(".throttled.replicas") else None
        configs[name] = TopicConfig(
            default, row["type"], values and tuple(values), row.get("synonym"), least, row.get("most"),
            row.get("besides"), replicas)
    return configs


def _of_release(value: Any, later: Mapping[str, Any], release: str) -> Any:
    """The value of a release, where later ones have others."""
    for since, other in later.items():
        value = other if schema.is_at_least(release, since) else value
    return value


def _replicas(release: str) -> str:
    """What a list of replicas must be, in the words of a release (ThrottledReplicaListValidator)."""
    if not schema.is_at_least(release, "1.0"):
        return " must match for format [partitionId],[brokerId]:[partitionId],[brokerId]:[partitionId],[brokerId] etc"
    some = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    if not schema.is_at_least(release, "2.2"):
        some = "[partitionId],[brokerId]:[partitionId],[brokerId]:..."
    return f"must be the literal '*' or a list of replicas in the following format: {some}"


def check_topic_configs(configs: Mapping[str, str], release: str) -> None:
    """Are they configs of a topic, with values that they may have? Raises ApiError: INVALID_CONFIG."""
    known = topic_configs(release)
    for name in configs:
        if name not in known:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    check_configs(configs, known)
    format_version = configs.get(_FORMAT)
    if format_version is not None and not _is_format(format_version, release):
        tick = "" if schema.is_at_least(release, _FIRST_WITH_METADATA_VERSION) else "`"
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"Invalid value {format_version} for configuration {_FORMAT}: Version "
            f"{tick}{format_version}{tick} is not a valid version")
    if configs.get(_REMOTE, "").strip().lower() == "true" and schema.is_at_least(release, FIRST_WITH_TIERS):
        raise ApiError(
            ErrorCode.INVALID_CONFIG, "Tiered Storage functionality is disabled in the broker. Topic cannot be "
            "configured with remote log storage.")


def _is_format(value: str, release: str) -> bool:
    """Whether a release has a version of this name (MetadataVersion.fromVersionString, before it ApiVersion)."""
    parts = value.split(".")
    wanted = ".".join(parts[: 3 if value.startswith("0.") else 2])
    rows = schema.metadata_versions(old=True)
    own = max(at for at, row in enumerate(rows) if row.release == release)
    return any(wanted in (row.name, row.release) for row in rows[: own + 1])


def check_configs(configs: Mapping[str, str], known: Mapping[str, TopicConfig]) -> None:
    """Are the values those of their types, and in their bounds? Raises ApiError: INVALID_CONFIG."""
    for name, value in configs.items():
        reason = _wrong(name, value, known[name])
        if reason is not None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Invalid value {reason}")


def _wrong(name: str, value: str, config: TopicConfig) -> str | None:
    """What is wrong with a config's value (ConfigDef.parseType, Validator), None if nothing is."""
    given, value = f"{value} for configuration {name}: ", value.strip()
    if config.type in _BITS or config.type == "double":
        number = number_of(value, config.type)
        if number is None:
            return f"{given}Not a number of type {config.type.upper()}"
        beyond = _beyond(number, config)
        return beyond and f"{number} for configuration {name}: Value must be {beyond}"
    if config.type == "boolean":
        return None if value.lower() in ("true", "false") else f"{given}Expected value to be either true or false"
    parts = _parts(value)
    if config.replicas is not None and "".join(parts) != "*" and not all(map(_REPLICA.fullmatch, parts)):
        return f"[{', '.join(parts)}] for configuration {name}: {name} {config.replicas}"
    if config.values is None:
        return None
    bad = [part for part in (parts if config.type == "list" else [value]) if part not in config.values]
    return f"{bad[0]} for configuration {name}: String must be one of: {', '.join(config.values)}" if bad else None


def number_of(value: str, kind: str) -> float | None:
    """The number that a text is, None if it is none of its type."""
    if kind == "double":
        try:
            return java_double(value)
        except ValueError:
            return None
    number = int(value) if _INTEGER.fullmatch(value) else None
    return number if number is not None and -(1 << _BITS[kind]) <= number < 1 << _BITS[kind] else None


def shown(value: str, config: TopicConfig) -> str:
    """A value that a config may have, as a broker describes it: read, and written again (ConfigDef.convertToString)."""
    if config.type == "string":
        return value
    if config.type == "list":
        return ",".join(_parts(value))
    number = number_of(value.strip(), config.type) if config.type != "boolean" else None
    if number is None:
        return value.strip().lower()
    return written_double(number) if config.type == "double" else str(number)


def _parts(value: str) -> list[str]:
    value = value.strip()
    return [part.strip() for part in value.split(",")] if value else []


def _beyond(number: float, config: TopicConfig) -> str | None:
    """Which bound a number is beyond (ConfigDef.Range), None if none."""
    low = config.least is not None and number < config.least
    high = config.most is not None and number > config.most
    if number == config.besides or not (low or high):
        return None
    if config.besides is not None:
        return f"between {config.least} and {config.most} or equal to {config.besides}"
    return f"at least {config.least}" if low else f"no more than {config.most}"
