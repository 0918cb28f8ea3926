"""Who is admitted to a queue by its sets: members, their groups, equivalents, EVERYONE; and who is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from msmqwire.ncp.constants import SUPERVISOR_ID, CompletionCode, ObjectType
from msmqwire.netware.model.bindery import GROUP_MEMBERS, GROUPS_IM_IN, Q_OPERATORS, Q_SERVERS, Q_USERS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import JobRequest
from tests.support.netware.queue_service import QueueServiceHarness

requirement = pytest.mark.requirement
GROUP = ObjectType.NWOT_GROUP
Call = Callable[[QueueServiceHarness, Caller], None]
NO_RIGHTS = CompletionCode.ERR_NO_Q_RIGHTS


def submit(harness: QueueServiceHarness, caller: Caller) -> None:
    """Create a job and abort it."""
    job = harness.service.jobs.create(caller, harness.queue_id, JobRequest(), harness.now)
    harness.service.jobs.close_and_abort(caller, harness.queue_id, job.job_number)


def set_status(harness: QueueServiceHarness, caller: Caller) -> None:
    """Call what only operators may."""
    harness.service.queues.set_status(caller, harness.queue_id, 4)


def attach(harness: QueueServiceHarness, caller: Caller) -> None:
    """Attach and detach a server."""
    harness.service.servicing.attach(caller, harness.queue_id)
    harness.service.servicing.detach(caller, harness.queue_id)


CALLS = pytest.mark.parametrize(
    "property_name, call",
    [
        pytest.param(Q_USERS, submit, marks=requirement("QMS-qusers-01", "QMS-submit-01"), id="users"),
        pytest.param(
            Q_OPERATORS,
            set_status,
            marks=requirement("QMS-qoperators-01", "QMS-monitor-01", "QMS-createq-09"),
            id="operators",
        ),
        pytest.param(
            Q_SERVERS, attach, marks=requirement("QMS-qservers-01", "QMS-qservers-05"), id="servers"
        ),
    ],
)


@requirement("QMS-createq-13", "QMS-createq-07", "QMS-supervisor-02")
@CALLS
def test_a_member_is_admitted_from_the_next_call_on(
    harness: QueueServiceHarness, property_name: str, call: Call
) -> None:
    member = harness.object("MEMBER")
    caller = harness.login("MEMBER")
    with harness.refused(NO_RIGHTS):
        call(harness, caller)
    harness.admit(property_name, member)
    assert harness.service.objects[harness.queue_id].members(property_name) == {member}
    call(harness, caller)
    harness.service.properties.delete_member(harness.admin, harness.queue_id, property_name, member)
    with harness.refused(NO_RIGHTS):
        call(harness, caller)


@requirement("QMS-qusers-03", "QMS-submit-01")
@CALLS
def test_a_group_admits_its_members(harness: QueueServiceHarness, property_name: str, call: Call) -> None:
    group, member = harness.object("STAFF", GROUP), harness.object("MEMBER")
    caller = harness.login("MEMBER")
    harness.admit(property_name, group)
    with harness.refused(NO_RIGHTS):
        call(harness, caller)
    harness.service.properties.join_group(harness.supervisor, member, group)
    call(harness, caller)


@requirement("QMS-qusers-03")
@pytest.mark.parametrize("set_name", [GROUP_MEMBERS, GROUPS_IM_IN])
def test_either_set_alone_makes_a_member_of_a_group(harness: QueueServiceHarness, set_name: str) -> None:
    properties, supervisor = harness.service.properties, harness.supervisor
    group, member = harness.object("STAFF", GROUP), harness.object("MEMBER")
    harness.admit(Q_USERS, group)
    holder, entry = (group, member) if set_name == GROUP_MEMBERS else (member, group)
    properties.create(supervisor, holder, set_name, is_set=True, security=0x31)
    properties.add_member(supervisor, holder, set_name, entry)
    caller = harness.login("MEMBER")
    submit(harness, caller)
    properties.delete_member(supervisor, holder, set_name, entry)
    with harness.refused(NO_RIGHTS):
        submit(harness, caller)


@requirement("QMS-qusers-02", "QMS-submit-01")
@CALLS
def test_security_equivalence_admits(harness: QueueServiceHarness, property_name: str, call: Call) -> None:
    member, deputy = harness.object("MEMBER"), harness.object("DEPUTY")
    harness.admit(property_name, member)
    caller = harness.login("DEPUTY")
    with harness.refused(NO_RIGHTS):
        call(harness, caller)
    harness.service.properties.make_equivalent(harness.supervisor, deputy, member)
    call(harness, caller)


@requirement("QMS-qusers-02")
def test_equivalence_is_of_one_step_and_of_one_direction(harness: QueueServiceHarness) -> None:
    properties = harness.service.properties
    first, second, third = (harness.object(name) for name in ("FIRST", "SECOND", "THIRD"))
    properties.make_equivalent(harness.supervisor, first, second)
    properties.make_equivalent(harness.supervisor, second, third)
    harness.admit(Q_USERS, third)
    submit(harness, harness.login("SECOND"))
    caller = harness.login("FIRST")
    with harness.refused(NO_RIGHTS):
        submit(harness, caller)


@requirement("QMS-qusers-05", "QMS-qoperators-07")
@CALLS
def test_a_supervisor_is_admitted_like_anybody(
    harness: QueueServiceHarness, property_name: str, call: Call
) -> None:
    deputy = harness.object("DEPUTY")
    harness.service.properties.make_equivalent(harness.supervisor, deputy, SUPERVISOR_ID)
    callers = harness.supervisor, harness.login("DEPUTY")
    for caller in callers:
        with harness.refused(NO_RIGHTS):
            call(harness, caller)
    harness.admit(property_name, SUPERVISOR_ID)
    for caller in callers:
        call(harness, caller)


@requirement("QMS-createq-11", "QMS-qoperators-02", "QMS-qservers-02")
@CALLS
@pytest.mark.parametrize("absent", [False, True])
def test_an_empty_or_absent_set_admits_nobody(
    harness: QueueServiceHarness, property_name: str, call: Call, absent: bool
) -> None:
    for name in {Q_USERS, Q_OPERATORS, Q_SERVERS} - {property_name}:
        harness.admit(name, SUPERVISOR_ID)
    if absent:
        harness.service.properties.delete(harness.supervisor, harness.queue_id, property_name)
    with harness.refused(NO_RIGHTS):
        call(harness, harness.supervisor)


@requirement("QMS-qoperators-02")
def test_without_operators_nobody_makes_their_calls(harness: QueueServiceHarness) -> None:
    jobs, queue_id, other = harness.service.jobs, harness.queue_id, harness.queue("OTHER")
    number = harness.job(harness.user())
    for set_name in (Q_USERS, Q_SERVERS):
        harness.admit(set_name, SUPERVISOR_ID)
    callers = (harness.supervisor, harness.user("BOB"), harness.server())
    for caller in callers:
        with harness.refused(NO_RIGHTS):
            set_status(harness, caller)
        for call in (
            partial(jobs.remove, caller, queue_id, number),
            partial(jobs.change_position, caller, queue_id, number, 1),
            partial(jobs.move, caller, queue_id, number, other),
        ):
            with harness.refused(CompletionCode.ERR_NO_Q_JOB_RIGHTS):
                call()
    harness.admit(Q_OPERATORS, SUPERVISOR_ID)
    set_status(harness, harness.supervisor)
    jobs.remove(harness.supervisor, queue_id, number)


@requirement("QMS-qservers-02")
def test_without_servers_jobs_are_accepted_and_wait(harness: QueueServiceHarness) -> None:
    user = harness.user()
    numbers = [harness.job(user), harness.job(user)]
    assert harness.order == numbers
    with harness.refused(CompletionCode.ERR_Q_STN_NOT_SERVER):
        harness.take_job(harness.supervisor)


@requirement("QMS-qusers-06")
def test_everyone_opens_the_queue(harness: QueueServiceHarness) -> None:
    everyone = harness.object("EVERYONE", GROUP)
    harness.object("ANYBODY")
    caller, anonymous = harness.login("ANYBODY"), harness.connect()
    with harness.refused(NO_RIGHTS):
        submit(harness, caller)
    harness.admit(Q_USERS, everyone)
    submit(harness, caller)
    submit(harness, harness.supervisor)
    with harness.refused(NO_RIGHTS):
        submit(harness, anonymous)


@requirement("QMS-qservers-03", "QMS-qoperators-06")
@pytest.mark.parametrize("property_name", [Q_USERS, Q_OPERATORS, Q_SERVERS])
def test_members_exist_in_the_bindery(harness: QueueServiceHarness, property_name: str) -> None:
    with harness.refused(CompletionCode.NO_SUCH_OBJECT):
        harness.admit(property_name, 0xDEAD)


@requirement("QMS-qoperators-06")
def test_operators_are_users_or_groups(harness: QueueServiceHarness) -> None:
    server = harness.object("PS1", ObjectType.NWOT_PRINT_SERVER)
    group = harness.object("STAFF", GROUP)
    with harness.refused(CompletionCode.NO_SUCH_OBJECT):
        harness.admit(Q_OPERATORS, server)
    harness.admit(Q_OPERATORS, group)
    harness.admit(Q_SERVERS, server)


@requirement("QMS-qservers-04", "QMS-qservers-07", "QMS-qservers-05", "QMS-createqs-02")
@pytest.mark.parametrize("type_", [0x0005, 0x0007, 0x0009])
def test_a_queue_server_logs_in_under_its_name_and_type(harness: QueueServiceHarness, type_: int) -> None:
    harness.admit(Q_SERVERS, harness.object("SERVER", type_))
    harness.object("SERVER", ObjectType.NWOT_USER)
    server, user = harness.login("SERVER", type_), harness.login("SERVER")
    attach(harness, server)
    found = harness.service.bindery.scan(server, "*", ObjectType.NWOT_PRINT_QUEUE)
    assert found.id == harness.queue_id
    with harness.refused(NO_RIGHTS):
        attach(harness, user)


def test_a_deleted_object_that_is_still_logged_in_is_nobody(harness: QueueServiceHarness) -> None:
    user = harness.user()
    number = harness.job(user)
    harness.open_job(user)
    assert user.object_id is not None
    harness.service.bindery.delete_object(harness.supervisor, user.object_id)
    harness.perform()
    assert harness.service.objects[harness.queue_id].members(Q_USERS) == frozenset()
    for call in (harness.service.jobs.remove, harness.service.jobs.read_entry):
        with harness.refused(NO_RIGHTS):
            call(user, harness.queue_id, number)
