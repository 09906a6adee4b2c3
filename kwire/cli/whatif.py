"""`kwire log whatif`: the size that batches would have with other codecs and levels."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.selectors import names_of, selection
from kwire.cli.terminal import Size, amount, console, counted, print_json, progress, table
from kwire_c.codecs import CODECS
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import LogDirectory

class Levels(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A level, a range of levels, or all."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """The levels."""
        match = re.fullmatch(r"(\d{1,2})(?:-(\d{1,2}))?|all", value)
        if match is None:
            self.fail(f"{value!r} is neither a level such as 3, nor a range such as 1-9, nor all", param, ctx)
        if match[1] is None:
            return range(1, 23)
        levels = range(int(match[1]), int(match[2] or match[1]) + 1)
        if not levels:
            self.fail(f"{value!r} is an empty range", param, ctx)
        return levels


@click.command()
@selection
@click.option("--codec", "codecs", type=click.Choice(CODECS), multiple=True,
              help="Only this codec (may be repeated).")
@click.option("--level", "levels", type=Levels(), multiple=True, metavar="N|N-M|all",
              help="These levels of gzip (1-9), lz4 (1-17) and zstd (1-22) instead of a few (may be repeated).")
@click.option("--batch-bytes", type=Size(), help="Put the records into new batches of this size before compression.")
@click.option("--sample", type=Size(), default="16MiB", show_default=True, metavar="BYTES",
              help="Read about so many bytes of larger input, spread over all segments.")
@click.option("--all", "everything", is_flag=True, help="Read all of it.")
@click.option("--json", "as_value", is_flag=True, help="One JSON object.")
@click.option("--plot", type=click.Path(dir_okay=False), metavar="FILE",
              help="Also plot the outcome to this PNG, SVG or PDF file; - is a PNG on standard output, alone.")
@click.option("--force", is_flag=True, help="Overwrite an existing plot.")
def whatif(
    directory: LogDirectory, codecs: tuple[str, ...], levels: tuple[range, ...], batch_bytes: int | None, sample: int,
    everything: bool, as_value: bool, plot: str | None, force: bool,
) -> int:
    """Measure the size that batches would have with each codec and level (KIP-640), and the time that it takes.

    Sizes are those of the batches that a producer would write; nothing is written but the plot. The times are those of
    this machine, in one thread. The exit code is 1 if batches are damaged.
    """
    from kwire.errors import EncodeError
    from kwire.storage import whatif as measure
    from kwire.storage.recompression import settings

    if plot:
        from kwire.cli.plot import check, draw_whatif

        check(plot, as_value)
    try:
        wanted = settings(codecs or CODECS, [level for each in levels for level in each] or None)
    except EncodeError as error:
        raise click.UsageError(f"--level: {error.reason}") from None
    segments = directory.segments
    total = sum(segment.size for segment in segments)
    with progress("compressing", total if everything else min(total, sample)) as advance:
        result = measure(segments, wanted, batch_bytes=batch_bytes, sample_bytes=None if everything else sample,
                         progress=advance)
    if plot:
        inputs = [path for segment in segments for path in segment.files]
        draw_whatif(result, plot, names_of(directory), inputs=inputs, force=force)
        print(f"plot written to {printable(plot)}", file=sys.stderr)
    if as_value:
        print_json(result.to_json(), indent=2)
    elif plot != "-":
        _print(result)
    return 1 if result.bad else 0


def _print(result: Any) -> None:
    out = console()
    now = ", ".join(f"{count:,} {name}" for name, count in sorted(result.codecs.items()))
    batches = counted(result.batches, "batch", "batches")
    out.print(f"{counted(result.records, 'record')} in {batches} ({now or 'none'}), {result.several:,} of more than "
              f"one record; {amount(result.stored)} now, {amount(result.plain)} uncompressed")
    if result.batch_bytes is not None:
        out.print(f"put into batches of {amount(result.batch_bytes)} before compression")
    columns = ["codec", "size", "saved", "ratio", "mean ratio", "compress", "MB/s", "decompress", "MB/s "]
    columns += ["estimate of all"] * result.sampled
    rows = []
    for one in result.outcomes:
        saved = f"{100 * (1 - one.size / result.stored):.1f} %" if result.stored else "-"
        cells = [str(one), amount(one.size), saved, f"{one.ratio:.3f}", f"{one.mean_ratio:.3f}"]
        for seconds in (one.compress_seconds, one.decompress_seconds):
            cells += [f"{seconds:.3f} s", f"{one.speed(seconds) / 1e6:7,.1f}"] if seconds else ["-", "-"]
        rows.append([*cells, *([amount(result.estimate(one))] * result.sampled)])
    if result.batches:
        out.print(table("", columns, rows))
    if result.control:
        out.print(f"{result.control:,} bytes of control batches, which are not compressed, are left out.")
    if result.bad:
        out.print(f"{counted(result.bad, 'damaged batch', 'damaged batches')} left out: see kwire log verify.")
    if result.sampled:
        out.print(f"Sampled: {amount(result.stored + result.control)} of {amount(result.total)}; --all reads all.")
