"""The errors that kwire raises, all subclasses of KwireError.

They are defined in kwire_c.errors, because the C code raises them too. Connection errors are in kwire.net.errors.
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
    WrongFileError,
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
    "WrongFileError",
]
