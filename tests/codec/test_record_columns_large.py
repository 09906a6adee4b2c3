"""Columns of hundreds of MiB: buffers that are mapped, grow by moving their pages, and are used again."""

import pyarrow
import pytest

import kwire

VALUE = bytes(range(256)) * (1 << 12)  # 1 MiB


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_all_values_stand_in_them(codec):
    """Plain input foretells how large the buffers get; compressed input does not, so that they grow."""
    batch = kwire.build_batch([(0, b"%d" % index, VALUE[index:]) for index in range(8)], codec=codec)
    for count in (1, 40, 3, 40):
        table = pyarrow.table(kwire.columns([batch] * count, ["value", "key", "offset"]))
        assert table.num_rows == 8 * count
        for row in (0, 7, table.num_rows - 8, table.num_rows - 1):
            assert table["value"][row].as_buffer().equals(pyarrow.py_buffer(VALUE[row % 8 :]))
            assert table["key"][row].as_py() == b"%d" % (row % 8)
            assert table["offset"][row].as_py() == row % 8


def test_many_rows_grow_the_narrow_columns():
    batch = kwire.build_batch([(index, None, b"") for index in range(100_000)], codec="zstd")
    table = pyarrow.table(kwire.columns([batch] * 20, ["offset", "value", "timestamp"]))
    assert table.num_rows == 2_000_000
    assert table["offset"].to_numpy().reshape(20, -1).tolist() == [list(range(100_000))] * 20
    assert table["value"].null_count == 0 and set(table["value"].slice(1_999_990).to_pylist()) == {b""}
