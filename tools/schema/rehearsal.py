"""Keeps what the step for a release began with and read, so that a test can take the release out and put it in again.

    python -m tools.schema.rehearsal       makes the archive anew for the two newest releases, from the jars of all
                                           releases (some minutes); the step itself adds each new release

tests/data/schema/rehearsal.tar.xz has a folder a release: before/ with the files of kwire/schema and tests/data/schema
that were otherwise without it, and what its jars gave (tools/schema/inputs.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kwire import schema
from tools import archives, places
from tools.schema import inputs, layouts, schemas
from tools.schema.inputs import Input
from tools.schema.layout import OTHERS, ROOT, table_text
from tools.schema.tables import order
from tools.schema.update import SchemaSet

ARCHIVE = places.DATA / "schema" / "rehearsal.tar.xz"
KEPT = 2  # releases
LAYOUTS = str(layouts.FILE.relative_to(places.ROOT))


def patches() -> list[str]:
    """The patch releases that the archive has, in ascending order."""
    return sorted({name.partition("/")[0] for name in archives.read(ARCHIVE)}, key=order)


def read(patch: str) -> tuple[dict[str, str], Input]:
    """(file of the tree -> text without the release, what its jars gave)."""
    files = archives.read(ARCHIVE)
    own = {name.removeprefix(f"{patch}/"): data for name, data in files.items() if name.startswith(f"{patch}/")}
    before = {name.removeprefix("before/"): data.decode() for name, data in own.items() if name.startswith("before/")}
    return before, inputs.from_files(own)


def keep(before: dict[str, str], given: Input) -> None:
    """Put a release into the archive; the oldest goes."""
    files = {f"before/{name}": text.encode() for name, text in before.items()} | given.to_files()
    archives.replace(ARCHIVE, given.patch, files)
    for old in patches()[:-KEPT]:
        archives.replace(ARCHIVE, old, {})


def state(definitions: SchemaSet, table: dict[str, dict[str, layouts.Layout]]) -> dict[str, str]:
    """File of the tree -> text, of all that the step rewrites but for what follows from it (derived.py, the stub)."""
    texts = {str((ROOT / name).relative_to(places.ROOT)): text for name, text in definitions.texts().items()}
    return texts | {LAYOUTS: table_text(table, 2)}


def take_out(patch: str, tree: Path) -> Input:
    """Bring kwire/schema and tests/data/schema of a tree back to what they were without a release; its input."""
    before, given = read(patch)
    root = tree / ROOT.relative_to(places.ROOT)
    for path in root.rglob("*.json"):
        if str(path.relative_to(tree)) not in before and path.name not in OTHERS:
            path.unlink()
    for name, text in before.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return given


def without_renames(definitions: SchemaSet, last: str) -> None:
    """Leave out the names of fields that came after a release: they are written by hand with the next one."""
    rows = definitions.renames["fields"]
    definitions.renames["fields"] = [row for row in rows if order(row["until"].replace("x", "0")) < order(last)]


def main() -> int:
    """Makes the archive anew."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    known = schema.releases(old=True)
    definitions = SchemaSet(ROOT, empty=True)
    tables: layouts.Releases = {}
    for name in known:
        patch = schema.patch_release(name)
        print(f"reading {patch}", file=sys.stderr, flush=True)
        given = inputs.look(patch)
        if name in known[-KEPT:]:
            renames = json.loads(json.dumps(definitions.renames))
            without_renames(definitions, known[known.index(name) - 1])
            before = state(definitions, layouts.changed(tables))
            definitions.renames = renames
            keep(before, given)
        definitions.take(patch, given)
        if order(name) >= order(layouts.FIRST):
            tables[name] = layouts.of_messages(message for _, message in schemas.read_texts(given.texts).values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
