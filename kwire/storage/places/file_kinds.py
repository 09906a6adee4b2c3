"""What a file is, by its name and its first bytes: so that what is no segment is refused by what it is."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from kwire.errors import WrongFileError
from kwire.storage.places.filesystem import located
from kwire_c.record_batch import HEADER_UP_TO_MAGIC, MAGIC_OFFSET, MAX_LENGTH, MIN_LENGTH

if TYPE_CHECKING:
    from kwire.storage.places.filesystem import File

SNIFFED = 4096  # bytes at the beginning of a file that tell what it is

_RENAMED = re.compile(r"\.(?:deleted|swap|cleaned)$")  # what a broker appends to the names of files on their way out
_SEGMENT = re.compile(r"\d{20}\.log(?:\.gz)?(?:\.deleted|\.swap|\.cleaned)?|.+\.checkpoint(?:\.gz)?")
_NAMED = {
    ".index": "offset index",
    ".timeindex": "time index",
    ".txnindex": "transaction index",
    ".snapshot": "producer snapshot",
    "leader-epoch-checkpoint": "leader epochs",
    "-checkpoint": "offset checkpoint",
    "partition.metadata": "partition metadata",
    "meta.properties": "meta.properties",
    "quorum-state": "quorum state",
}
_DUMPED = ("offset index", "time index", "transaction index", "producer snapshot")  # what kwire log dump reads
_CAPTURE = "a packet capture: kwire audit reads it"
_SIGNATURES = (
    (b"\xa1\xb2\xc3\xd4", _CAPTURE), (b"\xd4\xc3\xb2\xa1", _CAPTURE), (b"\xa1\xb2\x3c\x4d", _CAPTURE),
    (b"\x4d\x3c\xb2\xa1", _CAPTURE), (b"\x34\xcd\xb2\xa1", _CAPTURE), (b"\x0a\x0d\x0d\x0a", _CAPTURE),
    (b"\x1f\x8b\x08", "compressed with gzip: expected a name that ends in .gz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: decompress it first"),
    (b"BZh", "compressed with bzip2: decompress it first"), (b"\xfd7zXZ\0", "compressed with xz: decompress it first"),
    (b"PK\x03\x04", "a zip archive: unpack it first"), (b"PAR1", "a Parquet file"), (b"ARROW1", "an Arrow file"),
    (b"Obj\x01", "an Avro file"), (b"ORC", "an ORC file"), (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"), (b"%PDF", "a PDF"), (b"\x89PNG", "a picture"),
)  # fmt: skip
_TAR = slice(257, 262)
_COMPRESSED = re.compile(
    r"(\d{1,20}\.log|\d{20}-\d{10}\.checkpoint)\.(gz|zst|zstd|lz4|bz2|xz|lzma|sz|snappy|zip|7z|br|Z)")


def kind_by_name(path: str) -> str | None:
    """What a file beside segments is, by its name: "time index" and so on; None for any other name."""
    name = _RENAMED.sub("", path.rpartition("/")[2])
    for ending, kind in _NAMED.items():
        if name == ending or (ending.startswith((".", "-")) and name.endswith(ending) and name != ending):
            return kind
    return None


def kind_by_content(head: bytes) -> str | None:
    """What a text file beside segments is, by its first bytes; None for any other."""
    if re.match(rb"0\r?\n\d+\r?\n(?:\d+ \d+\r?\n|$)", head):
        return "leader epochs"
    if re.match(rb"0\r?\n\d+\r?\n[\w.-]+ \d+ -?\d+\r?\n", head):
        return "offset checkpoint"
    if re.match(rb"version: \d+\r?\ntopic_id: ", head):
        return "partition metadata"
    if re.match(rb"(?:#[^\n]*\n)*(?:cluster|node|broker|directory)\.id=", head):
        return "meta.properties"
    if re.match(rb'\{"[^}]*"leaderEpoch":', head):
        return "quorum state"
    return None


def check_name(path: str) -> None:
    """Raise WrongFileError (.file) for a path that is named as a file beside segments."""
    kind = kind_by_name(path)
    if kind is not None:
        raise _wrong(path, _described(kind))


def check_segment(path: str, file: File) -> None:
    """Raise WrongFileError (.file) for what is no segment by its name or its first bytes.

    A file that is named as a broker names segments is one, whatever is in it, and is not read.
    """
    check_name(path)
    if _SEGMENT.fullmatch(path.rpartition("/")[2]):
        return
    what = foreign(file.read(0, min(SNIFFED, file.size())))
    if what is not None:
        raise _wrong(path, what)


def check_compressed(path: str, names: Collection[str]) -> None:
    """Raise WrongFileError (.file) for a segment that is compressed as kwire does not read it, if it is not there else.

    names: of the files in its folder. What is read of a folder would lack its records.
    """
    name, ending = uncompressed_name(path)
    if ending not in ("", "gz") and name.endswith(".log") and name not in names and f"{name}.gz" not in names:
        raise _wrong(path, f"a segment compressed as .{ending}: decompress it first, or compress it as .log.gz")


def uncompressed_name(path: str) -> tuple[str, str]:
    """(the name of a segment or snapshot without what was added when it was compressed, this without its dot or "")."""
    name = path.rpartition("/")[2]
    found = _COMPRESSED.fullmatch(name)
    return (name, "") if found is None else (found[1], found[2])


def check_capture(path: str, head: bytes) -> None:
    """Raise WrongFileError (.file) for what is a file of a log, or something else that is known, and no capture."""
    kind = kind_by_name(path)
    what = _described(kind) if kind is not None else foreign(head)
    if what is None and _is_batch(head):
        what = "a log segment: kwire log show reads it"
    if what not in (None, _CAPTURE):
        raise located(WrongFileError(f"not a capture: this is {what}"), path)


def foreign(head: bytes) -> str | None:
    """What begins with these bytes, and what reads it, if it is no segment for sure; None if it may be one."""
    kind = kind_by_content(head)
    if kind is not None:
        return _described(kind)
    for signature, what in _SIGNATURES:
        if head.startswith(signature):
            return what
    if head[_TAR] == b"ustar":
        return "a tar archive: unpack it first"
    return "text" if _is_text(head) else None


def _described(kind: str) -> str:
    plain = kind.endswith((".properties", "epochs", "metadata"))
    name = kind if plain else f"{'an' if kind[0] == 'o' else 'a'} {kind}"
    return f"{name}: kwire log {'dump' if kind in _DUMPED else 'show'} reads it"


def _wrong(path: str, what: str) -> WrongFileError:
    reason = f"this is {what}" + ("" if ": " in what else ", not a log segment")
    return located(WrongFileError(reason), path)


def _is_text(head: bytes) -> bool:
    """Text in UTF-8 or UTF-16, of a few signs too. The head of a batch has zeros in it."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # else a sign that the end of the head cuts
            return False
        text = head[: error.start].decode()
    return bool(text) and all(sign.isprintable() or sign in "\t\n\v\f\r\x1b\ufeff" for sign in text)


def _is_batch(head: bytes) -> bool:
    """Does it begin as a segment does?"""
    if len(head) < HEADER_UP_TO_MAGIC:
        return False
    length = int.from_bytes(head[8:12], "big", signed=True)
    return head[0] == 0 and MIN_LENGTH <= length <= MAX_LENGTH and head[MAGIC_OFFSET] <= 2
