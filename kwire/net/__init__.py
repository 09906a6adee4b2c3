"""Connections to brokers of any release: version negotiation, TLS, SASL, clusters and their features."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.net.cluster import Broker as Broker
    from kwire.net.cluster import Cluster as Cluster
    from kwire.net.config import keywords_of as keywords_of
    from kwire.net.config import read_config as read_config
    from kwire.net.connection import Connection as Connection
    from kwire.net.connection import connect as connect
    from kwire.net.errors import AuthenticationError as AuthenticationError
    from kwire.net.errors import BrokerConnectionError as BrokerConnectionError
    from kwire.net.errors import BrokerTimeoutError as BrokerTimeoutError
    from kwire.net.errors import FrameSizeError as FrameSizeError
    from kwire.net.errors import RequestRefusedError as RequestRefusedError
    from kwire.net.feature_updates import FeatureMetadata as FeatureMetadata
    from kwire.net.feature_updates import FeatureUpdate as FeatureUpdate
    from kwire.net.feature_updates import FeatureUpdateError as FeatureUpdateError
    from kwire.net.features import FEATURES as FEATURES
    from kwire.net.features import Feature as Feature
    from kwire.net.sync import SyncConnection as SyncConnection
    from kwire.net.sync import connect_sync as connect_sync

# module -> the public names that it defines
_NAMES = {
    "kwire.net.cluster": ("Broker", "Cluster"),
    "kwire.net.config": ("keywords_of", "read_config"),
    "kwire.net.connection": ("Connection", "connect"),
    "kwire.net.errors": (
        "AuthenticationError", "BrokerConnectionError", "BrokerTimeoutError", "FrameSizeError", "RequestRefusedError",
    ),
    "kwire.net.feature_updates": ("FeatureMetadata", "FeatureUpdate", "FeatureUpdateError"),
    "kwire.net.features": ("FEATURES", "Feature"),
    "kwire.net.sync": ("SyncConnection", "connect_sync"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__, _NAMES)
