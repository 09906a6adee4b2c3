"""KRaft snapshots (.checkpoint, bootstrap.checkpoint; KIP-630) as files: is one whole?"""

from __future__ import annotations

from typing import Any

from kwire.codec.control import decode_control
from kwire.codec.records import read_batches
from kwire.errors import CorruptBatchError
from kwire.storage.batches.scanner import OBJECT_BYTES, Scanner
from kwire.storage.places.filesystem import open_file


def check_raft_snapshot(path: str, options: dict[str, Any] | None = None) -> None:
    """Raise CorruptBatchError unless the file, of any size, is valid batches from a snapshot's header to its footer.

    A file that was cut off between two batches, or is empty, has no footer: a broker does not look for one, and starts
    without what is missing, or not at all. Records are not decoded. DecodeError for a control record that is damaged.
    """
    scanner = Scanner(open_file(path, options).held(), verify=True, search=False, read_bytes=OBJECT_BYTES)
    kinds: list[str | int] = []  # of the last batch
    for window in scanner:
        if window.bad is not None:
            raise CorruptBatchError(window.bad, position=window.position)
        for batch in read_batches(window.data, position=window.position, verify_crc=False):
            kinds = [decode_control(record.key, record.value)[0] for record in batch] if batch.is_control else []
            if batch.position == 0 and kinds[:1] != ["SNAPSHOT_HEADER"]:
                raise CorruptBatchError("the snapshot has no header", position=0)
    if scanner.tail is not None:
        raise CorruptBatchError("the input ends inside the batch", position=scanner.tail[0])
    if kinds[-1:] != ["SNAPSHOT_FOOTER"]:
        raise CorruptBatchError("the snapshot has no footer: it is not whole")
