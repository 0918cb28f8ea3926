"""Arrays between inaccessible pages, for compiled code that checks no bounds itself.

An array ends where a page without access begins, so that a read or write past it ends the process; before it
are canaries, and another such page. Uninitialised memory has a chosen pattern: results that depend on it
differ from pattern to pattern.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import numpy as np

PAGE: Final = mmap.PAGESIZE
CANARY: Final = 0xC5
FILLED_MAX: Final = 1 << 16
"""Bytes at either end of an array that get the pattern: the whole of the largest would take too long."""
_ROOM: Final = "msmqwire.tables."
_COMPILED: Final = "msmqwire.tables.compiled."
_PROT_NONE: Final = 0
_mprotect: Final = ctypes.CDLL(None, use_errno=True).mprotect


class GuardedNumpy:
    """numpy, but that new arrays are guarded.

    Args:
        fill: the pattern of uninitialised memory, a byte.
    """

    def __init__(self, fill: int) -> None:
        self._fill = fill
        self._slacks: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an array filled with the pattern."""
        array = self._array(shape, dtype)
        raw = array.reshape(-1).view(np.uint8)
        raw[:FILLED_MAX] = self._fill
        raw[-FILLED_MAX:] = self._fill
        return array

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an array of zeros."""
        return self._array(shape, dtype)

    def full(self, shape: int | tuple[int, ...], value: Any, dtype: Any = None) -> Any:
        """Return an array of one value."""
        array = self._array(shape, np.int64 if dtype is None else dtype)
        array[...] = value
        return array

    def check(self) -> None:
        """Raise AssertionError if a canary before an array is gone; forget the arrays."""
        for slack in self._slacks:
            assert (slack == CANARY).all(), "written before the start of an array"
        self._slacks.clear()

    def _array(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        size = int(count) * np.dtype(dtype).itemsize  # it may be one of numpy
        whole = mmap.mmap(-1, (-(-size // PAGE) + 2) * PAGE)
        end = len(whole) - PAGE
        # No part of another array: what is made of it then refers to it, as with any array.
        array = np.frombuffer(whole, np.uint8, size, end - size)
        slack = np.frombuffer(whole, np.uint8, end - size - PAGE, PAGE)
        slack[:] = CANARY
        start = array.ctypes.data + size - end
        for page in (0, end):
            if _mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(PAGE), _PROT_NONE):
                raise OSError(ctypes.get_errno(), "no guard page")
        self._slacks.append(slack)
        return array if array.dtype == dtype and shape == size else array.view(dtype).reshape(shape)


@contextmanager
def guarded_arrays(fill: int) -> Iterator[GuardedNumpy]:
    """Let all that is around compiled code make its arrays guarded; look at the canaries at the end."""
    numpy = GuardedNumpy(fill)
    around = [
        module
        for name, module in sys.modules.items()
        if name.startswith(_ROOM) and not name.startswith(_COMPILED) and hasattr(module, "np")
    ]
    patches = [mock.patch.object(module, "np", numpy) for module in around]
    for patch in patches:
        patch.start()
    try:
        yield numpy
    finally:
        for patch in patches:
            patch.stop()
    numpy.check()
