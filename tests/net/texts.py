"""Texts of kafka-broker-api-versions: tools of 2.8.2 to 4.3.0, and clients of 4.4.0, on brokers of 0.10.1 to 4.4.0."""

from __future__ import annotations

import re
import tarfile
from functools import cache

from tests.upstream.places import DATA

_LINE = re.compile(r"\t(?:\w+)\((\d+)\): (\d+)(?: to (\d+))?")


@cache
def texts() -> dict[tuple[str, str], str]:
    """(tool's release, broker's release) -> what was printed; "3.9.1zk" is 3.9.1 with ZooKeeper."""
    found = {}
    with tarfile.open(DATA / "versions.tar.xz") as tar:
        for member in tar:
            named = re.fullmatch(r"\./(?:tool|clients)-(.+)--broker-(.+)\.txt", member.name)
            if named:
                file = tar.extractfile(member)
                assert file is not None
                found[named[1], named[2]] = file.read().decode()
    return found


def ranges(text: str) -> dict[int, tuple[int, int]]:
    """API key -> (min, max) in such a text."""
    return {int(key): (int(low), int(high or low)) for key, low, high in _LINE.findall(text)}


def without_port(text: str) -> str:
    """The text with 0 for the ports of its brokers."""
    return re.sub(r"^(\S+):\d+ \(id: \d+", r"\1:0 (id: 0", text, flags=re.M)
