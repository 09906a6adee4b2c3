"""The Kafka wire format in Python at C speed. Everything is imported at first use."""

from __future__ import annotations

from kwire.lazy import attach
from kwire.version import __version__ as __version__
from kwire_c.hooks import hand_over

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire import capture as capture
    from kwire import messages as messages
    from kwire import net as net
    from kwire import pages as pages
    from kwire import schema as schema
    from kwire import spark as spark
    from kwire import storage as storage
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
    from kwire.codec.record_columns import Column as Column
    from kwire.codec.record_columns import RecordColumns as RecordColumns
    from kwire.codec.record_columns import columns as columns
    from kwire.codec.record_serdes import CoordinatorRecord as CoordinatorRecord
    from kwire.codec.record_serdes import decode_coordinator_record as decode_coordinator_record
    from kwire.codec.record_serdes import decode_metadata_record as decode_metadata_record
    from kwire.codec.record_serdes import decode_remote_log_record as decode_remote_log_record
    from kwire.codec.record_serdes import encode_coordinator_record as encode_coordinator_record
    from kwire.codec.record_serdes import encode_metadata_record as encode_metadata_record
    from kwire.codec.record_serdes import encode_remote_log_record as encode_remote_log_record
    from kwire.codec.records import BadBatch as BadBatch
    from kwire.codec.records import BatchIterator as BatchIterator
    from kwire.codec.records import Record as Record
    from kwire.codec.records import RecordBatch as RecordBatch
    from kwire.codec.records import build_batch as build_batch
    from kwire.codec.records import build_batches as build_batches
    from kwire.codec.records import read_batches as read_batches
    from kwire.errors import CorruptBatchError as CorruptBatchError
    from kwire.errors import DecodeError as DecodeError
    from kwire.errors import EncodeError as EncodeError
    from kwire.errors import KwireError as KwireError
    from kwire.errors import LimitError as LimitError
    from kwire.errors import MissingCodecError as MissingCodecError
    from kwire.errors import ObsoleteBrokerVersion as ObsoleteBrokerVersion
    from kwire.errors import UnsupportedVersionError as UnsupportedVersionError
    from kwire_c.crc32c import crc32c as crc32c
    from kwire_c.message_class import Message as Message
    from kwire_c.message_class import RequestMessage as RequestMessage

hand_over(
    message_schema="kwire.schema:message",
    decompress="kwire.compression:decompress_view",
    compress="kwire.compression:compress",
    decode_control="kwire.codec.control:decode_control",
)

# module -> the public names that it defines
_NAMES = {
    "kwire.codec.frames": (
        "FrameReader", "Request", "Response", "decode_request", "decode_request_header", "decode_response",
        "encode_request", "encode_response", "pack_frame",
    ),
    "kwire.codec.info": ("build_info",),
    "kwire.codec.json": ("from_json", "to_json"),
    "kwire.codec.message_columns": ("BadMessage", "MessageColumns", "columns_of"),
    "kwire.codec.messages": ("decode", "decode_from", "encode"),
    "kwire.codec.record_columns": ("Column", "RecordColumns", "columns"),
    "kwire.codec.record_serdes": (
        "CoordinatorRecord", "decode_coordinator_record", "decode_metadata_record", "decode_remote_log_record",
        "encode_coordinator_record", "encode_metadata_record", "encode_remote_log_record",
    ),
    "kwire.codec.records": (
        "BadBatch", "BatchIterator", "Record", "RecordBatch", "build_batch", "build_batches", "read_batches",
    ),
    "kwire.errors": (
        "CorruptBatchError", "DecodeError", "EncodeError", "KwireError", "LimitError", "MissingCodecError",
        "ObsoleteBrokerVersion", "UnsupportedVersionError",
    ),
    "kwire_c.crc32c": ("crc32c",),
    "kwire_c.message_class": ("Message", "RequestMessage"),
}

# subpackages that `import kwire` alone makes reachable, as in kwire.schema.releases(), and the library that one needs
_ROOMS = {
    "capture": "", "fleet": "", "messages": "", "net": "", "pages": "", "schema": "", "spark": "pyspark", "storage": "",
}

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__, _NAMES, _ROOMS)
    __all__ += ["__version__"]
