"""The replies to clients and queue servers about each job, and its possible states by them.

A call that was made and not answered may have had its effect or not; so may one whose answer has not arrived.
The ledger therefore keeps a set of states for each job, now and at any time before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, TypeVar

from msmqwire.ncp.constants import QUEUE_RECORD_SIZE, JobControlFlags
from msmqwire.netware.model.job import JobRequest
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.service.virtual.violation import Violation

T = TypeVar("T")
_ID_SIZE: Final = 4


class LedgerState(Enum):
    """The place of a job."""

    ABSENT = auto()
    OPEN = auto()
    QUEUED = auto()
    TAKEN = auto()
    GONE = auto()


LIVE: Final = frozenset({LedgerState.OPEN, LedgerState.QUEUED, LedgerState.TAKEN})


@dataclass(eq=False, slots=True)
class Asked:
    """A call about a job that may have its effect from now on.

    Attributes:
        sources, target: the states that it changes, and the state it leads to; None if it only requires them.
        at: the step of the ledger at which it was made.
    """

    sources: frozenset[LedgerState]
    target: LedgerState | None
    at: int


@dataclass(eq=False, slots=True)
class KnownJob:
    """The knowledge about a job.

    Attributes:
        id: its ID in the queueRecord.
        request: its client's request.
        body: the bytes of its file whose writing the server has confirmed.
        asked_body: the bytes that may be there, too.
        is_whole: whether its start was confirmed, so that exactly `asked_body` is its file.
        crashed: whether the server was killed before that.
        states: its possible states.
        reported_gone: whether its end or removal was confirmed.
        taker: the connection that got it for service.
        history: the states since each step.
        holds: whether it may be held, and may not, since each step.
        pending: calls that may have their effect.
        reported_at: the step of the last reply about its state.
    """

    id: int
    request: JobRequest
    body: bytes = b""
    asked_body: bytes = b""
    is_whole: bool = False
    crashed: bool = False
    states: frozenset[LedgerState] = frozenset({LedgerState.ABSENT})
    reported_gone: bool = False
    taker: object = None
    history: list[tuple[int, frozenset[LedgerState]]] = field(default_factory=list)
    holds: list[tuple[int, frozenset[bool]]] = field(default_factory=list)
    pending: list[Asked] = field(default_factory=list)
    reported_at: int = 0

    @property
    def auto_start(self) -> bool:
        return bool(self.request.job_control_flags & JobControlFlags.NWCF_SERVICE_AUTO_START)

    @property
    def restart(self) -> bool:
        return bool(self.request.job_control_flags & JobControlFlags.NWCF_SERVICE_RESTART)

    @property
    def when_submission_fails(self) -> LedgerState:
        return LedgerState.QUEUED if self.auto_start else LedgerState.GONE

    @property
    def when_service_fails(self) -> LedgerState:
        return LedgerState.QUEUED if self.restart else LedgerState.GONE

    def __str__(self) -> str:
        return f"job {self.id} ({self.request.job_control_flags:#04x})"


def queue_record(job_id: int) -> bytes:
    """Return the queueRecord that identifies a job."""
    return job_id.to_bytes(_ID_SIZE, "big").ljust(QUEUE_RECORD_SIZE, b"*")


def since_step(history: Sequence[tuple[int, frozenset[T]]], since: int) -> set[T]:
    """Return all entries of a step and later ones."""
    possible: set[T] = set()
    for at, those in reversed(history):
        possible |= those
        if at <= since:
            break
    return possible


class JobLedger:
    """All jobs that any client has asked for.

    Attributes:
        jobs: by ID.
        step: counts events.
        services: the unanswered requests for a job.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, KnownJob] = {}
        self.step = 0
        self.services: set[object] = set()
        self._service_ended = -1

    def add(self, request: JobRequest) -> KnownJob:
        """Note a job that is to be created with a request, whose queueRecord is that of `next_record`."""
        job = KnownJob(len(self.jobs), request)
        self.jobs[job.id] = job
        self._set(job, job.states)
        self.hold(job, bool(request.job_control_flags & JobControlFlags.NWCF_USER_HOLD))
        return job

    def next_record(self) -> bytes:
        """Return the queueRecord of the next job."""
        return queue_record(len(self.jobs))

    def of_record(self, record: bytes) -> KnownJob:
        """Return the job with a queueRecord. Raises Violation if no client has created it."""
        job = self.jobs.get(int.from_bytes(record[:_ID_SIZE], "big"))
        if job is None or record != queue_record(job.id):
            raise Violation(JobInvariant.TRUTHFUL, f"no client has used the record {record[:8].hex()}")
        return job

    # -- requests and replies --------------------------------------------------------------------------------

    def _set(self, job: KnownJob, states: Iterable[LedgerState]) -> None:
        self.step += 1
        reached = set(states)
        while more := {one.target for one in job.pending if one.target and reached & one.sources} - reached:
            reached |= {state for state in more if state}
        job.states = frozenset(reached)
        job.history.append((self.step, job.states))

    def ask(self, job: KnownJob, sources: Iterable[LedgerState], target: LedgerState | None) -> Asked:
        """A call about a job is under way."""
        asked = Asked(frozenset(sources), target, self.step)
        job.pending.append(asked)
        self._set(job, job.states)
        return asked

    def tell(self, job: KnownJob, asked: Asked, invariant: JobInvariant) -> None:
        """The call has been answered: it had its effect. Raises Violation if it could not."""
        self.forget(job, asked)
        self.check(job, asked.sources, asked.at, invariant)
        if asked.target is not None:
            self.confirm(job, asked.target, asked.at)
            job.reported_gone |= asked.target is LedgerState.GONE

    def confirm(self, job: KnownJob, target: LedgerState, since: int) -> None:
        """A job has entered a state at some time since a step."""
        disturbed = job.reported_at > since
        self._set(job, job.states | {target} if disturbed else {target})
        job.reported_at = self.step

    def check(
        self, job: KnownJob, sources: Iterable[LedgerState], since: int, invariant: JobInvariant
    ) -> None:
        """Check that a job can have been in one of these states at some time since a step."""
        possible = since_step(job.history, since)
        if possible.isdisjoint(sources):
            known = "/".join(sorted(state.name for state in possible))
            raise Violation(invariant, f"{job} is {known}")

    def hold(self, job: KnownJob, held: bool, *, confirmed: bool = True) -> None:
        """A job is held or released, or may be."""
        before = frozenset() if confirmed else job.holds[-1][1]
        self.step += 1
        job.holds.append((self.step, before | {held}))

    def forget(self, job: KnownJob, asked: Asked) -> None:
        """A call has had its effect, was refused, or can't have an effect any more."""
        if asked in job.pending:
            job.pending.remove(asked)

    def settle(self, job: KnownJob, asked: Asked) -> None:
        """A call has had its effect for certain, if the job was in one of its states."""
        if asked in job.pending:
            job.pending.remove(asked)
            target = asked.target
            self._set(job, {target if target and state in asked.sources else state for state in job.states})

    def may_refuse(self, job: KnownJob, asked: Asked) -> bool:
        """Return whether a call may have been refused because of the state of its job.

        A queue server that waits for an answer may have any job that can be given out.
        """
        possible = since_step(job.history, asked.at)
        if LedgerState.QUEUED in possible and (self.services or self._service_ended >= asked.at):
            possible |= {LedgerState.TAKEN, job.when_service_fails}
        return not possible <= asked.sources

    def service_ended(self, service: object) -> None:
        """A request for a job has been answered, or can't have an effect any more."""
        self.services.discard(service)
        self._service_ended = self.step

    # -- events for all jobs --------------------------------------------------------------------------------

    def service_was_lost(self) -> None:
        """A queue server has asked for a job and does not know whether it got one."""
        for job in self.jobs.values():
            if LedgerState.QUEUED in job.states:
                self._set(job, job.states | {job.when_service_fails})

    def may_restart(self) -> list[tuple[KnownJob, Asked]]:
        """The service may be built anew soon: jobs open or in service may go the way of their flags."""
        return [
            (job, self.ask(job, {source}, target))
            for job in self.jobs.values()
            for source, target in (
                (LedgerState.OPEN, job.when_submission_fails), (LedgerState.TAKEN, job.when_service_fails),
            )
        ]  # fmt: skip

    def connections_lost(self) -> None:
        """The server was killed: all calls under way have had their effect or never will."""
        for job in self.jobs.values():
            job.pending.clear()
            after = {LedgerState.OPEN: job.when_submission_fails, LedgerState.TAKEN: job.when_service_fails}
            if LedgerState.OPEN in job.states:
                job.crashed = True
            self._set(job, {after.get(state, state) for state in job.states})

    # -- observations --------------------------------------------------------------------------------------

    def given(self, job: KnownJob, taker: object, since: int) -> None:
        """A queue server was given a job. Raises Violation if it could not be given out."""
        invariant = JobInvariant.FLAGS
        if job.states <= {LedgerState.TAKEN}:
            invariant = JobInvariant.ONE_SERVER
        elif job.states <= {LedgerState.OPEN}:
            invariant = JobInvariant.ELIGIBLE
        elif job.reported_gone:
            invariant = JobInvariant.GONE
        self.check(job, {LedgerState.QUEUED}, since, invariant)
        if False not in since_step(job.holds, since):
            raise Violation(JobInvariant.ELIGIBLE, f"{job} is held and was given out")
        job.pending = [
            one for one in job.pending if one.sources != {LedgerState.TAKEN}
        ]  # of the servers that had it
        self.confirm(job, LedgerState.TAKEN, since)
        job.taker = taker

    def check_body(self, job: KnownJob, data: bytes) -> None:
        """Check the bytes that a queue server has read. Raises Violation."""
        if job.is_whole:
            right = data == job.asked_body
        elif job.crashed:
            right = len(data) <= len(job.asked_body)
        else:
            right = data.startswith(job.body) and job.asked_body.startswith(data)
        if not right:
            raise Violation(
                JobInvariant.TRUTHFUL, f"{job} has {data!r}, written were {job.body!r} of {job.asked_body!r}"
            )

    def check_present(self, present: Iterable[int]) -> None:
        """Check the jobs in the queues when all calls are answered. Raises Violation."""
        there = set(present)
        for job in self.jobs.values():
            if job.id in there and job.states <= {LedgerState.GONE, LedgerState.ABSENT}:
                raise Violation(JobInvariant.GONE, f"{job} is back")
            if job.id not in there and job.states <= LIVE:
                raise Violation(JobInvariant.KEPT, f"{job} is lost")
