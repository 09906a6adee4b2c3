"""A buffer whose every request is answered with other memory, as __buffer__ of Python 3.12 can: made by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_GET_BUFFER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_BF_GETBUFFER = 1  # the slot's number in typeslots.h, where all are fixed


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
                ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot))]


def fickle(content: Callable[[], bytes]) -> Any:
    """An object that asks content() for its bytes each time that somebody wants its buffer."""

    def get_buffer(_: object, view: int, flags: int) -> int:
        data = content()
        where = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
        fill = ctypes.pythonapi.PyBuffer_FillInfo
        pointer, number = ctypes.c_void_p, ctypes.c_int
        fill.argtypes = [pointer, ctypes.py_object, pointer, ctypes.c_ssize_t, number, number]
        return fill(view, data, where, len(data), 1, flags)

    function = _GET_BUFFER(get_buffer)
    slots = (_Slot * 2)(_Slot(_BF_GETBUFFER, ctypes.cast(function, ctypes.c_void_p)), _Slot(0, None))
    spec = _Spec(b"tests.Fickle", object.__basicsize__, 0, 0, slots)
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    kind = make(ctypes.byref(spec))
    kind.keeps = (function, slots, spec)
    return kind()
