"""A lake that follows its captures: whatever is new and complete in them is committed as it comes."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msmqwire.analysis.dissection.message_security import FileContent
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import CaptureWarning, InvalidArgument
from msmqwire.names.printable import counted, safe
from msmqwire.tables import Where
from msmqwire.tables.filters import need_findings
from msmqwire.tables.lake.part_writer import NumberedPart, PartFiles, PartWriter
from msmqwire.tables.lake.partitions import By
from msmqwire.tables.lake.planning import SPLIT_SIZE
from msmqwire.tables.lake.runs import LakeCommit, Run, check_least, new_run
from msmqwire.tables.lake.step_planning import Notice, StepPlanner
from msmqwire.tables.lake.watching import Look, Watch

EVERY: Final = 10.0
"""Seconds between two looks."""
_RELEASED_EVERY: Final = 16
"""Commits after which freed memory is given back: that takes about as long as a small commit."""


def follow_lake(
    captures: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    every: float = EVERY,
    stop: threading.Event | None = None,
    by: By | None = None,
    columns: Collection[str] | None = None,
    findings: bool = False,
    where: Where = (),
    ports: Collection[int] = (),
    body_limit: int | None = None,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
    step_size: int = SPLIT_SIZE,
    storage_options: StorageOptions = NO_OPTIONS,
    notice: Notice | None = None,
) -> Iterator[LakeCommit]:
    """Add to a lake what captures get, as they grow and as new ones come; yield each commit.

    The captures are looked at every so many seconds. What is new is read up to the end of the last record
    that is complete, and committed at once; nothing is read twice as long as captures only grow at their end.
    The lake has the rows of one reader of all captures, as with ``splits="exact"``: `write_lake` may go on
    with it, and then also has what is incomplete at the end.

    A capture that is replaced, becomes shorter, or grows after later ones were read is read again, and so are
    those after it. The rows of one that is gone stay.

    Args:
        captures: as for `write_lake`; folders and patterns may have no captures as yet.
        out: as for `write_lake`; a lake that was begun with other splits can't be followed.
        every: seconds between two looks.
        stop: ends it once it is set, after a last look; None to follow until the loop is left.
        by, columns, where, ports, body_limit, keys, certificates, readings, ncp_readings, storage_options: as
            for `write_lake`.
        findings: not possible: sessions are judged from their beginning.
        step_size: bytes that are read and committed at once, about, where more is new.
        notice: gets a line about whatever is not as usual; by default it is a `CaptureWarning`.

    Raises as `write_lake` does, when the first commit is asked for.
    """
    check_least("every", every, 0)
    check_least("step_size", step_size, 1)
    run = new_run(
        out,
        by=by,
        columns=columns,
        findings=findings,
        where=where,
        ports=ports,
        body_limit=body_limit,
        keys=keys,
        certificates=certificates,
        readings=readings,
        ncp_readings=ncp_readings,
        workers=1,
        splits=None,
        storage_options=storage_options,
        progress=None,
        write=None,
    )
    run.new_splits = "exact"
    if need_findings(run.settings["columns"] or (), run.where) or findings:
        raise InvalidArgument(
            "sessions are judged from their beginning, so that each step would read all captures again: leave"
            " out one of the two",
            path="findings",
        )
    say = notice or _warn
    sources = [captures] if isinstance(captures, (str, os.PathLike)) else list(captures)
    follower = _Follower(
        run,
        Watch(sources, storage_options, lambda passed: say(str(passed))),
        StepPlanner(run.place, step_size, run.reader.ports, ncp_readings, storage_options, say),
        stop or threading.Event(),
    )
    return follower.follow(every)


def _release_memory() -> None:
    """Give freed memory back to the system: what many small commits leave, the C library would keep."""
    if sys.platform == "linux":
        gc.collect()  # readers are cycles, with large arrays
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)


def _warn(text: str) -> None:
    warnings.warn(CaptureWarning(text), stacklevel=2)


@dataclass
class _Follower:
    """Follows captures.

    Attributes:
        run: writes and commits.
        watch: looks at the captures.
        planner: plans the steps.
        stop: set when it is to end.
        commits: the number of commits so far.
    """

    run: Run
    watch: Watch
    planner: StepPlanner
    stop: threading.Event
    commits: int = 0

    def __post_init__(self) -> None:
        write = self.run.write

        def keeping_states(
            writer: PartWriter, parts: Sequence[NumberedPart]
        ) -> Iterator[tuple[int, PartFiles]]:
            for place, written in write(replace(writer, keeps_state=True), parts):
                self.planner.keep(written.number, parts[place][1].windows[-1], written.state)
                yield place, replace(written, state=b"")

        self.run.write = keeping_states

    def follow(self, every: float) -> Iterator[LakeCommit]:
        """Yield the commits; look every so many seconds."""
        while True:
            is_final = self.stop.is_set()
            look = self.watch.look()
            if not look.stamps and look.is_new:
                self.planner.notice("there is no capture as yet")
            if look.is_new or is_final or self.planner.waits:
                yield from self._steps(look, is_final=is_final)
            if is_final:
                self._say_left()
                return
            self.stop.wait(min(every, threading.TIMEOUT_MAX))

    def _steps(self, look: Look, *, is_final: bool) -> Iterator[LakeCommit]:
        """Yield the commits after a look: several if much is new, but no more than one once it is to end."""
        while True:
            try:
                commit = self.run.carry_out(
                    lambda state, _: self.planner.plan(look, state, is_final=is_final)
                )
            except FileNotFoundError as exc:
                if exc.filename not in look.stamps or os.path.exists(exc.filename):
                    raise
                return  # it has just gone, which the next look finds
            if self.planner.has_work:
                self.commits += 1
                if self.commits % _RELEASED_EVERY == 0:
                    _release_memory()
                yield commit
            if not self.planner.has_more or self.stop.is_set():
                return

    def _say_left(self) -> None:
        """Say what the lake does not have at the end."""
        for path, size in self.planner.unread.items():
            self.planner.notice(
                f"{safe(path)} ends within a record: {counted(size, 'byte')} are not in the lake"
            )
        if self.planner.has_more:
            self.planner.notice("there is more to be read: the next run goes on with it")
