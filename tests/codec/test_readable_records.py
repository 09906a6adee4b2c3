"""What can be read of a corrupt batch, and bytes as Java's strings."""

from __future__ import annotations

from struct import pack

import pytest

import kwire
from kwire_c.record_batch import java_string, readable_records

pytestmark = pytest.mark.quick


def damaged(count: int = 3, **options: str) -> kwire.RecordBatch:
    """A batch of three records whose header says another number, or whose second record has a wrong length."""
    records = [(7, b"k0", b"v0", [("h", b"x")]), (8, None, b"v1"), (9, b"k2", None)]
    data = bytearray(kwire.build_batch(records, **options))
    data[57:61] = pack(">i", count)
    if count == 3:
        data[61 + 1 + data[61] // 2] = 9
    [batch] = kwire.read_batches(bytes(data), verify_crc=False)
    return batch


def test_records_before_the_damage() -> None:
    for batch, count in ((damaged(), 1), (damaged(4), 3), (damaged(2), 2), (damaged(-1), 0), (damaged(1 << 30), 3)):
        with pytest.raises(kwire.CorruptBatchError):
            list(batch)
        found = list(readable_records(batch))
        assert [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found] == [
            (0, 7, b"k0", b"v0", (("h", b"x"),)), (1, 8, None, b"v1", ()), (2, 9, b"k2", None, ()),
        ][:count]  # fmt: skip
        with pytest.raises(kwire.CorruptBatchError):
            list(batch)


def test_all_of_a_valid_batch_and_none_of_others() -> None:
    [batch] = kwire.read_batches(kwire.build_batch([(1, None, b"v")]))
    assert list(readable_records(batch)) == list(batch)
    assert list(readable_records(damaged(4, codec="gzip"))) == []
    [old] = kwire.read_batches(kwire.build_batch([(1, None, b"v")], magic=1))
    assert list(readable_records(old)) == []
    with pytest.raises(TypeError):
        list(readable_records(None))


def test_java_strings() -> None:
    """Observed: new String(bytes, UTF_8) of Java 17."""
    for data, wanted in (
        (b"", ""), ("é😀".encode(), "é😀"), (b"\xed\xa0\x80x", "\ufffdx"), (b"\xff\xfe", "\ufffd" * 2),
        (b"\xf0\x9f\x98", "\ufffd"), (b"\xc0\x80", "\ufffd" * 2), (b"\xf4\x90\x80\x80", "\ufffd" * 4),
    ):  # fmt: skip
        assert java_string(data) == java_string(memoryview(data)) == wanted
    with pytest.raises(TypeError):
        java_string("text")
