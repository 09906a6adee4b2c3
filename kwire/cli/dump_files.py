"""The files of `kwire log dump`: each kind of file read and printed, and what does not agree in them."""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.dump_decoders import METADATA, Decoder, coordinator_decoder, plain_decoder, remote_log_decoder
from kwire.cli.dump_dialects import Dialect, dialect
from kwire.cli.dump_old_decoders import offsets_text, transaction_text
from kwire.cli.dump_text import batch_line, batch_values, producer_line, record_lines, record_values
from kwire.cli.selectors import check_not_output
from kwire.cli.terminal import shown_json
from kwire.java_semantics import computed_order, java_hash, scala_order
from kwire.storage.places.filesystem import is_stream, is_url, open_file, open_unnamed, plain, shown
from kwire.storage.side_files.checkpoints import ProducerState, producer_entries, producer_snapshot_damage, small_file
from kwire_c.printable import brief, printable
from kwire_c.record_batch import RecordBatch

if TYPE_CHECKING:
    from kwire.storage.batches.batch_header import BatchHeader
    from kwire.storage.places.filesystem import File
    from kwire.storage.side_files.index_checks import TimeEntry

_NO_LIMIT = (1 << 31) - 1  # of --max-bytes
_MOST_OFFSET = (1 << 63) - 1
_BLOCK_CHARACTERS = 1 << 16  # of lines that are printed at once
_MOST_FINDINGS = 1 << 20  # of one kind in one file that are kept until the end


class Output:
    """Lines to stdout, in blocks; on a terminal, characters that are not printable are escaped. json: JSON objects."""

    def __init__(self, json: bool) -> None:
        self.json = json
        self._lines: list[str] = []
        self._size = 0
        self._escape = sys.stdout.isatty()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()

    def line(self, text: str) -> None:
        """Print a line of text."""
        self._lines.append(printable(text) if self._escape else text)
        self._size += len(text)
        if self._size >= _BLOCK_CHARACTERS:
            self._flush()

    def value(self, kind: str, file: str, values: dict[str, Any]) -> None:
        """Print a JSON object. kind: of what; file: in which."""
        self.line(shown_json({"kind": kind, "file": shown(file), **values}))

    def _flush(self) -> None:
        lines, self._lines, self._size = self._lines, [], 0
        if lines:
            sys.stdout.write("\n".join(lines) + "\n")


class _Pairs:
    """Pairs of numbers that do not agree, at most _MOST_FINDINGS of them; more: how many others there were."""

    def __init__(self) -> None:
        self._first, self._second = array("q"), array("q")
        self._ascending = True
        self.more = 0

    def add(self, first: int, second: int) -> None:
        """Keep a pair, or count it."""
        if len(self._first) == _MOST_FINDINGS:
            self.more += 1
            return
        self._ascending = self._ascending and not (self._first and self._first[-1] >= first)
        self._first.append(first)
        self._second.append(second)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._first, self._second, strict=True)

    def __reversed__(self) -> Iterator[tuple[int, int]]:
        return zip(reversed(self._first), reversed(self._second), strict=True)

    def by_first(self, descending: bool) -> Iterable[tuple[int, int]]:
        """The last pair of each first number, sorted by it."""
        if self._ascending:  # as nearly always
            return reversed(self) if descending else self
        return sorted(dict(self).items(), reverse=descending)


# what does not agree: key -> (the line before the pairs, %: the file; the line of a pair; the names of its numbers)
_FINDINGS = {
    "offset_mismatch": ("Mismatches in :%s", "  Index offset: {}, log offset: {}", ("offset", "log_offset")),
    "timestamp_mismatch": ("Found timestamp mismatch in :%s", "  Index timestamp: {}, log timestamp: {}",
                           ("timestamp", "log_timestamp")),
    "timestamp_out_of_order": ("Found out of order timestamp in :%s",
                               "  Index timestamp: {}, Previously indexed timestamp: {}", ("timestamp", "previous")),
    "offset_not_found": ("The following indexed offsets are not found in :%s",
                         "Indexed offset: {}, found log offset: {}", ("offset", "log_offset")),
    "non_consecutive_offsets": ("Non-consecutive offsets in %s", "  {} is followed by {}", ("previous", "offset")),
}


class _Findings:
    """What does not agree, by file: printed to stderr at the end, or as JSON at once."""

    def __init__(self, out: Output, dialect: Dialect) -> None:
        self._out, self._dialect = out, dialect
        self._pairs: dict[str, dict[str, _Pairs]] = {kind: {} for kind in _FINDINGS}

    def add(self, kind: str, file: str, first: int, second: int) -> None:
        """Two numbers in a file that do not agree."""
        if self._out.json:
            names = _FINDINGS[kind][2]
            self._out.value("finding", file, {"finding": kind, names[0]: first, names[1]: second})
        else:
            self._pairs[kind].setdefault(file, _Pairs()).add(first, second)

    def print(self) -> None:
        """Print them in the tool's order."""
        for kind, (title, line, _) in _FINDINGS.items():
            by_path = {_absolute(file): pairs for file, pairs in self._pairs[kind].items()}
            for path in computed_order(by_path) if self._dialect.in_java else scala_order(by_path, java_hash):
                pairs = by_path[path]
                if kind == "offset_not_found" and not self._dialect.in_java:
                    title = "The following indexed offsets are not found in the log."
                print(title % printable(path) if "%s" in title else title, file=sys.stderr)
                for pair in _ordered(kind, pairs, self._dialect.in_java):
                    print(line.format(*pair), file=sys.stderr)
                if pairs.more:
                    print(f"  and {pairs.more:,} more", file=sys.stderr)


def _ordered(kind: str, pairs: _Pairs, by_offset: bool) -> Iterable[tuple[int, int]]:
    """The pairs as the tool has them: those of offsets each once and sorted, or the last one first."""
    if kind not in ("offset_mismatch", "non_consecutive_offsets"):
        return pairs
    return pairs.by_first(descending=kind == "offset_mismatch") if by_offset else reversed(pairs)


class Dump:
    """One run over files."""

    def __init__(
        self, out: Output, *, print_data_log: bool, deep_iteration: bool, skip_record_metadata: bool, group: bool,
        transaction: bool, share: bool, metadata: bool, remote_log: bool, key_decoder_class: str | None,
        value_decoder_class: str | None, max_bytes: int, max_message_size: int, verify_index_only: bool,
        index_sanity_check: bool, as_release: str | None,
    ) -> None:  # fmt: skip
        self._dialect = dialect(as_release)
        self._out, self._findings = out, _Findings(out, self._dialect)
        chosen = [kind for kind, wanted in (("group", group), ("transaction", transaction), ("metadata", metadata),
                                            ("remote_log", remote_log), ("share", share)) if wanted]
        for kind in chosen:
            if kind in self._dialect.lacks:
                option = self._dialect.lacks[kind]
                raise click.ClickException(f"{option} is not an option of kafka-dump-log {self._dialect.release}")
        classes = key_decoder_class, value_decoder_class
        contents = print_data_log or bool(chosen) or classes != (None, None)
        self._deep = deep_iteration or contents
        self._decoder: Decoder | None = None
        self._find_decoder = (lambda: _decoder(chosen, self._dialect, *classes)) if contents else None
        self._record_metadata = not skip_record_metadata
        self._max_bytes, self._max_message_size = max_bytes, max_message_size
        self._print_entries, self._sanity_only = not verify_index_only, index_sanity_check
        self._by_suffix: dict[str, Callable[[str, str], None]] = {
            "log": self._log, "checkpoint": self._log, "index": self._index, "timeindex": self._time_index,
            "txnindex": self._transaction_index, "snapshot": self._producer_snapshot,
        }

    def run(self, files: Sequence[str]) -> None:
        """Dump the files one after the other, then print what did not agree."""
        check_not_output(files)  # all of them, before anything is written
        for file in files:
            self._text(f"Dumping {printable(shown(file))}")
            name = file.rpartition("/")[2]
            if is_stream(file):
                self._log(plain(file), name)
                continue
            suffix = name.removesuffix(".gz").rpartition(".")
            if not suffix[1]:
                open_file(file).size()  # FileNotFoundError
                raise click.ClickException(f"{shown(file)}: expected a name that ends in .log, .checkpoint, .index, "
                                           ".timeindex, .txnindex or .snapshot")
            dump_one = self._by_suffix.get(suffix[2])
            if dump_one is None:
                print(printable(f"Ignoring unknown file {shown(file)}"), file=sys.stderr)
            else:
                dump_one(file, name)
        self._findings.print()

    def _text(self, line: str) -> None:
        if not self._out.json:
            self._out.line(line)

    # segments and KRaft snapshots

    def _log(self, file: str, name: str) -> None:
        from kwire.storage.batches.file_batches import FileBatches
        from kwire.storage.places.file_kinds import check_segment

        if self._find_decoder is not None:
            self._decoder, self._find_decoder = self._find_decoder(), None
        opened = open_file(file)
        if is_stream(file):
            check_segment(file, opened)
            if not opened.size():
                raise click.ClickException(f"{shown(file)}: empty, expected a log segment")
            self._text(f"Log starting offset: {int.from_bytes(opened.read(0, 8), 'big', signed=True)}")
        else:
            self._text(_start_line(file, name))
        batches = FileBatches(opened, None if self._max_bytes == _NO_LIMIT else self._max_bytes)
        last = -1
        for batch in batches:
            if self._out.json:
                self._out.value("batch", file, batch_values(batch))
            else:
                self._out.line(batch_line(batch))
            if self._deep:
                last = self._records(file, batch, last)
        left = batches.end - batches.position
        if left > 0 and self._max_bytes == _NO_LIMIT:
            self._text(f"Found {left} invalid bytes at the end of {printable(name)}")
            if self._out.json:
                self._out.value("finding", file, {"finding": "invalid_bytes", "position": batches.position,
                                                  "size": left})

    def _records(self, file: str, batch: RecordBatch | BatchHeader, last: int) -> int:
        """Print the records of a batch. last: the offset before it; returns the last one."""
        from kwire.storage.batches.file_batches import loaded

        batch = loaded(batch, file)
        out = self._out
        if last == -1 and not self._dialect.in_java:
            last = -2
        if out.json:
            for offset, values in record_values(batch, self._decoder, self._record_metadata):
                if offset != last + 1 and last != -2:
                    self._findings.add("non_consecutive_offsets", file, last, offset)
                last = offset
                out.value("record", file, values)
            return last
        for offset, line in record_lines(batch, self._decoder, self._record_metadata, self._dialect):
            if offset != last + 1 and last != -2:
                self._findings.add("non_consecutive_offsets", file, last, offset)
            last = offset
            out.line(line)
        return last

    # indexes

    def _index(self, file: str, name: str) -> None:
        from kwire.storage.side_files.index_checks import index_bytes, offset_entries, offset_index_damage

        base = _base_offset(file, name)
        log = _sibling(file, name, ".log")
        log.size()
        data = index_bytes(open_file(file))
        if len(data) < 8:
            self._text(f"{printable(shown(file))} is empty.")
        elif self._sanity_only:
            self._sanity(file, offset_index_damage(data, base, _absolute(file)))
        else:
            for entry in offset_entries(data, base, log, self._max_message_size):
                if entry.log_offset != entry.offset:
                    self._findings.add("offset_mismatch", file, entry.offset, entry.log_offset)
                if self._print_entries:
                    line = f"offset: {entry.offset} position: {entry.position}"
                    self._value("offset_index_entry", file, line, {"offset": entry.offset, "position": entry.position})

    def _time_index(self, file: str, name: str) -> None:
        from kwire.storage.side_files.index_checks import index_bytes, time_entries, time_index_damage

        base = _base_offset(file, name)
        log = _sibling(file, name, ".log")
        log.size()
        offset_index = index_bytes(_sibling(file, name, ".index"))
        data = index_bytes(open_file(file))
        if self._sanity_only:
            self._sanity(file, time_index_damage(data, base, _absolute(file)))
            return
        for entry in time_entries(data, offset_index, base, log):
            for finding in _time_findings(entry):
                self._findings.add(finding[0], file, *finding[1:])
            if self._print_entries:
                line = f"timestamp: {entry.timestamp} offset: {entry.offset}"
                self._value("time_index_entry", file, line, {"timestamp": entry.timestamp, "offset": entry.offset})

    def _sanity(self, file: str, damage: str | None) -> None:
        if damage is not None:
            raise click.ClickException(damage)
        self._value("sanity_check", file, f"{printable(shown(file))} passed sanity check.", {"passed": True})

    def _value(self, kind: str, file: str, line: str, values: dict[str, Any]) -> None:
        if self._out.json:
            self._out.value(kind, file, values)
        else:
            self._out.line(line)

    def _transaction_index(self, file: str, name: str) -> None:
        from kwire.storage.side_files.index_checks import aborted_entries

        _base_offset(file, name)
        for entry in aborted_entries(open_file(file)):
            line = (f"version: {entry.version} producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
                    f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}")
            self._value("aborted_transaction", file, line, entry._asdict())

    def _producer_snapshot(self, file: str, name: str) -> None:
        data = small_file(file, None)
        damage = producer_snapshot_damage(data)
        if damage is not None:  # the tool goes on with the next file
            print(printable(damage), file=sys.stderr)
            return
        for entry in producer_entries(data, file):
            producer = ProducerState(*entry)
            self._value("producer", file, producer_line(producer, self._dialect), producer._asdict())


def _decoder(chosen: list[str], dialect: Dialect, key_class: str | None, value_class: str | None) -> Decoder:
    """The decoder that the options choose: the first of the tool's own order."""
    if not chosen:
        try:
            return plain_decoder(key_class, value_class)
        except ValueError as error:
            raise click.ClickException(str(error)) from None
    kind = chosen[0]
    if kind == "metadata":
        return METADATA
    if kind == "remote_log":
        return remote_log_decoder(dialect.transaction_index)
    decoder = coordinator_decoder(kind)
    return decoder._replace(text=_OLD_TEXTS[kind]) if kind in dialect.old_texts else decoder


_OLD_TEXTS = {"group": offsets_text, "transaction": transaction_text}


def _start_line(file: str, name: str) -> str:
    """The line that says what kind of file it is."""
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    if not name.endswith(".checkpoint"):
        return f"Log starting offset: {_base_offset(file, name)}"
    from kwire.storage.metadata.snapshots import snapshot_id

    found = snapshot_id(name)
    if found is None:
        raise click.ClickException(f"{shown(file)}: expected the name OFFSET-EPOCH.checkpoint of a KRaft snapshot")
    return f"Snapshot end offset: {found[0]}, epoch: {found[1]}"


def _base_offset(file: str, name: str) -> int:
    """The base offset that a file is named after."""
    text = name.partition(".")[0]
    if not re.fullmatch("[0-9]{1,19}|0[0-9]{19}", text) or int(text) > _MOST_OFFSET:
        open_file(file).size()  # FileNotFoundError
        raise click.ClickException(f"{shown(file)}: expected a base offset before the first dot, found {brief(text)}")
    return int(text)


def _sibling(file: str, name: str, suffix: str) -> File:
    """The file of the same segment with another suffix."""
    return open_unnamed(file.removesuffix(name) + name.partition(".")[0] + suffix)


def _absolute(file: str) -> str:
    """The path as the tool shows it in what it reports."""
    return shown(file) if is_url(file) else os.path.join(os.getcwd(), file)


def _time_findings(entry: TimeEntry) -> Iterator[tuple[str, int, int]]:
    """What is wrong with an entry of a .timeindex: (finding, two numbers)."""
    if entry.log_timestamp is None:
        yield "offset_not_found", entry.offset, entry.log_offset
        return
    if entry.log_timestamp != entry.timestamp:
        yield "timestamp_mismatch", entry.timestamp, entry.log_timestamp
    if entry.previous >= entry.timestamp:
        yield "timestamp_out_of_order", entry.timestamp, entry.previous
