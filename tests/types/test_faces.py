"""What dir(), repr() and attributes show: what there is, no more, and nothing secret or endless."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import kwire
from kwire import capture, messages, net, schema, storage
from tests.types.definitions import PACKAGES

pytestmark = pytest.mark.quick

ROOMS = {"capture", "fleet", "messages", "net", "pages", "schema", "spark", "storage"}


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_shows_what_there_is(name: str) -> None:
    package = import_module(name)
    public = {public for names in package._NAMES.values() for public in names}
    rooms = {*ROOMS, "__version__"} if name == "kwire" else set()
    assert dir(package) == sorted(public | rooms)
    for one in dir(package):
        getattr(package, one)
    assert dir(kwire.messages) == sorted(schema.message_names())


def test_rooms_resolve_after_import_alone() -> None:
    rooms = sorted(ROOMS - {"messages"})
    check = f"import kwire; print(*[getattr(kwire, name).__name__ for name in {rooms}])"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert run.stdout.split() == [f"kwire.{name}" for name in rooms], run.stderr


def test_spark_is_left_out_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "spark" not in dir(kwire) and "storage" in dir(kwire)


def test_every_package_of_the_face_is_a_room() -> None:
    folder = Path(str(kwire.__file__)).parent
    inner = {"cli", "codec", "compression"}
    assert {path.parent.name for path in folder.glob("*/__init__.py")} - inner == ROOMS - {"messages"}


def test_reprs_say_what_it_is(tmp_path: Path) -> None:
    batch = kwire.build_batch([(1, b"k", b"v")])
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(batch)
    (one,) = kwire.read_batches(batch)
    (bad,) = kwire.read_batches(batch[:-1] + b"x", errors="keep")
    shown = {
        repr(one): "<RecordBatch magic=2 codec='none' offset=0..0 count=1 position=0 size=70>",
        repr(bad): "<BadBatch position=0 size=70: batch at byte 0, base offset 0: ",
        repr(next(iter(one))): "Record(offset=0, timestamp=1, key=b'k', value=b'v')",
        repr(storage.LogSegment(path)): f"LogSegment('{path}')",
        repr(storage.LogDirectory(tmp_path)): f"<LogDirectory {tmp_path}: 1 partitions, 1 segments>",
        repr(storage.LogDirectory(tmp_path)["orders", 0]): "<Partition orders-0: 1 segments>",
        repr(storage.ClusterImage()): "ClusterImage(offset=-1, epoch=0, metadata_version=None, brokers=0, ",
        repr(net.connect("h:1")): "<kwire.net.Connection h:1, not open>",
        repr(net.connect_sync("h:1")): "<kwire.net.SyncConnection h:1, not open>",
        repr(net.Cluster("h:1,g:2")): "<kwire.net.Cluster h:1,g:2, 0 brokers>",
        repr(schema.Versions(0, 3)): "Versions(low=0, high=3)",
        repr(schema.message("FetchRequest")): "<schema.Message FetchRequest: request 1, versions 0-",
        repr(schema.message("TopicRecord").fields): "(<schema.Field name: string, versions 0+>, <schema.Field topicId",
        repr(net.Feature("f", {"Fetch": (1, 2)})): "Feature(name='f', needs={'Fetch': (1, 2)}",
        repr(capture.Lost("a.pcap", "why")): "Lost(capture='a.pcap', reason='why'",
    }
    for text, begin in shown.items():
        assert text.startswith(begin) and len(text) < 300
        assert text.isprintable()


def test_reprs_are_bounded() -> None:
    broker = messages.MetadataResponse.MetadataResponseBroker(host="h\x1b" * 1000)
    names = [
        messages.MetadataResponse(brokers=[broker] * 1000),
        messages.DeleteTopicsRequest(topic_names=["a" * 40] * 100_000),
        messages.MetadataResponse.MetadataResponsePartition(isr_nodes=range(100_000)),
        messages.ProduceRequest.PartitionProduceData(records=b"x" * 10_000_000),
        messages.FetchRequest(unknown_tags={tag: b"x" * 1000 for tag in range(10_000)}),
        kwire.Record(1, 1, b"k" * 10_000_000, b"\x1b" * 10_000_000, [("h" * 10_000, b"v" * 10_000)] * 1000),
    ]
    for value in names:
        text = repr(value)
        assert len(text) < 5000 and text.isprintable() and "..." in text
    assert repr(names[2]).endswith(" more))") and repr(names[0]).endswith(" more])")
    assert "(10000000 bytes)" in repr(names[3])
    viewed = kwire.decode(messages.EndQuorumEpochResponse, 0, b"\0\0\0\0\0\0")
    assert eval(repr(viewed), vars(messages)) == viewed


def test_reprs_hide_secrets() -> None:
    secret = "hunter2"
    data = secret.encode()
    scram = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    config = messages.IncrementalAlterConfigsRequest.AlterableConfig
    values = [
        messages.SaslAuthenticateRequest(auth_bytes=data),
        messages.SaslAuthenticateResponse(auth_bytes=data),
        messages.AlterUserScramCredentialsRequest(upsertions=[scram(name="u", salt=data, salted_password=data)]),
        messages.UserScramCredentialRecord(name="u", salt=data, stored_key=data, server_key=data),
        messages.CreateDelegationTokenResponse(hmac=data),
        messages.ConfigRecord(resource_name="1", name="listener.x.ssl.key.password", value=secret),
        messages.IncrementalAlterConfigsRequest(resources=[
            messages.IncrementalAlterConfigsRequest.AlterConfigsResource(
                configs=[config(name="sasl.jaas.config", value=secret)])]),
        messages.EnvelopeRequest(request_data=data),
    ]  # fmt: skip
    for value in values:
        assert secret not in repr(value) and "<hidden>" in repr(value)
    request = kwire.Request(messages.RequestHeader(), values[0], 2, trailing=data)
    assert secret not in repr(request)
    assert secret in repr(messages.ConfigRecord(name="retention.ms", value=secret))


def test_reprs_of_tables_hide_secrets() -> None:
    secret = "hunter2"
    auth = kwire.encode(messages.SaslAuthenticateRequest(auth_bytes=secret.encode()), 2)
    passwords, plain = [
        kwire.encode(messages.ConfigRecord(name=f"listener.name.of.many.characters.{name}", value=secret), 0)
        for name in ("ssl.key.password", "retention.ms")]  # fmt: skip
    tables = [
        kwire.columns_of("SaslAuthenticateRequest", 2, [auth]),
        kwire.columns_of("SaslAuthenticateRequest", 2, [auth], ["auth_bytes"]),
        kwire.columns_of("ConfigRecord", 0, [passwords], ["name", "value"]),
        kwire.columns_of("ConfigRecord", 0, [passwords], ["value"]),
        kwire.columns_of("ConfigRecord", 0, [plain], ["value"]),  # whose name is not known
    ]
    for table in tables:
        for text in (repr(table), table._repr_html_()):
            assert "hunt" not in text and "hidden" in text
    assert secret in repr(kwire.columns_of("ConfigRecord", 0, [plain], ["name", "value"]))
    assert tables[1]["auth_bytes"].to_pylist() == [secret.encode()]
    (bad,) = kwire.columns_of("SaslAuthenticateRequest", 2, [auth + b"x"], errors="keep").bad
    assert repr(bad) == f"<BadMessage number=0: {bad.error}>"
