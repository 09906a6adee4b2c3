"""Makes test vectors with Apache Kafka's own classes of a release.

    python -m tools.vectors --release 4.4.0                      messages, unsupported, malformed, versions of 4.4.0
    python -m tools.vectors --release 3.3.2 --sample             the same, small: one vector of a kind
    python -m tools.vectors --release 4.4.0 --only records       records.zip and records.jsonl.gz
    python -m tools.vectors --release 4.4.0 --message Fetch      what matches alone, to look at one message

Needs Java 17 and Maven. What Kafka's classes refused goes to stderr; exit 1 if anything was refused.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.kafka import maven
from tools.kafka.classes import KafkaClasses
from tools.places import VECTORS
from tools.schema.jars import NoSuchRelease
from tools.vectors import files, judged, messages, records, values

OF_RELEASE = ("messages", "unsupported", "malformed", "versions")  # files with the release in their name
SHARED = ("quirks", "primitives", "records", "records-corrupt")  # one file each, of the release it was made with


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m tools.vectors", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", required=True, help="a patch release, such as 4.4.0")
    parser.add_argument("--into", type=Path, default=VECTORS, help="the folder (default tests/data/vectors)")
    names = " ".join(OF_RELEASE + SHARED)
    parser.add_argument(
        "--only", action="append", choices=OF_RELEASE + SHARED, metavar="WHAT",
        help=f"one of {names}; may be repeated (default: the first four)",
    )  # fmt: skip
    parser.add_argument("--sample", action="store_true", help="a small set: one vector of each kind, 20 malformed ones")
    parser.add_argument("--message", default="", help="only messages whose name begins so")
    return parser


def make(kafka: KafkaClasses, given: argparse.Namespace) -> list[str]:
    """Writes the files that were asked for; the problems, one a line."""
    into, wanted, release = given.into, given.only or OF_RELEASE, given.release
    into.mkdir(parents=True, exist_ok=True)
    problems: list[str] = []
    if set(wanted) & set(OF_RELEASE):
        of_release(kafka, given, problems)
    if "quirks" in wanted:
        name = "quirks.jsonl.gz"
        files.write_lines(into / name, judged.quirks(kafka, list(files.read_lines(inputs(into, name)))))
    if "primitives" in wanted:
        judged.write_primitives(kafka, inputs(into, "primitives.json"), into / "primitives.json")
    if {"records", "records-corrupt"} & set(wanted) and not kafka.has_batches:
        problems.append(f"records: Kafka {release} is older than 3.9, whose record classes are asked here")
        return problems
    if "records" in wanted:
        rows, made = records.make(kafka)
        files.write_zip(into / "records.zip", made)
        files.write_lines(into / "records.jsonl.gz", rows)
    if "records-corrupt" in wanted:
        name = "records-corrupt.jsonl.gz"
        files.write_lines(into / name, judged.corrupt(kafka, list(files.read_lines(inputs(into, name)))))
    return problems


def inputs(into: Path, name: str) -> Path:
    """Where the hand-made inputs of a file are: in the file itself, or in the tests' one while there is none."""
    return into / name if (into / name).exists() else VECTORS / name


def of_release(kafka: KafkaClasses, given: argparse.Namespace, problems: list[str]) -> None:
    """messages-RELEASE-TYPE, unsupported-RELEASE, malformed-RELEASE and versions-RELEASE."""
    into, wanted, release = given.into, given.only or OF_RELEASE, given.release
    found, missing = messages.targets(kafka)
    if missing:
        print(f"no JSON converter in the jars of {release}, left out: {' '.join(missing)}", file=sys.stderr)
    found = [target for target in found if target.name.startswith(given.message)]
    apis = kafka.ask("apis")["apis"]
    headers = {api["apiKey"]: api for api in apis}
    pool = messages.records_pool(VECTORS)
    if "messages" in wanted or "malformed" in wanted:
        choose = messages.sampled if given.sample else (lambda target, version: values.kinds(target.schema, version))
        rows = {target.name: list(messages.vectors(kafka, target, pool, headers, choose, problems)) for target in found}
        if "messages" in wanted:
            for kind in messages.TYPES:
                of_kind = [row for target in found if target.type == kind for row in rows[target.name]]
                if of_kind:
                    files.write_lines(into / f"messages-{release}-{kind}.jsonl.gz", of_kind)
        if "malformed" in wanted:
            chosen = messages.spread([target.name for target in found], 20 if given.sample else None)
            made = (messages.malformed_row(kafka, t, rows[t.name]) for t in found if t.name in chosen)
            files.write_lines(into / f"malformed-{release}.jsonl.gz", (row for row in made if row))
    if "unsupported" in wanted:
        every = (row for target in found for row in messages.unsupported_rows(kafka, target, problems))
        files.write_lines(into / f"unsupported-{release}.jsonl.gz", every)
    if "versions" in wanted:
        files.write_json(into / f"versions-{release}.json", messages.versions(kafka, found, apis))


def main(given_arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    given = arguments().parse_args(given_arguments)
    try:
        with KafkaClasses(given.release) as kafka:
            problems = make(kafka, given)
    except (maven.MissingTool, NoSuchRelease) as error:
        print(f"vectors: {error}", file=sys.stderr)
        return 2
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
