"""Folders of an attacker: links that lead back, folders and files that may not be looked at."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from kwire.capture import captures
from kwire.cli import main
from kwire.storage import discover
from kwire.storage.places.filesystem import LocalFolder
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick


def with_links_back(folder: Path) -> Path:
    """Three links to the folder that they are in: 3^40 paths until the system says no."""
    for name in "abc":
        (folder / name).symlink_to(".")
    return folder


def test_a_glob_ends_where_links_lead_back(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    with_links_back(tmp_path)
    (found,) = discover(f"{tmp_path}/**/*.log")
    assert found.path == f"{tmp_path}/t-0/{0:020}.log"
    assert discover(f"{tmp_path}/" + "**/" * 1000 + "*.log") == [found]
    with pytest.raises(ValueError, match="4096 characters"):
        discover(f"{tmp_path}/" + "[" * 5000)


def test_a_glob_of_captures_ends_where_links_lead_back(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    path = tmp_path / "one" / "a.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    with_links_back(tmp_path)
    assert captures(f"{tmp_path}/**/*.pcap") == [str(path)]


def test_a_link_to_the_same_folder_elsewhere_is_read_once(tmp_path: Path) -> None:
    write_segment(tmp_path / "x" / "t-0", 0, [batch(0)], indexes=False)
    (tmp_path / "y").symlink_to("x")
    assert len(discover(f"{tmp_path}/**/*.log")) == 1
    assert len(discover(f"{tmp_path}/y/**/*.log")) == 1  # a link that is named is followed


def test_what_may_not_be_looked_at_is_not_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = os.stat

    def stat(path: Any, *arguments: Any, **keywords: Any) -> os.stat_result:
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", path)
        return whole(path, *arguments, **keywords)

    monkeypatch.setattr(os, "stat", stat)
    path = str(tmp_path / "locked" / "x")
    with pytest.raises(PermissionError):
        LocalFolder().entry(path)
    for command in (["log", "ls", path], ["log", "salvage", path], ["snapshot", "show", path],
                    ["audit", path, "--to", "4.0"]):
        assert main(command) == 2 and "Permission denied" in capsys.readouterr().err, command
    assert LocalFolder().entry("a" * 300) is None  # as a long comma list is looked at


def test_a_folder_of_captures_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.pcap").write_bytes(b"")
    whole = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("inner"):
            raise PermissionError(13, "Permission denied", path)
        return whole(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError):
        captures(tmp_path)
