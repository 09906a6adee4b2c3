"""`kwire snapshot`: shows and compares images of a cluster's metadata, and downgrades one into a new snapshot."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.selectors import Topics
from kwire.cli.terminal import LAST_OFFSET, counted, not_to_terminal, print_json, when
from kwire.output import check_standard_output
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage.metadata import Change, ClusterImage, Downgrade, Topic

_MOST_NAMES = 20  # of topics, users and other things in a line


@click.group()
def snapshot() -> None:
    """The metadata of a cluster: its __cluster_metadata log and snapshots, read without a broker.

    PATH is a __cluster_metadata-0 folder, the log directory that it is in, or a .checkpoint file.
    """


def _reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --release, for logs of the releases before 3.6."""
    return click.option(
        "--release", help="The Kafka release that wrote the log (needed for some records of releases before 3.6)."
    )(command)


def _read(path: str, offset: int | None, release: str | None) -> ClusterImage:
    from kwire.storage.metadata import ClusterImage

    image = ClusterImage.read(path, offset, release)
    check_standard_output(image.files)
    return image


# show


@snapshot.command()
@click.argument("path")
@click.option("--offset", type=LAST_OFFSET, help="The last offset to read (inclusive). Default: the end of the log.")
@click.option("--topic", "topics", multiple=True, type=Topics(), metavar="TOPIC,...",
              help="Show the partitions of these topics: names, globs, a comma list, or TOPIC-PARTITION (may be "
                   "repeated).")
@_reading
@click.option("--json", "as_value", is_flag=True, help="One JSON object: everything but secrets.")
def show(path: str, offset: int | None, topics: tuple[str, ...], release: str | None, as_value: bool) -> None:
    """Show the image: the newest snapshot at or below the offset, and the log after it."""
    from kwire.storage.places.selection import chosen_partitions

    image = _read(path, offset, release)
    places = [(name, number) for name, topic in image.topics.items() for number in topic.partitions]
    try:
        chosen = chosen_partitions(topics, places) if topics else {}
    except LookupError as error:
        raise click.UsageError(error.args[0]) from None
    if as_value:
        value = image.to_json()
        print_json(_chosen_json(value["topics"], chosen) if topics else value, indent=2)
        return
    for name, text in _topics(image, chosen) if topics else _summary(image):
        print(f"{printable(name):18} {printable(text)}".rstrip())


def _chosen_json(topics: dict[str, Any], chosen: dict[str, set[int]]) -> dict[str, Any]:
    """Topics of an image as JSON, with their chosen partitions."""
    return {
        name: topics[name] | {
            "partitions": [row for row in topics[name]["partitions"] if row["partitionId"] in numbers],
        }
        for name, numbers in chosen.items()
    }


def _topics(image: ClusterImage, chosen: dict[str, set[int]]) -> Iterator[tuple[str, str]]:
    """The rows of topics: id, configs, their chosen partitions."""
    from kwire.storage.metadata.image_json import topic_configs

    topics = image.topics
    for name, numbers in chosen.items():
        topic = topics[name]
        configs = " ".join(f"{key}={value}" for key, value in topic_configs(image, name).items())
        yield name, f"id {_uuid(topic.id)} {configs}"
        for number, partition in sorted(topic.partitions.items()):
            if number not in numbers:
                continue
            parts = [f"leader {partition.leader}", f"epoch {partition.leader_epoch}",
                     f"replicas {_ids(partition.replicas)}", f"in sync {_ids(partition.isr)}"]
            for field, what in (("adding_replicas", "adding"), ("removing_replicas", "removing"),
                                ("eligible_leader_replicas", "eligible"), ("last_known_elr", "last known eligible")):
                if getattr(partition, field):
                    parts.append(f"{what} {_ids(getattr(partition, field))}")
            parts += ["recovering from an unclean election"] * bool(partition.leader_recovery_state)
            parts += [f"directories {' '.join(map(_uuid, partition.directories))}"] * any(
                directory.int for directory in partition.directories)
            yield f"{name}-{number}", ", ".join(parts)


def _ids(replicas: Any) -> str:
    return ",".join(map(str, replicas)) or "-"


def _summary(image: ClusterImage) -> list[tuple[str, str]]:
    written = f", {when(image.timestamp)} UTC" if image.timestamp > 0 else ""  # 0: nothing of the log yet
    rows = [
        ("offset", f"{image.offset} (epoch {image.epoch}{written})"),
        ("metadata.version", _level(image)),
        ("kraft.version", str(image.kraft_version)),
    ]
    others = {name: level for name, level in image.features.items() if name != "metadata.version"}
    rows.append(("features", " ".join(f"{name}={level}" for name, level in sorted(others.items())) or "-"))
    rows += [(f"voter {voter.voter_id}", f"{_endpoints(voter.endpoints)} directory {_uuid(voter.voter_directory_id)}")
             for voter in image.voters]
    rows += [(f"controller {number}", _endpoints(controller.end_points))
             for number, controller in sorted(image.controllers.items())]
    for number, broker in sorted(image.brokers.items()):
        state = "fenced" if broker.fenced else "active"
        state += ", in controlled shutdown" if broker.in_controlled_shutdown else ""
        parts = [_endpoints(broker.end_points), f"epoch {broker.broker_epoch}"]
        parts += [f"rack {broker.rack}"] if broker.rack is not None else []
        parts += [f"{len(broker.log_dirs)} log directories"] if broker.log_dirs else []
        parts += [f"{len(broker.cordoned_log_dirs)} of them cordoned"] if broker.cordoned_log_dirs else []
        rows.append((f"broker {number}", f"{state}: {', '.join(parts)}"))
    partitions = [record for topic in image.topics_by_id.values() for record in topic.partitions.values()]
    without = sum(record.leader < 0 for record in partitions)
    short = sum(len(record.isr) < len(record.replicas) for record in partitions)
    rows += [
        ("topics", _named(image.topics)),
        ("partitions", f"{len(partitions):,} ({without:,} without a leader, {short:,} with replicas out of sync)"),
        ("configs", f"{sum(map(len, image.tables.configs.values())):,} of {len(image.tables.configs):,} resources"),
        ("quotas", f"{sum(map(len, image.tables.quotas.values())):,} of {len(image.tables.quotas):,} entities"),
        ("acls", f"{len(image.acls):,}"),
        ("scram users", _named(dict.fromkeys(user for user, _ in image.scram))),
        ("delegation tokens", f"{len(image.delegation_tokens):,}"),
        ("next producer id", "-" if image.next_producer_id is None else str(image.next_producer_id)),
    ]
    return rows


def _level(image: ClusterImage) -> str:
    from kwire.storage.metadata.image_json import level_name

    level = image.metadata_version
    return "- (none in the log)" if level is None else f"{level} ({level_name(image) or 'unknown'})"


def _endpoints(endpoints: Any) -> str:
    return " ".join(f"{point.name}://{point.host}:{point.port}" for point in endpoints)


def _named(names: Any) -> str:
    listed = [*names]
    some = ", ".join(sorted(listed)[:_MOST_NAMES])
    return f"{len(listed):,}" + (f": {some}" if listed else "") + (", ..." if len(listed) > _MOST_NAMES else "")


def _uuid(value: Any) -> str:
    from kwire.storage.side_files.uuids import uuid_text

    return uuid_text(value)


# diff


@snapshot.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH [PATH]")
@click.option("--from", "start", type=LAST_OFFSET, metavar="OFFSET",
              help="The last offset of the first image; -1: before all. Default: the end of its log.")
@click.option("--to", "end", type=LAST_OFFSET, metavar="OFFSET",
              help="The last offset of the second image. Default: the end of its log.")
@_reading
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a change.")
def diff(paths: tuple[str, ...], start: int | None, end: int | None, release: str | None, as_lines: bool) -> None:
    """Show what changed from one image to another: of two logs or snapshots, or of one log between two offsets."""
    from kwire.storage.places.filesystem import is_stream, plain

    if len(paths) > 2:
        raise click.UsageError("expected one or two PATHs")
    if len(paths) == 1 and start is None:
        raise click.UsageError("one PATH is compared with itself: expected --from OFFSET, or a second PATH")
    if is_stream(paths[0]) and plain(paths[0]) == plain(paths[-1]):
        raise click.UsageError(f"{paths[0]} is a pipe, which can be read once: expected a file, or two PATHs")
    before, after = _read(paths[0], start, release), _read(paths[-1], end, release)
    topics = {**before.topics_by_id, **after.topics_by_id}
    changes = before.diff(after)
    for change in changes:
        if as_lines:
            print_json(_change_json(change, topics))
        else:
            print(printable(_change_text(change, topics)))
    print(f"{counted(len(changes), 'change')} from offset {before.offset} to {after.offset}", file=sys.stderr)


def _change_json(change: Change, topics: Any) -> dict[str, Any]:
    from kwire.storage.metadata.record_json import record_json

    return {
        "kind": change.kind, "record": change.record,
        "name": label(change.before if change.after is None else change.after, topics),
        "before": None if change.before is None else record_json(change.before),
        "after": None if change.after is None else record_json(change.after),
        "secret_changed": bool(_hidden(change)),
    }  # fmt: skip


def _change_text(change: Change, topics: Any) -> str:
    from kwire.storage.metadata.record_json import field_json

    name = label(change.before if change.after is None else change.after, topics)
    if change.kind != "changed":
        return f"{change.kind:8} {name}"
    parts = []
    for field in change.fields:
        if field == "unknown_tags":
            parts.append("unknown tags")
        elif field in _hidden(change):
            parts.append(f"{field} (secret)")
        else:
            json_name, old = field_json(change.before, field)
            parts.append(f"{json_name} {_value(old)} -> {_value(field_json(change.after, field)[1])}")
    return f"changed  {name}: {', '.join(parts)}"


def _hidden(change: Change) -> list[str]:
    """The fields that changed and whose values are not shown."""
    from kwire.storage.metadata.record_json import REDACTED, field_json

    return [field for field in change.fields if field != "unknown_tags"
            and field_json(change.after, field)[1] == REDACTED]


def _value(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def label(record: Any, topics: Any) -> str:
    """A record by the name of what it is the record of. topics: topic id -> Topic."""
    from kwire.storage.metadata.image_json import MECHANISM_NAMES, RESOURCE_TYPES

    name = type(record).__name__
    topic: Topic | None = topics.get(getattr(record, "topic_id", None))
    match name:
        case "FeatureLevelRecord" | "TopicRecord":
            what = record.name
        case "RegisterBrokerRecord":
            what = f"broker {record.broker_id}"
        case "RegisterControllerRecord":
            what = f"controller {record.controller_id}"
        case "PartitionRecord":
            what = f"{topic.name if topic else record.topic_id}-{record.partition_id}"
        case "ConfigRecord":
            kind = RESOURCE_TYPES.get(record.resource_type, str(record.resource_type))
            what = f"{kind} {record.resource_name or '(default)'} {record.name}"
        case "ClientQuotaRecord":
            parts = (f"{part.entity_type}={'(default)' if part.entity_name is None else part.entity_name}"
                     for part in record.entity)
            what = f"{' '.join(parts)} {record.key}"
        case "AccessControlEntryRecord":
            what = f"{record.principal} on {record.resource_name} ({record.id})"
        case "UserScramCredentialRecord":
            what = f"{record.name} {MECHANISM_NAMES.get(record.mechanism, record.mechanism)}"
        case "DelegationTokenRecord":
            what = record.token_id
        case _:
            what = ""
    return f"{name} {what}".rstrip()


# downgrade


@snapshot.command()
@click.argument("source", metavar="IN")
@click.argument("output", metavar="[OUT]", required=False)
@click.option("--metadata", "level", required=True, metavar="V",
              help="The metadata.version to go down to: a level, or a name such as 4.2-IV1.")
@click.option("--unsafe", is_flag=True, help="Also if it loses metadata, or lowers other features.")
@click.option("--dry-run", is_flag=True, help="Write nothing: list what would be lost.")
@click.option("--offset", type=LAST_OFFSET, help="The last offset to read (inclusive). Default: the end of the log.")
@_reading
@click.option("--json", "as_value", is_flag=True, help="One JSON object with the losses.")
@click.option("--force", is_flag=True, help="Overwrite an existing OUT (never a file of IN).")
@click.pass_context
def downgrade(ctx: click.Context, source: str, output: str | None, level: str, unsafe: bool, dry_run: bool,
              offset: int | None, release: str | None, as_value: bool, force: bool) -> None:
    """Write a snapshot of IN at a lower metadata.version to OUT, a new file, a folder, or - for standard output.

    A downgrade that is lossy or lowers other features is refused without --unsafe; the dry run lists what it would
    lose. docs/metadata.md says how to put the snapshot in place: IN is never changed.
    """
    from kwire.storage.metadata import DowngradeError

    if output is None and not dry_run:
        raise click.UsageError("Missing argument 'OUT'.")
    if output == "-" and as_value and not dry_run:
        raise click.UsageError("OUT - and --json cannot be used together: both write to standard output")
    not_to_terminal(output or "", "OUT -")
    image = _read(source, offset, release)
    wanted: int | str = int(level) if level.isascii() and level.isdigit() and len(level) < 6 else level
    refused = None
    try:
        result = image.downgrade(wanted, unsafe)
    except DowngradeError as error:
        if not dry_run or not (error.losses or error.lowered):
            raise
        refused = error
        result = image.downgrade(wanted, unsafe=True)
    written = None
    if not dry_run:
        _check_folder(os.fspath(output or ""), image)
        written = result.image.write_snapshot(os.fspath(output or ""), force=force)
    if as_value:
        print_json(_downgrade_json(image, result, written, refused is None), indent=2)
    else:
        with redirect_stdout(sys.stderr if written == "-" else sys.stdout):
            _print_downgrade(image, result, written)
    if refused is not None:
        print(f"kwire: {refused}", file=sys.stderr)
        ctx.exit(1)


def _check_folder(output: str, image: ClusterImage) -> None:
    """Refuse to write beside the segments that were read: a node would start from it, with the log on top."""
    folder = os.path.realpath(output if os.path.isdir(output) else os.path.dirname(output) or ".")
    if any(file.endswith(".log") and os.path.realpath(os.path.dirname(file)) == folder for file in image.files):
        raise click.UsageError("OUT is in the folder of the log that is read: expected another folder")


def _downgrade_json(image: ClusterImage, result: Downgrade, written: str | None, allowed: bool) -> dict[str, Any]:
    from kwire.storage.metadata.image_json import level_name

    return {
        "offset": image.offset,
        "from": {"level": image.metadata_version, "name": level_name(image)},
        "to": {"level": result.image.metadata_version, "name": level_name(result.image)},
        "allowed": allowed,
        "records": sum(1 for _ in result.image.records()),
        "lowered": {name: {"from": old, "to": new} for name, (old, new) in result.lowered.items()},
        "losses": [_loss_json(record, loss.field, image) for loss in result.losses for record in loss.each()],
        "written": written,
    }


def _loss_json(record: Any, field: str | None, image: ClusterImage) -> dict[str, Any]:
    from kwire.storage.metadata.record_json import field_json

    name, value = (None, None) if field is None else field_json(record, field)
    return {"record": type(record).__name__, "name": label(record, image.topics_by_id), "field": name, "value": value}


def _print_downgrade(image: ClusterImage, result: Downgrade, written: str | None) -> None:
    from kwire.storage.metadata.snapshots import snapshot_name

    verb = "lost" if written else "would be lost"
    for name, (old, new) in result.lowered.items():
        print(printable(f"{name}: {old} {'lowered' if written else 'would be lowered'} to {new}"))
    lost = [_loss_json(record, loss.field, image) for loss in result.losses for record in loss.each()]
    for row in lost:
        what = "the whole record" if row["field"] is None else f"{row['field']} {_value(row['value'])}"
        print(printable(f"{row['name']}: {what} {verb}"))
    records = sum(1 for _ in result.image.records())
    target = "nothing written (dry run)"
    if written:
        named = snapshot_name(image.offset, image.epoch)
        target = f"written to {printable(written)}" + ("" if written.endswith(named) or image.offset < 0 else
                                                       f", whose name in a log is {named}")
    print(f"metadata.version {_level(image)} -> {_level(result.image)}: {counted(records, 'record')}, "
          f"{counted(len(lost), 'loss', 'losses')}; {target}", file=sys.stderr)
