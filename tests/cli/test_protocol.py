"""`kwire protocol`: a release, two releases."""

import json

import pytest

from kwire import schema
from kwire.cli import main

pytestmark = pytest.mark.quick


def run(capsys, *arguments):
    code = main(["protocol", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def difference(capsys, old, new):
    code, out, err = run(capsys, "diff", old, new, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_release(capsys):
    code, out, _ = run(capsys, "3.9.1")
    assert code == 0 and len(out.splitlines()) == 1 + len(schema.apis("3.9"))
    _, out, _ = run(capsys, "0.10.2", "--json")
    assert [row["key"] for row in json.loads(out)] == [row.key for row in schema.apis("0.10.2")]


def test_the_fields_of_an_api(capsys):
    code, out, _ = run(capsys, "3.9", "--api", "Heartbeat", "--version", "2")
    assert code == 0
    assert "Heartbeat Request (Version: 2) => group_id generation_id member_id\n  group_id => STRING\n" in out
    _, out, _ = run(capsys, "3.9", "--api", "1", "--json")
    value = json.loads(out)
    assert (value["api"], value["version"], value["request_header"]["version"]) == ("Fetch", 17, 2)
    assert {row["path"]: row["tag"] for row in value["request"]["fields"]}["clusterId"] == 0
    note = "Version 17 adds directory id support from KIP-853"
    assert value["request"]["notes"] == [note]
    assert f"\n# {note}\n\n" in run(capsys, "3.9", "--api", "Fetch")[1]
    code, out, err = run(capsys, "4.4", "--api", "Fetch", "--version", "3")
    assert (code, out, err) == (1, "", "kwire: Kafka 4.4 supports Fetch versions 4-18, not 3\n")


def test_what_4_4_speaks_otherwise_than_3_9(capsys):
    found = difference(capsys, "3.9", "4.4")
    added = {(row["api"], row["versions"]) for row in found["added"]}
    removed = {(row["api"], row["versions"]) for row in found["removed"]}
    assert {("Fetch", "18"), ("Produce", "12-13"), ("UnregisterController", "0")} <= added
    assert {("Fetch", "0-3"), ("LeaderAndIsr", "0-7"), ("Produce", "0-2")} <= removed
    unstable = {row["api"]: row["unstable"] for row in found["added"] if row["unstable"] is not None}
    assert unstable == {"InitProducerId": 6}
    fields = {(row["message"], row["version"], row["field"], row["change"]) for row in found["fields"]}
    assert ("ProduceRequest", 13, "topicData.topicId", "added") in fields
    assert ("ProduceRequest", 13, "topicData.name", "removed") in fields


@pytest.mark.parametrize(("old", "new"), [("2.2", "4.4"), ("3.6", "3.7"), ("4.4", "2.8"), ("0.9.0", "4.4")])
def test_added_and_removed_make_one_release_of_the_other(capsys, old, new):
    found = difference(capsys, old, new)

    def spoken(release):
        return {(api.name, version) for api in schema.apis(release) for version in api.versions.all()}

    def listed(kind):
        rows = found[kind]
        return {(row["api"], v) for row in rows for v in range(row["min_version"], row["max_version"] + 1)}

    assert spoken(old) - listed("removed") | listed("added") == spoken(new)
    assert not spoken(old) & listed("added")
    back = difference(capsys, new, old)
    assert (back["added"], back["removed"]) == (found["removed"], found["added"])


def test_deprecations(capsys):
    found = difference(capsys, "3.6", "3.7")
    assert ("Fetch", "0-3") in {(row["api"], row["versions"]) for row in found["deprecated"]}
    assert difference(capsys, "4.3", "4.3.0") == {"added": [], "removed": [], "deprecated": [], "fields": []}
    assert run(capsys, "diff", "4.3", "4.3")[1] == "Kafka 4.3 has the same protocol as 4.3\n"


def test_an_unknown_release_is_one_line(capsys):
    for arguments in (("5.0",), ("diff", "3.9", "5.0"), ("nonsense",)):
        code, out, err = run(capsys, *arguments)
        assert code == 1 and out == "" and err.count("\n") == 1 and arguments[-1] in err
