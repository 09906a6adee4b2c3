"""kwire: the Kafka wire format in Python at C speed. Everything is imported at first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it
_HOME = {
    "crc32c": "kwire_c.crc32c",
    **dict.fromkeys(("decode", "decode_from", "encode"), "kwire.codec.messages"),
    **dict.fromkeys(
        (
            "FrameReader", "Request", "Response", "decode_request", "decode_response", "encode_request",
            "encode_response", "pack_frame",
        ),
        "kwire.codec.frames",
    ),
    **dict.fromkeys(
        (
            "CoordinatorRecord", "decode_coordinator_record", "decode_metadata_record", "decode_remote_log_record",
            "encode_coordinator_record", "encode_metadata_record", "encode_remote_log_record",
        ),
        "kwire.codec.stored",
    ),
    **dict.fromkeys(("from_json", "to_json"), "kwire.codec.json"),
    **dict.fromkeys(
        (
            "CorruptBatchError", "DecodeError", "EncodeError", "KwireError", "LimitError", "MissingCodecError",
            "ObsoleteBrokerVersion", "UnsupportedVersionError",
        ),
        "kwire_c.failure",
    ),
    **dict.fromkeys(("Column", "RecordColumns", "columns"), "kwire.codec.columns"),
    **dict.fromkeys(
        ("BadBatch", "BatchIterator", "Record", "RecordBatch", "build_batch", "read_batches"), "kwire.codec.records"
    ),
}

# rooms that `import kwire` alone makes reachable, as kwire.schema.releases()
_ROOMS = ("messages", "schema", "storage", "spark")

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if name in _ROOMS:
        return import_module(f"kwire.{name}")
    if home is None:
        raise AttributeError(f"module 'kwire' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
