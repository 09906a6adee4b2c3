"""kwire storage: what the tool does not have, and what a clumsy user types."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kwire import schema
from kwire.cli import main
from tests.storage.formatting.runs import run

pytestmark = pytest.mark.quick
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """server.properties in the current folder; its directory is d."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\nlog.dirs=d\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
    )
    return path


def formatted(*more: str) -> tuple[str, str, int]:
    return run(["format", "-t", CLUSTER, "-c", "server.properties", *more])


@pytest.mark.parametrize("arguments", [
    ["version-mapping"], ["version-mapping", "--release-version", "3.9"],
    ["feature-dependencies", "--feature", "share.version=1", "--feature", "eligible.leader.replicas.version=1"],
])
def test_json_of_the_look_ups_is_that_of_kwire_features(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for command in ("storage", "features"):
        assert main([command, *arguments, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


def test_json(config: Path) -> None:
    out, err, code = formatted("-s", "--json", "--feature", "group.version=0")
    assert (err, code) == ("", 0)
    told = json.loads(out)
    assert told["formatted"]["d"]["cluster.id"] == CLUSTER and told["levels"]["group.version"] == 0
    out, _, code = run(["info", "-c", "server.properties", "--json"])
    assert code == 0 and json.loads(out)["metadata"]["node.id"] == "1" and json.loads(out)["problems"] == []
    assert len(json.loads(run(["random-uuid", "--json"])[0])) == 22


def test_the_newest_release_is_the_default(config: Path) -> None:
    assert formatted("-s")[2] == 0
    assert f"metadata.version={schema.metadata_versions()[-2].level}" in run(["version-mapping"])[0]
    assert not (config.parent / "d" / "bootstrap.checkpoint").exists()


def test_metadata_version_is_kip_778s_name(config: Path) -> None:
    out, _, code = formatted("-s", "--as", "4.3", "--metadata-version", "3.9-IV0")
    assert code == 0 and out.endswith("with metadata.version 3.9-IV0.\n")
    out, err, code = formatted("-s", "--metadata-version", "4.0", "-r", "4.0", "-g")
    assert code == 1 and "--metadata-version" in err and "not allowed with" in " ".join(err.split())


@pytest.mark.parametrize("where", ["front", "back", "equals"])
def test_as_before_and_after_the_subcommand(where: str, config: Path) -> None:
    words = ["format", "-t", CLUSTER, "-c", "server.properties", "-s"]
    given = {"front": ["--as", "3.9.1", *words], "back": [*words, "--as", "3.9"], "equals": [*words, "--as=3.9"]}[where]
    out, err, code = run(given)
    assert (err, code) == ("", 0) and "3.9-IV0" in out and (config.parent / "d" / "bootstrap.checkpoint").exists()


@pytest.mark.parametrize("release", ["2.8", "3.2", "9.9", "x", ""])
def test_releases_without_the_tool(release: str, config: Path) -> None:
    out, err, code = formatted("--as", release)
    assert code == 1 and out == "" and err.count("\n") == 1 and f"--as {release}" in err


def test_help() -> None:
    out, _, code = run(["format", "--help"])
    assert code == 0 and "--metadata-version" in out and "--as" in out
    for release in ("3.3", "3.8", "3.9", "4.4"):
        out, _, code = run(["--as", release, "format", "--help"])
        assert out.startswith("usage: kafka-storage format") and code == int(release < "3.9")
        assert run(["format", "-h", "--as", release])[0] == out


def test_no_options_of_later_releases(config: Path) -> None:
    for flag in ("--standalone", "--add-scram=x", "--feature=a=1"):
        _, err, code = formatted("--as", "3.3", flag)
        assert code == 1 and f"unrecognized arguments: '{flag}'" in re.sub(r"\s+", " ", err)
    assert "invalid choice" in re.sub(r"\s+", " ", run(["version-mapping", "--as", "3.9"])[1])


def test_an_option_before_the_subcommand(config: Path) -> None:
    out, err, code = run(["--bogus", "format"])
    assert (out, code) == ("", 1) and err.startswith("usage: kwire storage [-h]") and "'--bogus'" in err
    assert run(["--as", "4.3", "--bogus"])[1].startswith("usage: kafka-storage [-h]")


def test_files_of_arguments(config: Path) -> None:
    Path("words").write_text("info\n-c\n@name\n")
    Path("name").write_text("server.properties\n")
    assert run(["@words"]) == run(["info", "-c", "server.properties"])
    assert run(["info", "@me"])[1].endswith("error: Could not read arguments from file 'me'\n")
    Path("me").write_text("@me\n@me\n")
    assert run(["info", "@me"])[1].endswith("error: Could not read arguments from file 'me'\n")
    assert "@words" in " ".join(run(["--as", "3.4", "@words"])[1].split())  # from 3.5 on


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_lines_of_a_file_of_arguments_end_where_java_ends_them(sign: str, config: Path) -> None:
    scram = f"SCRAM-SHA-256=[name=a{sign}b,password=pw]"
    Path("words").write_bytes(f"format\r\n-c\rserver.properties\n-t\n{CLUSTER}\n-s\n--add-scram\n{scram}\n".encode())
    assert run(["@words"])[1:] == ("", 0)


def test_short_options_in_one_word(config: Path) -> None:
    _, err, code = run(["format", f"-t{CLUSTER}", "-gscserver.properties"])
    assert (err, code) == ("", 0) and (config.parent / "d").exists()
    assert "unrecognized arguments: '-gx'" in run(["format", "-gx"])[1]
    assert "-N: not allowed with argument --standalone/-s" in " ".join(run(["format", "-gsN"])[1].split())


def test_an_option_of_kwire_without_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("storage", "features"):
        assert main([command, "version-mapping", "--as"]) == 2
        assert "'--as' requires an argument" in capsys.readouterr().err


def test_terminal_escapes_are_shown_escaped(config: Path) -> None:
    config.write_text(config.read_text().replace("log.dirs=d", "log.dirs=d\\u001b[31m"))
    out, _, code = formatted("-s")
    assert code == 0 and "\x1b" not in out and "\\x1b[31m" in out
    assert "\x1b" not in run(["info", "-c", "server.properties"])[0]
    assert "\x1b" not in formatted("-s", "--feature", "\x1b[2J")[1]
    assert "\x1b" not in formatted("\x1b[2J")[1]


def test_a_password_without_its_option_is_not_shown(config: Path) -> None:
    _, err, code = formatted("SCRAM-SHA-256=[name=a,password=hush]")
    assert code == 1 and "hush" not in err


@pytest.mark.parametrize("text, reason", [
    ("log.dirs=\\u00zz", "Malformed"), ("", 'configuration "process.roles"'), ("\0" * 100, "process.roles"),
    ("a" * (17 << 20), "exceeds"), ("log.dirs=a\\u0000b\n", "Nul"), ("node.id=" + "9" * 5000 + "\n", "broker.id"),
])  # fmt: skip
def test_a_strange_configuration(text: str, reason: str, config: Path) -> None:
    config.write_text((config.read_text() if "=" in text else "") + text)
    out, err, code = formatted("-s")
    assert (out, code) == ("", 1) and err.count("\n") == 1 and "server.properties: " in err and reason in err
    assert not (config.parent / "d").exists()


def test_a_folder_and_a_missing_file_as_configuration(config: Path) -> None:
    for name in (".", "missing", "server.properties/x", "a\0b"):
        _, err, code = run(["info", "-c", name])
        assert code == 1 and err.count("\n") == 1


@pytest.mark.quick
@pytest.mark.parametrize("argument", [
    "SCRAM-SHA-256=[name=a,password=S3cret,S3cret]", "SCRAM-SHA-256=[name=a,password=S3cret]S3cret]",
    "SCRAM-SHA-256=[name=a,Password = S3cret]", 'SCRAM-SHA-256=[password="x,S3cret"]',
])  # fmt: skip
def test_an_argument_too_many_shows_nothing_of_its_password(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", "format", "-c", "x", "-t", "y", "--add-scram", argument, argument]) == 1
    out, err = capsys.readouterr()
    assert "S3cret" not in out + err and "unrecognized" in err and "[hidden]" in err
