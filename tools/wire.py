"""Records the frames between clients and brokers of a release into tests/data/wire.tar.xz.

    python -m tools.wire --release 4.4.0                         every client against one broker
    python -m tools.wire --release 4.4.0 --nodes 3 --clients aiokafka kafka-python

Adds broker-RELEASE/CLIENT.jsonl and .bin, or replaces them; the rest of the archive stays as it is.
Needs Java 17, Maven and the clients; what is missing is named, and --clients leaves it out.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tools import archives, clients, recording
from tools.kafka import broker, maven
from tools.places import DATA


def kept(lines: str) -> str:
    """The proxy's lines as the archive has them: compact, without the bytes in hex."""
    rows = (json.loads(line) for line in lines.splitlines())
    slim = ({key: value for key, value in row.items() if key != "hex"} for row in rows)
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in slim)


def record(cluster: recording.Cluster, commands: dict[str, list[str]], prefix: str) -> dict[str, bytes]:
    """Every client's work, one after the other; the files of the archive."""
    files = {}
    with tempfile.TemporaryDirectory() as place:
        for name, command in commands.items():
            out = Path(place) / name
            with recording.recorded(cluster, out):
                recording.work(name, command, cluster.bootstrap, f"{prefix}")
            files[f"{name}.jsonl"] = kept(Path(f"{out}.jsonl").read_text()).encode()
            files[f"{name}.bin"] = Path(f"{out}.bin").read_bytes()
    return files


def main(given_arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    given = recording.arguments("wire", __doc__ or "", DATA / "wire.tar.xz").parse_args(given_arguments)
    try:
        commands = clients.commands(given.clients)
        with recording.brokers(given.release, given.nodes, given.zk) as cluster:
            files = record(cluster, commands, given.prefix)
    except (maven.MissingTool, broker.NotStarted, recording.NotRecorded) as error:
        print(f"wire: {error}", file=sys.stderr)
        return 2
    under = f"broker-{recording.label(given.release, given.nodes, given.zk)}"
    old = {name.removeprefix(f"{under}/"): data for name, data in archives.read(given.into).items()
           if name.startswith(f"{under}/")}  # fmt: skip
    archives.replace(given.into, under, old | files)
    for name, data in files.items():
        print(f"{under}/{name}: {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
