"""The importer: a release is merged into the schema, and reading a known release again changes nothing."""

import json

import pytest

from kwire import schema
from tools.schema import __main__ as command
from tools.schema import jars, layout, merge, schemas, tables
from tools.schema.update import Renamed, SchemaSet, compare, minor


def definition_of(fields, versions="0-2", **more):
    head = {"name": "PingRequest", "type": "request", "apiKey": 99, "flexibleVersions": "2+", **more}
    return schemas.one_form({**head, "validVersions": versions, "fields": fields}, "kafka-clients")


def field(name, versions="0+", type="int32", **more):
    return {"name": name, "type": type, "versions": versions, **more}


@pytest.mark.quick
def test_one_form_puts_structs_in_place_and_cuts_versions():
    pair = {"name": "Pair", "versions": "0+", "fields": [field("Key"), field("Value", "2+")]}
    definitions = definition_of(
        [field("A", "1+", "[]Pair"), field("B", "0-1", "[]Pair"), field("C", "2+", "string", default="null", tag=0,
         taggedVersions="2+", nullableVersions="2+", about="two\n  lines")],
        commonStructs=[pair],
    )
    assert [item["versions"] for item in definitions["fields"][0]["fields"]] == ["1+", "2+"]
    assert [item["name"] for item in definitions["fields"][1]["fields"]] == ["Key"]
    assert definitions["fields"][2]["about"] == "two lines"
    assert merge.tidy({**definitions, "releases": ["4.4", "4.4"]})["sharedStructs"] == ["Pair"]


@pytest.mark.quick
def test_removed_versions_stay_with_their_source():
    old = merge.merge_message(None, definition_of([field("Old", "0"), field("Both", ignorable=True)]), "4.0")
    new = merge.merge_message(old, definition_of([field("Both", "1+"), field("New", "3+")], "1-3"), "4.1")
    assert (new["validVersions"], new["flexibleVersions"], new["releases"]) == ("0-3", "2+", ["4.0", "4.1"])
    assert new["lastSource"] == {"0": "4.0"}
    assert {item["name"]: item["versions"] for item in new["fields"]} == {"Old": "0", "Both": "0+", "New": "3+"}
    again = merge.merge_message(new, definition_of([field("Old", "0"), field("Both", ignorable=True)]), "4.0")
    assert again == new
    assert merge.merge_message(old, definition_of([field("Renamed")], "1-3"), "4.1")["lastSource"] == {"0": "4.0"}


@pytest.mark.quick
def test_a_version_keeps_its_layout():
    old = merge.merge_message(None, definition_of([field("A"), field("B")]), "4.0")
    with pytest.raises(ValueError, match="lose its layout"):
        merge.merge_message(old, definition_of([field("B"), field("A")], "1-2"), "4.1")


@pytest.mark.quick
def test_a_rename_at_an_unchanged_layout_is_noticed():
    def shape(outer, inner):
        pairs = field("Pairs", type="[]Pair", fields=[field(inner), field("Kept")])
        return definition_of([field("First"), field(outer, type="string"), pairs])

    found = merge.renamed(merge.tidy({**shape("Name", "Zk"), "releases": ["4.0", "4.0"]}), shape("Title", "Epoch"))
    assert found == [("PingRequest", "name", "title"), ("PingRequest.pairs", "zk", "epoch")]
    definitions = SchemaSet(layout.ROOT)
    old = definitions.messages["VoteRequest"][1]
    new = json.loads(json.dumps(old).replace('"ReplicaEpoch"', '"Epoch"'))
    definitions._note_renames(old, new)
    assert [(item.file, item.reason) for item in definitions.checklist] == [(
        "kwire/schema/renames.json", 'a field has another name: {"message": "VoteRequest.topics.partitions", '
        f'"versions": "0-2", "old": "replicaEpoch", "new": "epoch", "until": "{old["releases"][1]}"}}',
    )]  # fmt: skip
    with pytest.raises(Renamed, match=r'seems to rename a message: put \{"VoteRequest": "BallotRequest"}'):
        definitions._note_same_key("api", "BallotRequest", new, "4.5.0")
    assert merge.renamed(old, old) == []


@pytest.mark.quick
def test_comments_in_schemas():
    loose = '// head\n{"a": "http://x", /* b\n */ "c": [1, // one\n 2, // two\n ] }'
    plain = schemas._STRING_OR_LOOSE.sub(lambda match: match[1] or "", loose)
    assert json.loads(plain) == {"a": "http://x", "c": [1, 2]}


@pytest.mark.quick
def test_only_changed_rows_are_written():
    table = {"releases": {}, "apis": {}}
    row = {"name": "Ping", "enum": "PING", "min": 0, "max": 1}
    wider, gone = {**row, "max": 2}, {**row, "removed": True}
    for release, entry in (("2.2", row), ("2.3", row), ("2.4", wider), ("2.5", gone)):
        tables.put_release(table, release, f"{release}.0", {"7": entry}, {})
    assert table["apis"]["7"]["changes"] == [
        {"release": "2.2", "versions": "0-1"},
        {"release": "2.4", "versions": "0-2"},
        {"release": "2.5", "versions": "none"},
    ]


@pytest.mark.quick
def test_a_renamed_api_keeps_its_older_name_in_the_older_rows():
    table = {"releases": {}, "apis": {}}
    for release, name in (("2.2", "Old"), ("2.3", "Old"), ("2.4", "New")):
        row = {"name": name, "enum": name.upper(), "min": 0, "max": 1}
        tables.put_release(table, release, f"{release}.0", {"7": row}, {})
    assert table["apis"]["7"] == {"name": "New", "enum": "NEW", "changes": [
        {"release": "2.2", "name": "Old", "versions": "0-1"}, {"release": "2.4", "versions": "0-1"},
    ]}
    table = {"releases": {}, "apis": {}}
    for release, name in (("0.9.0", "Old"), ("1.0", "New"), ("2.2", "New")):
        row = {"name": name, "enum": name.upper(), "min": 0, "max": 1}
        tables.put_release(table, release, f"{release}.0", {"7": row}, {})
    assert table["apis"]["7"]["changes"] == [
        {"release": "0.9.0", "versions": "0-1", "name": "Old"}, {"release": "1.0", "versions": "0-1"},
    ]


@pytest.mark.quick
def test_names_of_patch_releases():
    assert [minor(name) for name in ("4.4.0", "0.10.2.2", "3.9.2")] == ["4.4", "0.10.2", "3.9"]
    with pytest.raises(ValueError):
        minor("4.4")


@pytest.mark.quick
def test_the_files_are_as_the_importer_writes_them():
    definitions = SchemaSet(layout.ROOT)
    assert definitions.changes() == []
    assert {file for file in definitions.texts()} == {
        str(path.relative_to(layout.ROOT)) for path in layout.ROOT.rglob("*.json") if path.name not in layout.OTHERS
    }
    assert list(definitions.releases["releases"]) == list(schema.releases(old=True))


@pytest.mark.java
@pytest.mark.parametrize("patch", ["4.4.0", pytest.param("3.9.2", marks=pytest.mark.soak), "2.8.2"])
def test_a_known_release_changes_nothing(patch):
    definitions = SchemaSet(layout.ROOT)
    definitions.take(patch)
    assert definitions.changes() == []


@pytest.mark.java
def test_check_tells_what_the_facts_lack_and_the_command_puts_it_in(tmp_path, monkeypatch, capsys):
    definitions = SchemaSet(layout.ROOT)
    definitions.root = root = tmp_path / "schema"
    topics = next(item for item in definitions.messages["FetchRequest"][1]["fields"] if item["name"] == "Topics")
    partitions = next(item for item in topics["fields"] if item["name"] == "Partitions")
    lost = partitions["fields"].pop()
    del definitions.errors["129"], definitions.features["4.4"], definitions.messages["UnregisterControllerRequest"]
    del definitions.metadata["levels"]["4.4-IV2"]
    definitions.releases["apis"]["1"]["changes"].pop()
    definitions.write()
    monkeypatch.setattr(jars, "newest", lambda since: "4.4.0")
    assert command.main(["--check", "--into", str(root)]) == 1
    said = capsys.readouterr().out
    assert lost["name"] == "HighWatermark"
    for wanted in ("FetchRequest.Topics.Partitions.HighWatermark: new, int64 18+", "UnregisterControllerRequest: new",
                   'errors.json: + "129"', "features.json: +", 'metadata_versions.json: + "4.4-IV2"',
                   'releases.json: + {"release": "4.4", "versions": "4-18"'):
        assert wanted in said
    assert command.main(["4.4.0", "--into", str(root)]) == 0
    assert command.main(["--check", "--into", str(root)]) == 0
    for file in ("api/Fetch.json", "api/UnregisterController.json", "index.json", "metadata_versions.json"):
        assert (root / file).read_text() == (layout.ROOT / file).read_text()


@pytest.mark.quick
def test_compare_names_what_differs():
    old = merge.merge_message(None, definition_of([field("A", about="one")]), "4.0")
    new = merge.merge_message(None, definition_of([field("A", about="two"), field("B", "2+")]), "4.0")
    assert compare("Ping", old, new) == ["Ping.A: about one -> two", "Ping.B: new, int32 2+"]
    assert compare("Ping", {}, new) == ["Ping: new, request 0-2"]
