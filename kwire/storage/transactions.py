"""Which batches of a partition belong to aborted or still open transactions, by .txnindex and by the markers in the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Transactions(NamedTuple):
    """What read_committed needs for offsets [start, end) of one partition; plain data, pickles, small.

    aborted: (producer id, first offset, offset of the abort marker), sorted;
    open: (producer id, first offset) of transactions without a marker: all of that producer's transactional batches from
    there on are left out.
    """

    aborted: Sequence[tuple[int, int, int]]
    open: Sequence[tuple[int, int]]

    def hides(self, producer_id: int, base_offset: int) -> bool:
        """Whether a transactional batch of this producer at this base offset is aborted or still open."""
        raise NotImplementedError
