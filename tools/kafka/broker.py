"""Real Apache Kafka brokers, from 0.9 on, on loopback: python -m tools.kafka.broker start|stop|status|resolve.

    start RELEASE [--dir D] [--nodes 3] [--prop k=v] ...    formats, starts, waits; prints bootstrap=... pid=... dir=...
    stop DIR         clean stop (SIGTERM, SIGKILL after 60 s)
    status DIR       one JSON object; exit 1 when a node does not answer
    resolve RELEASE  downloads the jars and prints the class path

Needs Java 17 and Maven; no Kafka distribution, no container. Before 2.8 and with --zk: ZooKeeper mode.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.kafka import maven, releases
from tools.kafka.releases import version

HOST = "127.0.0.1"


class NotStarted(Exception):
    """A broker that did not come up; the text has the end of its log."""


@dataclass
class Options:
    """How to start brokers of a release."""

    release: str
    dir: Path | None = None
    nodes: int = 1
    port: int = 0  # the first client port; 0: free ports
    properties: dict[str, str] = field(default_factory=dict)
    format_arguments: list[str] = field(default_factory=list)  # e.g. ["--release-version", "3.7-IV4"]
    static: bool = False  # controller.quorum.voters in place of a dynamic quorum (KIP-853)
    zookeeper: bool = False  # on a release that also has KRaft (2.8 .. 3.9)
    heap: str = "512m"
    wait: float = 120  # seconds
    extra_listeners: list[str] = field(default_factory=list)  # NAME:PROTOCOL:PORT:ADVERTISED, ports + i for node i
    restart: bool = False  # dir holds the data of an earlier start: no formatting
    cluster_id: str | None = None
    c1: bool = False  # the quick compiler only

    @property
    def kraft(self) -> bool:
        """Whether it runs with KRaft."""
        return version(self.release) >= (3, 3) and not self.zookeeper

    @property
    def dynamic(self) -> bool:
        """Whether its quorum of controllers may change (KIP-853)."""
        return self.kraft and version(self.release) >= (3, 9) and not self.static


@dataclass
class Running:
    """Brokers that run; the same is kept in DIR/state.json."""

    release: str
    dir: str
    mode: str
    pids: list[int]
    ports: list[int]
    controller_ports: list[int]
    cluster_id: str
    zookeeper_port: int
    zookeeper_pid: int | None = None

    @property
    def bootstrap(self) -> str:
        """What clients take as bootstrap servers."""
        return ",".join(f"{HOST}:{port}" for port in self.ports)

    def save(self) -> None:
        """Write down what runs, for later commands."""
        (Path(self.dir) / "state.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Running:
        """What a folder's state.json says."""
        return cls(**json.loads((folder / "state.json").read_text()))

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        stop(Path(self.dir))


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def random_uuid() -> str:
    """As Kafka writes them; none that begins with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def exchange(connection: socket.socket, body: bytes) -> bytes:
    """Send one frame; the answer's frame."""
    connection.sendall(struct.pack(">i", len(body)) + body)
    with connection.makefile("rb", buffering=0) as reader:
        answer = b""
        size = 4
        for _ in range(2):
            answer = b""
            while len(answer) < size:
                piece = reader.read(size - len(answer))
                if not piece:
                    raise EOFError
                answer += piece
            if size == 4:
                size = struct.unpack(">i", answer)[0]
    return answer


def brokers_seen(port: int, release: str, timeout: float = 2.0) -> int:
    """How many brokers the one at a port tells of in its Metadata; 0 while it does not answer."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout) as connection:
            metadata = 0  # 0.9 knows neither ApiVersions nor Metadata v1
            if version(release) >= (0, 10):
                answer = exchange(connection, struct.pack(">hhih", 18, 0, 7, 5) + b"probe")
                if struct.unpack(">ih", answer[:6]) != (7, 0):
                    return 0
                metadata = 1
            answer = exchange(connection, struct.pack(">hhih", 3, metadata, 8, 5) + b"probe" + struct.pack(">i", 0))
            return int(struct.unpack(">i", answer[4:8])[0])
    except (OSError, EOFError, struct.error):
        return 0


def start(options: Options) -> Running:
    """Formats (KRaft), starts and waits for every node. A failed start leaves nothing running."""
    spawned: list[int] = []
    try:
        return _start(options, spawned)
    except BaseException:
        for pid in spawned:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        raise


def _start(options: Options, spawned: list[int]) -> Running:
    release, count = options.release, options.nodes
    jars = os.pathsep.join(releases.classpath(release))
    folder = Path(options.dir or tempfile.mkdtemp(prefix=f"kafka-{release}-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    logging = releases.log_flags(release, folder)
    deadline = time.monotonic() + options.wait
    if options.restart:
        state = Running.load(folder)
        state.pids = []
    else:
        free = free_ports(2 * count + 1)
        ports = [options.port + i for i in range(count)] if options.port else free[:count]
        state = Running(release, str(folder), "kraft" if options.kraft else "zookeeper", [], ports,
                        free[count : 2 * count], options.cluster_id or random_uuid(), free[-1])  # fmt: skip

    def spawn(log: str, heap: str, *arguments: str) -> int:
        with open(folder / log, "ab") as out:
            process = subprocess.Popen(
                [maven.java(), *releases.java_flags(heap, options.c1), *logging, "-cp", jars, *arguments],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder, start_new_session=True,
            )  # fmt: skip
        spawned.append(process.pid)
        return process.pid

    def wait_for(up: object, pid: int, log: str) -> None:
        while not up():  # type: ignore[operator]
            if time.monotonic() > deadline or not alive(pid):
                lines = (folder / log).read_text(errors="replace").splitlines()[-15:]
                raise NotStarted(f"Kafka {release} did not start, see {folder / log}:\n" + "\n".join(lines))
            time.sleep(0.1)

    if not options.kraft:
        configuration = folder / "zookeeper.properties"
        (folder / "zookeeper").mkdir(exist_ok=True)
        configuration.write_text(
            f"dataDir={folder / 'zookeeper'}\nclientPort={state.zookeeper_port}\nclientPortAddress={HOST}\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n"
        )
        no_jmx = "-Dzookeeper.jmx.log4j.disable=true"  # reload4j lacks the class
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        state.zookeeper_pid = spawn("zookeeper.log", "128m", no_jmx, main, str(configuration))
        wait_for(lambda: listens(state.zookeeper_port), state.zookeeper_pid, "zookeeper.log")
    if not options.restart:
        configure(options, state, folder)
        if options.kraft:
            flags = releases.java_flags(options.heap, options.c1)
            format_nodes(options, state, folder, [maven.java(), *flags, *logging, "-cp", jars])
    for node in range(1, count + 1):
        configuration = folder / f"server{node}.properties"
        state.pids.append(spawn(f"server{node}.log", options.heap, "kafka.Kafka", str(configuration)))
    state.save()
    for node, (port, pid) in enumerate(zip(state.ports, state.pids, strict=True), 1):
        wait_for(lambda port=port: brokers_seen(port, release) >= count, pid, f"server{node}.log")
    return state


def listens(port: int) -> bool:
    """Whether a port of this machine takes connections."""
    try:
        socket.create_connection((HOST, port), 1).close()
    except OSError:
        return False
    return True


def configure(options: Options, state: Running, folder: Path) -> None:
    """Writes each node's server.properties."""
    replicas = str(min(options.nodes, 3))
    common = {
        "num.network.threads": "2", "num.io.threads": "4", "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": replicas, "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas, "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0", "log.cleaner.dedupe.buffer.size": "8388608", "num.partitions": "1",
    }  # fmt: skip
    if version(options.release) >= (4, 0):
        share = "share.coordinator.state.topic"
        common |= {f"{share}.num.partitions": "4", f"{share}.replication.factor": replicas, f"{share}.min.isr": "1"}
    controllers = [f"{HOST}:{port}" for port in state.controller_ports]
    for i in range(options.nodes):
        plain, controller = f"PLAINTEXT://{HOST}:{state.ports[i]}", f"CONTROLLER://{controllers[i]}"
        told = common | {"log.dirs": str(folder / f"data{i + 1}"), "listeners": plain, "advertised.listeners": plain}
        if options.kraft:
            told |= {
                "process.roles": "broker,controller", "node.id": str(i + 1), "listeners": f"{plain},{controller}",
                "controller.listener.names": "CONTROLLER", "inter.broker.listener.name": "PLAINTEXT",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }  # fmt: skip
            if version(options.release) >= (3, 9):
                told["advertised.listeners"] = f"{plain},{controller}"
            if options.dynamic:
                told["controller.quorum.bootstrap.servers"] = ",".join(controllers)
            else:
                told["controller.quorum.voters"] = ",".join(f"{j}@{c}" for j, c in enumerate(controllers, 1))
        else:
            told |= {"broker.id": str(i + 1), "zookeeper.connect": f"{HOST}:{state.zookeeper_port}"}
        for listener in options.extra_listeners:
            name, protocol, port, advertised = listener.split(":")
            told["listeners"] += f",{name}://{HOST}:{int(port) + i}"
            told["advertised.listeners"] += f",{name}://{HOST}:{int(advertised) + i}"
            protocols = told.get("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT")
            if f"{name}:" not in protocols:
                protocols += f",{name}:{protocol}"
            told |= {"listener.security.protocol.map": protocols, "inter.broker.listener.name": "PLAINTEXT"}
        told |= options.properties
        (folder / f"server{i + 1}.properties").write_text("".join(f"{k}={v}\n" for k, v in told.items()))


def format_nodes(options: Options, state: Running, folder: Path, java: list[str]) -> None:
    """kafka-storage format for each node."""
    ids = [random_uuid() for _ in range(options.nodes)]
    extra = list(options.format_arguments)
    if options.dynamic:
        voters = (f"{i + 1}@{HOST}:{port}:{ids[i]}" for i, port in enumerate(state.controller_ports))
        extra = (["--standalone"] if options.nodes == 1 else ["--initial-controllers", ",".join(voters)]) + extra
    for node in range(1, options.nodes + 1):
        configuration = folder / f"server{node}.properties"
        done = subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", state.cluster_id, "-c", str(configuration), *extra],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        (folder / f"format{node}.log").write_text(done.stdout)
        if done.returncode:
            raise NotStarted(f"formatting failed:\n{done.stdout[-2000:]}")


def stop(folder: Path) -> bool:
    """Ends the nodes, then ZooKeeper; False when one had to be killed. Only processes that name the folder."""
    state = Running.load(folder)
    clean = True
    for pids in (state.pids, [state.zookeeper_pid] if state.zookeeper_pid else []):
        told = []
        for pid in pids:
            with contextlib.suppress(OSError):
                if state.dir in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGTERM)
                    told.append(pid)
        deadline = time.monotonic() + 60
        for pid in told:
            while alive(pid) and time.monotonic() < deadline:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
                time.sleep(0.05)
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
                clean = False
    return clean


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m tools.kafka.broker", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("resolve").add_argument("release")
    for name in ("stop", "status"):
        commands.add_parser(name).add_argument("dir", type=Path)
    begin = commands.add_parser("start")
    begin.add_argument("release")
    begin.add_argument("--dir", type=Path, help="work folder; a fresh one by default")
    begin.add_argument("--nodes", type=int, default=1, help="controller and broker nodes, or brokers with ZooKeeper")
    begin.add_argument("--port", type=int, default=0, help="first client port; free ports by default")
    begin.add_argument("--prop", action="append", default=[], metavar="K=V", help="server property")
    begin.add_argument("--format-arg", action="append", default=[], help="one more argument of the storage format")
    begin.add_argument("--static", action="store_true", help="controller.quorum.voters, no dynamic quorum")
    begin.add_argument("--zk", action="store_true", help="ZooKeeper mode on 2.8 to 3.9")
    begin.add_argument("--heap", default="512m")
    begin.add_argument("--wait", type=float, default=120, help="seconds")
    begin.add_argument("--extra-listener", action="append", default=[], metavar="NAME:PROTOCOL:PORT:ADVERTISED")
    begin.add_argument("--restart", action="store_true", help="the folder holds data of an earlier start")
    begin.add_argument("--cluster-id")
    begin.add_argument("--c1", action="store_true", help="quick compiler only: a quicker start")
    return parser


def options_of(told: argparse.Namespace) -> Options:
    """The options that a command line gives."""
    return Options(
        told.release, told.dir, told.nodes, told.port, dict(one.split("=", 1) for one in told.prop), told.format_arg,
        told.static, told.zk, told.heap, told.wait, told.extra_listener, told.restart, told.cluster_id, told.c1,
    )  # fmt: skip


def main() -> int:
    """Run the command; its exit code."""
    told = arguments().parse_args()
    try:
        if told.command == "resolve":
            print(os.pathsep.join(releases.classpath(told.release)))
        elif told.command == "start":
            state = start(options_of(told))
            print(f"bootstrap={state.bootstrap} pid={','.join(map(str, state.pids))} dir={state.dir} "
                  f"release={state.release} mode={state.mode}")  # fmt: skip
        elif told.command == "stop":
            clean = stop(told.dir.resolve())
            print("stopped" if clean else "killed", told.dir)
            return 0 if clean else 1
        else:
            state = Running.load(told.dir)
            seen = [brokers_seen(port, state.release) for port in state.ports]
            print(json.dumps({**asdict(state), "brokers_seen": seen}))
            return 0 if all(seen) else 1
    except (NotStarted, maven.MissingTool) as error:
        print(f"broker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
