"""The captures behind paths: pcap, pcapng and frame files, alone or in folders; their exchanges in one stream."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence

from kwire.capture.exchange import Exchange, Lost
from kwire.capture.frame_files import is_frame_file, pair_of, read_frame_file
from kwire.capture.pcap import Unread, read_segments
from kwire.capture.tcp_reassembly import Reassembly
from kwire.errors import DecodeError
from kwire.shared_iterator import shared
from kwire.storage.filesystem import plain

_PCAP_NAMES = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz", ".dmp")


def captures(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The captures behind paths, each once, sorted inside a folder: of frame files the one with the lines.

    paths: files, pipes ("-" is standard input), folders (with what stands below them), globs, or a list of these.
    Raises FileNotFoundError for a path that does not exist, a glob that matches nothing, a folder without a capture.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: dict[str, None] = {}
    for path in given:
        for one in _behind(plain(path)):
            found[one] = None
    return list(found)


def _behind(path: str) -> list[str]:
    if os.path.isdir(path):
        inside = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        found = sorted(name for name in inside if name.endswith(_PCAP_NAMES) or _is_pair(name))
        if not found:
            raise FileNotFoundError(2, "no capture in this folder", path)
        return [_named(name) for name in found]
    if os.path.exists(path):
        return [_named(path)]
    if any(sign in path for sign in "*?["):
        found = sorted(name for name in glob.glob(path, recursive=True) if not name.endswith((".ops.jsonl", ".bin.gz")))
        if found:
            return [one for name in found for one in _behind(name)]
    if is_frame_file(f"{path}.jsonl") and (os.path.exists(f"{path}.jsonl.gz") or os.path.exists(f"{path}.jsonl")):
        return [pair_of(f"{path}.jsonl")[0]]
    raise FileNotFoundError(2, "no such capture", path)


def _is_pair(path: str) -> bool:
    if not is_frame_file(path):
        return False
    try:
        pair_of(path)
    except FileNotFoundError:
        return False
    return True


def _named(path: str) -> str:
    return pair_of(path)[0] if is_frame_file(path) else path


@shared
def read_capture(path: str | os.PathLike[str]) -> Iterator[Exchange | Lost]:
    """What one capture holds, as it becomes whole: each exchange once, and each thing that is lost.

    path: a pcap or pcapng file (gzip too), a pipe of one ("-" is standard input), or either of a pair of frame files.
    Threads may share it: each item goes to one of them. Memory stays bounded however long the capture is. Raises
    FileNotFoundError, DecodeError for a file that is no capture, LimitError; ImportError without dpkt names the extra.
    """
    name = plain(path)
    if is_frame_file(name):
        yield from read_frame_file(name)
        return
    unread = Unread()
    reassembly = Reassembly(name)
    for segment in read_segments(name, unread):
        yield from reassembly.take(segment)
    yield from reassembly.close()
    if unread.foreign and not unread.read:
        raise DecodeError(f"link type {min(unread.foreign)} is none that kwire reads", what=name)
    for link, count in unread.foreign.items():
        yield Lost(name, f"packets of link type {link}, which is none that kwire reads", count=count)
    if unread.damaged:
        yield Lost(name, "packets that cannot be read", count=unread.damaged)
    if unread.fragments:
        yield Lost(name, "IP fragments, which are not put together", count=unread.fragments)
    if unread.end:
        yield Lost(name, unread.end)
