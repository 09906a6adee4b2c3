"""`kwire log show` beside kafka-dump-log --print-data-log: a million records to /dev/null, each in its own process.

python -m benchmarks.show [--records 1000000] [--rounds 5] [--release 4.3.0] [--out FOLDER]

The contestants take turns, so that a busy machine slows all alike; a ratio is taken within a round. Printed: the median
of the rounds, with minimum and maximum. The ratios that count are those of CPU time (all threads of the process, from
its start to its end); those of wall time are in the JSON too. kafka-dump-log runs with the JVM flags that its own
script (kafka-run-class.sh) gives it, its classes from Maven Central.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import kwire
from tools.kafka import maven, releases, tool

BAR = 5.0  # times as fast as kafka-dump-log
START = 1_700_000_000_000
JVM = (  # kafka-run-class.sh of 4.3: KAFKA_HEAP_OPTS, KAFKA_JVM_PERFORMANCE_OPTS
    "-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip


def write(path: Path, records: int) -> int:
    """Write a segment of JSON values of about 90 bytes in batches of 120; return its records."""
    dice = random.Random(1)
    now, offset = START, 0
    with path.open("wb") as file:
        while offset < records:
            rows = []
            for _ in range(min(120, records - offset)):
                now += dice.randrange(3)
                value = (f'{{"user":"user-{dice.randrange(10**6):06}","page":"/orders/{dice.randrange(10**7):07}",'
                         f'"ms":{dice.randrange(10**5):5},"note":"some text of about this size"}}')
                rows.append((now, b"k%08d" % dice.randrange(10**8), value.encode()))
            file.write(kwire.build_batch(rows, base_offset=offset))
            offset += len(rows)
    return offset


def contestants(path: Path, release: str, folder: Path) -> dict[str, list[str]]:
    """Name -> the command that prints the records of a segment."""
    ours = [sys.executable, "-m", "kwire", "log", "show", str(path)]
    jars = os.pathsep.join(releases.classpath(release))
    logging = releases.log_flags(release, folder, "OFF", "ERR")
    theirs = [maven.java(), *JVM, *logging, "-cp", jars, tool.main_class(release, "dump-log"), "--print-data-log",
              "--files", str(path)]
    return {"kwire log show": ours, "kwire log show --json": [*ours, "--json"],
            "kwire log show --format": [*ours, "--format", r"%t %p %o %k %s\n"],
            f"kafka-dump-log {release}": theirs}


def run(command: list[str]) -> tuple[float, float]:
    """(CPU seconds, seconds) of a process whose output goes to /dev/null."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--release", default="4.3.0")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "orders-0")
        folder.mkdir()
        path = folder / f"{0:020}.log"
        records = write(path, arguments.records)
        commands = contestants(path, arguments.release, Path(name))
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for command in commands.values():  # the page cache, and Python's .pyc files
            run(command)
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                times[name].append(run(command))
    *ours, theirs = commands
    table = Table(title=f"{records:,} records to /dev/null")
    for head in ("command", "CPU s", "wall s", f"CPU: {theirs} / it"):
        table.add_column(head, justify="left" if head == "command" else "right")
    ratios = {name: [other[0] / own[0] for own, other in zip(times[name], times[theirs], strict=True)] for name in ours}
    walls = {name: [other[1] / own[1] for own, other in zip(times[name], times[theirs], strict=True)] for name in ours}
    for name in commands:
        cpu, wall = (statistics.median(column) for column in zip(*times[name], strict=True))
        shown = "" if name == theirs else (
            f"{statistics.median(ratios[name]):.2f}  ({min(ratios[name]):.2f}..{max(ratios[name]):.2f})")
        table.add_row(name, f"{cpu:.2f}", f"{wall:.2f}", shown)
    console.print(table)
    good = statistics.median(ratios[ours[0]]) >= BAR
    console.print(f"required: {BAR:.1f} for {ours[0]}: {'[green]met' if good else '[red]NOT met'}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "show.json").write_text(json.dumps({
        "machine": {"processor": platform.processor() or platform.machine(), "python": sys.version},
        "records": records, "seconds": times, "cpu": ratios, "wall": walls,
    }, indent=1))  # fmt: skip
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
