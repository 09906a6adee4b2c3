"""A lossy downgrade on a disk that fails: python -m tests.hostile.fleet_levels [--share N] [--only NAME].

As tests.hostile.fleet_disk, each call that changes a file fails in turn, or is where the process is killed, while a
fleet with rules="kip-778" loses its SCRAM users to a lower metadata.version (UNSAFE) and goes up again. What must hold:
a fleet that starts on the folder afterwards is whole at the old or at the new level, at the one that was acknowledged;
what was lost does not come back, and what was not is there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kwire import messages
from kwire.fleet import Fleet
from kwire.net import connect_sync
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage import LogDirectory
from tests.hostile import failing_calls, fleet_disk
from tests.hostile.fleet_disk import Broken, Failure

RELEASE, TOP, LOW = "4.4", 33, 7  # 3.3-IV3, which has no records for users
UPGRADE, UNSAFE = 1, 3
USERS = {"a": "p", "b": "q"}


def update(fleet: Fleet, level: int, kind: int) -> bool:
    """Whether the level was changed, as the answer says."""
    row = messages.UpdateFeaturesRequest.FeatureUpdateKey(
        feature=METADATA_VERSION, max_version_level=level, upgrade_type=kind)
    node = fleet.nodes[0]
    sasl = None if node.users is None else ("PLAIN", "a", USERS["a"])
    with connect_sync(node.controller_address, timeout=20, sasl=sasl) as connection:
        answer: Any = connection.send(messages.UpdateFeaturesRequest(feature_updates=[row], timeout_ms=10_000), 1)
    codes = {answer.error_code, *(one.error_code for one in answer.results)}
    if not codes <= {0, *fleet_disk.ALLOWED}:
        raise Broken(f"to {level}: answered with {codes}")
    return codes == {0}


def opened(folder: Path | str, users: dict[str, str] | None = None) -> Fleet:
    """A fleet on the folder."""
    return Fleet(RELEASE, rules="kip-778", data=folder, topics={"t": 2}, sasl=users)


def work(folder: str, note: Any) -> None:
    """What the child does: users are made, lost, and the level rises again."""
    with opened(folder, USERS) as fleet:
        note("users", len(fleet.image.scram), True)
        note("low", LOW, update(fleet, LOW, UNSAFE))
        note("high", TOP, update(fleet, TOP, UPGRADE))
        note("low", LOW, update(fleet, LOW, UNSAFE))


def judged(where: str, folder: Path, status: int, notes: list[list[Any]], failure: Failure) -> None:
    """Raises Broken."""
    if status not in ((-failure.ending,) if failure.ending else (0, 1)):
        raise Broken(f"{where}: the child ended with {status}: {notes[-1:]}")
    changes = [(line[1], line[2]) for line in notes if line[0] in ("low", "high")]
    whole = 2 * len(USERS)
    expected = TOP, whole
    for level, done in changes:
        if done:
            expected = level, 0
    with opened(folder / "data") as fleet:
        found = fleet.image.metadata_version, len(fleet.image.scram)
        if any(line[0] == "users" for line in notes) and status >= 0 and found != expected:
            raise Broken(f"{where}: level and users are {found} after {changes}, expected {expected}")
        if found not in ((LOW, 0), (TOP, 0), (TOP, whole)) and notes:
            raise Broken(f"{where}: level and users are {found} after {changes}")
        if expected[1] == 0 and found[1]:
            raise Broken(f"{where}: users came back: {found} after {changes}")
        if found[0] == LOW and not update(fleet, TOP, UPGRADE):
            raise Broken(f"{where}: it does not rise again")
    with opened(folder / "data") as fleet:
        again = fleet.image.metadata_version, len(fleet.image.scram)
        if notes and again != (TOP, found[1]):
            raise Broken(f"{where}: users came back: {again} after {found}")
    if problems := LogDirectory(folder / "data" / "node-1").verify():
        raise Broken(f"{where}: {problems}")


def rounds(preloaded: Any, only: list[str], share: int) -> int:
    """How many runs there were. Raises Broken."""
    return fleet_disk.rounds(preloaded, only, share, work, judged)


def main(arguments: list[str] | None = None) -> int:
    """Run it."""
    return failing_calls.run_preloaded(
        "fleet_levels", __doc__, fleet_disk.FAILURES, rounds, "whole at one level", arguments)


if __name__ == "__main__":
    sys.exit(main())
