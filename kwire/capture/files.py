"""Captures by path: pcap, pcapng and frame files, alone or in folders, and the exchanges in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from kwire.capture.exchange import Exchange, Lost
from kwire.capture.frame_files import is_frame_file, pair_of, read_frame_file
from kwire.capture.pcap import Unread, read_segments
from kwire.capture.tcp_reassembly import Reassembly
from kwire.codec.arguments import can_iterate
from kwire.errors import DecodeError
from kwire.shared_iterator import shared
from kwire.storage.places.discovery import Listing
from kwire.storage.places.filesystem import is_url, plain, shown

_PCAP_NAMES = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz", ".dmp")


def captures(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The capture files of paths, each once, sorted within a folder; a pair of frame files by its .jsonl file.

    paths: files, pipes ("-" is standard input), folders (searched with their subfolders), globs, or a list of these.
    One that is there twice, plain and as .gz (gzip -k), is read once. Raises FileNotFoundError for a path that does not
    exist, a glob that matches nothing, a folder without a capture.
    """
    if not isinstance(paths, str | os.PathLike) and not can_iterate(paths):
        raise TypeError(f"paths must be a path or a list of paths, not {type(paths).__name__}")
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    names: dict[str, None] = {}
    for path in given:
        for name in _captures_of(_local(path)):
            names[name] = None
    return [name for name in names if not name.endswith(".gz") or name.removesuffix(".gz") not in names]


def _local(path: str | os.PathLike[str]) -> str:
    name = plain(path)
    if is_url(name) and not os.path.exists(name):
        raise FileNotFoundError(2, "captures are local files, not URLs", shown(name))
    return name


def _captures_of(path: str) -> list[str]:
    if os.path.isdir(path):
        inside = [os.path.join(folder, name) for folder, _, names in os.walk(path, onerror=_raise) for name in names]
        names = sorted(name for name in inside if name.endswith(_PCAP_NAMES) or _is_pair(name))
        if not names:
            raise FileNotFoundError(2, "no captures in this folder", path)
        return [_named(name) for name in names]
    if os.path.exists(path):
        return [_named(path)]
    if any(char in path for char in "*?["):
        found = (entry.path for entry in Listing().glob(path))
        names = sorted({name for name in found if not name.endswith((".ops.jsonl", ".bin.gz"))})
        if names:
            return [capture for name in names for capture in _captures_of(name)]
    if is_frame_file(f"{path}.jsonl") and (os.path.exists(f"{path}.jsonl.gz") or os.path.exists(f"{path}.jsonl")):
        return [pair_of(f"{path}.jsonl")[0]]
    with suppress(FileNotFoundError, NotADirectoryError):
        os.stat(path)  # raises what else is wrong
    raise FileNotFoundError(2, "no such capture", path)


def _raise(error: OSError) -> None:
    """A folder that cannot be read is no folder without captures."""
    raise error


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
    """The exchanges of one capture, each as soon as it is complete, and what is lost.

    path: a pcap or pcapng file (also with gzip), a pipe of one ("-" is standard input), or either of a pair of frame
    files. Threads may share the iterator: each item goes to one of them. Memory is bounded, however long the capture
    is. Raises FileNotFoundError, WrongFileError for another file, LimitError; without dpkt ImportError,
    which names the extra to install.
    """
    name = _local(path)
    if is_frame_file(name):
        yield from read_frame_file(name)
        return
    unread = Unread()
    reassembly = Reassembly(name)
    for segment in read_segments(name, unread):
        yield from reassembly.take(segment)
    yield from reassembly.close()
    if unread.foreign and not unread.read:
        raise DecodeError(f"unsupported link type {min(unread.foreign)}", what=name)
    for link, count in unread.foreign.items():
        yield Lost(name, f"packets of unsupported link type {link}", count=count)
    if unread.damaged:
        yield Lost(name, "malformed packets", count=unread.damaged)
    if unread.fragments:
        yield Lost(name, "IP fragments, which are not reassembled", count=unread.fragments)
    if unread.looped:
        yield Lost(name, "packets from an address and port to itself: neither side is the client", count=unread.looped)
    if unread.end:
        yield Lost(name, unread.end)
