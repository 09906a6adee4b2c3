"""Plots the statistics of log segments, and what other codecs would give, as one figure."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import click

from kwire.cli.terminal import UNITS, amount, counted, not_to_terminal, when
from kwire.output import new_file
from kwire.storage.reading.stats import TimeBins
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage.reading.stats import SegmentStats
    from kwire.storage.recompression import WhatIf

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_370_764_800_000  # milliseconds: the start of 9999, the last year of datetime
_TITLE = 100  # characters of a line of it
_INK, _BLUE, _PALE = "#222222", "#2a6f97", "#a9d6e5"


def draw(
    total: SegmentStats, parts: list[SegmentStats], path: str, names: str = "", *, inputs: Iterable[str] = (),
    force: bool = False,
) -> None:
    """Plot records over time, bytes by codec, batch sizes and the largest topics to a PNG, SVG or PDF file.

    path: "-" is a PNG on standard output; names: of what was read, for the title; inputs, force: as in
    new_file. Raises ValueError for any other file extension; without matplotlib ImportError, which
    names the extra to install.
    """
    figure, kind = _figure(path)
    grid = figure.subplots(2, 2)
    stored = sum(codec.stored for codec in total.codecs.values())
    figure.suptitle(
        f"{_title(names)}{counted(total.records, 'record')} in {counted(total.batches, 'batch', 'batches')},"
        f" {amount(stored)} ({amount(total.plain)} uncompressed), {counted(total.segments, 'segment')}\n"
        f"{when(total.min_timestamp)} to {when(total.max_timestamp)} UTC",
        fontsize=13, color=_INK,
    )  # fmt: skip
    _times(grid[0][0], total)
    _codecs(grid[0][1], total)
    _sizes(grid[1][0], total)
    _topics(grid[1][1], parts)
    _save(figure, grid.flat, path, kind, inputs=inputs, force=force)


def _figure(path: str) -> tuple[Any, str]:
    """(a new figure, "png", "svg" or "pdf"). Raises as draw."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ImportError(f"{path}: plots need matplotlib: pip install 'kwire[report]'") from error
    kind = "png" if path == "-" else path.rpartition(".")[2].lower()
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"{path}: unsupported plot format, expected .png, .svg or .pdf")
    return Figure(figsize=(12, 8), dpi=120, layout="constrained"), kind


def _save(figure: Any, grid: Iterable[Any], path: str, kind: str, *, inputs: Iterable[str], force: bool) -> None:
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
        axes.set_axisbelow(True)
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about characters that the font lacks
        figure.savefig(picture, format=kind)  # before the file is begun: without memory, OpenBLAS ends the process
    with new_file(path, inputs=inputs, force=force) as file:
        file.write(picture.getbuffer())


def check(path: str, as_value: bool) -> None:
    """Refuse a plot that cannot be made, before what it shows is read. as_value: JSON goes to standard output.

    Raises click.UsageError, ImportError.
    """
    if as_value and path == "-":
        raise click.UsageError("--json and --plot - cannot be used together: both write to standard output")
    try:
        _figure(path)
    except ValueError as error:
        raise click.UsageError(f"--plot {error}") from None
    not_to_terminal(path, "--plot -")


def _title(names: str) -> str:
    """A first line that names what was read; its end is cut to fit."""
    text = printable(names)
    return text and (text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…").replace("$", r"\$") + "\n"


def draw_whatif(
    result: WhatIf, path: str, names: str = "", *, inputs: Iterable[str] = (), force: bool = False
) -> None:
    """Plot the size with each codec and level, and the ratio over the speed, to a PNG, SVG or PDF file; as draw."""
    figure, kind = _figure(path)
    from matplotlib.ticker import LogLocator, NullLocator

    left, right = figure.subplots(1, 2)
    figure.suptitle(
        f"{_title(names)}{counted(result.records, 'record')} in {counted(result.batches, 'batch', 'batches')},"
        f" {amount(result.stored)} now, {amount(result.plain)} uncompressed", fontsize=13, color=_INK)
    outcomes = [one for one in result.outcomes if one.batches]
    left.set_title("Size with each codec and level", loc="left", fontsize=11)
    right.set_title("Ratio over speed", loc="left", fontsize=11)
    if not outcomes:
        _empty(left, "no batches")
        _empty(right, "no batches")
    else:
        rows = outcomes[::-1]
        bars = left.barh(range(len(rows)), [one.size for one in rows], color=_BLUE, height=0.7)
        left.bar_label(bars, [f" {amount(one.size)}, {one.ratio:.2f}x" for one in rows], fontsize=8)
        left.axvline(result.stored, color="#777777", linestyle="--", linewidth=1)
        left.annotate("now", (result.stored, len(rows) - 0.45), xytext=(3, 0), textcoords="offset points", fontsize=8,
                      color="#777777")
        left.set_yticks(range(len(rows)), [str(one) for one in rows])
        left.set_xlim(0, 1.35 * max(result.stored, *(one.size for one in rows)))
        _in_bytes(left.xaxis, left.get_xlim()[1])
        left.grid(axis="x", color="#e5e5e5")
        timed = [one for one in outcomes if one.compress_seconds]
        for codec, color in zip(("gzip", "snappy", "lz4", "zstd"), ("#bc4749", "#6a994e", _BLUE, "#7b2cbf"),
                                strict=True):
            points = sorted((one.speed(one.compress_seconds) / 1e6, one.ratio, one.level) for one in timed
                            if one.codec == codec)
            if points:
                right.plot([x for x, _, _ in points], [y for _, y, _ in points], "o-", color=color, label=codec)
                for x, y, level in points:
                    right.annotate("" if level is None else str(level), (x, y), xytext=(4, 4), fontsize=8,
                                   textcoords="offset points")
        if timed:
            right.set_xscale("log")
            right.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5), numticks=8))
            right.xaxis.set_minor_locator(NullLocator())
            right.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            _legend(right, 4)
            right.set_xlabel("compressed, MB/s of uncompressed bytes in one thread", fontsize=9)
            right.set_ylabel("uncompressed / compressed", fontsize=9)
            right.grid(color="#e5e5e5")
        else:
            _empty(right, "nothing was compressed")
    _save(figure, (left, right), path, kind, inputs=inputs, force=force)


def _empty(axes: Any, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color="#777777")
    axes.set_xticks([])
    axes.set_yticks([])


def _times(axes: Any, total: SegmentStats) -> None:
    from matplotlib import dates

    axes.set_title("Records over time (UTC)", loc="left", fontsize=11)
    width = total.times.width
    times = TimeBins(width, {at: count for at, count in total.times.bins.items() if 0 <= at * width < _LAST})
    left = sum(total.times.bins.values()) - sum(times.bins.values())
    if left:
        axes.set_title(f"Records over time (UTC), without {left:,} past the year 9999", loc="left", fontsize=11)
    if not times.bins:
        _empty(axes, "no timestamps between 1970 and 9999" if left else "no timestamps")
        return
    while len(times.bins) > 1 and max(times.bins) - min(times.bins) > 120:
        times.widen()
    known = sorted(times.bins)
    convert: Any = dates.date2num
    edges = [(at * times.width, min((at + 1) * times.width, _LAST)) for at in known]
    where = [convert(_EPOCH + timedelta(milliseconds=start)) for start, _ in edges]
    until = [convert(_EPOCH + timedelta(milliseconds=end)) for _, end in edges]
    widths = [end - start for start, end in zip(where, until, strict=True)]
    axes.bar(where, [times.bins[at] for at in known], width=widths, align="edge", color=_BLUE)
    axes.margins(x=0)  # else the axis may go past the last year of datetime
    if len(known) == 1:
        half = times.width * 5
        low, high = max(0, edges[0][0] - half), min(_LAST, edges[0][0] + 2 * half)
        axes.set_xlim(*(convert(_EPOCH + timedelta(milliseconds=edge)) for edge in (low, high)))
    locator: Any = cast(Any, dates.AutoDateLocator)(minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(cast(Any, dates.ConciseDateFormatter)(locator))
    axes.set_ylabel(f"records in {_span(times.width)}", fontsize=9)
    _in_counts(axes.yaxis)
    axes.grid(axis="y", color="#e5e5e5")


def _span(milliseconds: int) -> str:
    for unit, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds} ms"


def _codecs(axes: Any, total: SegmentStats) -> None:
    axes.set_title("Bytes by codec", loc="left", fontsize=11)
    if not total.codecs:
        _empty(axes, "no batches")
        return
    names = sorted(total.codecs, key=lambda name: -total.codecs[name].plain)
    for at, name in enumerate(names):
        codec = total.codecs[name]
        axes.bar(at - 0.2, codec.plain, 0.4, color=_PALE, label="uncompressed" if not at else None)
        axes.bar(at + 0.2, codec.stored, 0.4, color=_BLUE, label="stored" if not at else None)
        axes.annotate(f"{codec.ratio:.2f}x", (at + 0.2, codec.stored), xytext=(0, 3), textcoords="offset points",
                      ha="center", fontsize=9, color=_INK)
    largest = max(codec.plain for codec in total.codecs.values())
    if largest > 50 * max(1, min(codec.stored for codec in total.codecs.values())):
        axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, max(len(names) - 0.4, 1.4))
    _in_bytes(axes.yaxis, 1.12 * largest, linear=axes.get_yscale() == "linear")
    axes.grid(axis="y", color="#e5e5e5")
    _legend(axes, 2)


def _in_bytes(axis: Any, top: float, *, linear: bool = True) -> None:
    """Label an axis in bytes, with ticks at whole numbers of one unit."""
    from matplotlib.ticker import LogLocator, MultipleLocator, NullLocator

    if not linear:
        axis.set_major_locator(LogLocator(base=2, numticks=8))
        axis.set_major_formatter(lambda value, _: amount(round(value)).replace(".0 ", " "))
        axis.set_minor_locator(NullLocator())
        return
    power = 0
    while top >= 2 * 1024 ** (power + 1) and power < len(UNITS) - 1:
        power += 1
    unit = 1024**power
    step = next((step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500) if top <= 6 * step * unit), 1000)
    axis.set_major_locator(MultipleLocator(step * unit))
    axis.set_major_formatter(lambda value, _: f"{value / unit:,.0f} {UNITS[power]}")


def _in_counts(axis: Any) -> None:
    """Label an axis with whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _legend(axes: Any, columns: int) -> None:
    """A legend above the axes, at the right, where it covers nothing; titles are at the left."""
    axes.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=columns,
                handlelength=1.4, columnspacing=1.2)


def _sizes(axes: Any, total: SegmentStats) -> None:
    axes.set_title("Batch sizes", loc="left", fontsize=11)
    if not total.sizes:
        _empty(axes, "no batches")
        return
    buckets = [1 << power for power in range(min(total.sizes).bit_length() - 1, max(total.sizes).bit_length())]
    counts = [total.sizes.get(bucket, 0) for bucket in buckets]
    bars = axes.bar(range(len(buckets)), counts, color=_BLUE, width=0.8)
    axes.bar_label(bars, [f"{count:,}" if count else "" for count in counts], fontsize=8, padding=2)
    labels = [amount(bucket).replace(".0 ", " ") for bucket in buckets]
    axes.set_xticks(range(len(buckets)), labels, rotation=35 if len(buckets) > 6 else 0, ha="right" if len(buckets) > 6
                    else "center")
    middle, half = (len(buckets) - 1) / 2, max(len(buckets), 4) / 2 + 0.2
    axes.set_xlim(middle - half, middle + half)
    axes.set_xlabel("bytes, at most", fontsize=9)
    axes.set_ylabel("batches", fontsize=9)
    _in_counts(axes.yaxis)
    axes.grid(axis="y", color="#e5e5e5")


def _topics(axes: Any, parts: list[SegmentStats]) -> None:
    axes.set_title("Largest topics", loc="left", fontsize=11)
    if not parts:  # all are deleted since they were listed
        _empty(axes, "no segments")
        return
    sizes: dict[str, list[int]] = {}
    for part in parts:
        name = part.topic if part.topic is not None else part.path.rpartition("/")[2]
        entry = sizes.setdefault(name, [0, 0])
        entry[0] += part.size
        entry[1] += part.records
    ranked = sorted(sizes.items(), key=lambda item: -item[1][0])[:12][::-1]
    bars = axes.barh(range(len(ranked)), [size for _, (size, _) in ranked], color=_BLUE, height=0.7)
    axes.bar_label(bars, [f" {amount(size)}, {records:,} records" for _, (size, records) in ranked], fontsize=8)
    names = [name if len(name) <= 28 else name[:13] + "…" + name[-14:] for name in map(printable, dict(ranked))]
    axes.set_yticks(range(len(ranked)), names, parse_math=False)
    axes.set_ylim(min(0, len(ranked) - 5) - 0.8, len(ranked) - 0.2)
    axes.set_xlim(0, 1.45 * max(size for _, (size, _) in ranked) or 1)
    _in_bytes(axes.xaxis, axes.get_xlim()[1])
    axes.grid(axis="x", color="#e5e5e5")
    if len(sizes) > 12:
        axes.set_xlabel(f"{len(sizes) - 12} more topics are smaller", fontsize=9)
