"""Quotas by the wire: kept in the metadata log, found by a filter, and what no release takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import Fleet
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode

pytestmark = pytest.mark.quick
E = ErrorCode
M = messages
EXACT, DEFAULT, ANY = 0, 1, 2
Entity = dict[str, str | None]


def alter(connection: SyncConnection, entity: Entity, quotas: dict[str, float | None], **more: Any) -> tuple[int, Any]:
    """(error code, text). A quota of None is removed."""
    request = M.AlterClientQuotasRequest
    answer: Any = connection.send(request(entries=[request.EntryData(
        entity=[request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[request.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()])],
        validate_only=more.pop("validate_only", False)))
    (row,) = answer.entries
    assert {one.entity_type: one.entity_name for one in row.entity} == entity
    return row.error_code, row.error_message


def quotas(connection: SyncConnection, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    """[(entity, its quotas)] that are found."""
    row = M.DescribeClientQuotasRequest.ComponentData
    answer: Any = connection.send(M.DescribeClientQuotasRequest(
        components=[row(entity_type=kind, match_type=how, match=match) for kind, how, match in components],
        strict=strict))
    assert answer.error_code == 0
    return [({one.entity_type: one.entity_name for one in entry.entity},
             {one.key: one.value for one in entry.values}) for entry in answer.entries]


@pytest.mark.parametrize("release", ["2.8", "4.4"])
def test_quotas_are_kept(release: str, tmp_path: Path) -> None:
    pair: Entity = {"client-id": None, "user": "a"}
    with Fleet(release, data=tmp_path / "data") as fleet, connect_sync(fleet.bootstrap) as connection:
        assert alter(connection, {"user": "a"}, {"producer_byte_rate": 5.0, "request_percentage": 0.5}) == (0, None)
        assert alter(connection, pair, {"consumer_byte_rate": 7.0}) == (0, None)
        assert alter(connection, {"user": "b"}, {"consumer_byte_rate": 7.0}, validate_only=True) == (0, None)
        assert alter(connection, {"user": "a"}, {"request_percentage": None, "consumer_byte_rate": None}) == (0, None)
    with Fleet(release, data=tmp_path / "data") as fleet, connect_sync(fleet.bootstrap) as connection:
        kept = [({"user": "a"}, {"producer_byte_rate": 5.0}), (pair, {"consumer_byte_rate": 7.0})]
        assert quotas(connection) == kept
        assert quotas(connection, ("user", EXACT, "a"), strict=True) == kept[:1]
        assert quotas(connection, ("user", ANY, None), ("client-id", DEFAULT, None)) == kept[1:]
        assert quotas(connection, ("user", EXACT, "nobody")) == quotas(connection, strict=True) == []
        assert alter(connection, {"user": "a"}, {"producer_byte_rate": None}) == (0, None)
        assert quotas(connection) == kept[1:]


@pytest.mark.parametrize(("entity", "key", "value", "text"), [
    ({"user": "a"}, "no.such", 1.0, "Invalid configuration key no.such"),
    ({"user": "a"}, "producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
    ({"user": "a"}, "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
    ({"user": "a"}, "producer_byte_rate", 1e30, "Proposed value for producer_byte_rate is too large for a LONG."),
    ({"ip": "::1"}, "connection_creation_rate", 3e9,
     "Proposed value for connection_creation_rate is too large for an INT."),
    ({"user": ""}, "producer_byte_rate", 1.0, "Empty user not supported"),
    ({"host": "a"}, "producer_byte_rate", 1.0, "Unhandled client quota entity type: host"),
    ({}, "producer_byte_rate", 1.0, "Invalid empty client quota entity"),
    ({"ip": "no address"}, "connection_creation_rate", 1.0, "no address is not a valid IP or resolvable host."),
])
def test_what_is_no_quota(entity: Entity, key: str, value: float, text: str) -> None:
    with Fleet("4.4") as fleet, connect_sync(fleet.bootstrap) as connection:
        assert alter(connection, entity, {key: value}) == (E.INVALID_REQUEST, text)
        assert quotas(connection) == []


def test_values_before_3_5() -> None:
    with Fleet("3.3") as fleet, connect_sync(fleet.bootstrap) as connection:
        assert alter(connection, {"ip": "127.0.0.1"}, {"connection_creation_rate": 3e9}) == (0, None)
        assert alter(connection, {"user": "a"}, {"producer_byte_rate": 0.0}) == (0, None)
        code, _ = alter(connection, {"user": "a"}, {"producer_byte_rate": -1.0})
        assert code == E.INVALID_REQUEST


def test_what_is_no_filter() -> None:
    with Fleet("4.4") as fleet, connect_sync(fleet.bootstrap) as connection:
        row = M.DescribeClientQuotasRequest.ComponentData
        for components, code in (
            ([row(entity_type="host", match_type=EXACT, match="a")], E.UNSUPPORTED_VERSION),
            ([row(entity_type="user", match_type=EXACT, match=None)], E.INVALID_REQUEST),
            ([row(entity_type="user", match_type=9, match=None)], E.INVALID_REQUEST),
            ([row(entity_type="user", match_type=ANY, match=None)] * 2, E.INVALID_REQUEST),
        ):
            answer: Any = connection.send(M.DescribeClientQuotasRequest(components=components))
            assert (answer.error_code, answer.entries) == (code, None)


def test_an_error_by_a_rule_names_the_entity() -> None:
    with Fleet("4.4") as fleet, connect_sync(fleet.bootstrap) as connection:
        fleet.fault("AlterClientQuotas", error="NOT_CONTROLLER", times=1)
        code, _ = alter(connection, {"user": "a", "client-id": None}, {"producer_byte_rate": 1.0})
        assert code == E.NOT_CONTROLLER and quotas(connection) == []
