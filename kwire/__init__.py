"""kwire: the Kafka wire format in Python at C speed. Everything is imported at first use."""

from __future__ import annotations

from kwire.lazy import attach
from kwire_c.hooks import hand_over

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire import messages as messages
    from kwire import schema as schema
    from kwire.codec.columns import Column as Column
    from kwire.codec.columns import RecordColumns as RecordColumns
    from kwire.codec.columns import columns as columns
    from kwire.codec.frames import FrameReader as FrameReader
    from kwire.codec.frames import Request as Request
    from kwire.codec.frames import Response as Response
    from kwire.codec.frames import decode_request as decode_request
    from kwire.codec.frames import decode_request_header as decode_request_header
    from kwire.codec.frames import decode_response as decode_response
    from kwire.codec.frames import encode_request as encode_request
    from kwire.codec.frames import encode_response as encode_response
    from kwire.codec.frames import pack_frame as pack_frame
    from kwire.codec.info import build_info as build_info
    from kwire.codec.json import from_json as from_json
    from kwire.codec.json import to_json as to_json
    from kwire.codec.message_columns import BadMessage as BadMessage
    from kwire.codec.message_columns import MessageColumns as MessageColumns
    from kwire.codec.message_columns import columns_of as columns_of
    from kwire.codec.messages import decode as decode
    from kwire.codec.messages import decode_from as decode_from
    from kwire.codec.messages import encode as encode
    from kwire.codec.records import BadBatch as BadBatch
    from kwire.codec.records import BatchIterator as BatchIterator
    from kwire.codec.records import Record as Record
    from kwire.codec.records import RecordBatch as RecordBatch
    from kwire.codec.records import build_batch as build_batch
    from kwire.codec.records import build_batches as build_batches
    from kwire.codec.records import read_batches as read_batches
    from kwire.codec.stored import CoordinatorRecord as CoordinatorRecord
    from kwire.codec.stored import decode_coordinator_record as decode_coordinator_record
    from kwire.codec.stored import decode_metadata_record as decode_metadata_record
    from kwire.codec.stored import decode_remote_log_record as decode_remote_log_record
    from kwire.codec.stored import encode_coordinator_record as encode_coordinator_record
    from kwire.codec.stored import encode_metadata_record as encode_metadata_record
    from kwire.codec.stored import encode_remote_log_record as encode_remote_log_record
    from kwire_c.crc32c import crc32c as crc32c
    from kwire_c.errors import CorruptBatchError as CorruptBatchError
    from kwire_c.errors import DecodeError as DecodeError
    from kwire_c.errors import EncodeError as EncodeError
    from kwire_c.errors import KwireError as KwireError
    from kwire_c.errors import LimitError as LimitError
    from kwire_c.errors import MissingCodecError as MissingCodecError
    from kwire_c.errors import ObsoleteBrokerVersion as ObsoleteBrokerVersion
    from kwire_c.errors import UnsupportedVersionError as UnsupportedVersionError

__version__ = "0.1.0"

hand_over(
    message_schema="kwire.schema:message",
    decompress="kwire.codec.compression:decompress",
    compress="kwire.codec.compression:compress",
    decode_control="kwire.codec.control:decode_control",
)

# public name -> module that defines it
_HOME = {
    "crc32c": "kwire_c.crc32c",
    "build_info": "kwire.codec.info",
    **dict.fromkeys(("decode", "decode_from", "encode"), "kwire.codec.messages"),
    **dict.fromkeys(
        (
            "FrameReader", "Request", "Response", "decode_request", "decode_request_header", "decode_response",
            "encode_request", "encode_response", "pack_frame",
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
    **dict.fromkeys(("BadMessage", "MessageColumns", "columns_of"), "kwire.codec.message_columns"),
    **dict.fromkeys(("from_json", "to_json"), "kwire.codec.json"),
    **dict.fromkeys(
        (
            "CorruptBatchError", "DecodeError", "EncodeError", "KwireError", "LimitError", "MissingCodecError",
            "ObsoleteBrokerVersion", "UnsupportedVersionError",
        ),
        "kwire_c.errors",
    ),
    **dict.fromkeys(("Column", "RecordColumns", "columns"), "kwire.codec.columns"),
    **dict.fromkeys(
        ("BadBatch", "BatchIterator", "Record", "RecordBatch", "build_batch", "build_batches", "read_batches"),
        "kwire.codec.records",
    ),
}

# rooms that `import kwire` alone makes reachable, as kwire.schema.releases()
_ROOMS = ("messages", "schema", "net", "storage", "spark")

__all__ = ["__version__", *_HOME]

__getattr__, __dir__ = attach(__name__, _HOME, _ROOMS)
