"""Texts of kafka-broker-api-versions: tools of 2.8.2 to 4.3.0, and clients of 4.4.0, on brokers of 0.10.1 to 4.4.0."""

from __future__ import annotations

import re
import tarfile
from functools import cache

from tools.places import DATA

_LINE = re.compile(r"\t(?:\w+)\((\d+)\): (\d+)(?: to (\d+))?")


@cache
def files() -> dict[str, str]:
    """Name -> text of everything in tests/data/versions.tar.xz."""
    with tarfile.open(DATA / "versions.tar.xz") as tar:
        found = ((member.name.removeprefix("./"), tar.extractfile(member)) for member in tar)
        return {name: file.read().decode() for name, file in found if file is not None}


@cache
def texts() -> dict[tuple[str, str], str]:
    """(tool's release, broker's release) -> what was printed; "3.9.1zk" is 3.9.1 with ZooKeeper."""
    named = ((re.fullmatch(r"(?:tool|clients)-(.+)--broker-(.+)\.txt", name), text) for name, text in files().items())
    return {(found[1], found[2]): text for found, text in named if found}


@cache
def nothings() -> dict[str, str]:
    """Release -> what NodeApiVersions.toString(true) of its kafka-clients says of a broker that offers nothing."""
    named = ((re.fullmatch(r"nothing-(.+)\.txt", name), text) for name, text in files().items())
    return {found[1]: text for found, text in named if found}


def ranges(text: str) -> dict[int, tuple[int, int]]:
    """API key -> (min, max) in such a text."""
    return {int(key): (int(low), int(high or low)) for key, low, high in _LINE.findall(text)}


def without_port(text: str) -> str:
    """The text with 0 for the ports of its brokers."""
    return re.sub(r"^(\S+):\d+ \(id: \d+", r"\1:0 (id: 0", text, flags=re.M)
