"""A cluster image as JSON values, without its secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kwire.errors import UnsupportedVersionError
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.metadata.levels import known_level
from kwire.storage.metadata.record_json import record_json
from kwire.storage.metadata.scram import MECHANISMS
from kwire.storage.metadata.tables import Entity

if TYPE_CHECKING:
    from kwire.storage.metadata.image import ClusterImage

_TOPIC = 2
RESOURCE_TYPES = {_TOPIC: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}  # ConfigResource
MECHANISM_NAMES = {mechanism.type: name for name, mechanism in MECHANISMS.items()}


def as_json(image: ClusterImage) -> dict[str, Any]:
    """The image as JSON values. Records are as Kafka's JsonConverter has them, in the newest version."""
    configs: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, name in image.tables.configs:
        configs.setdefault(RESOURCE_TYPES.get(kind, str(kind)), {})[name] = _configs(image, kind, name)
    scram: dict[str, dict[str, Any]] = {}
    for (user, mechanism), record in image.scram.items():
        scram.setdefault(user, {})[MECHANISM_NAMES.get(mechanism, str(mechanism))] = _without(
            record_json(record), ("name", "mechanism"))
    return {
        "offset": image.offset,
        "epoch": image.epoch,
        "timestamp": image.timestamp,
        "metadata_version": level_name(image),
        "features": image.features,
        "kraft_version": image.kraft_version,
        "voters": [] if not image.voters else record_json(image.quorum.records["KRAFT_VOTERS"])["voters"],
        "brokers": _records(image.brokers.values()),
        "controllers": _records(image.controllers.values()),
        "topics": {
            topic.name: {
                **_without(record_json(topic.record), ("name",)),
                "partitions": [
                    _without(record_json(partition), ("topicId",)) for _, partition in sorted(topic.partitions.items())
                ],
            }
            for topic in image.topics_by_id.values()
        },
        "configs": configs,
        "quotas": [
            {"entity": entity_json(entity), "values": values} for entity, values in image.quotas.items()
        ],
        "next_producer_id": image.next_producer_id,
        "acls": _records(image.acls.values()),
        "scram": scram,
        "delegation_tokens": _records(image.delegation_tokens.values()),
        **({} if image.tables.zk_migration is None else {
            "zk_migration_state": image.tables.zk_migration.zk_migration_state
        }),
    }  # fmt: skip


def topic_configs(image: ClusterImage, name: str) -> dict[str, Any]:
    """The dynamic configs of a topic; secrets are "(redacted)"."""
    return _configs(image, _TOPIC, name)


def _configs(image: ClusterImage, kind: int, name: str) -> dict[str, Any]:
    settings = image.tables.configs.get((kind, name), {})
    return {key: record_json(record)["value"] for key, record in settings.items()}


def level_name(image: ClusterImage) -> str | None:
    """The name of the image's metadata.version; None where no record says it or the schema does not have it."""
    if METADATA_VERSION not in image.features:
        return None
    try:
        return known_level(image.tables).name
    except UnsupportedVersionError:
        return None


def entity_json(entity: Entity) -> dict[str, str | None]:
    """The entity of a quota: type -> name, null for the default."""
    return dict(entity)


def _records(records: Iterable[Any]) -> list[dict[str, Any]]:
    return [record_json(record) for record in records]


def _without(value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in names}
