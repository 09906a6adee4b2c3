"""Iterators that threads may share: each item goes to one of them, once."""

import os
import sys
from functools import partial
from time import sleep
from types import GenericAlias

from cpython.exc cimport PyErr_Occurred
from cpython.iterator cimport PyIter_Check
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from kwire_c.core cimport PyIter_Next

cdef double PAUSE = 0.0002  # seconds between two looks whether another thread has left the generator
cdef int MISSES = 20  # looks at which no thread was in a generator that says it is executing


cdef class SharedIterator:
    """The items of a generator, of which threads wait for each other.

    grouped=True: the generator gives iterators, and their items are taken in turn, without a Python frame for each. The
    generator gets what such an iterator raises at its yield, as with `yield from`.

    Raises RuntimeError where it is asked for an item while the same thread makes one (user code that it calls), and in
    a child of fork whose parent was making one in another thread. There is no lock: Python lets one thread at a time
    into a generator, and nothing is paid for where nobody waits.
    """

    cdef object items
    cdef object group
    cdef bint grouped
    cdef object process
    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, items, *, bint grouped=False):
        if isinstance(items, SharedIterator):  # it could be itself
            raise TypeError("items must be a generator, not a SharedIterator")
        self.items = items
        self.grouped = grouped
        self.process = os.getpid()

    def __iter__(self):
        return self

    def __next__(self):
        cdef PyObject *found
        cdef int misses = 0
        while True:
            group = self.group
            if group is not None:
                found = PyIter_Next(group)  # what a try around next() costs would be a third of a record's time
                if found is not NULL:
                    item = <object>found
                    Py_DECREF(item)
                    return item
                if self.group is group:
                    self.group = None
                if PyErr_Occurred() is not NULL:
                    self.fail()
                group = None  # what its end runs comes before the next look at self.group
                continue  # another thread may have the next group here
            if not PyIter_Check(self.items):
                raise TypeError("a SharedIterator without its items")
            found = PyIter_Next(self.items)
            if found is not NULL:
                item = <object>found
                Py_DECREF(item)
                if not self.grouped:
                    return item
                self.begin(item)  # no thread was let in between: none was left to take
                item = None
                continue
            if PyErr_Occurred() is NULL:
                raise StopIteration
            try:
                raise_occurred()
            except ValueError as error:
                if not is_busy(error):
                    raise
            misses = self.pause(misses)

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def close(self):
        """End it, so that what it holds open is closed."""
        self.wait(self.items.close)
        self.group = None

    cdef int begin(self, group) except -1:
        """Take the items of a group from now on."""
        if not PyIter_Check(group):
            raise TypeError("a grouped SharedIterator whose items are no iterators")
        self.group = group
        return 0

    cdef int fail(self) except -1:
        """Raise in the generator what an iterator of its group raised; if it goes on, it gives the next one."""
        try:
            raise_occurred()
        except BaseException as error:
            self.begin(self.wait(partial(self.items.throw, error)))
        return 0

    cdef object wait(self, work):
        """What work gives when no other thread is in the generator any more."""
        cdef int misses = 0
        while True:
            try:
                return work()
            except ValueError as error:
                if not is_busy(error):
                    raise
            misses = self.pause(misses)

    cdef int pause(self, int misses) except -1:
        """Let another thread leave the generator. Returns in how many pauses in a row no thread was seen in it."""
        frame = self.items.gi_frame
        if is_inside(sys._getframe(), frame):
            raise RuntimeError("this iterator is making an item already: it cannot be used inside of that")
        if os.getpid() != self.process:  # in a child of fork the thread that was in it is not there
            there = False
            for inner in sys._current_frames().values():
                there = there or is_inside(inner, frame)
            misses = 0 if there else misses + 1
            if misses > MISSES:
                raise RuntimeError("this iterator was making an item when the process forked: it cannot go on here")
        sleep(PAUSE)
        return misses


cdef int raise_occurred() except -1:
    return -1


cdef bint is_busy(error):
    """Is it Python's own for a generator that is executing, and none from inside of it?"""
    trace = error.__traceback__  # one entry, of this module; an error from inside has the generator's below
    return error.args == ("generator already executing",) and (trace is None or trace.tb_next is None)


cdef bint is_inside(inner, frame):
    """Is a frame among the calls that lead to another?"""
    while inner is not None:
        if inner is frame:
            return True
        inner = inner.f_back
    return False


def unshared(items):
    """The generator in a SharedIterator, for another one that goes through it alone; not if it is grouped."""
    if isinstance(items, SharedIterator) and not (<SharedIterator>items).grouped:
        return (<SharedIterator>items).items
    return items


def groups_of(SharedIterator items not None):
    """The generator in a grouped SharedIterator, for another one that goes through it alone."""
    return items.items
