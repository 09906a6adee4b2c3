"""What kafka-storage of a release does: its commands and checks changed from release to release."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwire.schema import is_at_least, metadata_bounds, release_name, releases


class Rules(NamedTuple):
    """How kafka-storage of a release behaves. The comment of a flag names the release from which it holds."""

    asked: str  # the release as it was named: "3.9.1"
    release: str  # its minor: "3.9"
    kraft_needs_3_9: bool  # 3.9.0, 3.9.1, 4.0.0, 4.0.1: kraft.version 1 depends on metadata.version 3.9-IV0
    plain_roles: bool  # 3.4: errors show a role as it is in process.roles
    scram: bool  # 3.5: --add-scram (KIP-900)
    ensemble: bool  # 3.7: existing directories are verified, new ones get a directory.id (KIP-858)
    features: bool  # 3.8: --feature (KIP-1022)
    formatter: bool  # 3.9: the class Formatter; voters of a dynamic quorum (KIP-853)
    kraft_only: bool  # 4.0: no ZooKeeper; version-mapping, feature-dependencies
    checks_voters: bool  # 4.1: controller.quorum.voters against --standalone and --initial-controllers
    shows_records: bool  # 4.2: the bootstrap records are printed; unknown versions are listed
    wraps_listener_errors: bool  # 4.3: an error of the listeners names all of them
    one_checkpoint: bool  # 4.4: no bootstrap.checkpoint; its records are in the snapshot of the metadata log


@lru_cache(None)
def rules_of(release: str | None = None) -> Rules:
    """The rules of a release, by default the newest. Raises UnsupportedVersionError before 3.3."""
    name = releases()[-1] if release is None else release_name(release)
    metadata_bounds(name)  # an error before 3.3

    early = release in ("3.9.0", "3.9.1", "4.0.0", "4.0.1")
    changes = ("3.4", "3.5", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4")
    return Rules(release or name, name, early, *(is_at_least(name, first) for first in changes))
