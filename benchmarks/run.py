"""kwire compared with its peers: python -m benchmarks.run [WORKLOAD ...] [--rounds 12] [--slice 60] [--out FOLDER].

The contestants take turns: in each round each of them works for a short slice, so that a busy machine slows all alike;
a ratio is taken within a round. Printed: the median of the rounds' ratios, with minimum and maximum. The ratios that
count are those of CPU time (all threads of a contestant's process); those of wall time are in the JSON too.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import footprint
from benchmarks.bars import BARS, Bar
from benchmarks.messages import M
from benchmarks.peers import children, messages, python
from benchmarks.peers.contest import Absent, Contestant, Slice, Work
from benchmarks.workloads import ALL, W1, W2, W3, W4

SLOW = {"kafka-python"}  # only in the uncompressed workloads


@dataclass
class Result:
    """One kind of work on one workload: the slices of each contestant, one for each round."""

    workload: str
    work: str
    slices: dict[str, list[Slice]] = field(default_factory=dict)

    def ratios(self, ours: str, theirs: str, clock: str = "cpu") -> list[float]:
        """How many times as fast ours is, round by round, by "cpu" or "wall" time."""
        return [
            (getattr(b, clock) / b.passes / b.items) / (getattr(a, clock) / a.passes / a.items)
            for a, b in zip(self.slices[ours], self.slices[theirs], strict=True)
        ]

    def rate(self, name: str) -> float:
        """Items in a second of CPU time, median."""
        return statistics.median(s.items * s.passes / s.cpu * 1e9 for s in self.slices[name])


def gather(makers: Iterable[Callable[[], Contestant]], console: Console) -> list[Contestant]:
    """The peers that can run here; prints a line for each that cannot."""
    contestants: list[Contestant] = []
    for make in makers:
        try:
            contestants.append(make())
        except (Absent, ImportError) as why:
            console.print(f"[yellow]without {make.__name__}: {why}")
    return contestants


def compete(
    workload: Work, work: str, contestants: list[Contestant], rounds: int, slice_ms: int, path: Path
) -> Result:
    """All contestants that can do the work, in turns. Raises RuntimeError if they read different records."""
    result = Result(workload.name, work)
    able = [c for c in contestants if work in c.works]
    passes = {}
    checks: dict[str, int] = {}
    for contestant in able:
        contestant.load(workload, path)
        first = contestant.run(work, 1)
        first = contestant.run(work, 2)
        passes[contestant.name] = max(1, round(slice_ms * 1e6 * 2 / max(first.cpu, first.wall / 10)))
        if work == "decode":
            checks[contestant.name] = first.check
            if first.items != workload.records():
                raise RuntimeError(f"{contestant.name} read {first.items} records of {workload.records()}")
        written = workload.records() * len(workload.data())
        if work == "message-encode" and first.check != written:
            raise RuntimeError(f"{contestant.name} wrote {first.check} bytes of {written}")
    if len(set(checks.values()) - {0}) > 1:
        raise RuntimeError(f"the contestants read different records: {checks}")
    for i in range(rounds):
        for contestant in able[i % len(able) :] + able[: i % len(able)]:
            slices = result.slices.setdefault(contestant.name, [])
            slices.append(contestant.run(work, passes[contestant.name]))
    return result


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f}  ({min(ratios):.2f}..{max(ratios):.2f})"


def table(result: Result) -> Table:
    """A table with one line for each contestant: its speed, and how many times as fast each of kwire's ways is."""
    ours = [name for name in result.slices if name.startswith("kwire")]
    output = Table(title=f"{result.workload}: {result.work}")
    output.add_column("contestant")
    output.add_column("items / CPU second", justify="right")
    for name in ours:
        output.add_column(f"{name} /", justify="right")
    for name in sorted(result.slices, key=result.rate, reverse=True):
        cells = ["" if way == name else spread(result.ratios(way, name)) for way in ours]
        output.add_row(name, f"{result.rate(name):,.0f}", *cells)
    return output


def judge(results: list[Result], bars: list[Bar]) -> Table:
    """The bars and whether they are met, by the median."""
    output = Table(title="Bars")
    for head in ("bar", "required", "measured", "met"):
        output.add_column(head)
    by = {(r.workload, r.work): r for r in results}
    for bar in bars:
        result = by.get((bar.workload, bar.work))
        if result is None or bar.ours not in result.slices or bar.theirs not in result.slices:
            continue
        ratios = result.ratios(bar.ours, bar.theirs)
        good = statistics.median(ratios) >= bar.least
        name = f"{bar.workload} {bar.work}: {bar.ours} / {bar.theirs}"
        output.add_row(name, f"{bar.least:.1f}", spread(ratios), "[green]yes" if good else "[red]NO")
    return output


def as_json(results: list[Result]) -> dict[str, object]:
    return {
        "machine": {"processor": platform.processor() or platform.machine(), "python": sys.version},
        "results": [
            {
                "workload": r.workload,
                "work": r.work,
                "slices": {name: [asdict(s) for s in slices] for name, slices in r.slices.items()},
                "ratios": {
                    f"{ours} / {theirs}": {
                        clock: {"median": statistics.median(x), "min": min(x), "max": max(x)}
                        for clock in ("cpu", "wall") for x in [r.ratios(ours, theirs, clock)]
                    }
                    for ours in r.slices if ours.startswith("kwire") for theirs in r.slices if theirs != ours
                },
            }
            for r in results
        ],
    }  # fmt: skip


def plot(results: list[Result], path: Path) -> None:
    """Plot the speed of every contestant as bars, with a panel for each workload and work."""
    from matplotlib.figure import Figure

    across = min(3, len(results))
    down = -(-len(results) // across)
    figure = Figure(figsize=(5.5 * across, 0.9 + 2.6 * down), layout="constrained")
    for i, result in enumerate(results, 1):
        axes = figure.add_subplot(down, across, i)
        names = sorted(result.slices, key=result.rate)
        rates = [[s.items * s.passes / s.cpu * 1e3 for s in result.slices[name]] for name in names]
        middle = [statistics.median(r) for r in rates]
        ends = [[m - min(r) for m, r in zip(middle, rates, strict=True)],
                [max(r) - m for m, r in zip(middle, rates, strict=True)]]  # fmt: skip
        colours = ["tab:blue" if name.startswith("kwire") else "tab:gray" for name in names]
        axes.barh(names, middle, xerr=ends, color=colours, ecolor="black", capsize=2)
        axes.set_title(f"{result.workload}: {result.work}")
        axes.set_xlabel("million items / CPU second")
    figure.savefig(path)


def plan(chosen: list[str]) -> list[tuple[Work, str]]:
    """The (workload, work) pairs of the names: W1, W2, W3, W4, M, "columns_of", "crc32c", one of W3; all by default."""
    every: dict[str, list[tuple[Work, str]]] = {
        "W1": [(W1, "decode")],
        "W2": [(W2, "decode")],
        "W3": [(work, "decode") for work in W3],
        "W4": [(work, "encode") for work in W4],
        "crc32c": [(W1, "crc32c-16k"), (W1, "crc32c-1m")],
        "M": [(work, f"message-{way}") for work in M for way in ("decode", "encode")],
        "columns_of": [(M[0], "message-columns")],
    }
    pairs: list[tuple[Work, str]] = []
    for name in chosen or list(every):
        if name == "footprint":
            continue
        pairs += every[name] if name in every else [(ALL[name], "decode")]
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="W1..W4 crc32c M columns_of footprint, or one of W3 by name")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--slice", type=int, default=60, help="milliseconds of CPU time for a contestant in a round")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", action="append", metavar="PEER", help="java, rust, go, aiokafka ...; may be repeated")
    arguments = parser.parse_args()
    console = Console()
    if not arguments.workloads or "footprint" in arguments.workloads:
        console.print(footprint.table())
        if arguments.workloads == ["footprint"]:
            return
    makers: list[Callable[[], Contestant]] = [children.java, children.rust, children.go]
    makers += [python.aiokafka, python.kafka_python, *python.CHECKSUMS, messages.kio, messages.kafka_python]
    if arguments.only:
        makers = [make for make in makers if any(make.__name__.startswith(name) for name in arguments.only)]
    contestants: list[Contestant] = [*python.kwires(), *messages.kwires(), *gather(makers, console)]
    results: list[Result] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for workload, work in plan(arguments.workloads):
                path = Path(folder) / "data"
                path.write_bytes(workload.data())
                able = [c for c in contestants if workload not in W3 or c.name not in SLOW]
                results.append(compete(workload, work, able, arguments.rounds, arguments.slice, path))
                console.print(table(results[-1]))
    finally:
        for contestant in contestants:
            contestant.close()
    console.print(judge(results, BARS))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "peers.json").write_text(json.dumps(as_json(results), indent=1))
    plot(results, arguments.out / "peers.png")
    console.print(f"written: {arguments.out / 'peers.json'}, {arguments.out / 'peers.png'}")


if __name__ == "__main__":
    main()
