"""Makes log directories of real brokers after clients' work and a clean stop, into tests/data/golden.tar.xz.

    python -m tools.golden --release 4.4.0                       data/kafka-4.4.0/dataN
    python -m tools.golden --release 4.3.0 --dump                and what its own kafka-dump-log tells of every file

Replaces the folder of that release in the archive; the rest stays as it is. Ids, ports, times and offsets of producers
differ from run to run: tests compare these files with what kafka-dump-log tells of the same files.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools import archives, clients, recording
from tools.kafka import broker, maven, tool
from tools.places import DATA

LEFT_OUT = (".deleted", ".lock", "kafka_cleanshutdown.tmp", ".swap")
CLEANER = 20  # seconds that the log cleaner gets for the compacted topic
DECODERS = {
    "__cluster_metadata": ["--cluster-metadata-decoder"], "__consumer_offsets": ["--offsets-decoder"],
    "__transaction_state": ["--transaction-log-decoder"], "__share_group_state": ["--share-group-state-decoder"],
}  # fmt: skip
DUMPED = (".log", ".checkpoint", ".snapshot", ".txnindex", ".index", ".timeindex")


def dump_options(name: str) -> list[str]:
    """The options of kafka-dump-log for a file: the decoder of its topic, or the records themselves."""
    topic = Path(name).parent.name.rpartition("-")[0]
    if not name.endswith((".log", ".checkpoint")):
        return []
    return DECODERS.get(topic, ["--print-data-log", "--deep-iteration"])


def dumped(release: str, root: Path, under: str) -> dict[str, bytes]:
    """dump-log/kafka-RELEASE.jsonl and its texts: one run of the tool for each file that has something in it."""
    rows: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    for path in sorted(p for p in root.rglob("*") if p.suffix in DUMPED and p.stat().st_size):
        name = str(path.relative_to(root))
        command = ["--files", name, *dump_options(name)]
        done = tool.run(release, "dump-log", *command, cwd=root)
        text = f"{under}/{len(rows) + 1:03}.txt"
        files[text] = done.stdout
        rows.append({
            "n": len(rows) + 1, "cwd": f"data/{under}", "cmd": ["kafka-dump-log", *command], "stdout_file": text,
            "stdout_bytes": len(done.stdout), "stderr": done.stderr.decode(errors="replace"), "exit": done.returncode,
        })  # fmt: skip
    files[f"{under}.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return files


def made(given: Any, commands: dict[str, list[str]], under: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """(files of the log directories, files of dump-log)."""
    with tempfile.TemporaryDirectory(prefix="golden-") as place:
        with recording.brokers(given.release, given.nodes, given.zk) as cluster:
            for name, command in commands.items():
                recording.work(name, command, cluster.direct, given.prefix)
            time.sleep(CLEANER)
            cluster.stop()
            data: dict[str, bytes] = {}
            for node in range(1, given.nodes + 1):
                data[f"server{node}.properties"] = (cluster.folder / f"server{node}.properties").read_bytes()
                logs = archives.folder(cluster.folder / f"data{node}", LEFT_OUT)
                data |= {f"data{node}/{name}": one for name, one in logs.items()}
        for name, one in data.items():
            (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / name).write_bytes(one)
        return data, dumped(given.release, Path(place), under) if given.dump else {}


def main(given_arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = recording.arguments("golden", __doc__ or "", DATA / "golden.tar.xz")
    parser.add_argument("--dump", action="store_true", help="keep what the release's kafka-dump-log tells of each file")
    given = parser.parse_args(given_arguments)
    under = f"kafka-{recording.label(given.release, given.nodes, given.zk)}"
    try:
        commands = clients.commands(given.clients)
        if given.dump:
            tool.main_class(given.release, "dump-log")
        data, texts = made(given, commands, under)
    except (maven.MissingTool, broker.NotStarted, recording.NotRecorded, LookupError) as error:
        print(f"golden: {error}", file=sys.stderr)
        return 2
    archives.replace(given.into, f"data/{under}", data)
    if texts:
        kept = {
            name: one for name, one in archives.read(given.into).items() if not name.startswith(f"dump-log/{under}")
        }
        archives.write(given.into, kept | {f"dump-log/{name}": one for name, one in texts.items()})
    print(f"data/{under}: {len(data)} files; dump-log: {len(texts)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
