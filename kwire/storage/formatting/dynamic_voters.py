"""The first voters of a dynamic quorum, as --initial-controllers names them (KIP-853)."""

from __future__ import annotations

import ipaddress
from typing import Any, NamedTuple
from uuid import UUID

from kwire import messages
from kwire.java_semantics import copy_order, java_int, put_order
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.side_files.uuids import uuid_from_text, uuid_text


class DynamicVoter(NamedTuple):
    """A voter: id@host:port:directory (org.apache.kafka.raft.DynamicVoter)."""

    node_id: int
    host: str
    port: int
    directory_id: UUID

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.node_id}@{host}:{self.port}:{uuid_text(self.directory_id)}"


def parse_voters(text: str) -> dict[int, DynamicVoter]:
    """The voters in a comma separated list, by node id, ascending. Raises FormatterError with Kafka's text."""
    voters: dict[int, DynamicVoter] = {}
    for part in text.strip().split(","):
        if not part:
            continue
        voter = parse_voter(part)
        if voter.node_id in voters:
            raise FormatterError(f"Node id {voter.node_id} was specified more than once.")
        voters[voter.node_id] = voter
    if not voters:
        raise FormatterError("No voters given.")
    return dict(sorted(voters.items()))


def parse_voter(text: str) -> DynamicVoter:
    """One voter: id@host:port:directory, an IPv6 host in brackets. Raises FormatterError with Kafka's text."""
    number, at, rest = text.strip().partition("@")
    if not at:
        raise FormatterError("No @ found in dynamic voter string.")
    if not number:
        raise FormatterError("Invalid @ at beginning of dynamic voter string.")
    try:
        node_id = java_int(number)
    except ValueError:
        raise FormatterError("Failed to parse node id in dynamic voter string.") from None
    if node_id < 0:
        raise FormatterError(f"Invalid negative node id {node_id} in dynamic voter string.")
    if not rest:
        raise FormatterError("No hostname found after node id.")
    if rest.startswith("["):
        host, bracket, rest = rest[1:].partition("]")
        if not bracket:
            raise FormatterError("Hostname began with left bracket, but no right bracket was found.")
    else:
        host, colon, rest = rest.partition(":")
        if not colon:
            raise FormatterError("No colon following hostname could be found.")
        rest = ":" + rest
    if not rest.startswith(":"):
        raise FormatterError("Port section must start with a colon.")
    port_text, colon, directory = rest[1:].partition(":")
    if not colon:
        raise FormatterError("No colon following port could be found.")
    try:
        port = java_int(port_text)
    except ValueError:
        raise FormatterError("Failed to parse port in dynamic voter string.") from None
    if not 0 <= port <= 65535:
        raise FormatterError(f"Invalid port {port} in dynamic voter string.")
    try:
        directory_id = uuid_from_text(directory)
    except ValueError:
        raise FormatterError("Failed to parse directory ID in dynamic voter string.") from None
    return DynamicVoter(node_id, host, port, directory_id)


def host_text(host: str) -> str:
    """A host as Kafka writes it: names as they are, addresses as Java shows them (InetSocketAddress.getHostString)."""
    if not host:
        return "localhost"
    parts = host.split(".")
    if len(parts) <= 4 and all(part.isascii() and part.isdigit() and len(part) < 11 for part in parts):
        *front, last = map(int, parts)
        if max(front, default=0) < 256 and last < 256 ** (5 - len(parts)):
            number = sum(part << 8 * (3 - at) for at, part in enumerate(front)) + last
            return str(ipaddress.IPv4Address(number))
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = (int(group, 16) for group in address.exploded.partition("%")[0].split(":"))
    return ":".join(f"{group:x}" for group in groups) + (f"%{address.scope_id}" if address.scope_id else "")


def voters_record(voters: dict[int, DynamicVoter], listener: str) -> Any:
    """The KRaftVoters control record of these voters (VoterSet.toVotersRecord; in the order of its HashMap).

    listener: the first name in controller.listener.names; it is written in upper case (ListenerName.normalised).
    """
    record = messages.VotersRecord
    return record(
        voters=[
            record.Voter(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=[record.Endpoint(name=listener.upper(), host=host_text(voter.host), port=voter.port)],
                kraft_version_feature=record.KRaftVersionFeature(max_supported_version=1),
            )
            for voter in (voters[number] for number in copy_order(put_order(voters)))
        ]
    )
