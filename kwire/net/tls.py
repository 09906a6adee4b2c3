"""TLS contexts, from True or from Kafka's ssl.* properties with PEM stores."""

from __future__ import annotations

import ssl


def tls_context(tls: bool | ssl.SSLContext) -> ssl.SSLContext | None:
    """The context for tls=False (none), True (the system's trusted certificates, host names checked) or a context."""
    if isinstance(tls, ssl.SSLContext):
        return tls
    return ssl.create_default_context() if tls else None
