"""decode, decode_from and encode: messages by name or class and version."""

from __future__ import annotations

import kwire.messages  # gives the engine its facts
from kwire_c.decode import decode, decode_from
from kwire_c.encode import encode

__all__ = ["decode", "decode_from", "encode"]

assert kwire.messages
