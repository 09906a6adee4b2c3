"""The options of the "kwire" data source: parsed and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from kwire.codec.arguments import check_type
from kwire.defaults import MAX_BATCH_BYTES
from kwire_c.printable import printable

EARLIEST = -2
LATEST = -1

# kind of the records of an internal topic, decoded -> the topic that is read if none is named
INTERNAL_KINDS = {
    "metadata": "__cluster_metadata", "offsets": "__consumer_offsets", "transactions": "__transaction_state",
}  # fmt: skip
LOG_KINDS = ("records", *INTERNAL_KINDS)  # kinds whose rows are records of segments
KINDS = (*LOG_KINDS, "capture", "segments")
DECODING_MODES = ("FAILFAST", "PERMISSIVE")  # of the decoding functions; the data source has one more
MODES = (*DECODING_MODES, "DROPMALFORMED")
DEFAULT_PARTITION_BYTES = 128 << 20
DEFAULT_OPEN_COST_BYTES = 4 << 20  # as Spark's spark.sql.files.openCostInBytes

BATCH, STREAM = "batch", "stream"

_MOST_SHOWN = 200  # characters of a value
_ROWS = (*LOG_KINDS, "capture")  # kinds whose rows are read from files


class Known(NamedTuple):
    """Where an option applies: in which queries, and to which kinds."""

    queries: tuple[str, ...] = (BATCH, STREAM)
    kinds: tuple[str, ...] = LOG_KINDS


# the options of the data source; docs/spark-source.md has them in a table
OPTIONS = {
    "path": Known(kinds=KINDS),
    "paths": Known(kinds=KINDS),  # of .load([...]), as Spark writes it: a JSON list
    "kind": Known(kinds=KINDS),
    "topic": Known(kinds=(*LOG_KINDS, "segments")),
    "partition": Known(kinds=(*LOG_KINDS, "segments")),
    "startingOffsets": Known(),
    "endingOffsets": Known((BATCH,)),
    "startingTimestamp": Known(),
    "endingTimestamp": Known((BATCH,)),
    "columns": Known(kinds=_ROWS),
    "includeHeaders": Known(kinds=("records",)),
    "readCommitted": Known(),
    "mode": Known(kinds=_ROWS),
    "maxBatchBytes": Known(),
    "partitionBytes": Known(),
    "openCostBytes": Known(),
    "minPartitions": Known((BATCH,)),
    "maxBytesPerTrigger": Known((STREAM,)),
    "failOnDataLoss": Known(),
    "allowEmpty": Known(kinds=KINDS),
    "pushFilters": Known((BATCH,)),
    "storageOptions": Known(kinds=KINDS),
}
NAMES = tuple(OPTIONS)
_WRITTEN = {name.lower(): name for name in NAMES}

_FILES = "kwire reads segments from files, not from brokers: give their folder, as in .load(\"/data/kafka-logs\")"
_NO_GROUP = "kwire reads files, without a consumer group: leave it out"
_BYTES_A_TRIGGER = "use maxBytesPerTrigger"
_MILLISECONDS = "(milliseconds, for all partitions)"
_IN_PATH = "use a glob in the path, as in"

# options of Spark's Kafka source and of its file sources -> what is meant here
OF_OTHER_SOURCES = {
    "kafka.bootstrap.servers": _FILES,
    "kafka.group.id": _NO_GROUP,
    "kafka.isolation.level": 'use readCommitted, "true" or "false"',
    "subscribe": "use topic, a comma list of names",
    "subscribePattern": f'{_IN_PATH} .load("/data/kafka-logs/orders-*"); topic takes names only',
    "assign": "use topic and partition, each a comma list",
    "startingOffsetsByTimestamp": f"use startingTimestamp {_MILLISECONDS}",
    "endingOffsetsByTimestamp": f"use endingTimestamp {_MILLISECONDS}",
    "startingOffsetsByTimestampStrategy": "leave it out: no record at or after startingTimestamp is no error",
    "groupIdPrefix": _NO_GROUP,
    "maxOffsetsPerTrigger": _BYTES_A_TRIGGER,
    "minOffsetsPerTrigger": "leave it out, or set a longer trigger: a micro-batch takes what is there",
    "maxTriggerDelay": "leave it out, or set a longer trigger: a micro-batch takes what is there",
    "maxRecordsPerPartition": "use partitionBytes",
    "kafkaConsumer.pollTimeoutMs": _FILES,
    "fetchOffset.numRetries": _FILES,
    "fetchOffset.retryIntervalMs": _FILES,
    "maxFilesPerTrigger": _BYTES_A_TRIGGER,
    "pathGlobFilter": f'{_IN_PATH} .load("/data/kafka-logs/*/*.log")',
    "recursiveFileLookup": f'{_IN_PATH} .load("/data/**/*.log")',
    "modifiedAfter": f"use startingTimestamp {_MILLISECONDS}",
    "modifiedBefore": f"use endingTimestamp {_MILLISECONDS}",
    "ignoreCorruptFiles": "use mode, PERMISSIVE or DROPMALFORMED",
    "ignoreMissingFiles": 'use failOnDataLoss, "false"',
    "columnNameOfCorruptRecord": "leave it out: the column is _corrupt_record",
}

# what Spark adds to the options of CREATE TABLE
_OF_A_TABLE = ("provider", "location", "owner", "comment", "collation", "external", "is_managed_location")

# EARLIEST or LATEST for every partition, or (topic, partition) -> offset
Bound = int | dict[tuple[str, int], int]


@dataclass(frozen=True)
class Options:
    """The options of a read; offsets and timestamps are inclusive at the start, exclusive at the end.

    paths: as typed; kind: one of KINDS; topics, partitions: None for all; starting, ending: EARLIEST, LATEST or a map
    of (topic, partition) to an offset, EARLIEST or LATEST; columns: None for those of the kind; timestamps in
    milliseconds, None for no bound; sizes in bytes; open_cost_bytes: what opening a file costs, as bytes, where files
    are packed into tasks; min_partitions: at least so many tasks, None for as many as the sizes give; storage_options:
    keywords of the fsspec file system, for URLs.
    """

    paths: tuple[str, ...] = field(repr=False)
    kind: str = "records"
    topics: tuple[str, ...] | None = None
    partitions: tuple[int, ...] | None = None
    starting: Bound = EARLIEST
    ending: Bound = LATEST
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    columns: tuple[str, ...] | None = None
    include_headers: bool = False
    read_committed: bool = False
    mode: str = "FAILFAST"
    max_batch_bytes: int = MAX_BATCH_BYTES
    partition_bytes: int = DEFAULT_PARTITION_BYTES
    open_cost_bytes: int = DEFAULT_OPEN_COST_BYTES
    min_partitions: int | None = None
    max_bytes_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    push_filters: bool = False
    allow_empty: bool = False
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)

    def start_of(self, topic: str | None, partition: int | None) -> int:
        """Return the first offset to read of a partition, or EARLIEST or LATEST."""
        return _bound_of(self.starting, topic, partition, EARLIEST)

    def end_of(self, topic: str | None, partition: int | None) -> int:
        """Return the offset after the last one to read of a partition, or EARLIEST or LATEST."""
        return _bound_of(self.ending, topic, partition, LATEST)


def _bound_of(bound: Bound, topic: str | None, partition: int | None, default: int) -> int:
    if isinstance(bound, int):
        return bound
    if topic is None or partition is None:
        return default
    return bound.get((topic, partition), default)


def parse(given: Mapping[str, str], query: str | None = None) -> Options:
    """Parse the options of one read; names are case-insensitive. query: BATCH, STREAM, None if not known yet.

    Raises ValueError that names the option: an unknown one, a wrong value, one that does not apply to the query.
    """
    options = {key.lower(): value for key, value in given.items() if value is not None}
    if "provider" in options:  # of a table in the catalog
        options = {name: value for name, value in options.items() if name not in _OF_A_TABLE}
    _check_names(options)
    kind = options.get("kind", "records").lower()
    if kind not in KINDS:
        raise ValueError(f'option kind must be one of {", ".join(KINDS)}, not "{as_typed(kind)}"')
    _check_uses(options, kind, query)
    mode = options.get("mode", "FAILFAST").upper()
    if mode not in MODES:
        raise ValueError(f'option mode must be one of {", ".join(MODES)}, not "{as_typed(options["mode"])}"')
    topics = _topics(kind, options.get("topic"))
    partitions = _list("partition", options.get("partition"))
    trigger = options.get("maxbytespertrigger")
    least = options.get("minpartitions")
    return Options(
        paths=_paths(options),
        kind=kind,
        topics=topics,
        partitions=None if partitions is None else tuple(_integer("partition", value, 0) for value in partitions),
        starting=_offsets("startingOffsets", options.get("startingoffsets", "earliest")),
        ending=_offsets("endingOffsets", options.get("endingoffsets", "latest")),
        starting_timestamp=_timestamp("startingTimestamp", options.get("startingtimestamp")),
        ending_timestamp=_timestamp("endingTimestamp", options.get("endingtimestamp")),
        columns=_list("columns", options.get("columns")),
        include_headers=_boolean("includeHeaders", options.get("includeheaders", "false")),
        read_committed=_boolean("readCommitted", options.get("readcommitted", "false")),
        mode=mode,
        max_batch_bytes=_size("maxBatchBytes", options.get("maxbatchbytes"), MAX_BATCH_BYTES),
        partition_bytes=_size("partitionBytes", options.get("partitionbytes"), DEFAULT_PARTITION_BYTES),
        open_cost_bytes=_size("openCostBytes", options.get("opencostbytes"), DEFAULT_OPEN_COST_BYTES, 0),
        min_partitions=None if least is None else _integer("minPartitions", least, 1),
        max_bytes_per_trigger=None if trigger is None else _size("maxBytesPerTrigger", trigger, 0),
        fail_on_data_loss=_boolean("failOnDataLoss", options.get("failondataloss", "true")),
        push_filters=_boolean("pushFilters", options.get("pushfilters", "false")),
        allow_empty=_boolean("allowEmpty", options.get("allowempty", "false")),
        storage_options=_storage_options(options.get("storageoptions", "{}")),
    )


def one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    """Return which of the known ones a value is, in upper or lower case.

    Raises ValueError that names the argument, TypeError for what is no text.
    """
    check_type(value, str, name, "a str")
    for one in known:
        if one.lower() == value.lower():
            return one
    raise ValueError(f'{name} must be one of {", ".join(known)}, not "{as_typed(value)}"')


def as_typed(value: str) -> str:
    """Return a value of the user's as an error text shows it: escaped, at most 200 characters."""
    return printable(value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}…")


def _check_names(options: Mapping[str, str]) -> None:
    others = {name.lower(): name for name in OF_OTHER_SOURCES}
    for name in options:
        if name in _WRITTEN:
            continue
        if name in others:
            raise ValueError(f"option {others[name]}: {OF_OTHER_SOURCES[others[name]]}")
        if name.startswith("kafka."):
            raise ValueError(f"option {as_typed(name)}: {_FILES}")
        near = get_close_matches(name, [*_WRITTEN, *others], n=1)
        hint = "".join(f"did you mean {_meaning(_WRITTEN.get(other) or others[other])}? " for other in near)
        raise ValueError(f'unknown option "{as_typed(name)}"; {hint}the options are {", ".join(NAMES)}')


def _meaning(name: str) -> str:
    return f'"{name}"' if name in OPTIONS else f'"{name}" ({OF_OTHER_SOURCES[name]})'


def _check_uses(options: Mapping[str, str], kind: str, query: str | None) -> None:
    """Raise ValueError for an option that the kind or the query does not have."""
    for lower, name in _WRITTEN.items():
        if lower not in options:
            continue
        if kind not in OPTIONS[name].kinds:
            kinds = OPTIONS[name].kinds
            there = 'kind "records" only' if kinds == ("records",) else f"the kinds {', '.join(kinds)} only"
            raise ValueError(f'option {name} applies to {there}, not to "{kind}"')
        if query is not None and query not in OPTIONS[name].queries:
            here, there = ("streams", "batch reads") if query == STREAM else ("batch reads", "streams")
            raise ValueError(f"option {name} applies to {there} only, not to {here}")


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    if "path" in options:
        return (options["path"],)
    if "paths" in options:
        try:
            paths = json.loads(options["paths"])
        except (ValueError, RecursionError):
            paths = [options["paths"]]
        if paths and all(isinstance(path, str) for path in paths):
            return tuple(paths)
    raise ValueError(
        'option path is missing: give a segment, a folder or a glob, as in .load("/data/kafka-logs"); Spark does not '
        "pass on the options of a catalog's table: use CREATE TEMPORARY VIEW name USING kwire OPTIONS (path '...')")


def _topics(kind: str, value: str | None) -> tuple[str, ...] | None:
    topics = _list("topic", value)
    own = INTERNAL_KINDS.get(kind)
    if own is None or topics is None:
        return topics if own is None else (own,)
    from kwire.storage.internal.internal_topics import INTERNAL_TOPICS

    for topic in topics:
        if topic != own and topic in INTERNAL_TOPICS:
            raise ValueError(f'option topic: kind "{kind}" reads {own} or a copy of it, not {topic}')
    return topics


def _list(name: str, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    parts = tuple(part.strip() for part in value.split(",") if part.strip())
    if not parts:
        raise ValueError(f'option {name} is a comma list, and empty: "{as_typed(value)}"')
    return parts


def _integer(name: str, value: object, least: int | None = None) -> int:
    try:
        number = int(str(value))
    except ValueError:
        what = "a number of milliseconds since 1970" if name.endswith("Timestamp") else "an integer"
        raise ValueError(f'option {name}: "{as_typed(str(value))}" is not {what}') from None
    if least is not None and number < least:
        raise ValueError(f"option {name} must be at least {least}, not {number}")
    return number


def _timestamp(name: str, value: str | None) -> int | None:
    return None if value is None else _integer(name, value)


def _boolean(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f'option {name} must be true or false, not "{as_typed(value)}"')
    return value.lower() == "true"


def _size(name: str, value: str | None, default: int, least: int = 1) -> int:
    if value is None:
        return default
    text = value.strip().lower().removesuffix("b").removesuffix("i")
    unit = {"k": 10, "m": 20, "g": 30}.get(text[-1:], 0)
    return _integer(name, text.rstrip("kmg").strip(), least) << unit


def _storage_options(value: str) -> dict[str, Any]:
    try:
        keywords = json.loads(value)
    except (ValueError, RecursionError):
        keywords = None
    if not isinstance(keywords, dict):
        raise ValueError("option storageOptions must be a JSON object: keywords of the fsspec file system")
    return keywords


def _offsets(name: str, value: str) -> Bound:
    text = value.strip()
    if text.lower() == "earliest":
        return EARLIEST
    if text.lower() == "latest":
        return LATEST
    wrong = ValueError(
        f'option {name} must be "earliest", "latest" or JSON such as {{"orders": {{"0": 23}}}}, not {as_typed(text)}')
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise wrong from None
    if not isinstance(tree, dict):
        raise wrong
    bounds = {}
    for topic, partitions in tree.items():
        if not isinstance(partitions, dict):
            raise wrong
        for partition, offset in partitions.items():
            if isinstance(offset, bool) or not isinstance(offset, int):
                raise wrong
            bounds[topic, _integer(name, partition, 0)] = _integer(name, offset, EARLIEST)
    return bounds
