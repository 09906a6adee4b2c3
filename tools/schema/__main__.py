"""Makes kwire/schema, and what follows from it, from Kafka's published jars.

    python -m tools.schema 4.4.0 [3.9.2 ...]   read these releases, rewrite the schema, the stub of messages, the counts
                                               of the tests and the numbers in texts; say what changed and what is left
                                               to do by hand (make schema RELEASE=4.4.0)
    python -m tools.schema --check             does Maven Central have a release with something new?
    python -m tools.schema --check --all       ... or a newer patch release of a known one?
    python -m tools.schema --all --dry-run     read all known releases again: nothing may change
    python -m tools.schema --rebuild           make the schema from nothing, from all known releases

Needs Maven and Java. Exit: 0 nothing changed or it was written, 1 --check or --dry-run found changes, 2 usage.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from tools import places
from tools.kafka.maven import MissingTool
from tools.schema import checklist, jars, layout, layouts, rehearsal, schemas
from tools.schema.inputs import Input, look
from tools.schema.tables import order
from tools.schema.update import SchemaSet, minor


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.schema", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="a patch release, such as 4.4.0")
    parser.add_argument("--check", action="store_true", help="compare the newest release on Maven Central")
    parser.add_argument("--all", action="store_true", help="all known releases")
    parser.add_argument("--rebuild", action="store_true", help="start from nothing with all known releases")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--into", type=Path, default=layout.ROOT, help="the schema's folder (default kwire/schema)")
    parser.add_argument("--stored", action="store_true", help="from the inputs in tests/data/schema/rehearsal.tar.xz")
    given = parser.parse_args(arguments)
    definitions = SchemaSet(given.into, empty=given.rebuild)
    known = list(SchemaSet(layout.ROOT).releases["releases"].values())
    try:
        wanted = list(given.releases)
        if given.check:
            wanted += newer(known, given.all)
        elif given.all or given.rebuild:
            wanted += known
        if not wanted and not given.check:
            parser.error("name a release, or --check, --all or --rebuild")
        before, inputs = copy.deepcopy(definitions), []
        for patch in wanted:
            print(f"reading {patch}", file=sys.stderr, flush=True)
            inputs.append(rehearsal.read(patch)[1] if given.stored else look(patch))
            definitions.take(patch, inputs[-1])
    except (jars.NoSuchRelease, MissingTool, RuntimeError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    for note in definitions.notes:
        print(f"note: {note}", file=sys.stderr)
    changes = definitions.changes()
    print("\n".join(checklist.news(changes)) if changes else "nothing changed")
    if given.check or given.dry_run:
        return 1 if changes else 0
    if given.into != layout.ROOT or given.rebuild:
        print(f"{len(definitions.write())} files written")
        if given.into == layout.ROOT:
            follow()
        return 0
    write(before, definitions, inputs)
    return 0


def newer(known: list[str], patches: bool) -> list[str]:
    """What Maven Central has after the newest known release; patches: after that of every release since 2.2 too."""
    found = [jars.newest(known[-1])]
    print(f"newest release on Maven Central: {found[0]}; the newest known is {known[-1]}")
    if patches:
        lines = [patch for patch in known if order(patch) >= (2, 2)]
        for patch, after in pairwise(lines):
            last = jars.newest(patch, minor(after))
            if last != patch:
                print(f"a newer patch release: {last} (known: {patch})")
                found.append(last)
    return found


def write(before: SchemaSet, definitions: SchemaSet, inputs: list[Input]) -> None:
    """Write the tree's files and print the checklist of each release that was new."""
    table = json.loads(layouts.FILE.read_text())
    old = rehearsal.state(before, table)
    known = before.releases["releases"]
    items = []
    for given in inputs:
        release = minor(given.patch)
        items += checklist.items(before, definitions, given)
        if all(order(release) > order(other) for other in known):
            read = schemas.read_texts(given.texts)
            latest = definitions.renames["messages"]
            layouts.put(table, release, layouts.of_messages(
                {**message, "name": latest.get(name, name)} for name, (_, message) in read.items()
            ))  # fmt: skip
            if len(inputs) == 1:
                rehearsal.keep(old, given)
    layouts.FILE.write_text(layout.table_text(table, 2))
    print(f"{len(definitions.write())} files of kwire/schema written, and what follows from them")
    follow()
    print(checklist.text(list(dict.fromkeys(items))))


def follow() -> None:
    """Write what follows from kwire/schema, in processes that read it as it is now."""
    for module in ("tools.schema.stub", "tools.schema.derived"):
        subprocess.run([sys.executable, "-m", module], cwd=places.ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
