"""A restart of the file server: jobs at rest come back, the others end as their flags say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.ncp.constants import SUPERVISOR_ID, CompletionCode
from msmqwire.netware.model.bindery import BinderyObject
from msmqwire.netware.model.changes import PutObject, SyncJobFile
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import StoredJobFile, VolumeFile
from msmqwire.netware.model.job import JobState
from msmqwire.netware.model.queue import QueueRow
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService
from tests.support.netware.queue_service import (
    AUTO_START,
    QUEUE_ID,
    RESTART,
    USER_HOLD,
    QueueServiceHarness,
    frozen,
)

requirement = pytest.mark.requirement


def test_a_new_store_has_the_supervisor_alone() -> None:
    service = QueueService.restore(Contents())
    assert [(found.id, found.name, found.type) for found in service.objects] == [
        (SUPERVISOR_ID, "SUPERVISOR", 1)
    ]
    assert PutObject(service.objects[SUPERVISOR_ID]) in service.take()


def test_what_is_at_rest_comes_back_as_it_was(harness: QueueServiceHarness) -> None:
    user, operator = harness.user(), harness.operator()
    group = harness.object("STAFF", 2)
    harness.service.properties.join_group(harness.supervisor, user.object_id or 0, group)
    harness.service.queues.set_status(operator, QUEUE_ID, 0x02)
    for flags in (0, USER_HOLD, AUTO_START | RESTART):
        harness.job(user, b"data", job_control_flags=flags)
    harness.service.jobs.change_position(operator, QUEUE_ID, 3, 1)
    harness.service.volumes.create_directory(harness.supervisor, "SYS:A")
    harness.service.volumes.set_trustee(harness.supervisor, "SYS:A", group, 0x09)
    harness.perform()
    before = harness.service
    assert harness.restart() == []
    after = harness.service
    assert after is not before
    assert list(after.objects) == list(before.objects)
    assert after.objects.next_id == before.objects.next_id
    assert frozen(after.queue_table) == frozen(before.queue_table)
    assert harness.order == [3, 1, 2]
    assert after.jobs.file_size(operator, QUEUE_ID, 3) == 4
    user = harness.login("ALICE")
    assert harness.open_job(user).job_number == 4
    assert after.volumes.effective_rights(user, "SYS:A") == 0x09
    assert after.volumes.entry("SYS:A") == before.volumes.entry("SYS:A")


@requirement("QMS-flags-01", "QMS-flags-02", "QMS-submit-08", "QMS-submit-09")
def test_jobs_that_were_open(harness: QueueServiceHarness) -> None:
    user = harness.user()
    harness.open_job(user)
    kept = harness.open_job(user, job_control_flags=AUTO_START)
    harness.write(user, kept.job_file_handle, b"half")
    harness.open_job(user, job_control_flags=RESTART)
    changes = harness.restart()
    assert harness.order == [2]
    assert harness.entry(2).state(harness.now) is JobState.READY
    assert harness.entry(2).job_file_handle == 0
    assert SyncJobFile(QUEUE_ID, 2, "Q$5D03.002") in changes
    assert harness.store.files.keys() == {StoredJobFile(QUEUE_ID, 2)}
    server = harness.server()
    assert harness.read(server, harness.take_job(server).job_file_handle) == b"half"


@requirement("QMS-flags-04", "QMS-flags-05", "QMS-service-16", "QMS-service-17")
def test_jobs_that_were_in_service(harness: QueueServiceHarness) -> None:
    user, server = harness.user(), harness.server()
    harness.job(user)
    harness.job(user, b"data", job_control_flags=RESTART)
    harness.job(user, job_control_flags=AUTO_START)
    before = harness.entry(2)
    for _ in range(3):
        harness.take_job(server)
    harness.perform()
    harness.restart()
    assert harness.order == [2]
    assert harness.entry(2) == replace(before, job_position=1)
    assert harness.service.queues.read_status(server, QUEUE_ID).servers == ()
    with harness.refused(CompletionCode.ERR_Q_STN_NOT_SERVER):
        harness.service.servicing.finish(server, QUEUE_ID, 2)
    again = harness.login("PS1", 7)
    harness.service.servicing.attach(again, QUEUE_ID)
    assert harness.read(again, harness.take_job(again).job_file_handle) == b"data"


def test_dynamic_objects_and_properties_are_gone(harness: QueueServiceHarness) -> None:
    bindery, properties = harness.service.bindery, harness.service.properties
    guest = bindery.create_object(harness.supervisor, "GUEST", 1, dynamic=True).id
    user = harness.object("STAYS")
    for name, dynamic in (("SHORT", True), ("LONG", False)):
        properties.create(harness.supervisor, user, name, is_set=True, security=0x31, dynamic=dynamic)
        properties.add_member(harness.supervisor, user, name, guest)
    harness.service.volumes.set_trustee(harness.supervisor, "SYS:", guest, 1)
    harness.perform()
    harness.restart()
    assert harness.service.objects.get(guest) is None
    assert harness.service.objects[user].properties.keys() == {"LONG"}
    assert harness.service.objects[user].members("LONG") == frozenset()
    assert harness.store.trustees == {}
    assert harness.object("NEXT") > user


ROW = QueueRow(2, "SYS:2")
OBJECT = BinderyObject(2, "Q", 3)


@pytest.mark.parametrize(
    "contents",
    [
        Contents(queues=[ROW]),
        Contents(objects=[OBJECT], queues=[ROW], orders={2: (1,)}),
        Contents(objects=[OBJECT], queues=[ROW], orders={2: (1, 1)}),
    ],
    ids=["no object", "no job", "twice"],
)
def test_contents_that_contradict_each_other(contents: Contents) -> None:
    with pytest.raises(InvalidValue):
        QueueService.restore(contents)


def test_a_job_without_its_queue_or_its_place(harness: QueueServiceHarness) -> None:
    harness.job(harness.user())
    harness.perform()
    good = harness.store.contents()
    for bad in (replace(good, orders={}), replace(good, queues=())):
        with pytest.raises(InvalidValue):
            QueueService.restore(bad)


def test_file_sizes_count_after_a_restart() -> None:
    contents = Contents(sizes={StoredJobFile(2, 1): 600, VolumeFile("SYS:A"): 400})
    assert QueueService.restore(contents).files.total_bytes == 1000


def test_there_are_not_more_jobs_than_numbers() -> None:
    assert Settings(jobs_max=998)
    with pytest.raises(InvalidValue):
        Settings(jobs_max=999)
