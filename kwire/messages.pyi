"""The classes of all messages, for editors and type checkers.

Written from kwire/schema by `python -m tools.schema.stub`; do not edit.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeAlias, TypeVar
from uuid import UUID

from kwire_c.message_class import Message, RequestMessage, Struct

_T = TypeVar("_T")
_Many: TypeAlias = list[_T] | tuple[_T, ...]

class AbortTransactionRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    reason: str | None
    def __init__(
        self,
        *,
        reason: str | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AbortedTxn(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        last_offset: int = 0,
        last_stable_offset: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AccessControlEntryRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        id: UUID = ...,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AccessControlRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str | None = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AddOffsetsToTxnResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AddPartitionsToTxnResponse(Message):
    class AddPartitionsToTxnResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        transactional_id: str
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
        def __init__(
            self,
            *,
            transactional_id: str = "",
            topic_results: _Many[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AddPartitionsToTxnTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]
        def __init__(
            self,
            *,
            name: str = "",
            results_by_partition: _Many[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AddPartitionsToTxnPartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        partition_error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: _Many[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...,
        results_by_topic_v3_and_below: _Many[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AddRaftVoterResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AllocateProducerIdsResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    producer_id_start: int
    producer_id_len: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterClientQuotasResponse(Message):
    class EntryData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        entity: list[AlterClientQuotasResponse.EntityData]
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            entity: _Many[AlterClientQuotasResponse.EntityData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class EntityData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    entries: list[AlterClientQuotasResponse.EntryData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: _Many[AlterClientQuotasResponse.EntryData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterConfigsResponse(Message):
    class AlterConfigsResourceResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: _Many[AlterConfigsResponse.AlterConfigsResourceResponse] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsResponse(Message):
    class ReassignableTopicResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ReassignablePartitionResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: _Many[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterPartitionResponse(Message):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        topic_id: UUID
        partitions: list[AlterPartitionResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[AlterPartitionResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        isr: tuple[int, ...]
        leader_recovery_state: int
        partition_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            isr: Sequence[int] = ...,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    topics: list[AlterPartitionResponse.TopicData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: _Many[AlterPartitionResponse.TopicData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterReplicaLogDirsResponse(Message):
    class AlterReplicaLogDirTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AlterReplicaLogDirPartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: _Many[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponse(Message):
    class AlterShareGroupOffsetsResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        topic_id: UUID
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AlterShareGroupOffsetsResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: _Many[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterUserScramCredentialsResponse(Message):
    class AlterUserScramCredentialsResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        user: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: _Many[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ApiVersionsResponse(Message):
    class ApiVersion(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        api_key: int
        min_version: int
        max_version: int
        def __init__(
            self,
            *,
            api_key: int = 0,
            min_version: int = 0,
            max_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class SupportedFeatureKey(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        min_version: int
        max_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_version: int = 0,
            max_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class FinalizedFeatureKey(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        max_version_level: int
        min_version_level: int
        def __init__(
            self,
            *,
            name: str = "",
            max_version_level: int = 0,
            min_version_level: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    api_keys: list[ApiVersionsResponse.ApiVersion]
    throttle_time_ms: int
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey]
    zk_migration_ready: bool
    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: _Many[ApiVersionsResponse.ApiVersion] = ...,
        throttle_time_ms: int = 0,
        supported_features: _Many[ApiVersionsResponse.SupportedFeatureKey] = ...,
        finalized_features_epoch: int = -1,
        finalized_features: _Many[ApiVersionsResponse.FinalizedFeatureKey] = ...,
        zk_migration_ready: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AssignReplicasToDirsResponse(Message):
    class DirectoryData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        id: UUID
        topics: list[AssignReplicasToDirsResponse.TopicData]
        def __init__(
            self,
            *,
            id: UUID = ...,
            topics: _Many[AssignReplicasToDirsResponse.TopicData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[AssignReplicasToDirsResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[AssignReplicasToDirsResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    directories: list[AssignReplicasToDirsResponse.DirectoryData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: _Many[AssignReplicasToDirsResponse.DirectoryData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BeginQuorumEpochResponse(Message):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[BeginQuorumEpochResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[BeginQuorumEpochResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    topics: list[BeginQuorumEpochResponse.TopicData]
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: _Many[BeginQuorumEpochResponse.TopicData] = ...,
        node_endpoints: _Many[BeginQuorumEpochResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BeginTransactionRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    name: str | None
    def __init__(
        self,
        *,
        name: str | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BrokerHeartbeatResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BrokerRegistrationChangeRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    fenced: int
    in_controlled_shutdown: int
    log_dirs: list[UUID]
    cordoned_log_dirs: list[UUID] | None
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: _Many[UUID] = ...,
        cordoned_log_dirs: _Many[UUID] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BrokerRegistrationResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    broker_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ClearElrRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    topic_name: str
    def __init__(
        self,
        *,
        topic_name: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ClientQuotaRecord(Message):
    class EntityData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    entity: list[ClientQuotaRecord.EntityData]
    key: str
    value: float
    remove: bool
    def __init__(
        self,
        *,
        entity: _Many[ClientQuotaRecord.EntityData] = ...,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConfigRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    resource_type: int
    resource_name: str
    name: str
    value: str | None
    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentValue(Message):
    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        assignment_epochs: tuple[int, ...] | None
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            assignment_epochs: Sequence[int] | None = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: _Many[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
        partitions_pending_revocation: _Many[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupDescribeResponse(Message):
    class DescribedGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ConsumerGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            assignor_name: str = "",
            members: _Many[ConsumerGroupDescribeResponse.Member] = ...,
            authorized_operations: int = -2147483648,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Member(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        instance_id: str | None
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        subscribed_topic_regex: str | None
        assignment: ConsumerGroupDescribeResponse.Assignment
        target_assignment: ConsumerGroupDescribeResponse.Assignment
        member_type: int
        def __init__(
            self,
            *,
            member_id: str = "",
            instance_id: str | None = None,
            rack_id: str | None = None,
            member_epoch: int = 0,
            client_id: str = "",
            client_host: str = "",
            subscribed_topic_names: _Many[str] = ...,
            subscribed_topic_regex: str | None = None,
            assignment: ConsumerGroupDescribeResponse.Assignment = ...,
            target_assignment: ConsumerGroupDescribeResponse.Assignment = ...,
            member_type: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Assignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: _Many[ConsumerGroupDescribeResponse.TopicPartitions] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        topic_name: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: _Many[ConsumerGroupDescribeResponse.DescribedGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupHeartbeatResponse(Message):
    class Assignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: _Many[ConsumerGroupHeartbeatResponse.TopicPartitions] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupMemberMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupMemberMetadataValue(Message):
    class ClassicMemberMetadata(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        session_timeout_ms: int
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol]
        def __init__(
            self,
            *,
            session_timeout_ms: int = 0,
            supported_protocols: _Many[ConsumerGroupMemberMetadataValue.ClassicProtocol] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ClassicProtocol(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        metadata: bytes
        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None
    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: _Many[str] = ...,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupMetadataValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupPartitionMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupPartitionMetadataValue(Message):
    class TopicMetadata(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        topic_name: str
        num_partitions: int
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = "",
            num_partitions: int = 0,
            partition_metadata: _Many[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionMetadata(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        racks: list[str]
        def __init__(
            self,
            *,
            partition: int = 0,
            racks: _Many[str] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata]
    def __init__(
        self,
        *,
        topics: _Many[ConsumerGroupPartitionMetadataValue.TopicMetadata] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupRegularExpressionKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    regular_expression: str
    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupRegularExpressionValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[str]
    version: int
    timestamp: int
    def __init__(
        self,
        *,
        topics: _Many[str] = ...,
        version: int = 0,
        timestamp: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberValue(Message):
    class TopicPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition]
    def __init__(
        self,
        *,
        topic_partitions: _Many[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerProtocolAssignment(Message):
    class TopicPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition]
    user_data: bytes | None
    def __init__(
        self,
        *,
        assigned_partitions: _Many[ConsumerProtocolAssignment.TopicPartition] = ...,
        user_data: bytes | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerProtocolSubscription(Message):
    class TopicPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition]
    generation_id: int
    rack_id: str | None
    def __init__(
        self,
        *,
        topics: _Many[str] = ...,
        user_data: bytes | None = None,
        owned_partitions: _Many[ConsumerProtocolSubscription.TopicPartition] = ...,
        generation_id: int = -1,
        rack_id: str | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ControlRecordTypeSchema(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    type: int
    def __init__(
        self,
        *,
        type: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ControlledShutdownResponse(Message):
    class RemainingPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    remaining_partitions: list[ControlledShutdownResponse.RemainingPartition]
    def __init__(
        self,
        *,
        error_code: int = 0,
        remaining_partitions: _Many[ControlledShutdownResponse.RemainingPartition] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ControllerRegistrationResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreateAclsResponse(Message):
    class AclCreationResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    results: list[CreateAclsResponse.AclCreationResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: _Many[CreateAclsResponse.AclCreationResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreateDelegationTokenResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    token_id: str
    hmac: bytes
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreatePartitionsResponse(Message):
    class CreatePartitionsTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            name: str = "",
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: _Many[CreatePartitionsResponse.CreatePartitionsTopicResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreateTopicsResponse(Message):
    class CreatableTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        error_code: int
        error_message: str | None
        topic_config_error_code: int
        num_partitions: int
        replication_factor: int
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            error_code: int = 0,
            error_message: str | None = "",
            topic_config_error_code: int = 0,
            num_partitions: int = -1,
            replication_factor: int = -1,
            configs: _Many[CreateTopicsResponse.CreatableTopicConfigs] | None = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class CreatableTopicConfigs(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[CreateTopicsResponse.CreatableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[CreateTopicsResponse.CreatableTopicResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DefaultPrincipalData(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    type: str
    name: str
    token_authenticated: bool
    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DelegationTokenRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str
    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: _Many[str] = ...,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteAclsResponse(Message):
    class DeleteAclsFilterResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl]
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            matching_acls: _Many[DeleteAclsResponse.DeleteAclsMatchingAcl] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DeleteAclsMatchingAcl(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: _Many[DeleteAclsResponse.DeleteAclsFilterResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteGroupsResponse(Message):
    class DeletableGroupResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        group_id: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            group_id: str = "",
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    results: list[DeleteGroupsResponse.DeletableGroupResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: _Many[DeleteGroupsResponse.DeletableGroupResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteRecordsResponse(Message):
    class DeleteRecordsTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DeleteRecordsPartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        low_watermark: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            low_watermark: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[DeleteRecordsResponse.DeleteRecordsTopicResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsResponse(Message):
    class DeleteShareGroupOffsetsResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        topic_id: UUID
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: UUID = ...,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: _Many[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteShareGroupStateResponse(Message):
    class DeleteStateResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[DeleteShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[DeleteShareGroupStateResponse.PartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    results: list[DeleteShareGroupStateResponse.DeleteStateResult]
    def __init__(
        self,
        *,
        results: _Many[DeleteShareGroupStateResponse.DeleteStateResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteTopicsResponse(Message):
    class DeletableTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str | None
        topic_id: UUID
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            name: str | None = "",
            topic_id: UUID = ...,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    responses: list[DeleteTopicsResponse.DeletableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: _Many[DeleteTopicsResponse.DeletableTopicResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeAclsResponse(Message):
    class DescribeAclsResource(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        resource_type: int
        resource_name: str
        pattern_type: int
        acls: list[DescribeAclsResponse.AclDescription]
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            acls: _Many[DescribeAclsResponse.AclDescription] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AclDescription(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResponse.DescribeAclsResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: _Many[DescribeAclsResponse.DescribeAclsResource] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeClientQuotasResponse(Message):
    class EntryData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity: list[DescribeClientQuotasResponse.EntityData]
        values: list[DescribeClientQuotasResponse.ValueData]
        def __init__(
            self,
            *,
            entity: _Many[DescribeClientQuotasResponse.EntityData] = ...,
            values: _Many[DescribeClientQuotasResponse.ValueData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class EntityData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ValueData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        value: float
        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0.0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[DescribeClientQuotasResponse.EntryData] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: _Many[DescribeClientQuotasResponse.EntryData] | None = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeClusterResponse(Message):
    class DescribeClusterBroker(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        broker_id: int
        host: str
        port: int
        rack: str | None
        is_fenced: bool
        def __init__(
            self,
            *,
            broker_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            is_fenced: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterResponse.DescribeClusterBroker]
    cluster_authorized_operations: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: _Many[DescribeClusterResponse.DescribeClusterBroker] = ...,
        cluster_authorized_operations: int = -2147483648,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeConfigsResponse(Message):
    class DescribeConfigsResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult]
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            configs: _Many[DescribeConfigsResponse.DescribeConfigsResourceResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeConfigsResourceResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        value: str | None
        read_only: bool
        is_default: bool
        config_source: int
        is_sensitive: bool
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym]
        config_type: int
        documentation: str | None
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            is_default: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            synonyms: _Many[DescribeConfigsResponse.DescribeConfigsSynonym] = ...,
            config_type: int = 0,
            documentation: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeConfigsSynonym(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        value: str | None
        source: int
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            source: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    results: list[DescribeConfigsResponse.DescribeConfigsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: _Many[DescribeConfigsResponse.DescribeConfigsResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeDelegationTokenResponse(Message):
    class DescribedDelegationToken(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        principal_type: str
        principal_name: str
        token_requester_principal_type: str
        token_requester_principal_name: str
        issue_timestamp: int
        expiry_timestamp: int
        max_timestamp: int
        token_id: str
        hmac: bytes
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer]
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            token_requester_principal_type: str = "",
            token_requester_principal_name: str = "",
            issue_timestamp: int = 0,
            expiry_timestamp: int = 0,
            max_timestamp: int = 0,
            token_id: str = "",
            hmac: bytes = b"",
            renewers: _Many[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribedDelegationTokenRenewer(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken]
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: _Many[DescribeDelegationTokenResponse.DescribedDelegationToken] = ...,
        throttle_time_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeGroupsResponse(Message):
    class DescribedGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        protocol_type: str
        protocol_data: str
        members: list[DescribeGroupsResponse.DescribedGroupMember]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            protocol_type: str = "",
            protocol_data: str = "",
            members: _Many[DescribeGroupsResponse.DescribedGroupMember] = ...,
            authorized_operations: int = -2147483648,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribedGroupMember(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        member_metadata: bytes
        member_assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            member_metadata: bytes = b"",
            member_assignment: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    groups: list[DescribeGroupsResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: _Many[DescribeGroupsResponse.DescribedGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeLogDirsResponse(Message):
    class DescribeLogDirsResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        log_dir: str
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic]
        total_bytes: int
        usable_bytes: int
        is_cordoned: bool
        def __init__(
            self,
            *,
            error_code: int = 0,
            log_dir: str = "",
            topics: _Many[DescribeLogDirsResponse.DescribeLogDirsTopic] = ...,
            total_bytes: int = -1,
            usable_bytes: int = -1,
            is_cordoned: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeLogDirsTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[DescribeLogDirsResponse.DescribeLogDirsPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeLogDirsPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        partition_size: int
        offset_lag: int
        is_future_key: bool
        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_size: int = 0,
            offset_lag: int = 0,
            is_future_key: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: _Many[DescribeLogDirsResponse.DescribeLogDirsResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeProducersResponse(Message):
    class TopicResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[DescribeProducersResponse.PartitionResponse]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[DescribeProducersResponse.PartitionResponse] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        error_message: str | None
        active_producers: list[DescribeProducersResponse.ProducerState]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            active_producers: _Many[DescribeProducersResponse.ProducerState] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ProducerState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        producer_id: int
        producer_epoch: int
        last_sequence: int
        last_timestamp: int
        coordinator_epoch: int
        current_txn_start_offset: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            last_sequence: int = -1,
            last_timestamp: int = -1,
            coordinator_epoch: int = 0,
            current_txn_start_offset: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[DescribeProducersResponse.TopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[DescribeProducersResponse.TopicResponse] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeQuorumResponse(Message):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[DescribeQuorumResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[DescribeQuorumResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        error_message: str | None
        leader_id: int
        leader_epoch: int
        high_watermark: int
        current_voters: list[DescribeQuorumResponse.ReplicaState]
        observers: list[DescribeQuorumResponse.ReplicaState]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            leader_id: int = 0,
            leader_epoch: int = 0,
            high_watermark: int = 0,
            current_voters: _Many[DescribeQuorumResponse.ReplicaState] = ...,
            observers: _Many[DescribeQuorumResponse.ReplicaState] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ReplicaState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        replica_id: int
        replica_directory_id: UUID
        log_end_offset: int
        last_fetch_timestamp: int
        last_caught_up_timestamp: int
        def __init__(
            self,
            *,
            replica_id: int = 0,
            replica_directory_id: UUID = ...,
            log_end_offset: int = 0,
            last_fetch_timestamp: int = -1,
            last_caught_up_timestamp: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Node(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        listeners: list[DescribeQuorumResponse.Listener]
        def __init__(
            self,
            *,
            node_id: int = 0,
            listeners: _Many[DescribeQuorumResponse.Listener] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Listener(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    error_message: str | None
    topics: list[DescribeQuorumResponse.TopicData]
    nodes: list[DescribeQuorumResponse.Node]
    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: _Many[DescribeQuorumResponse.TopicData] = ...,
        nodes: _Many[DescribeQuorumResponse.Node] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponse(Message):
    class DescribeShareGroupOffsetsResponseGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        group_id: str
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            group_id: str = "",
            topics: _Many[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ...,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        topic_id: UUID
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        start_offset: int
        leader_epoch: int
        lag: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
            leader_epoch: int = 0,
            lag: int = -1,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: _Many[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponse(Message):
    class DescribeTopicPartitionsResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        name: str | None
        topic_id: UUID
        is_internal: bool
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition]
        topic_authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = "",
            topic_id: UUID = ...,
            is_internal: bool = False,
            partitions: _Many[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ...,
            topic_authorized_operations: int = -2147483648,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeTopicPartitionsResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: tuple[int, ...]
        isr_nodes: tuple[int, ...]
        eligible_leader_replicas: tuple[int, ...] | None
        last_known_elr: tuple[int, ...] | None
        offline_replicas: tuple[int, ...]
        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: Sequence[int] = ...,
            isr_nodes: Sequence[int] = ...,
            eligible_leader_replicas: Sequence[int] | None = None,
            last_known_elr: Sequence[int] | None = None,
            offline_replicas: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Cursor(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ...,
        next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeTransactionsResponse(Message):
    class TransactionState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        transactional_id: str
        transaction_state: str
        transaction_timeout_ms: int
        transaction_start_time_ms: int
        producer_id: int
        producer_epoch: int
        topics: list[DescribeTransactionsResponse.TopicData]
        def __init__(
            self,
            *,
            error_code: int = 0,
            transactional_id: str = "",
            transaction_state: str = "",
            transaction_timeout_ms: int = 0,
            transaction_start_time_ms: int = 0,
            producer_id: int = 0,
            producer_epoch: int = 0,
            topics: _Many[DescribeTransactionsResponse.TopicData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    transaction_states: list[DescribeTransactionsResponse.TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: _Many[DescribeTransactionsResponse.TransactionState] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResponse(Message):
    class DescribeUserScramCredentialsResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        user: str
        error_code: int
        error_message: str | None
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo]
        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            credential_infos: _Many[DescribeUserScramCredentialsResponse.CredentialInfo] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class CredentialInfo(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        mechanism: int
        iterations: int
        def __init__(
            self,
            *,
            mechanism: int = 0,
            iterations: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: _Many[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ElectLeadersResponse(Message):
    class ReplicaElectionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partition_result: list[ElectLeadersResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic: str = "",
            partition_result: _Many[ElectLeadersResponse.PartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_id: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_id: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: _Many[ElectLeadersResponse.ReplicaElectionResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EndQuorumEpochResponse(Message):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[EndQuorumEpochResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[EndQuorumEpochResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    topics: list[EndQuorumEpochResponse.TopicData]
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: _Many[EndQuorumEpochResponse.TopicData] = ...,
        node_endpoints: _Many[EndQuorumEpochResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EndTransactionRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    def __init__(
        self,
        *,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EndTxnMarker(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    coordinator_epoch: int
    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EndTxnResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EnvelopeResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    response_data: bytes | None
    error_code: int
    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ExpireDelegationTokenResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FeatureLevelRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    name: str
    feature_level: int
    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FenceBrokerRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    id: int
    epoch: int
    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FetchResponse(Message):
    class FetchableTopicResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        topic_id: UUID
        partitions: list[FetchResponse.PartitionData]
        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: UUID = ...,
            partitions: _Many[FetchResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        high_watermark: int
        last_stable_offset: int
        log_start_offset: int
        diverging_epoch: FetchResponse.EpochEndOffset
        current_leader: FetchResponse.LeaderIdAndEpoch
        snapshot_id: FetchResponse.SnapshotId
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None
        preferred_read_replica: int
        records: bytes | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            high_watermark: int = 0,
            last_stable_offset: int = -1,
            log_start_offset: int = -1,
            diverging_epoch: FetchResponse.EpochEndOffset = ...,
            current_leader: FetchResponse.LeaderIdAndEpoch = ...,
            snapshot_id: FetchResponse.SnapshotId = ...,
            aborted_transactions: _Many[FetchResponse.AbortedTransaction] | None = ...,
            preferred_read_replica: int = -1,
            records: bytes | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class EpochEndOffset(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        epoch: int
        end_offset: int
        def __init__(
            self,
            *,
            epoch: int = -1,
            end_offset: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class SnapshotId(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = -1,
            epoch: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AbortedTransaction(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        producer_id: int
        first_offset: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            first_offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: list[FetchResponse.FetchableTopicResponse]
    node_endpoints: list[FetchResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: _Many[FetchResponse.FetchableTopicResponse] = ...,
        node_endpoints: _Many[FetchResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FetchSnapshotResponse(Message):
    class TopicSnapshot(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[FetchSnapshotResponse.PartitionSnapshot]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[FetchSnapshotResponse.PartitionSnapshot] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionSnapshot(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        index: int
        error_code: int
        snapshot_id: FetchSnapshotResponse.SnapshotId
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch
        size: int
        position: int
        unaligned_records: bytes | None
        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            snapshot_id: FetchSnapshotResponse.SnapshotId = ...,
            current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ...,
            size: int = 0,
            position: int = 0,
            unaligned_records: bytes | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class SnapshotId(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    topics: list[FetchSnapshotResponse.TopicSnapshot]
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: _Many[FetchSnapshotResponse.TopicSnapshot] = ...,
        node_endpoints: _Many[FetchSnapshotResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FindCoordinatorResponse(Message):
    class Coordinator(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        node_id: int
        host: str
        port: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            key: str = "",
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: list[FindCoordinatorResponse.Coordinator]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: _Many[FindCoordinatorResponse.Coordinator] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class GetTelemetrySubscriptionsResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    client_instance_id: UUID
    subscription_id: int
    accepted_compression_types: tuple[int, ...]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: UUID = ...,
        subscription_id: int = 0,
        accepted_compression_types: Sequence[int] = ...,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: _Many[str] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class GroupMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group: str
    def __init__(
        self,
        *,
        group: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class GroupMetadataValue(Message):
    class MemberMetadata(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        rebalance_timeout: int
        session_timeout: int
        subscription: bytes
        assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            rebalance_timeout: int = -1,
            session_timeout: int = 0,
            subscription: bytes = b"",
            assignment: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[GroupMetadataValue.MemberMetadata]
    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: _Many[GroupMetadataValue.MemberMetadata] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class HeartbeatResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class IncrementalAlterConfigsResponse(Message):
    class AlterConfigsResourceResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: _Many[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class InitProducerIdResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int
    ongoing_txn_producer_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class InitializeShareGroupStateResponse(Message):
    class InitializeStateResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[InitializeShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[InitializeShareGroupStateResponse.PartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    results: list[InitializeShareGroupStateResponse.InitializeStateResult]
    def __init__(
        self,
        *,
        results: _Many[InitializeShareGroupStateResponse.InitializeStateResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class JoinGroupResponse(Message):
    class JoinGroupResponseMember(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        group_instance_id: str | None
        metadata: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            metadata: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinGroupResponse.JoinGroupResponseMember]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: _Many[JoinGroupResponse.JoinGroupResponseMember] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class KRaftVersionRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    version: int
    kraft_version: int
    def __init__(
        self,
        *,
        version: int = 0,
        kraft_version: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class LeaderAndIsrResponse(Message):
    class LeaderAndIsrPartitionError(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderAndIsrTopicError(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partition_errors: _Many[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError]
    topics: list[LeaderAndIsrResponse.LeaderAndIsrTopicError]
    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: _Many[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...,
        topics: _Many[LeaderAndIsrResponse.LeaderAndIsrTopicError] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class LeaderChangeMessage(Message):
    class Voter(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        voter_id: int
        voter_directory_id: UUID
        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: UUID = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    version: int
    leader_id: int
    voters: list[LeaderChangeMessage.Voter]
    granting_voters: list[LeaderChangeMessage.Voter]
    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: _Many[LeaderChangeMessage.Voter] = ...,
        granting_voters: _Many[LeaderChangeMessage.Voter] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class LeaveGroupResponse(Message):
    class MemberResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        group_instance_id: str | None
        error_code: int
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = "",
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    members: list[LeaveGroupResponse.MemberResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: _Many[LeaveGroupResponse.MemberResponse] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class LegacyOffsetCommitKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class LegacyOffsetCommitValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    offset: int
    metadata: str
    commit_timestamp: int
    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListConfigResourcesResponse(Message):
    class ConfigResource(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        resource_name: str
        resource_type: int
        def __init__(
            self,
            *,
            resource_name: str = "",
            resource_type: int = 16,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    config_resources: list[ListConfigResourcesResponse.ConfigResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: _Many[ListConfigResourcesResponse.ConfigResource] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListGroupsResponse(Message):
    class ListedGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        group_id: str
        protocol_type: str
        group_state: str
        group_type: str
        def __init__(
            self,
            *,
            group_id: str = "",
            protocol_type: str = "",
            group_state: str = "",
            group_type: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    groups: list[ListGroupsResponse.ListedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: _Many[ListGroupsResponse.ListedGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListOffsetsResponse(Message):
    class ListOffsetsTopicResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[ListOffsetsResponse.ListOffsetsPartitionResponse] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ListOffsetsPartitionResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        old_style_offsets: tuple[int, ...]
        timestamp: int
        offset: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            old_style_offsets: Sequence[int] = ...,
            timestamp: int = -1,
            offset: int = -1,
            leader_epoch: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[ListOffsetsResponse.ListOffsetsTopicResponse] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListPartitionReassignmentsResponse(Message):
    class OngoingTopicReassignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OngoingPartitionReassignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        replicas: tuple[int, ...]
        adding_replicas: tuple[int, ...]
        removing_replicas: tuple[int, ...]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: Sequence[int] = ...,
            adding_replicas: Sequence[int] = ...,
            removing_replicas: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: _Many[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListTransactionsResponse(Message):
    class TransactionState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        transactional_id: str
        producer_id: int
        transaction_state: str
        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            transaction_state: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[ListTransactionsResponse.TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: _Many[str] = ...,
        transaction_states: _Many[ListTransactionsResponse.TransactionState] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class MetadataResponse(Message):
    class MetadataResponseBroker(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class MetadataResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        name: str | None
        topic_id: UUID
        is_internal: bool
        partitions: list[MetadataResponse.MetadataResponsePartition]
        topic_authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = "",
            topic_id: UUID = ...,
            is_internal: bool = False,
            partitions: _Many[MetadataResponse.MetadataResponsePartition] = ...,
            topic_authorized_operations: int = -2147483648,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class MetadataResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: tuple[int, ...]
        isr_nodes: tuple[int, ...]
        offline_replicas: tuple[int, ...]
        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: Sequence[int] = ...,
            isr_nodes: Sequence[int] = ...,
            offline_replicas: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    brokers: list[MetadataResponse.MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: list[MetadataResponse.MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: _Many[MetadataResponse.MetadataResponseBroker] = ...,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: _Many[MetadataResponse.MetadataResponseTopic] = ...,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class NoOpRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    def __init__(
        self,
        *,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetCommitKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetCommitResponse(Message):
    class OffsetCommitResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[OffsetCommitResponse.OffsetCommitResponsePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetCommitResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[OffsetCommitResponse.OffsetCommitResponseTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetCommitValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: UUID
    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: UUID = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetDeleteResponse(Message):
    class OffsetDeleteResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetDeleteResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic]
    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: _Many[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetFetchResponse(Message):
    class OffsetFetchResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[OffsetFetchResponse.OffsetFetchResponsePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetFetchResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetFetchResponseGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        group_id: str
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics]
        error_code: int
        def __init__(
            self,
            *,
            group_id: str = "",
            topics: _Many[OffsetFetchResponse.OffsetFetchResponseTopics] = ...,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetFetchResponseTopics(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[OffsetFetchResponse.OffsetFetchResponsePartitions] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetFetchResponsePartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[OffsetFetchResponse.OffsetFetchResponseTopic] = ...,
        error_code: int = 0,
        groups: _Many[OffsetFetchResponse.OffsetFetchResponseGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetForLeaderEpochResponse(Message):
    class OffsetForLeaderTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: _Many[OffsetForLeaderEpochResponse.EpochEndOffset] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class EpochEndOffset(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        partition: int
        leader_epoch: int
        end_offset: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            partition: int = 0,
            leader_epoch: int = -1,
            end_offset: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class PartitionChangeRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    partition_id: int
    topic_id: UUID
    isr: tuple[int, ...] | None
    leader: int
    replicas: tuple[int, ...] | None
    removing_replicas: tuple[int, ...] | None
    adding_replicas: tuple[int, ...] | None
    leader_recovery_state: int
    directories: list[UUID] | None
    eligible_leader_replicas: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: UUID = ...,
        isr: Sequence[int] | None = None,
        leader: int = -2,
        replicas: Sequence[int] | None = None,
        removing_replicas: Sequence[int] | None = None,
        adding_replicas: Sequence[int] | None = None,
        leader_recovery_state: int = -1,
        directories: _Many[UUID] | None = None,
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class PartitionRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    partition_id: int
    topic_id: UUID
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: list[UUID]
    eligible_leader_replicas: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: UUID = ...,
        replicas: Sequence[int] = ...,
        isr: Sequence[int] = ...,
        removing_replicas: Sequence[int] = ...,
        adding_replicas: Sequence[int] = ...,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: _Many[UUID] = ...,
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ProduceResponse(Message):
    class TopicProduceResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partition_responses: list[ProduceResponse.PartitionProduceResponse]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partition_responses: _Many[ProduceResponse.PartitionProduceResponse] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionProduceResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        index: int
        error_code: int
        base_offset: int
        log_append_time_ms: int
        log_start_offset: int
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage]
        error_message: str | None
        current_leader: ProduceResponse.LeaderIdAndEpoch
        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            base_offset: int = 0,
            log_append_time_ms: int = -1,
            log_start_offset: int = -1,
            record_errors: _Many[ProduceResponse.BatchIndexAndErrorMessage] = ...,
            error_message: str | None = None,
            current_leader: ProduceResponse.LeaderIdAndEpoch = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class BatchIndexAndErrorMessage(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        batch_index: int
        batch_index_error_message: str | None
        def __init__(
            self,
            *,
            batch_index: int = 0,
            batch_index_error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    responses: list[ProduceResponse.TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[ProduceResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        responses: _Many[ProduceResponse.TopicProduceResponse] = ...,
        throttle_time_ms: int = 0,
        node_endpoints: _Many[ProduceResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ProducerIdsRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    next_producer_id: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ProducerSnapshot(Message):
    class ProducerEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        producer_id: int
        epoch: int
        last_sequence: int
        last_offset: int
        offset_delta: int
        timestamp: int
        coordinator_epoch: int
        current_txn_first_offset: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            epoch: int = 0,
            last_sequence: int = 0,
            last_offset: int = 0,
            offset_delta: int = 0,
            timestamp: int = 0,
            coordinator_epoch: int = 0,
            current_txn_first_offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    crc: int
    producer_entries: list[ProducerSnapshot.ProducerEntry]
    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: _Many[ProducerSnapshot.ProducerEntry] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class PushTelemetryResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class QuorumStateData(Message):
    class Voter(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        voter_id: int
        def __init__(
            self,
            *,
            voter_id: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: UUID
    applied_offset: int
    current_voters: list[QuorumStateData.Voter] | None
    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: UUID = ...,
        applied_offset: int = 0,
        current_voters: _Many[QuorumStateData.Voter] | None = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class QuotaRecord(Message):
    class EntityData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    entity: list[QuotaRecord.EntityData]
    key: str
    value: float
    remove: bool
    def __init__(
        self,
        *,
        entity: _Many[QuotaRecord.EntityData] = ...,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ReadShareGroupStateResponse(Message):
    class ReadStateResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ReadShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ReadShareGroupStateResponse.PartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        start_offset: int
        state_batches: list[ReadShareGroupStateResponse.StateBatch]
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            start_offset: int = 0,
            state_batches: _Many[ReadShareGroupStateResponse.StateBatch] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class StateBatch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    results: list[ReadShareGroupStateResponse.ReadStateResult]
    def __init__(
        self,
        *,
        results: _Many[ReadShareGroupStateResponse.ReadStateResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryResponse(Message):
    class ReadStateSummaryResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ReadShareGroupStateSummaryResponse.PartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult]
    def __init__(
        self,
        *,
        results: _Many[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RegisterBrokerRecord(Message):
    class BrokerEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class BrokerFeature(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    is_migrating_zk_broker: bool
    incarnation_id: UUID
    broker_epoch: int
    end_points: list[RegisterBrokerRecord.BrokerEndpoint]
    features: list[RegisterBrokerRecord.BrokerFeature]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: list[UUID]
    cordoned_log_dirs: list[UUID] | None
    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: UUID = ...,
        broker_epoch: int = 0,
        end_points: _Many[RegisterBrokerRecord.BrokerEndpoint] = ...,
        features: _Many[RegisterBrokerRecord.BrokerFeature] = ...,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: _Many[UUID] = ...,
        cordoned_log_dirs: _Many[UUID] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RegisterControllerRecord(Message):
    class ControllerEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ControllerFeature(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    end_points: list[RegisterControllerRecord.ControllerEndpoint]
    features: list[RegisterControllerRecord.ControllerFeature]
    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: UUID = ...,
        zk_migration_ready: bool = False,
        end_points: _Many[RegisterControllerRecord.ControllerEndpoint] = ...,
        features: _Many[RegisterControllerRecord.ControllerFeature] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoteLogSegmentMetadataRecord(Message):
    class RemoteLogSegmentIdEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry
        id: UUID
        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = ...,
            id: UUID = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicIdPartitionEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        id: UUID
        partition: int
        def __init__(
            self,
            *,
            name: str = "",
            id: UUID = ...,
            partition: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class SegmentLeaderEpochEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_epoch: int
        offset: int
        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = ...,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: _Many[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = ...,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoteLogSegmentMetadataSnapshotRecord(Message):
    class SegmentLeaderEpochEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_epoch: int
        offset: int
        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    segment_id: UUID
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    def __init__(
        self,
        *,
        segment_id: UUID = ...,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: _Many[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = ...,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoteLogSegmentMetadataUpdateRecord(Message):
    class RemoteLogSegmentIdEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry
        id: UUID
        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = ...,
            id: UUID = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicIdPartitionEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        id: UUID
        partition: int
        def __init__(
            self,
            *,
            name: str = "",
            id: UUID = ...,
            partition: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = ...,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemotePartitionDeleteMetadataRecord(Message):
    class TopicIdPartitionEntry(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        id: UUID
        partition: int
        def __init__(
            self,
            *,
            name: str = "",
            id: UUID = ...,
            partition: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry
    broker_id: int
    event_timestamp_ms: int
    remote_partition_delete_state: int
    def __init__(
        self,
        *,
        topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = ...,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoveAccessControlEntryRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    id: UUID
    def __init__(
        self,
        *,
        id: UUID = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoveDelegationTokenRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    token_id: str
    def __init__(
        self,
        *,
        token_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoveFeatureLevelRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    name: str
    def __init__(
        self,
        *,
        name: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoveRaftVoterResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoveTopicRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    topic_id: UUID
    def __init__(
        self,
        *,
        topic_id: UUID = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoveUserScramCredentialRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    name: str
    mechanism: int
    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RenewDelegationTokenResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RequestHeader(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None
    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ResponseHeader(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    correlation_id: int
    def __init__(
        self,
        *,
        correlation_id: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SaslAuthenticateResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SaslHandshakeResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    mechanisms: list[str]
    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: _Many[str] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareAcknowledgeResponse(Message):
    class ShareAcknowledgeTopicResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ShareAcknowledgeResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ShareAcknowledgeResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        error_message: str | None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse]
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: _Many[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ...,
        node_endpoints: _Many[ShareAcknowledgeResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareFetchResponse(Message):
    class ShareFetchableTopicResponse(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ShareFetchResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ShareFetchResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        error_message: str | None
        acknowledge_error_code: int
        acknowledge_error_message: str | None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch
        records: bytes | None
        acquired_records: list[ShareFetchResponse.AcquiredRecords]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            acknowledge_error_code: int = 0,
            acknowledge_error_message: str | None = None,
            current_leader: ShareFetchResponse.LeaderIdAndEpoch = ...,
            records: bytes | None = None,
            acquired_records: _Many[ShareFetchResponse.AcquiredRecords] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AcquiredRecords(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        first_offset: int
        last_offset: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_count: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse]
    node_endpoints: list[ShareFetchResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: _Many[ShareFetchResponse.ShareFetchableTopicResponse] = ...,
        node_endpoints: _Many[ShareFetchResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentValue(Message):
    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: _Many[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupDescribeResponse(Message):
    class DescribedGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ShareGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            assignor_name: str = "",
            members: _Many[ShareGroupDescribeResponse.Member] = ...,
            authorized_operations: int = -2147483648,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Member(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        assignment: ShareGroupDescribeResponse.Assignment
        def __init__(
            self,
            *,
            member_id: str = "",
            rack_id: str | None = None,
            member_epoch: int = 0,
            client_id: str = "",
            client_host: str = "",
            subscribed_topic_names: _Many[str] = ...,
            assignment: ShareGroupDescribeResponse.Assignment = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Assignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: _Many[ShareGroupDescribeResponse.TopicPartitions] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        topic_name: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    groups: list[ShareGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: _Many[ShareGroupDescribeResponse.DescribedGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupHeartbeatResponse(Message):
    class Assignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: _Many[ShareGroupHeartbeatResponse.TopicPartitions] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatResponse.Assignment | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ShareGroupHeartbeatResponse.Assignment | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupMemberMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupMemberMetadataValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: _Many[str] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupMetadataValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupPartitionMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupPartitionMetadataValue(Message):
    class TopicMetadata(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        topic_name: str
        num_partitions: int
        partition_metadata: list[ShareGroupPartitionMetadataValue.PartitionMetadata]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = "",
            num_partitions: int = 0,
            partition_metadata: _Many[ShareGroupPartitionMetadataValue.PartitionMetadata] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionMetadata(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        racks: list[str]
        def __init__(
            self,
            *,
            partition: int = 0,
            racks: _Many[str] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[ShareGroupPartitionMetadataValue.TopicMetadata]
    def __init__(
        self,
        *,
        topics: _Many[ShareGroupPartitionMetadataValue.TopicMetadata] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupStatePartitionMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupStatePartitionMetadataValue(Message):
    class TopicPartitionsInfo(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        topic_name: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicInfo(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        topic_name: str
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            topic_name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo]
    def __init__(
        self,
        *,
        initializing_topics: _Many[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...,
        initialized_topics: _Many[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...,
        deleting_topics: _Many[ShareGroupStatePartitionMetadataValue.TopicInfo] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMemberKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMemberValue(Message):
    class TopicPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition]
    def __init__(
        self,
        *,
        topic_partitions: _Many[ShareGroupTargetAssignmentMemberValue.TopicPartition] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareSnapshotKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topic_id: UUID
    partition: int
    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: UUID = ...,
        partition: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareSnapshotValue(Message):
    class StateBatch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: list[ShareSnapshotValue.StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: _Many[ShareSnapshotValue.StateBatch] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareUpdateKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topic_id: UUID
    partition: int
    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: UUID = ...,
        partition: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareUpdateValue(Message):
    class StateBatch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[ShareUpdateValue.StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: _Many[ShareUpdateValue.StateBatch] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SnapshotFooterRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    version: int
    def __init__(
        self,
        *,
        version: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SnapshotHeaderRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    version: int
    last_contained_log_timestamp: int
    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StopReplicaResponse(Message):
    class StopReplicaPartitionError(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    partition_errors: list[StopReplicaResponse.StopReplicaPartitionError]
    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: _Many[StopReplicaResponse.StopReplicaPartitionError] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentValue(Message):
    class TaskIds(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        partitions: tuple[int, ...]
        assignment_epochs: tuple[int, ...] | None
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: Sequence[int] = ...,
            assignment_epochs: Sequence[int] | None = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: _Many[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        standby_tasks: _Many[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        warmup_tasks: _Many[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        active_tasks_pending_revocation: _Many[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        standby_tasks_pending_revocation: _Many[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        warmup_tasks_pending_revocation: _Many[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupDescribeResponse(Message):
    class DescribedGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        topology: StreamsGroupDescribeResponse.Topology | None
        members: list[StreamsGroupDescribeResponse.Member]
        authorized_operations: int
        topology_description: StreamsGroupDescribeResponse.TopologyDescription | None
        topology_description_status: int
        assignor_name: str | None
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            topology: StreamsGroupDescribeResponse.Topology | None = None,
            members: _Many[StreamsGroupDescribeResponse.Member] = ...,
            authorized_operations: int = -2147483648,
            topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = None,
            topology_description_status: int = 0,
            assignor_name: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Topology(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        epoch: int
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None
        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: _Many[StreamsGroupDescribeResponse.Subtopology] | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Subtopology(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        source_topics: list[str]
        repartition_sink_topics: list[str]
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: _Many[str] = ...,
            repartition_sink_topics: _Many[str] = ...,
            state_changelog_topics: _Many[StreamsGroupDescribeResponse.TopicInfo] = ...,
            repartition_source_topics: _Many[StreamsGroupDescribeResponse.TopicInfo] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicInfo(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: _Many[StreamsGroupDescribeResponse.KeyValue] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class KeyValue(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Member(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        member_epoch: int
        instance_id: str | None
        rack_id: str | None
        client_id: str
        client_host: str
        topology_epoch: int
        process_id: str
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue]
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        assignment: StreamsGroupDescribeResponse.Assignment
        target_assignment: StreamsGroupDescribeResponse.Assignment
        is_classic: bool
        def __init__(
            self,
            *,
            member_id: str = "",
            member_epoch: int = 0,
            instance_id: str | None = None,
            rack_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            topology_epoch: int = 0,
            process_id: str = "",
            user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None,
            client_tags: _Many[StreamsGroupDescribeResponse.KeyValue] = ...,
            task_offsets: _Many[StreamsGroupDescribeResponse.TaskOffset] = ...,
            task_end_offsets: _Many[StreamsGroupDescribeResponse.TaskOffset] = ...,
            assignment: StreamsGroupDescribeResponse.Assignment = ...,
            target_assignment: StreamsGroupDescribeResponse.Assignment = ...,
            is_classic: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Endpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TaskOffset(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        partition: int
        offset: int
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partition: int = 0,
            offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Assignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        def __init__(
            self,
            *,
            active_tasks: _Many[StreamsGroupDescribeResponse.TaskIds] = ...,
            standby_tasks: _Many[StreamsGroupDescribeResponse.TaskIds] = ...,
            warmup_tasks: _Many[StreamsGroupDescribeResponse.TaskIds] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TaskIds(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopologyDescription(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore]
        def __init__(
            self,
            *,
            subtopologies: _Many[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology] = ...,
            global_stores: _Many[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopologyDescriptionSubtopology(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            nodes: _Many[StreamsGroupDescribeResponse.TopologyDescriptionNode] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopologyDescriptionNode(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        def __init__(
            self,
            *,
            name: str = "",
            node_type: int = 0,
            source_topics: _Many[str] = ...,
            sink_topic: str | None = None,
            stores: _Many[str] = ...,
            successors: _Many[str] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopologyDescriptionGlobalStore(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        source: StreamsGroupDescribeResponse.TopologyDescriptionNode
        processor: StreamsGroupDescribeResponse.TopologyDescriptionNode
        def __init__(
            self,
            *,
            source: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...,
            processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    groups: list[StreamsGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: _Many[StreamsGroupDescribeResponse.DescribedGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupHeartbeatResponse(Message):
    class Status(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        status_code: int
        status_detail: str
        def __init__(
            self,
            *,
            status_code: int = 0,
            status_detail: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TaskIds(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class EndpointToPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        def __init__(
            self,
            *,
            user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ...,
            active_partitions: _Many[StreamsGroupHeartbeatResponse.TopicPartition] = ...,
            standby_partitions: _Many[StreamsGroupHeartbeatResponse.TopicPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Endpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag_legacy: int
    task_offset_interval_ms: int
    acceptable_recovery_lag: int
    status: list[StreamsGroupHeartbeatResponse.Status] | None
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    topology_description_required: bool
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag_legacy: int = 0,
        task_offset_interval_ms: int = 0,
        acceptable_recovery_lag: int = -1,
        status: _Many[StreamsGroupHeartbeatResponse.Status] | None = ...,
        active_tasks: _Many[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        standby_tasks: _Many[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        warmup_tasks: _Many[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        topology_description_required: bool = False,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: _Many[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupMemberMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupMemberMetadataValue(Message):
    class Endpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class KeyValue(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None
    client_tags: list[StreamsGroupMemberMetadataValue.KeyValue]
    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = None,
        client_tags: _Many[StreamsGroupMemberMetadataValue.KeyValue] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupMetadataValue(Message):
    class LastAssignmentConfig(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None
    stored_description_topology_epoch: int
    failed_description_topology_epoch: int
    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: _Many[StreamsGroupMetadataValue.LastAssignmentConfig] | None = ...,
        stored_description_topology_epoch: int = -1,
        failed_description_topology_epoch: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberValue(Message):
    class TaskIds(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    def __init__(
        self,
        *,
        active_tasks: _Many[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        standby_tasks: _Many[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        warmup_tasks: _Many[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataValue(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTopologyKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTopologyValue(Message):
    class Subtopology(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo]
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: _Many[str] = ...,
            source_topic_regex: _Many[str] = ...,
            state_changelog_topics: _Many[StreamsGroupTopologyValue.TopicInfo] = ...,
            repartition_sink_topics: _Many[str] = ...,
            repartition_source_topics: _Many[StreamsGroupTopologyValue.TopicInfo] = ...,
            copartition_groups: _Many[StreamsGroupTopologyValue.CopartitionGroup] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicInfo(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: _Many[StreamsGroupTopologyValue.TopicConfig] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicConfig(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class CopartitionGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        source_topics: tuple[int, ...]
        source_topic_regex: tuple[int, ...]
        repartition_source_topics: tuple[int, ...]
        def __init__(
            self,
            *,
            source_topics: Sequence[int] = ...,
            source_topic_regex: Sequence[int] = ...,
            repartition_source_topics: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    epoch: int
    subtopologies: list[StreamsGroupTopologyValue.Subtopology]
    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: _Many[StreamsGroupTopologyValue.Subtopology] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SubscriptionInfoData(Message):
    class TaskId(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_group_id: int
        partition: int
        def __init__(
            self,
            *,
            topic_group_id: int = 0,
            partition: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TaskOffsetSum(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_group_id: int
        partition: int
        offset_sum: int
        named_topology: str | None
        partition_to_offset_sum: list[SubscriptionInfoData.PartitionToOffsetSum]
        def __init__(
            self,
            *,
            topic_group_id: int = 0,
            partition: int = 0,
            offset_sum: int = 0,
            named_topology: str | None = "",
            partition_to_offset_sum: _Many[SubscriptionInfoData.PartitionToOffsetSum] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionToOffsetSum(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        offset_sum: int
        def __init__(
            self,
            *,
            partition: int = 0,
            offset_sum: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ClientTag(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: bytes
        value: bytes
        def __init__(
            self,
            *,
            key: bytes = b"",
            value: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    version: int
    latest_supported_version: int
    process_id: UUID
    prev_tasks: list[SubscriptionInfoData.TaskId]
    standby_tasks: list[SubscriptionInfoData.TaskId]
    user_end_point: bytes
    task_offset_sums: list[SubscriptionInfoData.TaskOffsetSum]
    unique_field: int
    error_code: int
    client_tags: list[SubscriptionInfoData.ClientTag]
    def __init__(
        self,
        *,
        version: int = 0,
        latest_supported_version: int = -1,
        process_id: UUID = ...,
        prev_tasks: _Many[SubscriptionInfoData.TaskId] = ...,
        standby_tasks: _Many[SubscriptionInfoData.TaskId] = ...,
        user_end_point: bytes = b"",
        task_offset_sums: _Many[SubscriptionInfoData.TaskOffsetSum] = ...,
        unique_field: int = 0,
        error_code: int = 0,
        client_tags: _Many[SubscriptionInfoData.ClientTag] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SyncGroupResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class TopicRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    name: str
    topic_id: UUID
    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class TransactionLogKey(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    transactional_id: str
    def __init__(
        self,
        *,
        transactional_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class TransactionLogValue(Message):
    class PartitionsSchema(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partition_ids: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            partition_ids: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: _Many[TransactionLogValue.PartitionsSchema] | None = ...,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class TxnOffsetCommitResponse(Message):
    class TxnOffsetCommitResponseTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TxnOffsetCommitResponsePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: _Many[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UnfenceBrokerRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    id: int
    epoch: int
    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UnregisterBrokerRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UnregisterBrokerResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UnregisterControllerRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    controller_id: int
    def __init__(
        self,
        *,
        controller_id: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UnregisterControllerResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UpdateFeaturesResponse(Message):
    class UpdatableFeatureResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        feature: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            feature: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: _Many[UpdateFeaturesResponse.UpdatableFeatureResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UpdateMetadataResponse(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UpdateRaftVoterResponse(Message):
    class CurrentLeader(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        leader_id: int
        leader_epoch: int
        host: str
        port: int
        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    throttle_time_ms: int
    error_code: int
    current_leader: UpdateRaftVoterResponse.CurrentLeader
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: UpdateRaftVoterResponse.CurrentLeader = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UserScramCredentialRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class VoteResponse(Message):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[VoteResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[VoteResponse.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        vote_granted: bool
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            vote_granted: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    error_code: int
    topics: list[VoteResponse.TopicData]
    node_endpoints: list[VoteResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: _Many[VoteResponse.TopicData] = ...,
        node_endpoints: _Many[VoteResponse.NodeEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class VotersRecord(Message):
    class Voter(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        voter_id: int
        voter_directory_id: UUID
        endpoints: list[VotersRecord.Endpoint]
        kraft_version_feature: VotersRecord.KRaftVersionFeature
        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: UUID = ...,
            endpoints: _Many[VotersRecord.Endpoint] = ...,
            kraft_version_feature: VotersRecord.KRaftVersionFeature = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Endpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class KRaftVersionFeature(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    version: int
    voters: list[VotersRecord.Voter]
    def __init__(
        self,
        *,
        version: int = 0,
        voters: _Many[VotersRecord.Voter] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class WriteShareGroupStateResponse(Message):
    class WriteStateResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[WriteShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[WriteShareGroupStateResponse.PartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    results: list[WriteShareGroupStateResponse.WriteStateResult]
    def __init__(
        self,
        *,
        results: _Many[WriteShareGroupStateResponse.WriteStateResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class WriteTxnMarkersResponse(Message):
    class WritableTxnMarkerResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        producer_id: int
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult]
        def __init__(
            self,
            *,
            producer_id: int = 0,
            topics: _Many[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class WritableTxnMarkerTopicResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class WritableTxnMarkerPartitionResult(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult]
    def __init__(
        self,
        *,
        markers: _Many[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ZkMigrationStateRecord(Message):
    __match_args__: ClassVar[tuple[str, ...]]
    zk_migration_state: int
    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AddOffsetsToTxnRequest(RequestMessage[AddOffsetsToTxnResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AddPartitionsToTxnRequest(RequestMessage[AddPartitionsToTxnResponse]):
    class AddPartitionsToTxnTransaction(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        transactional_id: str
        producer_id: int
        producer_epoch: int
        verify_only: bool
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            producer_epoch: int = 0,
            verify_only: bool = False,
            topics: _Many[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AddPartitionsToTxnTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
    def __init__(
        self,
        *,
        transactions: _Many[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: _Many[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AddRaftVoterRequest(RequestMessage[AddRaftVoterResponse]):
    class Listener(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: UUID
    listeners: list[AddRaftVoterRequest.Listener]
    ack_when_committed: bool
    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: UUID = ...,
        listeners: _Many[AddRaftVoterRequest.Listener] = ...,
        ack_when_committed: bool = True,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AllocateProducerIdsRequest(RequestMessage[AllocateProducerIdsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterClientQuotasRequest(RequestMessage[AlterClientQuotasResponse]):
    class EntryData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity: list[AlterClientQuotasRequest.EntityData]
        ops: list[AlterClientQuotasRequest.OpData]
        def __init__(
            self,
            *,
            entity: _Many[AlterClientQuotasRequest.EntityData] = ...,
            ops: _Many[AlterClientQuotasRequest.OpData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class EntityData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OpData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        value: float
        remove: bool
        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0.0,
            remove: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    entries: list[AlterClientQuotasRequest.EntryData]
    validate_only: bool
    def __init__(
        self,
        *,
        entries: _Many[AlterClientQuotasRequest.EntryData] = ...,
        validate_only: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterConfigsRequest(RequestMessage[AlterConfigsResponse]):
    class AlterConfigsResource(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        resource_type: int
        resource_name: str
        configs: list[AlterConfigsRequest.AlterableConfig]
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configs: _Many[AlterConfigsRequest.AlterableConfig] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AlterableConfig(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        value: str | None
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    resources: list[AlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(
        self,
        *,
        resources: _Many[AlterConfigsRequest.AlterConfigsResource] = ...,
        validate_only: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsRequest(RequestMessage[AlterPartitionReassignmentsResponse]):
    class ReassignableTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[AlterPartitionReassignmentsRequest.ReassignablePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ReassignablePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        replicas: tuple[int, ...] | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: Sequence[int] | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic]
    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: _Many[AlterPartitionReassignmentsRequest.ReassignableTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterPartitionRequest(RequestMessage[AlterPartitionResponse]):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        topic_id: UUID
        partitions: list[AlterPartitionRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[AlterPartitionRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        leader_epoch: int
        new_isr: tuple[int, ...]
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState]
        leader_recovery_state: int
        partition_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_epoch: int = 0,
            new_isr: Sequence[int] = ...,
            new_isr_with_epochs: _Many[AlterPartitionRequest.BrokerState] = ...,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class BrokerState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        broker_id: int
        broker_epoch: int
        def __init__(
            self,
            *,
            broker_id: int = 0,
            broker_epoch: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    topics: list[AlterPartitionRequest.TopicData]
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: _Many[AlterPartitionRequest.TopicData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterReplicaLogDirsRequest(RequestMessage[AlterReplicaLogDirsResponse]):
    class AlterReplicaLogDir(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        path: str
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic]
        def __init__(
            self,
            *,
            path: str = "",
            topics: _Many[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AlterReplicaLogDirTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir]
    def __init__(
        self,
        *,
        dirs: _Many[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsRequest(RequestMessage[AlterShareGroupOffsetsResponse]):
    class AlterShareGroupOffsetsRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AlterShareGroupOffsetsRequestPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        start_offset: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AlterUserScramCredentialsRequest(RequestMessage[AlterUserScramCredentialsResponse]):
    class ScramCredentialDeletion(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        mechanism: int
        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ScramCredentialUpsertion(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        mechanism: int
        iterations: int
        salt: bytes
        salted_password: bytes
        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
            iterations: int = 0,
            salt: bytes = b"",
            salted_password: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion]
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion]
    def __init__(
        self,
        *,
        deletions: _Many[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ...,
        upsertions: _Many[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ApiVersionsRequest(RequestMessage[ApiVersionsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    client_software_name: str
    client_software_version: str
    cluster_id: str | None
    node_id: int
    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class AssignReplicasToDirsRequest(RequestMessage[AssignReplicasToDirsResponse]):
    class DirectoryData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        id: UUID
        topics: list[AssignReplicasToDirsRequest.TopicData]
        def __init__(
            self,
            *,
            id: UUID = ...,
            topics: _Many[AssignReplicasToDirsRequest.TopicData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[AssignReplicasToDirsRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[AssignReplicasToDirsRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    directories: list[AssignReplicasToDirsRequest.DirectoryData]
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: _Many[AssignReplicasToDirsRequest.DirectoryData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BeginQuorumEpochRequest(RequestMessage[BeginQuorumEpochResponse]):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[BeginQuorumEpochRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[BeginQuorumEpochRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        voter_directory_id: UUID
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            voter_directory_id: UUID = ...,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    voter_id: int
    topics: list[BeginQuorumEpochRequest.TopicData]
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: _Many[BeginQuorumEpochRequest.TopicData] = ...,
        leader_endpoints: _Many[BeginQuorumEpochRequest.LeaderEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BrokerHeartbeatRequest(RequestMessage[BrokerHeartbeatResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: list[UUID]
    cordoned_log_dirs: list[UUID] | None
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: _Many[UUID] = ...,
        cordoned_log_dirs: _Many[UUID] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class BrokerRegistrationRequest(RequestMessage[BrokerRegistrationResponse]):
    class Listener(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Feature(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: list[BrokerRegistrationRequest.Listener]
    features: list[BrokerRegistrationRequest.Feature]
    rack: str | None
    is_migrating_zk_broker: bool
    log_dirs: list[UUID]
    previous_broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: UUID = ...,
        listeners: _Many[BrokerRegistrationRequest.Listener] = ...,
        features: _Many[BrokerRegistrationRequest.Feature] = ...,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: _Many[UUID] = ...,
        previous_broker_epoch: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupDescribeRequest(RequestMessage[ConsumerGroupDescribeResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: _Many[str] = ...,
        include_authorized_operations: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ConsumerGroupHeartbeatRequest(RequestMessage[ConsumerGroupHeartbeatResponse]):
    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: _Many[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: _Many[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ControlledShutdownRequest(RequestMessage[ControlledShutdownResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ControllerRegistrationRequest(RequestMessage[ControllerRegistrationResponse]):
    class Listener(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Feature(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    listeners: list[ControllerRegistrationRequest.Listener]
    features: list[ControllerRegistrationRequest.Feature]
    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: UUID = ...,
        zk_migration_ready: bool = False,
        listeners: _Many[ControllerRegistrationRequest.Listener] = ...,
        features: _Many[ControllerRegistrationRequest.Feature] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreateAclsRequest(RequestMessage[CreateAclsResponse]):
    class AclCreation(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        resource_type: int
        resource_name: str
        resource_pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            resource_pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    creations: list[CreateAclsRequest.AclCreation]
    def __init__(
        self,
        *,
        creations: _Many[CreateAclsRequest.AclCreation] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreateDelegationTokenRequest(RequestMessage[CreateDelegationTokenResponse]):
    class CreatableRenewers(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers]
    max_lifetime_ms: int
    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: _Many[CreateDelegationTokenRequest.CreatableRenewers] = ...,
        max_lifetime_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreatePartitionsRequest(RequestMessage[CreatePartitionsResponse]):
    class CreatePartitionsTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        count: int
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None
        def __init__(
            self,
            *,
            name: str = "",
            count: int = 0,
            assignments: _Many[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class CreatePartitionsAssignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        broker_ids: tuple[int, ...]
        def __init__(
            self,
            *,
            broker_ids: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[CreatePartitionsRequest.CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: _Many[CreatePartitionsRequest.CreatePartitionsTopic] = ...,
        timeout_ms: int = 0,
        validate_only: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class CreateTopicsRequest(RequestMessage[CreateTopicsResponse]):
    class CreatableTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        num_partitions: int
        replication_factor: int
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment]
        configs: list[CreateTopicsRequest.CreatableTopicConfig]
        def __init__(
            self,
            *,
            name: str = "",
            num_partitions: int = 0,
            replication_factor: int = 0,
            assignments: _Many[CreateTopicsRequest.CreatableReplicaAssignment] = ...,
            configs: _Many[CreateTopicsRequest.CreatableTopicConfig] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class CreatableReplicaAssignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        broker_ids: tuple[int, ...]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            broker_ids: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class CreatableTopicConfig(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        value: str | None
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[CreateTopicsRequest.CreatableTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: _Many[CreateTopicsRequest.CreatableTopic] = ...,
        timeout_ms: int = 60000,
        validate_only: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteAclsRequest(RequestMessage[DeleteAclsResponse]):
    class DeleteAclsFilter(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        resource_type_filter: int
        resource_name_filter: str | None
        pattern_type_filter: int
        principal_filter: str | None
        host_filter: str | None
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            resource_type_filter: int = 0,
            resource_name_filter: str | None = "",
            pattern_type_filter: int = 3,
            principal_filter: str | None = "",
            host_filter: str | None = "",
            operation: int = 0,
            permission_type: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    filters: list[DeleteAclsRequest.DeleteAclsFilter]
    def __init__(
        self,
        *,
        filters: _Many[DeleteAclsRequest.DeleteAclsFilter] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteGroupsRequest(RequestMessage[DeleteGroupsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    groups_names: list[str]
    def __init__(
        self,
        *,
        groups_names: _Many[str] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteRecordsRequest(RequestMessage[DeleteRecordsResponse]):
    class DeleteRecordsTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[DeleteRecordsRequest.DeleteRecordsPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DeleteRecordsPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        offset: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[DeleteRecordsRequest.DeleteRecordsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: _Many[DeleteRecordsRequest.DeleteRecordsTopic] = ...,
        timeout_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsRequest(RequestMessage[DeleteShareGroupOffsetsResponse]):
    class DeleteShareGroupOffsetsRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        def __init__(
            self,
            *,
            topic_name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteShareGroupStateRequest(RequestMessage[DeleteShareGroupStateResponse]):
    class DeleteStateData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[DeleteShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[DeleteShareGroupStateRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        def __init__(
            self,
            *,
            partition: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[DeleteShareGroupStateRequest.DeleteStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[DeleteShareGroupStateRequest.DeleteStateData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DeleteTopicsRequest(RequestMessage[DeleteTopicsResponse]):
    class DeleteTopicState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str | None
        topic_id: UUID
        def __init__(
            self,
            *,
            name: str | None = None,
            topic_id: UUID = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[DeleteTopicsRequest.DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: _Many[DeleteTopicsRequest.DeleteTopicState] = ...,
        topic_names: _Many[str] = ...,
        timeout_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeAclsRequest(RequestMessage[DescribeAclsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeClientQuotasRequest(RequestMessage[DescribeClientQuotasResponse]):
    class ComponentData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        entity_type: str
        match_type: int
        match: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            match_type: int = 0,
            match: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    components: list[DescribeClientQuotasRequest.ComponentData]
    strict: bool
    def __init__(
        self,
        *,
        components: _Many[DescribeClientQuotasRequest.ComponentData] = ...,
        strict: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeClusterRequest(RequestMessage[DescribeClusterResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool
    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeConfigsRequest(RequestMessage[DescribeConfigsResponse]):
    class DescribeConfigsResource(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        resource_type: int
        resource_name: str
        configuration_keys: list[str] | None
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configuration_keys: _Many[str] | None = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    resources: list[DescribeConfigsRequest.DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool
    def __init__(
        self,
        *,
        resources: _Many[DescribeConfigsRequest.DescribeConfigsResource] = ...,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeDelegationTokenRequest(RequestMessage[DescribeDelegationTokenResponse]):
    class DescribeDelegationTokenOwner(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None
    def __init__(
        self,
        *,
        owners: _Many[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeGroupsRequest(RequestMessage[DescribeGroupsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    groups: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        groups: _Many[str] = ...,
        include_authorized_operations: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeLogDirsRequest(RequestMessage[DescribeLogDirsResponse]):
    class DescribableLogDirTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None
    def __init__(
        self,
        *,
        topics: _Many[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeProducersRequest(RequestMessage[DescribeProducersResponse]):
    class TopicRequest(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partition_indexes: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[DescribeProducersRequest.TopicRequest]
    def __init__(
        self,
        *,
        topics: _Many[DescribeProducersRequest.TopicRequest] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeQuorumRequest(RequestMessage[DescribeQuorumResponse]):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[DescribeQuorumRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[DescribeQuorumRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[DescribeQuorumRequest.TopicData]
    def __init__(
        self,
        *,
        topics: _Many[DescribeQuorumRequest.TopicData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsRequest(RequestMessage[DescribeShareGroupOffsetsResponse]):
    class DescribeShareGroupOffsetsRequestGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        group_id: str
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
        def __init__(
            self,
            *,
            group_id: str = "",
            topics: _Many[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup]
    def __init__(
        self,
        *,
        groups: _Many[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeTopicPartitionsRequest(RequestMessage[DescribeTopicPartitionsResponse]):
    class TopicRequest(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        def __init__(
            self,
            *,
            name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Cursor(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[DescribeTopicPartitionsRequest.TopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsRequest.Cursor | None
    def __init__(
        self,
        *,
        topics: _Many[DescribeTopicPartitionsRequest.TopicRequest] = ...,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeTransactionsRequest(RequestMessage[DescribeTransactionsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    transactional_ids: list[str]
    def __init__(
        self,
        *,
        transactional_ids: _Many[str] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class DescribeUserScramCredentialsRequest(RequestMessage[DescribeUserScramCredentialsResponse]):
    class UserName(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        def __init__(
            self,
            *,
            name: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    users: list[DescribeUserScramCredentialsRequest.UserName] | None
    def __init__(
        self,
        *,
        users: _Many[DescribeUserScramCredentialsRequest.UserName] | None = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ElectLeadersRequest(RequestMessage[ElectLeadersResponse]):
    class TopicPartitions(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    election_type: int
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None
    timeout_ms: int
    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: _Many[ElectLeadersRequest.TopicPartitions] | None = ...,
        timeout_ms: int = 60000,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EndQuorumEpochRequest(RequestMessage[EndQuorumEpochResponse]):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[EndQuorumEpochRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[EndQuorumEpochRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        leader_id: int
        leader_epoch: int
        preferred_successors: tuple[int, ...]
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            preferred_successors: Sequence[int] = ...,
            preferred_candidates: _Many[EndQuorumEpochRequest.ReplicaInfo] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ReplicaInfo(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        candidate_id: int
        candidate_directory_id: UUID
        def __init__(
            self,
            *,
            candidate_id: int = 0,
            candidate_directory_id: UUID = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    topics: list[EndQuorumEpochRequest.TopicData]
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: _Many[EndQuorumEpochRequest.TopicData] = ...,
        leader_endpoints: _Many[EndQuorumEpochRequest.LeaderEndpoint] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EndTxnRequest(RequestMessage[EndTxnResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class EnvelopeRequest(RequestMessage[EnvelopeResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    request_data: bytes
    request_principal: bytes | None
    client_host_address: bytes
    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ExpireDelegationTokenRequest(RequestMessage[ExpireDelegationTokenResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    hmac: bytes
    expiry_time_period_ms: int
    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FetchRequest(RequestMessage[FetchResponse]):
    class ReplicaState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        replica_id: int
        replica_epoch: int
        def __init__(
            self,
            *,
            replica_id: int = -1,
            replica_epoch: int = -1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class FetchTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        topic_id: UUID
        partitions: list[FetchRequest.FetchPartition]
        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: UUID = ...,
            partitions: _Many[FetchRequest.FetchPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class FetchPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        current_leader_epoch: int
        fetch_offset: int
        last_fetched_epoch: int
        log_start_offset: int
        partition_max_bytes: int
        replica_directory_id: UUID
        high_watermark: int
        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            fetch_offset: int = 0,
            last_fetched_epoch: int = -1,
            log_start_offset: int = -1,
            partition_max_bytes: int = 0,
            replica_directory_id: UUID = ...,
            high_watermark: int = 9223372036854775807,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ForgottenTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    replica_id: int
    replica_state: FetchRequest.ReplicaState
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchRequest.FetchTopic]
    forgotten_topics_data: list[FetchRequest.ForgottenTopic]
    rack_id: str
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: FetchRequest.ReplicaState = ...,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: _Many[FetchRequest.FetchTopic] = ...,
        forgotten_topics_data: _Many[FetchRequest.ForgottenTopic] = ...,
        rack_id: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FetchSnapshotRequest(RequestMessage[FetchSnapshotResponse]):
    class TopicSnapshot(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[FetchSnapshotRequest.PartitionSnapshot]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[FetchSnapshotRequest.PartitionSnapshot] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionSnapshot(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        current_leader_epoch: int
        snapshot_id: FetchSnapshotRequest.SnapshotId
        position: int
        replica_directory_id: UUID
        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = 0,
            snapshot_id: FetchSnapshotRequest.SnapshotId = ...,
            position: int = 0,
            replica_directory_id: UUID = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class SnapshotId(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    replica_id: int
    max_bytes: int
    topics: list[FetchSnapshotRequest.TopicSnapshot]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: _Many[FetchSnapshotRequest.TopicSnapshot] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class FindCoordinatorRequest(RequestMessage[FindCoordinatorResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    key: str
    key_type: int
    coordinator_keys: list[str]
    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: _Many[str] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class GetTelemetrySubscriptionsRequest(RequestMessage[GetTelemetrySubscriptionsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    client_instance_id: UUID
    def __init__(
        self,
        *,
        client_instance_id: UUID = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class HeartbeatRequest(RequestMessage[HeartbeatResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class IncrementalAlterConfigsRequest(RequestMessage[IncrementalAlterConfigsResponse]):
    class AlterConfigsResource(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        resource_type: int
        resource_name: str
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig]
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configs: _Many[IncrementalAlterConfigsRequest.AlterableConfig] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AlterableConfig(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        config_operation: int
        value: str | None
        def __init__(
            self,
            *,
            name: str = "",
            config_operation: int = 0,
            value: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(
        self,
        *,
        resources: _Many[IncrementalAlterConfigsRequest.AlterConfigsResource] = ...,
        validate_only: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class InitProducerIdRequest(RequestMessage[InitProducerIdResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool
    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class InitializeShareGroupStateRequest(RequestMessage[InitializeShareGroupStateResponse]):
    class InitializeStateData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[InitializeShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[InitializeShareGroupStateRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        state_epoch: int
        start_offset: int
        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            start_offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[InitializeShareGroupStateRequest.InitializeStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[InitializeShareGroupStateRequest.InitializeStateData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class JoinGroupRequest(RequestMessage[JoinGroupResponse]):
    class JoinGroupRequestProtocol(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        metadata: bytes
        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol]
    reason: str | None
    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: _Many[JoinGroupRequest.JoinGroupRequestProtocol] = ...,
        reason: str | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class LeaderAndIsrRequest(RequestMessage[LeaderAndIsrResponse]):
    class LeaderAndIsrPartitionState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        controller_epoch: int
        leader: int
        leader_epoch: int
        isr: tuple[int, ...]
        partition_epoch: int
        replicas: tuple[int, ...]
        is_new: bool
        adding_replicas: tuple[int, ...]
        removing_replicas: tuple[int, ...]
        leader_recovery_state: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            controller_epoch: int = 0,
            leader: int = 0,
            leader_epoch: int = 0,
            isr: Sequence[int] = ...,
            partition_epoch: int = 0,
            replicas: Sequence[int] = ...,
            is_new: bool = False,
            adding_replicas: Sequence[int] = ...,
            removing_replicas: Sequence[int] = ...,
            leader_recovery_state: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderAndIsrTopicState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        topic_id: UUID
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: UUID = ...,
            partition_states: _Many[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class LeaderAndIsrLiveLeader(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        broker_id: int
        host_name: str
        port: int
        def __init__(
            self,
            *,
            broker_id: int = 0,
            host_name: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    controller_id: int
    is_kraft_controller: bool
    controller_epoch: int
    broker_epoch: int
    type: int
    ungrouped_partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState]
    topic_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState]
    live_leaders: list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader]
    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        type: int = 0,
        ungrouped_partition_states: _Many[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...,
        topic_states: _Many[LeaderAndIsrRequest.LeaderAndIsrTopicState] = ...,
        live_leaders: _Many[LeaderAndIsrRequest.LeaderAndIsrLiveLeader] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class LeaveGroupRequest(RequestMessage[LeaveGroupResponse]):
    class MemberIdentity(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        group_instance_id: str | None
        reason: str | None
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            reason: str | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    members: list[LeaveGroupRequest.MemberIdentity]
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: _Many[LeaveGroupRequest.MemberIdentity] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListConfigResourcesRequest(RequestMessage[ListConfigResourcesResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    resource_types: tuple[int, ...]
    def __init__(
        self,
        *,
        resource_types: Sequence[int] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListGroupsRequest(RequestMessage[ListGroupsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    states_filter: list[str]
    types_filter: list[str]
    def __init__(
        self,
        *,
        states_filter: _Many[str] = ...,
        types_filter: _Many[str] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListOffsetsRequest(RequestMessage[ListOffsetsResponse]):
    class ListOffsetsTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[ListOffsetsRequest.ListOffsetsPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[ListOffsetsRequest.ListOffsetsPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ListOffsetsPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        current_leader_epoch: int
        timestamp: int
        max_num_offsets: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            current_leader_epoch: int = -1,
            timestamp: int = 0,
            max_num_offsets: int = 1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsRequest.ListOffsetsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: _Many[ListOffsetsRequest.ListOffsetsTopic] = ...,
        timeout_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListPartitionReassignmentsRequest(RequestMessage[ListPartitionReassignmentsResponse]):
    class ListPartitionReassignmentsTopics(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partition_indexes: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    timeout_ms: int
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None
    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: _Many[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ListTransactionsRequest(RequestMessage[ListTransactionsResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    state_filters: list[str]
    producer_id_filters: tuple[int, ...]
    duration_filter: int
    transactional_id_pattern: str | None
    def __init__(
        self,
        *,
        state_filters: _Many[str] = ...,
        producer_id_filters: Sequence[int] = ...,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class MetadataRequest(RequestMessage[MetadataResponse]):
    class MetadataRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        name: str | None
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            name: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    topics: list[MetadataRequest.MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool
    def __init__(
        self,
        *,
        topics: _Many[MetadataRequest.MetadataRequestTopic] | None = ...,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetCommitRequest(RequestMessage[OffsetCommitResponse]):
    class OffsetCommitRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[OffsetCommitRequest.OffsetCommitRequestPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetCommitRequestPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        commit_timestamp: int
        committed_metadata: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            commit_timestamp: int = -1,
            committed_metadata: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: _Many[OffsetCommitRequest.OffsetCommitRequestTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetDeleteRequest(RequestMessage[OffsetDeleteResponse]):
    class OffsetDeleteRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: _Many[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetDeleteRequestPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetFetchRequest(RequestMessage[OffsetFetchResponse]):
    class OffsetFetchRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partition_indexes: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetFetchRequestGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        group_id: str
        member_id: str | None
        member_epoch: int
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None
        def __init__(
            self,
            *,
            group_id: str = "",
            member_id: str | None = None,
            member_epoch: int = -1,
            topics: _Many[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetFetchRequestTopics(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partition_indexes: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partition_indexes: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup]
    require_stable: bool
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...,
        groups: _Many[OffsetFetchRequest.OffsetFetchRequestGroup] = ...,
        require_stable: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class OffsetForLeaderEpochRequest(RequestMessage[OffsetForLeaderEpochResponse]):
    class OffsetForLeaderTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic: str
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: _Many[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class OffsetForLeaderPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        current_leader_epoch: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    replica_id: int
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic]
    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: _Many[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ProduceRequest(RequestMessage[ProduceResponse | None]):
    class TopicProduceData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partition_data: list[ProduceRequest.PartitionProduceData]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partition_data: _Many[ProduceRequest.PartitionProduceData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionProduceData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        index: int
        records: bytes | None
        def __init__(
            self,
            *,
            index: int = 0,
            records: bytes | None = None,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[ProduceRequest.TopicProduceData]
    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: _Many[ProduceRequest.TopicProduceData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class PushTelemetryRequest(RequestMessage[PushTelemetryResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    client_instance_id: UUID
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes
    def __init__(
        self,
        *,
        client_instance_id: UUID = ...,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ReadShareGroupStateRequest(RequestMessage[ReadShareGroupStateResponse]):
    class ReadStateData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ReadShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ReadShareGroupStateRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[ReadShareGroupStateRequest.ReadStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[ReadShareGroupStateRequest.ReadStateData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryRequest(RequestMessage[ReadShareGroupStateSummaryResponse]):
    class ReadStateSummaryData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ReadShareGroupStateSummaryRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = 0,
            leader_epoch: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RemoveRaftVoterRequest(RequestMessage[RemoveRaftVoterResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    voter_id: int
    voter_directory_id: UUID
    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: UUID = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class RenewDelegationTokenRequest(RequestMessage[RenewDelegationTokenResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    hmac: bytes
    renew_period_ms: int
    def __init__(
        self,
        *,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SaslAuthenticateRequest(RequestMessage[SaslAuthenticateResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    auth_bytes: bytes
    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SaslHandshakeRequest(RequestMessage[SaslHandshakeResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    mechanism: str
    def __init__(
        self,
        *,
        mechanism: str = "",
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareAcknowledgeRequest(RequestMessage[ShareAcknowledgeResponse]):
    class AcknowledgeTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ShareAcknowledgeRequest.AcknowledgePartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AcknowledgePartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            acknowledgement_batches: _Many[ShareAcknowledgeRequest.AcknowledgementBatch] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AcknowledgementBatch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        first_offset: int
        last_offset: int
        acknowledge_types: tuple[int, ...]
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            acknowledge_types: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic]
    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: _Many[ShareAcknowledgeRequest.AcknowledgeTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareFetchRequest(RequestMessage[ShareFetchResponse]):
    class FetchTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[ShareFetchRequest.FetchPartition]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[ShareFetchRequest.FetchPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class FetchPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        partition_max_bytes: int
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_max_bytes: int = 0,
            acknowledgement_batches: _Many[ShareFetchRequest.AcknowledgementBatch] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class AcknowledgementBatch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        first_offset: int
        last_offset: int
        acknowledge_types: tuple[int, ...]
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            acknowledge_types: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class ForgottenTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic]
    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: _Many[ShareFetchRequest.FetchTopic] = ...,
        forgotten_topics_data: _Many[ShareFetchRequest.ForgottenTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupDescribeRequest(RequestMessage[ShareGroupDescribeResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: _Many[str] = ...,
        include_authorized_operations: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class ShareGroupHeartbeatRequest(RequestMessage[ShareGroupHeartbeatResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: _Many[str] | None = None,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StopReplicaRequest(RequestMessage[StopReplicaResponse]):
    class StopReplicaPartitionV0(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class StopReplicaTopicV1(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partition_indexes: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class StopReplicaTopicState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_states: list[StopReplicaRequest.StopReplicaPartitionState]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_states: _Many[StopReplicaRequest.StopReplicaPartitionState] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class StopReplicaPartitionState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        leader_epoch: int
        delete_partition: bool
        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_epoch: int = -1,
            delete_partition: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    controller_id: int
    is_kraft_controller: bool
    controller_epoch: int
    broker_epoch: int
    delete_partitions: bool
    ungrouped_partitions: list[StopReplicaRequest.StopReplicaPartitionV0]
    topics: list[StopReplicaRequest.StopReplicaTopicV1]
    topic_states: list[StopReplicaRequest.StopReplicaTopicState]
    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        delete_partitions: bool = False,
        ungrouped_partitions: _Many[StopReplicaRequest.StopReplicaPartitionV0] = ...,
        topics: _Many[StopReplicaRequest.StopReplicaTopicV1] = ...,
        topic_states: _Many[StopReplicaRequest.StopReplicaTopicState] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupDescribeRequest(RequestMessage[StreamsGroupDescribeResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    group_ids: list[str]
    include_authorized_operations: bool
    include_topology_description: bool
    def __init__(
        self,
        *,
        group_ids: _Many[str] = ...,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupHeartbeatRequest(RequestMessage[StreamsGroupHeartbeatResponse]):
    class Topology(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        epoch: int
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology]
        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: _Many[StreamsGroupHeartbeatRequest.Subtopology] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Subtopology(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: _Many[str] = ...,
            source_topic_regex: _Many[str] = ...,
            state_changelog_topics: _Many[StreamsGroupHeartbeatRequest.TopicInfo] = ...,
            repartition_sink_topics: _Many[str] = ...,
            repartition_source_topics: _Many[StreamsGroupHeartbeatRequest.TopicInfo] = ...,
            copartition_groups: _Many[StreamsGroupHeartbeatRequest.CopartitionGroup] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopicInfo(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: _Many[StreamsGroupHeartbeatRequest.KeyValue] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class KeyValue(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class CopartitionGroup(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        source_topics: tuple[int, ...]
        source_topic_regex: tuple[int, ...]
        repartition_source_topics: tuple[int, ...]
        def __init__(
            self,
            *,
            source_topics: Sequence[int] = ...,
            source_topic_regex: Sequence[int] = ...,
            repartition_source_topics: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TaskIds(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        partitions: tuple[int, ...]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class Endpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TaskOffset(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        partition: int
        offset: int
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partition: int = 0,
            offset: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: StreamsGroupHeartbeatRequest.Topology | None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    process_id: str | None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    shutdown_application: bool
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: StreamsGroupHeartbeatRequest.Topology | None = None,
        active_tasks: _Many[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        standby_tasks: _Many[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        warmup_tasks: _Many[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = None,
        client_tags: _Many[StreamsGroupHeartbeatRequest.KeyValue] | None = None,
        task_offsets: _Many[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        task_end_offsets: _Many[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        shutdown_application: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class StreamsGroupTopologyDescriptionUpdateRequest(RequestMessage[StreamsGroupTopologyDescriptionUpdateResponse]):
    class TopologyDescription(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore]
        def __init__(
            self,
            *,
            subtopologies: _Many[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology] = ...,
            global_stores: _Many[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopologyDescriptionSubtopology(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        subtopology_id: str
        nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            nodes: _Many[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopologyDescriptionNode(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        def __init__(
            self,
            *,
            name: str = "",
            node_type: int = 0,
            source_topics: _Many[str] = ...,
            sink_topic: str | None = None,
            stores: _Many[str] = ...,
            successors: _Many[str] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TopologyDescriptionGlobalStore(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        def __init__(
            self,
            *,
            source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...,
            processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    member_id: str
    topology_epoch: int
    topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        topology_epoch: int = 0,
        topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class SyncGroupRequest(RequestMessage[SyncGroupResponse]):
    class SyncGroupRequestAssignment(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        member_id: str
        assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            assignment: bytes = b"",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]
    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: _Many[SyncGroupRequest.SyncGroupRequestAssignment] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class TxnOffsetCommitRequest(RequestMessage[TxnOffsetCommitResponse]):
    class TxnOffsetCommitRequestTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        topic_id: UUID
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: UUID = ...,
            partitions: _Many[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class TxnOffsetCommitRequestPartition(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        committed_metadata: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: _Many[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UnregisterBrokerRequest(RequestMessage[UnregisterBrokerResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    broker_id: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UnregisterControllerRequest(RequestMessage[UnregisterControllerResponse]):
    __match_args__: ClassVar[tuple[str, ...]]
    controller_id: int
    def __init__(
        self,
        *,
        controller_id: int = 0,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UpdateFeaturesRequest(RequestMessage[UpdateFeaturesResponse]):
    class FeatureUpdateKey(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        feature: str
        max_version_level: int
        allow_downgrade: bool
        upgrade_type: int
        def __init__(
            self,
            *,
            feature: str = "",
            max_version_level: int = 0,
            allow_downgrade: bool = False,
            upgrade_type: int = 1,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    timeout_ms: int
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey]
    validate_only: bool
    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: _Many[UpdateFeaturesRequest.FeatureUpdateKey] = ...,
        validate_only: bool = False,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UpdateMetadataRequest(RequestMessage[UpdateMetadataResponse]):
    class UpdateMetadataPartitionState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partition_index: int
        controller_epoch: int
        leader: int
        leader_epoch: int
        isr: tuple[int, ...]
        zk_version: int
        replicas: tuple[int, ...]
        offline_replicas: tuple[int, ...]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            controller_epoch: int = 0,
            leader: int = 0,
            leader_epoch: int = 0,
            isr: Sequence[int] = ...,
            zk_version: int = 0,
            replicas: Sequence[int] = ...,
            offline_replicas: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class UpdateMetadataTopicState(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        topic_id: UUID
        partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: UUID = ...,
            partition_states: _Many[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class UpdateMetadataBroker(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        id: int
        v0_host: str
        v0_port: int
        endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint]
        rack: str | None
        def __init__(
            self,
            *,
            id: int = 0,
            v0_host: str = "",
            v0_port: int = 0,
            endpoints: _Many[UpdateMetadataRequest.UpdateMetadataEndpoint] = ...,
            rack: str | None = "",
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class UpdateMetadataEndpoint(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        port: int
        host: str
        listener: str
        security_protocol: int
        def __init__(
            self,
            *,
            port: int = 0,
            host: str = "",
            listener: str = "",
            security_protocol: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    controller_id: int
    is_kraft_controller: bool
    type: int
    controller_epoch: int
    broker_epoch: int
    ungrouped_partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState]
    topic_states: list[UpdateMetadataRequest.UpdateMetadataTopicState]
    live_brokers: list[UpdateMetadataRequest.UpdateMetadataBroker]
    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        type: int = 0,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        ungrouped_partition_states: _Many[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...,
        topic_states: _Many[UpdateMetadataRequest.UpdateMetadataTopicState] = ...,
        live_brokers: _Many[UpdateMetadataRequest.UpdateMetadataBroker] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class UpdateRaftVoterRequest(RequestMessage[UpdateRaftVoterResponse]):
    class Listener(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class KRaftVersionFeature(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: UUID
    listeners: list[UpdateRaftVoterRequest.Listener]
    kraft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature
    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: UUID = ...,
        listeners: _Many[UpdateRaftVoterRequest.Listener] = ...,
        kraft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class VoteRequest(RequestMessage[VoteResponse]):
    class TopicData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_name: str
        partitions: list[VoteRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: _Many[VoteRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition_index: int
        replica_epoch: int
        replica_id: int
        replica_directory_id: UUID
        voter_directory_id: UUID
        last_offset_epoch: int
        last_offset: int
        pre_vote: bool
        def __init__(
            self,
            *,
            partition_index: int = 0,
            replica_epoch: int = 0,
            replica_id: int = 0,
            replica_directory_id: UUID = ...,
            voter_directory_id: UUID = ...,
            last_offset_epoch: int = 0,
            last_offset: int = 0,
            pre_vote: bool = False,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    cluster_id: str | None
    voter_id: int
    topics: list[VoteRequest.TopicData]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: _Many[VoteRequest.TopicData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class WriteShareGroupStateRequest(RequestMessage[WriteShareGroupStateResponse]):
    class WriteStateData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        topic_id: UUID
        partitions: list[WriteShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: UUID = ...,
            partitions: _Many[WriteShareGroupStateRequest.PartitionData] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class PartitionData(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        partition: int
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        state_batches: list[WriteShareGroupStateRequest.StateBatch]
        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
            state_batches: _Many[WriteShareGroupStateRequest.StateBatch] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class StateBatch(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    group_id: str
    topics: list[WriteShareGroupStateRequest.WriteStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: _Many[WriteShareGroupStateRequest.WriteStateData] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...

class WriteTxnMarkersRequest(RequestMessage[WriteTxnMarkersResponse]):
    class WritableTxnMarker(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic]
        coordinator_epoch: int
        transaction_version: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            transaction_result: bool = False,
            topics: _Many[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ...,
            coordinator_epoch: int = 0,
            transaction_version: int = 0,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    class WritableTxnMarkerTopic(Struct):
        __match_args__: ClassVar[tuple[str, ...]]
        name: str
        partition_indexes: tuple[int, ...]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: Sequence[int] = ...,
            unknown_tags: dict[int, bytes] = ...,
        ) -> None: ...

    __match_args__: ClassVar[tuple[str, ...]]
    markers: list[WriteTxnMarkersRequest.WritableTxnMarker]
    def __init__(
        self,
        *,
        markers: _Many[WriteTxnMarkersRequest.WritableTxnMarker] = ...,
        unknown_tags: dict[int, bytes] = ...,
    ) -> None: ...
