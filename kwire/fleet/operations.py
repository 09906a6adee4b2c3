"""What everybody may do where nothing is forbidden: bits of AclOperation (AclEntry.supportedOperations, KIP-430)."""

from __future__ import annotations

from kwire.fleet.releases import Offer

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION = (1 << code for code in range(3, 10))
_DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = (1 << code for code in range(10, 13))
_UNASKED = -(1 << 31)  # of answers to requests that do not ask
_FIRST_WITH_DEFAULT, _FIRST_WITH_GROUP_CONFIGS = "2.5", "4.0"

TOPIC = _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
CLUSTER = _CREATE | _ALTER | _DESCRIBE | _CLUSTER_ACTION | _DESCRIBE_CONFIGS | _ALTER_CONFIGS | _IDEMPOTENT_WRITE
_GROUP = _READ | _DELETE | _DESCRIBE


def if_asked(offer: Offer, there: bool, asked: bool, operations: int) -> int:
    """The operations of an answer, if its version has them (there) and the request asked for them.

    2.3 and 2.4 say 0 to those who do not ask, where later ones have a default.
    """
    if there and asked:
        return operations
    return _UNASKED if not there or offer.at_least(_FIRST_WITH_DEFAULT) else 0


def of_groups(offer: Offer) -> int:
    """What may be done with a group."""
    return _GROUP | (_DESCRIBE_CONFIGS | _ALTER_CONFIGS if offer.at_least(_FIRST_WITH_GROUP_CONFIGS) else 0)
