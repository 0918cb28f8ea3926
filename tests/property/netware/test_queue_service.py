"""Users, operators and queue servers in any order against a list of jobs, written from the chapter alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model import times
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import Job, JobRequest
from msmqwire.netware.model.settings import Settings
from tests.support.netware.queue_service import NOON, QUEUE_ID, QueueServiceHarness

AUTO_START, RESTART, ENTRY_OPEN, USER_HOLD, OPERATOR_HOLD = 0x08, 0x10, 0x20, 0x40, 0x80
JOBS, SERVERS = 5, 1

ROLES = {
    "ALICE": {"user"},
    "BOB": {"user"},
    "OLGA": {"operator"},
    "OLE": {"user", "operator"},
    "PS1": {"server"},
    "PS2": {"server", "user"},
    "EVE": set[str](),
}
MEMBERS = {"user", "operator", "server"}
ACTORS = st.sampled_from(sorted(ROLES))
USERS, OPERATORS, QUEUE_SERVERS = (
    st.sampled_from([name for name, roles in ROLES.items() if role in roles])
    for role in ("user", "operator", "server")
)
THE_RIGHT_ONE = st.none()
"""Stands for whoever the job belongs to, so that calls succeed often enough."""
FLAGS = st.sampled_from(
    [
        0, AUTO_START, RESTART, RESTART, AUTO_START | RESTART, USER_HOLD, OPERATOR_HOLD | RESTART,
        ENTRY_OPEN | 0x8001,
    ]
)  # fmt: skip
PLACES = st.integers(0, JOBS - 1)

STATUSES = st.sampled_from([0, 0, 0, 0, 0, 1, 2, 4])
TYPES = st.sampled_from([(0xFFFF,), (0xFFFF,), (0,), (0, 1)])
STEPS: dict[str, tuple[int, st.SearchStrategy[tuple[object, ...]]]] = {
    "create": (3, st.tuples(USERS | ACTORS, FLAGS, st.integers(0, 1), st.integers(-1, 2))),
    "close": (3, st.tuples(THE_RIGHT_ONE | ACTORS, PLACES, st.sampled_from([True, True, False]))),
    "remove": (1, st.tuples(THE_RIGHT_ONE | ACTORS, PLACES)),
    "change": (2, st.tuples(OPERATORS | ACTORS, PLACES, FLAGS, PLACES)),
    "change_position": (2, st.tuples(OPERATORS | ACTORS, PLACES, st.integers(1, JOBS + 1))),
    "set_status": (1, st.tuples(ACTORS, STATUSES)),
    "attach": (2, st.tuples(QUEUE_SERVERS | ACTORS)),
    "detach": (1, st.tuples(ACTORS)),
    "service": (4, st.tuples(THE_RIGHT_ONE | ACTORS, TYPES)),
    "end_service": (2, st.tuples(THE_RIGHT_ONE | ACTORS, PLACES, st.booleans())),
    "lose_connection": (1, st.tuples(ACTORS)),
    "restart": (1, st.tuples()),
    "time_passes": (1, st.tuples()),
}
"""The calls, with how often they are made, and their arguments."""
STEP = st.one_of(
    [
        st.tuples(st.just(name), arguments)
        for name, (weight, arguments) in STEPS.items()
        for _ in range(weight)
    ]
)


@dataclass
class Expected:
    """A job as the chapter has it."""

    number: int
    owner: str
    flags: int
    job_type: int
    due: int  # seconds after noon
    open_on: str | None = None
    served_by: str | None = None


class QueueAgainstTheChapter(RuleBasedStateMachine):
    """One queue. Each actor has one connection; a lost one is replaced by the next call."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = QueueServiceHarness(Settings(jobs_max=JOBS, servers_max=SERVERS))
        sets = {"user": "Q_USERS", "operator": "Q_OPERATORS", "server": "Q_SERVERS"}
        self.callers: dict[str, Caller] = {}
        for name, roles in ROLES.items():
            object_id = self.harness.object(name)
            for role in roles:
                self.harness.admit(sets[role], object_id)
            self.callers[name] = self.harness.login(name)
        self.jobs: list[Expected] = []
        self.attached: set[str] = set()
        self.status = 0
        self.created = self.finished = self.removed = 0
        self.seconds = 0

    @initialize(server=st.sampled_from(["PS1", "PS2"]), flags=st.lists(FLAGS, min_size=3, max_size=3))
    def begin(self, server: str, flags: list[int]) -> None:
        """A server is attached, and there is a job that is open and others that are started."""
        self.attach(server)
        for owner, given in zip(("ALICE", "OLE", "BOB"), flags, strict=True):
            self.create(owner, given, 0, -1)
        self.close(None, 0, True)
        self.close(None, 0, True)

    @rule(steps=st.lists(STEP, min_size=1, max_size=8))
    def go_on(self, steps: list[tuple[str, tuple[object, ...]]]) -> None:
        for name, arguments in steps:
            getattr(self, name)(*arguments)
            self.the_queue_is_the_list()

    def do(self, call: Callable[..., object], code: int, *arguments: object, **options: object) -> object:
        """Make a call, which has to end with this code."""
        if code:
            with self.harness.refused(CompletionCode(code)):
                call(*arguments, **options)
            return None
        return call(*arguments, **options)

    def job_at(self, place: int) -> Expected | None:
        """The job at a place from 0, if there is one."""
        return self.jobs[place] if place < len(self.jobs) else None

    def code_of(self, actor: str, job: Expected | None, allowed: set[str]) -> int:
        """What a call about a job by an actor gives."""
        roles = ROLES[actor] | ({"owner"} if job is not None and job.owner == actor else set())
        if job is not None and roles & allowed:
            return 0
        if not roles & MEMBERS:
            return 0xD3
        return 0xD5 if job is None else 0xD6

    def forget(self, job: Expected, *, finished: bool = False) -> None:
        """A job is gone."""
        self.jobs.remove(job)
        self.removed += not finished
        self.finished += finished

    def service_failed(self, job: Expected) -> None:
        """The service of a job has ended without success."""
        job.served_by = None
        if not job.flags & RESTART:
            self.forget(job)

    def submission_failed(self, job: Expected) -> None:
        """The client of an open job is gone."""
        job.open_on = None
        if not job.flags & AUTO_START:
            self.forget(job)

    def create(self, actor: str, flags: int, job_type: int, due: int) -> None:
        code = 0
        if "user" not in ROLES[actor]:
            code = 0xD3
        elif self.status & 1:
            code = 0xDA
        elif len(self.jobs) >= JOBS:
            code = 0xD4
        target = b"\xff" * 6 if due < 0 else times.to_bytes(NOON + timedelta(seconds=due))
        request = JobRequest(job_control_flags=flags, job_type=job_type, target_execution_time=target)
        job = self.do(
            self.harness.service.jobs.create, code, self.callers[actor], QUEUE_ID, request, self.harness.now
        )
        if isinstance(job, Job):
            assert job.job_number not in [other.number for other in self.jobs]
            flags &= ~ENTRY_OPEN if "operator" in ROLES[actor] else ~(ENTRY_OPEN | OPERATOR_HOLD)
            self.jobs.append(Expected(job.job_number, actor, flags, job_type, due, open_on=actor))
            self.created += 1

    def close(self, actor: str | None, place: int, start: bool) -> None:
        opened = [job for job in self.jobs if job.open_on is not None]
        job = opened[0] if actor is None and opened else self.job_at(place)
        actor = actor or (job.owner if job is not None else "ALICE")
        code = self.code_of(actor, job, {"owner", *MEMBERS})
        if not code and job is not None and job.open_on != actor:
            code = 0xD6
        jobs = self.harness.service.jobs
        call = jobs.close_and_start if start else jobs.close_and_abort
        self.do(call, code, self.callers[actor], QUEUE_ID, 999 if job is None else job.number)
        if not code and job is not None:
            job.open_on = None
            if not start:
                self.forget(job)

    def remove(self, actor: str | None, place: int) -> None:
        job = self.job_at(place)
        actor = actor or (job.owner if job is not None else "OLGA")
        code = self.code_of(actor, job, {"owner", "operator"})
        number = 999 if job is None else job.number
        self.do(self.harness.service.jobs.remove, code, self.callers[actor], QUEUE_ID, number)
        if not code and job is not None:
            self.forget(job)

    def change(self, actor: str, place: int, flags: int, position: int) -> None:
        job = self.job_at(place)
        code = self.code_of(actor, job, {"owner", "operator", "server"})
        if not code and job is not None and job.served_by is not None:
            code = 0xD7
        request = JobRequest(job_control_flags=flags, job_type=1, job_position=position)
        number = 999 if job is None else job.number
        self.do(self.harness.service.jobs.change_entry, code, self.callers[actor], QUEUE_ID, number, request)
        if code or job is None:
            return
        operator = "operator" in ROLES[actor]
        if not operator:
            flags = flags & ~OPERATOR_HOLD | job.flags & OPERATOR_HOLD
        job.flags, job.job_type, job.due = flags & ~ENTRY_OPEN, 1, -1
        if operator and position:
            self.jobs.remove(job)
            self.jobs.insert(position - 1, job)

    def change_position(self, actor: str, place: int, position: int) -> None:
        job = self.job_at(place)
        code = self.code_of(actor, job, {"operator"})
        number = 999 if job is None else job.number
        call = self.harness.service.jobs.change_position
        self.do(call, code, self.callers[actor], QUEUE_ID, number, position)
        if not code and job is not None:
            self.jobs.remove(job)
            self.jobs.insert(position - 1, job)

    def set_status(self, actor: str, status: int) -> None:
        code = 0 if "operator" in ROLES[actor] else 0xD3
        self.do(self.harness.service.queues.set_status, code, self.callers[actor], QUEUE_ID, status)
        self.status = self.status if code else status

    def attach(self, actor: str) -> None:
        code = 0
        if "server" not in ROLES[actor]:
            code = 0xD3
        elif actor not in self.attached:
            code = 0xDA if self.status & 2 else 0xDB if len(self.attached) >= SERVERS else 0
        self.do(self.harness.service.servicing.attach, code, self.callers[actor], QUEUE_ID)
        if not code:
            self.attached.add(actor)

    def detach(self, actor: str) -> None:
        code = 0 if actor in self.attached else 0xD9
        self.do(self.harness.service.servicing.detach, code, self.callers[actor], QUEUE_ID)
        self.attached.discard(actor)
        for job in [job for job in self.jobs if job.served_by == actor]:
            self.service_failed(job)

    def service(self, actor: str | None, types: tuple[int, ...]) -> None:
        actor = actor or min(self.attached, default="PS1")
        fits = [
            job
            for job in self.jobs
            if job.open_on is None
            and job.served_by is None
            and not job.flags & (USER_HOLD | OPERATOR_HOLD)
            and job.due <= self.seconds
            and (types == (0xFFFF,) or job.job_type in types)
        ]
        code = 0
        if actor not in self.attached:
            code = 0xD9
        elif self.status & 4:
            code = 0xDA
        elif not fits:
            code = 0xD5
        call, now = self.harness.service.servicing.service, self.harness.now
        served = self.do(call, code, self.callers[actor], QUEUE_ID, types, now=now)
        if isinstance(served, Job):
            assert served.job_number == fits[0].number
            fits[0].served_by = actor

    def end_service(self, actor: str | None, place: int, finish: bool) -> None:
        served = [job for job in self.jobs if job.served_by is not None]
        job = served[0] if actor is None and served else self.job_at(place)
        actor = actor or (job.served_by if job is not None else None) or "PS1"
        code = 0
        if actor not in self.attached:
            code = 0xD9
        elif job is None:
            code = 0xD5
        elif job.served_by != actor:
            code = 0xD6
        servicing = self.harness.service.servicing
        call = servicing.finish if finish else servicing.abort
        self.do(call, code, self.callers[actor], QUEUE_ID, 999 if job is None else job.number)
        if not code and job is not None:
            if finish:
                self.forget(job, finished=True)
            else:
                self.service_failed(job)

    def lose_connection(self, actor: str) -> None:
        self.harness.service.connection_lost(self.callers[actor])
        self.callers[actor] = self.harness.login(actor)
        self.attached.discard(actor)
        self.connections_gone([job for job in self.jobs if actor in (job.open_on, job.served_by)])

    def restart(self) -> None:
        self.harness.perform()
        self.harness.restart()
        self.callers = {name: self.harness.login(name) for name in ROLES}
        self.attached.clear()
        self.connections_gone(list(self.jobs))

    def connections_gone(self, jobs: list[Expected]) -> None:
        """The connections that have these jobs open or in service are gone."""
        for job in jobs:
            if job.open_on is not None:
                self.submission_failed(job)
            elif job.served_by is not None:
                self.service_failed(job)

    def time_passes(self) -> None:
        self.seconds += 1
        self.harness.pass_time(1)

    def the_queue_is_the_list(self) -> None:
        harness = self.harness
        harness.check()
        found = [harness.entry(number) for number in harness.order]
        assert [(job.job_number, job.job_control_flags, job.job_type, job.job_position) for job in found] == [
            (job.number, job.flags | (ENTRY_OPEN if job.open_on else 0), job.job_type, position)
            for position, job in enumerate(self.jobs, start=1)
        ]
        for job, expected in zip(found, self.jobs, strict=True):
            assert job.client_id == self.callers[expected.owner].object_id
            server = self.callers[expected.served_by].object_id if expected.served_by else 0
            assert job.servicing_server_id_number == server
        assert self.created == len(self.jobs) + self.finished + self.removed
        connections = {self.callers[name].connection for name in self.attached}
        assert harness.queue_now.servers.keys() == connections


def test_the_queue_is_a_list_of_jobs() -> None:
    examples = max(1, settings.default.max_examples // 3)  # each is some thirty calls
    run_state_machine_as_test(
        QueueAgainstTheChapter, settings=settings(max_examples=examples, stateful_step_count=8)
    )
