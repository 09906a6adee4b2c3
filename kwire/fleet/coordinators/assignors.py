"""The assignors of KIP-848's consumer groups: which member reads which partitions."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from kwire.java_semantics import put_order

UNIFORM, RANGE = "uniform", "range"
ASSIGNORS = (UNIFORM, RANGE)  # group.consumer.assignors
Partition = tuple[UUID, int]  # the topic's id, and the index
Assignment = dict[str, set[Partition]]  # by member id


class Subscriber(NamedTuple):
    """A member as an assignor sees it. topics: the ids of those that it reads."""

    instance_id: str | None
    topics: frozenset[UUID]


def assign(
    assignor: str, members: Mapping[str, Subscriber], counts: Mapping[UUID, int], before: Mapping[str, set[Partition]]
) -> Assignment:
    """The partitions of each member. counts: of the partitions of topics; before: the last assignment."""
    if assignor == RANGE:
        return _range(members, counts)
    if len({one.topics for one in members.values()}) == 1:
        return _same_topics(members, counts, before)
    return _other_topics(members, counts, before)


def _same_topics(
    members: Mapping[str, Subscriber], counts: Mapping[UUID, int], before: Mapping[str, set[Partition]]
) -> Assignment:
    """All read the same topics: as many for each, who has some keeps them (UniformHomogeneousAssignmentBuilder)."""
    order = put_order(list(members))
    topics = members[order[0]].topics
    every = [(topic, index) for topic, count in counts.items() if topic in topics for index in range(count)]
    taken = set[Partition]().union(*(before.get(one, ()) for one in order))
    free = [one for one in every if one not in taken]
    least, extra = divmod(len(every), len(order))
    target: Assignment = {}
    unfilled = []
    for at, member in enumerate(order):
        quota, has_extra = (least + 1, True) if extra > 0 else (least, False)
        mine = sorted(one for one in before.get(member, ()) if one[0] in topics)
        target[member] = set(mine[:quota])
        free += mine[quota:]
        quota -= len(target[member])
        if quota > 0 and has_extra and len(order) - at > extra:
            quota, has_extra = quota - 1, False  # another one may have it
        if quota > 0:
            unfilled.append((member, quota))
        extra -= has_extra
    following = iter(free)
    for member, quota in unfilled:
        target[member].update(islice(following, quota))
    return target


def _other_topics(
    members: Mapping[str, Subscriber], counts: Mapping[UUID, int], before: Mapping[str, set[Partition]]
) -> Assignment:
    """As many partitions for each as its topics allow, and as many as possible stay where they are."""
    target: Assignment = {member: set() for member in members}
    keepers = {
        partition: one for one in members for partition in before.get(one, ()) if partition[0] in members[one].topics}
    free = []
    for partition in [(topic, index) for topic, count in counts.items() for index in range(count)]:
        if partition in keepers:
            target[keepers[partition]].add(partition)
        else:
            free.append(partition)
    names = sorted(members)
    for topic, partitions in groupby(free, key=itemgetter(0)):
        readers = [(len(target[one]), at) for at, one in enumerate(names) if topic in members[one].topics]
        heapify(readers)
        for partition in partitions if readers else ():
            size, at = readers[0]
            target[names[at]].add(partition)
            heapreplace(readers, (size + 1, at))
    _level(target, members)
    return target


def _level(target: Assignment, members: Mapping[str, Subscriber]) -> None:
    """Move partitions until no two members differ by more than one where both read the topic."""
    names = list(target)
    owned: list[dict[UUID, list[int]]] = []  # of each member: topic -> a heap of indexes
    for name in names:
        owned.append(defaultdict(list))
        for topic, index in sorted(target[name]):
            owned[-1][topic].append(index)
    order = sorted((len(target[name]), at) for at, name in enumerate(names))

    def taker(size: int, giver: int) -> tuple[tuple[int, int], UUID] | None:
        for other in order:
            if size - other[0] < 2:
                return None
            topics = [topic for topic in members[names[other[1]]].topics if owned[giver].get(topic)]
            if topics:
                return other, min(topics)
        return None

    moved = True
    while moved:
        moved, givers = False, list(order)
        while givers:
            size, giver = givers.pop()
            found = taker(size, giver)
            if found is None:  # in this round: who takes may give on
                continue
            moved, (other, topic) = True, found
            index = heappop(owned[giver][topic])
            heappush(owned[other[1]][topic], index)
            target[names[giver]].remove((topic, index))
            target[names[other[1]]].add((topic, index))
            _replace(order, (size, giver), (size - 1, giver))
            _replace(order, other, (other[0] + 1, other[1]))
            insort(givers, (size - 1, giver))
            _replace(givers, other, (other[0] + 1, other[1]))


def _replace(ordered: list[tuple[int, int]], old: tuple[int, int], new: tuple[int, int]) -> None:
    place = bisect_left(ordered, old)
    if place < len(ordered) and ordered[place] == old:
        ordered.pop(place)
        insort(ordered, new)


def _range(members: Mapping[str, Subscriber], counts: Mapping[UUID, int]) -> Assignment:
    """Of each topic a run of partitions for each member, static members first (RangeAssignor)."""
    target: Assignment = {member: set() for member in members}
    order = sorted(members, key=lambda one: (members[one].instance_id is None, members[one].instance_id or one))
    for topic, count in counts.items():
        readers = [member for member in order if topic in members[member].topics]
        at = 0
        for number, member in enumerate(readers):
            share = count // len(readers) + (number < count % len(readers))
            target[member] |= {(topic, index) for index in range(at, at + share)}
            at += share
    return target
