"""A package that is not installed is named, with the line that installs it; one that cannot be loaded, with why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.making import Talk, hello, welcome, write_pcap
from tests.cli.test_log import ROOT
from tests.storage.making import batch, write_segment

EXTRAS = ("pyarrow,pandas,numpy,matplotlib,jinja2,dpkt,fsspec,s3fs,pyspark,scramp,isal,lz4,zstandard,"
          "polars,duckdb")
BLOCKED = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout

names, reason = sys.argv[1].split(","), sys.argv[3]

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in names:
            if reason:
                raise ImportError(reason, name=name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from kwire.cli import main

found = []
for line in json.loads(sys.argv[2]):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        if line.startswith("import "):
            try:
                code = exec(line)
            except ImportError as error:
                code, _ = "error", print(error, file=sys.stderr)
        else:
            code = main(line.split())
    found.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(found))
"""


def without(packages: str, *lines: str, folder: Path, reason: str = "") -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of each command of kwire, or import, where packages are not installed.

    reason: they are, but cannot be loaded, for this reason.
    """
    ran = subprocess.run([sys.executable, "-c", BLOCKED, packages, json.dumps(lines), reason], capture_output=True,
                         text=True, cwd=folder, check=False, env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return [(code, out, err) for code, out, err in json.loads(ran.stdout)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    write_pcap(tmp_path / "a.pcap", Talk().open().exchange(hello(), welcome()).bytes())
    return tmp_path


@pytest.mark.parametrize(("missing", "cases"), [
    ("click", [("log show t-0", "click", "kwire[cli]")]), ("rich", [("releases", "rich", "kwire[cli]")]),
    (EXTRAS, [
        ("log to-parquet t-0 -o out.parquet", "pyarrow", "kwire[arrow]"),
        ("log show t-0 --arrow", "pyarrow", "kwire[arrow]"),
        ("log stats t-0 --plot out.png", "matplotlib", "kwire[report]"),
        ("log whatif t-0 --codec lz4 --plot out.svg", "matplotlib", "kwire[report]"),
        ("audit a.pcap --to 4.4", "dpkt", "kwire[capture]"),
        ("protocol site out", "jinja2", "kwire[report]"),
        ("log show s3://bucket/t-0", "fsspec", "kwire[remote]"),
        ("import kwire.spark", "pyspark", "kwire[spark]"), ("import pyspark_kwire", "pyspark", "kwire[spark]"),
    ]),
    ("s3fs,gcsfs,aiohttp,jinja2,pyarrow", [
        ("log show s3://bucket/t-0", "s3fs", "s3fs"), ("snapshot show s3://bucket/t-0", "s3fs", "s3fs"),
        ("log stats gs://bucket/t-0", "gcsfs", "gcsfs"), ("log verify http://127.0.0.1:1/x.log", "aiohttp", "aiohttp"),
        ("audit a.pcap --to 4.4 --html out.html", "jinja2", "kwire[report]"),
        ("import kwire.spark", "pyarrow", "kwire[spark]"),
    ]),
], ids=lambda value: value.partition(",")[0] if isinstance(value, str) else "")  # fmt: skip
def test_the_package_and_its_extra_are_named(
    missing: str, cases: list[tuple[str, str, str]], folder: Path
) -> None:
    before = sorted(folder.rglob("*"))
    found = without(missing, *(line for line, _, _ in cases), folder=folder)
    for (line, package, install), (code, out, err) in zip(cases, found, strict=True):
        assert (code, out, err.count("\n")) == ("error" if line.startswith("import") else 2, "", 1), (line, err)
        assert f" {package}: " in err and err.endswith(f"pip install {repr(install) if '[' in install else install}\n")
    assert sorted(folder.rglob("*")) == before


def test_what_needs_no_extra(folder: Path) -> None:
    lines = ("log show t-0", "log stats t-0", "log verify t-0", "log whatif t-0 --codec zstd", "log dump t-0",
             "log salvage t-0 new", "releases", "protocol 3.9 --api Fetch", "apis", "storage random-uuid", "--help")
    for line, (code, out, err) in zip(lines, without(EXTRAS, *lines, folder=folder), strict=True):
        assert code == 0 and (out or "findings" in err or "kept" in err), (line, err)


def test_what_cannot_be_loaded_is_not_called_missing(folder: Path) -> None:
    for codec in ("snappy", "lz4", "zstd"):
        write_segment(folder / f"{codec}-0", 0, [batch(0, codec=codec)])
    lines = ("log verify snappy-0", "log stats lz4-0", "log show zstd-0", "log to-parquet t-0 -o out.parquet",
             "log show t-0 --arrow", "log stats t-0 --plot out.png", "audit a.pcap --to 4.4", "protocol site out",
             "log show s3://bucket/t-0", "import kwire; kwire.columns(b'').to_polars()")  # fmt: skip
    reason = "libx.so.1: failed to map segment from shared object"
    found = without(f"cramjam,{EXTRAS}", *lines, folder=folder, reason=reason)
    for line, (code, _, err) in zip(lines, found, strict=True):
        assert code == ("error" if line.startswith("import") else 2), (line, code, err)
        assert err.count("\n") == 1 and reason in err and "install" not in err, (line, err)
    (code, _, err), = without("rich", "releases", folder=folder, reason=reason)
    assert (code, err) == (2, f"kwire: {reason}\n")
