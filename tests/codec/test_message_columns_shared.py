"""A MessageGatherer belongs to one thread at a time; another one gets a ValueError."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

import kwire
from kwire import messages
from kwire_c.columns import MessageGatherer, message_column

pytestmark = pytest.mark.quick


def test_a_second_thread_is_refused_and_the_first_adds_all_of_its_own() -> None:
    kind = messages.MetadataResponse
    topics = [kind.MetadataResponseTopic(name=f"topic-{number}") for number in range(3000)]
    data = kwire.encode(kind(topics=topics), 9)
    gatherer, added, refused = MessageGatherer("MetadataResponse", 9, None), [], []

    def work() -> None:
        for _ in range(2000):
            try:
                gatherer.add(data, False)
                added.append(1)
            except ValueError as error:
                refused.append(str(error))
            if refused and len(added) >= 100:
                return

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert set(refused) == {"another thread is adding a message to these columns"}
    assert gatherer.rows == len(added) and gatherer.node().length == len(added)


@pytest.mark.parametrize("nodes", [[], [None], [[]], [5]])
def test_columns_are_of_arrays(nodes: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"no arrays|Node"):
        message_column("name", nodes)
