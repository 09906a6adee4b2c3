"""`kwire log salvage`: what is valid in damaged segments, written as clean ones."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from secrets import token_hex
from tempfile import gettempdir

import click

from kwire.cli.selectors import PARTITION, TOPIC, check_not_output
from kwire.cli.terminal import amount, counted, not_to_terminal, print_json, progress
from kwire.output import check_standard_output, new_file, remove
from kwire_c.printable import printable


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="[OUT]", required=False)
@click.option("-o", "--output", type=click.Path(), help="The same as OUT.")
@TOPIC
@PARTITION
@click.option("--index-interval-bytes", type=click.IntRange(0, (1 << 31) - 1), default=4096, show_default=True,
              help="Bytes of the log from one index entry to the next, as index.interval.bytes of the topic.")
@click.option("--force", is_flag=True, help="Overwrite an existing .log file and its indexes.")
@click.option("--json", "as_value", is_flag=True, help="One JSON object: what was kept and what was lost.")
@click.pass_context
def salvage(
    ctx: click.Context, source: str, target: str | None, output: str | None, topics: tuple[str, ...],
    partitions: tuple[int, ...], index_interval_bytes: int, force: bool, as_value: bool,
) -> None:
    """Write what is valid in damaged segments as clean ones, and list what was lost.

    IN is a segment, a partition folder or a log directory; it is only read. OUT is a new folder, or for a segment also
    a name that ends in .log, or - for standard output (without indexes); without it nothing is written. Batches are
    found by magic, length and checksum; indexes are made from them. The exit code is 1 if anything was lost.
    """
    from kwire.storage import salvage_log
    from kwire.storage.places.selection import Selection

    if target is not None and output is not None:
        raise click.UsageError("OUT and --output are the same: give one of them")
    target = output if target is None else target
    if target == "-" and (as_value or os.path.isdir(source)):
        raise click.UsageError("OUT - is standard output: for one segment, and without --json")
    not_to_terminal(target or "", "OUT -")
    if os.path.isdir(source):
        check_not_output([os.path.join(folder, "") for folder in (source, *_folders(source))])
    else:
        check_standard_output([source])
    with progress("salvaging", _size(source)) as advance, _written_to(target, source) as written:
        try:
            done = salvage_log(
                source, written, selection=Selection(topics, partitions), index_interval_bytes=index_interval_bytes,
                force=force, progress=advance)
        except LookupError as error:
            raise FileNotFoundError(f"{source}: {error.args[0]}") from None
    lost = done.lost
    if as_value:
        print_json(done.to_json(), indent=2)
    else:
        say = partial(print, file=sys.stderr if target == "-" else sys.stdout)
        for loss in lost:
            say(loss)
        for partition in done.partitions:
            name = "" if partition.topic is None else printable(f"{partition.topic}-{partition.partition}: ")
            if partition.more:
                say(f"{name}{partition.more} more regions lost, not listed")
            if partition.zeros:
                say(f"{name}{partition.zeros} zeros after the last batch left out, as in a preallocated segment")
            for path, position in partition.repaired:
                say(f"{printable(path)}, byte {position}: leader epoch out of order, now that of the batch before")
            for first, producer in partition.open_transactions:
                say(f"{name}the transaction of producer {producer} from offset {first} on has no end marker")
        for path in done.not_copied:
            say(f"{printable(path)}: not copied")
        regions = sum(len(one.lost) + one.more for one in done.partitions)
        print(
            f"{counted(sum(one.batches for one in done.partitions), 'batch', 'batches')}, "
            f"{amount(sum(one.size for one in done.partitions))} kept; {counted(regions, 'region')}, "
            f"{amount(sum(one.bytes_lost for one in done.partitions))} lost; "
            f"{'nothing written (no OUT)' if target is None else f'written to {printable(target)}'}", file=sys.stderr)
    ctx.exit(1 if lost else 0)


@contextmanager
def _written_to(target: str | None, source: str) -> Iterator[str | None]:
    """Where to write; of standard output a temporary file, which is copied to it in the end."""
    if target != "-":
        yield target
        return
    from kwire.storage.places.discovery import offset_in_name

    folder = os.path.join(gettempdir(), f"kwire-{token_hex(8)}")
    try:
        os.mkdir(folder, 0o700)  # not mkdtemp, which leaves it where Ctrl-C comes as it returns
        path = os.path.join(folder, f"{max(0, offset_in_name(source)):020}.log")
        yield path
        if os.path.exists(path):
            with open(path, "rb") as file, new_file("-", inputs=[source]) as out:
                shutil.copyfileobj(file, out)
    finally:
        remove(folder)


def _folders(source: str) -> list[str]:
    """The folders in a folder, those of partitions among them."""
    with suppress(OSError):  # what is wrong with it is reported where it is read
        return [entry.path for entry in os.scandir(source) if entry.is_dir()]
    return []


def _size(source: str) -> int:
    """Bytes of the segments, for the bar."""
    if not os.path.isdir(source):
        return os.path.getsize(source) if os.path.exists(source) else 0
    found = 0
    with suppress(OSError):  # what is wrong with a file is reported where it is read
        for entry in chain.from_iterable(map(os.scandir, [source, *_folders(source)])):
            if entry.name.endswith(".log"):
                found += entry.stat().st_size
    return found
