"""The layout of a batch header as Python gets it, against a batch that says where its fields are."""

from __future__ import annotations

from struct import calcsize, unpack_from

import pytest

import kwire
from kwire_c import record_batch as layout

pytestmark = pytest.mark.quick


def test_magic_2() -> None:
    data = kwire.build_batch(
        [(5, None, b"v")], base_offset=7, producer_id=8, producer_epoch=9, base_sequence=10, transactional=True,
        partition_leader_epoch=11,
    )  # fmt: skip
    assert calcsize(layout.BATCH_FORMAT) == layout.RECORD_BATCH_OVERHEAD == layout.SMALLEST_BATCHES[2]
    (batch,) = kwire.read_batches(data)
    fields = unpack_from(layout.BATCH_FORMAT, data)
    length = len(data) - layout.LOG_OVERHEAD
    assert fields == (7, length, 11, 2, batch.crc, layout.TRANSACTIONAL_FLAG, 0, 5, 5, 8, 9, 10, 1)
    assert data[layout.MAGIC_OFFSET] == 2 and layout.HEADER_UP_TO_MAGIC == layout.MAGIC_OFFSET + 1
    assert int.from_bytes(data[layout.CRC_OFFSET :][:4], "big") == kwire.crc32c(data[layout.ATTRIBUTES_OFFSET :])


@pytest.mark.parametrize("magic", [0, 1])
def test_magic_0_and_1(magic: int) -> None:
    data = kwire.build_batch([(5, None, None)], magic=magic, base_offset=7, codec="none")
    (batch,) = kwire.read_batches(data)
    assert len(data) == layout.SMALLEST_BATCHES[magic] and data[layout.LEGACY_ATTRIBUTES_OFFSET] == 0
    base, length, crc, seen, attributes = unpack_from(layout.LEGACY_FORMAT[:-1], data)
    assert (base, length, crc, seen, attributes) == (7, len(data) - layout.LOG_OVERHEAD, batch.crc, magic, 0)
    assert magic == 0 or unpack_from(layout.LEGACY_FORMAT, data)[-1] == 5
    assert int.from_bytes(data[layout.LEGACY_CRC_OFFSET :][:4], "big") == batch.crc
