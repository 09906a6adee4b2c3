"""Crafted segments and folders: cost grows with their bytes, limits hold, unnamed pipes are not read."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

import kwire
from kwire.capture.files import captures
from kwire.storage import LogDirectory, LogSegment, discover, read_leader_epochs, read_partition_metadata, resync
from kwire.storage.batches import scanner
from kwire.storage.isolation import transactions
from kwire.storage.isolation.transactions import LaterMarkers
from kwire.storage.places import filesystem
from kwire.storage.places.filesystem import File, LocalFile, _OpenFile
from kwire.storage.tables.parquet import write_parquet
from tests.cli.test_log import run
from tests.reads import Reads
from tests.storage.making import START, aborted_index, batch, in_transaction, marker, offsets, write_segment
from tests.storage.pipes import pipe
from tests.storage.test_limits import Asked

if TYPE_CHECKING:
    from typing_extensions import Buffer

pytestmark = pytest.mark.quick


def head(length: int) -> bytes:
    """The first 17 bytes of a batch of magic 2."""
    return pack(">qiib", 1, length, 0, 2)


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The streams that are copied to a temporary file."""
    paths: list[str] = []
    real = filesystem._copy

    def copying(stream: Any, file: Any, path: str) -> None:
        paths.append(path)
        real(stream, file, path)

    monkeypatch.setattr(filesystem, "_copy", copying)
    return paths


# the search for the next valid batch


@pytest.mark.parametrize("stretches", [1, 2])
def test_zeros_that_many_candidates_point_to_are_not_read_for_each(
    stretches: int, tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "_TRIAL", 1 << 10)
    count, zeros = 4000, 1 << 20
    into = [17 * (count + 2) + 100 + at * (zeros + 1) for at in range(stretches)]
    heads = b"".join(head(into[at % stretches] - 12) for at in range(count))
    data = head((8 << 20) + 5000) + heads + (bytes(zeros) + b"\1") * stretches
    path = tmp_path / "0.log"
    path.write_bytes(data)
    assert list(LogSegment(path).batches()) == []
    # one stretch is remembered; two in turn use up the search's budget of 256 MiB and 64 times the file
    assert reads.bytes < (20 * len(data) if stretches == 1 else 80 * len(data) + (260 << 20))


def test_many_bad_regions_are_not_read_again_for_each(tmp_path: Path, reads: Reads) -> None:
    costs = []
    for count in (500, 1000):
        unit = head(49) + bytes(44) + b"\xff" * 30
        path = tmp_path / "0.log"
        path.write_bytes(b"".join(unit + batch(3 * at, 1) for at in range(count)))
        reads.clear()
        valid = [one for one in LogSegment(path).batches(errors="keep") if not isinstance(one, kwire.BadBatch)]
        assert [one.base_offset for one in valid] == [3 * at for at in range(count)]
        costs.append(reads.bytes)
    assert costs[1] < 2.5 * costs[0]


def bad(base: int, length: int, delta: int = 0) -> bytes:
    """A batch of 61 bytes with a wrong checksum, which says that it has `length` bytes after its length."""
    rest = pack(">IhiqqqhiI", 1, 0, delta, 0, 0, -1, -1, -1, 0)
    return pack(">qiib", base, length, 0, 2) + rest


@pytest.mark.parametrize("filler", [b"\xff", b"\0"])
def test_bad_batches_that_say_they_hold_all_that_follows_are_not_read_for_each(
    filler: bytes, tmp_path: Path, reads: Reads
) -> None:
    """A valid batch after each; all end at the same byte. Each was read, and its checksum computed, to there."""
    one, count, path = 61 + len(batch(0, 1)), 10_000, tmp_path / "0.log"
    pairs = (bad(10 * at + 2, (2 * count - at) * one - 12, 3) + batch(10 * at + 10, 1) for at in range(count))
    path.write_bytes(b"".join(pairs) + filler * (count * one) + b"\1" * 100)
    found = list(LogSegment(path).batches(errors="keep"))
    assert not isinstance(found[1], kwire.BadBatch)
    assert reads.bytes < 2 * (64 * path.stat().st_size + (256 << 20))  # the search's budget, and what it reads ahead


WAYS: dict[str, Callable[[LogSegment], object]] = {
    "batches": lambda segment: list(segment.batches(errors="keep", max_batch_bytes=1 << 20)),
    "columns": lambda segment: list(segment.column_batches(errors="keep")),
    "raising": lambda segment: list(segment.column_batches()),
    "committed": lambda segment: list(segment.column_batches(errors="keep", committed=True)),
    "a range": lambda segment: list(segment.column_batches(errors="keep", start=6 << 20, end=7 << 20, guessed=True)),
    "offsets": lambda segment: list(segment.column_batches(errors="keep", start_offset=1, end_offset=3)),
    "markers": lambda segment: segment.transactions(),
    "seek": lambda segment: segment.seek(2),
    "split": lambda segment: segment.split(1000),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("magic", [1, 2])
def test_a_batch_with_a_damaged_length_is_not_loaded(
    way: str, magic: int, tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may say that it has 2 GiB: so much memory it would take."""
    monkeypatch.setattr(scanner, "KEPT_BYTES", 1 << 20)
    wrong = bytearray(bad(1, 5 << 20))
    wrong[16] = magic
    path = write_segment(tmp_path / "t-0", 0, [batch(0, 1)], indexes=False)
    path.write_bytes(path.read_bytes() + wrong + b"\xff" * (5 << 20) + batch(7, 1) + batch(8, 1))
    with suppress(kwire.CorruptBatchError):
        WAYS[way](LogSegment(path))
    assert max(read.size for read in reads) < 4 << 20


def test_a_large_batch_with_a_wrong_checksum_is_read_if_checksums_are_not_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "KEPT_BYTES", 1 << 10)
    large = bytearray(kwire.build_batch([(1, None, bytes(5000))]))
    large[-10] ^= 1
    path = tmp_path / "0.log"
    path.write_bytes(large)
    segment = LogSegment(path)
    assert offsets(one for found in segment.batches(verify_crc=False) for one in found) == [0]
    assert len(segment.columns(verify_crc=False)) == 1
    assert sum(len(columns) for columns in segment.column_batches(verify_crc=False)) == 1
    with pytest.raises(kwire.CorruptBatchError, match="checksum does not match"):
        segment.columns()


def test_all_searches_of_one_pass_have_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_TRIAL", 50 << 20)
    wrong = b"\xff" * 20 + batch(0, 1)[:-1] + b"!"  # its checksum does not match, and a batch follows it
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(wrong + batch(2 * at, 1) + batch(2 * at + 1, 1) for at in range(30)))
    valid = [one for one in LogSegment(path).batches(errors="keep") if not isinstance(one, kwire.BadBatch)]
    assert 0 < len(valid) < 20


def test_a_search_from_before_the_file_is_refused(tmp_path: Path) -> None:
    segment = LogSegment(write_segment(tmp_path / "t-0", 0, [batch(0)]))
    with pytest.raises(kwire.DecodeError, match="invalid file position -5"):
        resync(segment.file, -5)


# .gz


def test_a_gz_is_decompressed_once_for_all_ranges(tmp_path: Path, unpacked: list[str]) -> None:
    plain = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(60)], every=1)
    path = tmp_path / "t-0" / f"{plain.name}.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    segment = LogSegment(path)
    assert unpacked == []
    pieces = segment.split(300)
    assert len(pieces) > 20 and unpacked == [str(path)]
    for piece in pieces[:5]:
        unpacked.clear()
        list(LogSegment(path).column_batches(start=piece.start, end=piece.end))
        assert unpacked == [str(path)]


def test_a_pipe_with_too_many_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "MOST_UNPACKED", 2 << 20)
    with pytest.raises(kwire.LimitError, match="the pipe holds too many bytes"):
        LogSegment(pipe(tmp_path / "a.log", bytes(8 << 20)))


# bad regions before the batch that an index points to


def test_a_time_is_found_after_a_bad_region(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(6)])
    data = path.read_bytes()
    data = data[:150] + b"\xff" * len(data[150:200]) + data[200:]
    path.write_bytes(data)
    path.with_suffix(".index").unlink()
    entry = START + 14 * 10, 14  # of the fifth batch
    path.with_suffix(".timeindex").write_bytes(pack(">qi", *entry))
    pieces = LogSegment(path).column_batches(errors="keep", start_timestamp=entry[0] + 5)
    assert [one for piece in pieces for one in piece["offset"].to_numpy().tolist()] == [15, 16, 17]
    columns = LogSegment(path).columns(errors="keep", start_timestamp=entry[0] + 5)
    assert columns["offset"].to_numpy().tolist() == [15, 16, 17]


# transactions


def test_too_many_aborted_transactions_in_the_indexes_of_a_partition_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MOST_ABORTED", 20)
    for base in (0, 100):
        path = write_segment(tmp_path / "t-0", base, [in_transaction(base, 7, 1)])
        aborted_index(path, [(7, base + 2 * at, base + 2 * at + 1, 0) for at in range(15)])
    with pytest.raises(kwire.LimitError, match="too many aborted transactions in one partition") as caught:
        LogDirectory(tmp_path)["t", 0].segments[0].transactions()
    assert caught.value.needed == 30


def test_only_entries_around_batches_of_the_segment_are_listed(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [in_transaction(0, 7, 1), in_transaction(900, 7, 1)])
    aborted_index(path, [(7, 2 * at, 2 * at + 1, 0) for at in range(500)])
    hidden = LogSegment(path).transactions()
    assert hidden.aborted == [(7, 0, 1), (7, 900, 901)]
    assert hidden.hides(7, 0) and hidden.hides(7, 900)


def test_many_producers_go_through_later_segments_once() -> None:
    segments = [Asked({at: (at, 1)}) for at in range(300)]
    later = LaterMarkers(segments)
    for producer in range(1000, 1300):
        assert later.after(0, producer) is None
    for producer in range(1, 300):
        assert later.after(0, producer) == (producer, 1)
    assert sum(segment.count for segment in segments) < 2 * 300


# files that the user did not name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    return tmp_path / "t-0"


@pytest.mark.parametrize("name", ["00000000000000000009.log", "00000000000000000000.index",
                                  "00000000000000000000.txnindex", "00000000000000000009.log.gz"])  # fmt: skip
def test_a_pipe_in_a_folder_is_not_read(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / name)
    descriptor = os.open(folder / name, os.O_RDWR)  # opening it to read does not block, but it never ends
    os.close(descriptor)
    assert [Path(one.path).name for one in discover(folder)] == ["00000000000000000000.log"]
    assert [Path(one.path).name for one in discover(f"{folder}/*.log*")] == ["00000000000000000000.log"]
    (segment,) = LogDirectory(folder.parent).segments
    assert segment.index is None and offsets(segment.read(committed=True)) == [0, 1, 2]
    code, _, _ = run(capsys, "log", "verify", folder)
    assert code == 0


# inputs are not overwritten


def test_a_later_segment_that_is_read_for_transactions_is_not_written_over(tmp_path: Path) -> None:
    first = write_segment(tmp_path / "t-0", 0, [in_transaction(0, 1)])
    second = write_segment(tmp_path / "t-0", 3, [marker(3, 1, True), batch(4)])
    for wanted in (second, second.with_suffix(".index")):
        before = wanted.read_bytes()
        with pytest.raises(FileExistsError, match="is an input of this command"):
            write_parquet([LogSegment(first)], str(wanted), force=True, committed=True)
        assert wanted.read_bytes() == before


def test_row_groups_without_rows_are_refused(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    with pytest.raises(ValueError, match="rows must be at least 1, not 0"):
        write_parquet([LogSegment(path)], str(tmp_path / "x.parquet"), rows=0)


def test_an_unknown_compression_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    for by in ((), ("topic",)):
        with pytest.raises(ValueError, match=r"compression of parquet must be one of zstd, .*, none, not 'foo'"):
            write_parquet([LogSegment(path)], str(tmp_path / "x.parquet"), compression="foo", partition_by=by)
    with pytest.raises(TypeError, match="compression must be a str, not int"):
        write_parquet([LogSegment(path)], str(tmp_path / "x.parquet"), compression=5)  # type: ignore[arg-type]
    assert not (tmp_path / "x.parquet").exists()


# secrets in URLs

URL = "memory://u:hunter2@h/t-0/00000000000000000000.log?X-Amz-Signature=SECRET"


@pytest.fixture
def stored() -> Iterator[str]:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe(URL, batch(0) + b"\xff" * 200)
    yield URL
    memory.rm(URL)


def everything_of(error: BaseException) -> str:
    return f"{error} {error!r} {vars(error)} {error.args} {error.__cause__!r}"


def test_secrets_of_a_url_are_in_no_error_and_no_repr(stored: str) -> None:
    segment = LogSegment(stored)
    with pytest.raises(kwire.CorruptBatchError) as caught:
        list(segment.batches())
    bad = [str(one.error) for one in segment.batches(errors="keep") if isinstance(one, kwire.BadBatch)]
    with pytest.raises(FileNotFoundError) as missing:
        discover(stored.replace("t-0", "t-9"))
    with pytest.raises(FileNotFoundError) as absent:
        LogSegment(stored.replace("t-0", "t-9"))
    errors = [everything_of(one) for one in (caught.value, missing.value, absent.value)]
    texts = [*errors, repr(segment), *bad, str(segment.verify()), str(segment.stats()), repr(discover(stored))]
    for text in texts:
        assert "hunter2" not in text and "SECRET" not in text
    assert "memory://h/t-0/00000000000000000000.log" in str(caught.value)


@pytest.mark.parametrize("kind", [OSError, PermissionError, KeyError, ValueError])
@pytest.mark.parametrize("call", ["info", "ls", "cat_file"])
def test_secrets_of_a_stores_keywords_are_in_no_error(
    call: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    options = {"client_kwargs": {"api_token": "hunter2"}, "connection_string": "Host=h;AccountKey=SECRET==",
               "proxy": "http://me:hunter3@proxy"}
    monkeypatch.setattr(MemoryFileSystem, "__init__", lambda self, **_: super(MemoryFileSystem, self).__init__())
    MemoryFileSystem().pipe("memory://k/t-0/00000000000000000000.log", batch(0))
    for secret in ("hunter2", "SECRET==", "hunter3"):
        def fail(*_: object, secret: str = secret, **__: object) -> None:
            raise kind(f"GET /k with {secret}: denied")

        with monkeypatch.context() as patch:
            patch.setattr(MemoryFileSystem, call, fail)
            with pytest.raises(OSError, match="memory://k") as caught:
                for file in discover("memory://k", options=options):
                    list(LogSegment(file.path, options=options).batches())
        assert secret not in everything_of(caught.value) and kind.__name__ in str(caught.value)


@pytest.mark.parametrize(
    "password", ["hunter2,SECRET", "hun{ter2,SECRET}", "hunter2/SECRET", "hunter2?SECRET", "*hunter2",
                 "hun/ter2,SECRET", "hun@ter/2,SECRET", "hunter2 SECRET", "hunter2'SECRET", "hunter2: SECRET"])
def test_a_password_is_not_taken_apart(password: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A comma in it is no list of paths, of which the first would be shown."""
    url = f"memory://user:{password}@h/t-9/0.log"
    with pytest.raises(FileNotFoundError) as caught:
        discover([url, "a,b"])
    with pytest.raises(FileNotFoundError) as capture:
        captures(url)
    texts = [everything_of(caught.value), everything_of(capture.value)]
    for command in (
        ("log", "to-parquet", "a", "-o", url), ("log", "dump", "--files", url), ("log", "show", url), ("releases", url),
        ("storage", url), ("storage", "--as", url, "info"), ("features", "--as", "4.3", "upgrade", "--metadata", url,
                                                            "--bootstrap-server", "localhost:1"),
    ):  # fmt: skip
        _, out, error = run(capsys, *command)
        texts.append(out + error)
    for text in texts:
        assert "hunter2" not in text and "SECRET" not in text and "hun" not in text, text


def test_a_path_is_shown_without_its_secrets() -> None:
    for path, wanted in (
        ("s3://bucket/a@b/t-0/0.log", "s3://bucket/a@b/t-0/0.log"), ("/a/b?c=d@e", "/a/b?c=d@e"),
        ("https://u:p@h/0.log?a=b&c", "https://h/0.log"), ("s3://b/t-?/*.log", "s3://b/t-?/*.log"),
        ("zip://0.log::https://u:p@h/x.zip?sig=1", "zip://0.log::https://h/x.zip"),
        ("s3://key:a/b+c@bucket/0.log", "s3://bucket/0.log"), ("http://u:a?b@h/0.log", "http://h/0.log"),
        ("http://u:a#b@h/0.log", "http://h/0.log"), ("https://h/0.log?token", "https://h/0.log"),
        ("HTTPS://h/0.log?token", "HTTPS://h/0.log"), ("hdfs://nn:8020/a@b", "hdfs://nn:8020/a@b"),
        ("http://[2001:db8::1]/a@b", "http://[2001:db8::1]/a@b"), ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        # any @ may be the end of the password, and what follows it of the password or the query
        ("https://u:p?x@h/p?sig=a@TAIL", "https://..."), ("https://u:p@q/r@h/0.log", "https://..."),
        ("s3://k:a/b@bucket/a@b/0.log", "s3://..."), ("zip://a::https://u:p#q@h/x?s=@T", "zip://a::https://..."),
        ("https://u:p@q@h/0.log", "https://h/0.log"), ("https://h:80/a?sig=a@b@c", "https://h:80/a"),
    ):  # fmt: skip
        assert filesystem.shown(path) == wanted


def test_listeners_and_ports_in_texts_are_shown() -> None:
    for text in (
        "'[PLAINTEXT://h:9092, SSL://h:9092]': each another port, listeners: [PLAINTEXT://h:9092, SSL://h:9092]",
        "<https://h:80>", "{https://h:80}", "`https://h:80`", "A://:-1 is no port", "[FOO://[::1]:9094]",
    ):
        assert filesystem.shown_text(text) == text
    assert filesystem.shown_text("https://u:12]x y@h/z: not there") == "https://... not there"


# small files, and paths


@pytest.mark.parametrize("text", ["٣\n1\n0 0\n", "0\n1\n1_0 0\n", "0\n1\n+1 0\n"])
def test_numbers_of_a_checkpoint_are_plain_digits(text: str, tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    with pytest.raises(kwire.DecodeError, match="is not an integer"):
        read_leader_epochs(path)
    path.write_text("version: ٣\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    with pytest.raises(kwire.DecodeError, match="is not an integer"):
        read_partition_metadata(path)


def test_a_large_checkpoint_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"10\n" * 400_000)
    with pytest.raises(kwire.LimitError, match="too large for a checkpoint file"):
        read_leader_epochs(path)


def test_a_path_of_bytes_is_a_path(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    assert offsets(LogSegment(os.fsencode(path)).read()) == [0, 1, 2]  # type: ignore[arg-type]
    assert [one.path for one in discover(os.fsencode(path))] == [str(path)]  # type: ignore[arg-type]


def test_a_range_after_a_claim_of_the_whole_file_is_searched_as_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of the end looks back to byte 0: the damage there costs what it costs a reader of all."""
    monkeypatch.setattr(scanner, "_SHARES", (1, 16))
    path = tmp_path / "0.log"
    path.write_bytes(bad(0, (6 << 20) - 12) + bytes((6 << 20) - 61) + batch(7, 1))
    size = path.stat().st_size
    pieces = LogSegment(path).column_batches(("offset",), start=size - 1000, guessed=True, errors="keep")
    assert [offset for piece in pieces for offset in piece["offset"].to_numpy()] == [7]


class Fickle(LocalFile):
    """A file of which reads give other content now and then."""

    def __init__(self, path: str, other: bytes, seed: int) -> None:
        super().__init__(path)
        self.other, self.dice = other, random.Random(seed)

    def held(self) -> File:
        return self

    def view(self, start: int, end: int, before: Buffer = b"") -> memoryview:
        if self.dice.random() < 0.5:
            return memoryview(bytes(before) + self.other[start:end])
        with open(self.path, "rb", buffering=0) as file:
            return _OpenFile(self.path, file).view(start, end, before)

    def read(self, start: int, end: int) -> bytes:
        return self.view(start, min(end, self.size())).tobytes()

    def after_hole(self, position: int) -> int:
        return position


def test_content_that_changes_between_two_reads(tmp_path: Path) -> None:
    """A batch that was found is none when it is read again: an error of kwire's, or what is there."""
    path = tmp_path / "0.log"
    data = b"".join(b"\xff" * 100 + batch(10 * at, 1) + batch(10 * at + 1, 1) for at in range(10))
    path.write_bytes(data)
    for seed in range(60):
        segment = LogSegment(path)
        segment.file = Fickle(str(path), b"\xff" * len(data), seed)
        with suppress(kwire.CorruptBatchError):
            list(segment.batches(errors="keep"))
            segment.split(100)
