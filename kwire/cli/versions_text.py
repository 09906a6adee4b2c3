"""API versions of brokers as text and JSON: as kafka-broker-api-versions prints them, as in KIP-97, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire import schema
from kwire.net.api_versions import FinalizedLevels, NodeApiVersions, api_key, api_name
from kwire.net.cluster import Broker
from kwire.net.compatibility import Against
from kwire.net.features import FEATURES, Feature
from kwire.schema import Versions
from kwire.schema.definitions import LAST_VERSION
from kwire_c.printable import printable

_KIP97 = "0.10.2"  # the release that implemented it
_DISABLED = frozenset(range(52, 56))  # in 2.7: KRaft's APIs, not yet enabled


def tool_listing(broker: Broker, api_versions: NodeApiVersions, release: str) -> str:
    """The lines that kafka-broker-api-versions of a release prints for a broker (NodeApiVersions.toString).

    If the versions are assumed, "assumed RELEASE" follows the arrow.
    """
    release = schema.release_name(release)
    known, client = _known(release), _client_keys(release)
    lines = {key: _tool_line(key, span, known) for key, span in api_versions.ranges.items()}
    for key in client - lines.keys():
        lines[key] = f"{known[key].known_as}({key}): UNSUPPORTED"
    fenced = " isFenced: false" if schema.is_at_least(release, "4.0") else ""
    head = f"{_tool_broker(broker, fenced)} -> {_assumed(api_versions)}("
    return head + "\n\t" + ",\n\t".join(lines[key] for key in sorted(lines)) + "\n)\n"


def _tool_broker(broker: Broker, fenced: str = "") -> str:
    return f"{printable(broker.host)}:{broker.port} (id: {broker.id} rack: {_null(broker.rack)}{fenced})"


def kip97_listing(broker: Broker, api_versions: NodeApiVersions) -> str:
    """The lines as in KIP-97, with the API names of that release."""
    names = {row.key: row.known_as for row in schema.apis(_KIP97)}
    lines = [
        f"  {names.get(key) or api_name(key).partition('(')[0]}({key}): {_span(span)}"
        for key, span in sorted(api_versions.ranges.items())
    ]
    head = f"{_tool_broker(broker)} -> {_assumed(api_versions)}{{\n"
    return head + ",\n".join(lines) + "\n}\n"


def as_json(broker: Broker, api_versions: NodeApiVersions, release: str) -> dict[str, Any]:
    """A broker and its APIs as a JSON object.

    usable: the newest version in common with a client of the release (stable versions only), or None; assumed: the
    release whose table is used because the broker did not answer, or None.
    """
    ours = {row.key: Versions(row.min_version, row.max_stable_version) for row in schema.apis(release)}
    apis = {}
    for key, span in sorted(api_versions.ranges.items()):
        both = span.overlap(ours.get(key, schema.NO_VERSIONS))
        apis[api_name(key)] = {"key": key, "min": span.low, "max": span.high, "usable": both.high if both else None}
    return {
        "host": broker.host, "port": broker.port, "id": broker.id, "rack": broker.rack, "apis": apis,
        "assumed": api_versions.assumed,
    }


def _tool_line(key: int, span: Versions, known: dict[int, schema.Api]) -> str:
    if key not in known:
        return f"UNKNOWN({key}): {_span(span)}"
    row = known[key]
    ours = row.versions
    if ours.high < span.low:
        usable = "unusable: node too new"
    elif span.high < ours.low:
        usable = "unusable: node too old"
    else:
        usable = f"usable: {min(ours.high, span.high)}"
    return f"{row.known_as}({key}): {_span(span)} [{usable}]"


def _known(release: str) -> dict[int, schema.Api]:
    """API key -> every API that the release knows by name; removed ones have NO_VERSIONS."""
    known: dict[int, schema.Api] = {}
    for name in schema.releases(old=True):
        none = schema.NO_VERSIONS
        known = {key: row._replace(min_version=none.low, max_version=none.high) for key, row in known.items()}
        known |= {row.key: row for row in schema.apis(name)}
        if name == release:
            break
    return known


def _client_keys(release: str) -> set[int]:
    """The APIs that the tool lists as UNSUPPORTED if a broker lacks them."""
    union = schema.is_at_least(release, "3.6")  # before: only APIs of ZooKeeper brokers
    listeners = {"broker", "zkBroker"} if union else {"zkBroker"}
    return {
        row.key for row in schema.apis(release)
        if (bool(listeners & set(row.listeners)) if row.listeners else row.key not in _DISABLED)
    }  # fmt: skip


def _assumed(api_versions: NodeApiVersions) -> str:
    return "" if api_versions.assumed is None else f"assumed {api_versions.assumed} "


def _span(span: Versions) -> str:
    return str(span.low) if span.low == span.high else f"{span.low} to {span.high}"


def _null(text: str | None) -> str:
    return "null" if text is None else printable(text)


def feature_text(feature: Feature, by_broker: Mapping[Broker, NodeApiVersions], finalized: FinalizedLevels) -> str:
    """Whether a cluster can use a feature, with a line for each API that a broker lacks and each level too low."""
    lines = []
    for broker, api_versions in by_broker.items():
        for api in feature.lacking(api_versions.versions()):
            low, high = feature.needs[api]  # type: ignore[index]
            needed = f"{low} or newer" if high == LAST_VERSION else _span(Versions(low, high))
            offered = api_versions.ranges.get(api_key(api))
            support = "does not support it" if offered is None else f"supports {_span(offered)}"
            where = f"{printable(str(broker.address))} (id: {broker.id})"
            lines.append(f"  {where}: needs {api} {needed}, the broker {support}\n")
    for name, level in feature.lacking_levels(finalized.levels).items() if by_broker else ():
        found = "the brokers gave no finalized levels" if finalized.epoch < 0 else f"finalized: {finalized.level(name)}"
        lines.append(f"  needs {name} {level} or higher, {found}\n")
    since = f" ({feature.since})" if feature.since else ""
    return f"{feature.name}{since}: {'no' if lines else 'yes'}\n" + "".join(lines)


def against_text(broker: Broker, result: Against) -> str:
    """What a client of a release cannot do with a broker, as lines of text."""
    lines = [f"{printable(str(broker.address))} (id: {broker.id}), a client of Kafka {result.release}:"]
    for name, (ours, theirs) in result.unusable.items():
        support = "does not support it" if theirs is None else f"supports {_span(Versions(*theirs))}"
        lines.append(f"  cannot use {name}: the client supports {_span(Versions(*ours))}, the broker {support}")
    for name in result.features:
        lines.append(f"  lacks {name} ({FEATURES[name].since})")
    if result.older:
        versions = ", ".join(f"{name} {theirs} (not {ours})" for name, (ours, theirs) in result.older.items())
        lines.append(f"  uses older versions: {versions}")
    if len(lines) == 1:
        lines[0] += " fully compatible"
    return "\n".join(lines) + "\n"
