"""decode, decode_from and encode: messages by name or class and version.

Where kwire differs from Kafka's own classes, lenient decoding included: a negative tag count is refused (Kafka up to
4.3 accepts it), a lone surrogate is refused on writing (Kafka writes "?"), so is an unknown tag with the number of a
known one (Kafka writes both), and the version is checked (Kafka's data classes write any).
"""

from __future__ import annotations

from kwire_c.decode import decode, decode_from
from kwire_c.encode import encode

__all__ = ["decode", "decode_from", "encode"]
