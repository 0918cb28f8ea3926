"""Who may call what: every call on a queue by every actor; a refused call has no effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from msmqwire.ncp.constants import CompletionCode, ObjectType
from msmqwire.netware.model.bindery import Q_OPERATORS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import JobRequest
from tests.support.netware.queue_service import QueueServiceHarness

requirement = pytest.mark.requirement

ACTORS: Final = (
    "owner",  # a user of the queue; the jobs are its own
    "user",  # another
    "operator",
    "server",  # admitted by Q_SERVERS, not attached
    "attached",  # and attached
    "servicing",  # and has a job
    "supervisor",  # in none of the sets
    "outsider",  # logged in, in none of the sets
    "nobody",  # not logged in
)
OPENED, READY, SERVED = 1, 2, 3


class Cast(QueueServiceHarness):
    """A queue with a job that is open, one that is ready and one in service, and all actors."""

    def __init__(self) -> None:
        super().__init__()
        owner = self.user("OWNER")
        self.actors = {
            "owner": owner,
            "user": self.user("USER"),
            "operator": self.operator("OPERATOR"),
            "server": self.server("SERVER", attach=False),
            "attached": self.server("ATTACHED"),
            "servicing": self.server("SERVICING"),
            "supervisor": self.supervisor,
            "nobody": self.connect(),
        }
        self.object("OUTSIDER")
        self.actors["outsider"] = self.login("OUTSIDER")
        self.other_queue = self.queue("OTHER")
        operator_id = self.actors["operator"].object_id
        assert operator_id is not None
        self.admit(Q_OPERATORS, operator_id, self.other_queue)
        assert self.open_job(owner).job_number == OPENED
        assert self.job(owner, job_type=1) == READY
        assert self.job(owner, job_type=3) == SERVED
        servicing = self.actors["servicing"]
        assert self.take_job(servicing, types=(3,)).job_number == SERVED
        servicing_id = servicing.object_id
        assert servicing_id is not None
        self.servicing_id, self.servicing_station = servicing_id, servicing.connection
        self.check()


Call = Callable[[Cast, Caller], object]


def call(codes: str, *ids: str) -> Callable[[Call], Call]:
    """Register a call with the code that each actor gets, and the requirements that it proves."""

    def register(function: Call) -> Call:
        for actor, code in zip(ACTORS, codes.split(), strict=True):
            marks = [requirement(*ids)] if ids else []
            CASES.append(
                pytest.param(
                    function,
                    actor,
                    CompletionCode(int(code, 16)),
                    marks=marks,
                    id=f"{function.__name__}-{actor}",
                )
            )
        return function

    return register


CASES: list[object] = []


#     owner user operator server attached servicing supervisor outsider nobody
@call("F5 F5 F5 F5 F5 F5 00 F5 F5", "QMS-createq-01", "QMS-supervisor-01")
def create_queue(cast: Cast, caller: Caller) -> object:
    return cast.service.queues.create(caller, "NEW", ObjectType.NWOT_JOB_QUEUE, "SYS:SYSTEM")


@call("D3 D3 D3 D3 D3 D3 00 D3 D3", "QMS-createq-16", "QMS-supervisor-01")
def destroy_queue(cast: Cast, caller: Caller) -> object:
    return cast.service.queues.destroy(caller, cast.queue_id)


@call("00 00 00 00 00 00 D3 D3 D3", "QMS-monitor-11", "QMS-monitor-03", "QMS-monitor-04", "QMS-monitor-05")
def read_queue_status(cast: Cast, caller: Caller) -> object:
    return cast.service.queues.read_status(caller, cast.queue_id)


@call(
    "D3 D3 00 D3 D3 D3 D3 D3 D3",
    "QMS-monitor-12",
    "QMS-qoperators-05",
    "QMS-qoperators-07",
    "QMS-supervisor-02",
)
def set_queue_status(cast: Cast, caller: Caller) -> object:
    return cast.service.queues.set_status(caller, cast.queue_id, 1)


@call("00 00 D3 D3 D3 D3 D3 D3 D3", "QMS-submit-01", "QMS-qusers-05", "QMS-supervisor-02")
def create_job(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.create(caller, cast.queue_id, JobRequest(), cast.now)


@call("00 D6 D6 D6 D6 D6 D3 D3 D3", "QMS-submit-11")
def close_and_start(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.close_and_start(caller, cast.queue_id, OPENED)


@call("00 D6 D6 D6 D6 D6 D3 D3 D3", "QMS-submit-11")
def close_and_abort(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.close_and_abort(caller, cast.queue_id, OPENED)


@call(
    "00 D6 00 D6 D6 D6 D3 D3 D3",
    "QMS-monitor-06",
    "QMS-monitor-02",
    "QMS-createq-10",
    "QMS-qoperators-07",
    "QMS-supervisor-02",
)
def remove_job(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.remove(caller, cast.queue_id, READY)


@call("00 00 00 00 00 00 D3 D3 D3", "QMS-monitor-09", "QMS-monitor-03", "QMS-monitor-04", "QMS-monitor-05")
def list_jobs(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.listed(caller, cast.queue_id)


@call("00 00 00 00 00 00 D3 D3 D3", "QMS-monitor-09")
def list_all_jobs(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.numbers(caller, cast.queue_id)


@call("00 00 00 00 00 00 D3 D3 D3", "QMS-monitor-07", "QMS-monitor-03", "QMS-monitor-04", "QMS-monitor-05")
def read_job_entry(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.read_entry(caller, cast.queue_id, READY)


@call(
    "00 D6 00 00 00 00 D3 D3 D3",
    "QMS-monitor-08",
    "QMS-monitor-02",
    "QMS-jobstruct-02",
    "QMS-createq-10",
    "QMS-supervisor-02",
)
def change_job_entry(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.change_entry(caller, cast.queue_id, READY, JobRequest(job_type=9))


@call(
    "D6 D6 00 D6 D6 D6 D3 D3 D3",
    "QMS-monitor-10",
    "QMS-qoperators-04",
    "QMS-qoperators-07",
    "QMS-supervisor-02",
)
def change_position(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.change_position(caller, cast.queue_id, READY, 1)


@call("D6 D6 00 D6 D6 D6 D3 D3 D3")
def move_job(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.move(caller, cast.queue_id, READY, cast.other_queue)


@call("D3 D3 D3 00 00 00 D3 D3 D3", "QMS-service-03", "QMS-createq-08")
def attach(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.attach(caller, cast.queue_id)


@call("D9 D9 D9 D9 00 00 D9 D9 D9")
def detach(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.detach(caller, cast.queue_id)


@call("D9 D9 D9 D9 00 00 D9 D9 D9", "QMS-service-07", "QMS-createq-08", "QMS-ext-13")
def service_job(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.service(caller, cast.queue_id, now=cast.now)


@call("D9 D9 D9 D9 00 00 D9 D9 D9", "QMS-service-07")
def service_job_by_forms(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.service(caller, cast.queue_id, (1, 2), now=cast.now)


@call("D9 D9 D9 D9 D6 00 D9 D9 D9", "QMS-ext-03")
def finish(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.finish(caller, cast.queue_id, SERVED)


@call("D9 D9 D9 D9 D6 00 D9 D9 D9", "QMS-ext-01")
def abort(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.abort(caller, cast.queue_id, SERVED)


@call("D9 D9 D9 D9 D6 00 D9 D9 D9", "QMS-ext-16")
def change_to_client_rights(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.change_to_client_rights(caller, cast.queue_id, SERVED)


@call("D9 D9 D9 D9 00 00 D9 D9 D9")
def restore_server_rights(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.restore_server_rights(caller)


@call("00 00 00 D3 D3 D3 D3 D3 D3", "QMS-monitor-13")
def read_server_status(cast: Cast, caller: Caller) -> object:
    servicing = cast.servicing_id, cast.servicing_station
    return cast.service.servicing.read_server_status(caller, cast.queue_id, *servicing)


@call("D9 D9 D9 D9 00 00 D9 D9 D9", "QMS-monitor-14")
def set_server_status(cast: Cast, caller: Caller) -> object:
    return cast.service.servicing.set_server_status(caller, cast.queue_id, bytes(range(64)))


@call("00 00 00 00 00 00 D3 D3 D3", "QMS-monitor-04")
def job_file_size(cast: Cast, caller: Caller) -> object:
    return cast.service.jobs.file_size(caller, cast.queue_id, READY)


@requirement("QMS-bindery-03", "QMS-monitor-16", "QMS-ext-14")
@requirement("QMS-bindery-02/c")
@pytest.mark.parametrize("function, actor, code", CASES)
def test_a_call_by_an_actor(function: Call, actor: str, code: CompletionCode) -> None:
    cast = Cast()
    caller = cast.actors[actor]
    if code is CompletionCode.SUCCESSFUL:
        function(cast, caller)
    else:
        with cast.refused(code):
            function(cast, caller)
    cast.check()


UNKNOWN: Final = 0xDEAD


@requirement("QMS-ext-14")
@pytest.mark.parametrize(
    "name",
    [
        "destroy", "read_status", "set_status", "create", "close_and_start", "close_and_abort", "remove",
        "read_entry", "file_size", "numbers", "listed", "change_entry", "change_position", "move", "attach",
        "detach", "service", "finish", "abort", "change_to_client_rights", "read_server_status",
        "set_server_status",
    ],
)  # fmt: skip
def test_an_unknown_queue(name: str) -> None:
    cast = Cast()
    arguments: dict[str, tuple[object, ...]] = {
        "set_status": (0,), "create": (JobRequest(), cast.now), "change_entry": (1, JobRequest()),
        "change_position": (1, 1), "move": (1, cast.other_queue), "service": ((1,),),
        "read_server_status": (1, 1), "set_server_status": (bytes(64),),
        **dict.fromkeys(("close_and_start", "close_and_abort", "remove", "read_entry", "file_size"), (1,)),
        **dict.fromkeys(("finish", "abort", "change_to_client_rights"), (1,)),
    }  # fmt: skip
    parts = (cast.service.queues, cast.service.jobs, cast.service.servicing)
    if name == "create":
        parts = parts[1:]
    part = next(part for part in parts if hasattr(part, name))
    options = {"now": cast.now} if name == "service" else {}
    with cast.refused(CompletionCode.ERR_NO_QUEUE):
        getattr(part, name)(cast.supervisor, UNKNOWN, *arguments.get(name, ()), **options)


@requirement("QMS-ext-14")
@pytest.mark.parametrize(
    "actor, code",
    [
        ("user", CompletionCode.ERR_NO_Q_JOB),
        ("operator", CompletionCode.ERR_NO_Q_JOB),
        ("outsider", CompletionCode.ERR_NO_Q_RIGHTS),
    ],
)
def test_an_unknown_job(actor: str, code: CompletionCode) -> None:
    cast = Cast()
    jobs, caller, queue_id = cast.service.jobs, cast.actors[actor], cast.queue_id
    for method in (jobs.remove, jobs.read_entry, jobs.file_size, jobs.close_and_start, jobs.close_and_abort):
        with cast.refused(code):
            method(caller, queue_id, 999)
    with cast.refused(code):
        jobs.change_entry(caller, queue_id, 999, JobRequest())
    with cast.refused(code):
        jobs.change_position(caller, queue_id, 999, 1)


@requirement("QMS-ext-14", "QMS-ext-03")
@pytest.mark.parametrize("name", ["finish", "abort", "change_to_client_rights"])
def test_a_server_and_a_job_that_is_gone_or_not_in_service(name: str) -> None:
    cast = Cast()
    method = getattr(cast.service.servicing, name)
    with cast.refused(CompletionCode.ERR_NO_Q_JOB):
        method(cast.actors["servicing"], cast.queue_id, 999)
    with cast.refused(CompletionCode.ERR_NO_Q_JOB_RIGHTS):
        method(cast.actors["servicing"], cast.queue_id, READY)


@requirement("QMS-monitor-04", "QMS-monitor-06", "QMS-bindery-02/c")
def test_a_former_user_sees_no_job_but_can_remove_its_own() -> None:
    cast = Cast()
    owner = cast.actors["owner"]
    assert owner.object_id is not None
    cast.service.properties.delete_member(cast.admin, cast.queue_id, "Q_USERS", owner.object_id)
    cast.perform()
    with cast.refused(CompletionCode.ERR_NO_Q_RIGHTS):
        cast.service.jobs.read_entry(owner, cast.queue_id, READY)
    cast.service.jobs.remove(owner, cast.queue_id, READY)
    assert cast.order == [OPENED, SERVED]
    cast.check()
