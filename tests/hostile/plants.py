"""Faults put into a copy of the code, which the harnesses must find: python -m tests.hostile.plants [NAME ...]."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.sanitized import ROOT


@dataclass(frozen=True)
class Plant:
    """A fault.

    file: in which `old` becomes `new`; builds: the extensions to build then, none for Python; harness, arguments: the
    module of tests.hostile that finds it, or a file of tests; report: text in its output.
    """

    name: str
    file: str
    old: str
    new: str
    builds: tuple[str, ...]
    harness: str
    arguments: tuple[str, ...]
    report: str = ""


PLANTS = (
    Plant(
        "a task of a stream reads what the cleaner put in the place", "kwire/spark/stream.py",
        "            if not planned.begins(file, size):\n", "            if False:\n", (),
        "spark/test_stream.py", ("-k", "compacted_after"), "FAILED",
    ),
    Plant(
        "a checkpoint goes on in another log", "kwire/storage/reading/log_follower.py",
        "    return crc32(file.read(start, start + min(at.size, RECORD_BATCH_OVERHEAD))) == at.mark\n",
        "    return start >= 0\n", (),
        "spark/test_stream_loss.py", (), "FAILED",
    ),
    Plant(
        "an error of a query has the password of a URL", "kwire/storage/places/filesystem.py",
        '    path = _SECRETS.sub("", path)\n    return _QUERY', "    return _QUERY", (),
        "spark/test_source.py", ("-k", "values_of_options"), "FAILED",
    ),
    Plant(
        "a file that is half-written stays", "kwire/output.py",
        "        remove(partial)\n        raise\n", "        raise\n", (),
        "failing_calls", ("--only", "csv"), "left behind",
    ),
    Plant(
        "what the disk refuses is acknowledged", "kwire/fleet/errors.py",
        "        if isinstance(error, (OSError, KwireError, ValueError)) and",
        "        if isinstance(error, OSError):\n            return True\n"
        "        if isinstance(error, (KwireError, ValueError)) and", (),
        "fleet_disk", ("--share", "60", "--only", "full"), "Broken",
    ),
    Plant(
        "a batch that memory refused stays in its file", "kwire/fleet/disk/segment_store.py",
        "        certainly(self.abandon)\n        try:  # noqa: SIM105 - suppress() takes memory\n"
        "            certainly(self._take_back)\n", "        certainly(self.abandon)\n        try:\n            pass\n",
        (),
        "fleet_allocations", ("--seconds", "300"), "Broken",
    ),
    Plant(
        "a transaction that memory interrupted never ends", "kwire/fleet/coordinators/transactions.py",
        "            certainly(self._end_again)\n            raise\n", "            raise\n", (),
        "fleet_allocations", ("--seconds", "300"), "does not end",
    ),
    Plant(
        "what a lossy downgrade has lost comes back", "kwire/fleet/controller/metadata_log.py",
        "        losses = self._rewrite()\n        if losses and",
        "        losses = list[Loss]()\n        if losses and", (),
        "fleet_levels", ("--share", "30", "--only", "full for a moment"), "Broken",
    ),
    Plant(
        "a folder of another node is no error that is known", "kwire/fleet/disk/node_folder.py",
        "        if found.node_id != self.id or found", "        assert found.node_id == self.id\n        if found", (),
        "fleet_folders", ("--seconds", "600"), "AssertionError",
    ),
    Plant(
        "a fleet whose start was interrupted runs on", "kwire/fleet/loop_thread.py",
        "            return self\n        except BaseException:\n            self._end_thread()\n",
        "            return self\n        except BaseException:\n", (),
        "interrupts", ("--only", "fleet", "--seconds", "0"), "left behind",
    ),
    Plant(
        "a child waits for its parent's loop", "kwire/fleet/loop_thread.py",
        "        if not self.is_here or self.has_ended or", "        if self.has_ended or", (),
        "forks", ("--only", "fleet", "--seconds", "0"), "the child hangs",
    ),
    Plant(
        "an Arrow type without a format is read", "kwire_c/batch_builder.pyx",
        'return b"" if schema.format == NULL else schema.format', "return schema.format", ("batch_builder",),
        "arrow_tables", ("--count", "3000"), "",
    ),
    Plant(
        "a batch is given although another thread gave it", "kwire_c/record_batch.pyx",
        "            if not kw_claim(&self.at, at, after):\n", "            self.at = after\n            if False:\n",
        ("record_batch",),
        "races", ("--only", "same_batches", "--seconds", "60"), "in same_batches",
    ),
    Plant(
        "a frame reader is fed by many", "kwire/codec/frames.py", 'vars(self).pop("_rest", None)',
        'vars(self).get("_rest")', (), "races", ("--only", "frame_reader", "--seconds", "60"), "in frame_reader",
    ),
    Plant(
        "a record is written by many", "kwire/capture/frame_files.py", "        holding(self._guard, work)\n",
        "        work()\n", (), "races", ("--only", "capture", "--seconds", "60"), "in capture",
    ),
    Plant(
        "an exception in an unknown tag is swallowed", "kwire_c/encode.pyx",
        "            return put_all_tags(o, plan, self)\n        except BaseException as error:\n"
        "            return keep(o, error)\n",
        "            return put_all_tags(o, plan, self)\n        except BaseException:\n            return 0\n",
        ("encode",), "interrupts", ("--only", "encode", "--seconds", "0"), "swallowed",
    ),
    Plant(
        "the rest of a pipe is taken for the whole", "kwire/storage/places/filesystem.py",
        '                raise ValueError(f"{self.path}: another thread is reading it, or it was partly read")\n',
        "                pass\n", (), "interrupts", ("--only", "pipe", "--seconds", "60"), "in pipe",
    ),
    Plant(
        "an interrupt is taken for an end", "kwire/capture/frame_files.py",
        "        if self._partial:\n            raise OSError(5,",
        "        if False:\n            raise OSError(5,", (), "interrupts", ("--only", "record", "--seconds", "90"),
        "in record",
    ),
    Plant(
        "the lock of the pool stays taken in a child", "kwire_c/core/buffer.c",
        "{ pthread_atfork(lock_pool, unlock_pool, unlock_pool); }", "{ (void)unlock_pool; }", ("columns",),
        "forks", ("--only", "pool", "--seconds", "600"), "the child hangs",
    ),
    Plant(
        "a lock is held while an index is read", "kwire/storage/computed_once.py",
        "        made: T = vars(owner).setdefault(self.make.__name__, self.make(owner))\n",
        "        with __import__('sys').modules.setdefault('a lock', __import__('threading').RLock()):\n"
        "            made: T = vars(owner).setdefault(self.make.__name__, self.make(owner))\n", (),
        "forks", ("--only", "storage", "--seconds", "120"), "the child hangs",
    ),
    Plant(
        "a child uses the connection of its parent", "kwire/net/connection.py",
        "self._process != os.getpid() or ", "", (), "forks", ("--only", "connection", "--seconds", "0"),
        "the child fails",
    ),
    Plant(
        "a failing allocation in an unknown tag gives bytes", "kwire_c/encode.pyx",
        "            return put_all_tags(o, plan, self)\n        except BaseException as error:\n"
        "            return keep(o, error)\n",
        "            return put_all_tags(o, plan, self)\n        except BaseException:\n            return 0\n",
        ("encode",), "allocations", ("--seconds", "120", "--only", "encode", "--seed", "1"),
    ),
    Plant(
        "a loop over batches makes no progress", "kwire_c/columns.pyx",
        "                if not size:\n                    break\n",
        "                if not size:\n                    continue\n",
        ("columns",), "sizes", ("--seconds", "600", "--short", "--only", "lengths, 2 GiB"),
    ),
    Plant(
        "aborted transactions are counted one by one", "kwire/storage/isolation/transactions.py",
        "at = bisect_right(self.aborted, (producer_id, base_offset, 1 << 63)) - 1",
        "at = sum(one <= (producer_id, base_offset, 1 << 63) for one in self.aborted) - 1", (),
        "growth", ("--seconds", "300", "--only", "aborted"), "aborted",
    ),
    Plant(
        "the end of a transaction looks at all groups", "kwire/fleet/coordinators/group_coordinator.py",
        "        for group_id in list(self.groups) if group_ids is None else group_ids:\n",
        "        for group_id in list(self.groups):\n", (),
        "growth", ("--seconds", "300", "--only", "groups and"), "groups and",
    ),
    Plant(
        "a terminal's signs are shown as they are", "kwire_c/printable.py", "    if text.isprintable():\n",
        "    if text:\n", (), "taint", ("--seconds", "30"),
    ),
    Plant(
        "an iterator made by hand is asked for an item", "kwire_c/shared_iterator.pyx",
        "        if not PyIter_Check(self.items):\n", "        if False:\n", ("shared_iterator",), "handmade", (),
    ),
    Plant(
        "an item of a list is not held while it is written", "kwire_c/encode.pyx",
        "        raw_incref(item)  # finalizers and other threads may remove it from the list\n"
        "        status = put_element(o, op, item)\n        raw_decref(item)\n",
        "        status = put_element(o, op, item)\n", ("encode",), "hostile/test_user_code.py", (),
    ),
    Plant(
        "any number is taken for an offset", "kwire/storage/reading/segment.py",
        '        offset = check_int(offset, "offset")\n        return self._first(', "        return self._first(", (),
        "wrong_arguments", (), "LogSegment.seek(offset",
    ),
    Plant(
        "the error of a store is shown as it is", "kwire/storage/places/filesystem.py",
        """            text += f": {_said(error)}"\n""",
        """            text += f": {error}"\n""", (), "storage/test_lying_stores.py", (),
    ),
    Plant(
        "a pipe is read that nobody named", "kwire/storage/places/filesystem.py",
        "    if isinstance(file, SpooledFile) and file.once:\n", "    if False:\n", (),
        "hostile/test_odd_files.py", (), "hangs",
    ),
    Plant(
        "a file that became shorter is at its end", "kwire/storage/places/filesystem.py",
        "        if len(data) < len(memoryview(before)) + end - start:\n", "        if False:\n", (),
        "storage/test_changing.py", (),
    ),
    Plant(
        "a pipe in the place of a file is waited for", "kwire/storage/places/filesystem.py",
        "            return os.open(name, flags | os.O_NONBLOCK)\n", "            return os.open(name, flags)\n", (),
        "changing_folders", ("--seconds", "300"), "Timeout",
    ),
    Plant(
        "a folder is visited by each of its names", "kwire/storage/places/discovery.py",
        "found.setdefault(_identity(folder), folder)", "found.setdefault(folder, folder)", (),
        "hostile/test_folders.py", ("-k", "glob", "--timeout", "20"),
    ),
    Plant(
        "a close that is cancelled leaves connections open", "kwire/net/connection.py",
        "        for connection in connections:\n            connection.abort()\n", "", (),
        "net/test_cancelled.py", ("-k", "cancelled_close"), "cancelled after",
    ),
    Plant(
        "a proxy that is cancelled leaves its tasks", "kwire/fleet/proxy.py",
        "        finally:\n            for one in both:\n                one.cancel()\n", "        finally:\n", (),
        "fleet/test_cancelled.py", (),
    ),
    Plant(
        "a compaction counts records of aborted transactions", "kwire/fleet/logs/retention.py",
        """            if batch.is_control or (batch.is_transactional and _is_in(
                    aborted.get(batch.producer_id, []), batch.base_offset)):
""",
        "            if batch.is_control:\n", (), "fleet_compactions", ("--seconds", "120"), "expected {",
    ),
    Plant(
        "the keys of users are printed", "kwire/storage/metadata/record_json.py", "_SECRET_FIELDS.get(name, ())",
        "()", (), "cli/test_snapshot.py", (), "test_nothing_that_is_printed",
    ),
    Plant(
        "output that does not wait is cut", "kwire/cli/run.py",
        "        if isinstance(stream.buffer, io.RawIOBase):", "        if False:", (),
        "cli/test_output.py", ("-k", "takes_no_more or does_not_wait"),
    ),
)


def tried(plant: Plant) -> subprocess.CompletedProcess[str]:
    """What the harness says of a copy with the fault in it."""
    with tempfile.TemporaryDirectory(prefix="kwire-plant.") as scratch:
        tree = Path(scratch)
        for name in ("kwire", "kwire_c", "tests", "tools"):
            ignored = shutil.ignore_patterns("__pycache__", *(["data"] if name == "tests" else []))
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        (tree / "tests" / "data").symlink_to(ROOT / "tests" / "data")
        for name in ("setup.py", "pyproject.toml"):
            shutil.copy(ROOT / name, tree)
        path = tree / plant.file
        text = path.read_text()
        assert text.count(plant.old) == 1, f"{plant.name}: its place is not there, or not alone"
        path.write_text(text.replace(plant.old, plant.new))
        environment = os.environ | {"PYTHONPATH": str(tree), "KWIRE_ONLY": ",".join(plant.builds)}
        if plant.builds:
            command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "-j2"]
            built = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
            assert built.returncode == 0, built.stderr[-4000:]
        code = f"import kwire, kwire_c; assert all(one.__file__.startswith({str(tree)!r}) for one in (kwire, kwire_c))"
        subprocess.run([sys.executable, "-c", code], cwd=tree, env=environment, check=True)
        command = ["-W", "ignore", "-m", f"tests.hostile.{plant.harness}", *plant.arguments]
        if plant.harness.endswith(".py"):
            command = ["-m", "pytest", "-q", "-x", f"tests/{plant.harness}", *plant.arguments]
        return subprocess.run(
            [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, timeout=1500)


def main(names: list[str]) -> int:
    missed = 0
    for plant in PLANTS:
        if not names or any(name in plant.name or name == plant.harness for name in names):
            ran = tried(plant)
            found = ran.returncode != 0 and plant.report in ran.stdout + ran.stderr
            missed += not found
            last = [line for line in (ran.stderr or ran.stdout).splitlines() if line.strip()][-3:]
            print(f"{'found' if found else 'MISSED'} by {plant.harness}: {plant.name}", *last, sep="\n    ", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
