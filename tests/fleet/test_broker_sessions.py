"""Brokers that register by the wire are in service as long as their heartbeats come (broker.session.timeout.ms)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.fleet.controller.sessions import SESSION_TIMEOUT
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode
from tests.fleet.test_disk_storage import killed

pytestmark = pytest.mark.quick
E = ErrorCode


class Broker:
    """A broker that talks to the controller of a fleet. id: 9."""

    def __init__(self, fleet: Fleet, connection: Any, incarnation: int = 1) -> None:
        self.fleet, self.connection, self.incarnation = fleet, connection, UUID(int=incarnation)
        self.epoch = -1

    def register(self) -> int:
        request = messages.BrokerRegistrationRequest
        levels = self.fleet.nodes[0].levels
        answer = self.connection.send(request(
            broker_id=9, cluster_id=self.fleet.cluster.cluster_id, incarnation_id=self.incarnation,
            features=[request.Feature(name=name, min_supported_version=0, max_supported_version=level)
                      for name, level in levels.items()],
            listeners=[request.Listener(name="PLAINTEXT", host="h", port=1)], log_dirs=[UUID(int=1 << 90)]))
        self.epoch = answer.broker_epoch if not answer.error_code else self.epoch
        return int(answer.error_code)

    def beat(self, **what: bool) -> Any:
        return self.connection.send(messages.BrokerHeartbeatRequest(
            broker_id=9, broker_epoch=self.epoch, current_metadata_offset=self.epoch, **what))

    def is_fenced(self) -> bool:
        assert self.connection.send(messages.DescribeClusterRequest(endpoint_type=2)) is not None  # a turn of the loop
        return self.fleet.image.brokers[9].fenced


@pytest.mark.parametrize("release", ["3.9", "4.4"])
def test_a_silent_broker_is_fenced(release: str) -> None:
    with (
        Fleet(release, clock=ManualClock()) as fleet,
        connect_sync(fleet.nodes[0].controller_address) as connection,
    ):
        broker = Broker(fleet, connection)
        assert broker.register() == E.NONE and broker.is_fenced()
        assert not broker.beat().is_fenced
        for _ in range(3):
            fleet.advance(SESSION_TIMEOUT - 0.1)
            assert not broker.is_fenced() and not broker.beat().is_fenced
        fleet.advance(SESSION_TIMEOUT)
        assert broker.is_fenced() and fleet.image.brokers[1].fenced is False
        assert [one["node"] for one in fleet.events if one["event"] == "session ended"] == [9]
        assert not broker.beat().is_fenced and not broker.is_fenced()


@pytest.mark.parametrize(("release", "while_fenced"), [("3.9", E.NONE), ("4.4", E.DUPLICATE_BROKER_REGISTRATION)])
def test_another_broker_of_an_id_waits_for_the_end_of_the_session(release: str, while_fenced: ErrorCode) -> None:
    with (
        Fleet(release, clock=ManualClock()) as fleet,
        connect_sync(fleet.nodes[0].controller_address) as connection,
    ):
        broker, other = Broker(fleet, connection), Broker(fleet, connection, 2)
        broker.register()
        broker.beat()
        assert other.register() == E.DUPLICATE_BROKER_REGISTRATION
        assert broker.beat(want_fence=True).is_fenced
        assert other.register() == while_fenced
        fleet.advance(SESSION_TIMEOUT)
        assert other.register() == E.NONE
        assert broker.beat().error_code == E.STALE_BROKER_EPOCH


def test_a_session_begins_again_with_another_fleet_on_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Fleet("4.4", data=folder) as fleet, connect_sync(fleet.nodes[0].controller_address) as connection:
        broker = Broker(fleet, connection)
        broker.register()
        broker.beat()
        folder = killed(folder, tmp_path)
    with (
        Fleet("4.4", data=folder, clock=ManualClock()) as fleet,
        connect_sync(fleet.nodes[0].controller_address) as connection,
    ):
        broker.fleet, broker.connection = fleet, connection
        assert not broker.is_fenced() and broker.beat().error_code == E.NONE
        fleet.advance(SESSION_TIMEOUT)
        assert broker.is_fenced()
