"""to_json and from_json: messages as Kafka's *JsonConverter classes write them."""

from __future__ import annotations

from kwire_c.json import from_json, to_json

__all__ = ["from_json", "to_json"]
