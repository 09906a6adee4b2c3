"""Adds what kafka-features of a release prints to tests/data/features.tar.xz.

    python -m tools.features 4.3.1 3.9.2                        offline/RELEASE.jsonl: command lines without a broker
    python -m tools.features --cluster 4.3.0 --level 3.5-IV2    cluster/features-RELEASE.jsonl, and the metadata log:
                                                                the commands of that file, on a broker of its own
    python -m tools.features --nodes 4.3.0                      cluster/three-nodes-RELEASE.jsonl: other commands, on
                                                                three nodes, and the levels in their log

Ports and epochs differ from run to run; tests leave them out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kwire
from tools import archives
from tools.kafka import broker, maven, tool
from tools.places import DATA

ARCHIVE = DATA / "features.tar.xz"
SOURCE = Path(__file__).parent / "java" / "CommandLines.java"

_NOBODY = "--bootstrap-server localhost:1"  # no request is sent
_HELPS = ["describe", "upgrade", "downgrade", "disable", "version-mapping", "feature-dependencies"]
_PARSED = [
    "", "--help", "-h", "-hx", *(f"{command} --help" for command in _HELPS),
    "bogus", "desxribe", "descr", "d", "up", "v", "describe", "-x", "--xyzzy", "--xommand-config x", "--bootstrap-s x",
    f"{_NOBODY} bogus", f"{_NOBODY} --bogus describe", f"{_NOBODY} describe --bogus", f"{_NOBODY} describe extra more",
    f"{_NOBODY} describe --node-id x", f"{_NOBODY} describe --node-id -1", f"{_NOBODY} describe --node-id",
    f"{_NOBODY} describe --node-id 99999999999", "--bootstrap-server", _NOBODY, "--bootstrap localhost:1 upgrade",
    "--bootstrap-s localhost:1 upgrade", "--bootstrap-server=localhost:1 upgrade",
    f"{_NOBODY} --bootstrap-controller localhost:2 describe", "--bootstrap-controller localhost:1 upgrade",
    f"{_NOBODY} -- upgrade", f"{_NOBODY} upgrade -- --feature", "version-mapping",
    "version-mapping --release-version 4.0", "feature-dependencies", "feature-dependencies --feature group.version=1",
    f"--command-config /does/not/exist {_NOBODY} upgrade",
]  # fmt: skip
_CHANGED = [
    "upgrade", "upgrade --feature", "upgrade --dry-run=x", "upgrade --dry-run", "upgrade --feature x",
    "upgrade --feature x=", "upgrade --feature =1", "upgrade --feature x=99999", "upgrade --feature x=-1",
    "upgrade --feature x=0", "upgrade --feature x=+0", "upgrade --feature x=1.5", "upgrade --feature x=1 --feature x=2",
    "upgrade --metadata bogus", "upgrade --metadata 2.8", "upgrade --metadata 3.8 --feature metadata.version=22",
    "upgrade --metadata 3.8 --release-version 3.8", "upgrade --release-version bogus", "upgrade --release-version",
    "upgrade --release-version 99.9", "downgrade", "downgrade --metadata 2.8", "downgrade --unsafe",
    "downgrade --unsafe --feature x", "disable", "disable --feature x --feature x", "disable --metadata 3.3",
]  # fmt: skip
_MAPPED = [
    "", "3.3-IV3", "3.7", "3.7.1", "3.7.x.y", "3.7.", "3.9-IV0", "4.0", "4.0-IV1", "4.1", "4.2-IV0", "4.3", "4.4",
    "4.4-IV0", "3.0", "3", "x%sy", "3.0-IV1", "0.10.1.1",
]  # fmt: skip
_DEPENDENCIES = [
    "", "eligible.leader.replicas.version=1", "metadata.version=25 share.version=1 nope=1", "metadata.version=99",
    "metadata.version=6", "transaction.version=9", "transaction.version", "kraft.version=0",
]  # fmt: skip

THREE_NODES_LEVEL = "3.7-IV4"  # what their brokers are formatted with
# B: the brokers; C1, C2, C3: a controller each, of which one leads; C: C1 and C2
_THREE_NODES = """\
--bootstrap-server B describe
--bootstrap-controller C describe
--bootstrap-controller B describe
--bootstrap-server C1 describe
--bootstrap-controller B upgrade --feature group.version=1
--bootstrap-server C2 upgrade --feature group.version=1
--bootstrap-server B describe --node-id 3
--bootstrap-controller C describe --node-id 2
--bootstrap-server B describe --node-id 4
--bootstrap-server B upgrade --feature eligible.leader.replicas.version=1
--bootstrap-server B upgrade --feature eligible.leader.replicas.version=1 --feature metadata.version=22
--bootstrap-server B upgrade --feature eligible.leader.replicas.version=1 --feature metadata.version=23 --dry-run
--bootstrap-server B upgrade --feature transaction.version=2 --feature group.version=1 --feature share.version=1
--bootstrap-controller C1 upgrade --metadata 3.8
--bootstrap-controller C2 upgrade --metadata 3.9 --dry-run
--bootstrap-controller C3 upgrade --feature streams.version=1
--bootstrap-controller C upgrade --release-version 4.1
--bootstrap-controller C2 downgrade --release-version 4.0
--bootstrap-controller C3 downgrade --release-version 3.9 --unsafe --dry-run
--bootstrap-server B downgrade --feature eligible.leader.replicas.version=0 --feature metadata.version=25
--bootstrap-server B downgrade --feature metadata.version=25 --unsafe
--bootstrap-server B downgrade --feature metadata.version=22
--bootstrap-server B downgrade --feature metadata.version=22 --unsafe
--bootstrap-server B downgrade --feature transaction.version=2
--bootstrap-server B downgrade --feature transaction.version=1 --feature nope=1
--bootstrap-server B disable --feature transaction.version --feature share.version
--bootstrap-server B disable --feature transaction.version --feature nope --dry-run
--bootstrap-server B disable --feature streams.version
--bootstrap-server B upgrade --feature metadata.version=31
--bootstrap-server B upgrade --feature metadata.version=30 --feature kraft.version=2
--bootstrap-server B upgrade --feature metadata.version=30 --feature streams.version=1
--bootstrap-server B upgrade --feature kraft.version=1 --dry-run
--bootstrap-server B disable --feature kraft.version --unsafe
--bootstrap-server B downgrade --feature metadata.version=29
--bootstrap-server B describe
"""


def offline() -> list[list[str]]:
    """The command lines that need no broker."""
    lines = [*_PARSED, *(f"{_NOBODY} {line}" for line in _CHANGED)]
    lines += [f"{_NOBODY} version-mapping" + (f" --release-version {text}" if text else "") for text in _MAPPED]
    for text in _DEPENDENCIES:
        lines.append(f"{_NOBODY} feature-dependencies" + "".join(f" --feature {one}" for one in text.split()))
    return [*(line.split() for line in lines), [*_NOBODY.split(), "upgrade", "--feature", " a = 0"]]


def run(release: str, lines: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """What the tool of a release prints for some command lines, in one JVM: args, exit, stdout, stderr, uncaught."""
    with tempfile.TemporaryDirectory() as folder:
        java, *flags, main = tool.command(release, "features", Path(folder))
        jars = flags.pop()
        here = maven.compiled([SOURCE], jars, f"command-lines-{release}")
        command = [java, "-Djava.security.manager=allow", *flags, os.pathsep.join([str(here), jars]), SOURCE.stem, main]
        text = "".join("\t".join(line) + "\n" for line in lines)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{"args": list(line), **row} for line, row in zip(lines, rows, strict=True)]


def on_a_cluster(release: str, level: str, rows: list[dict[str, Any]]) -> dict[str, bytes]:
    """The recorded commands run again, one after the other, on a broker that was formatted with a level."""
    made = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "broker"
        options = broker.Options(release, folder, format_arguments=["--release-version", level])
        with broker.start(options) as state:
            for row in rows:
                port = (state.controller_ports if "--bootstrap-controller" in row["cmd"] else state.ports)[0]
                command = [re.sub(r"(?<=127\.0\.0\.1:)\d+", str(port), part) for part in row["cmd"]]
                done = tool.run(release, "features", *command[1:])
                made.append({
                    "n": row["n"], "release": release, "started_with": level, "cmd": command,
                    "stdout": done.stdout.decode(), "stderr": done.stderr.decode(), "exit": done.returncode,
                })  # fmt: skip
            broker.stop(folder)
        log = archives.folder(folder / "data1" / "__cluster_metadata-0", ("leader-epoch", ".index", ".timeindex"))
    files = {f"metadata-log-{release}/{name}": data for name, data in log.items() if name.endswith(".log")}
    return files | {f"features-{release}.jsonl": _lines(made)}


def three_nodes(state: broker.Running) -> list[list[str]]:
    """The command lines for a cluster of three nodes."""
    controllers = [f"{broker.HOST}:{port}" for port in state.controller_ports]
    names = {"B": state.bootstrap, "C": ",".join(controllers[:2])}
    names |= {f"C{number}": address for number, address in enumerate(controllers, 1)}
    return [[names.get(word, word) for word in line.split()] for line in _THREE_NODES.splitlines()]


def on_three_nodes(release: str) -> list[dict[str, Any]]:
    """What the tool prints for three_nodes(); and last the levels that it leaves in the log."""
    with tempfile.TemporaryDirectory() as place:
        options = broker.Options(release, Path(place), 3, format_arguments=["--release-version", THREE_NODES_LEVEL])
        with broker.start(options) as state:
            rows = run(release, three_nodes(state))
            return [*rows, {"levels": levels_of(state)}]


def levels_in(log: bytes) -> list[list[Any]]:
    """The FeatureLevelRecords of a metadata log: [name, level]."""
    batches = (batch for batch in kwire.read_batches(log) if not batch.is_control)
    values = (record.value for batch in batches for record in batch)
    messages = (kwire.decode_metadata_record(value)[0] for value in values if value is not None)
    return [[m.name, m.feature_level] for m in messages if isinstance(m, kwire.messages.FeatureLevelRecord)]


def levels_of(state: broker.Running, node: int = 1) -> list[list[Any]]:
    """levels_in() for a node that may run."""
    return levels_in((Path(state.dir) / f"data{node}" / "__cluster_metadata-0" / f"{0:020}.log").read_bytes())


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(prog="features", description=__doc__, formatter_class=raw)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="releases whose offline texts to record")
    parser.add_argument("--cluster", metavar="RELEASE", help="run the commands of cluster/features-RELEASE.jsonl again")
    parser.add_argument("--nodes", metavar="RELEASE", help="record the commands for three nodes")
    parser.add_argument("--level", default="3.5-IV2", help="what its broker is formatted with")
    given = parser.parse_args(arguments)
    try:
        files = archives.read(ARCHIVE)
        for release in given.releases:
            files[f"offline/{release}.jsonl"] = _lines(run(release, offline()))
        if given.cluster:
            name = f"cluster/features-{given.cluster}.jsonl"
            rows = [json.loads(line) for line in files[name].splitlines()]
            made = on_a_cluster(given.cluster, given.level, rows)
            files |= {f"cluster/{one}": data for one, data in made.items()}
        if given.nodes:
            files[f"cluster/three-nodes-{given.nodes}.jsonl"] = _lines(on_three_nodes(given.nodes))
        archives.write(ARCHIVE, files)
    except (LookupError, maven.MissingTool, broker.NotStarted) as error:
        print(f"features: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
