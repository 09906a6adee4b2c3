"""The definitions of messages: how many there are, and their contents."""

import pytest

from kwire import UnsupportedVersionError, schema
from kwire.schema import Versions
from tools import places
from tools.schema import derived

pytestmark = pytest.mark.quick


def test_nothing_was_lost_or_came_unseen():
    assert derived.COUNTS.read_text() == derived.counts_text(), "run python -m tools.schema.derived, look at the change"


def test_the_texts_name_the_newest_release():
    for file, text in derived.texts().items():
        assert (places.ROOT / file).read_text() == text, f"{file}: run python -m tools.schema.derived"


@pytest.mark.parametrize(("text", "low", "high"), [("3+", 3, 32767), ("4", 4, 4), ("0-12", 0, 12), ("none", 0, -1)])
def test_ranges_read_and_write(text, low, high):
    versions = Versions.parse(text)
    assert (*versions, str(versions), bool(versions)) == (low, high, text, text != "none")


def test_a_field_has_its_three_names_and_its_default():
    fields = {field.name: field for field in schema.message("FetchRequest").fields}
    assert fields["MaxBytes"].default_value == 0x7FFFFFFF
    assert (fields["MaxWaitMs"].snake_name, fields["MaxWaitMs"].json_name) == ("max_wait_ms", "maxWaitMs")
    assert fields["ClusterId"].default_value is None and fields["ClusterId"].tag == 0
    assert fields["Topics"].struct == "FetchTopic" and fields["Topics"].is_array


def test_old_names_lead_to_the_newest():
    assert schema.message("AlterIsrRequest") is schema.message("AlterPartitionRequest")
    old = {path: field.old_names for path, field in schema.message("VoteRequest").walk() if field.old_names}
    assert old["topics.partitions.replicaEpoch"] == (("candidateEpoch", Versions(0, 32767)),)


def test_what_the_facts_lack_is_an_error_of_the_family():
    with pytest.raises(UnsupportedVersionError, match="NoSuchRequest"):
        schema.message("NoSuchRequest")
    last = schema.message("FetchRequest").valid_versions.high
    with pytest.raises(UnsupportedVersionError, match=f"0-{last}, not {last + 1}") as caught:
        schema.message("FetchRequest").check(last + 1)
    assert (caught.value.needed, caught.value.offered) == ((last + 1, last + 1), (0, last))


def test_header_versions():
    assert schema.message("ControlledShutdownRequest").header_version(0) == 0
    assert schema.message("ApiVersionsResponse").header_version(3) == 0
    assert [schema.message("FetchRequest").header_version(version) for version in (11, 12)] == [1, 2]
    assert [schema.message("FetchResponse").header_version(version) for version in (11, 12)] == [0, 1]
