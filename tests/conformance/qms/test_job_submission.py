"""Submitting jobs: the fields that are filled in, the queue file, starting, aborting, a lost connection."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.ncp.constants import AT_ONCE, CompletionCode
from msmqwire.netware.model.changes import CreateJobFile, DeleteJob, DeleteJobFile, PutJob, SyncJobFile
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import Job, JobRequest, JobState
from msmqwire.netware.model.settings import Settings
from tests.support.netware.queue_service import (
    AUTO_START,
    OPEN,
    QUEUE_ID,
    RESTART,
    QueueServiceHarness,
)

requirement = pytest.mark.requirement
REQUEST = JobRequest(
    target_server_id=0x11223344,
    target_execution_time=bytes((96, 12, 31, 24, 0, 0)),
    job_type=0x1234,
    job_control_flags=0xFF9F,
    job_description=b"report".ljust(50, b"\0"),
    queue_record=bytes(range(152)),
)


@requirement("QMS-submit-04", "QMS-manage-02", "QMS-jobfields-20", "QMS-flags-06", "QMS-files-05")
@requirement("QMS-jobfields-26", "QMS-jobstruct-01", "QMS-flags-11", "QMS-jobfields-36", "QMS-process-02")
@requirement(*(f"QMS-jobfields-{number:02}" for number in (2, 3, 4, 7, 8, 10, 12, 13)))
def test_a_new_job(harness: QueueServiceHarness) -> None:
    harness.job(harness.user("FIRST"))
    user = harness.user()
    harness.now = datetime(2004, 2, 29, 13, 14, 15, 999, tzinfo=UTC)
    harness.perform()
    job = harness.service.jobs.create(user, QUEUE_ID, REQUEST, harness.now)
    assert job == Job(
        client_station=user.connection,
        client_task=user.task,
        client_id=user.object_id or 0,
        target_server_id=0x11223344,
        target_execution_time=bytes((96, 12, 31, 24, 0, 0)),
        job_entry_time=bytes((4, 2, 29, 13, 14, 15)),
        job_number=2,
        job_type=0x1234,
        job_position=2,
        job_control_flags=0xFF1F | OPEN,
        job_file_name="Q$5D03.002",
        job_file_handle=job.job_file_handle,
        servicing_server_station=0,
        servicing_server_task_number=0,
        servicing_server_id_number=0,
        job_description=b"report".ljust(50, b"\0"),
        queue_record=bytes(range(152)),
    )
    assert job.job_file_handle != 0
    assert job.state(harness.now) is JobState.OPEN
    changes = harness.perform()
    assert CreateJobFile(QUEUE_ID, 2, "Q$5D03.002") in changes
    assert PutJob(QUEUE_ID, replace(job, job_position=0)) in changes
    assert harness.service.jobs.read_entry(user, QUEUE_ID, 2) == job


@requirement("QMS-flags-06")
def test_entry_open_of_the_client_is_ignored(harness: QueueServiceHarness) -> None:
    user = harness.user()
    assert harness.open_job(user, job_control_flags=0).is_open
    number = harness.job(user, job_control_flags=OPEN)
    assert not harness.entry(number).is_open
    harness.service.jobs.change_entry(user, QUEUE_ID, number, JobRequest(job_control_flags=OPEN))
    assert not harness.entry(number).is_open
    harness.service.jobs.change_entry(user, QUEUE_ID, 1, JobRequest())
    assert harness.entry(1).is_open


@requirement("QMS-submit-04", "QMS-files-06", "QMS-jobfields-32", "QMS-bindery-01", "QMS-jobfields-28")
def test_numbers_and_names_rise_and_positions_count_from_one(harness: QueueServiceHarness) -> None:
    user = harness.user()
    jobs = [harness.open_job(user) for _ in range(3)]
    assert [(job.job_number, job.job_position, job.job_file_name) for job in jobs] == [
        (1, 1, "Q$5D03.001"),
        (2, 2, "Q$5D03.002"),
        (3, 3, "Q$5D03.003"),
    ]
    harness.service.jobs.remove(user, QUEUE_ID, 3)
    assert harness.open_job(user).job_number == 4  # a number is not given again at once


@requirement("QMS-files-06", "QMS-ext-08")
def test_job_numbers_wrap_after_999_and_skip_those_in_use(harness: QueueServiceHarness) -> None:
    user = harness.user()
    harness.job(user)
    harness.queue_now.row = replace(harness.queue_now.row, next_number=999)
    assert [harness.job(user) for _ in range(3)] == [999, 2, 3]
    assert harness.entry(999).job_file_name == "Q$5D03.999"


@requirement("QMS-submit-06", "QMS-flags-06", "QMS-flags-11")
def test_close_and_start(harness: QueueServiceHarness) -> None:
    user = harness.user()
    harness.open_job(user)
    job = harness.open_job(user, job_control_flags=0xFF07 | AUTO_START)
    harness.perform()
    harness.service.jobs.close_and_start(user, QUEUE_ID, 2)
    started = harness.entry(2)
    assert started == replace(job, job_control_flags=0xFF07 | AUTO_START, job_file_handle=0)
    assert (started.state(harness.now), started.job_position) == (JobState.READY, 2)
    assert SyncJobFile(QUEUE_ID, 2, "Q$5D03.002") in harness.perform()
    with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
        harness.service.files.write(user, job.job_file_handle, 0, 1)


@requirement("QMS-submit-07", "QMS-jobfields-33")
def test_close_and_abort(harness: QueueServiceHarness) -> None:
    user = harness.user()
    job = harness.open_job(user)
    harness.write(user, job.job_file_handle, b"data")
    harness.job(user)
    harness.perform()
    harness.service.jobs.close_and_abort(user, QUEUE_ID, 1)
    assert [harness.entry(number).job_position for number in harness.order] == [1]
    changes = harness.perform()
    assert DeleteJob(QUEUE_ID, 1) in changes
    assert DeleteJobFile(QUEUE_ID, 1, "Q$5D03.001") in changes
    with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
        harness.service.files.write(user, job.job_file_handle, 0, 1)
    with harness.refused(CompletionCode.ERR_NO_Q_JOB):
        harness.service.jobs.read_entry(user, QUEUE_ID, 1)


@requirement("QMS-submit-12")
@pytest.mark.parametrize("name", ["close_and_start", "close_and_abort"])
def test_closing_a_job_that_is_not_open(harness: QueueServiceHarness, name: str) -> None:
    user = harness.user()
    opened = harness.open_job(user)
    getattr(harness.service.jobs, name)(user, QUEUE_ID, opened.job_number)
    number = harness.job(user)
    with harness.refused(CompletionCode.ERR_NO_Q_JOB_RIGHTS):
        getattr(harness.service.jobs, name)(user, QUEUE_ID, number)
    with harness.refused(CompletionCode.ERR_NO_Q_JOB):
        getattr(harness.service.jobs, name)(user, QUEUE_ID, number + 1)


@requirement("QMS-submit-11")
@pytest.mark.parametrize("name", ["close_and_start", "close_and_abort"])
def test_only_the_connection_that_created_a_job_closes_it(harness: QueueServiceHarness, name: str) -> None:
    user, operator = harness.user(), harness.operator()
    job = harness.open_job(user)
    for caller in (harness.login("ALICE"), operator):  # the same user elsewhere
        with harness.refused(CompletionCode.ERR_NO_Q_JOB_RIGHTS):
            getattr(harness.service.jobs, name)(caller, QUEUE_ID, job.job_number)
        with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
            harness.service.files.write(caller, job.job_file_handle, 0, 1)
    getattr(harness.service.jobs, name)(user, QUEUE_ID, job.job_number)


@requirement("QMS-files-09", "QMS-service-09", "QMS-jobfields-34", "QMS-submit-05")
def test_data_come_to_the_server_as_written(harness: QueueServiceHarness) -> None:
    user, server = harness.user(), harness.server()
    job = harness.open_job(user)
    data = bytes(range(256)) * 5
    for offset in range(0, len(data), 100):
        harness.write(user, job.job_file_handle, data[offset : offset + 100], offset)
    harness.service.jobs.close_and_start(user, QUEUE_ID, 1)
    served = harness.take_job(server)
    assert harness.read(server, served.job_file_handle) == data
    assert harness.read(server, served.job_file_handle, 1270) == data[1270:]
    assert harness.read(server, served.job_file_handle, 5000) == b""


@requirement("QMS-service-05")
def test_the_size_of_a_job_file(harness: QueueServiceHarness) -> None:
    user, server = harness.user(), harness.server()
    job = harness.open_job(user)
    size = harness.service.jobs.file_size
    assert size(server, QUEUE_ID, 1) == 0
    harness.write(user, job.job_file_handle, b"12345", 100)
    harness.write(user, job.job_file_handle, b"123")
    harness.service.files.write(user, job.job_file_handle, 5000, 0)
    assert size(server, QUEUE_ID, 1) == 105
    harness.service.files.set_size(StoredJobFile(QUEUE_ID, 1), 50)  # the disk was full
    assert size(server, QUEUE_ID, 1) == 50 == harness.service.files.total_bytes
    harness.service.files.set_size(StoredJobFile(QUEUE_ID, 1), 105)


@requirement("QMS-flags-01", "QMS-submit-08")
def test_a_lost_connection_starts_a_job_with_auto_start(harness: QueueServiceHarness) -> None:
    user, server = harness.user(), harness.server()
    job = harness.open_job(user, job_control_flags=AUTO_START)
    harness.write(user, job.job_file_handle, b"half")
    harness.service.connection_lost(user)
    assert harness.entry(1).state(harness.now) is JobState.READY
    assert SyncJobFile(QUEUE_ID, 1, "Q$5D03.001") in harness.perform()
    assert harness.read(server, harness.take_job(server).job_file_handle) == b"half"


@requirement("QMS-flags-02", "QMS-submit-09")
@pytest.mark.parametrize("flags", [0, RESTART])
def test_a_lost_connection_removes_a_job_without_auto_start(harness: QueueServiceHarness, flags: int) -> None:
    user = harness.user()
    harness.open_job(user, job_control_flags=flags)
    other = harness.job(harness.user("OTHER"))
    harness.perform()
    harness.service.connection_lost(user)
    assert harness.order == [other]
    assert harness.entry(other).job_position == 1
    assert DeleteJobFile(QUEUE_ID, 1, "Q$5D03.001") in harness.perform()


@requirement("QMS-flags-03")
@pytest.mark.parametrize("flags", [0, AUTO_START])
def test_a_lost_connection_does_nothing_to_a_started_job(harness: QueueServiceHarness, flags: int) -> None:
    user = harness.user()
    number = harness.job(user, job_control_flags=flags)
    before = harness.entry(number)
    harness.perform()
    harness.service.connection_lost(user)
    assert harness.service.take() == []
    assert harness.entry(number) == before


@requirement("QMS-flags-02")
def test_a_lost_connection_ends_its_own_jobs_only(harness: QueueServiceHarness) -> None:
    first, second = harness.user("FIRST"), harness.user("SECOND")
    harness.open_job(first)
    kept = harness.open_job(second)
    harness.service.connection_lost(first)
    assert harness.order == [kept.job_number]
    harness.write(second, kept.job_file_handle, b"data")
    harness.service.jobs.close_and_start(second, QUEUE_ID, kept.job_number)


@requirement("QMS-flags-02")
def test_a_closed_file_leaves_its_job_open(harness: QueueServiceHarness) -> None:
    user = harness.user()
    jobs = [harness.open_job(user) for _ in range(2)]
    for job in jobs:
        assert harness.service.files.close(user, job.job_file_handle) == StoredJobFile(
            QUEUE_ID, job.job_number
        )
        with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
            harness.service.files.close(user, job.job_file_handle)
    harness.service.jobs.close_and_start(user, QUEUE_ID, 1)
    harness.service.connection_lost(user)
    assert harness.order == [1]


@requirement("QMS-monitor-21", "QMS-ext-11", "QMS-createq-09")
def test_operators_stop_submission(harness: QueueServiceHarness) -> None:
    user, operator = harness.user(), harness.operator()
    opened = harness.open_job(user)
    harness.service.queues.set_status(operator, QUEUE_ID, 0x01)
    with harness.refused(CompletionCode.ERR_Q_HALTED):
        harness.open_job(user)
    harness.service.jobs.close_and_start(user, QUEUE_ID, opened.job_number)
    harness.service.queues.set_status(operator, QUEUE_ID, 0x06)
    harness.open_job(user)


@requirement("QMS-ext-08", "QMS-ext-09")
def test_a_full_queue(harness: QueueServiceHarness) -> None:
    user = harness.user()
    for _ in range(250):
        job = harness.open_job(user)
        harness.service.jobs.close_and_start(user, QUEUE_ID, job.job_number)
    with harness.refused(CompletionCode.ERR_Q_FULL):
        harness.open_job(user)
    harness.service.jobs.remove(user, QUEUE_ID, 1)
    assert harness.open_job(user).job_position == 250


@requirement("QMS-jobfields-25")
@pytest.mark.parametrize(
    "time",
    [
        (100, 1, 1, 0, 0, 0), (96, 0, 1, 0, 0, 0), (96, 13, 1, 0, 0, 0), (96, 1, 0, 0, 0, 0),
        (96, 1, 32, 0, 0, 0), (96, 1, 1, 25, 0, 0), (96, 1, 1, 0, 60, 0), (96, 1, 1, 0, 0, 60),
        (255, 255, 255, 255, 0, 0),
    ],
)  # fmt: skip
def test_a_target_time_out_of_range(harness: QueueServiceHarness, time: tuple[int, ...]) -> None:
    user = harness.user()
    with harness.refused(CompletionCode.FAILURE):
        harness.open_job(user, target_execution_time=bytes(time))
    number = harness.job(user)
    with harness.refused(CompletionCode.FAILURE):
        request = JobRequest(target_execution_time=bytes(time))
        harness.service.jobs.change_entry(user, QUEUE_ID, number, request)


@requirement("QMS-jobfields-25", "QMS-jobfields-22")
@pytest.mark.parametrize("time", [(96, 1, 1, 24, 0, 0), (0, 2, 30, 24, 59, 59), (79, 12, 31, 23, 59, 59)])
def test_the_latest_times_within_the_ranges_are_taken(
    harness: QueueServiceHarness, time: tuple[int, ...]
) -> None:
    user = harness.user()
    assert harness.open_job(user, target_execution_time=bytes(time)).target_execution_time == bytes(time)
    assert harness.open_job(user).target_execution_time == AT_ONCE


@pytest.mark.parametrize(
    "name, value",
    [
        ("target_execution_time", bytes(5)),
        ("job_description", bytes(51)),
        ("queue_record", b""),
        ("job_type", 0x10000),
        ("target_server_id", -1),
    ],
)
def test_a_request_of_other_sizes_can_not_be_made(name: str, value: object) -> None:
    assert name in {field.name for field in fields(JobRequest)}
    with pytest.raises(InvalidValue) as caught:
        JobRequest(**{name: value})  # type: ignore[arg-type]
    assert caught.value.path == name


@pytest.mark.parametrize("limit", ["file_bytes_max", "files_bytes_max"])
def test_the_bytes_of_files_are_limited(limit: str) -> None:
    harness = QueueServiceHarness(Settings(**{limit: 1000}))  # type: ignore[arg-type]
    user = harness.known(harness.user())
    jobs = [harness.open_job(user) for _ in range(2)]
    harness.write(user, jobs[0].job_file_handle, bytes(1000))
    with harness.refused(CompletionCode.OUT_OF_DISK_SPACE):
        harness.service.files.write(user, jobs[0].job_file_handle, 1000, 1)
    if limit == "files_bytes_max":
        with harness.refused(CompletionCode.OUT_OF_DISK_SPACE):
            harness.service.files.write(user, jobs[1].job_file_handle, 0, 1)
        harness.service.jobs.close_and_abort(user, QUEUE_ID, 1)
    harness.service.files.write(user, jobs[1].job_file_handle, 999, 1)


@pytest.mark.parametrize("offset, count", [(-1, 1), (0, -1), (0xFFFFFFFF, 2), (1 << 32, 0)])
def test_not_a_range_of_bytes(harness: QueueServiceHarness, offset: int, count: int) -> None:
    user = harness.user()
    handle = harness.open_job(user).job_file_handle
    for call in (harness.service.files.read, harness.service.files.write):
        with harness.refused(CompletionCode.FAILURE):
            call(user, handle, offset, count)


def test_the_handles_of_a_connection_are_limited() -> None:
    harness = QueueServiceHarness(Settings(handles_max=2))
    user, other = harness.user(), harness.user("OTHER")
    harness.open_job(user)
    harness.open_job(user)
    with harness.refused(CompletionCode.NO_MORE_FILE_HANDLES):
        harness.open_job(user)
    harness.open_job(other)
    harness.service.jobs.close_and_start(user, QUEUE_ID, 1)
    harness.open_job(user)
    harness.check()


@requirement("QMS-flags-02")
def test_logging_in_anew_ends_what_the_connection_had(harness: QueueServiceHarness) -> None:
    user = harness.user()
    harness.open_job(user)
    with harness.refused(CompletionCode.NO_SUCH_OBJECT):
        harness.service.login(user, "NOBODY", 1)
    assert harness.order == [1]
    harness.service.login(user, "SUPERVISOR", 1)
    assert harness.order == []
    assert user.object_id == 1


@pytest.mark.requirement("QMS-service-05")
def test_a_file_is_not_larger_than_a_call_can_tell() -> None:
    harness = QueueServiceHarness(Settings(file_bytes_max=1 << 32, files_bytes_max=1 << 33))
    user = harness.known(harness.user())
    job, files = harness.open_job(user), harness.service.files
    with harness.refused(CompletionCode.OUT_OF_DISK_SPACE):
        files.write(user, job.job_file_handle, 0xFFFFFFFF, 1)
    files.write(user, job.job_file_handle, 0xFFFFFFFE, 1)
    assert files.size(StoredJobFile(QUEUE_ID, 1)) == 0xFFFFFFFF
