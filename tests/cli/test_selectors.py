"""Topics, partitions and times as people type them: right, or refused with what there is."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.test_log import run
from tests.storage.making import START, batch, write_segment

pytestmark = pytest.mark.quick
TOPICS = ("orders", "orders-eu", "orders-us", "pay", "pay-1")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for topic in TOPICS:
        for partition in range(3):
            write_segment(tmp_path / "logs" / f"{topic}-{partition}", 0, [batch(0, 1)], indexes=False)
    return tmp_path / "logs"


def read(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """The partitions that log show reads."""
    code, out, err = run(capsys, "log", "show", *arguments, "--json")
    assert (code, err) == (0, "")
    return [f"{row['topic']}-{row['partition']}" for row in map(json.loads, out.splitlines())]


@pytest.mark.parametrize(("options", "wanted"), [
    (("--topic", "orders"), ["orders-0", "orders-1", "orders-2"]),
    (("--topic", "orders-*", "--partition", "0"), ["orders-eu-0", "orders-us-0"]),
    (("--topic", "o*", "--partition", "2"), ["orders-2", "orders-eu-2", "orders-us-2"]),
    (("--topic", "orders-e?,orders", "--partition", "1"), ["orders-1", "orders-eu-1"]),
    (("--topic", "orders-0"), ["orders-0"]),
    (("--topic", "orders-0, orders-us-2"), ["orders-0", "orders-us-2"]),
    (("--topic", "orders-[01]"), ["orders-0", "orders-1"]),
    (("--topic", "pay-1"), ["pay-1-0", "pay-1-1", "pay-1-2"]),  # the topic of that name comes first
    (("--topic", "pay-2"), ["pay-2"]),
    (("--topic", "pay-1-0", "--topic", "orders-2"), ["orders-2", "pay-1-0"]),
    (("--topic", "orders", "--partition", "0-1"), ["orders-0", "orders-1"]),
    (("--topic", "orders", "--partition", "0,2"), ["orders-0", "orders-2"]),
    (("--topic", "orders", "--partition", "2", "--partition", "0"), ["orders-0", "orders-2"]),
])  # fmt: skip
def test_what_is_chosen(
    options: tuple[str, ...], wanted: list[str], logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(capsys, logs, *options) == wanted


@pytest.mark.parametrize("command", ["show", "stats", "verify", "whatif", "to-parquet", "salvage"])
@pytest.mark.parametrize(("options", "said"), [
    (("--topic", "ordesr"), 'no topic "ordesr" (did you mean "orders"?); there are 5 topics: orders, orders-eu, '
                            "orders-us, pay, pay-1"),
    (("--topic", "x*"), 'no topic matches "x*"; there are 5 topics: '),
    (("--topic", "orders,zzz"), 'no topic "zzz"; there are 5 topics: '),
    (("--topic", "orders-7"), "no partition 7 of topic orders; there are 3 partitions: 0, 1, 2"),
    (("--topic", "orders", "--partition", "1,9"), "no partition 9; there are 3 partitions: 0, 1, 2"),
    (("--topic", ""), "the name is empty"), (("--topic", ","), "the name is empty"),
    (("--partition", "-1"), "--partition"), (("--partition", "a"), "--partition"),
    (("--partition", "2-1"), "--partition"), (("--partition", "0-99999999999"), "--partition"),
])  # fmt: skip
def test_what_matches_nothing_says_what_there_is(
    command: str, options: tuple[str, ...], said: str, logs: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "log", command, "logs", *options)
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_path_that_is_not_there_names_the_nearest(
    logs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run(capsys, "log", "show", logs / "ordesr-0")
    assert code == 2 and 'no such file or folder (did you mean "orders-0"?); in ' in err
    assert "there are 15 entries: orders-0, orders-1, orders-2, orders-eu-0, " in err
    monkeypatch.chdir(logs)
    assert "; in the current folder there are 15 entries: " in run(capsys, "log", "stats", "nothing/at/all")[2]
    assert 'no file matches; in ' in run(capsys, "log", "stats", logs / "z*")[2]
    assert read(capsys, "orders-*", "--partition", "0") == ["orders-0", "orders-eu-0", "orders-us-0"]  # kwire's glob


def test_the_topic_of_a_file_elsewhere(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "copy.log"
    path.write_bytes((logs / "pay-0" / f"{0:020}.log").read_bytes())
    assert read(capsys, path, "--topic", "mine", "--partition", "7") == ["mine-7"]
    for options in (("--topic", "a*"), ("--topic", "a,b")):
        code, out, err = run(capsys, "log", "show", path, *options)
        assert (code, out) == (2, "") and "--topic takes one name there" in err


def test_topics_of_a_snapshot(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = golden / "data/kafka-4.3.0/data1/__cluster_metadata-0"
    code, out, _ = run(capsys, "snapshot", "show", folder, "--json", "--topic", "alpha-l*,alpha-none")
    assert code == 0 and [*json.loads(out)] == ["alpha-librdkafka", "alpha-lz4", "alpha-none"]
    code, _, err = run(capsys, "snapshot", "show", folder, "--topic", "alpha-non")
    assert code == 2 and '(did you mean "alpha-none"?)' in err


def moment(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(("text", "milliseconds", "how"), [
    ("1700000000", 1_700_000_000_000, "seconds"), ("1700000000.25", 1_700_000_000_250, "seconds"),
    ("1700000000000", 1_700_000_000_000, "milliseconds"), ("1500", 1500, "milliseconds"),
    ("0", 0, "milliseconds"), ("1500s", 1_500_000, "seconds"), ("1700000000ms", 1_700_000_000, "milliseconds"),
    ("2023-11-14T22:13:20Z", 1_700_000_000_000, "ISO 8601"), ("2023-11-14T23:13:20+01:00", 1_700_000_000_000, "ISO"),
    ("2023-11-14 22:13", moment("2023-11-14T22:13"), "without a time zone"),
    ("2023-11-14", moment("2023-11-14"), "without a time zone"), ("20231114", moment("2023-11-14"), "ISO 8601"),
])  # fmt: skip
def test_times_are_shown_as_they_were_read(
    text: str, milliseconds: int, how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_segment(tmp_path, 0, [batch(0, 3, time=milliseconds - 10)])
    for option, offsets in (("start", [1, 2]), ("end", [0])):
        if option == "end" and milliseconds == 0:
            continue
        code, out, err = run(capsys, "log", "show", path, "--json", f"--{option}-timestamp", text)
        shown = datetime.fromtimestamp(milliseconds / 1000, UTC)
        assert code == 0 and err.startswith(f"kwire: --{option}-timestamp {text} is {shown:%Y-%m-%d %H:%M:%S}.")
        assert how in err and err.count("\n") == 1
        assert [json.loads(line)["offset"] for line in out.splitlines()] == offsets


@pytest.mark.parametrize(("text", "seconds"), [
    ("-90s", 90), ("-30m", 1800), ("-1h", 3600), ("-1.5h", 5400), ("-2d", 172_800), ("-1w", 604_800), ("now", 0),
])  # fmt: skip
def test_times_before_now(text: str, seconds: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = round(time.time() * 1000)
    path = write_segment(tmp_path, 0, [batch(0, 1, time=now - seconds * 1000 - 60_000),
                                       batch(1, 1, time=now - seconds * 1000 + 600_000)])
    code, out, err = run(capsys, "log", "show", path, "--json", "--start-timestamp", text)
    assert code == 0 and f"--start-timestamp {text} is 20" in err
    assert [json.loads(line)["offset"] for line in out.splitlines()] == [1]


@pytest.mark.parametrize("options", [
    ("--start-timestamp", "yesterday"), ("--start-timestamp", "-5"), ("--start-timestamp", "-1y"),
    ("--start-timestamp", ""), ("--end-timestamp", "2023-13-01"), ("--start-timestamp", "9" * 30),
    ("--start-offset", "-1"), ("--start-offset", "5", "--end-offset", "4"),
    ("--start-timestamp", str(START), "--end-timestamp", str(START - 1)),
])  # fmt: skip
def test_ranges_that_are_none(options: tuple[str, ...], logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "log", "show", logs, *options)
    last = err.splitlines()[-1]
    assert (code, out) == (2, "") and options[0].removeprefix("--start") in last and "Traceback" not in err
