"""Progress of long work, shown on a terminal: a bar, or the event that is waited for."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

PATIENCE_S: Final = 2.0
"""Seconds after which a bar is shown: shorter work needs none."""

Advance = Callable[[int], None]
"""A function that is called with the number of bytes that were read."""


@contextmanager
def byte_progress(total: int | None, what: str = "") -> Iterator[Advance | None]:
    """Show the progress of reading, its rate and the time left, if standard error is a terminal.

    Args:
        total: all bytes; None if unknown.
        what: the words before the bar.

    Yields:
        A function to call with the number of bytes read since the last call; None without a terminal.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        yield _Bar(stack, total, what).advance


@contextmanager
def waiting_shown(state: Callable[[], str]) -> Iterator[None]:
    """Print the event that is waited for, if standard error is a terminal, whenever it has changed for
    `PATIENCE_S`.

    `state` returns that; it is called on another thread.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    over = threading.Event()

    def show() -> None:
        shown = ""
        while not over.wait(PATIENCE_S):
            words = state()
            if words != shown:
                print(words, file=sys.stderr, flush=True)
            shown = words

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Bar:
    """A bar of rich that appears once its time has come."""

    def __init__(self, stack: ExitStack, total: int | None, what: str) -> None:
        self._stack, self._total, self._what = stack, total, what
        self._since = time.monotonic()
        self._count = 0
        self._progress: Any = None
        self._task: Any = None

    def advance(self, count: int) -> None:
        self._count += count
        if self._progress is not None:
            self._progress.update(self._task, completed=self._count)
        elif time.monotonic() - self._since >= PATIENCE_S:
            self._show()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = [BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()]
        if self._what:
            columns.insert(0, TextColumn(self._what))
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress = self._stack.enter_context(bar)
        self._task = bar.add_task(self._what, total=self._total, completed=self._count)
