"""Runs of kafka-storage of real releases for the tests: tests/data/storage.tar.xz (see tools/storage.py).

RELEASE.jsonl has a line for each run: the sequence it belongs to, the configuration, the arguments, stdout, stderr, the
exit code, and the files that are there afterwards (base64). Runs of a sequence follow each other in one folder; all
paths are relative to it, so that they are the same elsewhere: the order of Java's HashMap depends on them.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kwire import schema
from tools import archives
from tools.kafka import tool
from tools.places import DATA

ARCHIVE = DATA / "storage.tar.xz"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
VOTERS = (
    "1@127.0.0.1:19093:JEXY6aqzQY-32P5TStzaFg,7@localhost:19094:MvDxzVmcRsaTz33bUuRU6A,"
    "8@[::1]:19095:07R5amHmR32VDA6jHkGbTA"
)


class Sequence(NamedTuple):
    """Runs in one folder: server.properties with these values, files that are there before, the arguments of each."""

    name: str
    config: dict[str, str]
    runs: list[list[str]]
    files: Mapping[str, str] = MappingProxyType({})


def formatted(*more: str, cluster: str = CLUSTER) -> list[str]:
    """The arguments of a format."""
    return ["format", "-t", cluster, "-c", "server.properties", *more]


INFO = ["info", "-c", "server.properties"]


def combined(static: bool, **more: str) -> dict[str, str]:
    """The configuration of a node that is broker and controller; __ in a name stands for a dot."""
    values = {
        "process.roles": "broker,controller", "node.id": "1", "log.dirs": "d",
        "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:19092", "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }  # fmt: skip
    quorum = {"controller.quorum.voters": "1@127.0.0.1:19093"} if static else {
        "controller.quorum.bootstrap.servers": "127.0.0.1:19093"}  # fmt: skip
    changed = {name.replace("__", "."): value for name, value in more.items()}
    return {name: value for name, value in {**values, **quorum, **changed}.items() if value != "-"}


def sequences(release: str) -> Iterator[Sequence]:
    """What is run for a release."""
    order = schema.releases()

    def since(name: str) -> bool:
        return order.index(release) >= order.index(name)

    static = combined(True)
    new = combined(not since("3.9"))
    alone = ["--standalone"] if since("3.9") else []
    yield Sequence("random-uuid", {}, [["random-uuid"]])
    yield Sequence("usage", static, [
        [], ["--help"], ["format", "--help"], ["info", "-h"], ["bogus"], ["forma"], ["info"], ["info", "-c"],
        formatted("--standalon"), formatted("--foo-bar"), formatted("extra"), formatted("--releas-version", "3.3"),
        ["format", "-c", "server.properties"], ["format", "-t", CLUSTER], ["info", "-c", "missing.properties"],
        formatted("-s", "-I", VOTERS), formatted("-N", "--standalone"), formatted("--re=3.6"),
    ])  # fmt: skip
    yield Sequence("static", static, [INFO, formatted(), INFO, formatted(), formatted("-g"),
                                      formatted("-g", cluster="AAAAAAAAAAAAAAAAAAAAAQ")])  # fmt: skip
    many = ",".join(f"data/disk-{number}" for number in range(5)) + ", meta"
    two = {**new, "log.dirs": "d5a,d5b"}
    yield Sequence("directories", two, [formatted(*alone), INFO])
    yield Sequence("many", {**new, "log.dirs": many, "metadata.log.dir": "meta"}, [formatted(*alone), INFO])
    yield Sequence("metadata-dir", {**new, "metadata.log.dir": "m"}, [formatted(*alone), INFO])
    yield Sequence("one-formatted", two, [formatted("-g", *alone), INFO], {
        "d5a/meta.properties": f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n"})  # fmt: skip
    for name, text in {
        "other-node": f"version=1\nnode.id=5\ncluster.id={CLUSTER}\n", "version-7": "version=7\n", "empty": "",
        "no-cluster": "version=1\nnode.id=1\n", "no-node": f"version=1\ncluster.id={CLUSTER}\n",
        "zookeeper": f"broker.id=1\nversion=0\ncluster.id={CLUSTER}\n", "node-x": "version=1\nnode.id=x\n",
        "reserved": f"version=1\nnode.id=1\ncluster.id={CLUSTER}\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
        "bad-directory": f"version=1\nnode.id=1\ncluster.id={CLUSTER}\ndirectory.id=xyz\n", "version-x": "version=x\n",
    }.items():  # fmt: skip
        yield Sequence(f"meta-{name}", new, [INFO, formatted(*alone), formatted("-g", *alone)],
                       {"d/meta.properties": text})  # fmt: skip
    same = f"version=1\nnode.id=1\ncluster.id={CLUSTER}\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\n"
    yield Sequence("same-ids", two, [INFO, formatted("-g", *alone)],
                   {"d5a/meta.properties": same, "d5b/meta.properties": same})  # fmt: skip
    other = same.replace(CLUSTER, "AAAAAAAAAAAAAAAAAAAAAQ")
    yield Sequence("mixed", two, [INFO, formatted("-g", *alone)],
                   {"d5a/meta.properties": same, "d5b/meta.properties": other})  # fmt: skip
    yield Sequence("a-file", new, [INFO, formatted(*alone)], {"d": "no directory"})
    for version in ("3.2-IV0", "3.3-IV1", "3.3", "3.4-IV0", "3.5.1", "3.9", "4.0", "9.9", "2.8", "", "3.3-IV3.1"):
        yield Sequence(f"version-{version}", new, [formatted(*alone, "--release-version", version)])
    ids = ("not a uuid", f"{CLUSTER[:-1]}!", "short", "A" * 30, f"{CLUSTER}==", " a=b:c#!", "é\\x", "")
    for number, cluster in enumerate(ids):
        yield Sequence(f"cluster-{number}", new, [formatted(*alone, cluster=cluster), INFO])
    yield from slips(new, alone)
    if since("3.5"):
        yield from scrams(new, alone)
    if since("3.8"):
        yield from features(new, alone)
    if since("3.9"):
        yield from quorums()
    if since("4.0"):
        yield from mappings()


def slips(base: dict[str, str], alone: list[str]) -> Iterator[Sequence]:
    """Slips in a configuration, and nodes of other roles."""
    controller = {"process.roles": "controller", "listeners": "CONTROLLER://:19093", "advertised.listeners": "-"}
    broker = {"process.roles": "broker", "node.id": "2", "listeners": "PLAINTEXT://127.0.0.1:19092"}
    for name, changes, flags in (
        ("controller", controller, alone), ("broker", broker, []), ("broker-standalone", broker, alone),
        ("no-roles", {"process.roles": "-"}, alone), ("empty-roles", {"process.roles": ""}, alone),
        ("roles-x", {"process.roles": "broker,x"}, alone), ("roles-twice", {"process.roles": "broker,broker"}, []),
        ("no-node", {"node.id": "-"}, alone), ("node-x", {"node.id": "x"}, alone),
        ("node--1", {"node.id": "-1"}, alone),
        ("node-big", {"node.id": "99999999999"}, alone), ("broker-id", {"broker.id": "2"}, alone),
        ("broker-id-only", {"broker.id": "1", "node.id": "-"}, alone),
        ("no-dirs", {"log.dirs": "-", "log.dir": "e"}, alone), ("empty-dirs", {"log.dirs": ""}, alone),
        ("dirs-commas", {"log.dirs": "d1,,d2 , d1"}, alone), ("no-names", {"controller.listener.names": "-"}, alone),
        ("names-x", {"controller.listener.names": "OTHER"}, alone),
        ("no-quorum", {"controller.quorum.voters": "-", "controller.quorum.bootstrap.servers": "-"}, alone),
        ("voters-x", {"controller.quorum.voters": "1-127.0.0.1:19093"}, []),
        ("voters-y", {"controller.quorum.voters": "x@127.0.0.1:19093"}, []),
        ("voters-port", {"controller.quorum.voters": "1@127.0.0.1"}, []),
        ("voters-other", {"controller.quorum.voters": "3@127.0.0.1:19093"}, []),
        ("listeners-x", {"listeners": "PLAINTEXT:/127.0.0.1:19092"}, alone),
        ("listeners-port", {"listeners": "PLAINTEXT://:19092,CONTROLLER://:19092"}, alone),
        ("listeners-twice", {"listeners": "PLAINTEXT://:19092,PLAINTEXT://:19093"}, alone),
        ("listeners-unmapped", {"listeners": "OTHER://:19092,CONTROLLER://:19093"}, alone),
        ("protocol-x", {"listener.security.protocol.map": "PLAINTEXT:PLAIN,CONTROLLER:PLAINTEXT"}, alone),
        ("map-x", {"listener.security.protocol.map": "PLAINTEXT"}, alone),
        ("no-map", {"listener.security.protocol.map": "-"}, alone),
        ("advertised-any", {"advertised.listeners": "PLAINTEXT://0.0.0.0:19092"}, alone),
        ("advertised-other", {"advertised.listeners": "OTHER://127.0.0.1:19092"}, alone),
        ("any-host", {"listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://0.0.0.0:19093"}, alone),
        ("no-host", {"listeners": "PLAINTEXT://:19092,CONTROLLER://:19093", "advertised.listeners": "-"}, alone),
        ("between-x", {"inter.broker.listener.name": "OTHER"}, alone),
        ("between-controller", {"inter.broker.listener.name": "CONTROLLER"}, alone),
        ("retention-x", {"log.retention.hours": "many"}, alone), ("threads-0", {"num.io.threads": "0"}, alone),
        ("cleanup-x", {"log.cleanup.policy": "delete,x"}, alone), ("codec-x", {"compression.type": "zip"}, alone),
        ("boolean-x", {"auto.create.topics.enable": "yes"}, alone),
        ("double-x", {"log.cleaner.min.cleanable.ratio": "2"}, alone),
        ("unknown-key", {"log.dir5": "x"}, alone), ("roll-0", {"log.roll.ms": "0"}, alone),
        ("ibp", {"inter.broker.protocol.version": "3.3-IV2"}, alone),
        ("unstable", {f"unstable.{what}.versions.enable": "true" for what in ("feature", "metadata")}, alone),
        ("unstable-x", {f"unstable.{what}.versions.enable": "x" for what in ("feature", "metadata")}, alone),
        ("escape", {"log.dirs": "\\u00zz"}, alone), ("latin", {"log.dirs": "\u00e9t\u00e9"}, alone),
    ):  # fmt: skip
        config = {key: value for key, value in {**base, **changes}.items() if value != "-"}
        after = [INFO] if name in ("controller", "latin") else []
        yield Sequence(f"slip-{name}", config, [formatted(*flags), *after])


def scrams(base: dict[str, str], alone: list[str]) -> Iterator[Sequence]:
    """Arguments of --add-scram, good ones and others."""
    salted = 'SCRAM-SHA-512=[name=bob,iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E=",password="bob-pw"]'
    texts = (
        salted, "SCRAM-SHA-256=[name=alice,password=a]",
        'SCRAM-SHA-256=[name=a,iterations=4096,salt="eA==",saltedpassword="eHg="]',
        "SCRAM-SHA-256=[name=admin]", "SCRAM-SHA-1=[name=admin,password=x]", "garbage",
        "SCRAM-SHA-256=name=a,password=x",
        "SCRAM-SHA-256=[name=a,password=x", "SCRAM-SHA-256=[name=a,iterations=10,salt=eA==,password=x]",
        "SCRAM-SHA-256=[name=a,iterations=99999,salt=eA==,password=x]",
        "SCRAM-SHA-256=[name=a,iterations=many,password=x]", "SCRAM-SHA-256=[name=a,color=red,password=x]",
        "SCRAM-SHA-256=[password=x]", "SCRAM-SHA-256=[name=a,saltedpassword=eA==]",
        "SCRAM-SHA-256=[name=a,salt=!,password=x]", "SCRAM-SHA-256=[name=a,password=x,saltedpassword=eA==,salt=eA==]",
        "SCRAM-SHA-256=[name,password=x]", "SCRAM-SHA-256=[]",
    )  # fmt: skip
    for number, text in enumerate(texts):
        yield Sequence(f"scram-{number}", base, [formatted(*alone, "--add-scram", text)])
    yield Sequence("scram-two", base, [formatted(*alone, "-S", salted, "-S", salted.replace("bob", "carol"))])
    yield Sequence("scram-old", base, [formatted(*alone, "-r", "3.4", "-S", salted)])


def features(base: dict[str, str], alone: list[str]) -> Iterator[Sequence]:
    """Arguments of --feature."""
    for number, given in enumerate((
        ["group.version=0", "transaction.version=1"], ["metadata.version=20"], ["metadata.version=5"], ["nope=1"],
        ["group.version=7"], ["group.version"], ["group.version=x"], ["metadata.version=99"], ["kraft.version=0"],
        ["kraft.version=1"], ["eligible.leader.replicas.version=1", "metadata.version=20"], ["share.version=2"],
        ["transaction.version=2", "transaction.version=0"], ["streams.version=1"], ["metadata.version=3"],
    )):  # fmt: skip
        flags = [word for one in given for word in ("--feature", one)]
        yield Sequence(f"feature-{number}", base, [formatted(*alone, *flags)])
    yield Sequence("feature-and-version", base, [formatted(*alone, "-r", "3.9", "-f", "metadata.version=20")])
    yield Sequence("feature-with-version", base, [formatted(*alone, "-r", "3.9", "-f", "group.version=1")])


def quorums() -> Iterator[Sequence]:
    """The voters of a dynamic quorum."""
    dynamic, static = combined(False), combined(True)
    yield Sequence("voters", dynamic, [formatted("-I", VOTERS), INFO])
    yield Sequence("no-voters", dynamic, [formatted(), formatted("-N"), INFO])
    yield Sequence("voters-elsewhere", {**dynamic, "node.id": "9"}, [formatted("-I", VOTERS)])
    two = {**dynamic, "log.dirs": "d1,d2", "metadata.log.dir": "d2"}
    yield Sequence("voters-on-data", two, [formatted("-I", VOTERS)])
    yield Sequence("static-standalone", static, [formatted("-s")])
    yield Sequence("static-voters", static, [formatted("-I", VOTERS)])
    yield Sequence("static-none", static, [formatted("-N")])
    yield Sequence("static-kraft", static, [formatted("-f", "kraft.version=1")])
    lower = {"controller.listener.names": "controller", "listeners": "PLAINTEXT://:19092,controller://:19093"}
    yield Sequence("lower-case", {**dynamic, **lower}, [formatted("-s")])
    advertised = {"advertised.listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://example.com:777"}
    yield Sequence("advertised-controller", {**dynamic, **advertised}, [formatted("-s")])
    for number, text in enumerate((
        "bad", "@h:1:x", "x@h:1:x", "-1@h:1:x", "1@", "1@[h:1", "1@h", "1@[h]1", "1@h:1", "1@h:x:y", "1@h:70000:x",
        "1@h:1:xyz", ",", "", f"{VOTERS},1@h:1:JEXY6aqzQY-32P5TStzaFg", f" {VOTERS} ", f"{VOTERS}, ",
        ",".join(f"{number}@h:1:JEXY6aqzQY-32P5TStza{number:02}" for number in range(3000, 3020)),
    )):  # fmt: skip
        yield Sequence(f"voters-{number}", dynamic, [formatted("-I", text)])


def mappings() -> Iterator[Sequence]:
    """version-mapping and feature-dependencies."""
    versions = ("3.3-IV3", "3.9", "4.0", "4.0-IV1", "4.1", "4.2.1", "4.3-IV0", "4.4", "1.0", "x")
    names = (
        "group.version=1", "metadata.version=25", "share.version=9", "nope=1", "group.version", "group.version=x",
        "eligible.leader.replicas.version=1", "metadata.version=999", "metadata.version=1", "kraft.version=1",
        " group.version = 1 ", "a=b=c",
    )  # fmt: skip
    yield Sequence("mapping", {}, [["version-mapping"], ["version-mapping", "--help"], ["feature-dependencies"],
                                   *(["version-mapping", "-r", version] for version in versions),
                                   *(["feature-dependencies", "-f", name] for name in names)])  # fmt: skip


def record(wanted: list[str]) -> None:
    """Run everything for these releases and put it into the archive."""
    for release in wanted:
        rows = []
        for sequence in sequences(schema.release_name(release)):
            rows += list(run(release, sequence))
            print(f"{release}: {len(rows)} runs, {sequence.name}", file=sys.stderr, flush=True)
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        known = archives.read(ARCHIVE) if ARCHIVE.exists() else {}
        archives.write(ARCHIVE, {**known, f"{release}.jsonl": data})


def run(release: str, sequence: Sequence) -> Iterator[dict[str, Any]]:
    """The rows of one sequence."""
    with tempfile.TemporaryDirectory(prefix="storage-") as place:
        folder = Path(place)
        for name, text in sequence.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        config = "".join(f"{key}={value}\n" for key, value in sequence.config.items())
        if config:
            (folder / "server.properties").write_text(config)
        for arguments in sequence.runs:
            done = tool.run(release, "storage", *arguments, cwd=folder)
            there = {
                str(path.relative_to(folder)): base64.b64encode(path.read_bytes()).decode()
                for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "server.properties"
            }  # fmt: skip
            yield {
                "sequence": sequence.name, "config": config, "before": dict(sequence.files), "arguments": arguments,
                "stdout": done.stdout.decode(), "stderr": "\n".join(lines(done.stderr.decode())),
                "exit": done.returncode, "files": there,
            }  # fmt: skip


def lines(stderr: str) -> Iterator[str]:
    """stderr without the frames of a stack trace."""
    for line in stderr.split("\n"):
        if not line.startswith(("\tat ", "Caused by:", "\t... ")):
            yield line
