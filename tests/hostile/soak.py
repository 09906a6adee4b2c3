"""Ten million mutations under the sanitisers, logged: python -m tests.hostile.soak (make mutations).

Shards of messages and of batches run in processes of their own. Each is a line of the log, with its seed and numbers,
by which it runs again; a run that was ended goes on from its log, as long as the code is the same.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.hostile import sanitized
from tests.hostile.mutate_messages import GROUP

MODULES = {"messages": "tests.hostile.mutate_messages", "batches": "tests.hostile.mutate"}
SHARDS = {"messages": 160_000, "batches": 40_000}  # mutations of one process: about half a minute
Shard = tuple[str, int, int, int]  # kind, seed, first number, count


def shards(seed: int, totals: dict[str, int]) -> Iterator[Shard]:
    """The kinds take turns, so that a run cut short has seen both."""
    left, first = dict(totals), dict.fromkeys(totals, 0)
    while any(left.values()):
        for kind, size in SHARDS.items():
            count = min(size, left[kind])
            if count:
                yield kind, seed, first[kind], count
                left[kind] -= count
                first[kind] += count // GROUP if kind == "messages" else count  # messages come in groups


def run(folder: Path, shard: Shard) -> dict[str, Any]:
    """Runs a shard; its line of the log."""
    kind, seed, first, count = shard
    arguments = ["-m", MODULES[kind], "--seed", str(seed), "--first", str(first), "--count", str(count)]
    line: dict[str, Any] = {"kind": kind, "seed": seed, "first": first, "count": count, "build": folder.name}
    began = time.time()
    with tempfile.TemporaryDirectory() as scratch:
        progress = Path(scratch, "at")
        extra = ["--progress", str(progress), "--extensions", str(folder)]
        ran = sanitized.run(folder, *arguments, *extra, timeout=7200)
        line |= {"at": time.strftime("%FT%TZ", time.gmtime(began)), "seconds": round(time.time() - began)}
        if ran.returncode:
            (number,) = struct.unpack("<q", progress.read_bytes())
            line |= {"exit": ran.returncode, "number": number, "stderr": ran.stderr[-8000:]}
        else:
            line |= json.loads(ran.stdout.splitlines()[-1])
    return line


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=8_000_000)
    parser.add_argument("--batches", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--log", type=Path, default=sanitized.ROOT / "build" / "mutations.jsonl")
    chosen = parser.parse_args(arguments)
    folder = sanitized.extensions()
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    chosen.log.touch()
    done = [line for line in map(json.loads, chosen.log.read_text().splitlines()) if line["build"] == folder.name]
    passed = {(line["kind"], line["seed"], line["first"], line["count"]) for line in done if "exit" not in line}
    wanted = list(shards(chosen.seed, {"messages": chosen.messages, "batches": chosen.batches}))
    left = [shard for shard in wanted if shard not in passed]
    total = Counter({kind: sum(s[3] for s in wanted if s[0] == kind and s in passed) for kind in MODULES})
    failed = 0
    with ThreadPoolExecutor(chosen.processes) as pool, open(chosen.log, "a") as log:
        for line in pool.map(lambda shard: run(folder, shard), left):
            print(json.dumps(line), file=log, flush=True)
            if "exit" in line:
                failed += 1
                print(f"FOUND: {line}", flush=True)
            else:
                total[line["kind"]] += line["count"]
    print(f"{total['messages']} mutations of messages, {total['batches']} of batches, {failed} shards failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
