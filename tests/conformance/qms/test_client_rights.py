"""A queue server with the rights of a client: what it may do with files, and when that ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msmqwire.ncp.constants import CompletionCode, TrusteeRights
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.files import VolumeFile
from tests.support.netware.queue_service import QUEUE_ID, RESTART, QueueServiceHarness

requirement = pytest.mark.requirement
READ, WRITE, CREATE = TrusteeRights.TR_READ, TrusteeRights.TR_WRITE, TrusteeRights.TR_CREATE
NO_CREATE = CompletionCode.NO_CREATE_PRIVILEGES
HANDLE_IS_DEAD = CompletionCode.INVALID_FILE_HANDLE


class Archive(QueueServiceHarness):
    """The user ALICE has rights in SYS:ALICE, the server PS1 in SYS:SERVER; job 1 of ALICE is in service."""

    def __init__(self) -> None:
        super().__init__()
        self.alice, self.ps1 = self.user(), self.server()
        volumes = self.service.volumes
        for caller, path in ((self.alice, "SYS:ALICE"), (self.ps1, "SYS:SERVER")):
            volumes.create_directory(self.supervisor, path)
            volumes.set_trustee(self.supervisor, path, caller.object_id or 0, READ | WRITE | CREATE)
        self.job(self.alice, b"data", job_control_flags=RESTART)
        self.take_job(self.ps1)

    def change(self) -> None:
        """Put the rights of the client in force."""
        self.service.servicing.change_to_client_rights(self.ps1, QUEUE_ID, 1)


@pytest.fixture
def archive() -> Iterator[Archive]:
    """A server that has a job."""
    archive = Archive()
    yield archive
    archive.check()


@requirement("QMS-service-10", "QMS-service-12", "QMS-service-13", "QMS-service-11", "QMS-createqs-07")
def test_files_are_created_where_the_client_may_and_belong_to_it(archive: Archive) -> None:
    volumes, server = archive.service.volumes, archive.ps1
    with archive.refused(NO_CREATE):
        volumes.create_file(server, "SYS:ALICE\\BEFORE")
    archive.change()
    assert server.assumed_client_id == archive.alice.object_id
    handle = volumes.create_file(server, "SYS:ALICE\\RESTORED")
    entry = volumes.entry("sys:alice/restored")
    assert entry is not None
    assert entry.owner_id == archive.alice.object_id
    assert archive.service.files.write(server, handle, 0, 4).file == VolumeFile("SYS:ALICE\\RESTORED")
    for path, code in (
        ("SYS:SERVER\\OWN", NO_CREATE),
        ("SYS:ELSEWHER", NO_CREATE),
        ("SYS:NO\\SUCH", CompletionCode.INVALID_PATH),
    ):
        with archive.refused(code):
            volumes.create_file(server, path)
    archive.service.servicing.restore_server_rights(server)
    assert server.assumed is None
    with archive.refused(NO_CREATE):
        volumes.create_file(server, "SYS:ALICE\\AFTER")
    volumes.create_file(server, "SYS:SERVER\\OWN")
    own = volumes.entry("SYS:SERVER\\OWN")
    assert own is not None
    assert own.owner_id == server.object_id


@requirement("QMS-service-12")
@pytest.mark.parametrize(
    "right, read, write, code",
    [
        (READ, True, False, None),
        (READ, False, True, CompletionCode.NO_WRITE_PRIVILEGES),
        (READ, True, True, CompletionCode.NO_WRITE_PRIVILEGES),
        (WRITE, False, True, None),
        (WRITE, True, False, CompletionCode.NO_READ_PRIVILEGES),
        (CREATE, True, False, CompletionCode.NO_READ_PRIVILEGES),
    ],
)
def test_files_are_opened_as_the_client_may(
    archive: Archive, right: TrusteeRights, read: bool, write: bool, code: CompletionCode | None
) -> None:
    volumes, server = archive.service.volumes, archive.ps1
    volumes.create_file(archive.supervisor, "SYS:ALICE\\FILE")
    volumes.set_trustee(archive.supervisor, "SYS:ALICE", archive.alice.object_id or 0, right)
    archive.change()
    if code is not None:
        with archive.refused(code):
            volumes.open_file(server, "SYS:ALICE\\FILE", may_read=read, may_write=write)
        return
    handle = volumes.open_file(server, "SYS:ALICE\\FILE", may_read=read, may_write=write)
    files = archive.service.files
    allowed, other = (files.read, files.write) if read else (files.write, files.read)
    allowed(server, handle, 0, 1)
    no = CompletionCode.NO_WRITE_PRIVILEGES if read else CompletionCode.NO_READ_PRIVILEGES
    with archive.refused(no):
        other(server, handle, 0, 1)


@requirement("QMS-ext-17")
def test_open_files_keep_their_rights(archive: Archive) -> None:
    volumes, files, server = archive.service.volumes, archive.service.files, archive.ps1
    before = volumes.create_file(server, "SYS:SERVER\\BEFORE")
    job = archive.entry(1).job_file_handle
    archive.change()
    meanwhile = volumes.create_file(server, "SYS:ALICE\\MEANWHIL")
    files.write(server, before, 0, 1)
    assert archive.read(server, job) == b"data"
    archive.service.servicing.restore_server_rights(server)
    for handle in (before, meanwhile):
        files.write(server, handle, 0, 1)


@requirement("QMS-ext-16", "QMS-ext-01")
@pytest.mark.parametrize("end", ["finish", "abort", "detach", "remove", "destroy"])
def test_client_rights_end_with_the_job(archive: Archive, end: str) -> None:
    server, service = archive.ps1, archive.service
    archive.change()
    match end:
        case "detach":
            service.servicing.detach(server, QUEUE_ID)
        case "remove":
            service.jobs.remove(archive.alice, QUEUE_ID, 1)
        case "destroy":
            service.queues.destroy(archive.supervisor, QUEUE_ID)
        case _:
            getattr(service.servicing, end)(server, QUEUE_ID, 1)
    assert server.assumed is None
    with archive.refused(NO_CREATE):
        service.volumes.create_file(server, "SYS:ALICE\\AFTER")


@requirement("QMS-ext-16")
def test_the_end_of_another_job_does_not_end_them(archive: Archive) -> None:
    archive.job(archive.alice)
    other = archive.user("BOB")
    archive.job(other)
    archive.change()
    for number in (2, 3):
        assert archive.take_job(archive.ps1).job_number == number
    archive.service.servicing.finish(archive.ps1, QUEUE_ID, 2)
    assert archive.ps1.assumed_client_id == archive.alice.object_id
    archive.service.servicing.change_to_client_rights(archive.ps1, QUEUE_ID, 3)
    assert archive.ps1.assumed_client_id == other.object_id
    archive.service.servicing.finish(archive.ps1, QUEUE_ID, 1)
    assert archive.ps1.assumed_client_id == other.object_id
    archive.service.servicing.finish(archive.ps1, QUEUE_ID, 3)
    assert archive.ps1.assumed is None


@requirement("QMS-service-10", "QMS-qservers-05")
def test_client_rights_make_the_queue_server_act_as_the_client(archive: Archive) -> None:
    """The queue takes it for the client, except for the servicing of jobs."""
    jobs, server = archive.service.jobs, archive.ps1
    number = archive.job(archive.alice)
    with archive.refused(CompletionCode.ERR_NO_Q_JOB_RIGHTS):
        jobs.remove(server, QUEUE_ID, number)
    archive.change()
    jobs.remove(server, QUEUE_ID, number)
    with archive.refused(CompletionCode.ERR_NO_Q_JOB):  # it services as itself all the same
        archive.take_job(server)
    assert archive.job(archive.alice) == number + 1
    assert archive.take_job(server).servicing_server_id_number == server.object_id


@requirement("QMS-service-12")
def test_the_rights_of_a_client_that_is_deleted(archive: Archive) -> None:
    archive.service.bindery.delete_object(archive.supervisor, archive.alice.object_id or 0)
    with archive.refused(CompletionCode.NO_SUCH_OBJECT):
        archive.change()


def rights(archive: Archive, caller: Caller, path: str) -> TrusteeRights:
    """The effective rights of a caller."""
    return archive.service.volumes.effective_rights(caller, path)


@requirement("QMS-service-12")
def test_trustee_rights_are_inherited_until_reassigned(archive: Archive) -> None:
    """The assignment nearest to a file counts, for each object by itself."""
    volumes, alice = archive.service.volumes, archive.alice
    for path in ("SYS:ALICE\\A", "SYS:ALICE\\A\\B"):
        volumes.create_directory(alice, path)
    alice_id = alice.object_id or 0
    assert rights(archive, alice, "SYS:ALICE\\A\\B") == READ | WRITE | CREATE
    volumes.set_trustee(archive.supervisor, "SYS:ALICE\\A", alice_id, READ)
    assert rights(archive, alice, "SYS:ALICE\\A\\B") == READ
    volumes.set_trustee(archive.supervisor, "SYS:ALICE\\A\\B", alice_id, 0)
    assert rights(archive, alice, "SYS:ALICE\\A\\B") == 0
    group = archive.object("STAFF", 2)
    archive.service.properties.join_group(archive.supervisor, alice_id, group)
    volumes.set_trustee(archive.supervisor, "SYS:", group, WRITE)
    assert rights(archive, alice, "SYS:ALICE\\A\\B") == WRITE
    assert rights(archive, alice, "SYS:ALICE\\A") == READ | WRITE
    assert rights(archive, archive.ps1, "SYS:ALICE") == 0
    assert rights(archive, archive.supervisor, "SYS:ALICE") == 0xFF
    assert rights(archive, archive.connect(), "SYS:ALICE") == 0


@requirement("QMS-service-12")
def test_trustees_are_set_by_those_with_access_control(archive: Archive) -> None:
    volumes, alice = archive.service.volumes, archive.alice
    alice_id = alice.object_id or 0
    with archive.refused(CompletionCode.NO_CREATE_DELETE_PRIVILEGES):
        volumes.set_trustee(alice, "SYS:ALICE", alice_id, 0xFF)
    volumes.set_trustee(archive.supervisor, "SYS:ALICE", alice_id, TrusteeRights.TR_ACCESS_CTRL)
    with archive.refused(CompletionCode.FAILURE):
        volumes.set_trustee(alice, "SYS:ALICE", alice_id, 0x100)
    with archive.refused(CompletionCode.NO_SUCH_OBJECT):
        volumes.set_trustee(alice, "SYS:ALICE", 0xDEAD, 1)
    volumes.set_trustee(alice, "SYS:ALICE", alice_id, 0xFF)
    archive.service.bindery.delete_object(archive.supervisor, alice_id)
    archive.perform()
    assert [trustee.path for trustee in archive.store.trustees.values()] == ["SYS:SERVER"]


def test_directories_and_files_are_made_once(archive: Archive) -> None:
    volumes, alice = archive.service.volumes, archive.alice
    volumes.create_file(alice, "SYS:ALICE\\FILE")
    for create in (volumes.create_file, volumes.create_directory):
        for path in ("SYS:ALICE\\FILE", "SYS:ALICE", "SYS:"):
            with archive.refused(CompletionCode.NO_CREATE_DELETE_PRIVILEGES):
                create(archive.supervisor, path)
    with archive.refused(CompletionCode.INVALID_PATH):
        volumes.create_file(alice, "SYS:ALICE\\FILE\\BELOW")
    with archive.refused(CompletionCode.FAILURE):
        volumes.open_file(archive.supervisor, "SYS:ALICE", may_read=True, may_write=False)
    with archive.refused(CompletionCode.FAILURE):
        volumes.open_file(archive.supervisor, "SYS:NONE", may_read=True, may_write=False)


def test_handles_end_with_their_connection(archive: Archive) -> None:
    handle = archive.service.volumes.create_file(archive.alice, "SYS:ALICE\\FILE")
    archive.service.connection_lost(archive.alice)
    with archive.refused(HANDLE_IS_DEAD):
        archive.service.files.write(archive.alice, handle, 0, 1)
