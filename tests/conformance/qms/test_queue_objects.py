"""Queues as bindery objects: what creating one makes, who may change it, what destroying it leaves."""

from __future__ import annotations

import pytest

from msmqwire.ncp.constants import SUPERVISOR_ID, CompletionCode, ObjectType
from msmqwire.netware.model.bindery import Q_DIRECTORY, Q_OPERATORS, Q_SERVERS, Q_USERS
from msmqwire.netware.model.changes import (
    DeleteObject,
    DeleteQueue,
    MakeQueueDirectory,
    PutObject,
    PutQueue,
    RemoveQueueDirectory,
)
from msmqwire.netware.model.job import JobRequest
from msmqwire.netware.model.queue import job_file_name, queue_directory, queue_file_stem
from msmqwire.netware.model.settings import Settings
from tests.support.netware.queue_service import QUEUE_ID, QueueServiceHarness

requirement = pytest.mark.requirement
SETS = (Q_USERS, Q_SERVERS, Q_OPERATORS)


@requirement("QMS-qobject-01", "QMS-qobject-04", "QMS-bindery-02/a", "QMS-qobject-06", "QMS-createq-02")
def test_a_queue_is_an_object_with_a_directory(harness: QueueServiceHarness) -> None:
    service = harness.service
    queue_id = service.queues.create(harness.supervisor, "archive", ObjectType.NWOT_ARCHIVE_QUEUE, "VOL1:Q")
    found = service.bindery.get_name(harness.connect(), queue_id)
    assert (found.id, found.name, found.type) == (queue_id, "ARCHIVE", ObjectType.NWOT_ARCHIVE_QUEUE)
    assert (found.security, found.dynamic) == (0x30, False)
    place = f"VOL1:Q\\{queue_id:06X}"
    changes = harness.perform()
    assert MakeQueueDirectory(queue_id, place) in changes
    assert PutObject(found) in changes
    assert PutQueue(service.queue_table[queue_id].row) in changes
    assert service.queue_table[queue_id].row.directory == place


@requirement("QMS-qobject-07", "QMS-qdir-01", "QMS-qdir-02", "QMS-qprops-01", "QMS-qprops-02")
@requirement("QMS-createq-04", "QMS-createq-06", "QMS-qdir-10", "QMS-createq-03", "QMS-createq-12")
@pytest.mark.parametrize("type_", [0x0003, 0x0008, 0x000A, 0x1234])
def test_security_and_properties_of_a_new_queue(harness: QueueServiceHarness, type_: int) -> None:
    queue_id = harness.service.queues.create(harness.supervisor, "NEW", type_, "SYS:SYSTEM")
    found = harness.service.objects[queue_id]
    assert found.type == type_
    assert found.security == 0x30
    assert {name: (held.is_set, held.security) for name, held in found.properties.items()} == {
        "Q_DIRECTORY": (False, 0x33),
        "Q_USERS": (True, 0x30),
        "Q_SERVERS": (True, 0x30),
        "Q_OPERATORS": (True, 0x30),
    }
    assert all(not found.members(name) for name in SETS)
    assert len(found.properties[Q_DIRECTORY].segments) == 1


@requirement("QMS-qdir-11", "QMS-qdir-08", "QMS-qdir-07", "QMS-qdir-05", "QMS-createq-05")
def test_the_directory_of_the_example(harness: QueueServiceHarness) -> None:
    assert harness.queue_id == QUEUE_ID
    value = harness.service.properties.read(harness.supervisor, QUEUE_ID, Q_DIRECTORY)
    assert value.data.rstrip(b"\0") == b"SYS:\\SYSTEM\\015D03"
    assert not value.more
    assert harness.store.directories == {QUEUE_ID: "SYS:SYSTEM\\015D03"}


@requirement("QMS-qdir-07", "QMS-qdir-08", "QMS-qdir-11")
@pytest.mark.parametrize(
    "path, queue_id, directory",
    [
        ("SYS:A/", 0x015D03, "SYS:A/015D03"),
        ("SYS:SYSTEM", 0x015D03, "SYS:SYSTEM\\015D03"),
        ("SYS:", 0xA, "SYS:00000A"),
        ("SYS:\\A\\", 0x12345678, "SYS:\\A\\12345678"),
    ],
)
def test_names_of_queue_directories(path: str, queue_id: int, directory: str) -> None:
    assert queue_directory(path, queue_id) == directory


@requirement("QMS-files-01", "QMS-files-05", "QMS-files-10")
def test_names_of_queue_files() -> None:
    assert queue_file_stem(0x015D03) == "Q$5D03"
    assert job_file_name(0x015D03, 1) == "Q$5D03.001"
    assert job_file_name(0x12340042, 999) == "Q$0042.999"


@requirement("QMS-qdir-09")
def test_the_longest_path(harness: QueueServiceHarness) -> None:
    path = "SYS:" + ("D" * 8 + "\\") * 12 + "D" * 6
    for longer in (path + "D", path + "D\\" + "D" * 8):  # 119 and 128 characters
        with harness.refused(CompletionCode.INVALID_PATH):
            harness.queue("NEW", longer)
    queue_id = harness.queue("NEW", path)
    segment = harness.service.objects[queue_id].properties[Q_DIRECTORY].segments[0]
    assert len(segment) == 128
    assert segment.rstrip(b"\0").decode() == f"{path}\\{queue_id:06X}"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("", marks=requirement("QMS-qdir-04")), "SYSTEM", ":A", "SYS:..", "SYS:A\\..\\B",
        "SYS:A*", "SYS:A:B", "S.S:A", "SYS:a b", "SYS:\x00",
    ],
)  # fmt: skip
def test_not_a_path(harness: QueueServiceHarness, path: str) -> None:
    with harness.refused(CompletionCode.INVALID_PATH):
        harness.queue("NEW", path)


@requirement("QMS-qdir-05")
def test_queue_directories_have_nothing_else_in_them(harness: QueueServiceHarness) -> None:
    volumes, supervisor = harness.service.volumes, harness.supervisor
    with harness.refused(CompletionCode.INVALID_PATH):
        harness.queue("NEW", "sys:system/015d03")
    with harness.refused(CompletionCode.INVALID_PATH):
        volumes.create_directory(supervisor, "SYS:SYSTEM\\015D03\\A")
    with harness.refused(CompletionCode.INVALID_PATH):
        volumes.create_directory(supervisor, "SYS:SYSTEM\\015D03")
    volumes.create_directory(supervisor, f"SYS:{harness.service.objects.next_id:06X}")
    with harness.refused(CompletionCode.INVALID_PATH):
        harness.queue("NEW", "SYS:")


@requirement("QMS-qobject-02")
def test_a_second_queue_of_a_name_and_type(harness: QueueServiceHarness) -> None:
    queues, supervisor = harness.service.queues, harness.supervisor
    with harness.refused(CompletionCode.OBJECT_ALREADY_EXISTS):
        queues.create(supervisor, "printq", ObjectType.NWOT_PRINT_QUEUE, "SYS:OTHER")
    other = queues.create(supervisor, "PRINTQ", ObjectType.NWOT_JOB_QUEUE, "SYS:OTHER")
    assert other != harness.queue_id
    assert harness.service.objects.named("PRINTQ", ObjectType.NWOT_PRINT_QUEUE).id == harness.queue_id


@requirement("QMS-qobject-02", "QMS-qobject-04")
def test_an_id_is_never_given_again(harness: QueueServiceHarness) -> None:
    first = harness.queue("FIRST")
    harness.service.queues.destroy(harness.supervisor, first)
    harness.perform()
    harness.restart()
    assert harness.queue("SECOND") == first + 1


@requirement("QMS-qobject-05")
@pytest.mark.parametrize("type_", [0, 0xFFFF, 0x10000, -1])
def test_a_queue_has_a_type(harness: QueueServiceHarness, type_: int) -> None:
    with harness.refused(CompletionCode.WILD_CARD_NOT_ALLOWED):
        harness.service.queues.create(harness.supervisor, "NEW", type_, "SYS:SYSTEM")


@requirement("QMS-qobject-03")
def test_queues_of_two_file_servers_have_nothing_in_common(harness: QueueServiceHarness) -> None:
    other = QueueServiceHarness()
    assert other.queue_id == harness.queue_id
    other.service.queues.destroy(other.supervisor, other.queue_id)
    assert harness.service.objects[harness.queue_id].name == "PRINTQ"
    other.check()


@requirement("QMS-qobject-08", "QMS-qservers-04")
def test_anybody_scans_for_queues(harness: QueueServiceHarness) -> None:
    second = harness.queue("PLOTTER")
    harness.object("PUTTER")
    anonymous, scan = harness.connect(), harness.service.bindery.scan
    print_queue = ObjectType.NWOT_PRINT_QUEUE
    assert scan(anonymous, "*", print_queue, after=0xFFFFFFFF).id == harness.queue_id
    assert scan(anonymous, "*", print_queue, after=harness.queue_id).id == second
    assert scan(anonymous, "p?OT*R", print_queue).id == second
    with harness.refused(CompletionCode.NO_SUCH_OBJECT):
        scan(anonymous, "*", print_queue, after=second)
    with harness.refused(CompletionCode.NO_SUCH_OBJECT):  # a user is to be seen by those logged in
        scan(anonymous, "PU*")


@requirement("QMS-qobject-09", "QMS-qusers-04")
@pytest.mark.parametrize("name", [*SETS, Q_DIRECTORY])
def test_only_a_supervisor_changes_properties_of_a_queue(harness: QueueServiceHarness, name: str) -> None:
    properties, queue_id = harness.service.properties, harness.queue_id
    operator = harness.operator()
    assert operator.object_id is not None
    with harness.refused(CompletionCode.NO_PROPERTY_WRITE_RIGHTS):
        properties.add_member(operator, queue_id, name, operator.object_id)
    with harness.refused(CompletionCode.NO_PROPERTY_WRITE_RIGHTS):
        properties.delete_member(operator, queue_id, name, operator.object_id)
    with harness.refused(CompletionCode.NO_PROPERTY_WRITE_RIGHTS):
        properties.write(operator, queue_id, name, b"SYS:EVIL")
    with harness.refused(CompletionCode.NO_PROPERTY_DELETE_RIGHTS):
        properties.delete(operator, queue_id, name)
    with harness.refused(CompletionCode.NO_PROPERTY_CREATE_RIGHTS):
        properties.create(operator, queue_id, "DEVICE", is_set=False, security=0)


@requirement("QMS-qobject-09", "QMS-supervisor-01")
def test_a_supervisor_equivalent_changes_queue_properties(harness: QueueServiceHarness) -> None:
    properties = harness.service.properties
    deputy_id = harness.object("DEPUTY")
    deputy = harness.login("DEPUTY")
    with harness.refused(CompletionCode.NO_PROPERTY_WRITE_RIGHTS):
        properties.add_member(deputy, harness.queue_id, Q_USERS, deputy_id)
    properties.make_equivalent(harness.supervisor, deputy_id, SUPERVISOR_ID)
    properties.add_member(deputy, harness.queue_id, Q_USERS, deputy_id)
    assert harness.service.objects[harness.queue_id].members(Q_USERS) == {deputy_id}
    harness.service.queues.create(deputy, "NEW", ObjectType.NWOT_PRINT_QUEUE, "SYS:SYSTEM")


@requirement("QMS-qdir-01", "QMS-qdir-03")
def test_who_reads_the_properties_of_a_queue(harness: QueueServiceHarness) -> None:
    properties, queue_id = harness.service.properties, harness.queue_id
    member = harness.object("MEMBER")
    for name in SETS:
        harness.admit(name, member)
    harness.perform()
    outsider_id = harness.object("OUTSIDER")
    assert outsider_id
    outsider = harness.login("OUTSIDER")
    harness.perform()
    for name in SETS:
        assert properties.read(outsider, queue_id, name).members == (member,)
    with harness.refused(CompletionCode.NO_PROPERTY_READ_RIGHTS):
        properties.read(outsider, queue_id, Q_DIRECTORY)
    with harness.refused(CompletionCode.NO_PROPERTY_READ_RIGHTS):
        properties.read(harness.connect(), queue_id, Q_DIRECTORY)


@requirement("QMS-qprops-03", "QMS-createq-14")
def test_an_application_gives_a_queue_more_properties(harness: QueueServiceHarness) -> None:
    properties, queue_id, supervisor = harness.service.properties, harness.queue_id, harness.supervisor
    properties.create(supervisor, queue_id, "DEVICE", is_set=False, security=0x30)
    properties.write(supervisor, queue_id, "DEVICE", b"plotter")
    properties.create(supervisor, queue_id, "FRIENDS", is_set=True, security=0x31)
    properties.add_member(supervisor, queue_id, "FRIENDS", SUPERVISOR_ID)
    user = harness.user()
    harness.job(user)
    assert properties.read(user, queue_id, "DEVICE").data == b"plotter".ljust(128, b"\0")
    assert properties.read(user, queue_id, "FRIENDS").members == (SUPERVISOR_ID,)


@requirement("QMS-qdir-08", "QMS-createq-05")
def test_writing_q_directory_moves_nothing(harness: QueueServiceHarness) -> None:
    harness.service.properties.write(harness.supervisor, QUEUE_ID, Q_DIRECTORY, b"SYS:SYSTEM\\A.NPQ")
    assert harness.service.properties.read(harness.supervisor, QUEUE_ID, Q_DIRECTORY).data.startswith(
        b"SYS:SYSTEM\\A.NPQ\0"
    )
    assert harness.service.queue_table[QUEUE_ID].row.directory == "SYS:SYSTEM\\015D03"


@requirement("QMS-createq-15", "QMS-ext-15")
def test_destroying_a_queue_leaves_nothing(harness: QueueServiceHarness) -> None:
    service, queue_id = harness.service, harness.queue_id
    user, server, second = harness.user(), harness.server("PS1"), harness.server("PS2")
    opened = harness.open_job(user)
    harness.job(user, b"data", job_type=2)
    served = harness.take_job(server, types=(2,))
    service.servicing.change_to_client_rights(server, queue_id, served.job_number)
    harness.perform()
    service.queues.destroy(harness.supervisor, queue_id)
    changes = harness.perform()
    assert DeleteObject(queue_id) in changes
    assert DeleteQueue(queue_id) in changes
    assert RemoveQueueDirectory(queue_id, "SYS:SYSTEM\\015D03") in changes
    assert (harness.store.directories, harness.store.files, harness.store.jobs) == ({}, {}, {})
    assert server.assumed is None
    assert service.files.total_bytes == 0
    for caller, handle in ((user, opened.job_file_handle), (server, served.job_file_handle)):
        with harness.refused(CompletionCode.INVALID_FILE_HANDLE):
            service.files.read(caller, handle, 0, 1)
    with harness.refused(CompletionCode.ERR_NO_QUEUE):
        service.jobs.create(user, queue_id, JobRequest(), harness.now)
    with harness.refused(CompletionCode.ERR_Q_STN_NOT_SERVER):
        service.servicing.restore_server_rights(second)
    with harness.refused(CompletionCode.NO_SUCH_OBJECT):
        service.bindery.get_name(harness.supervisor, queue_id)
    service.connection_lost(user)
    service.connection_lost(server)
    assert service.take() == []


@requirement("QMS-createq-15", "QMS-createq-16")
def test_a_queue_is_not_deleted_like_another_object(harness: QueueServiceHarness) -> None:
    with harness.refused(CompletionCode.NO_OBJECT_DELETE_RIGHTS):
        harness.service.bindery.delete_object(harness.supervisor, harness.queue_id)


def test_the_number_of_queues_is_limited() -> None:
    harness = QueueServiceHarness(Settings(queues_max=1))
    with harness.refused(CompletionCode.SERVER_OUT_OF_MEMORY):
        harness.queue("SECOND")
