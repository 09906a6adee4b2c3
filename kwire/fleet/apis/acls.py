"""DescribeAcls, CreateAcls, DeleteAcls: kept and found as Kafka's authorizers do; nothing is refused by them."""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.controller.acls import Acl
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

_UNKNOWN, _ANY = 0, 1  # of all the enumerations below
_MATCH, _LITERAL, _PREFIXED = 2, 3, 4  # PatternType
_CLUSTER = 4  # ResourceType
_OLD_CODES = (6, 4, 12, 3)  # the largest ResourceType, PatternType, AclOperation and AclPermissionType
_MOST_CODES = (("4.1", (7, 4, 15, 3)), ("3.3", (7, 4, 14, 3)))  # and those from a release on
_ENUMERATIONS = ("resourceType", "patternType", "operation", "permissionType")
_MOST_MATCHES = 100_000  # ACLs in an answer to DeleteAcls of several filters
_TOO_MANY = f"Filters that match the same ACLs may have {_MOST_MATCHES} of them in an answer"
_TURN = 10_000  # ACLs that are looked at before others are answered
_PARSES_PRINCIPALS, _PARSES_ANY, _CHECKS_CODES = "2.4", "2.5", "2.8"  # when answers to what is wrong changed
_CHECKS_HOSTS = "4.4"  # they may be networks
_WILDCARD, _CLUSTER_NAME = "*", "kafka-cluster"


class AclFilter(NamedTuple):
    """An AclBindingFilter: None and 1 match everything."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @property
    def problem(self) -> str | None:
        """What KRaft's controller says of one that it does not delete by."""
        if _UNKNOWN in (self.resource_type, self.pattern_type):
            return "Unknown patternFilter."
        return "Unknown entryFilter." if _UNKNOWN in (self.operation, self.permission_type) else None

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant (AclBindingFilter.matches, ResourcePatternFilter.matches)."""
        return (
            self.resource_type in (_ANY, acl.resource_type) and self._names(acl)
            and self.principal in (None, acl.principal) and self.host in (None, acl.host)
            and self.operation in (_ANY, acl.operation) and self.permission_type in (_ANY, acl.permission_type))

    def _names(self, acl: Acl) -> bool:
        if self.pattern_type not in (_ANY, _MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type in (_ANY, acl.pattern_type):
            return self.resource_name == acl.resource_name
        if acl.pattern_type == _LITERAL:
            return acl.resource_name in (self.resource_name, _WILDCARD)
        return self.resource_name.startswith(acl.resource_name)


class _NoRequest(Exception):
    """Kafka cannot even parse the request: it closes the connection."""


def _known(call: Call, *codes: int) -> tuple[int, ...]:
    """The codes of the enumerations, as their fromCode has them: one that they have not is UNKNOWN."""
    if _UNKNOWN in codes and call.node.offer.at_least(_CHECKS_CODES):
        raise _NoRequest
    most = next((largest for release, largest in _MOST_CODES if call.node.offer.at_least(release)), _OLD_CODES)
    return tuple(code if _UNKNOWN <= code <= last else _UNKNOWN for code, last in zip(codes, most, strict=True))


def _filter(row: Any, call: Call) -> AclFilter:
    pattern = row.pattern_type_filter if call.version >= 1 else _LITERAL
    resource, pattern, operation, permission = _known(
        call, row.resource_type_filter, pattern, row.operation, row.permission_type)
    return AclFilter(
        resource, row.resource_name_filter, pattern, row.principal_filter, row.host_filter, operation, permission)


@handles("DescribeAcls", controller=True)
def describe_acls(call: Call) -> Any:
    """The ACLs that a filter matches, by resource."""
    response = messages.DescribeAclsResponse
    try:
        wanted = _filter(call.message, call)
    except _NoRequest:
        return call.connection.close()
    resources: dict[tuple[int, str, int], Any] = {}
    for acl in map(Acl.of, call.cluster.controller.log.acls.values()):
        if wanted.matches(acl) and (call.version >= 1 or acl.pattern_type == _LITERAL):
            row = resources.setdefault(acl[:3], response.DescribeAclsResource(
                resource_type=acl.resource_type, resource_name=acl.resource_name, acls=[]))
            if call.version >= 1:
                row.pattern_type = acl.pattern_type
            row.acls.append(response.AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type))
    text = "" if call.node.offer.at_least(_PARSES_ANY) else None
    return response(resources=list(resources.values()), error_message=text)


@handles("CreateAcls", controller=True)
def create_acls(call: Call) -> Any:
    """Keep ACLs; one that is there already is no error. Where Kafka fails by one of them it keeps none."""
    response, log = messages.CreateAclsResponse, call.cluster.controller.log
    try:
        acls = [_acl(one, call) for one in call.message.creations]
    except _NoRequest:
        return call.connection.close()
    call.cluster.controller.check_active()
    if any(map(partial(_fails_all, call), acls)):
        return response(results=[
            response.AclCreationResult(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=None) for _ in acls])
    rows, new = [], dict[Acl, Any]()
    for acl in acls:
        row = response.AclCreationResult()
        try:
            _check(acl, call)
            if acl not in log.acl_set and acl not in new:
                new[acl] = messages.AccessControlEntryRecord(id=_new_id(call), **acl._asdict())
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.explanation
        rows.append(row)
    log.append(*new.values())
    return response(results=rows)


def _fails_all(call: Call, acl: Acl) -> bool:
    """Whether brokers fail by this ACL, and not only it."""
    if _ANY in acl.numbers or acl.pattern_type == _MATCH:
        return True
    return not acl.principal and not call.node.offer.is_kraft and call.node.offer.at_least(_PARSES_PRINCIPALS)


def _acl(one: Any, call: Call) -> Acl:
    pattern = one.resource_pattern_type if call.version >= 1 else _LITERAL
    resource, pattern, operation, permission = _known(
        call, one.resource_type, pattern, one.operation, one.permission_type)
    acl = Acl(resource, one.resource_name, pattern, one.principal, one.host, operation, permission)
    if _UNKNOWN in acl.numbers and not call.node.offer.at_least(_CHECKS_CODES):
        raise _NoRequest
    if (_ANY in acl.numbers or pattern == _MATCH) and not call.node.offer.at_least(_PARSES_ANY):
        raise _NoRequest
    return acl


def _new_id(call: Call) -> UUID:
    """An id that no ACL has."""
    while (acl_id := call.cluster.new_id()) in call.cluster.controller.log.acls:
        pass
    return acl_id


def _check(acl: Acl, call: Call) -> None:
    """May it be kept? Raises ApiError."""
    if acl.resource_type == _CLUSTER and acl.resource_name != _CLUSTER_NAME:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {_CLUSTER_NAME}")
    if not acl.resource_name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    if _UNKNOWN in acl.numbers:
        what = f"Invalid {_ENUMERATIONS[acl.numbers.index(_UNKNOWN)]} UNKNOWN"
        raise ApiError(ErrorCode.INVALID_REQUEST, what if call.node.offer.is_kraft else "Failed to create ACL")
    if call.node.offer.is_kraft and call.node.offer.at_least(_CHECKS_HOSTS):
        _check_host(acl.host)
    if ":" not in acl.principal:
        if call.node.offer.is_kraft and not call.node.offer.at_least("3.9"):
            return  # the first KRaft authorizer keeps it as it is
        if call.node.offer.at_least(_PARSES_PRINCIPALS) and not call.node.offer.is_kraft:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if not call.node.offer.is_kraft:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"expected a string in format principalType:principalName but got {acl.principal}")
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Could not parse principal from `{acl.principal}` (no "
                       "colon is present separating the principal type from the principal name)")


def _check_host(host: str) -> None:
    """Is it a name, an address or a network, "10.0.0.0/8"? Raises ApiError."""
    if not host:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty")
    address, slash, length = host.rpartition("/")
    if not slash:
        return
    reason = f"Could not parse [{host}]"
    with suppress(ValueError):
        most = ipaddress.ip_address(address).max_prefixlen
        if length.isascii() and length.isdigit() and len(length) <= len(str(most)):
            if int(length) <= most:
                return
            reason = f"Value [{length}] not in range [0,{most}]" if ":" not in address else (
                f"{reason} - prefix length must be between 0 and {most}")
    raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid CIDR notation '{host}': {reason}")


@handles("DeleteAcls", controller=True)
async def delete_acls(call: Call) -> Any:
    """Delete the ACLs that filters match. Others are answered while there are many of both.

    KRaft's controller gives an ACL to each filter that matches it, ZooKeeper's authorizer to the first one.
    """
    response, log = messages.DeleteAclsResponse, call.cluster.controller.log
    try:
        filters = [_filter(one, call) for one in call.message.filters]
    except _NoRequest:
        return call.connection.close()
    call.cluster.controller.check_active()
    left = {acl_id: Acl.of(record) for acl_id, record in log.acls.items()}
    found, seen, looked_at, matches = list[dict[UUID, Acl] | None](), dict[AclFilter, dict[UUID, Acl]](), 0, 0
    for wanted in filters:
        matching = seen.get(wanted)
        if matching is None:
            matching = {acl_id: acl for acl_id, acl in left.items() if wanted.matches(acl)}
            looked_at += len(left)
        if matches and matches + len(matching) > _MOST_MATCHES:
            found.append(None)
            await asyncio.sleep(0)
            continue
        matches += len(matching)
        found.append(matching)
        seen[wanted] = matching if call.node.offer.is_kraft else {}
        if not call.node.offer.is_kraft:
            for acl_id in matching:
                del left[acl_id]
        if looked_at > _TURN:
            looked_at = 0
            await asyncio.sleep(0)
    rows, removed = [], dict[UUID, None]()
    for wanted, acls in zip(filters, found, strict=True):
        row = response.DeleteAclsFilterResult(error_message=wanted.problem if call.node.offer.is_kraft else None)
        rows.append(row)
        if row.error_message is not None:
            row.error_code = ErrorCode.INVALID_REQUEST
        if acls is None:
            row.error_code, row.error_message = ErrorCode.POLICY_VIOLATION, _TOO_MANY
            continue
        for acl_id, acl in acls.items():
            if acl_id not in log.acls:  # another request has deleted it meanwhile
                continue
            removed[acl_id] = None
            gone = response.DeleteAclsMatchingAcl(
                error_message=None, resource_type=acl.resource_type, resource_name=acl.resource_name,
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type)
            if call.version >= 1:
                gone.pattern_type = acl.pattern_type
            row.matching_acls.append(gone)
    call.cluster.controller.check_active()  # which others may have stopped meanwhile
    log.append(*(messages.RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed))
    return response(filter_results=rows)
