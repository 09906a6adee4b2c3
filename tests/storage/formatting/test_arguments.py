"""What users type: cluster ids, voters, SCRAM credentials, versions and features."""

from __future__ import annotations

import hashlib
import hmac
import re
from uuid import UUID

import pytest

from kwire import schema
from kwire.java_semantics import copy_order, java_hash, put_order
from kwire.storage.formatting import FormatterError, parse_voters, random_uuid, uuid_from_text, uuid_text
from kwire.storage.formatting.dynamic_voters import host_text
from kwire.storage.formatting.levels import effective_levels, version_from_text
from kwire.storage.formatting.mappings import feature_dependencies, version_mapping
from kwire.storage.formatting.rules import rules_of
from kwire.storage.formatting.scram_parser import random_salt, scram_records
from kwire.storage.side_files.uuids import decode_base64, is_reserved, random_directory_id

pytestmark = pytest.mark.quick
KRAFT = [name for name in schema.releases() if schema.releases().index(name) >= schema.releases().index("3.3")]


def test_uuids_there_and_back() -> None:
    for _ in range(200):
        value = random_uuid()
        assert value.version == 4 and uuid_from_text(uuid_text(value)) == value and uuid_text(value)[0] != "-"
    others = {random_directory_id() for _ in range(50)}
    assert len(others) == 50 and not any(map(is_reserved, others)) and is_reserved(UUID(int=99))


@pytest.mark.parametrize("text, reason", [
    ("", "decoded as 0 bytes"), ("A", "should at least have 2 bytes"), ("AA", "decoded as 1 bytes"),
    ("A" * 25, f"with prefix `{'A' * 24}` is too long"), ("MkU3OEVBNTcwNTJENDM2Q!", "Illegal base64 character 21"),
    ("é" * 22, "Illegal base64 character -17"), ("AAAAA", "Last unit does not have enough valid bits"),
    ("AAAA=", "wrong 4-byte ending unit"), ("AA=A", "wrong 4-byte ending unit"),
    ("AA==A", "incorrect ending byte at 4"),
])  # fmt: skip
def test_a_text_that_is_no_uuid(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        uuid_from_text(text)


def test_base64() -> None:
    assert decode_base64("") == b"" and decode_base64("eHg=") == decode_base64("eHg") == b"xx"
    assert decode_base64("-_", url_safe=True) == decode_base64("+/") == b"\xfb"


def test_order_of_hash_maps() -> None:
    assert java_hash("hello") == 99162322 and java_hash("\U0001f600") == 0xD83D * 31 + 0xDE00
    assert put_order(["b", "a", "Q"]) == ["a", "Q", "b"]  # "a" is 97, "Q" 81: one bucket, in the order of insertion
    assert put_order(["Q", "b", "a"]) == ["Q", "a", "b"]
    assert copy_order([1, 7, 8]) == [8, 1, 7] and put_order([1, 7, 8]) == [1, 7, 8]
    assert put_order(list(range(16, 40))) == [*range(32, 40), *range(16, 32)]  # 24 keys: 32 buckets
    assert copy_order([]) == []


def test_hosts_as_java_shows_them() -> None:
    for host, text in (
        ("localhost", "localhost"), ("", "localhost"), ("127.1", "127.0.0.1"), ("1.2.3.4", "1.2.3.4"),
        ("::1", "0:0:0:0:0:0:0:1"), ("2001:DB8::A", "2001:db8:0:0:0:0:0:a"), ("::ffff:1.2.3.4", "1.2.3.4"),
        ("1.2.3.256", "1.2.3.256"), ("256", "0.0.1.0"), ("a.b", "a.b"), ("::x", "::x"),
    ):  # fmt: skip
        assert host_text(host) == text


def test_voters() -> None:
    voters = parse_voters(" 9@[::1]:1:JEXY6aqzQY-32P5TStzaFg,2@h:65535:MvDxzVmcRsaTz33bUuRU6A,")
    assert list(voters) == [2, 9]
    assert [str(voter) for voter in voters.values()] == [
        "2@h:65535:MvDxzVmcRsaTz33bUuRU6A", "9@[::1]:1:JEXY6aqzQY-32P5TStzaFg"]  # fmt: skip
    with pytest.raises(FormatterError, match="No voters given"):
        parse_voters(",,")


def test_scram_keys_verify() -> None:
    (record,) = scram_records(["SCRAM-SHA-512=[name=a,password=pä=ss]"], rules_of("4.3"))
    assert re.fullmatch(rb"[0-9a-z]{20,26}", record.salt) and record.iterations == 4096 and record.mechanism == 2
    salted = hashlib.pbkdf2_hmac("sha512", "pä=ss".encode(), record.salt, 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    assert record.stored_key == hashlib.sha512(client_key).digest()
    assert record.server_key == hmac.digest(salted, b"Server Key", "sha512")
    assert len({random_salt() for _ in range(100)}) == 100


@pytest.mark.parametrize("release", ["3.5", "4.4"])
@pytest.mark.parametrize("config", [
    "name=a,password=PW,PW", "name=a,password=PW,PW=PW", "name=a,saltedpassword=P!W,salt=eA==,iterations=4096",
    "password=PW", "name=a,password=P PW", "name=a,salt=eA==,iterations=1,password=PW", "name=a,password=",
    "name=a,iterations=4096,salt=eA==,password=PW,saltedpassword=PW",
    'name=a,saltedpassword="",salt=eA==,iterations=4096',
])  # fmt: skip
def test_no_error_shows_a_password(release: str, config: str) -> None:
    try:
        scram_records([f"SCRAM-SHA-256=[{config}]"], rules_of(release))
    except FormatterError as error:
        assert "P" not in str(error).replace("SCRAM", "").replace("saltedPassword", "")


@pytest.mark.parametrize("release", ["3.5", "4.4"])
@pytest.mark.parametrize("argument", [
    "SCRAM-SHA-256 [name=alice,password=hunter2]", "SCRAM-SHA-256 [name:alice,password:hunter2]",
    "[password:hunter2,name=alice]", "SCRAM-SHA-256=[name=alice,password:hunter2]",
    "SCRAM-SHA-256=[name=alice,Passwd hunter2]", "SCRAM-SHA-256=[name=alice,PWD:hunter2=x,password=x]",
    "SCRAM-SHA-256=[name=alice,password=x,salt=hunter2!]",
    "SCRAM-SHA-256=[name=alice,password=x,salt=eA==,iterations=hunter2]",
    "SCRAM-SHA-256=[name=alice,salt=eA==,iterations=1,password=x,iterations=hunter2]",
    "SCRAM-SHA-256=[name=alice,Password=x,salt=hunter2!]", "SCRAM-SHA-256=[name=alice,salt=password=hunter2!]",
    "SCRAM-SHA-256:[name:alice,secret:hunter2]", "SCRAM-SHA-256=[name=alice,password=x,hunter2=y]",
])  # fmt: skip
def test_no_error_shows_a_password_that_is_ill_typed(release: str, argument: str) -> None:
    try:
        scram_records([argument], rules_of(release))
    except FormatterError as error:
        assert "hunter2" not in str(error)


@pytest.mark.parametrize("config", ["name=a,password=x\ud800", "name=a\udcff,password=x", "name=\ud800,password=x"])
def test_scram_with_a_lone_surrogate(config: str) -> None:
    for release in ("3.5", "4.4"):
        with pytest.raises(FormatterError, match="lone surrogate"):
            scram_records([f"SCRAM-SHA-256=[{config}]"], rules_of(release))


def test_errors_show_what_is_no_password() -> None:
    for config, text in (
        ("name=a,salt=e!,password=x", "Failed to decode given salt: e!"),
        ("name=a,salt=eA==,iterations=x,password=x", "Failed to parse iterations count: x"),
        ("name=a,oops", "No equals sign found in SCRAM component: oops"),
    ):
        for release in ("3.5", "4.4"):
            with pytest.raises(FormatterError) as caught:
                scram_records([f"SCRAM-SHA-256=[{config}]"], rules_of(release))
            assert str(caught.value) == text
    with pytest.raises(FormatterError) as caught:
        scram_records(["SCRAM-SHA-256=[name=a,Password=x,password=y]"], rules_of("4.4"))
    assert str(caught.value) == "Unknown SCRAM configurations: Password"


def test_every_version_of_every_release() -> None:
    for release in KRAFT:
        rules, bounds = rules_of(release), schema.metadata_bounds(release)
        for row in schema.metadata_versions(release):
            assert version_from_text(row.name, rules, True) == row
            if rules.formatter and row.level >= version_from_text(bounds.bootstrap_minimum, rules, True).level:
                levels = effective_levels(row, {}, True, True, rules)
                assert levels["metadata.version"] == row.level and levels["kraft.version"] == 1
        assert version_from_text(release, rules, False).name == bounds.default
        if rules.kraft_only:
            assert version_mapping(None, rules)["metadata.version"] == version_from_text(release, rules, False).level


def test_dependencies() -> None:
    found = feature_dependencies("eligible.leader.replicas.version=1", rules_of("4.4"))
    assert found.needs == {"metadata.version": 23} and found.version is None
    with pytest.raises(FormatterError, match=r"depends on metadata\.version level 23"):
        rules = rules_of("4.3")
        asked = {"eligible.leader.replicas.version": 1}
        effective_levels(version_from_text("3.9", rules, False), asked, True, False, rules)
