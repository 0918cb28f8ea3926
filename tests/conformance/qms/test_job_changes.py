"""Jobs in the queue: what a change changes, holds, positions, lists, removing, moving to another queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.bindery import Q_OPERATORS
from msmqwire.netware.model.changes import CopyJobFile, DeleteJobFile
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import JobRequest, JobState
from tests.support.netware.queue_service import (
    AUTO_START,
    OPERATOR_HOLD,
    QUEUE_ID,
    RESTART,
    USER_HOLD,
    QueueServiceHarness,
)

requirement = pytest.mark.requirement
CHANGE = JobRequest(
    target_server_id=7,
    target_execution_time=bytes((97, 1, 2, 3, 4, 5)),
    job_type=0x4321,
    job_control_flags=0x1207 | AUTO_START | USER_HOLD,
    job_description=b"other".ljust(50, b"\0"),
    queue_record=bytes(range(100, 252)),
)


def numbers(harness: QueueServiceHarness, count: int) -> list[int]:
    """The numbers of so many jobs of a new user."""
    user = harness.user()
    return [harness.job(user) for _ in range(count)]


@requirement("QMS-manage-03", "QMS-manage-04", "QMS-jobstruct-02", "QMS-jobfields-31", "QMS-jobfields-39")
@requirement("QMS-flags-11", "QMS-qoperators-03", "QMS-monitor-01", "QMS-createq-09", "QMS-createq-10")
@pytest.mark.parametrize("actor", ["owner", "operator", "server"])
def test_the_fields_of_step_3_change_and_no_others(harness: QueueServiceHarness, actor: str) -> None:
    owner = harness.user()
    actors = {"owner": owner, "operator": harness.operator(), "server": harness.server()}
    number = harness.job(owner, job_type=1)
    before = harness.entry(number)
    harness.service.jobs.change_entry(actors[actor], QUEUE_ID, number, CHANGE)
    assert harness.service.jobs.read_entry(owner, QUEUE_ID, number) == replace(
        before,
        target_server_id=CHANGE.target_server_id,
        target_execution_time=CHANGE.target_execution_time,
        job_type=CHANGE.job_type,
        job_control_flags=CHANGE.job_control_flags,
        job_description=CHANGE.job_description,
        queue_record=CHANGE.queue_record,
    )


@requirement("QMS-ext-05")
@pytest.mark.parametrize("actor", ["owner", "operator", "server"])
def test_a_job_in_service_is_not_changed(harness: QueueServiceHarness, actor: str) -> None:
    owner = harness.user()
    actors = {"owner": owner, "operator": harness.operator(), "server": harness.server()}
    number = harness.job(owner)
    harness.take_job(actors["server"])
    with harness.refused(CompletionCode.ERR_Q_IN_SERVICE):
        harness.service.jobs.change_entry(actors[actor], QUEUE_ID, number, CHANGE)


@requirement("QMS-ext-06")
@pytest.mark.parametrize("stored", [0, OPERATOR_HOLD])
def test_operator_hold_follows_operators_only(harness: QueueServiceHarness, stored: int) -> None:
    owner, operator, server = harness.user(), harness.operator(), harness.server()
    number = harness.job(owner)
    change = harness.service.jobs.change_entry
    change(operator, QUEUE_ID, number, JobRequest(job_control_flags=stored))
    for caller in (owner, server):
        change(caller, QUEUE_ID, number, JobRequest(job_control_flags=stored ^ OPERATOR_HOLD | USER_HOLD))
        assert harness.entry(number).job_control_flags == stored | USER_HOLD
    change(operator, QUEUE_ID, number, JobRequest(job_control_flags=stored ^ OPERATOR_HOLD))
    assert harness.entry(number).job_control_flags == stored ^ OPERATOR_HOLD


@requirement("QMS-ext-06")
def test_a_new_job_has_the_operator_hold_of_operators(harness: QueueServiceHarness) -> None:
    flags = OPERATOR_HOLD | USER_HOLD
    user, operator = harness.user(), harness.user_and_operator()
    assert harness.entry(harness.job(user, job_control_flags=flags)).job_control_flags == USER_HOLD
    assert harness.entry(harness.job(operator, job_control_flags=flags)).job_control_flags == flags


@requirement("QMS-flags-07", "QMS-flags-08", "QMS-flags-09", "QMS-flags-13")
def test_ready_to_held_and_back(harness: QueueServiceHarness) -> None:
    first, number, last = numbers(harness, 3)
    operator = harness.operator()
    states = []
    for flags in (0, USER_HOLD, USER_HOLD | OPERATOR_HOLD, OPERATOR_HOLD, 0):
        request = JobRequest(job_control_flags=flags)
        harness.service.jobs.change_entry(operator, QUEUE_ID, number, request)
        states.append(harness.entry(number).state(harness.now))
        assert harness.order == [first, number, last]
    assert states == [JobState.READY, *[JobState.HELD] * 3, JobState.READY]


@requirement("QMS-manage-05", "QMS-manage-03")
def test_the_position_in_a_change_is_for_operators(harness: QueueServiceHarness) -> None:
    user = harness.user()
    jobs = [harness.job(user) for _ in range(3)]
    for caller in (user, harness.server()):
        harness.service.jobs.change_entry(caller, QUEUE_ID, jobs[2], JobRequest(job_position=1))
        assert harness.order == jobs
    harness.service.jobs.change_entry(harness.operator(), QUEUE_ID, jobs[2], JobRequest(job_position=1))
    assert harness.order == [jobs[2], jobs[0], jobs[1]]
    harness.service.jobs.change_entry(harness.login("OLGA"), QUEUE_ID, jobs[2], JobRequest(job_position=0))
    assert harness.order == [jobs[2], jobs[0], jobs[1]]


@requirement("QMS-monitor-19", "QMS-qoperators-04", "QMS-jobfields-28", "QMS-jobfields-32", "QMS-ext-07")
@requirement("QMS-createq-09")
@pytest.mark.parametrize(
    "number, position, order",
    [
        (4, 1, [4, 1, 2, 3, 5]),
        (1, 3, [2, 3, 1, 4, 5]),
        (3, 3, [1, 2, 3, 4, 5]),
        (2, 5, [1, 3, 4, 5, 2]),
        (2, 250, [1, 3, 4, 5, 2]),
        (5, 6, [1, 2, 3, 4, 5]),
    ],
)
def test_changing_the_position(
    harness: QueueServiceHarness, number: int, position: int, order: list[int]
) -> None:
    numbers(harness, 5)
    before = {number: harness.entry(number) for number in harness.order}
    harness.service.jobs.change_position(harness.operator(), QUEUE_ID, number, position)
    assert harness.order == order
    for place, moved in enumerate(order, start=1):
        assert harness.entry(moved) == replace(before[moved], job_position=place)


@requirement("QMS-monitor-19")
@pytest.mark.parametrize("position", [0, -1])
def test_positions_count_from_one(harness: QueueServiceHarness, position: int) -> None:
    numbers(harness, 2)
    operator = harness.operator()
    with harness.refused(CompletionCode.FAILURE):
        harness.service.jobs.change_position(operator, QUEUE_ID, 2, position)


@requirement("QMS-ext-07")
def test_a_job_in_service_is_moved_without_effect_on_its_service(harness: QueueServiceHarness) -> None:
    numbers(harness, 3)
    server, operator = harness.server(), harness.operator()
    served = harness.take_job(server)
    harness.service.jobs.change_position(operator, QUEUE_ID, 1, 3)
    assert harness.order == [2, 3, 1]
    assert harness.entry(1) == replace(served, job_position=3)
    harness.read(server, served.job_file_handle)
    harness.service.servicing.finish(server, QUEUE_ID, 1)


@requirement("QMS-monitor-17", "QMS-jobfields-33", "QMS-monitor-18", "QMS-createq-09", "QMS-flags-12")
@requirement("QMS-createq-10")
@pytest.mark.parametrize("actor", ["owner", "operator"])
@pytest.mark.parametrize("state", ["open", "held", "waiting", "ready"])
def test_removing_a_job_that_is_not_in_service(harness: QueueServiceHarness, actor: str, state: str) -> None:
    owner = harness.user()
    actors = {"owner": owner, "operator": harness.operator()}
    harness.job(owner)
    if state == "open":
        harness.open_job(owner)
    else:
        target = {"waiting": {"target_execution_time": bytes((99, 1, 1, 0, 0, 0))}}
        flags = {"held": {"job_control_flags": USER_HOLD}}
        harness.job(owner, b"data", **target.get(state, {}), **flags.get(state, {}))
    harness.job(owner)
    assert harness.entry(2).state(harness.now).value == state
    harness.service.jobs.remove(actors[actor], QUEUE_ID, 2)
    assert [(number, harness.entry(number).job_position) for number in harness.order] == [(1, 1), (3, 2)]
    assert DeleteJobFile(QUEUE_ID, 2, "Q$5D03.002") in harness.perform()
    assert StoredJobFile(QUEUE_ID, 2) not in harness.store.files


@requirement("QMS-ext-04")
@pytest.mark.parametrize("flags", [0, RESTART])
def test_removing_a_job_in_service_aborts_the_service(harness: QueueServiceHarness, flags: int) -> None:
    owner, server = harness.user(), harness.server()
    number = harness.job(owner, b"data", job_control_flags=flags)
    handle = harness.take_job(server).job_file_handle
    harness.service.servicing.change_to_client_rights(server, QUEUE_ID, number)
    harness.service.jobs.remove(owner, QUEUE_ID, number)
    assert harness.order == []
    assert server.assumed is None
    with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
        harness.service.files.read(server, handle, 0, 1)
    with harness.refused(CompletionCode.ERR_NO_Q_JOB):
        harness.service.servicing.finish(server, QUEUE_ID, number)


@requirement("QMS-monitor-20", "QMS-ext-08")
def test_the_list_of_jobs_in_queue_order(harness: QueueServiceHarness) -> None:
    user, operator = harness.user(), harness.operator()
    for _ in range(130):
        job = harness.open_job(user)
        harness.service.jobs.close_and_start(user, QUEUE_ID, job.job_number)
    harness.service.jobs.change_position(operator, QUEUE_ID, 130, 1)
    order = [130, *range(1, 130)]
    jobs = harness.service.jobs
    assert jobs.numbers(user, QUEUE_ID) == tuple(order)
    for start in (1, 0, 0xFFFFFFFF):
        assert jobs.listed(user, QUEUE_ID, start).numbers == tuple(order[:125])
    rest = jobs.listed(user, QUEUE_ID, 126)
    assert (rest.total, rest.numbers) == (130, tuple(order[125:]))
    assert jobs.listed(user, QUEUE_ID, 131).numbers == ()
    assert {jobs.read_entry(user, QUEUE_ID, number).job_position for number in order} == set(range(1, 131))


def test_the_list_of_jobs_of_some_types(harness: QueueServiceHarness) -> None:
    user = harness.user()
    for job_type in (1, 2, 3, 1, 2):
        harness.job(user, job_type=job_type)
    listed = harness.service.jobs.listed(user, QUEUE_ID, types=(1, 3))
    assert (listed.total, listed.numbers) == (3, (1, 3, 4))
    assert harness.service.jobs.listed(user, QUEUE_ID, 2, types=(1, 3)).numbers == (3, 4)
    assert harness.service.jobs.listed(user, QUEUE_ID, types=()).numbers == ()


class TestMovingToAnotherQueue:
    """Call 136."""

    @pytest.fixture
    def other(self, harness: QueueServiceHarness) -> int:
        """A second queue with the operator OLGA, as the first."""
        operator = harness.operator()
        other = harness.queue("OTHER")
        assert operator.object_id is not None
        harness.admit(Q_OPERATORS, operator.object_id, other)
        return other

    def test_it_gets_a_number_and_the_last_place_there(
        self, harness: QueueServiceHarness, other: int
    ) -> None:
        user, operator = harness.user(), harness.login("OLGA")
        harness.job(user)
        harness.job(user, b"data", job_control_flags=USER_HOLD, job_type=5)
        before = harness.entry(2)
        harness.perform()
        assert harness.service.jobs.move(operator, QUEUE_ID, 2, other) == 1
        name = f"Q${other & 0xFFFF:04X}.001"
        assert CopyJobFile(QUEUE_ID, 2, "Q$5D03.002", other, 1, name) in harness.perform()
        moved = harness.service.jobs.read_entry(operator, other, 1)
        assert moved == replace(before, job_number=1, job_position=1, job_file_name=name)
        assert harness.order == [1]
        assert harness.store.files[StoredJobFile(other, 1)] == (name, bytearray(b"data"))
        assert harness.service.jobs.file_size(operator, other, 1) == 4

    def test_it_needs_operators_of_both(self, harness: QueueServiceHarness, other: int) -> None:
        number = harness.job(harness.user())
        first = harness.operator("FIRST")
        with harness.refused(CompletionCode.ERR_NO_Q_RIGHTS):
            harness.service.jobs.move(first, QUEUE_ID, number, other)
        second_id = harness.object("SECOND")
        harness.admit(Q_OPERATORS, second_id, other)
        second = harness.login("SECOND")
        with harness.refused(CompletionCode.ERR_NO_Q_RIGHTS):
            harness.service.jobs.move(second, QUEUE_ID, number, other)
        with harness.refused(CompletionCode.ERR_NO_QUEUE):
            harness.service.jobs.move(first, QUEUE_ID, number, 0xDEAD)

    def test_what_can_not_be_moved(self, harness: QueueServiceHarness, other: int) -> None:
        user, operator, server = harness.user(), harness.login("OLGA"), harness.server()
        served = harness.job(user)
        harness.take_job(server)
        opened = harness.open_job(user).job_number
        ready = harness.job(user)
        move = harness.service.jobs.move
        for number, to, code in (
            (served, other, CompletionCode.ERR_Q_IN_SERVICE),
            (opened, other, CompletionCode.ERR_NO_Q_JOB_RIGHTS),
            (ready, QUEUE_ID, CompletionCode.FAILURE),
        ):
            with harness.refused(code):
                move(operator, QUEUE_ID, number, to)
        harness.service.queues.set_status(operator, other, 1)
        with harness.refused(CompletionCode.ERR_Q_HALTED):
            move(operator, QUEUE_ID, ready, other)
