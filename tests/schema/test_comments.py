"""The version notes: what Kafka's schemas say in their comments, and the sections of the protocol guide."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from kwire import schema
from kwire.errors import UnsupportedVersionError
from kwire.schema import NO_VERSIONS, Versions
from kwire.schema.comments import opening_versions
from tools.places import DATA
from tools.schema import rehearsal, schemas, version_notes

pytestmark = pytest.mark.quick


def published() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(gzip.decompress((DATA / "schema" / "kip-notes.json.gz").read_bytes()))
    return table


def test_a_message_has_its_notes_and_a_release_its_own() -> None:
    notes = schema.message("ProduceRequest").notes
    texts = {note.text: note for note in notes}
    note = texts["Version 5 and 6 are the same as version 3."]
    assert (note.versions, note.field, note.since, note.until) == (Versions(5, 6), "", "2.2", schema.releases()[-1])
    added = next(note for note in notes if note.versions == Versions(13, 13))
    assert added.text.startswith("Version 13 replaces topic names with topic IDs") and added.since == "4.1"
    assert added in schema.version_notes("ProduceRequest", "4.1.1")
    assert added not in schema.version_notes("ProduceRequest", "4.0")
    assert schema.version_notes("ProduceRequest", "2.1") == () == schema.version_notes("HeartbeatRequest", "0.9.0")
    assert schema.version_notes("AlterIsrRequest") == schema.version_notes("AlterPartitionRequest")
    about = [note for note in schema.message("JoinGroupRequest").notes if note.field]
    assert [(note.field, note.versions) for note in about] == [("rebalanceTimeoutMs", NO_VERSIONS)]
    assert "\n- NOT_COORDINATOR (version 0+)\n" in " ".join(
        note.text for note in schema.message("ShareGroupHeartbeatResponse").notes)
    for name, release, said in (("NoSuch", None, "unknown message"), ("FetchRequest", "9.9", "unknown Kafka release")):
        with pytest.raises(UnsupportedVersionError, match=said):
            schema.version_notes(name, release)


@pytest.mark.parametrize(("text", "versions"), [
    ("Version 3 adds MaxBytes. Version 4", (3, 3)), ("Versions 1 and 2 are", (1, 2)),
    ("Version 0 through 2 of", (0, 2)),
    ("Version 1 and version 2 are", (1, 2)), ("Versions 0, 1, 2, and 3 are the same.", (0, 3)),
    ("Versions 0-3 were removed in Apache Kafka 4.0", (0, 3)), ("Starting in Version 8, response", (8, 8)),
    ("Starting from version 5, we", (5, 5)), ("Versions 3 and below will be", (0, 3)),
    ("Version 4 and above", (4, 32767)), ("In version 0, an empty array", (0, 0)), ("Version 1: adds", (1, 1)),
    ("version 12+ of", (12, 32767)), ("KIP-915: bumping the version", NO_VERSIONS),
    ("Message format version 1", NO_VERSIONS),
    ("Version two", NO_VERSIONS), ("", NO_VERSIONS),
])  # fmt: skip
def test_the_versions_that_a_note_opens_with(text: str, versions: tuple[int, int]) -> None:
    assert opening_versions(text) == versions


def test_each_release_kept_in_the_archive_has_the_notes_of_its_schemas() -> None:
    for patch in rehearsal.patches():
        given = rehearsal.read(patch)[1]
        said, comments = 0, schemas.comments_of(given.texts)
        for name in schemas.read_texts(given.texts):
            notes, own = schema.version_notes(name, patch), comments[name]
            assert [note.text for note in notes if not note.field] == own.get("", []), (name, patch)
            fields = {path: texts for path, texts in own.items() if path}
            assert sum(len(texts) for texts in fields.values()) == sum(1 for note in notes if note.field)
            said += len(notes)
        assert said > 500


def test_every_noted_cell_of_the_published_table_is_a_note_of_its_release() -> None:
    table, found = published()["notes"], 0
    for name, cells in table.items():
        for version, release, text in cells:
            release = release.removeprefix("≤") or "4.3"
            last = schema.message(name).releases[1]
            notes = [*schema.version_notes(name, release), *schema.version_notes(name, last)]
            said = " ".join(" ".join(note.text for note in notes).split())
            flexible = text.endswith("Flexible encoding enabled.")  # the table says so where the notes do not
            if flexible:
                assert version in schema.message(name).flexible_versions, (name, version)
            if version not in schema.message(name).valid_versions:
                assert (name, version) in UNRELEASED
                continue
            # the table writes KIP-890 where the schema has KIP_890
            assert text.removesuffix("Flexible encoding enabled.").strip().replace("KIP_", "KIP-") in said.replace(
                "KIP_", "KIP-"), (name, version, text)
            found += 1
    assert found + len(UNRELEASED) == 515


# of the table, from Kafka's trunk: no release up to 4.4 has this version
UNRELEASED = {("BrokerRegistrationRequest", 5), ("BrokerRegistrationResponse", 5)}


def test_the_sections_are_those_of_the_published_table() -> None:
    table = published()["sections"]
    titles = {title: [name for name in names if name.endswith("Request")] for title, names in table.items()}
    assert len(titles) == 12
    ours = {row.title: [api.request for api in row.apis] for row in schema.sections("4.2")}
    assert ours == titles
    every = [api.key for row in schema.sections() for api in row.apis]
    assert sorted(every) == [api.key for api in schema.apis()]
    assert "Other" not in {row.title for row in schema.sections()}
    assert schema.section("StopReplica") == "Controller" and schema.section(1) == "Core"
    old = {row.title for row in schema.sections("0.9.0")}
    assert "KRaft" not in old and "Core" in old


def test_comments_of_a_schema() -> None:
    text = """// Licensed ... limitations under the License.
// Version 1 is above the message.
{ "apiKey": 1, /* Version 2 is
  * in a block. */ "name": "PingRequest", "note": "http://not.a/comment // nor this",
  // Version 3 is one. Version 4 is
  // another.  Starting in version 5, see http://a/b.
  //
  // General.
  // Supported errors:
  // - ONE (version 0+)
  // - TWO
  //   and more of it
  "fields": [
    // Version 6 is in the list.
    { "name": "A", "type": "[]B", "fields": [
      // Of B.
      { "name": "B" } ] },
    // Of C.
    { "name": "C" } ] } }
"""
    assert version_notes.of_text(text) == {
        "": ["Version 1 is above the message.", "Version 2 is in a block.", "Version 3 is one.",
             "Version 4 is another.", "Starting in version 5, see http://a/b.", "General.",
             "Supported errors:\n- ONE (version 0+)\n- TWO and more of it", "Version 6 is in the list."],
        "A.B": ["Of B."], "C": ["Of C."],
    }  # fmt: skip


def test_notes_are_kept_with_their_releases() -> None:
    known = ["4.0", "4.1", "4.2", "4.3", "4.4"]
    said = {"4.0": ["one", "two"], "4.1": ["one", "new", "two"], "4.2": ["one", "two"],
            "4.3": ["two", "one"], "4.4": []}  # fmt: skip
    table: version_notes.Rows = {}
    span: list[str] | None = None
    for release, notes in said.items():
        now = ["4.0", release]
        version_notes.put(table, known, "Ping", (span, now), release, {"": notes, "A.B": notes[:1]})
        span = now
    before = json.dumps(table)
    assert table["Ping.A.B"] == [["one", "4.0", "4.2"], ["two", "4.3", "4.3"]]
    for release, notes in said.items():  # read again: nothing changes
        version_notes.put(table, known, "Ping", (span, ["4.0", "4.4"]), release, {"": notes, "A.B": notes[:1]})
    assert json.dumps(table) == before
    rows = [(row[0], row[1], row[2]) for row in table["Ping"]]
    for release, notes in said.items():
        assert [text for text, since, until in rows if since <= release <= until] == notes
    version_notes.put(table, known, "Ping", (span, ["4.0", "4.4"]), "4.3", {})
    assert "Ping.A.B" in table and not any(row[1] <= "4.3" <= row[2] for row in table["Ping"])
