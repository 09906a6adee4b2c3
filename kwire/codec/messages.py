"""decode, decode_from and encode: messages by name or class and version.

Where kwire differs from Kafka's generated classes, also in lenient decoding: a negative tag count is refused (Kafka up
to 4.3 accepts it). Encoding refuses a lone surrogate (Kafka writes "?"), an unknown tag with the number of a known one
(Kafka writes both) and a version that the message lacks (Kafka's data classes write any).
"""

from __future__ import annotations

from kwire_c.decode import decode, decode_from
from kwire_c.encode import encode

__all__ = ["decode", "decode_from", "encode"]
