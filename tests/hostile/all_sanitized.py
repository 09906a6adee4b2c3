"""Every harness with the extensions under the sanitisers, a minute or two each: python -m tests.hostile.all_sanitized.

[HARNESS ...]: only these. Prints a line for each: its exit code, seconds and last line; and what the sanitisers report.
"""

from __future__ import annotations

import subprocess
import sys
import time

from tests.hostile import forks, interrupts, sanitized


def only(names: set[str]) -> list[str]:
    return [word for name in sorted(names) for word in ("--only", name)]


MINUTE = ["--seconds", "60"]
# the harnesses with their arguments, and files of tests
RUNS: dict[str, list[str]] = {
    "races": MINUTE,
    "interrupts": [*MINUTE, *only(set(interrupts.CASES) - {"pages"})],  # a site takes seconds
    # not those whose threads allocate without Python's lock: the lock of the sanitiser's own allocator stays taken
    "forks": ["--seconds", "0", *only(set(forks.CASES) - {"columns", "pool"})],
    "allocations": ["--seconds", "240", "--seed", "1"],
    "sizes": ["--short", "--seconds", "300"],
    "growth": ["--seconds", "600"],
    "taint": MINUTE,
    "handmade": [],
    "wrong_arguments": [],
    "dialogues": MINUTE,
    "clients": MINUTE,
    "failing_calls": ["--share", "9"],
    "fleet_disk": ["--share", "100"],
    "fleet_levels": ["--share", "60"],
    "fleet_folders": MINUTE,
    "fleet_compactions": MINUTE,
    "hostile/test_user_code.py": [],
    "hostile/test_odd_files.py": [],
    "storage/test_lying_stores.py": [],
    "storage/test_changing.py": [],
}


def ran(name: str) -> subprocess.CompletedProcess[str]:
    """How a run of RUNS ended."""
    folder = sanitized.extensions()
    if name.endswith(".py"):
        return sanitized.tests(folder, "-m", "not soak", f"tests/{name}", *RUNS[name])
    return sanitized.run(folder, "-W", "ignore", "-m", f"tests.hostile.{name}", *RUNS[name], timeout=3000)


def main(names: list[str]) -> int:
    failed = 0
    for name in names or RUNS:
        began = time.monotonic()
        done = ran(name)
        reports = done.stderr.replace("WARNING: AddressSanitizer failed to allocate", "")  # too much: a MemoryError
        is_clean = not done.returncode and "runtime error" not in reports and "Sanitizer" not in reports
        failed += not is_clean
        last = (done.stdout.strip() or "-").splitlines()[-1]
        print(f"{name}: exit {done.returncode}, {time.monotonic() - began:.0f} s: {last}", flush=True)
        if not is_clean:
            print(done.stdout[-2000:], done.stderr[-8000:], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
