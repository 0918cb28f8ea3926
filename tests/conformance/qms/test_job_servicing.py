"""Servicing jobs: who attaches, which job is handed out, how the service ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msmqwire.ncp.constants import ANY_JOB_TYPE, CompletionCode, ObjectType
from msmqwire.netware.model import times
from msmqwire.netware.model.bindery import Q_OPERATORS, Q_SERVERS, Q_USERS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import DeleteJob, DeleteJobFile
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
NO_JOB = CompletionCode.ERR_NO_Q_JOB


@requirement("QMS-service-02", "QMS-service-15")
def test_attaching_and_detaching(harness: QueueServiceHarness) -> None:
    server, second = harness.server("PS1"), harness.server("PS2")
    harness.job(harness.user())
    harness.service.servicing.attach(server, QUEUE_ID)  # once more changes nothing
    status = harness.service.queues.read_status(server, QUEUE_ID)
    attached = ((server.object_id, server.connection), (second.object_id, second.connection))
    assert (status.queue_id, status.status, status.jobs, status.servers) == (QUEUE_ID, 0, 1, attached)
    harness.service.servicing.detach(server, QUEUE_ID)
    assert harness.service.queues.read_status(server, QUEUE_ID).servers == attached[1:]
    with harness.refused(CompletionCode.ERR_Q_STN_NOT_SERVER):
        harness.take_job(server)
    harness.service.connection_lost(second)
    assert harness.service.queues.read_status(server, QUEUE_ID).servers == ()


@requirement("QMS-ext-08", "QMS-ext-10")
def test_25_servers_attach(harness: QueueServiceHarness) -> None:
    servers = [harness.server("PS1")]
    for _ in range(24):
        servers.append(harness.login("PS1", 7))
        harness.service.servicing.attach(servers[-1], QUEUE_ID)
    late = harness.login("PS1", 7)
    with harness.refused(CompletionCode.ERR_Q_MAX_SERVERS):
        harness.service.servicing.attach(late, QUEUE_ID)
    harness.service.servicing.detach(servers[3], QUEUE_ID)
    harness.service.servicing.attach(late, QUEUE_ID)


@requirement("QMS-ext-11", "QMS-monitor-22", "QMS-qoperators-05", "QMS-ext-13")
def test_operators_suspend_the_queue(harness: QueueServiceHarness) -> None:
    server, operator = harness.server(), harness.operator()
    late = harness.server("LATE", attach=False)
    number = harness.job(harness.user())
    harness.service.queues.set_status(operator, QUEUE_ID, 0x02)
    with harness.refused(CompletionCode.ERR_Q_HALTED):
        harness.service.servicing.attach(late, QUEUE_ID)
    harness.service.queues.set_status(operator, QUEUE_ID, 0x04)
    assert harness.service.queues.read_status(operator, QUEUE_ID).status == 0x04
    with harness.refused(CompletionCode.ERR_Q_HALTED):
        harness.take_job(server)
    assert harness.order == [number]
    harness.service.servicing.attach(late, QUEUE_ID)
    harness.service.queues.set_status(operator, QUEUE_ID, 0xF9)
    assert harness.take_job(server).job_number == number
    with harness.refused(CompletionCode.FAILURE):
        harness.service.queues.set_status(operator, QUEUE_ID, 0x100)


@requirement("QMS-service-06", "QMS-manage-15", "QMS-jobfields-37", "QMS-jobfields-35")
@requirement("QMS-jobfields-14", "QMS-jobfields-15", "QMS-jobfields-16")
def test_a_job_in_service(harness: QueueServiceHarness) -> None:
    server = harness.server()
    number = harness.job(harness.user(), b"data")
    before = harness.entry(number)
    server.task = 77
    served = harness.take_job(server)
    assert served == replace(
        before,
        job_file_handle=served.job_file_handle,
        servicing_server_station=server.connection,
        servicing_server_task_number=77,
        servicing_server_id_number=server.object_id or 0,
    )
    assert served.state(harness.now) is JobState.IN_SERVICE
    assert harness.entry(number) == served
    assert harness.read(server, served.job_file_handle) == b"data"
    with harness.refused(CompletionCode.NO_WRITE_PRIVILEGES):
        harness.service.files.write(server, served.job_file_handle, 0, 1)


@requirement("QMS-service-14", "QMS-files-08")
def test_finishing(harness: QueueServiceHarness) -> None:
    server, user = harness.server(), harness.user()
    harness.job(user, b"data", job_control_flags=RESTART | AUTO_START)
    kept = harness.job(user)
    handle = harness.take_job(server).job_file_handle
    harness.service.servicing.finish(server, QUEUE_ID, 1)
    assert harness.order == [kept]
    changes = harness.perform()
    assert DeleteJob(QUEUE_ID, 1) in changes
    assert DeleteJobFile(QUEUE_ID, 1, "Q$5D03.001") in changes
    assert harness.store.files.keys() == {StoredJobFile(QUEUE_ID, kept)}
    with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
        harness.service.files.read(server, handle, 0, 1)
    with harness.refused(NO_JOB):
        harness.service.servicing.finish(server, QUEUE_ID, 1)


@requirement("QMS-bindery-01", "QMS-manage-14")
def test_jobs_are_handed_out_in_their_order(harness: QueueServiceHarness) -> None:
    users = [harness.user("FIRST"), harness.user("SECOND")]
    first, second = harness.server("PS1"), harness.server("PS2")
    jobs = [harness.open_job(users[turn % 2]) for turn in range(4)]
    for job in (3, 1, 0, 2):  # the order in which they are released does not matter
        harness.service.jobs.close_and_start(users[job % 2], QUEUE_ID, jobs[job].job_number)
    assert [harness.take_job(server).job_number for server in (first, second, first, second)] == [1, 2, 3, 4]


BARRED = {
    "entry open": ("QMS-manage-11", {}),
    "user hold": ("QMS-manage-12", {"job_control_flags": USER_HOLD}),
    "operator hold": ("QMS-manage-13", {"job_control_flags": OPERATOR_HOLD}),
    "both holds": ("QMS-flags-09", {"job_control_flags": USER_HOLD | OPERATOR_HOLD}),
    "target time": ("QMS-manage-08", {"target_execution_time": bytes((96, 4, 1, 12, 0, 1))}),
    "target server": ("QMS-manage-07", {"target_server_id": 0xDEAD}),
    "job type": ("QMS-manage-10", {"job_type": 2}),
    "in service": ("QMS-manage-09", {"job_type": 1}),
}


@requirement(
    "QMS-manage-06", "QMS-manage-14", "QMS-flags-10", "QMS-service-08", "QMS-flags-07", "QMS-flags-08"
)
@pytest.mark.parametrize(
    "bar", [pytest.param(bar, marks=requirement(row)) for bar, (row, _) in BARRED.items()]
)
def test_a_job_that_is_barred_is_passed_over_and_keeps_its_place(
    harness: QueueServiceHarness, bar: str
) -> None:
    user, operator, server = harness.user_and_operator(), harness.operator(), harness.server()
    values = {"job_type": 1, **BARRED[bar][1]}
    barred = harness.open_job(user, **values)
    if bar != "entry open":
        harness.service.jobs.close_and_start(user, QUEUE_ID, 1)
    if bar == "in service":
        assert harness.take_job(server, types=(1,)).job_number == 1
    with harness.refused(NO_JOB):
        harness.take_job(server, types=(1,))
    harness.job(user, job_type=1)
    assert harness.take_job(server, types=(1,)).job_number == 2
    assert (barred.job_position, harness.order) == (1, [1, 2])
    with harness.refused(NO_JOB):
        harness.take_job(server, types=(1,))
    harness.service.servicing.finish(server, QUEUE_ID, 2)
    match bar:
        case "entry open":
            harness.service.jobs.close_and_start(user, QUEUE_ID, 1)
        case "target time":
            harness.pass_time(1)
        case "in service":
            return
        case _:
            harness.service.jobs.change_entry(operator, QUEUE_ID, 1, JobRequest(job_type=1))
    assert harness.take_job(server, types=(1,)).job_number == 1


@requirement("QMS-flags-09")
@pytest.mark.parametrize("left", [USER_HOLD, OPERATOR_HOLD])
def test_one_hold_is_enough(harness: QueueServiceHarness, left: int) -> None:
    operator, server = harness.operator(), harness.server()
    harness.job(harness.user_and_operator(), job_control_flags=USER_HOLD | OPERATOR_HOLD)
    harness.service.jobs.change_entry(operator, QUEUE_ID, 1, JobRequest(job_control_flags=left))
    with harness.refused(NO_JOB):
        harness.take_job(server)


@requirement("QMS-flags-07", "QMS-flags-08", "QMS-jobfields-33")
@pytest.mark.parametrize("hold", [USER_HOLD, OPERATOR_HOLD])
def test_a_held_job_advances(harness: QueueServiceHarness, hold: int) -> None:
    user, server = harness.user_and_operator(), harness.server()
    harness.job(user)
    held = harness.job(user, job_control_flags=hold)
    harness.take_job(server)
    harness.service.servicing.finish(server, QUEUE_ID, 1)
    assert harness.entry(held).job_position == 1


@requirement("QMS-jobfields-21", "QMS-manage-07")
def test_a_job_for_one_server(harness: QueueServiceHarness) -> None:
    first, second = harness.server("PS1"), harness.server("PS2")
    user = harness.user()
    harness.job(user, target_server_id=second.object_id)
    harness.job(user, target_server_id=0xFFFFFFFF)
    assert harness.take_job(first).job_number == 2
    with harness.refused(NO_JOB):
        harness.take_job(first)
    assert harness.take_job(second).job_number == 1


@requirement("QMS-jobfields-23", "QMS-manage-08", "QMS-jobfields-22", "QMS-jobfields-25")
@pytest.mark.parametrize(
    "time, seconds",
    [
        ((96, 4, 1, 12, 0, 30), 30),
        ((96, 4, 1, 24, 0, 0), 12 * 3600),  # hour 24 is midnight
        ((4, 4, 1, 12, 0, 0), 2922 * 86400),  # 2004, not 1904
    ],
)
def test_a_job_waits_for_its_time(harness: QueueServiceHarness, time: tuple[int, ...], seconds: int) -> None:
    server = harness.server()
    number = harness.job(harness.user(), target_execution_time=bytes(time))
    assert harness.entry(number).state(harness.now) is JobState.WAITING
    harness.pass_time(seconds - 0.001)
    with harness.refused(NO_JOB):
        harness.take_job(server)
    harness.pass_time(0.001)
    assert harness.entry(number).state(harness.now) is JobState.READY
    assert harness.take_job(server).job_number == number


@requirement("QMS-jobfields-22", "QMS-jobfields-23")
@pytest.mark.parametrize("time", [b"\xff" * 6, bytes((80, 1, 1, 0, 0, 0)), bytes((96, 4, 1, 12, 0, 0))])
def test_a_job_for_the_first_opportunity_or_a_time_that_has_come(
    harness: QueueServiceHarness, time: bytes
) -> None:
    server = harness.server()
    number = harness.job(harness.user(), target_execution_time=time)
    assert harness.take_job(server).job_number == number


@requirement("QMS-ext-12", "QMS-manage-10", "QMS-jobfields-31")
def test_job_types(harness: QueueServiceHarness) -> None:
    server, user = harness.server(), harness.user()
    for job_type in (1, 2, 3, 0xFFFF):
        harness.job(user, job_type=job_type)
    with harness.refused(NO_JOB):
        harness.take_job(server, types=(9,))
    with harness.refused(NO_JOB):
        harness.take_job(server, types=())
    assert harness.take_job(server, types=(3, 2)).job_number == 2
    assert [harness.take_job(server, types=(ANY_JOB_TYPE,)).job_number for _ in range(3)] == [1, 3, 4]


@requirement("QMS-service-16", "QMS-flags-04", "QMS-ext-01", "QMS-ext-02", "QMS-jobfields-36")
@pytest.mark.parametrize("failure", ["abort", "detach", "lost", "logout"])
def test_a_failed_service_with_restart(harness: QueueServiceHarness, failure: str) -> None:
    user, server, other = harness.user(), harness.server("PS1"), harness.server("PS2")
    harness.job(user)
    harness.job(user, b"data", job_type=2, job_control_flags=RESTART)
    harness.job(user)
    before = harness.entry(2)
    handle = harness.take_job(server, types=(2,)).job_file_handle
    fail(harness, server, failure)
    assert harness.entry(2) == before
    assert before.servicing_server_id_number == 0
    assert harness.order == [1, 2, 3]
    attached = failure == "abort"
    code = CompletionCode.ERR_NO_Q_JOB_RIGHTS if attached else CompletionCode.ERR_Q_STN_NOT_SERVER
    with harness.refused(code):
        harness.service.servicing.finish(server, QUEUE_ID, 2)
    with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
        harness.service.files.read(server, handle, 0, 1)
    again = harness.take_job(other, types=(2,))
    assert (again.job_number, harness.read(other, again.job_file_handle)) == (2, b"data")


@requirement("QMS-service-17", "QMS-flags-05", "QMS-ext-01")
@pytest.mark.parametrize("flags", [0, AUTO_START])
@pytest.mark.parametrize("failure", ["abort", "detach", "lost", "logout"])
def test_a_failed_service_without_restart(harness: QueueServiceHarness, failure: str, flags: int) -> None:
    user, server = harness.user(), harness.server()
    harness.job(user)
    harness.job(user, job_type=2, job_control_flags=flags)
    harness.job(user)
    harness.take_job(server, types=(2,))
    fail(harness, server, failure)
    assert [(number, harness.entry(number).job_position) for number in harness.order] == [(1, 1), (3, 2)]
    assert DeleteJobFile(QUEUE_ID, 2, "Q$5D03.002") in harness.perform()


def fail(harness: QueueServiceHarness, server: Caller, failure: str) -> None:
    """End the service of job 2 without success."""
    match failure:
        case "abort":
            harness.service.servicing.abort(server, QUEUE_ID, 2)
        case "detach":
            harness.service.servicing.detach(server, QUEUE_ID)
        case "lost":
            harness.service.connection_lost(server)
        case "logout":
            harness.service.logout(server)


@requirement("QMS-flags-04")
def test_a_lost_user_does_not_end_the_service_of_its_job(harness: QueueServiceHarness) -> None:
    user, server = harness.user(), harness.server()
    harness.job(user)
    served = harness.take_job(server)
    harness.service.connection_lost(user)
    assert harness.entry(1) == served
    harness.service.servicing.finish(server, QUEUE_ID, 1)


@requirement("QMS-ext-03", "QMS-ext-01")
@pytest.mark.parametrize("name", ["finish", "abort"])
def test_a_job_belongs_to_the_connection_of_its_server(harness: QueueServiceHarness, name: str) -> None:
    server = harness.server("PS1")
    harness.job(harness.user())
    harness.take_job(server)
    twin = harness.login("PS1", 7)
    with harness.refused(CompletionCode.ERR_Q_STN_NOT_SERVER):
        getattr(harness.service.servicing, name)(twin, QUEUE_ID, 1)
    harness.service.servicing.attach(twin, QUEUE_ID)
    with harness.refused(CompletionCode.ERR_NO_Q_JOB_RIGHTS):
        getattr(harness.service.servicing, name)(twin, QUEUE_ID, 1)


@requirement("QMS-createq-08", "QMS-createq-13", "QMS-qservers-05")
def test_a_server_that_is_taken_out_of_the_set_gets_no_more_jobs(harness: QueueServiceHarness) -> None:
    server, user = harness.server(), harness.user()
    harness.job(user)
    harness.job(user)
    harness.take_job(server)
    assert server.object_id is not None
    harness.service.properties.delete_member(harness.admin, QUEUE_ID, "Q_SERVERS", server.object_id)
    with harness.refused(CompletionCode.ERR_Q_STN_NOT_SERVER):
        harness.take_job(server)
    harness.service.servicing.finish(server, QUEUE_ID, 1)  # what it has it may end


@requirement("QMS-monitor-14", "QMS-monitor-13", "QMS-ext-18")
def test_the_status_record_of_a_server(harness: QueueServiceHarness) -> None:
    server, second, user = harness.server("PS1"), harness.server("PS2"), harness.user()
    servicing = harness.service.servicing
    first_id, second_id = server.object_id or 0, second.object_id or 0
    servicing.set_server_status(server, QUEUE_ID, bytes(range(64)))
    read = servicing.read_server_status
    assert read(user, QUEUE_ID, first_id, server.connection) == bytes(range(64))
    assert read(user, QUEUE_ID, second_id, second.connection) == bytes(64)
    for server_id, station in ((first_id, second.connection), (first_id, 999)):
        with harness.refused(CompletionCode.ERR_NO_Q_SERVER):
            read(user, QUEUE_ID, server_id, station)
    with harness.refused(CompletionCode.BAD_LENGTH):
        servicing.set_server_status(server, QUEUE_ID, bytes(63))


@requirement("QMS-using-01", "QMS-manage-14")
def test_five_peers_of_which_each_covers_one_area(harness: QueueServiceHarness) -> None:
    service, now = harness.service, harness.now
    creator, installer = harness.login("SUPERVISOR"), harness.login("SUPERVISOR")
    queue_id = service.queues.create(creator, "COMPILE", ObjectType.NWOT_JOB_QUEUE, "SYS:JOBS")
    server_id = service.bindery.create_object(installer, "JS1", ObjectType.NWOT_JOB_SERVER).id
    for set_name, member in (
        (Q_SERVERS, server_id),
        (Q_USERS, harness.object("USER")),
        (Q_OPERATORS, harness.object("WATCHER")),
    ):
        service.properties.add_member(creator, queue_id, set_name, member)
    user, watcher = harness.login("USER"), harness.login("WATCHER")
    server = harness.login("JS1", ObjectType.NWOT_JOB_SERVER)
    for _ in range(2):
        job = service.jobs.create(user, queue_id, JobRequest(), now)
        service.files.write(user, job.job_file_handle, 0, 10)
        service.jobs.close_and_start(user, queue_id, job.job_number)
    assert service.jobs.listed(watcher, queue_id).numbers == (1, 2)
    service.jobs.change_position(watcher, queue_id, 2, 1)
    service.servicing.attach(server, queue_id)
    assert service.servicing.service(server, queue_id, now=now).job_number == 2
    service.servicing.finish(server, queue_id, 2)
    assert service.queues.read_status(watcher, queue_id).jobs == 1


@requirement("QMS-flags-12", "QMS-jobfields-37", "QMS-manage-11", "QMS-manage-12", "QMS-manage-13")
@pytest.mark.parametrize(
    "flags, server_id, ahead, state",
    [
        (0x20 | USER_HOLD, 5, True, JobState.OPEN),
        (USER_HOLD, 5, True, JobState.IN_SERVICE),
        (USER_HOLD, 0, True, JobState.HELD),
        (OPERATOR_HOLD, 0, False, JobState.HELD),
        (0xFF1F, 0, True, JobState.WAITING),
        (0xFF1F, 0, False, JobState.READY),
    ],
)
def test_the_state_follows_from_the_fields(
    harness: QueueServiceHarness, flags: int, server_id: int, ahead: bool, state: JobState
) -> None:
    target = bytes((96, 4, 1, 12, 0, 1 if ahead else 0))
    job = replace(
        harness.open_job(harness.user(), target_execution_time=target),
        job_control_flags=flags,
        servicing_server_id_number=server_id,
    )
    assert job.state(harness.now) is state


@requirement("QMS-jobfields-24", "QMS-jobfields-25")
@pytest.mark.parametrize(
    "value, text",
    [
        ((90, 1, 2, 3, 4, 5), "1990-01-02T03:04:05+00:00"),
        ((80, 1, 1, 0, 0, 0), "1980-01-01T00:00:00+00:00"),
        ((99, 12, 31, 24, 0, 0), "2000-01-01T00:00:00+00:00"),
        ((0, 1, 1, 0, 0, 0), "2000-01-01T00:00:00+00:00"),
        ((79, 12, 31, 23, 59, 59), "2079-12-31T23:59:59+00:00"),
        ((1, 2, 31, 0, 0, 0), "2001-03-03T00:00:00+00:00"),
    ],
)
def test_six_byte_times(value: tuple[int, ...], text: str) -> None:
    time = times.from_bytes(bytes(value))
    assert time.isoformat() == text
    if (value[3] != 24 and value[2] != 31) or (value[1] == 12 and value[3] != 24):
        assert times.to_bytes(time) == bytes(value)
