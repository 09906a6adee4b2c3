"""`kwire snapshot`: show, diff and downgrade as a user types them."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.cli import main
from kwire.storage.metadata import ClusterImage, metadata_log

pytestmark = pytest.mark.quick

Run = Callable[..., tuple[str, str]]
CHECKPOINT = "00000000000000000255-0000000001.checkpoint"


@pytest.fixture
def folder(golden: Path) -> Path:
    return golden / "data/kafka-4.3.0/data1" / metadata_log.FOLDER


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """(stdout, stderr) of kwire snapshot, whose exit code is as expected."""

    def running(*arguments: object, code: int = 0) -> tuple[str, str]:
        found = main(["snapshot", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert found == code, err
        return out, err

    return running


def test_show(run: Run, folder: Path) -> None:
    out, err = run("show", folder.parent)
    assert err == ""
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if not line.startswith(("voter", "scram", "next")))
    assert lines["metadata.version"] == "30 (4.3-IV0)" and lines["offset"].startswith("303 (epoch 1, 2026-")
    assert lines["topics"].startswith("17: __consumer_offsets, ") and lines["acls"] == "3"
    assert "scram users        3: admin, alice, bob" in out
    value = json.loads(run("show", folder, "--offset", 254, "--json")[0])
    assert value == json.loads(json.dumps(ClusterImage.read(folder, 254).to_json()))


def test_show_topics(run: Run, folder: Path) -> None:
    out, _ = run("show", folder, "--offset", 254, "--topic", "alpha-none", "--topic", "__transaction_state")
    lines = out.splitlines()
    assert lines[0] == "alpha-none         id WWnWkvlyQ0mlPM40craCfg retention.ms=86400000"
    assert lines[1].startswith("alpha-none-0       leader 1, epoch 0, replicas 1, in sync 1, directories ")
    assert len(lines) == 1 + 2 + 1 + 4
    value = json.loads(run("show", folder, "--topic", "alpha-none", "--json")[0])
    assert [*value] == ["alpha-none"] and value["alpha-none"]["partitions"][0]["eligibleLeaderReplicas"] is not None
    out, _ = run("show", folder, "--topic", "alpha-tx-1")
    assert [line.split()[0] for line in out.splitlines()] == ["alpha-tx", "alpha-tx-1"]
    value = json.loads(run("show", folder, "--topic", "alpha-tx-1", "--json")[0])
    assert [row["partitionId"] for row in value["alpha-tx"]["partitions"]] == [1]
    assert "no partition 7 of topic alpha-tx; there are 2 partitions: 0, 1 " in run(
        "show", folder, "--topic", "alpha-tx-7", code=2)[1]
    assert 'no topic "nothing"; there are 17 topics: __consumer_offsets, ' in run(
        "show", folder, "--topic", "nothing", code=2)[1]


def test_nothing_that_is_printed_holds_a_secret(run: Run, folder: Path, tmp_path: Path) -> None:
    image = ClusterImage.read(folder, 254)
    shown = "".join(
        part for arguments in (
            ("show", folder), ("show", folder, "--json"), ("diff", folder, "--from", 94), ("diff", folder, "--from", 94,
             "--json"), ("downgrade", folder, tmp_path / "x", "--metadata", "3.3-IV3", "--unsafe", "--json"),
        ) for part in run(*arguments)
    )  # fmt: skip
    for record in image.scram.values():
        for secret in (record.salt, record.stored_key, record.server_key):
            assert secret.hex() not in shown and base64.b64encode(secret).decode() not in shown
            assert repr(secret)[2:-1] not in shown


def test_diff(run: Run, folder: Path) -> None:
    files = sorted(folder.glob("*.checkpoint"))
    out, err = run("diff", files[2], files[3])
    assert out.splitlines()[:2] == [
        "removed  FeatureLevelRecord streams.version", "added    TopicRecord alpha-librdkafka"]
    assert err == "18 changes from offset 176 to 254\n"
    assert run("diff", folder, "--from", 176, "--to", 254)[0] == out
    rows = [json.loads(line) for line in run("diff", files[2], files[3], "--json")[0].splitlines()]
    assert len(rows) == 18 and {row["kind"] for row in rows} == {"added", "removed"}
    changed = run("diff", folder, "--from", 254)[0]
    assert "changed  RegisterBrokerRecord broker 1: fenced false -> true, inControlledShutdown false -> true" in changed
    assert "changed  PartitionRecord alpha-tx-0: " in changed and "isr [1] -> []" not in changed.splitlines()[0]
    assert run("diff", files[3], files[3]) == ("", "0 changes from offset 254 to 254\n")
    assert "expected --from OFFSET, or a second PATH" in run("diff", folder, code=2)[1]
    assert "expected one or two PATHs" in run("diff", folder, folder, folder, code=2)[1]


def test_an_image_of_nothing_has_no_time(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"")
    assert run("show", path)[0].startswith("offset             -1 (epoch 0)\n")
    assert run("diff", path, path)[1] == "0 changes from offset -1 to -1\n"


def test_downgrade_is_refused_then_written(run: Run, folder: Path, tmp_path: Path) -> None:
    source, target = folder / CHECKPOINT, tmp_path / "out"
    out, err = run("downgrade", source, target, "--metadata", "4.2-IV1", code=1)
    refusal = "kwire: downgrade of metadata.version from 30 (4.3-IV0) to 29 (4.2-IV1) is refused"
    assert out == "" and err.startswith(refusal)
    out, err = run("downgrade", source, "--metadata", "4.2-IV1", "--dry-run", code=1)
    assert out == "RegisterBrokerRecord broker 1: cordonedLogDirs [] would be lost\n"
    assert "107 records, 1 loss; nothing written (dry run)" in err and "is refused unless it is unsafe" in err
    assert list(tmp_path.iterdir()) == []
    out, err = run("downgrade", source, target, "--metadata", 29, "--unsafe")
    assert out == "RegisterBrokerRecord broker 1: cordonedLogDirs [] lost\n"
    assert err == ("metadata.version 30 (4.3-IV0) -> 29 (4.2-IV1): 107 records, 1 loss; "
                   f"written to {target}, whose name in a log is {CHECKPOINT}\n")
    image = ClusterImage.read(target)
    assert image.metadata_version == 29
    _, err = run("downgrade", source, target, "--metadata", 29, "--unsafe", code=2)
    assert "File exists (--force replaces it)" in err
    _, err = run("downgrade", target, tmp_path, "--metadata", "4.0", code=1)
    assert "the offset of the image is not known" in err and [*tmp_path.iterdir()] == [target]
    named = target.rename(tmp_path / CHECKPOINT)
    (tmp_path / "folder").mkdir()
    out, err = run("downgrade", named, tmp_path / "folder", "--metadata", "4.0")  # lossless: 4.0-IV3
    assert out == "" and err.endswith(f"0 losses; written to {tmp_path / 'folder' / CHECKPOINT}\n")
    assert ClusterImage.read(tmp_path / "folder").metadata_version == 25
    target = named
    assert "is an input" in run("downgrade", target, target, "--metadata", 25, "--force", code=2)[1]


def test_a_downgrade_is_never_in_place(run: Run, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / metadata_log.FOLDER
    shutil.copytree(folder, place)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    for source, target in ((tmp_path, place), (place, place / "new.checkpoint"), (place, f"{place}/../{place.name}")):
        _, err = run("downgrade", source, target, "--metadata", 29, "--unsafe", "--force", code=2)
        assert "OUT is in the folder of the log that is read" in err
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
    run("downgrade", place, tmp_path, "--metadata", 29, "--unsafe")
    assert ClusterImage.read(tmp_path / f"{304:020d}-{1:010d}.checkpoint").metadata_version == 29


def test_dry_run_as_json(run: Run, folder: Path) -> None:
    out, _ = run("downgrade", folder / CHECKPOINT, "--metadata", "3.5-IV1", "--dry-run", "--unsafe", "--json")
    value = json.loads(out)
    assert value["from"] == {"level": 30, "name": "4.3-IV0"} and value["to"] == {"level": 10, "name": "3.5-IV1"}
    assert value["records"] == 102 and len(value["losses"]) == 48 and value["allowed"] and value["written"] is None
    assert value["lowered"] == {"eligible.leader.replicas.version": {"from": 1, "to": 0}}
    assert {"record": "UserScramCredentialRecord", "name": "UserScramCredentialRecord bob SCRAM-SHA-512", "field": None,
            "value": None} in value["losses"]
    refused = json.loads(run("downgrade", folder / CHECKPOINT, "--metadata", 10, "--dry-run", "--json", code=1)[0])
    assert refused == {**value, "allowed": False}


BAD = [
    (("show", "nothing-there"), 2, "nothing-there: No such file or directory"),
    (("show", "{folder}", "--offset", "9999"), 1, "offset 9999 is past its end"),
    (("show", "{folder}", "--release", "0.8"), 1, "0.8"),
    (("show", "{folder}", "--release", "2.8"), 1, "metadata logs of Kafka 2.8 are not supported"),
    (("downgrade", "{folder}", "--metadata", "25"), 2, "Missing argument 'OUT'"),
    (("downgrade", "{folder}", "x"), 2, "--metadata"),
    (("downgrade", "{folder}", "--metadata", "31", "--dry-run"), 1, "is not below the 30 (4.3-IV0)"),
    (("downgrade", "{folder}", "--metadata", "9.9-IV9", "--dry-run"), 1, "unknown metadata.version '9.9-IV9'"),
    (("downgrade", "{folder}", "--metadata", "9" * 400, "--dry-run"), 1, "unknown metadata.version"),
    (("downgrade", "{folder}", "/no/such/folder/x", "--metadata", "29", "--unsafe"), 2,
     "there is no folder /no/such/folder"),
    (("show", "{folder}", "--offset", "-2"), 2, "'--offset': -2 is not in the range"),
    (("diff", "{folder}", "--from", "-5"), 2, "'--from': -5 is not in the range"),
    (("diff", "{folder}", "--from", "5", "--to", "-2"), 2, "'--to': -2 is not in the range"),
    (("downgrade", "{folder}", "--metadata", "29", "--dry-run", "--offset", "-2"), 2, "-2 is not in the range"),
]


@pytest.mark.parametrize(("arguments", "code", "text"), BAD, ids=range(len(BAD)))
def test_a_slip_is_one_line(run: Run, arguments: tuple[str, ...], code: int, text: str, folder: Path) -> None:
    out, err = run(*(one.format(folder=folder) for one in arguments), code=code)
    assert text in err and len(err.strip().splitlines()) == 1 and out == ""


def test_names_from_the_log_do_not_reach_the_terminal_raw(run: Run, tmp_path: Path) -> None:
    from kwire import messages as m
    from tests.storage.metadata.records import write_log

    write_log(tmp_path, [m.ConfigRecord(resource_type=4, resource_name="\x1b[2J", name="\u202e", value="\x07")])
    for arguments in (("show", tmp_path), ("show", tmp_path, "--json"), ("diff", tmp_path, "--from", -1)):
        assert all(char.isprintable() or char == "\n" for char in "".join(run(*arguments)))
