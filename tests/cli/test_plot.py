"""Plots: whole numbers at ticks, legends beside the data, titles that name what was read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from kwire.cli import main, plot
from tests.cli.test_log import ROOT
from tests.storage.making import batch, in_transaction, marker, write_segment


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were drawn."""
    figures: list[Any] = []
    save = plot._save

    def kept(figure: Any, *rest: Any, **options: Any) -> None:
        figures.append(figure)
        save(figure, *rest, **options)

    monkeypatch.setattr(plot, "_save", kept)
    return figures


def texts(axis: Any) -> list[str]:
    """The labels of the ticks that are seen."""
    low, high = axis.get_view_interval()
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


@pytest.mark.parametrize(("count", "size"), [(1, 10), (3, 100_000), (300, 200)])
@pytest.mark.parametrize("command", ["stats", "whatif"])
def test_ticks_legends_and_titles(command: str, count: int, size: int, tmp_path: Path, drawn: list[Any]) -> None:
    folder = tmp_path / "orders-0"
    write_segment(folder, 0, [batch(3 * at, size=size, codec=("none", "zstd")[at % 2]) for at in range(count)])
    more = ["--codec", "lz4", "--codec", "zstd", "--level", "1"] if command == "whatif" else []
    assert main(["log", command, str(folder), "--plot", str(tmp_path / "p.png"), *more]) == 0
    (figure,) = drawn
    assert figure._suptitle.get_text().startswith(f"{str(folder)[:99]}")
    assert figure._suptitle.get_text().splitlines()[1].startswith(f"{3 * count:,} records in {count:,} batch")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    counts = [axes.yaxis for axes in figure.axes if axes.get_ylabel().startswith(("records", "batches"))]
    assert len(counts) == (2 if command == "stats" else 0)
    for axis in counts:
        assert all(re.fullmatch(r"[\d,]+", text) for text in texts(axis)) and len(set(texts(axis))) == len(texts(axis))
    sizes = [text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in texts(axis) if "B" in text]
    assert sizes and all(re.fullmatch(r"[\d,]+ ([KMG]i)?B", text) for text in sizes), sizes
    legends = [axes for axes in figure.axes if axes.get_legend() is not None]
    assert len(legends) == 1
    for axes in legends:
        legend = axes.get_legend().get_window_extent(renderer)
        assert not legend.overlaps(axes.get_window_extent(renderer).shrunk(0.999, 0.99))
        title = next(one for one in (axes._left_title, axes.title) if one.get_text()).get_window_extent(renderer)
        assert not legend.overlaps(title)


def test_bytes_far_apart(tmp_path: Path, drawn: list[Any]) -> None:
    """On a logarithmic axis too."""
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [batch(0, 100, size=5000), batch(100, 1, codec="lz4")])
    assert main(["log", "stats", str(folder), "--plot", str(tmp_path / "p.svg")]) == 0
    axes = drawn[0].axes[1]
    assert axes.get_yscale() == "log" and all(re.fullmatch(r"\d+ ([KMG]i)?B", text) for text in texts(axes.yaxis))


@pytest.mark.quick
def test_a_plot_that_cannot_be_made_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    monkeypatch.setattr("kwire.storage.reading.segment_reader.SegmentBatches.__next__", None)
    for name in ("x.jpg", "x", "-.doc"):
        assert main(["log", "stats", str(path), "--plot", name]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1) and f"{name}: unsupported plot format" in err


@pytest.mark.quick
def test_segments_that_are_all_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = write_segment(tmp_path / "t-0", 0, [batch(0)])
    monkeypatch.setattr(plot, "check", lambda *_: os.unlink(segment))
    assert main(["log", "stats", str(segment.parent), "--plot", str(tmp_path / "p.svg")]) == 0
    assert "deleted since its folder was listed" in capsys.readouterr().err and (tmp_path / "p.svg").exists()


@pytest.mark.quick
def test_control_records_are_counted_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Markers are never compressed: "none" is no codec of the topic."""
    folder = tmp_path / "t-0"
    parts = [in_transaction(0, 1, codec="zstd"), marker(3, 1, True), in_transaction(4, 1, codec="zstd")]
    write_segment(folder, 0, [*parts, marker(7, 1, False)])
    assert main(["log", "stats", str(folder)]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.strip().startswith("t-0"))
    assert row.split()[1:4] == ["0..7", "4", "6"] and "none" not in row and "zstd" in row
    assert "2 control records in 2 batches (156 B) are not counted as records." in out


def test_a_process_that_ends_while_it_draws_leaves_no_file(tmp_path: Path) -> None:
    """As OpenBLAS ends it where it finds no memory."""
    write_segment(tmp_path / "orders-0", 0, [batch(0)])
    program = ("import os, sys; from matplotlib.figure import Figure; from kwire.cli import main\n"
               "Figure.savefig = lambda *_, **__: os._exit(7)\n"
               "main(['log', 'stats', 'orders-0', '--plot', 'p.png'])")  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=False).returncode == 7
    assert [path.name for path in tmp_path.iterdir()] == ["orders-0"]
