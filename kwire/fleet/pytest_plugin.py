"""The pytest plug-in: the fixture `kafka` is a Fleet, the marker `kafka` says which.

    @pytest.mark.kafka(release="3.9", nodes=3)
    def test_client(kafka):
        client = Client(kafka.bootstrap)

Without the marker it is one node of the newest release. The marker takes the keywords of Fleet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kwire.fleet.fleet import Fleet


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "kafka(release=, nodes=, ...): the fixture kafka is kwire.fleet.Fleet(...)")


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """A kwire.fleet.Fleet that runs in a thread while the test does."""
    from kwire.fleet.fleet import Fleet

    marker = request.node.get_closest_marker("kafka")
    arguments, keywords = (marker.args, marker.kwargs) if marker else ((), {})
    with Fleet(*arguments, **keywords) as fleet:
        yield fleet
