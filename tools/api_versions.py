"""Adds texts of kafka-broker-api-versions to tests/data/versions.tar.xz.

python -m tools.api_versions --brokers 4.4.0 --tools 4.3.0 2.8.2    tool-TOOL--broker-BROKER.txt, one for each pair
python -m tools.api_versions --nothing 4.4.0                        nothing-RELEASE.txt: what the clients of a release
                                                                    say of a broker that offers no API
python -m tools.api_versions --clients 4.4.0 --brokers 4.4.0        clients-RELEASE--broker-BROKER.txt: the same lines
                                                                    by a release whose tools are not on Maven Central
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tools import archives, recording
from tools.kafka import broker, maven, tool
from tools.kafka.classes import pom
from tools.places import DATA, cache

SOURCE = Path(__file__).parent / "java" / "ApiVersionsText.java"


def clients_text(release: str, *bootstrap: str) -> str:
    """NodeApiVersions.toString(true) of a release's kafka-clients, of a broker or of one that offers nothing."""
    place = cache() / "poms" / f"clients-{release}.xml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(pom(release, ["kafka-clients"]))
    jars = maven.classpath(place)
    path = os.pathsep.join([str(maven.compiled([SOURCE], jars, f"api-versions-{release}")), jars])
    done = subprocess.run(
        [maven.java(), "-Xmx128m", "-cp", path, SOURCE.stem, *bootstrap], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"kafka-clients {release}:\n{done.stderr[-2000:]}")
    return done.stdout


def tool_text(release: str, bootstrap: str) -> bytes:
    """What the release's kafka-broker-api-versions prints."""
    done = tool.run(release, "api-versions", "--bootstrap-server", bootstrap)
    if done.returncode:
        raise RuntimeError(f"kafka-broker-api-versions {release}:\n{done.stderr.decode()[-2000:]}")
    return done.stdout


def made(given: argparse.Namespace) -> dict[str, bytes]:
    """Name -> text."""
    files = {f"nothing-{release}.txt": clients_text(release).encode() for release in given.nothing}
    for release in given.brokers:
        with recording.brokers(release, 1, given.zk) as cluster:
            name = recording.label(release, 1, given.zk)
            for one in given.tools:
                files[f"tool-{one}--broker-{name}.txt"] = tool_text(one, cluster.direct)
            for one in given.clients:
                files[f"clients-{one}--broker-{name}.txt"] = clients_text(one, cluster.direct).encode()
    return files


def main(given_arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        "python -m tools.api_versions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("brokers", "tools", "clients", "nothing"):
        parser.add_argument(f"--{name}", nargs="+", default=[], metavar="RELEASE")
    parser.add_argument("--zk", action="store_true", help="brokers in ZooKeeper mode on 2.8 to 3.9")
    parser.add_argument("--into", type=Path, default=DATA / "versions.tar.xz", help="the archive")
    given = parser.parse_args(given_arguments)
    try:
        files = made(given)
    except (maven.MissingTool, broker.NotStarted, recording.NotRecorded, LookupError, RuntimeError) as error:
        print(f"api_versions: {error}", file=sys.stderr)
        return 2
    archives.write(given.into, archives.read(given.into) | {f"./{name}": data for name, data in files.items()})
    print("\n".join(sorted(files)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
