"""SECURITY.md and the code: each limit's number is the code's, each test and harness that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kwire
from kwire import properties
from kwire.capture import exchange, frame_files, framing, pairing, recorder, tcp_reassembly, upgrade_audit
from kwire.cli import argparse4j, input_file
from kwire.compression import zstd
from kwire.fleet import cluster as fleet_cluster
from kwire.fleet import faults, fetch_sessions, fleet, proxy
from kwire.fleet.apis import acls, configs, fetch
from kwire.fleet.logs import partition_log
from kwire.net import cluster, sasl
from kwire.storage.batches import scanner
from kwire.storage.isolation import transactions
from kwire.storage.metadata import metadata_log, replay
from kwire.storage.places import discovery, filesystem, path_patterns
from kwire.storage.reading import stats, verify
from kwire.storage.salvage import salvage
from kwire.storage.side_files import checkpoints, index_checks, indexes
from kwire.storage.writing import producer_states
from tests.hostile import plants
from tools.places import ROOT

pytestmark = pytest.mark.quick
TEXT = (ROOT / "SECURITY.md").read_text()
GiB, MiB = 1 << 30, 1 << 20


def rows(after: str) -> dict[str, list[str]]:
    """The first table after a text: first cell -> the other cells."""
    table = TEXT[TEXT.index(after) :].split("\n\n|", 1)[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return {first.lstrip("| "): rest for first, *rest in cells}


def kinds() -> dict[str, str]:
    """Each kind of promise -> what it says that tests it."""
    promised = TEXT.partition("## What is promised")[2].partition("\n## ")[0]
    sections = [section.partition("\n")[::2] for section in promised.split("\n#### ")[1:]]
    return {kind: text.partition("\nTested by ")[2].partition("\n\n")[0] for kind, text in sections}


def pool() -> tuple[int, int]:
    """Buffers and bytes of the pool."""
    found = dict(re.findall(r"#define KW_POOL_(\w+) (.*)", (ROOT / "kwire_c/core/buffer.h").read_text()))
    return int(found["SLOTS"]), 256 * MiB if found["BYTES"] == "((size_t)256 << 20)" else 0


def spare() -> list[int]:
    """Bytes of the freed structs of a class, and of all."""
    text = (ROOT / "kwire_c/core/instances.h").read_text()
    return [int(mib) * MiB for mib in re.findall(r"#define KW_(?:ALL_)?SPARE_BYTES \((\d+) << 20\)", text)]


# the first words of a limit -> its numbers in the code, in the order of the table
LIMITS: dict[str, list[int]] = {
    "ACLs in a `Fleet`": [acls._MOST_MATCHES],
    "bytes that one batch decompresses to": [kwire.build_info()["limits"]["max_batch_bytes"]],
    "bytes of one frame": [kwire.build_info()["limits"]["max_frame_bytes"]],
    "memory kept for the next call": [*pool(), zstd._MAX_KEPT, *spare()],
    "producers with transactions": [transactions.MOST_PRODUCERS],
    "aborted transactions": [transactions.MOST_ABORTED],
    "records of one metadata transaction": [replay.MOST_WAITING, metadata_log.MOST_COMPRESSED],
    "bytes of an index": [indexes.MOST_BYTES, checkpoints.MOST_TEXT],
    "bytes of a server's properties file": [properties.MOST_BYTES, argparse4j._MOST_TEXT],
    "bytes of a client's properties file": [properties.MOST_BYTES],
    "headers, and bytes of batches": [4, 4, index_checks._SPARE_BYTES],
    "search for valid batches": [sum(scanner._SHARES), 4 * sum(scanner._SHARES) * MiB],
    "bytes of a batch in a file": [scanner.KEPT_BYTES],
    "bytes of a decompressed .gz": [filesystem.MOST_UNPACKED, input_file.MOST_UNPACKED],
    "bytes of one message, line": [input_file.MOST_HELD],
    "characters of a pattern": [discovery._MOST_SIGNS],
    "partitions that one request": [fleet_cluster.MOST_PARTITIONS],
    "configs in a": [configs._MOST_CONFIGS, configs._LONGEST_VALUE],
    "records of a batch that a": [partition_log.MOST_REASONS],
    "events of a": [faults.MOST_EVENTS, faults.MOST_EVENT_TEXT],
    "bytes of a `Fleet`'s answer": [fetch.MOST_BYTES],
    "fetch sessions of a node": [
        fetch_sessions.SLOTS, fetch_sessions.MOST_OF_ONE, fetch_sessions.MOST_PARTITIONS],
    "nodes of a": [fleet.MOST_NODES],
    "topic ids whose names": [proxy.MOST_NAMES],
    "brokers of the cluster that": [proxy.MOST_LISTENERS, proxy.MOST_WAITING],
    "characters of all the paths": [path_patterns.MOST_CHARACTERS],
    "producers, epochs in": [stats.MOST_PRODUCERS, stats.MOST_EPOCHS],
    "producers of a partition that": [producer_states.MOST_PRODUCERS],
    "regions lost": [salvage.MOST_LISTED],
    "findings of": [verify.MOST_FINDINGS],
    "open connections": [tcp_reassembly._MOST_CONNECTIONS],
    "requests that wait": [framing.MOST_WAITING, framing.MOST_HELD],
    "frames that the tap has begun": [framing.MOST_HELD],
    "kinds of losses": [pairing._MOST_KINDS],
    "bytes of a frame that the tap": [recorder._MOST_DECODED],
    "characters of the name of": [exchange._MOST_NAME],
    "brokers of a cluster": [cluster.MOST_BROKERS],
    "bytes of a SASL token": [sasl._MOST_RECEIVED],
    "uses, losses of an audit": [upgrade_audit._MOST_USES, upgrade_audit._MOST_LOST],
}
# in C, or no number
ELSEWHERE = (
    "bytes of one Arrow column", "outer values that", "bytes of a string", "topics, records, groups",
    "elements of an array", "connections of a",
)  # fmt: skip


def numbers(cell: str) -> list[int]:
    """Those of a cell, bytes where it says KiB and the like."""
    units = {"KiB": 1 << 10, "MiB": MiB, "GiB": GiB}
    return [int(digits.replace(",", "")) * units.get(unit, 1)
            for digits, unit in re.findall(r"(\d[\d,]*)(?: ([KMG]iB))?", cell)]


@pytest.mark.parametrize("limit", rows("## Limits"))
def test_a_limit_is_that_of_the_code(limit: str) -> None:
    known = [words for words in LIMITS if limit.startswith(words)]
    assert bool(known) != limit.startswith(ELSEWHERE), f"{limit}: which constant is it?"
    for words in known[-1:]:
        assert numbers(rows("## Limits")[limit][0]) == LIMITS[max(known, key=len)], words


def test_every_limit_is_in_the_table() -> None:
    listed = rows("## Limits")
    assert [words for words in LIMITS if not any(limit.startswith(words) for limit in listed)] == []
    assert frame_files._MOST_CONNECTIONS == tcp_reassembly._MOST_CONNECTIONS


def named() -> set[Path]:
    """The modules, tests and folders that SECURITY.md names."""
    found = {Path(*name.split(".")).with_suffix(".py") for name in re.findall(r"tests\.[a-z_.]+[a-z_]", TEXT)}
    found |= {Path(name) for name in re.findall(r"tests/[a-z_/]+\.(?:py|jsonl\.xz)", TEXT)}
    return found | {Path("tests/hostile", f"{name}.py") for name in re.findall(r"`(test_[a-z_]+)`", TEXT)}


@pytest.mark.checkout
@pytest.mark.parametrize("path", sorted(named()), ids=str)
def test_what_is_named_exists(path: Path) -> None:
    assert (ROOT / path).exists() or (ROOT / path.with_suffix("")).is_dir()


@pytest.mark.checkout
def test_each_kind_has_a_harness_with_a_planted_fault() -> None:
    """In tests.hostile.plants, or put in by the tests themselves."""
    planted = {one.harness.removesuffix(".py").rpartition("/")[2] for one in plants.PLANTS}
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "def test_a_fault_is_found" in (text := path.read_text()):
            planted |= {name.removeprefix("test_") for name in [path.stem, *re.findall(r"\b(\w+)\.rounds\(", text)]}
    assert len(kinds()) > 25
    for kind, tested in kinds().items():
        harnesses = re.findall(r"(?:tests\.hostile\.|/|`)(test_[a-z_]+|[a-z_]+)(?:\.py)?`", tested)
        assert harnesses and planted.intersection(harnesses), f"{kind}: none of {harnesses} has a planted fault"
