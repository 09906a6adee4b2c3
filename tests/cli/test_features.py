"""`kwire features` against fake brokers, and compared with what kafka-features printed without a broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from tests.cli.features_cases import files, kwire_features, rows
from tests.net.fake import HOST, Broker, of_release, serving
from tests.net.features import Node

pytestmark = pytest.mark.quick

RECORDED = sorted(name for name in files() if name.startswith("offline/"))


@pytest.mark.parametrize("name", RECORDED)
def test_texts_without_a_broker(name: str) -> None:
    release = Path(name).stem
    recorded = rows(name)
    assert len(recorded) > 90
    for row in recorded:
        code, out, err = kwire_features("--as", release, *row["args"])
        wanted = row["stderr"] if row["uncaught"] is None else row["uncaught"].partition(": ")[2] + "\n"
        if wanted == "/does/not/exist\n":  # all that the tool says, from 3.6 on
            wanted = "/does/not/exist: No such file or directory\n"
        assert (code, out, err) == (row["exit"], row["stdout"], wanted), row["args"]


def test_texts_of_every_release_are_recorded() -> None:
    recorded = {schema.release_name(Path(name).stem) for name in RECORDED}
    all_releases = schema.releases()
    assert recorded >= set(all_releases[all_releases.index("3.3") : all_releases.index("4.4")])


def test_recorded_sessions_where_they_need_no_broker() -> None:
    done = 0
    for release, name in (("4.3", "cluster/features-4.3.0.jsonl"), ("3.3", "cluster/features-3.3.2.jsonl")):
        for row in rows(name):
            alone = {"version-mapping", "feature-dependencies", "--help"} & set(row["cmd"]) or "error:" in row["stderr"]
            if alone:
                got = kwire_features("--as", release, *row["cmd"][1:])
                assert got == (row["exit"], row["stdout"], row["stderr"]), row
                done += 1
    assert done == 16


def test_own_help_and_options() -> None:
    code, out, err = kwire_features("upgrade", "--help")
    assert (code, err) == (0, "") and out.startswith("usage: kwire features upgrade [-h]")
    assert "--release-version RELEASE_VERSION" in out and "--as RELEASE" in out and "--json" in out
    assert kwire_features("--as", "4.3", "upgrade", "--help")[1].startswith("usage: kafka-features upgrade [-h]")
    assert kwire_features("version-mapping", "--as", "4.0")[0] == 1  # --as after the command, too
    assert kwire_features("version-mapping", "--as", "4.4")[1].startswith("metadata.version=33 (4.4-IV2)\n")


def test_what_only_the_kip_has() -> None:
    """KIP-778: a level by its name, and --metadata; with --as the tool's own rules hold."""
    node = Node({}, {})
    named = ("upgrade", "--feature", "metadata.version=3.9-IV0")
    with serving(node):
        at = ("--bootstrap-server", node.address)
        assert kwire_features(*at, *named) == (0, "metadata.version was upgraded to 21.\n", "")
        code, out, err = kwire_features("--as", "4.3", *at, *named)
        assert (code, out) == (1, "") and err.endswith("unable to parse 3.9-IV0 as a short.\n")
        assert kwire_features(*at, "upgrade", "--feature", "a=3.9-IV0")[2].endswith("parse 3.9-IV0 as a short.\n")
    mapped = kwire_features("version-mapping", "--metadata", "3.9-IV0")
    assert mapped == kwire_features("version-mapping", "--release-version", "3.9-IV0") and mapped[0] == 0
    assert "--metadata" not in kwire_features("version-mapping", "--help")[1]
    assert kwire_features("--as", "4.3", "version-mapping", "--metadata", "3.9-IV0")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--as", "2.8", "describe"], 1, "kwire: Kafka 2.8 has no metadata.version: expected 3.3 or later"),
        (["--as", "9.9", "describe"], 1, "kwire: unknown Kafka release '9.9': known releases are 0.9.0 to 4.4"),
        (["--bootstrap-server", "nonsense", "describe"], 1, "kwire: invalid broker address 'nonsense': "),
        (["--bootstrap-server", f"{HOST}:1", "describe"], 1, f"kwire: {HOST}:1: connection refused"),
        (["--bootstrap-server", f"{HOST}:1", "upgrade", "--feature", "x=1"], 1, f"kwire: {HOST}:1: connection refused"),
        (["--bootstrap-server", f"{HOST}:1", "describe", "--timeout", "0"], 2, "kwire features: Invalid value for"),
        (["--bootstrap-server", f"{HOST}:1", "--command-config", "/", "describe"], 1, "kwire: /: Is a directory"),
    ],
)
def test_bad_arguments(arguments: list[str], code: int, message: str) -> None:
    got, out, err = kwire_features(*arguments)
    assert (got, out, err.count("\n")) == (code, "", 1) and err.startswith(message)


def test_an_empty_release_is_not_the_newest() -> None:
    for command in ("describe", "version-mapping"):
        code, out, err = kwire_features("--as", "", "--bootstrap-server", f"{HOST}:1", command)
        assert (code, out) == (1, "") and err.startswith("kwire: unknown Kafka release '': ")


def test_a_pipe_as_config_file_is_opened_once(tmp_path: Path) -> None:
    pipe = tmp_path / "client.properties"
    os.mkfifo(pipe)
    done = threading.Event()

    def give() -> None:
        pipe.write_text("client.id=x\n")
        done.set()

    threading.Thread(target=give, daemon=True).start()
    command = ["features", "--bootstrap-server", f"{HOST}:1", "--command-config", str(pipe), "describe"]
    ended = subprocess.run([sys.executable, "-m", "kwire", *command], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stderr) == (1, f"kwire: {HOST}:1: connection refused\n")
    assert done.wait(5)


def test_a_slip_in_the_config_file_shows_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=Module password=hunter2;")
    code, out, err = kwire_features("--bootstrap-server", f"{HOST}:1", "--command-config", str(path), "describe")
    assert (code, out) == (1, "") and "hunter2" not in err and str(path) in err and err.count("\n") == 1


def test_describe() -> None:
    node = Node({"metadata.version": (7, 30), "group.version": (0, 1)}, {"metadata.version": 25}, epoch=18)
    with serving(node):
        lines = kwire_features("--as", "4.3", "--bootstrap-server", node.address, "describe")[1].splitlines()
        assert [" ".join(line.split()) for line in lines] == [
            "Feature: group.version SupportedMinVersion: 0 SupportedMaxVersion: 1 FinalizedVersionLevel: 0 Epoch: 18",
            "Feature: metadata.version SupportedMinVersion: 3.3-IV3 SupportedMaxVersion: 4.3-IV0 "
            "FinalizedVersionLevel: 4.0-IV3 Epoch: 18",
        ]
        # a release before KIP-1022 asks in ApiVersions v3, and knows fewer levels
        assert kwire_features("--as", "3.5", "--bootstrap-server", node.address, "describe")[1].endswith(
            "Feature: metadata.version\tSupportedMinVersion: 3.3-IV3\tSupportedMaxVersion: UNKNOWN [30]\t"
            "FinalizedVersionLevel: UNKNOWN [25]\tEpoch: 18\n"
        )
        assert node.asked("ApiVersions")[-1].version == 3
        value = json.loads(kwire_features("--json", "--bootstrap-server", node.address, "describe")[1])
        assert value["epoch"] == 18 and value["features"]["group.version"] == {"min": 0, "max": 1, "finalized": 0}
        assert value["features"]["metadata.version"]["names"] == {
            "min": "3.3-IV3", "max": "4.3-IV0", "finalized": "4.0-IV3",
        }  # fmt: skip
        node.epoch = -1
        assert kwire_features("--bootstrap-server", node.address, "describe")[1].endswith("Epoch: -\n")
        got = kwire_features("--bootstrap-server", node.address, "describe", "--node-id", "77")
        timeout = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment."
        assert got == (1, "", f"{timeout} Call: describeFeatures\n")


def test_updates() -> None:
    node = Node({"group.version": (0, 1)}, {})
    with serving(node):
        at = ("--bootstrap-server", node.address)
        got = kwire_features(*at, "upgrade", "--feature", "group.version=1")
        assert got == (0, "group.version was upgraded to 1.\n", "")
        assert kwire_features(*at, "disable", "--feature", "group.version", "--dry-run")[1] == (
            "group.version can be disabled.\n"
        )
        node.refuse("b", 95, "no \x1b[2Jway")
        code, out, err = kwire_features(*at, "downgrade", "--feature", "b=1", "--feature", "a=2", "--unsafe")
        assert (code, err) == (1, "2 out of 2 operation(s) failed.\n")  # version 2: all or none
        assert out == "Could not downgrade a to 2. no \\x1b[2Jway\nCould not downgrade b to 1. no \\x1b[2Jway\n"
        old = ("--as", "3.3", "--timeout", "inf", *at)
        code, out, err = kwire_features(*old, "downgrade", "--feature", "b=1", "--feature", "a=2")
        assert (code, err) == (1, "1 out of 2 operation(s) failed.\n")  # version 1: each for itself
        assert out == "a was downgraded to 2.\nCould not downgrade b to 1. no \\x1b[2Jway\n"
        value = json.loads(kwire_features("--json", *at, "upgrade", "--feature", "b=1", "--dry-run")[1])
        assert value == {"dry_run": True, "results": {"b": {"level": 1, "downgrade": "NONE", "error": {
            "code": 95, "name": "INVALID_UPDATE_VERSION", "message": "no \\x1b[2Jway"}}}}  # fmt: skip
    assert [(r.version, r.message.validate_only) for r in node.asked("UpdateFeatures")] == [
        (2, False), (2, True), (2, False), (1, False), (2, True),
    ]  # fmt: skip


def test_a_release_sets_all_features() -> None:
    """An upgrade leaves out those at level 0, a downgrade does not."""
    node = Node({}, {})
    with serving(node):
        at = ("--as", "4.3", "--bootstrap-server", node.address)
        code, out, _ = kwire_features(*at, "upgrade", "--release-version", "4.0")
        assert code == 0 and out.splitlines() == [
            "group.version was upgraded to 1.",
            "kraft.version was upgraded to 1.",
            "metadata.version was upgraded to 25.",
            "transaction.version was upgraded to 2.",
        ]
        code, out, _ = kwire_features(*at, "downgrade", "--release-version", "4.0", "--unsafe")
        assert code == 0 and "share.version was downgraded to 0.\n" in out and len(out.splitlines()) == 7
    up, down = (request.message.feature_updates for request in node.asked("UpdateFeatures"))
    assert {row.upgrade_type for row in up} == {1} and {row.upgrade_type for row in down} == {3}


def test_a_dry_run_that_the_broker_would_not_understand_is_not_sent() -> None:
    node = Node({}, {}, versions=(0, 0))
    with serving(node):
        code, out, err = kwire_features("--bootstrap-server", node.address, "upgrade", "--feature", "x=1", "--dry-run")
        reason = "a dry run needs UpdateFeatures version 1 or newer, the broker supports version 0"
        assert (code, out, err) == (1, "", f"kwire: {node.address}: {reason}\n")
    assert not node.asked("UpdateFeatures")


def test_a_broker_is_no_controller_and_the_other_way_round() -> None:
    controller = Node({}, {}, controller=True)
    broker = Broker(of_release("4.3"))
    reason = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    refusal = messages.DescribeClusterResponse(error_code=114, error_message=reason, cluster_id="")
    broker.answer = lambda _: refusal
    with serving(controller, broker):
        got = kwire_features("--bootstrap-server", controller.address, "describe")
        prefix = "org.apache.kafka.common.errors."
        assert got == (1, "", f"{prefix}UnsupportedVersionException: The node does not support METADATA\n")
        got = kwire_features("--bootstrap-controller", broker.address, "upgrade", "--feature", "x=1")
        assert got == (1, f"Could not upgrade x to 1. {reason}\n", "1 out of 1 operation(s) failed.\n")
        got = kwire_features("--bootstrap-controller", broker.address, "describe")
        assert got == (1, "", f"{prefix}MismatchedEndpointTypeException: {reason}\n")
        refusal.error_code, refusal.error_message = 31, None
        got = kwire_features("--bootstrap-controller", broker.address, "describe")
        assert got == (1, "", f"{prefix}ClusterAuthorizationException: Cluster authorization failed.\n")
        got = kwire_features("--bootstrap-controller", controller.address, "upgrade", "--feature", "x=1")
        assert got == (0, "x was upgraded to 1.\n", "")


def test_damaged_responses_are_one_clear_error() -> None:
    """Whatever a broker answers: an exit code of the tool, and no exception but kwire's own."""
    random = Random(15)
    node = Node({"metadata.version": (7, 30)}, {"metadata.version": 25})
    controller = Node({"metadata.version": (7, 30)}, {"metadata.version": 25}, controller=True)
    damaged = ""

    def damage(server: Node) -> None:
        whole, negotiate = server.answer, server.negotiate

        def bad(request: Any, answer: Any) -> Any:
            if request.name != damaged or random.random() < 0.3:
                return answer
            frame = bytearray(kwire.encode_response(answer, request.version, correlation_id=request.correlation_id))
            for _ in range(random.randint(1, 4)):
                place = random.randrange(4, len(frame))
                frame[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            return bytes(frame[: random.randint(4, len(frame))] if random.random() < 0.3 else frame)

        server.answer = lambda request: bad(request, whole(request))
        server.negotiate = lambda request: bad(request, negotiate(request))  # type: ignore[method-assign]

    damage(node)
    damage(controller)
    seen = set()
    with serving(node, controller):
        for number in range(60):
            damaged = ("ApiVersions", "UpdateFeatures", "Metadata", "DescribeCluster")[number % 4]
            flag, server = ("--bootstrap-controller", controller) if number % 8 > 3 else ("--bootstrap-server", node)
            command = ["describe"] if number % 3 else ["upgrade", "--feature", "a=1"]
            code, out, err = kwire_features("--timeout", "0.2", flag, server.address, *command)
            assert code in (0, 1) and (code == 0 or err.count("\n") == 1), (number, code, out, err)
            assert "\x1b" not in out + err
            seen.add((damaged, code))
    assert {name for name, code in seen if code} >= {"ApiVersions", "Metadata", "DescribeCluster"}


def test_json_of_the_look_ups() -> None:
    value: Any = json.loads(kwire_features("--json", "version-mapping", "--release-version", "4.0")[1])
    assert value["metadata_version"] == "4.0-IV3" and value["features"]["transaction.version"] == 2
    line = ("--json", "feature-dependencies", "--feature", "eligible.leader.replicas.version=1")
    value = json.loads(kwire_features(*line)[1])
    assert value == [{"feature": "eligible.leader.replicas.version", "level": 1, "needs": {"metadata.version": 23}}]
    assert kwire.schema.metadata_version(23).name == "4.0-IV1"
