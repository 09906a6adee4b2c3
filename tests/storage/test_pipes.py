"""Streams that can be read only once: pipes, standard input, .gz; read to their ends, never taken for empty files."""

from __future__ import annotations

import gc
import gzip
import io
import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwire
from kwire.storage import (
    LogDirectory,
    LogSegment,
    discover,
    read_leader_epochs,
    read_partition_metadata,
    read_producer_snapshot,
)
from kwire.storage.places import filesystem
from tests.capture.making import Talk, hello, metadata, welcome, write_pcap
from tests.capture.test_hostile import frame_files
from tests.cli.test_log import ROOT, run
from tests.storage.making import START, batch, in_transaction, marker, offsets, write_segment
from tests.storage.pipes import pipe
from tests.storage.test_checkpoints import snapshot

pytestmark = pytest.mark.quick
PARTS = [batch(0), in_transaction(3, 1), marker(6, 1, False), *(batch(7 + 300 * at, 300, size=200) for at in range(20))]
DATA = b"".join(PARTS)
LAST = 7 + 300 * 20
# each way to read a segment; its result does not depend on where the bytes come from
READINGS: dict[str, Callable[[LogSegment], Any]] = {
    "size": lambda segment: segment.size,
    "read": lambda segment: offsets(segment.read(start_offset=5, committed=True)),
    "batches": lambda segment: [(one.position, one.base_offset, len(one)) for one in segment.batches()],
    "kept": lambda segment: [one.position for one in segment.batches(errors="keep")],
    "columns": lambda segment: pa.table(segment.columns(views=True)).combine_chunks().to_pylist(),
    "pieces": lambda segment: [len(one) for one in segment.column_batches(rows=100)],
    "headers": lambda segment: list(segment.headers()),
    "split": lambda segment: segment.split(100_000),
    "seek": lambda segment: (segment.seek(1000), segment.seek_time(START + 40_000), segment.tail),
    "transactions": lambda segment: segment.transactions(),
    "verify": lambda segment: [finding[1:] for finding in segment.verify()],
    "stats": lambda segment: segment.stats().to_json() | {"path": ""},
}


@pytest.fixture
def plain(tmp_path: Path) -> LogSegment:
    return LogSegment(write_segment(tmp_path / "plain", 0, PARTS, indexes=False))


@pytest.mark.parametrize("reading", READINGS)
def test_each_reading_of_a_pipe_is_that_of_a_file(reading: str, plain: LogSegment, tmp_path: Path) -> None:
    wanted = READINGS[reading](plain)
    for name, data in (("fifo", DATA), ("packed", gzip.compress(DATA))):
        segment = LogSegment(pipe(tmp_path / name, data))
        assert READINGS[reading](segment) == wanted
        assert READINGS[reading](segment) == wanted  # from the temporary file: the pipe gave it only once
    packed = tmp_path / "some.log.gz"
    packed.write_bytes(gzip.compress(DATA))
    assert READINGS[reading](LogSegment(packed)) == wanted


def test_a_pipe_is_read_to_its_end_however_slowly_it_is_written(tmp_path: Path) -> None:
    """One byte at first: the check for gzip has to wait for more."""
    for name, data in (("plain", DATA), ("packed", gzip.compress(DATA))):
        assert len(LogSegment(pipe(tmp_path / name, data, first=1)).columns()) == LAST - 4 + 3
    assert len(LogSegment(pipe(tmp_path / "one", b"\x1f")).columns()) == 0
    assert LogSegment(pipe(tmp_path / "none", b"")).size == 0
    assert LogSegment(os.devnull).size == 0


def test_a_pipe_has_no_size_before_it_is_read(tmp_path: Path) -> None:
    (file,) = discover(pipe(tmp_path / "fifo", DATA))
    assert (file.size, file.topic) == (-1, None)
    directory = LogDirectory(tmp_path / "fifo", topics=["t"], partitions=[3])
    assert (directory.partitions[0].topic, directory.partitions[0].partition) == ("t", 3)
    assert len(list(directory.read())) == len(directory.columns()) == LAST - 1


def test_compressed_segments_are_found_in_folders(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-4", 0, PARTS)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    write_segment(tmp_path / "t-4", LAST, [batch(LAST)])
    partition = LogDirectory(tmp_path)["t", 4]
    assert [segment.named_offset for segment in partition] == [0, LAST]
    assert offsets(partition.read(start_offset=LAST - 2)) == [*range(LAST - 2, LAST + 3)]
    assert partition.segments[0].index is not None and partition.verify() == []


@pytest.mark.parametrize("cut", [1, 9, 400, -9])
def test_a_stream_that_is_damaged_is_an_error_that_names_it(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    packed = gzip.compress(DATA)
    path.write_bytes(packed[:cut] if cut > 1 or cut < 0 else b"\x1f\x8b\x08\0no gzip at all")
    with pytest.raises(kwire.DecodeError, match=r"a\.log\.gz: the gzip stream is damaged") as caught:
        list(LogSegment(path).batches())
    assert getattr(caught.value, "file", None) == str(path)


def test_a_gz_that_decompresses_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "MOST_UNPACKED", 4 << 20)
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    with pytest.raises(kwire.LimitError, match="the gzip stream holds too many bytes") as caught:
        list(LogSegment(path).batches())
    assert (getattr(caught.value, "file", None), caught.value.limit) == (str(path), 4 << 20)


def test_devices_folders_and_sockets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is a device"):
        LogSegment("/dev/zero")
    with pytest.raises(IsADirectoryError):
        LogSegment(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener, pytest.raises(OSError, match="such device or address"):
        listener.bind(str(tmp_path / "s"))
        LogSegment(tmp_path / "s")


def test_a_pipe_that_was_read_does_not_pickle(tmp_path: Path) -> None:
    segment = LogSegment(pipe(tmp_path / "fifo", DATA))
    with pytest.raises(TypeError, match=r"fifo was read in this process: it cannot be read again in another"):
        pickle.dumps(segment.file)
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress(DATA))
    segment = LogSegment(packed)
    assert len(segment.columns()) == len(LogSegment(pickle.loads(pickle.dumps(segment)).path).columns())


def spools() -> int:
    """The number of temporary files that this process has open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").endswith("(deleted)")
        except OSError:  # the folder's own
            continue
    return count


def test_the_temporary_file_goes_with_its_last_reader(tmp_path: Path) -> None:
    gc.collect()
    before = spools()
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(DATA))
    segments = [LogSegment(path) for _ in range(20)]
    assert [segment.size for segment in segments] == [len(DATA)] * 20 and spools() == before
    batches = segments[0].batches()
    next(batches)
    assert spools() == before + 1
    del batches
    gc.collect()
    assert spools() == before
    piped = LogSegment(pipe(tmp_path / "fifo", DATA))
    assert spools() == before + 1  # it cannot be read again
    del piped
    gc.collect()
    assert spools() == before


def test_small_files_beside_segments(tmp_path: Path) -> None:
    state = (7, 1, 99, 1000, 9, 1_700_000_000_000, 3, -1)
    assert read_producer_snapshot(pipe(tmp_path / "a.snapshot", snapshot(state)))[0] == state
    assert read_leader_epochs(pipe(tmp_path / "epochs", b"0\n1\n5 120\n"))[0].start_offset == 120
    metadata = pipe(tmp_path / "partition.metadata", b"version: 0\ntopic_id: VVkl1clrT2ONQGYYg9xtSQ\n")
    assert read_partition_metadata(metadata).version == 0


# the command line


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("command", ["show", "stats", "verify", "to-parquet"])
def test_each_command_for_logs_reads_a_pipe(
    command: str, ending: str, plain: LogSegment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = DATA + b"torn" * (command == "verify")  # something to find
    Path(plain.path).write_bytes(content)
    data = gzip.compress(content) if ending else content
    options = ["-o", tmp_path / "piped.parquet"] if command == "to-parquet" else ["--json"]
    code, out, err = run(capsys, "log", command, pipe(tmp_path / f"fifo{ending}", data), *options)
    assert (code, "Traceback" in err) == (command == "verify", False), err
    if command == "to-parquet":
        assert run(capsys, "log", command, plain.path, "-o", tmp_path / "plain.parquet")[0] == 0
        piped, wanted = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("piped", "plain"))
        assert piped.drop_columns(["topic", "partition"]) == wanted.drop_columns(["topic", "partition"])
        return
    _, wanted, _ = run(capsys, "log", command, plain.path, *options)
    assert out.count("\n") == wanted.count("\n") and (command != "show" or out == wanted)
    assert '"records": 0' not in out


def piped(*arguments: object, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """A process with a pipe as its standard input."""
    command = [sys.executable, "-m", "kwire", *map(str, arguments)]
    return subprocess.run(command, input=data, cwd=ROOT, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_of_a_process(name: str, tmp_path: Path) -> None:
    done = piped("log", "show", name, "--json", data=DATA)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, LAST - 1, b"")
    out = tmp_path / "out.parquet"
    done = piped("log", "to-parquet", name, "-o", out, data=gzip.compress(DATA))
    assert done.returncode == 0 and pq.read_metadata(out).num_rows == LAST - 1
    (tmp_path / "file").write_bytes(DATA)
    with open(tmp_path / "file", "rb") as file:  # not a pipe: a file that the shell opened
        command = [sys.executable, "-m", "kwire", "log", "verify", name]
        done = subprocess.run(command, stdin=file, cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"1 segment, 0 findings\n")


def packets(folder: Path) -> bytes:
    """A capture of two exchanges."""
    talk = Talk().open().exchange(hello(), welcome()).exchange(*metadata(1))
    return write_pcap(folder / "made.pcap", talk.bytes()).read_bytes()


@pytest.mark.parametrize("packed", [False, True])
def test_the_audit_reads_a_pipe(packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = gzip.compress(packets(tmp_path)) if packed else packets(tmp_path)
    code, out, _ = run(capsys, "audit", pipe(tmp_path / "fifo", data, first=1), "--to", "4.4")
    assert code == 0 and "(2 answered)" in out
    done = piped("audit", "-", "--to", "4.4", data=data)
    assert done.returncode == 0 and b"(2 answered)" in done.stdout
    done = piped("audit", "/dev/stdin", "--to", "4.4", data=data[:-7])
    assert done.returncode == 0 and b"answered" in done.stdout and b"not read" in done.stdout
    done = piped("audit", "-", "--to", "4.4", data=b"")
    assert done.returncode == 2 and b"/dev/stdin: not a capture" in done.stderr


def test_the_audit_reads_frame_files_of_pipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, data = frame_files(tmp_path)
    pipe(tmp_path / "a.jsonl", lines)
    pipe(tmp_path / "a.bin", data)
    code, out, _ = run(capsys, "audit", tmp_path / "a.jsonl", "--to", "4.4")
    assert code == 0 and "(6 answered)" in out


def test_messages_of_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = kwire.encode_request(kwire.messages.MetadataRequest(topics=[]), 12)
    body = kwire.encode(kwire.messages.MetadataRequest(topics=[]), 12)
    value = json.dumps(kwire.to_json(kwire.messages.MetadataRequest(topics=[]), 12))
    for arguments, data in (
        (("decode", "MetadataRequest", 12), body.hex().encode()),
        (("frame",), request.hex().encode()),
        (("frame", "--from", "raw"), kwire.pack_frame(request)),
    ):
        place = pipe(tmp_path / str(len(os.listdir(tmp_path))), data)
        code, out, err = run(capsys, *arguments, place)
        assert (code, '"topics"' in out) == (0, True), err
    code, out, _ = run(capsys, "encode", "MetadataRequest", 12, pipe(tmp_path / "json", value.encode() * 3))
    assert code == 0 and out.count("\n") == 3


def test_bytes_of_a_stream_put_back() -> None:
    """The bytes that were looked at come first, and a read gives as many as there are."""
    for size in (-1, 1, 3, 4, 5, 9, 100):
        stream = filesystem.Rejoined(b"abcd", io.BytesIO(b"efghij"))
        data = b""
        while piece := stream.read(size):
            assert size < 0 or len(piece) == min(size, 10 - len(data))
            data += piece
        assert data == b"abcdefghij"
