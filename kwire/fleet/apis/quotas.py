"""DescribeClientQuotas, AlterClientQuotas (KIP-546): kept and found as Kafka does; they slow nobody down."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from math import isfinite
from operator import itemgetter
from typing import Any

from kwire import messages
from kwire.fleet.apis.config_resources import invalid
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.errors import ApiError
from kwire.fleet.refusals import refusal
from kwire.java_semantics import put_order
from kwire.schema.error_codes import ErrorCode

USER, CLIENT_ID, IP = "user", "client-id", "ip"  # ClientQuotaEntity
_TYPES = (USER, CLIENT_ID, IP)
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2  # DescribeClientQuotasRequest: match types
_MATCHES = {_EXACT: "EXACT", _DEFAULT: "DEFAULT", _SPECIFIED: "SPECIFIED"}
# key -> (type, largest value) of whole numbers, None of fractions too (QuotaConfig)
_LONG, _INT = ("LONG", float(1 << 63)), ("INT", float((1 << 31) - 1))
_OF_USERS = {
    "producer_byte_rate": _LONG, "consumer_byte_rate": _LONG, "request_percentage": None,
    "controller_mutation_rate": None}
_OF_ADDRESSES = {"connection_creation_rate": _INT}
_MOST_REMAINDER = 1e-6
_FIRST_WITH_LIMITS = "3.5"  # a quota is not 0; before, values are what a number of the type can be
_FIRST_FINITE = "4.4"  # a quota is a number
_LOCALHOST = "localhost"


class QuotaFilter:
    """What DescribeClientQuotas asks for. Raises ApiError. Source: ClientQuotasImage.describe, ZkAdminManager."""

    def __init__(self, message: Any, kraft: bool) -> None:
        self._exact: dict[str, str | None] = {}
        self._any: set[str] = set()
        self._strict = bool(message.strict)
        if not kraft and any(one.match_type not in _MATCHES for one in message.components):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        for one in message.components:
            self._check_type(one.entity_type, kraft)
            self._add(one.entity_type, one.match_type, one.match, kraft)
        asked = {*self._exact, *self._any}
        if IP in asked and len(asked) > 1:
            raise invalid(
                f"Invalid entity filter component combination{'. ' if kraft else ', '}IP filter component should not "
                "be used with user or clientId filter component.")

    def _check_type(self, kind: str, kraft: bool) -> None:
        if not kind:
            raise invalid(
                "Invalid empty entity type." if kraft else "Unexpected empty filter component entity type")
        if kind in self._exact or kind in self._any:
            raise invalid(
                f"Entity type {kind} cannot appear more than once in the filter." if kraft else
                f"Duplicate {kind.removesuffix('-id')} filter component entity type")
        if kind not in _TYPES:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unsupported entity type {kind}" if kraft else f"Custom entity type '{kind}' not supported")

    def _add(self, kind: str, match_type: int, match: str | None, kraft: bool) -> None:
        if match_type not in _MATCHES:
            raise invalid(f"Unknown match type {match_type}")
        if match_type == _EXACT and match is None:
            raise invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match_type != _EXACT and match is not None and kraft:
            raise invalid(
                f"Request specified MATCH_TYPE_{_MATCHES[match_type]}, but also specified a match string.")
        if match_type == _SPECIFIED:
            self._any.add(kind)
        else:
            self._exact[kind] = match if match_type == _EXACT else None

    def matches(self, entity: Mapping[str, str | None]) -> bool:
        """Whether an entity (type -> name, None for the default) is meant."""
        if self._strict and len(entity) != len(self._exact) + len(self._any):
            return False
        return self._any <= entity.keys() and all(
            kind in entity and entity[kind] == name for kind, name in self._exact.items())


@handles("DescribeClientQuotas")
def describe_client_quotas(call: Call) -> Any:
    """The quotas of the entities that a filter matches."""
    response = messages.DescribeClientQuotasResponse
    try:
        wanted = QuotaFilter(call.message, call.node.offer.is_kraft)
    except ApiError as error:
        answer = refusal(call.request, error.code)
        answer.error_message, answer.entries = error.explanation, None
        return answer
    part, value = response.EntityData, response.ValueData
    return response(error_message="", entries=[
        response.EntryData(
            entity=[part(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[value(key=key, value=record.value) for key, record in quotas.items()])
        for entity, quotas in call.cluster.controller.log.quotas.items() if wanted.matches(dict(entity))])


@handles("AlterClientQuotas", controller=True)
def alter_client_quotas(call: Call) -> Any:
    """Set and remove quotas, or only check them (validate_only).

    With ZooKeeper the last one counts of what is said twice. Source: ClientQuotaControlManager, ZkAdminManager.
    """
    message, response = call.message, messages.AlterClientQuotasResponse
    call.cluster.controller.check_active()
    rows: dict[frozenset[tuple[str, str | None]], Any] = {}
    records = []
    for entry in message.entries:
        entity = {one.entity_type: one.entity_name for one in entry.entity}
        known = frozenset(entity.items())
        row = response.EntryData(error_message=None, entity=[
            response.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()])
        try:
            twice = known in rows or len({one.key for one in entry.ops}) < len(entry.ops)
            if twice and call.node.offer.is_kraft:
                raise invalid(f"Ignoring duplicate entity {_text(entity)}")
            records += _changes(call, entity, entry.ops)
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        rows[known] = row
    if not message.validate_only:
        call.cluster.controller.log.append(*records)
    return response(entries=list(rows.values()))


def _changes(call: Call, entity: Mapping[str, str | None], operations: list[Any]) -> list[Any]:
    """The records of what is new. Raises ApiError."""
    offer = call.node.offer
    keys = _keys(entity, offer.is_kraft)
    now = call.cluster.controller.log.quotas.get(tuple(sorted(entity.items(), key=itemgetter(0))), {})
    record = messages.ClientQuotaRecord
    of = [record.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    found = []
    for one in {one.key: one for one in operations}.values():
        if one.remove:
            if one.key in now:
                found.append(record(entity=of, key=one.key, remove=True))
            continue
        if one.key not in keys:
            raise invalid(f"Invalid configuration key {one.key}")
        if offer.at_least(_FIRST_FINITE) and not isfinite(one.value):
            raise invalid(f"Quota {one.key} must be a finite number")
        if offer.at_least(_FIRST_WITH_LIMITS):
            _check_value(one.key, one.value, keys[one.key])
        else:
            _check_old_value(one.key, one.value, keys[one.key], offer.is_kraft)
        if one.key not in now or now[one.key].value != one.value:
            found.append(record(entity=of, key=one.key, value=one.value))
    return found


def _keys(entity: Mapping[str, str | None], kraft: bool) -> Mapping[str, tuple[str, float] | None]:
    """The quotas that an entity may have. Raises ApiError.

    Names of hosts are not looked up: but for localhost, an address is one of IPv4 or IPv6.
    """
    if not entity:
        raise invalid("Invalid empty client quota entity")
    for kind in put_order(entity):
        if kind not in _TYPES:
            raise invalid(f"Unhandled client quota entity type: {kind}")
        if entity[kind] == "":
            raise invalid(f"Empty {kind} not supported")
    if IP not in entity:
        return _OF_USERS
    if len(entity) > 1:
        raise invalid("Invalid quota entity combination, IP entity " + (
            "shouldnot be combined with User or ClientId" if kraft else
            "should not be used with user/client ID entity."))
    address = entity[IP]
    if address not in (None, _LOCALHOST):
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise invalid(f"{address} is not a valid IP or resolvable host.") from None
    return _OF_ADDRESSES


def _check_value(key: str, value: float, whole: tuple[str, float] | None) -> None:
    """Raises ApiError: INVALID_REQUEST. Source: ClientQuotaControlManager.validateQuotaKeyValue."""
    if value <= 0:
        raise invalid(f"Quota {key} must be greater than 0")
    if whole is None:
        return
    kind, most = whole
    if value > most:
        raise invalid(f"Proposed value for {key} is too large for {'an' if kind == 'INT' else 'a'} {kind}.")
    if abs(value % 1) > _MOST_REMAINDER:
        raise invalid(f"{key} cannot be a fractional value.")


def _check_old_value(key: str, value: float, whole: tuple[str, float] | None, kraft: bool) -> None:
    """As _check_value, before 3.5: a KRaft controller takes any whole number of 64 bits."""
    if whole is None:
        return
    kind, most = _LONG if kraft else whole
    if not 0 <= value <= most or value % 1 > _MOST_REMAINDER:
        raise invalid(f"Configuration {key} must be a {kind.capitalize() if kraft else kind} value")


def _text(entity: Mapping[str, str | None]) -> str:
    """ClientQuotaEntity.toString."""
    names = ", ".join(f"{kind}={'null' if entity[kind] is None else entity[kind]}" for kind in put_order(entity))
    return f"ClientQuotaEntity(entries={{{names}}})"
