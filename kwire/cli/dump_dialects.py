"""What differs between the kafka-dump-log of releases."""

from __future__ import annotations

from typing import NamedTuple

from kwire import schema
from kwire.errors import UnsupportedVersionError

_OLDEST = "3.3"


class Dialect(NamedTuple):
    """How kafka-dump-log of a release prints.

    gap_at_start: a first offset that is not 0 counts as a gap; sorted_findings: offsets that do not agree are sorted,
    each once, else the last one found is first; closing: what follows the checksum of an entry of magic 0 and 1;
    after_producer: what follows a producer without batches; indents_payload: a line that has only a payload begins as
    other lines of records; control_types: what is printed of control records whose message is not; old_texts: the
    decoders that do not print JSON ("group", "transaction"); lacks: decoders that came later, with their options;
    options: how an offset that may be missing is printed, without and with it (%d); transaction_index: whether the
    text of a remote segment says that its transaction index is empty.
    """

    release: str
    gap_at_start: bool
    sorted_findings: bool
    closing: str
    after_producer: str
    indents_payload: bool
    control_types: dict[str | int | None, str]
    old_texts: frozenset[str]
    lacks: dict[str, str]
    options: tuple[str, str]
    transaction_index: bool


def dialect(release: str | None) -> Dialect:
    """The dialect of a release, by default the newest. Raises UnsupportedVersionError for one before 3.3."""
    names = schema.releases()
    name = names[-1] if release is None else schema.release_name(release)
    if name not in names or names.index(name) < names.index(_OLDEST):
        reason = f"the text of kafka-dump-log {name} is not known: expected {_OLDEST} to {names[-1]}"
        raise UnsupportedVersionError(reason, needed=name, offered=(_OLDEST, names[-1]))

    def since(first: str) -> bool:
        return names.index(name) >= names.index(first)

    java = since("4.3")  # the tool was rewritten in Java
    control_types: dict[str | int | None, str] = {} if java else {"LEADER_CHANGE": "LEADER_CHANGE(2)"}
    if not since("3.8"):
        control_types |= {"KRAFT_VERSION": "UNKNOWN(5)", "KRAFT_VOTERS": "UNKNOWN(6)"}
    old_texts = {kind for kind, first in (("group", "3.8"), ("transaction", "4.1")) if not since(first)}
    lacks = {kind: option for kind, option, first in (
        ("remote_log", "--remote-log-metadata-decoder", "3.9"), ("share", "--share-group-state-decoder", "4.0"),
    ) if not since(first)}  # fmt: skip
    return Dialect(name, java, java, "" if java else "}", "" if java else " ", java, control_types,
                   frozenset(old_texts), lacks,
                   ("OptionalLong.empty", "OptionalLong[%d]") if since("3.5") else ("None", "Some(%d)"),
                   since("4.0"))
