"""Parts by processes: each writes its own, and one that is killed is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Final, TypeVar

from msmqwire.capture.window import Window
from msmqwire.errors import LakeError
from msmqwire.tables.exact_parts import SURVEYORS_MIN, MapWindows
from msmqwire.tables.lake.part_writer import NumberedPart, PartFiles, PartWriter

if TYPE_CHECKING:
    from msmqwire.tables.part_survey import PartSurvey

Item = TypeVar("Item")
Result = TypeVar("Result")
_AHEAD: Final = 4
"""Surveys for each process that are made before they are used; each may keep `part_survey.KEPT_MAX` bytes."""
ATTEMPTS_MAX: Final = 3
"""Pools of processes that may break before a run is given up."""


def write_parts(
    writer: PartWriter, parts: Sequence[NumberedPart], workers: int
) -> Iterator[tuple[int, PartFiles]]:
    """Yield the place of each part in the list with its result, as they come.

    A single worker, or a single part, is this process.

    Args:
        writer: writes each.
        parts: the parts.
        workers: processes; they import the main module of this one, as `multiprocessing` does.

    Raises:
        LakeError: processes were killed again and again.
        OSError: a file can't be read or written.
    """
    return _results(writer.write, parts, workers, writer.place.shown)


def surveys_by_processes(workers: int, lake: str) -> MapWindows | None:
    """Return the pool that surveys windows in processes; None if they are too few to be of use.

    Its result raises as `write_parts` does.
    """
    if workers < SURVEYORS_MIN:
        return None

    def surveys(make: Callable[[Window], PartSurvey], windows: Sequence[Window]) -> Iterator[PartSurvey]:
        for start in range(0, len(windows), _AHEAD * workers):
            group = windows[start : start + _AHEAD * workers]
            made = dict(_results(make, group, workers, lake))
            yield from (made.pop(number) for number in range(len(group)))

    return surveys


def _results(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int, lake: str
) -> Iterator[tuple[int, Result]]:
    """Yield the number of each item with its result, as they come."""
    if min(workers, len(items)) <= 1:
        yield from ((number, work(item)) for number, item in enumerate(items))
        return
    waiting = dict(enumerate(items))
    for _ in range(ATTEMPTS_MAX):
        yield from _pool_round(work, waiting, workers)
        if not waiting:
            return
    raise LakeError(
        f"worker processes were killed {ATTEMPTS_MAX} times; was there too little memory?", file=lake
    )


def _pool_round(
    work: Callable[[Item], Result], waiting: dict[int, Item], workers: int
) -> Iterator[tuple[int, Result]]:
    """Yield the results of a pool, and remove them from `waiting`; items of a killed process are left
    there.
    """
    # Spawned, not forked: threads of Arrow do not survive a fork.
    context = multiprocessing.get_context("spawn")
    stop_reader, stop = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        min(workers, len(waiting)), mp_context=context, initializer=_end_with_parent, initargs=(stop_reader,)
    )
    try:
        futures: dict[Future[Result], int] = {}
        try:
            with _interrupts_later():
                futures = {pool.submit(work, item): number for number, item in waiting.items()}
        except BrokenProcessPool:
            return
        for future in as_completed(futures):
            try:
                result = future.result()
            except BrokenProcessPool:
                continue
            del waiting[futures[future]]
            yield futures[future], result
    except BaseException:
        stop.close()  # the work of the processes is lost
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        stop.close()
        stop_reader.close()


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Have Ctrl-C wait, and not reach processes that are started meanwhile: their parent ends them."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(stop: Connection) -> None:
    """End this process when its parent ends, even if that is killed, or closes the other end of a pipe."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel, stop])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
