"""Every vector of Kafka's own classes under the sanitisers: records, odd batches, codecs, messages; and the threads."""

from __future__ import annotations

import pytest

from tests.hostile import sanitized

ROOT = sanitized.ROOT
RECORDS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/codec").glob("test_rec*.py"))
TESTS = [
    *RECORDS,
    "tests/cli/test_record_lines.py",
    "tests/codec/test_batch_layout.py",
    "tests/codec/test_build_batches.py",
    "tests/codec/test_frames.py",
    "tests/codec/test_message_classes.py",
    "tests/codec/test_message_columns.py",
    "tests/codec/test_messages_malformed.py",
    "tests/codec/test_messages_vectors.py",
    "tests/compression/test_vectors.py",
    "tests/hostile/test_threads.py",
    "tests/primitives",
]
AT_LEAST = 1300  # tests


@pytest.mark.timeout(1800)
def test_all_vectors() -> None:
    """Tests that compile C of their own say nothing of this build; those of signals only write much, for their time."""
    left_out = " and ".join(f"not {name}" for name in ("test_arm", "test_the_c_alone", "test_signals_are_handled"))
    ran = sanitized.tests(sanitized.extensions(), "-k", left_out, *TESTS)
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}{ran.stderr[-4000:]}"
    passed = int(ran.stdout.splitlines()[-1].split(" passed")[0].split()[-1])
    assert passed >= AT_LEAST


def test_another_build_is_refused() -> None:
    """Tests that ran with the checkout's own extensions would prove nothing."""
    ran = sanitized.run(sanitized.extensions(), "-c", sanitized.PYTEST, "/elsewhere", "--version")
    assert ran.returncode != 0 and "AssertionError" in ran.stderr
