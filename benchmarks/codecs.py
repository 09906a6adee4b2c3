"""kwire's codecs compared with the libraries they choose from: python -m benchmarks.codecs [CODEC ...] [--rounds 15].

The libraries take turns to decompress the same payload; a ratio is taken within a round, by CPU time. Printed: kwire's
time for a batch, and for every library how many times as fast kwire is: the median, minimum and maximum. Libraries
that have no limit on the output, or skip checks that Kafka makes, are included all the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cramjam
import lz4.block
import lz4.frame
import zstandard
from isal import igzip_lib, isal_zlib

from benchmarks.workloads import START, W1
from kwire.compression import compress, decompress
from kwire_c.codecs import CODECS as NAMES

SIZES = {"16 KiB": 16 << 10, "1 MiB": 1 << 20}
LIMIT = 64 << 20
SLICE_NS = 8_000_000  # CPU time of a contestant in a round

Run = Callable[[], Any]


def plain(size: int) -> bytes:
    """The uncompressed records of one batch of W1, about size bytes."""
    from kwire import build_batch

    (rows, *_) = replace(W1, batch=size).rows()
    assert rows[0][0] >= START
    batch: bytes = build_batch(rows)
    return batch[61:]


def contestants(codec: str, text: bytes) -> dict[str, Run]:
    """kwire first, then every library; each function decompresses one batch."""
    packed = compress(codec, text)
    runs: dict[str, Run] = {"kwire": partial(decompress, codec, packed, limit=LIMIT)}
    size = len(text)
    if codec == "gzip":
        runs |= {
            "isal.isal_zlib": partial(isal_zlib.decompress, packed, 31),
            "isal.igzip_lib": partial(igzip_lib.decompress, packed, igzip_lib.DECOMP_GZIP, 15, size),
            "zlib": partial(zlib.decompress, packed, 31),
            "cramjam": partial(cramjam.gzip.decompress, packed),
        }
    elif codec == "snappy":
        raw = bytes(cramjam.snappy.compress_raw(text))
        runs |= {
            "cramjam, one raw block": partial(cramjam.snappy.decompress_raw, raw),
            "cramjam, raw into": lambda: cramjam.snappy.decompress_raw_into(raw, bytearray(size)),
        }
    elif codec == "lz4":
        runs |= {
            "lz4.frame": partial(lz4.frame.decompress, packed),
            "cramjam": partial(cramjam.lz4.decompress, packed),
            "cramjam, into": lambda: cramjam.lz4.decompress_into(packed, bytearray(size)),
        }
    else:
        context = zstandard.ZstdDecompressor()
        runs |= {
            "zstandard, one context": partial(context.decompress, packed, size),
            "zstandard, new contexts": lambda: zstandard.ZstdDecompressor().decompress(packed, size),
            "cramjam": partial(cramjam.zstd.decompress, packed),
            "cramjam, into": lambda: cramjam.zstd.decompress_into(packed, bytearray(size)),
        }
    for name, run in runs.items():
        out = run()
        if not isinstance(out, int) and bytes(out) != text:
            raise RuntimeError(f"{name} decompressed to other bytes")
    return runs


def once(run: Run, times: int) -> float:
    """Nanoseconds of CPU time for a call."""
    start = time.process_time_ns()
    for _ in range(times):
        run()
    return (time.process_time_ns() - start) / times


def race(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """Nanoseconds for a batch, one value for each round."""
    times = {name: max(1, int(SLICE_NS / max(once(run, 3), 1))) for name, run in runs.items()}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            taken[name].append(once(runs[name], times[name]))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("codecs", nargs="*", default=NAMES[1:], metavar="CODEC", help="gzip snappy lz4 zstd")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "codecs.json")
    arguments = parser.parse_args()
    results = []
    for codec in arguments.codecs:
        for name, size in SIZES.items():
            taken = race(contestants(codec, plain(size)), arguments.rounds)
            ours = taken["kwire"]
            print(f"{codec}, {name}: kwire {statistics.median(ours) / 1000:,.1f} us for a batch")
            ratios = {}
            for other, theirs in taken.items():
                if other != "kwire":
                    ratios[other] = by_round = [b / a for a, b in zip(ours, theirs, strict=True)]
                    print(f"  {other:24} {statistics.median(by_round):.2f}  ({min(by_round):.2f}..{max(by_round):.2f})")
            results.append({"codec": codec, "batch": size, "ns": taken, "ratios": ratios})
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1))
    print(f"written: {arguments.out}")


if __name__ == "__main__":
    main()
