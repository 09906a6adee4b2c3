"""Records a second through embedded brokers: python -m benchmarks.fleet [--passes 5] [--rounds 5] [--core 0].

One confluent-kafka client (librdkafka) produces 100,000 records of 100 bytes to four partitions and reads them back,
so many times (the mock cluster keeps no more), from
kwire's fleet, librdkafka's mock cluster and franz-go's kfake in turn: a busy machine slows all alike.
--core: the processor that the client and the broker share. Printed, as the median of the rounds with minimum and
maximum: records a second of the clock, and of the CPU time of client and broker together, which is what one core would
do with nothing else to do. Then how long a node takes until it is up, and how many connections one holds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.peers.contest import Absent, build, build_folder, tool
from kwire import messages
from kwire.codec.frames import encode_request, pack_frame
from kwire.fleet import Fleet

HERE = Path(__file__).parent
RECORDS, SIZE = 100_000, 100  # of one pass; bytes of a record's value
BAR = 200_000  # records a second
CONNECTIONS = 1000


def kfake() -> list[str]:
    """The command of kfake, built here."""
    binary = build_folder("kfake") / "kfake"
    build([tool("go", "golang"), "build", "-o", str(binary), "."], HERE / "kfake")
    return [str(binary)]


def brokers() -> dict[str, list[str]]:
    """Name -> command, of those that can run here."""
    there = {"kwire": [sys.executable, "-m", "kwire", "fleet", "--topic", "bench:4"]}
    there["librdkafka mock"] = [sys.executable, "-m", "benchmarks.fleet.mock"]
    try:
        there["kfake"] = kfake()
    except Absent as why:
        print(f"without kfake: {why}")
    return there


@contextmanager
def running(command: list[str]) -> Iterator[tuple[psutil.Process, str]]:
    """A broker and its address."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield psutil.Process(process.pid), process.stdout.readline().strip()
        finally:
            process.kill()


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(command: list[str], passes: int) -> dict[str, tuple[float, float]]:
    """One round: work -> (records a second of the clock, records a second of CPU time of both sides)."""
    wall, cpu = {"produce": 0.0, "fetch": 0.0}, {"produce": 0.0, "fetch": 0.0}
    with running(command) as (broker, address):
        client = [sys.executable, "-m", "benchmarks.fleet.client", address, str(RECORDS), str(SIZE), str(passes)]
        before = cpu_of(broker)
        with subprocess.Popen(client, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                row, after = json.loads(line), cpu_of(broker)
                wall[row["work"]] += row["wall"]
                cpu[row["work"]] += row["cpu"] + after - before
                before = after
        if process.returncode:
            sys.exit(f"the client failed on {command[-1]}")
    return {work: (RECORDS * passes / wall[work], RECORDS * passes / cpu[work]) for work in wall}


def start_times(count: int) -> list[float]:
    """Milliseconds until a node that is not there answers its first request."""
    request = pack_frame(encode_request(messages.MetadataRequest(topics=None), 8, correlation_id=1))
    times = []
    for _ in range(count):

        async def start() -> float:
            begun = time.perf_counter()
            async with Fleet() as fleet:
                reader, writer = await asyncio.open_connection(*fleet.bootstrap.split(":"))
                writer.write(request)
                await reader.readexactly(4)
                taken = time.perf_counter() - begun
                writer.close()
            return taken * 1000

        times.append(asyncio.run(start()))
    return times


async def hold(connections: int) -> int:
    """How many of so many connections, all open at once, get an answer from one node."""
    request = pack_frame(encode_request(messages.MetadataRequest(topics=None), 8, correlation_id=1))
    async with Fleet() as fleet:
        held = [await asyncio.open_connection(*fleet.bootstrap.split(":")) for _ in range(connections)]
        for _, writer in held:
            writer.write(request)
        sizes = await asyncio.gather(*(reader.readexactly(4) for reader, _ in held))
        for _, writer in held:
            writer.close()
    return len(sizes)


def main() -> int:
    """Measure; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    there = brokers()
    rates: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        for name, command in there.items():
            for work, rate in measure(command, options.passes).items():
                rates.setdefault((work, name), []).append(rate)
    print(f"{'':28}{'records/s, clock':>32}{'records/s of CPU, both sides':>34}")
    for (work, name), found in sorted(rates.items()):
        columns = ""
        for clock, width in ((0, 32), (1, 34)):
            row = [rate[clock] for rate in found]
            columns += f"{statistics.median(row):,.0f} ({min(row):,.0f}..{max(row):,.0f})".rjust(width)
        print(f"{work:10}{name:18}{columns}")
    times = start_times(20)
    print(f"a node is up after {statistics.median(times):.1f} ms ({min(times):.1f}..{max(times):.1f})")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * CONNECTIONS)), hard))
    print(f"{asyncio.run(hold(CONNECTIONS)):,} connections held and answered")
    ours = {work: statistics.median(rate[1] for rate in found) for (work, name), found in rates.items()
            if name == "kwire"}
    return int(any(rate < BAR for rate in ours.values()))


if __name__ == "__main__":
    sys.exit(main())
