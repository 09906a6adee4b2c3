"""The schema against Kafka's compiled classes, answers of its old brokers and a published table of versions."""

import gzip
import json

import pytest

from kwire import schema
from tools.places import DATA

pytestmark = pytest.mark.quick

# Errors of the table: it dates every version of a renamed message to the release of the new name.
SLIPS = {("ListOffsets", version, "2.8") for version in range(1, 6)} | {
    ("ElectLeaders", 0, "2.4"), ("ListConfigResources", 0, "4.1")
}


RELEASES = sorted(path.stem.removeprefix("versions-") for path in (DATA / "vectors").glob("versions-*.json"))


def compiled(source):
    return json.loads((DATA / "vectors" / f"versions-{source}.json").read_text())


@pytest.mark.parametrize("source", RELEASES)
def test_apis_agree_with_the_compiled_classes(source):
    ours = {api.key: api for api in schema.apis(source)}
    theirs = [row for row in compiled(source)["apis"] if row.get("lowest", 1) <= row.get("highest", 0)]
    assert {row["apiKey"] for row in theirs} == set(ours)
    for row in theirs:
        api = ours[row["apiKey"]]
        assert api.name == schema.api(row["name"]).name  # ListClientMetricsResources has a newer name
        assert (api.min_version, api.max_version) == (row["lowest"], row["highest"])
        assert (api.max_stable_version, api.unstable) == (row["highestStable"], row["highestStable"] != row["highest"])
        assert (api.forwardable, api.cluster_action) == (row["forwardable"], row["clusterAction"])
        listeners = [name.lower().replace("zk_broker", "zkBroker") for name in row["listeners"]]
        assert sorted(api.listeners) == sorted(listeners)
        for version, header in row["requestHeaderVersion"].items():
            assert api.request_header_version(int(version)) == header
        for version, header in row["responseHeaderVersion"].items():
            assert api.response_header_version(int(version)) == header
            assert (api.flexible_from is not None and int(version) >= api.flexible_from) == (
                schema.message(api.request).header_version(int(version)) == 2
            )


@pytest.mark.parametrize("source", RELEASES)
def test_messages_agree_with_the_compiled_classes(source):
    for row in compiled(source)["messages"]:
        if row["lowest"] > row["highest"] or (source == "3.9.1" and row["name"].endswith(("Key", "Value"))):
            continue
        definition = schema.message(row["name"])
        versions = definition.valid_versions
        assert versions.low <= row["lowest"] and row["highest"] <= versions.high, row["name"]
        for version in range(row["lowest"], row["highest"] + 1):
            theirs = version in schema.Versions.parse(row["flexibleVersions"])
            assert (version in definition.flexible_versions) == theirs, (row["name"], version)
        if row.get("apiKey", -1) >= 0:
            assert definition.api_key == row["apiKey"]


def test_the_published_table_of_versions():
    table = json.loads(gzip.decompress((DATA / "schema" / "kip-versions.json.gz").read_bytes()))
    known, cells, wrong = schema.releases(), 0, set()
    highest = {(api.key, release): api.max_version for release in known for api in schema.apis(release)}
    for name, row in table.items():
        key = schema.message(name).api_key
        for version, release in row:
            cells += 1
            if release.startswith("≤"):
                agrees = version <= highest[key, "2.2"]
            elif release:
                before = highest.get((key, known[known.index(release) - 1]), -1)
                agrees = version == highest[key, release] or before < version < highest[key, release]
            else:
                agrees = version > highest.get((key, "4.2"), -1)
            if not agrees:
                wrong.add((name.removesuffix("Request").removesuffix("Response"), version, release))
    assert (cells, wrong) == (2630, SLIPS)


def test_old_brokers():
    answers = json.loads((DATA / "schema" / "old-brokers.json").read_text())
    assert len(answers) == 8
    for release, rows in answers.items():
        ours = [[api.key, api.min_version, api.max_version] for api in schema.apis(release)]
        assert sorted(rows) == ours, release
    for release in schema.releases(old=True)[:9]:
        for api in schema.apis(release):
            newer = schema.api(api.key, "2.2")
            assert newer.min_version <= api.min_version and api.max_version <= newer.max_version
