"""The APIs of a fleet: one function each, in modules by subject. Importing this package registers them."""

from kwire.fleet.apis import (
    acls,
    configs,
    consumer_groups,
    controllers,
    features,
    fetch,
    groups,
    metadata,
    offsets,
    produce,
    quotas,
    replicas,
    sasl,
    scram_users,
    telemetry,
    topics,
    transactions,
)
from kwire.fleet.apis.registry import CONTROLLER_HANDLERS, FINISHED, HANDLERS, Call, handles

__all__ = [
    "CONTROLLER_HANDLERS", "FINISHED", "HANDLERS", "Call", "acls", "configs", "consumer_groups", "controllers",
    "features", "fetch", "groups", "handles", "metadata", "offsets", "produce", "quotas", "replicas", "sasl",
    "scram_users", "telemetry", "topics", "transactions",
]
