"""The errors that kwire raises: one family below KwireError.

They are defined in kwire_c.errors, since the C code raises them too. Those of connections are in kwire.net.errors.
"""

from __future__ import annotations

from kwire_c.errors import (
    CorruptBatchError,
    DecodeError,
    EncodeError,
    KwireError,
    LimitError,
    MissingCodecError,
    ObsoleteBrokerVersion,
    UnsupportedVersionError,
)

__all__ = [
    "CorruptBatchError",
    "DecodeError",
    "EncodeError",
    "KwireError",
    "LimitError",
    "MissingCodecError",
    "ObsoleteBrokerVersion",
    "UnsupportedVersionError",
]
