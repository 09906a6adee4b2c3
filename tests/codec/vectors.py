"""Reads the vectors and their renamed names."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from kwire import schema
from tools.places import VECTORS

FOLDER = VECTORS
KINDS = tuple(sorted(path.name for path in FOLDER.glob("messages-*.jsonl.gz")))
RELEASES = tuple(sorted(path.stem.removeprefix("versions-") for path in FOLDER.glob("versions-*.json")))

# written for 4.3.0 with an unknown tag that 4.4 gave a meaning, so 4.4 reads it otherwise
NOW_KNOWN = {("StreamsGroupMetadataValue", 0, "unknown_tags", 1)}

# (release, message) whose version 0 got another layout in the release that first used it: SCRAM and delegation tokens
# came to KRaft with 3.5 and 3.6, tiered storage with 3.6
OTHER_LAYOUT = {
    ("3.3.2", "DelegationTokenRecord"), ("3.3.2", "RemoteLogSegmentMetadataRecord"),
    ("3.3.2", "RemoteLogSegmentMetadataSnapshotRecord"), ("3.3.2", "RemoteLogSegmentMetadataUpdateRecord"),
    ("3.3.2", "UserScramCredentialRecord"),
}  # fmt: skip


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def messages(name: str) -> Iterator[dict[str, Any]]:
    for vector in with_this_layout(name):
        if (vector["message"], vector["version"], vector["kind"], vector["idx"]) not in NOW_KNOWN:
            yield vector


def with_this_layout(name: str) -> Iterator[dict[str, Any]]:
    """The lines of a file, without those of messages whose layout a later release changed."""
    for vector in lines(name):
        if (vector["source"], vector["message"]) not in OTHER_LAYOUT:
            yield vector


def of_releases(what: str) -> list[str]:
    """The files "malformed" or "unsupported" of every release that has one."""
    return sorted(path.name for path in FOLDER.glob(f"{what}-*.jsonl.gz"))


@lru_cache(None)
def renamed(message: str) -> dict[str, list[tuple[str, Any, str]]]:
    """Path in newest JSON names -> (old name, versions, newest name)."""
    return {
        path: [(old, versions, field.json_name) for old, versions in field.old_names]
        for path, field in schema.message(message).walk()
        if field.old_names
    }


def newest(message: str, version: int, value: Any) -> Any:
    """A vector's JSON with the names of the newest release."""
    names = renamed(message)
    return _newest(value, names, version, "") if names else value


def _newest(value: Any, names: dict[str, list[tuple[str, Any, str]]], version: int, path: str) -> Any:
    if isinstance(value, list):
        return [_newest(item, names, version, path) for item in value]
    if not isinstance(value, dict):
        return value
    known = {}
    for full, rows in names.items():
        if full.rpartition(".")[0] == path:
            known.update({old: new for old, versions, new in rows if version in versions})
    out = {}
    for key, item in value.items():
        key = known.get(key, key)
        out[key] = _newest(item, names, version, f"{path}.{key}" if path else key)
    return out
