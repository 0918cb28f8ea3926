"""Deliberate mistakes: parts of the server replaced by wrong ones, which a simulation has to detect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from msmqwire.errors import MsmqError
from msmqwire.ncp.constants import JobControlFlags
from msmqwire.netware.model.changes import DeleteJob, DeleteJobFile, PutJob, PutOrder, SyncJobFile
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import Job, JobState
from msmqwire.netware.model.queue import JobQueue
from msmqwire.netware.protocol.session import NcpSession
from msmqwire.netware.rules.job_life import JobLife
from msmqwire.netware.rules.open_files import OpenFiles
from msmqwire.netware.runtime.ncp_listener import NcpListener
from msmqwire.netware.sim.disk import Effect, SimulatedVolumes
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.netware.store.row_changes import RowChanges
from msmqwire.service.driver import Driver
from msmqwire.service.virtual.mistake import Mistake, nothing


def _answer_at_once(original: Any) -> Any:
    async def durable(driver: Any) -> None:
        async def later() -> None:
            with suppress(MsmqError):
                await original(driver)

        asyncio.get_running_loop().create_task(later())

    return durable


def _deletes_first(original: Any) -> Any:
    def prepare(volumes: Any, changes: Any, *, recovering: bool = False) -> None:
        original(volumes, changes, recovering=recovering)
        for change in changes:
            if isinstance(change, DeleteJobFile):
                volumes._power.effect(Effect.DELETE)
                volumes._disk.files.pop(StoredJobFile(change.queue_id, change.job_number), None)
        volumes._disk.sync_names()

    return prepare


def _without_syncs(original: Any) -> Any:
    def prepare(volumes: Any, changes: Any, *, recovering: bool = False) -> None:
        original(volumes, [one for one in changes if not isinstance(one, SyncJobFile)], recovering=recovering)

    return prepare


def _without_rows(*kinds: type) -> Callable[[Any], Any]:
    def replaced(original: Any) -> Any:
        def add(rows: Any, change: Any, result: Any) -> None:
            if not isinstance(change, kinds):
                original(rows, change, result)

        return add

    return replaced


def _start_in_memory(original: Any) -> Any:
    def start(life: Any, queue: Any, job: Any) -> None:
        original(life, queue, job)
        life._changes[:] = [one for one in life._changes if not isinstance(one, PutJob)]

    return start


def _ready_if(state: JobState) -> Callable[[Any], Any]:
    def replaced(original: Any) -> Any:
        def of(job: Any, now: Any) -> JobState:
            found: JobState = original(job, now)
            return JobState.READY if found is state else found

        return of

    return replaced


def _with_flag_swapped(flag: JobControlFlags) -> Callable[[Any], Any]:
    """Return the replacement of a function that depends on a flag: the job keeps its flags nevertheless."""

    def replaced(original: Any) -> Any:
        def fail(life: Any, queue: Any, job: Any) -> None:
            original(life, queue, replace(job, job_control_flags=job.job_control_flags ^ flag))
            left = queue.jobs.get(job.job_number)
            if left is not None:
                flags = left.job_control_flags ^ flag
                life.put(queue, replace(left, job_control_flags=flags))

        return fail

    return replaced


def _counted_from_zero(original: Any) -> Any:
    def entry(queue: Any, number: int) -> Job:
        found: Job = original(queue, number)
        return replace(found, job_position=found.job_position - 1)

    return entry


def _one_too_far(original: Any) -> Any:
    return lambda life, queue, number, position: original(life, queue, number, position + 1)


def _without_memory(original: Any) -> Any:
    def received(session: Any, packet: bytes, room: int = 0) -> Any:
        if not session.is_busy:
            session._last = None
        return original(session, packet, room)

    return received


def _give_up_nothing(_original: Any) -> Any:
    async def give_up(*_: Any) -> None:
        """Give up nothing."""

    return give_up


_HOLD, _OPEN = _ready_if(JobState.HELD), _ready_if(JobState.OPEN)
_AUTO_START, _RESTART = JobControlFlags.NWCF_SERVICE_AUTO_START, JobControlFlags.NWCF_SERVICE_RESTART
_LOST: Final = frozenset(
    {JobInvariant.KEPT, JobInvariant.GONE, JobInvariant.FLAGS, JobInvariant.TRUTHFUL, JobInvariant.REFUSED}
)


def _by(*invariants: JobInvariant) -> frozenset[JobInvariant]:
    return frozenset(invariants)


MISTAKES: Final[Mapping[str, Mistake]] = {
    "calls are answered before they are durable": Mistake(
        Driver, "durable", _answer_at_once, _LOST | {JobInvariant.ONE_SERVER}
    ),
    "files are deleted before the rows": Mistake(
        SimulatedVolumes, "prepare", _deletes_first, _by(JobInvariant.FILES, JobInvariant.FLAGS)
    ),
    "data are not synced": Mistake(SimulatedVolumes, "prepare", _without_syncs, _by(JobInvariant.TRUTHFUL)),
    "the order is not stored": Mistake(
        RowChanges, "_add", _without_rows(PutOrder), _by(JobInvariant.NO_ERRORS, JobInvariant.ORDER)
    ),
    "finished jobs keep their rows": Mistake(
        RowChanges, "_add", _without_rows(DeleteJob), _by(JobInvariant.NO_ERRORS, JobInvariant.ORDER)
    ),
    "the start of a job is not stored": Mistake(
        JobLife, "start", _start_in_memory, _by(JobInvariant.KEPT, JobInvariant.FLAGS)
    ),
    "the server's fields stay when its service ends": Mistake(
        Job,
        "idle",
        lambda _original: lambda job: job,
        _by(JobInvariant.FLAGS, JobInvariant.TRUTHFUL, JobInvariant.REFUSED),
    ),
    "NWCF_SERVICE_RESTART is inverted": Mistake(
        JobLife,
        "fail_service",
        _with_flag_swapped(_RESTART),
        _by(JobInvariant.FLAGS, JobInvariant.KEPT, JobInvariant.GONE),
    ),
    "NWCF_SERVICE_AUTO_START is inverted": Mistake(
        JobLife,
        "fail_submission",
        _with_flag_swapped(_AUTO_START),
        _by(JobInvariant.FLAGS, JobInvariant.KEPT),
    ),
    "held jobs are given out": Mistake(Job, "state", _HOLD, _by(JobInvariant.ELIGIBLE)),
    "open jobs are given out": Mistake(Job, "state", _OPEN, _by(JobInvariant.ELIGIBLE)),
    "jobs are given out before their time": Mistake(
        Job, "state", _ready_if(JobState.WAITING), _by(JobInvariant.ELIGIBLE)
    ),
    "jobs in service are given out": Mistake(
        Job, "state", _ready_if(JobState.IN_SERVICE), _by(JobInvariant.ONE_SERVER)
    ),
    "positions count from 0": Mistake(JobQueue, "entry", _counted_from_zero, _by(JobInvariant.ORDER)),
    "a job is placed one too far": Mistake(JobLife, "place", _one_too_far, _by(JobInvariant.ORDER)),
    "repeated requests are performed again": Mistake(
        NcpSession, "received", _without_memory, _by(JobInvariant.REPEATED)
    ),
    "lost connections are not noticed": Mistake(
        NcpListener,
        "_give_up",
        _give_up_nothing,
        _by(JobInvariant.FLAGS, JobInvariant.ENDS, JobInvariant.KEPT, JobInvariant.REFUSED),
    ),
    "bytes of deleted files stay accounted for": Mistake(
        OpenFiles, "delete", nothing, _by(JobInvariant.FILES)
    ),
}
