"""The memory of a decode: at most 50 times its input and 1 MiB, at every array and tag of every message."""

from __future__ import annotations

import contextlib
import gc
import resource
import subprocess
import sys
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire import messages, schema

TIMES, SIZE = 50, 4_000
Fields = tuple[schema.Field, ...]


def struct_of(message: str, name: str) -> type:
    return getattr(getattr(messages, message), name)


def value_of(message: str, field: schema.Field, version: int, text: str, tags: bool) -> Any:
    """A cheap value that takes much memory: one element in each array, short strings."""
    if field.is_array:
        return [element_of(message, field, version, text, tags)]
    if field.struct:
        return make(message, field.struct, field.fields, version, text, tags)
    return {"string": text, "bytes": text.encode(), "records": text.encode()}.get(field.type)


def element_of(message: str, field: schema.Field, version: int, text: str, tags: bool) -> Any:
    if field.struct:
        return make(message, field.struct, field.fields, version, text, tags)
    if field.element == "string":
        return text
    if field.element == "uuid":
        return uuid.UUID(int=1 << 90)
    return 100 if field.element == "int8" else 12345


def make(message: str, struct: str | None, fields: Fields, version: int, text: str, tags: bool) -> Any:
    values = {}
    for field in fields:
        if version in field.versions and version not in field.tagged_versions:
            value = value_of(message, field, version, text, tags)
            if value is not None:
                values[field.snake_name] = value
    cls = struct_of(message, struct) if struct else getattr(messages, message)
    flexible = version in schema.message(message).flexible_versions
    return cls(**values, unknown_tags={100: b""} if tags and flexible else {})


def sites(fields: Fields, version: int, path: tuple[schema.Field, ...] = ()) -> Iterator[tuple[schema.Field, ...]]:
    """The path of every array, tagged ones too."""
    for field in fields:
        if version in field.versions:
            if field.is_array:
                yield (*path, field)
            yield from sites(field.fields, version, (*path, field))


def filled(message: str, path: tuple[schema.Field, ...], version: int, text: str, tags: bool) -> Any:
    """The message with as many elements at one site as give the size."""
    definition = schema.message(message)
    root = holder = make(message, None, definition.fields, version, text, tags)
    for field in path[:-1]:
        child = make(message, field.struct, field.fields, version, text, tags)
        setattr(holder, field.snake_name, [child] if field.is_array else child)
        holder = child
    last = path[-1]
    element = element_of(message, last, version, text, tags)
    setattr(holder, last.snake_name, [element] * 20)
    some = len(kwire.encode(root, version))
    setattr(holder, last.snake_name, [element] * 40)
    each = max(1, (len(kwire.encode(root, version)) - some) // 20)
    setattr(holder, last.snake_name, [element] * (SIZE // each))
    return root


def peak_of(work: Callable[[], Any]) -> int:
    """The most bytes that Python's allocators held more than before, while it ran."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    work()
    return tracemalloc.get_traced_memory()[1] - before


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    kwire.columns_of("ApiVersionsRequest", 3, [])  # imported now
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def every_version(definition: schema.Message) -> range:
    return range(definition.valid_versions.low, definition.valid_versions.high + 1)


def attack(name: str, path: tuple[schema.Field, ...], version: int, text: str, tags: bool) -> bytes | None:
    """The bytes of a message that is filled at one site; None where the version cannot carry it."""
    try:
        return kwire.encode(filled(name, path, version, text, tags), version)
    except kwire.EncodeError as error:
        assert "lacks" in error.reason or "null" in error.reason, error
        return None


WAYS: dict[str, Callable[[str, int, bytes], Any]] = {
    "decode": lambda name, version, data: kwire.decode(name, version, data),
    "views": lambda name, version, data: kwire.decode(name, version, data, views=True),
    "views of a bytearray": lambda name, version, data: kwire.decode(name, version, bytearray(data), views=True),
    "lenient": lambda name, version, data: kwire.decode(name, version, data + b"\0", lenient=True),
    "decode_from": lambda name, version, data: kwire.decode_from(name, version, b"\0" + data, 1),
    "columns_of": lambda name, version, data: kwire.columns_of(name, version, [data]),
}


@pytest.mark.parametrize("text,tags", [("", False), ("ab", True), ("\u043a", False)])
def test_every_array_site(text: str, tags: bool) -> None:
    """Each array of each version, tagged ones too: the ways take turns on versions, all of them see every site."""
    count, worst = 0, (0.0, "")
    for name in schema.message_names():
        definition = schema.message(name)
        for version in every_version(definition):
            newest = version in (definition.valid_versions.high, definition.flexible_versions.low)
            for site, path in enumerate(sites(definition.fields, version)):
                data = attack(name, path, version, text, tags)
                if data is None:
                    continue
                ways = list(WAYS.items()) if newest else [list(WAYS.items())[(version + site) % len(WAYS)]]
                for way, work in ways:
                    peak = peak_of(lambda: work(name, version, data))  # noqa: B023
                    where = f"{name} v{version} .{'.'.join(field.snake_name for field in path)} {way}"
                    worst = max(worst, (peak / len(data), where))
                    assert peak <= TIMES * len(data) + 4096, where
                    count += 1
    assert count > 2000
    assert worst[0] > 10, worst  # the measure works


def test_columns_of_every_array_site() -> None:
    """The buffers, which Python's allocators do not see."""
    for name in schema.message_names():
        definition = schema.message(name)
        for version in {definition.valid_versions.high, definition.valid_versions.low}:
            for path in sites(definition.fields, version):
                data = attack(name, path, version, "", False)
                if data is not None:
                    size = pa.table(kwire.columns_of(name, version, [data])).nbytes
                    assert size <= TIMES * len(data) + 4096, (name, version, path[-1].snake_name, size / len(data))


def test_outer_values_beside_many_rows() -> None:
    """One row an element, and a long outer value in each: refused where that takes many times the payloads."""
    R = messages.MetadataResponse
    parts = [R.MetadataResponsePartition()] * 5000
    data = kwire.encode(R(topics=[R.MetadataResponseTopic(name="n" * 30_000, partitions=parts)]), 12)
    paths = ["topics.name", "topics.partitions.partition_index"]
    with pytest.raises(kwire.LimitError):
        kwire.columns_of("MetadataResponse", 12, [data] * 3, paths)
    few = kwire.encode(R(topics=[R.MetadataResponseTopic(name="n" * 249, partitions=parts)]), 12)
    assert len(kwire.columns_of("MetadataResponse", 12, [few] * 3, paths)) == 15_000


def test_strings_that_are_repaired() -> None:
    """Lenient: each bad byte becomes U+FFFD, in a string of its own."""
    count = 20_000
    data = varint(count + 1) + b"\3\xff\xff" * count + b"\0\0"
    peak = peak_of(lambda: kwire.decode("DescribeGroupsRequest", 5, data, lenient=True))
    assert 10 * len(data) < peak <= TIMES * len(data)


def test_counts_and_tags_that_lie() -> None:
    """Counts are refused before anything is made; millions of tags are kept as bytes."""
    for hexed, message, version in (
        ("7fffffff", "MetadataRequest", 1), ("ffffffff07", "MetadataRequest", 12), ("fffffffe", "MetadataRequest", 1),
    ):
        data = bytes.fromhex(hexed) + b"\0" * 20
        assert peak_of(lambda: refused(message, version, data)) < 50_000  # noqa: B023
    tags = 40_000
    body = b"".join(varint(tag) + b"\0" for tag in range(tags))
    data = b"\1\1" + varint(tags) + body
    for lenient in (False, True):
        peak = peak_of(lambda: kwire.decode("ApiVersionsRequest", 3, data, lenient=lenient))  # noqa: B023
        assert peak < 4 * len(data)
    request = kwire.decode("ApiVersionsRequest", 3, data)
    assert kwire.encode(request, 3) == data


def refused(message: str, version: int, data: bytes) -> None:
    with pytest.raises(kwire.DecodeError):
        kwire.decode(message, version, data)


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out, value = out + bytes((value & 0x7F | 0x80,)), value >> 7
    return out + bytes((value,))


def crossed(brokers: int, topics: int) -> bytes:
    """A Metadata answer with long lists beside each other."""
    R = messages.MetadataResponse
    return kwire.encode(R(
        brokers=[R.MetadataResponseBroker(node_id=at, host="h", port=9092) for at in range(brokers)],
        topics=[R.MetadataResponseTopic(name="t") for _ in range(topics)],
    ), 12)  # fmt: skip


@pytest.mark.parametrize("path", ["brokers", "cluster_id", "controller_id", "throttle_time_ms"])
def test_outer_values_count_by_their_bytes(path: str) -> None:
    """A list repeated beside each row, of structs, strings and numbers: accepted within the budget, refused past it."""
    refused = 0
    for brokers, topics in ((1, 10), (10, 100), (100, 100), (900, 900), (3000, 2000), (1, 60_000)):
        data = crossed(brokers, topics)
        try:
            columns = kwire.columns_of("MetadataResponse", 12, [data], [path, "topics.name"])
        except kwire.LimitError:
            refused += 1
            continue
        assert pa.table(columns).nbytes <= TIMES * len(data) + (2 << 20), (brokers, topics)
    assert refused == (2 if path == "brokers" else 0)


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def wrong_payload() -> None:
    columns = kwire.columns_of("MetadataResponse", 12, [b"\0\0\0"], ["topics.partitions.error_code"], errors="keep")
    assert len(columns.bad) == 1


def wrong_payload_raised() -> None:
    with contextlib.suppress(kwire.DecodeError):
        kwire.columns_of("MetadataResponse", 12, [b"\0\0\0"])


def no_such_path() -> None:
    with contextlib.suppress(ValueError):
        kwire.columns_of("MetadataResponse", 12, [b""], ["topics.name", "brokers.host", "nothing.at.all"])


FAILING = [(wrong_payload, 4000), (wrong_payload_raised, 4000), (no_such_path, 16_000)]


@pytest.mark.parametrize(("work", "times"), FAILING)
def test_columns_that_fail_leave_nothing_behind(work: Callable[[], None], times: int) -> None:
    """What C holds is freed when the error's traceback, a cycle, is collected: it was 2.4 KiB a call, and 0.5."""
    tracemalloc.stop()  # it makes the calls three times as long
    for _ in range(times // 8):
        work()
    gc.collect()
    before = resident()
    for number in range(times):
        work()
        if number % 1000 == 0:
            gc.collect()
    gc.collect()
    assert resident() - before < 3 << 20


def test_freed_structs_are_kept_up_to_a_total() -> None:
    """For the next message of their class, 8 MiB each: a peer that chooses the APIs filled one after the other."""
    script = """
import resource, kwire
from kwire import messages
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pages = int(open("/proc/self/statm").read().split()[1])
classes = 0
for name in dir(messages):
    kind = getattr(messages, name)
    if not (isinstance(kind, type) and name.endswith("Response")):
        continue
    for inner in vars(kind).values():
        if isinstance(inner, type) and "__match_args__" in vars(inner):
            made = [inner() for _ in range(200_000)]
            classes += 1
            del made
    if classes >= 60:
        break
print(classes, (int(open("/proc/self/statm").read().split()[1]) - pages) // 256)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    classes, grown = map(int, done.stdout.split())
    assert classes >= 60 and grown < 150  # MiB
