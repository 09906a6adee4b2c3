"""Records of the metadata log, also those that releases before 3.6 wrote in another layout of the same version."""

from __future__ import annotations

from typing import Any

from kwire.codec.record_serdes import decode_metadata_record
from kwire.errors import DecodeError, UnsupportedVersionError
from kwire.schema import is_at_least, record_type, release_name
from kwire_c.printable import brief

_FIRST = "3.0"  # the releases before it had an early preview, whose records are not flexible
# record -> the first release with its present layout; in the releases before, nothing ever wrote the old ones but
# FeatureLevelRecord, whose old layout is read
_SINCE = {"DelegationTokenRecord": "3.6", "FeatureLevelRecord": "3.3", "UserScramCredentialRecord": "3.5"}


class RecordReader:
    """Reads the records of a metadata log as messages. release: of the software that wrote them, None if not known.

    Raises UnsupportedVersionError for a release without a metadata log and for the early preview of 2.8.
    """

    def __init__(self, release: str | None = None) -> None:
        self._old: tuple[str, ...] = ()
        self._release = release
        if release is not None:
            writer = release_name(release)
            if not is_at_least(writer, _FIRST):
                raise UnsupportedVersionError(
                    f"metadata logs of Kafka {writer} are not supported: expected {_FIRST} or later",
                    needed=release)
            self._old = tuple(name for name, since in _SINCE.items() if not is_at_least(writer, since))

    def read(self, record: Any) -> Any:
        """The message in a Record. Raises DecodeError, UnsupportedVersionError. Source: Kafka's RecordsIterator."""
        if record.key is not None:
            raise DecodeError(f"expected a record without a key, found {len(record.key)} bytes (not a metadata log? "
                              "kwire log show reads those of topics)")
        if record.headers:
            raise DecodeError(f"expected a record without headers, found {len(record.headers)}")
        if record.value is None:
            raise DecodeError("expected a metadata record, found null")
        value = record.value
        if self._old and (name := _name(value)) in self._old:
            return self._read_old(str(name), value)
        try:
            return decode_metadata_record(value)[0]
        except DecodeError as error:
            name = _name(value)
            if name not in _SINCE or self._release is not None:
                raise
            reason = (f"{error.reason} (a record of a release before {_SINCE[name]}? "
                      "Its layout is read where release= or --release says so)")
            raise DecodeError(reason, offset=error.offset, path=error.path, what=name) from None

    def _read_old(self, name: str, value: bytes) -> Any:
        if name != "FeatureLevelRecord":
            raise UnsupportedVersionError(
                f"{name} as in Kafka {brief(self._release)} is not supported: its layout changed in {_SINCE[name]}",
                api=name)
        return _feature_level(value)


def _name(value: bytes) -> str | None:
    """The name of the record's type; the types that there are take one byte."""
    known = record_type("metadata", value[1]) if len(value) > 1 and value[0] == 1 else None
    return None if known is None else known.value


def _feature_level(value: bytes) -> Any:
    """FeatureLevelRecord v0 of 3.0 to 3.2: a name, and two levels of which KIP-778 removed the minimum.

    Without the two bytes of the minimum it is the present record, and is read as that.
    """
    if value[2:3] != b"\0":
        raise UnsupportedVersionError(f"expected FeatureLevelRecord v0, found {brief(value[:3])}")
    end = 3 + value[3] if len(value) > 3 else len(value)  # a length of the name in one byte, plus 1
    if len(value) < end + 4 or value[3] > 0x7F:
        raise DecodeError(f"4 bytes needed, {max(len(value) - end, 0)} remaining", offset=end,
                          what="FeatureLevelRecord v0")
    return decode_metadata_record(value[:end] + value[end + 2 :])[0]
