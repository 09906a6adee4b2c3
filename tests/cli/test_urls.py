"""URLs that cannot be read: one line that names the URL and the reason, never a traceback of a library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_log import run

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))


@pytest.mark.parametrize(("url", "code", "said"), [
    ("s3://bucket/topic-0", 1, "s3://bucket/topic-0: the object store failed to read it: NoCredentialsError: "),
    ("http://127.0.0.1:1/x.log", 1, "http://127.0.0.1:1/x.log: Cannot connect to host 127.0.0.1:1"),
    ("http://user:secret@127.0.0.1:1/x.log", 1, "http://127.0.0.1:1/x.log: "),
    ("http://no.such.host.invalid/x.log", 1, "http://no.such.host.invalid/x.log: Cannot connect to host"),
    ("ftp://127.0.0.1:1/x.log", 1, "ftp://127.0.0.1:1/x.log: "),
    ("htp://host/x.log", 2, 'htp://host/x.log: unknown kind of URL, htp:// (did you mean "http"?)'),
    ("kafka://localhost:9092/topic", 2, "kafka://localhost:9092/topic: segments are read from files, not from brokers"),
    ("github://x/y", 1, "github://x/y: the object store failed to read it: TypeError"),
    ("memory://nothing/x-0", 2, "memory://nothing/x-0: no such file or folder"),
])  # fmt: skip
@pytest.mark.parametrize("command", ["show", "stats"])
def test_what_cannot_be_read(
    url: str, code: int, said: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(capsys, "log", command, url)
    assert (found, out, err.count("\n")) == (code, "", 1) and err.startswith(f"kwire: {said}") and "secret" not in err


@pytest.mark.parametrize("arguments", [
    ("snapshot", "show", "URL"), ("log", "verify", "URL"), ("log", "dump", "URL/00000000000000000000.log"),
    ("log", "salvage", "URL"), ("log", "whatif", "URL"), ("audit", "URL", "--to", "4.4"),
])  # fmt: skip
def test_every_command(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, *(one.replace("URL", "s3://user:secret@bucket/t-0") for one in arguments))
    assert code in (1, 2) and err.count("\n") == 1 and err.startswith("kwire: s3://bucket/t-0") and "secret" not in err


@pytest.mark.parametrize("kind", [ValueError, KeyError, RuntimeError, TypeError, ConnectionResetError, PermissionError])
def test_errors_of_any_kind(
    kind: type[Exception], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    def broken(*_: Any, **__: Any) -> Any:
        raise kind("it is\nbroken")

    for name in ("ls", "info", "cat_file"):
        with monkeypatch.context() as patch:
            MemoryFileSystem().pipe("/logs/t-0/00000000000000000000.log", bytes(200))
            patch.setattr(MemoryFileSystem, name, broken)
            code, _, err = run(capsys, "log", "verify", "memory://logs/t-0")
        assert code == (2 if kind is PermissionError else 1) and err.count("\n") == 1, (name, err)
        assert err.startswith("kwire: memory://logs/t-0") and "broken" in err and "unexpected" not in err


@pytest.mark.parametrize("url", ["memory://u:S3cr%2Ft-word@logs/t-0", "memory://logs/t-0?token=S3cr/t-word"])
def test_a_secret_that_a_store_changed(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """botocore names the URL with the query percent-encoded; others name the password alone."""
    from fsspec.implementations.memory import MemoryFileSystem

    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("no connection to https://host/t-0%3Ftoken%3DS3cr%2Ft-word, S3cr%2Ft-word")

    for name in ("ls", "info", "cat_file"):
        monkeypatch.setattr(MemoryFileSystem, name, broken)
    code, _, err = run(capsys, "log", "verify", url)
    assert (code, err.count("\n")) == (1, 1) and "t-word" not in err and "failed to read it: ValueError" in err
