"""What differs between the kafka-dump-log of releases."""

from __future__ import annotations

from typing import NamedTuple

from kwire import schema
from kwire.errors import UnsupportedVersionError

_OLDEST = "3.3"


class Dialect(NamedTuple):
    """How kafka-dump-log of a release prints."""

    release: str
    # Rewritten in Java. Before: a first offset that is not 0 was no gap; offsets that do not agree were not sorted, the
    # last one found was first; offsets that are not found were listed without the name of the index; a line that has
    # only a payload began with a space.
    in_java: bool
    closing: str  # after the checksum of an entry of magic 0 and 1
    after_producer: str  # after a producer without batches
    first_offset: tuple[str, str]  # of a producer's transaction: if there is none, and if there is one (%d)
    control_types: dict[str | int | None, str]  # printed instead of the message in a control record of these types
    transaction_index: bool  # the text of a remote segment says whether its transaction index is empty
    old_texts: frozenset[str]  # decoders that do not print JSON: "group", "transaction"
    lacks: dict[str, str]  # decoders that came later: their options


def dialect(release: str | None) -> Dialect:
    """The dialect of a release, by default the newest. Raises UnsupportedVersionError for one before 3.3."""
    names = schema.releases()
    name = names[-1] if release is None else schema.release_name(release)
    if not schema.is_at_least(name, _OLDEST):
        reason = f"the text of kafka-dump-log {name} is not known: expected {_OLDEST} to {names[-1]}"
        raise UnsupportedVersionError(reason, needed=name, offered=(_OLDEST, names[-1]))

    def since(first: str) -> bool:
        return schema.is_at_least(name, first)

    java = since("4.3")
    control_types: dict[str | int | None, str] = {} if java else {"LEADER_CHANGE": "LEADER_CHANGE(2)"}
    if not since("3.8"):
        control_types |= {"KRAFT_VERSION": "UNKNOWN(5)", "KRAFT_VOTERS": "UNKNOWN(6)"}
    old_texts = {kind for kind, first in (("group", "3.8"), ("transaction", "4.1")) if not since(first)}
    lacks = {kind: option for kind, option, first in (
        ("remote_log", "--remote-log-metadata-decoder", "3.9"), ("share", "--share-group-state-decoder", "4.0"),
    ) if not since(first)}  # fmt: skip
    return Dialect(
        release=name, in_java=java, closing="" if java else "}", after_producer="" if java else " ",
        first_offset=("OptionalLong.empty", "OptionalLong[%d]") if since("3.5") else ("None", "Some(%d)"),
        control_types=control_types, transaction_index=since("4.0"), old_texts=frozenset(old_texts), lacks=lacks,
    )  # fmt: skip
