"""The Arrow C interfaces as a consumer in C sees them: what nobody takes, children taken alone, the end of a stream."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy
import pytest

import kwire

pytestmark = pytest.mark.quick
HEADERS = [(0, b"k", b"v", [("h", b"x"), ("n", None)]), (1, None, b"w")]
release_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Array(ctypes.Structure):
    """struct ArrowArray."""


Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)), ("release", release_type), ("private_data", ctypes.c_void_p),
]  # fmt: skip


class Stream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", release_type), ("private_data", ctypes.c_void_p),
    )  # fmt: skip


def inside(capsule: Any, name: bytes, kind: Any) -> Any:
    """The structure in a capsule, which must outlive it."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return kind.from_address(pointer(capsule, name))


def watched() -> tuple[numpy.ndarray[Any, Any], Any]:
    """An input of which one can tell whether it is still alive."""
    data = numpy.frombuffer(kwire.build_batch(HEADERS), dtype=numpy.uint8).copy()
    return data, weakref.ref(data)


def test_capsules_that_nobody_takes_free_what_they_hold() -> None:
    data, alive = watched()
    columns = kwire.columns(data, ["value", "headers"], views=True)
    held = [columns.__arrow_c_stream__(), columns["headers"].__arrow_c_array__(), columns["value"].__arrow_c_stream__()]
    del data, columns
    gc.collect()
    assert alive() is not None
    held.clear()
    gc.collect()
    assert alive() is None


def test_a_child_may_be_taken_and_released_alone() -> None:
    """As the specification has it: who moves a child marks it released, the parent then leaves it alone."""
    data, alive = watched()
    columns = kwire.columns(data, ["value", "headers"], views=True)
    capsules = columns["headers"].__arrow_c_array__()
    array = inside(capsules[1], b"arrow_array", Array)
    assert (array.length, array.n_children, array.children[0].contents.n_children) == (2, 1, 2)
    pairs = array.children[0].contents
    pairs.children[0].contents.release(ctypes.addressof(pairs.children[0].contents))
    assert not pairs.children[0].contents.release
    assert pairs.children[1].contents.length == 2
    del data, columns, array, pairs, capsules
    gc.collect()
    assert alive() is None


# Runs in a process of its own. A handler of C's atexit, which runs after Python has ended, releases what was moved out
# of the capsules; the C library calls it with an address that nothing frees.
AT_EXIT = """
import ctypes
import kwire
pointer, malloc = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.CDLL(None).malloc
pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
malloc.restype, malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
on_exit = ctypes.CDLL(None).__cxa_atexit
on_exit.restype, on_exit.argtypes = ctypes.c_int, (ctypes.c_void_p,) * 3
columns = kwire.columns(kwire.build_batch([(1, b"k", b"v")]))
given = [(columns.__arrow_c_stream__(), b"arrow_array_stream", 40, 24)]
schema, array = columns["key"].__arrow_c_array__()
for capsule, name, size, release in [*given, (schema, b"arrow_schema", 72, 56), (array, b"arrow_array", 80, 64)]:
    source, moved = pointer(capsule, name), malloc(size)
    ctypes.memmove(moved, source, size)
    held = ctypes.c_void_p.from_address(source + release)
    assert on_exit(held.value, moved, None) == 0
    held.value = None
print("moved")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="calls __cxa_atexit")
def test_releases_after_python_has_ended() -> None:
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "moved\n", "")


def test_the_end_of_a_stream() -> None:
    capsule = kwire.columns(kwire.build_batch(HEADERS)).__arrow_c_stream__()
    stream = inside(capsule, b"arrow_array_stream", Stream)
    where, array, lengths = ctypes.addressof(stream), Array(), []
    for _ in range(3):
        assert stream.get_next(where, ctypes.byref(array)) == 0
        lengths.append(array.length if array.release else None)
        if array.release:
            array.release(ctypes.addressof(array))
    assert lengths == [2, None, None]  # the end stays the end
    assert stream.get_last_error(where)
    stream.release(where)
    assert not stream.release
