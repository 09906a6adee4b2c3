"""ACLs as the metadata log has them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Acl(NamedTuple):
    """An AclBinding: numbers are those of Kafka's ResourceType, PatternType, AclOperation and AclPermissionType."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @classmethod
    def of(cls, record: Any) -> Acl:
        """The ACL of an AccessControlEntryRecord."""
        return cls(*(getattr(record, name) for name in cls._fields))

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Its enumerations: resource type, pattern type, operation and permission type."""
        return self.resource_type, self.pattern_type, self.operation, self.permission_type
