"""More requests to a fleet and to a real broker: sessions, special values, filters, cursors."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from typing import Any

from kwire import messages
from tests.fleet.dialogue import (
    SUBSCRIPTION,
    Has,
    Step,
    create,
    id_of_topic,
    produce,
    records_of,
    versions_of,
    wait_for_coordinator,
)

M = messages
NOBODY = uuid.UUID(int=9)


def more(release: str) -> Generator[Step, Any, None]:
    """All of it."""
    has = versions_of(release)
    newest = has["CreateTopics"][-1]
    ids = {}
    for name in ("kept", "other", "empty"):
        yield "create", create(name, newest, 3), newest
        ids[name] = yield from id_of_topic(has, name)
    version = has["Produce"][-1]
    for index, texts in ((0, "abc"), (0, "de"), (1, "f"), (2, "ghi")):
        yield "produce", produce(records_of(*texts), version, "kept", ids["kept"], index), version
    yield "produce", produce(records_of("a"), version, "other", ids["other"], 0), version
    yield from _fetch_sessions(has, ids)
    yield from _fetches(has, ids)
    yield from _offsets(has)
    yield from _epochs(has)
    yield from _markers(has, ids)
    yield from _transactions(has, ids)
    yield from _offset_deletes(has)
    yield from _cursors(has)
    yield from _features(has)
    yield from _users(has)
    yield from _deletes(has)


def _fetch(version: int, ids: dict[str, uuid.UUID], wanted: Any = (), forgotten: Any = (), **said: Any) -> Any:
    """wanted: (topic, partition, offset, more fields); forgotten: (topic, partition)."""
    said = {"max_wait_ms": 50, "min_bytes": 0, "max_bytes": 1 << 20, **said}
    if version < 15:
        said.setdefault("replica_id", -1)
    if version < 7:
        said = {key: value for key, value in said.items() if not key.startswith("session")}
    topics, gone = {}, {}
    for name, partition, offset, *fields in wanted:
        part = M.FetchRequest.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=-1,
            **(fields[0] if fields else {}))
        topics.setdefault(name, []).append(part)
    for name, partition in forgotten:
        gone.setdefault(name, []).append(partition)

    def named(name: str) -> dict[str, Any]:
        return {"topic_id": ids.get(name, NOBODY)} if version >= 13 else {"topic": name}

    request = M.FetchRequest(**said, topics=[
        M.FetchRequest.FetchTopic(**named(name), partitions=parts) for name, parts in topics.items()])
    if version >= 7:
        request.forgotten_topics_data = [
            M.FetchRequest.ForgottenTopic(**named(name), partitions=parts) for name, parts in gone.items()]
    return request


def _fetch_sessions(has: Has, ids: dict[str, uuid.UUID]) -> Generator[Step, Any, None]:
    """KIP-227: full, incremental, forgotten, ended, wrong in each way."""
    every = [("kept", 0, 0), ("kept", 1, 0), ("other", 0, 0), ("empty", 0, 0)]
    for version in has["Fetch"]:
        if version < 7:
            continue
        for label, session, epoch in (
            ("none", 0, -1), ("of nobody", 77, 1), ("of nobody, full", 77, 0), ("of nobody, ended", 77, -1),
            ("without an id", 0, 1), ("with epoch -2", 0, -2), ("with a late epoch", 0, 2**31 - 1), ("-5", -5, 1),
        ):
            yield f"session {label}", _fetch(
                version, ids, every, session_id=session, session_epoch=epoch), version
        answer = yield "session made", _fetch(version, ids, every, session_id=0, session_epoch=0), version
        made = answer.session_id
        yield "session of nothing new", _fetch(version, ids, session_id=made, session_epoch=1), version
        yield "session in its old epoch", _fetch(version, ids, session_id=made, session_epoch=1), version
        yield "session early", _fetch(version, ids, session_id=made, session_epoch=9), version
        yield "session with offsets", _fetch(
            version, ids, [("kept", 0, 3), ("kept", 2, 0)], session_id=made, session_epoch=2), version
        yield "session again", _fetch(version, ids, session_id=made, session_epoch=3), version
        yield "session forgets", _fetch(
            version, ids, (), [("kept", 0), ("kept", 9), ("other", 0)], session_id=made, session_epoch=4), version
        yield "session forgets and asks", _fetch(
            version, ids, [("kept", 1, 0)], [("kept", 1)], session_id=made, session_epoch=5), version
        yield "session after it", _fetch(version, ids, session_id=made, session_epoch=6), version
        yield "session of what is not there", _fetch(
            version, ids, [("kept", 9, 0), ("nobody", 0, 0)], session_id=made, session_epoch=7), version
        yield "session of what is not there again", _fetch(version, ids, session_id=made, session_epoch=8), version
        yield "session out of range", _fetch(
            version, ids, [("kept", 2, 99)], session_id=made, session_epoch=9), version
        yield "session out of range again", _fetch(version, ids, session_id=made, session_epoch=10), version
        write = has["Produce"][-1]
        yield "produce", produce(records_of("new"), write, "empty", ids["empty"], 0), write
        yield "session with news", _fetch(version, ids, session_id=made, session_epoch=11), version
        other = 12 if version >= 13 else 13
        if other in has["Fetch"]:
            yield f"session in version {other}", _fetch(other, ids, session_id=made, session_epoch=12), other
            yield "session after another version", _fetch(version, ids, session_id=made, session_epoch=12), version
        yield "session ended", _fetch(version, ids, session_id=made, session_epoch=-1), version
        yield "session after its end", _fetch(version, ids, session_id=made, session_epoch=13), version
        answer = yield "session made", _fetch(version, ids, every[:1], session_id=0, session_epoch=0), version
        yield "session replaced", _fetch(version, ids, every, session_id=answer.session_id, session_epoch=0), version
        yield "session that was replaced", _fetch(
            version, ids, session_id=answer.session_id, session_epoch=1), version
        answer = yield "session made", _fetch(version, ids, every[:1], session_id=0, session_epoch=0), version
        yield "session forgets all", _fetch(
            version, ids, (), [("kept", 0)], session_id=answer.session_id, session_epoch=1), version
        yield "session of nothing", _fetch(version, ids, session_id=answer.session_id, session_epoch=2), version


def _fetches(has: Has, ids: dict[str, uuid.UUID]) -> Generator[Step, Any, None]:
    for version in has["Fetch"]:
        yield "fetch of an unknown topic", _fetch(version, ids, [("nobody", 0, 0), ("kept", 0, 0)]), version
        yield "fetch at -1", _fetch(version, ids, [("kept", 0, -1), ("kept", 1, -5)]), version
        yield "fetch twice the same", _fetch(version, ids, [("kept", 0, 0), ("kept", 0, 3)]), version
        yield "fetch little", _fetch(version, ids, [("kept", 0, 0), ("kept", 2, 0)], max_bytes=1), version
        if version >= 4:
            yield "fetch with isolation 1", _fetch(version, ids, [("kept", 0, 0)], isolation_level=1), version
        if version >= 9:
            for epoch in (0, 1, 5, -1, -7):
                yield f"fetch in epoch {epoch}", _fetch(
                    version, ids, [("kept", 0, 0, {"current_leader_epoch": epoch})]), version
        if version >= 12:
            for epoch, offset in ((0, 0), (0, 99), (1, 0), (5, 3), (-1, 0)):
                yield f"fetch after {epoch} at {offset}", _fetch(
                    version, ids, [("kept", 0, offset, {"last_fetched_epoch": epoch})]), version
        yield "fetch as a replica", _fetch(version, ids, [("kept", 0, 0)], **(
            {"replica_state": M.FetchRequest.ReplicaState(replica_id=-2)} if version >= 15 else {"replica_id": -2})
        ), version


def _offsets(has: Has) -> Generator[Step, Any, None]:
    for version in has["ListOffsets"]:
        row = M.ListOffsetsRequest.ListOffsetsPartition
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, -99, 0, 1_700_000_000_001, 2**63 - 1, -(2**63)):
            for name, index in (("kept", 0), ("empty", 1), ("kept", 9), ("nobody", 0)):
                yield f"offset at {timestamp} of {name} {index}", M.ListOffsetsRequest(
                    replica_id=-1, topics=[M.ListOffsetsRequest.ListOffsetsTopic(
                        name=name, partitions=[row(partition_index=index, timestamp=timestamp)])],
                    **({"isolation_level": 1} if version >= 2 and timestamp % 2 else {})), version
        for replica in (-2, -3, 1):
            yield f"offset for replica {replica}", M.ListOffsetsRequest(replica_id=replica, topics=[
                M.ListOffsetsRequest.ListOffsetsTopic(
                    name="kept", partitions=[row(partition_index=0, timestamp=-1)])]), version
        yield "offset twice", M.ListOffsetsRequest(replica_id=-1, topics=[M.ListOffsetsRequest.ListOffsetsTopic(
            name="kept", partitions=[row(partition_index=0, timestamp=time) for time in (-1, -2)])]), version
        if version >= 4:
            for epoch in (0, 1, 5):
                yield f"offset in epoch {epoch}", M.ListOffsetsRequest(replica_id=-1, topics=[
                    M.ListOffsetsRequest.ListOffsetsTopic(name="kept", partitions=[
                        row(partition_index=0, timestamp=-1, current_leader_epoch=epoch)])]), version


def _epochs(has: Has) -> Generator[Step, Any, None]:
    for version in has["OffsetForLeaderEpoch"]:
        row = M.OffsetForLeaderEpochRequest.OffsetForLeaderPartition
        for name, index in (("kept", 0), ("empty", 1), ("kept", 9), ("nobody", 0)):
            for epoch in (0, 1, -1, -2, 2**31 - 1):
                for current in (-1, 0, 1, 7) if version >= 2 else (-1,):
                    part = row(partition=index, leader_epoch=epoch)
                    if version >= 2:
                        part.current_leader_epoch = current
                    yield f"end of epoch {epoch} in {current} of {name} {index}", M.OffsetForLeaderEpochRequest(
                        **({"replica_id": -2} if version >= 3 else {}), topics=[
                            M.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name, partitions=[part])]), version


def _markers(has: Has, ids: dict[str, uuid.UUID]) -> Generator[Step, Any, None]:
    for version in has["WriteTxnMarkers"]:
        kind = M.WriteTxnMarkersRequest
        write = min(has["Produce"][-1], 11)
        yield "produce in a transaction", produce(
            records_of("t", producer_id=500 + version, producer_epoch=0, base_sequence=0), write, "other", ids["other"],
            1), write
        for producer, epoch, name, index in (
            (500 + version, 0, "other", 1), (500 + version, 0, "kept", 9), (500 + version, 0, "nobody", 0),
            (500 + version, 7, "other", 1), (500 + version, 3, "other", 1), (999, 0, "other", 1), (999, -1, "other", 1),
        ):
            for commit in (True, False):
                yield f"marker of {producer} {epoch} to {name} {index} {commit}", kind(markers=[
                    kind.WritableTxnMarker(
                        producer_id=producer, producer_epoch=epoch, transaction_result=commit, coordinator_epoch=2,
                        topics=[kind.WritableTxnMarkerTopic(name=name, partition_indexes=[index])])]), version
        yield "no marker", kind(markers=[]), version
        for reader in has["DescribeProducers"]:
            yield "producers after markers", M.DescribeProducersRequest(topics=[
                M.DescribeProducersRequest.TopicRequest(name="other", partition_indexes=[0, 1, 9, -1])]), reader


def _transactions(has: Has, ids: dict[str, uuid.UUID]) -> Generator[Step, Any, None]:
    yield from wait_for_coordinator(has, "tx", 1)
    if not has["ListTransactions"]:
        return
    own = {}
    version = has["InitProducerId"][-1] if has["InitProducerId"][-1] < 6 else 5
    for name in ("tx-1", "tx-2", "other-3"):
        for _ in range(50):
            answer = yield "wait", M.InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=60_000), version
            if not answer.error_code:
                break
        own[name] = answer.producer_id, answer.producer_epoch
    for index, name in enumerate(("tx-1", "other-3")):
        yield "add", M.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name, v3_and_below_producer_id=own[name][0],
            v3_and_below_producer_epoch=own[name][1], v3_and_below_topics=[
                M.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="kept", partitions=[index])]), 3
    for version in has["ListTransactions"]:
        kind = M.ListTransactionsRequest
        for states in ([], ["Ongoing"], ["Empty"], ["ongoing"], ["Empty", "Ongoing"], ["", "Bad", "Ongoing"], ["Dead"],
                       ["PrepareEpochFence"], ["CompleteCommit"]):
            yield f"transactions {states}", kind(state_filters=states), version
        for producers in ([own["tx-1"][0]], [own["tx-1"][0], own["tx-2"][0]], [-1], [2**62]):
            yield f"transactions of {len(producers)} {producers[0] < 0}", kind(producer_id_filters=producers), version
        yield "transactions of one in a state", kind(
            producer_id_filters=[own["tx-2"][0]], state_filters=["Ongoing"]), version
        if version >= 1:
            for duration in (-1, 0, 3_600_000, -5, 2**63 - 1):
                yield f"transactions for {duration}", kind(duration_filter=duration), version
        if version >= 2:
            for pattern in (None, "", "tx-.*", "tx", ".*-3", "nobody", "(", "[", "tx-1|other-3", "^tx-1$"):
                yield f"transactions like {pattern}", kind(transactional_id_pattern=pattern), version
    for version in has["DescribeTransactions"]:
        for names in (["tx-1", "tx-2", "nobody"], [], ["", "other-3"]):  # a name twice: answered once
            yield f"transactions {names} described", M.DescribeTransactionsRequest(transactional_ids=names), version
    for name in ("tx-1", "other-3"):
        yield "end", M.EndTxnRequest(
            transactional_id=name, producer_id=own[name][0], producer_epoch=own[name][1], committed=False), 3


def _offset_deletes(has: Has) -> Generator[Step, Any, None]:
    if not has["OffsetDelete"]:
        return
    yield from wait_for_coordinator(has, "subscribed", 0)
    part = M.OffsetCommitRequest.OffsetCommitRequestPartition
    for group in ("subscribed", "alone", "not-a-consumer"):
        while True:
            answer = yield "wait", M.OffsetCommitRequest(
                group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[
                    M.OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=[
                        part(partition_index=index, committed_offset=1) for index in (0, 1)])
                    for name in ("kept", "other")]), 8
            if answer.topics[0].partitions[0].error_code not in (14, 15, 16):
                break
    for group, kind in (("subscribed", "consumer"), ("not-a-consumer", "connect")):
        join = M.JoinGroupRequest(
            group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, member_id="", protocol_type=kind,
            protocols=[M.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)])
        answer = yield "join", join, 5
        if answer.error_code == 79:
            join.member_id = answer.member_id
            answer = yield "join", join, 5
        yield "sync", M.SyncGroupRequest(
            group_id=group, generation_id=answer.generation_id, member_id=answer.member_id, assignments=[
                M.SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=answer.member_id, assignment=b"\0\0\0\0\0\0\0\0\0\0")]), 3
    row = M.OffsetDeleteRequest.OffsetDeleteRequestPartition
    for group in ("subscribed", "alone", "not-a-consumer", "", "nobody"):
        for topics in ({"kept": [0], "other": [0, 9]}, {"nobody": [0]}, {"other": []}, {}, {"other": [0, 0]},
                       {"kept": [0, 1], "other": [1]}):
            yield f"delete offsets {topics} of {group}", M.OffsetDeleteRequest(group_id=group, topics=[
                M.OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=name, partitions=[row(partition_index=index) for index in indexes])
                for name, indexes in topics.items()]), 0
        wanted = M.OffsetFetchRequest(group_id=group, topics=None)
        yield f"offsets of {group}", wanted, 5
        yield f"group {group}", M.DescribeGroupsRequest(groups=[group]), 4


def _cursors(has: Has) -> Generator[Step, Any, None]:
    kind = M.DescribeTopicPartitionsRequest
    for version in has["DescribeTopicPartitions"]:
        for names in ([], ["kept", "other", "empty", "nobody"], ["other", "other"], ["no/name"]):
            for limit in (0, 1, 2, 4, 2000, 5000, -1):
                for cursor in (None, ("kept", 0), ("kept", 2), ("kept", 3), ("kept", 77), ("aaa", 0), ("zzz", 0),
                               ("nobody", 1), ("other", -1), ("", 0)):
                    if not names and (limit > 2 or (cursor or "")[:1] == ("",)):
                        continue  # the internal topics differ in their partitions
                    yield f"topics {names} {limit} from {cursor}", kind(
                        topics=[kind.TopicRequest(name=name) for name in names], response_partition_limit=limit,
                        cursor=None if cursor is None else kind.Cursor(
                            topic_name=cursor[0], partition_index=cursor[1])), version


def _features(has: Has) -> Generator[Step, Any, None]:
    kind = M.UpdateFeaturesRequest
    for version in has["UpdateFeatures"]:
        for label, rows in (
            ("none", []), ("no name", [("", 1, 1)]),
            ("twice", [("metadata.version", 1, 1), ("metadata.version", 1, 1)]),
            ("beyond", [("metadata.version", 32767, 1)]), ("negative", [("metadata.version", -1, 1)]),
            ("an unknown way", [("metadata.version", 1, 9)]), ("unsafe", [("metadata.version", 1, 3)]),
            ("zero", [("metadata.version", 0, 3)]), ("group to 0", [("group.version", 0, 1)]),
        ):
            for validate in (True, False) if version else (False,):
                keys = [
                    kind.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=way) if version else
                    kind.FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=way > 1)
                    for name, level, way in rows]
                yield f"features {label} {validate}", kind(
                    timeout_ms=10_000, feature_updates=keys,
                    **({"validate_only": validate} if version else {})), version


def _users(has: Has) -> Generator[Step, Any, None]:
    """SCRAM users by the wire."""
    change, show = M.AlterUserScramCredentialsRequest, M.DescribeUserScramCredentialsRequest
    if not has["AlterUserScramCredentials"]:
        return

    def user(name: str, mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt", salted: bytes = b"x" * 32
             ) -> Any:
        return change.ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted)

    yield "no users", show(users=None), 0
    for label, made, gone in (
        ("one", [user("a")], []), ("one again", [user("a", 2)], []), ("two", [user("b"), user("c", 2)], []),
        ("few iterations", [user("d", 1, 4095)], []), ("many iterations", [user("d", 1, 16385)], []),
        ("no name", [user("")], []), ("no mechanism", [user("d", 0)], []), ("another mechanism", [user("d", 3)], []),
        ("twice", [user("d"), user("d")], []), ("twice with two mechanisms", [user("d"), user("d", 2)], []),
        ("nobody gone", [], [("nobody", 1)]), ("gone", [], [("a", 2)]), ("gone twice", [], [("a", 1), ("a", 1)]),
        ("gone and there", [user("b")], [("b", 1)]), ("gone without a mechanism", [], [("b", 0)]),
        ("gone without a name", [], [("", 1)]), ("some are wrong", [user("e"), user("f", 1, 1)], [("nobody", 2)]),
        ("no salt", [user("g", 1, 4096, b"", b"")], []), ("nothing", [], []),
    ):
        yield f"users: {label}", change(upsertions=made, deletions=[
            change.ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in gone]), 0
    for names in (None, [], ["a"], ["b", "c", "nobody"], ["a", "a"], [""], ["a", "a", "nobody", "nobody"]):
        yield f"users {names}", show(
            users=None if names is None else [show.UserName(name=name) for name in names]), 0


def _deletes(has: Has) -> Generator[Step, Any, None]:
    row = M.DeleteRecordsRequest.DeleteRecordsPartition
    for version in has["DeleteRecords"]:
        for name, index, offset in (
            ("kept", 0, 1), ("kept", 0, 0), ("kept", 0, -1), ("kept", 0, -2), ("kept", 0, 99), ("kept", 9, 0),
            ("nobody", 0, 0), ("empty", 2, 0), ("empty", 2, -1), ("empty", 2, 1), ("kept", 2, 2), ("kept", -1, 0),
            ("__consumer_offsets", 0, 0), ("no/name", 0, 0), ("", 0, 0),
        ):
            yield f"delete {name} {index} to {offset}", M.DeleteRecordsRequest(timeout_ms=5000, topics=[
                M.DeleteRecordsRequest.DeleteRecordsTopic(
                    name=name, partitions=[row(partition_index=index, offset=offset)])]), version
        yield "delete twice", M.DeleteRecordsRequest(timeout_ms=5000, topics=[
            M.DeleteRecordsRequest.DeleteRecordsTopic(
                name="kept", partitions=[row(partition_index=2, offset=at) for at in (1, 3)])]), version
    yield from _offsets(has)
