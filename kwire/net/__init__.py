"""Connections to brokers of any release: negotiation, TLS, SASL, clusters and what they can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.lazy import attach

if TYPE_CHECKING:
    from kwire.net.cluster import Broker, Cluster
    from kwire.net.config import keywords_of, read_config
    from kwire.net.connection import Connection, connect
    from kwire.net.errors import AuthenticationError, BrokerConnectionError, BrokerTimeoutError, FrameSizeError
    from kwire.net.features import FEATURES, Feature
    from kwire.net.sync import SyncConnection, connect_sync

__all__ = [
    "FEATURES",
    "AuthenticationError",
    "Broker",
    "BrokerConnectionError",
    "BrokerTimeoutError",
    "Cluster",
    "Connection",
    "Feature",
    "FrameSizeError",
    "SyncConnection",
    "connect",
    "connect_sync",
    "keywords_of",
    "read_config",
]

_PLACES = {
    "cluster": ("Broker", "Cluster"),
    "config": ("keywords_of", "read_config"),
    "connection": ("Connection", "connect"),
    "errors": ("AuthenticationError", "BrokerConnectionError", "BrokerTimeoutError", "FrameSizeError"),
    "features": ("FEATURES", "Feature"),
    "sync": ("SyncConnection", "connect_sync"),
}
_HOME = {name: f"kwire.net.{place}" for place, names in _PLACES.items() for name in names}

__getattr__, __dir__ = attach(__name__, _HOME)
