"""Makes the facts in kwire/schema from Kafka's published jars.

    python -m tools.schema 4.4.0 [3.9.2 ...]   read these releases, rewrite the facts and the stub of messages,
                                                       say what changed
    python -m tools.schema --check             does Maven Central have a release with something new?
    python -m tools.schema --all --dry-run     read all known releases again: nothing may change
    python -m tools.schema --rebuild           make all facts anew from all known releases

Needs Maven and Java. Exit: 0 nothing changed or it was written, 1 --check or --dry-run found changes, 2 usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.kafka.maven import MissingTool
from tools.schema import jars, layout, stub
from tools.schema.update import Facts


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.schema", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="a patch release, such as 4.4.0")
    parser.add_argument("--check", action="store_true", help="compare the newest release on Maven Central")
    parser.add_argument("--all", action="store_true", help="all releases that the facts know")
    parser.add_argument("--rebuild", action="store_true", help="start from nothing with all known releases")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--into", type=Path, default=layout.ROOT, help="the folder of the facts (default kwire/schema)")
    given = parser.parse_args(arguments)
    known = list(Facts(layout.ROOT).releases["releases"].values())
    wanted = list(given.releases)
    if given.check:
        try:
            wanted.append(jars.newest())
        except (MissingTool, RuntimeError) as error:
            print(error, file=sys.stderr)
            return 2
        print(f"newest release on Maven Central: {wanted[-1]}; the facts go up to {known[-1]}")
    if given.all or given.rebuild:
        wanted += known
    if not wanted:
        parser.error("name a release, or --check, --all or --rebuild")
    facts = Facts(given.into, empty=given.rebuild)
    for patch in wanted:
        print(f"reading {patch}", file=sys.stderr, flush=True)
        try:
            facts.take(patch)
        except (jars.NoSuchRelease, MissingTool, RuntimeError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
    for note in facts.notes:
        print(f"note: {note}", file=sys.stderr)
    changes = facts.changes()
    print("\n".join(changes) if changes else "nothing changed")
    if given.check or given.dry_run:
        return 1 if changes else 0
    print(f"{len(facts.write())} files written")
    if given.into == layout.ROOT:
        stub.STUB.write_text(stub.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
