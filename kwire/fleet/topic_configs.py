"""The configs of topics, by release, from topic_configs.json (Kafka's TopicConfig and LogConfig)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from kwire import schema
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

# type -> DescribeConfigsResponse.ConfigType
TYPES = {"boolean": 1, "string": 2, "int": 3, "long": 5, "double": 6, "list": 7}
FIRST_WITH_TIERS = "3.6"  # KIP-405: its configs were internal before
OF_TIERS = ("local.retention.bytes", "local.retention.ms", "remote.storage.enable")
_BITS, _INTEGER = {"int": 31, "long": 63}, re.compile(r" *[+-]?[0-9]{1,30} *")


class TopicConfig(NamedTuple):
    """A config: its default, its type ("int", "long", "list", ...), the values that it may have (None: any).

    synonym: the broker's config with its default, None if there is none (ServerTopicConfigSynonyms).
    """

    default: str
    type: str
    values: tuple[str, ...] | None
    synonym: str | None = None


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
        default = row.get("default", "")
        for since, value in row.get("defaults", {}).items():
            default = value if schema.is_at_least(release, since) else default
        if name == "message.format.version" and not schema.is_at_least(release, "3.0"):
            default = [row.name for row in schema.metadata_versions(old=True) if row.release == release][-1]
        values = tuple(row["values"]) if "values" in row else None
        configs[name] = TopicConfig(default, row["type"], values, row.get("synonym"))
    return configs


def check_topic_configs(configs: Mapping[str, str], release: str) -> None:
    """Are they configs of a topic, with values that they may have? Raises ApiError: INVALID_CONFIG."""
    known = topic_configs(release)
    for name in configs:
        if name not in known:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    check_configs(configs, known)


def check_configs(configs: Mapping[str, str], known: Mapping[str, TopicConfig]) -> None:
    """Are the values those of their types? Raises ApiError: INVALID_CONFIG."""
    for name, value in configs.items():
        config, refused = known[name], f"Invalid value {value} for configuration {name}: "
        try:
            if config.type in _BITS:
                number = int(value) if _INTEGER.fullmatch(value) else None
                if number is None or not -(1 << _BITS[config.type]) <= number < 1 << _BITS[config.type]:
                    raise ValueError
            elif config.type == "double":
                float(value)
        except ValueError:
            raise ApiError(
                ErrorCode.INVALID_CONFIG, f"{refused}Not a number of type {config.type.upper()}") from None
        if config.type == "boolean" and value not in ("true", "false"):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{refused}Expected value to be either true or false")
        if config.values is not None and value not in config.values:
            words = config.values
            if config.type == "list":
                words = tuple(sorted({word for one in words for word in one.split(",") if word}))
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{refused}String must be one of: {', '.join(words)}")
