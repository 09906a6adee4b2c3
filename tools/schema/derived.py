"""What follows from kwire/schema and stands elsewhere: counts for the tests, and numbers and names in texts.

    python -m tools.schema.derived      writes them
"""

from __future__ import annotations

import json
import re
from typing import Any

from kwire import schema
from tools import places
from tools.schema.layout import table_text

COUNTS = places.DATA / "schema" / "counts.json"

# file -> what is in front of the text (a look-behind) and the text itself: each is there once
_TEXTS = {
    "docs/brokers.md": ((r"(?<=brokers of any release from 0\.9 to )\d+\.\d+", "newest"),),
    "docs/limits.md": ((r"(?<=agrees with Kafka's own classes \()[\d.]+(?=\))", "newest"),),
    "SECURITY.md": ((r"(?<=Seeded mutations of all )\d+(?= pairs)", "pairs"),),
}


def counts() -> dict[str, Any]:
    """How much there is of everything: a loss is seen by the tests that compare."""
    known = schema.releases()
    kinds = ("metadata", "group", "transaction", "share", "remote_log", "control")
    messages = {name: schema.message(name) for name in schema.message_names()}
    pairs = {name: len(message.valid_versions.all()) for name, message in messages.items()}
    flexible = [
        version for one in messages.values() for version in one.valid_versions.all() if version in one.flexible_versions
    ]
    wire = [*schema.message_names("request"), *schema.message_names("response")]
    return {
        "newest": known[-1],
        "releases": len(known),
        "messages": len(pairs),
        "pairs": sum(pairs.values()),
        "flexible_pairs": len(flexible),
        "fields": sum(1 for message in messages.values() for _ in message.walk()),
        "requests_and_responses": [len(wire), sum(pairs[name] for name in wire)],
        "apis": {"all": len(schema.apis()), **{name: len(schema.apis(name)) for name in (known[0], known[-1])}},
        "error_codes": len([code for code in schema.ErrorCode if code.known]),
        "record_types": {kind: len(schema.record_types(kind)) for kind in kinds},
        "metadata_levels": len(schema.metadata_versions()),
        "features": {name: [row.minimum, row.maximum, row.testing] for name, row in schema.features().items()},
    }


def texts() -> dict[str, str]:
    """File -> text with the numbers and names of now. Raises ValueError where their place is not there once."""
    now = {name: str(value) for name, value in counts().items()}
    done = {}
    for file, spots in _TEXTS.items():
        text = (places.ROOT / file).read_text()
        for pattern, name in spots:
            text, found = re.subn(pattern, now[name], text)
            if found != 1:
                raise ValueError(f"{file}: {pattern} of tools/schema/derived.py is there {found} times, not once")
        done[file] = text
    return done


def counts_text() -> str:
    """The text of counts.json."""
    return table_text(counts(), 1)


def main() -> None:
    """Writes counts.json and the texts."""
    COUNTS.write_text(counts_text())
    for file, text in texts().items():
        (places.ROOT / file).write_text(text)


def read() -> Any:
    """What counts.json has."""
    return json.loads(COUNTS.read_text())


if __name__ == "__main__":
    main()
