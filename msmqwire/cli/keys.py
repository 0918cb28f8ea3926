"""Keys that are pressed on a terminal, without waiting for the end of a line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_POLL_S: Final = 0.05
Wait = Callable[[float], str]
"""Waits a number of seconds for a key; returns it, or an empty text if none was pressed."""


@contextmanager
def keys() -> Iterator[Wait]:
    """Read single keys from standard input while the block runs, if it is a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield _none
    elif sys.platform == "win32":
        yield _of_windows
    else:
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        try:
            tty.setcbreak(descriptor)
            yield _of_posix
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _none(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _of_posix(seconds: float) -> str:
    import os
    import select

    descriptor = sys.stdin.fileno()
    ready, _, _ = select.select([descriptor], [], [], seconds)
    return os.read(descriptor, 1).decode("latin-1") if ready else ""


def _of_windows(seconds: float) -> str:
    if sys.platform == "win32":
        import msvcrt

        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if msvcrt.kbhit():
                return msvcrt.getwch()
            time.sleep(_POLL_S)
    return ""
