"""Vectors of every message and version of a release; what a version cannot carry; damaged bytes and their outcome."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tools.kafka.classes import KafkaClasses
from tools.vectors import values
from tools.vectors.values import Kind, Maker, Schema

CORRELATION, CLIENT = 0x01020304, "kwire-é"
TYPES = ("request", "response", "header", "data", "metadata", "coordinator")
BATCHES = ("m2-none-create-1.bin", "txn-none.bin", "control-commit-0.bin")  # of records.zip: records inside messages
DAMAGE = (b"\x00", b"\x7f", b"\x80", b"\xff")
VARINT_DAMAGE = (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\x01", b"\x80\x00")

Row = dict[str, Any]


class Target(NamedTuple):
    """One message of a release: its schema and its class's versions (java_version: what the class calls version 0)."""

    name: str
    schema: Schema
    folder: str
    java_class: str
    lowest: int
    highest: int
    unstable: bool
    offset: int  # coordinators' keys before 4.1: the class has the record type for a version, the schema here has 0

    @property
    def type(self) -> str:
        """The type of a file: the schema's own, coordinators' keys and values in one."""
        own = str(self.schema["type"])
        return "coordinator" if own.startswith("coordinator") else own

    def java_version(self, version: int) -> int:
        """The version as the class calls it."""
        return version + self.offset


def targets(kafka: KafkaClasses) -> tuple[list[Target], list[str]]:
    """Every message that the release's jars have a schema and a JSON converter of; the names of those they lack."""
    classes = kafka.ask("messages")
    found, missing = [], []
    for name, schema in sorted(kafka.schemas.items()):
        java = next((one for one in (f"{name}Data", name) if one in classes), None)
        if java is None:
            missing.append(name)
            continue
        low, high = classes[java]["min"], classes[java]["max"]
        offset = low if schema["type"] == "coordinator-key" and high else 0
        if low <= high:
            unstable = bool(schema.get("latestVersionUnstable"))
            package = classes[java]["package"]
            found.append(Target(name, schema, kafka.folders[name], f"{package}.{java}", low - offset, high - offset,
                                unstable, offset))  # fmt: skip
    return found, missing


def records_pool(folder: Path) -> list[bytes]:
    """A few record batches of Kafka's own for fields that hold records."""
    archive = folder / "records.zip"
    if not archive.exists():
        return []
    with zipfile.ZipFile(archive) as files:
        return [files.read(name) for name in BATCHES if name in files.namelist()]


def head(kafka: KafkaClasses, target: Target, version: int, kind: Kind) -> Row:
    """The first columns of a row."""
    row: Row = {"message": target.name, "apiKey": target.schema.get("apiKey"), "type": target.type}
    row |= {"schemaType": target.schema["type"], "version": version}
    row["flexible"] = values.at(target.schema["flexibleVersions"], version)
    if target.unstable and version == target.highest:
        row["unstable"] = True
    return row | {"kind": kind.name, "idx": kind.idx, "source": kafka.release}


def without_tags(value: Any) -> Any:
    """JSON as Kafka's converters write it: unknown tags are no part of it."""
    if isinstance(value, list):
        return [without_tags(item) for item in value]
    if isinstance(value, dict):
        return {key: without_tags(item) for key, item in value.items() if key != "_unknownTags"}
    return value


def sampled(target: Target, version: int) -> list[Kind]:
    """The kinds of a small set: default, one of each other kind, and long values in the newest version alone."""
    rows = [kind for kind in values.kinds(target.schema, version) if kind.idx == 0]
    return [kind for kind in rows if kind.name != "long" or version == target.highest]


def vectors(
    kafka: KafkaClasses, target: Target, pool: list[bytes], headers: dict[int, Row],
    choose: Callable[[Target, int], list[Kind]], problems: list[str],
) -> Iterator[Row]:  # fmt: skip
    """The rows of one message. Repeated bytes are left out beyond the first of each kind."""
    for version in range(target.lowest, target.highest + 1):
        makers = [(kind, Maker(target.name, target.schema, version, kind, pool)) for kind in choose(target, version)]
        asks = [
            {"do": "make", "message": target.name, "version": target.java_version(version), "json": maker.message()}
            for _, maker in makers
        ]
        seen: set[str] = set()
        for (kind, maker), made in zip(makers, kafka.many(asks), strict=True):
            if "error" in made:
                problems.append(f"{target.name} v{version} {kind.name} {kind.idx}: {made['error']}")
                continue
            if kind.idx and made["hex"] in seen:
                continue
            seen.add(made["hex"])
            row = head(kafka, target, version, kind) | {"hex": made["hex"], "json": without_tags(made["json"])}
            if kind.name == "unknown_tags":
                row["unknownTaggedFields"] = [
                    {"path": path, "tags": [{"tag": tag, "hex": data.hex()} for tag, data in tags.items()]}
                    for path, tags in maker.unknown.items()
                ]
            if kind in (("default", 0), ("random", 0)):
                row |= framed(kafka, target, version, made["hex"], headers)
            yield row


def framed(kafka: KafkaClasses, target: Target, version: int, body: str, headers: dict[int, Row]) -> Row:
    """framedHex and frame: the bytes as they are sent or stored. {} where the release has no class for it."""
    kind = target.schema["type"]
    if kind in ("request", "response"):
        api = headers[target.schema["apiKey"]]
        number = api[f"{kind}HeaderVersion"][str(version)]
        header: Row = {"correlationId": CORRELATION}
        if kind == "request":
            header |= {"requestApiKey": api["apiKey"], "requestApiVersion": version}
            if number > 0:
                header["clientId"] = CLIENT
        name = f"{kind.capitalize()}Header"
        made = kafka.ask("encode", message=name, version=number, json=header)
        frame: Row = {"headerVersion": number, "correlationId": CORRELATION}
        if kind == "request":
            frame["clientId"] = CLIENT
        return {"framedHex": made["hex"] + body, "frame": frame}
    if kind == "header":
        return {}
    serde = "toVersionPrefixedBytes"
    if kind == "metadata":
        serde = "BytesApiMessageSerde" if target.folder == "storage" else "MetadataRecordSerde"
    elif kind == "coordinator-key" and not target.offset:
        serde = "toCoordinatorTypePrefixedBytes"
    made = kafka.ask("frame", serde=serde, message=target.name, version=target.java_version(version), hex=body)
    return {} if "error" in made else {"framedHex": made["hex"], "frame": {"serde": serde}}


# ---- a field set where a version has none


class Unsupported(NamedTuple):
    """One question: a field that from_version has and version has not."""

    path: str
    set_to: str
    from_version: int
    version: int
    ignorable: bool
    parents_valid: bool
    json: Row


def unsupported(target: Target) -> Iterator[Unsupported]:
    """Every field and every version that lacks it (or its null), set in the newest version that has it."""
    every = range(target.lowest, target.highest + 1)
    for chain in chains(target.schema, ()):
        has = [v for v in every if all(values.at(field["versions"], v) for field in chain)]
        if not has:
            continue
        newest, field = has[-1], chain[-1]
        for version in every:
            if version == newest:
                continue
            path, value = placed(target.schema, chain, newest, values.other(field, newest))
            parents = all(values.at(parent["versions"], version) for parent in chain[:-1])
            ignorable = bool(field.get("ignorable"))
            if version not in has:
                yield Unsupported(path, "non-default", newest, version, ignorable, parents, value)
            elif values.nullable(field, newest) and not values.nullable(field, version):
                path, value = placed(target.schema, chain, newest, None)
                yield Unsupported(path, "null", newest, version, ignorable, parents, value)


def chains(schema: Schema, above: tuple[Schema, ...]) -> Iterator[tuple[Schema, ...]]:
    """Every field with those that contain it, outermost first."""
    for field in schema.get("fields", ()):
        yield (*above, field)
        yield from chains(field, (*above, field))


def placed(schema: Schema, chain: tuple[Schema, ...], version: int, value: Any) -> tuple[str, Row]:
    """A message of defaults with one field set, arrays on the way having one element; (path, JSON)."""
    message = values.defaults(schema, version)
    place, path = message, ""
    for depth, field in enumerate(chain):
        key = values.json_name(field["name"])
        path += ("." if path else "") + key
        if depth == len(chain) - 1:
            place[key] = value
        elif values.is_array(field):
            place[key] = [values.defaults(values.element(field), version)]
            place, path = place[key][0], path + "[0]"
        else:
            place[key] = values.defaults(field, version)
            place = place[key]
    return path, message


def unsupported_rows(kafka: KafkaClasses, target: Target, problems: list[str]) -> Iterator[Row]:
    """The rows of one message: what Kafka writes at the version that lacks the field, or its error."""
    found = list(unsupported(target))
    asks = [
        {"do": "write_at", "message": target.name, "from": target.java_version(one.from_version),
         "version": target.java_version(one.version), "json": one.json}
        for one in found
    ]  # fmt: skip
    shown = [{"do": "make", "message": target.name, "version": target.java_version(one.from_version), "json": one.json}
             for one in found]  # fmt: skip
    for one, answer, made in zip(found, kafka.many(asks), kafka.many(shown), strict=True):
        if "error" in made:
            problems.append(f"{target.name} {one.path} v{one.from_version}: {made['error']}")
            continue
        row: Row = {"message": target.name, "apiKey": target.schema.get("apiKey"), "type": target.type}
        row |= {"source": kafka.release, "path": one.path, "setTo": one.set_to, "fromVersion": one.from_version}
        row |= {"version": one.version, "ignorable": one.ignorable, "parentsValid": one.parents_valid}
        row["json"] = made["json"]
        yield row | (answer if "error" in answer else {"hex": answer["hex"], "ok": True})


# ---- damaged bytes


def damage(data: bytes, flexible: bool) -> Iterator[tuple[Row, bytes]]:
    """Bytes cut at every length, and every byte replaced: (what was done, the bytes)."""
    for size in range(len(data)):
        yield {"len": size}, data[:size]
    for at in range(len(data)):
        for new in DAMAGE + (VARINT_DAMAGE if flexible else ()):
            if new != data[at : at + 1]:
                yield {"pos": at, "sub": new.hex()}, data[:at] + new + data[at + 1 :]


def outcome(answer: Row, data: bytes) -> Row:
    """What decoding gave: ok (with bytes left over, and other bytes when encoded again), or the error."""
    if "error" in answer:
        return {"error": answer["error"]}
    row: Row = {"ok": True}
    if answer["remaining"]:
        row["remaining"] = answer["remaining"]
    read = data[: len(data) - answer["remaining"]].hex()
    if answer.get("reencoded", read) != read:
        row["reencoded"] = answer["reencoded"]
    if "reencodeError" in answer:
        row["reencodeError"] = answer["reencodeError"]
    return row


def outcomes(kafka: KafkaClasses, message: str, version: int, cases: list[bytes], json: bool = False) -> Iterator[Row]:
    """Decodes each."""
    asks = [{"do": "decode", "message": message, "version": version, "hex": data.hex(), "json": json} for data in cases]
    for answer, data in zip(kafka.many(asks), cases, strict=True):
        yield outcome(answer, data) | ({"json": without_tags(answer["json"])} if "json" in answer else {})


def malformed_row(kafka: KafkaClasses, target: Target, rows: list[Row], most: int = 100) -> Row | None:
    """One vector of the newest version and what becomes of its damaged bytes; None where none is short enough."""
    fit = [row for row in rows if row["version"] == target.highest and 1 < len(row["hex"]) // 2 <= most
           and row["kind"] in ("random", "null", "unknown_tags")]  # fmt: skip
    if not fit:
        return None
    chosen = max(fit, key=lambda row: (len(row["hex"]), row["kind"], row["idx"]))
    data = bytes.fromhex(chosen["hex"])
    cases = list(damage(data, chosen["flexible"]))
    version = target.java_version(chosen["version"])
    given = [data + bytes(3), *(changed for _, changed in cases)]
    trailing, *found = outcomes(kafka, target.name, version, given)
    row = {key: chosen[key] for key in ("message", "apiKey", "type", "version", "flexible", "hex", "source")}
    done = [one | what for one, (what, _) in zip(found, cases, strict=True)]
    return row | {
        "trailing": trailing,
        "truncated": [one for one in done if "len" in one],
        "mutated": [one for one in done if "pos" in one],
    }


def spread(names: list[str], count: int | None) -> set[str]:
    """That many names, the same in every run; all without a number."""
    return set(names if count is None else random.Random(0).sample(names, min(count, len(names))))


def versions(kafka: KafkaClasses, found: list[Target], apis: list[Row]) -> Row:
    """versions-RELEASE.json."""
    rows = []
    for target in found:
        row: Row = {"name": target.name, "type": target.schema["type"]}
        if "apiKey" in target.schema:
            row["apiKey"] = target.schema["apiKey"]
        row |= {"lowest": target.lowest, "highest": target.highest}
        rows.append(row | {"flexibleVersions": target.schema["flexibleVersions"], "class": target.java_class})
    return {"source": kafka.release, "apis": apis, "messages": rows}
