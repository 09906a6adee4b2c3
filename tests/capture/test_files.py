"""Which files of paths are captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.capture.files import captures

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("paths", [[""], ["*"], ["a.pcap", "a.pcap.gz", "b.pcapng.gz"]])
def test_a_capture_beside_its_gz_is_read_once(tmp_path: Path, paths: list[str]) -> None:
    for name in ("a.pcap", "a.pcap.gz", "b.pcapng.gz"):
        (tmp_path / name).touch()
    assert captures([tmp_path / path for path in paths]) == [str(tmp_path / name) for name in ("a.pcap", "b.pcapng.gz")]
