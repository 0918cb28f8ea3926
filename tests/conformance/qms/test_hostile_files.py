"""Shares of the room for files: who has proved nothing does not take it all from those who have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msmqwire.ncp.constants import CompletionCode, TrusteeRights
from msmqwire.netware.model.bindery import Q_OPERATORS, Q_USERS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.files import VolumeFile
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.passwords import SALT_SIZE, PasswordHashing
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.file_space import KNOWN, Account, FileSpace, ShareUsedUp
from tests.support.netware.queue_service import QUEUE_ID, QueueServiceHarness

ROOM = 64_000
SETTINGS = Settings(files_bytes_max=ROOM)
FULL = CompletionCode.OUT_OF_DISK_SPACE
BLOCK = 1_000


@pytest.fixture
def harness() -> QueueServiceHarness:
    return QueueServiceHarness(SETTINGS)


def at(caller: Caller, origin: str) -> Caller:
    caller.origin = origin
    return caller


def fill(harness: QueueServiceHarness, caller: Caller, job: Job) -> int:
    """The bytes that are taken of a caller until it is refused; nothing of its file is lost by that."""
    size = 0
    write = harness.service.files.write
    while harness.service.files.space.used + BLOCK <= ROOM:
        try:
            write(caller, job.job_file_handle, size, BLOCK)
        except ShareUsedUp:
            break
        size += BLOCK
    with harness.refused(FULL):
        write(caller, job.job_file_handle, size, BLOCK)
    assert harness.service.jobs.file_size(caller, QUEUE_ID, job.job_number) == size
    return size


def test_one_object_has_a_quarter(harness: QueueServiceHarness) -> None:
    hostile, honest = at(harness.user("MALLORY"), "10.0.0.1"), at(harness.user("ALICE"), "10.0.0.2")
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM // 4
    assert fill(harness, hostile, harness.open_job(hostile)) == 0
    other = at(harness.login("MALLORY"), "10.0.0.3")
    assert fill(harness, other, harness.open_job(other)) == 0, "from another address"
    assert fill(harness, honest, harness.open_job(honest)) == ROOM // 4


def test_one_address_has_a_quarter(harness: QueueServiceHarness) -> None:
    taken = 0
    for name in ("ONE", "TWO", "THREE"):
        hostile = at(harness.user(name), "10.0.0.1")
        taken += fill(harness, hostile, harness.open_job(hostile))
    assert taken == ROOM // 4


def test_many_of_them_leave_a_reserve(harness: QueueServiceHarness) -> None:
    for number in range(8):
        hostile = at(harness.user(f"U{number}"), f"10.0.0.{number}")
        fill(harness, hostile, harness.open_job(hostile))
    assert ROOM * 3 // 4 <= harness.service.files.total_bytes < ROOM
    left = ROOM - harness.service.files.total_bytes
    owner = harness.known(harness.user("OWNER"))
    assert fill(harness, owner, harness.open_job(owner)) == left


@pytest.mark.parametrize("who", ["password", "operator", "supervisor", "equivalent"])
def test_known_ones_are_bound_by_the_limit_alone(harness: QueueServiceHarness, who: str) -> None:
    hostile = at(harness.user("MALLORY"), "10.0.0.1")
    fill(harness, hostile, harness.open_job(hostile))
    if who == "supervisor":
        caller = harness.supervisor
        harness.admit(Q_USERS, 1)
    elif who == "operator":
        caller = harness.user_and_operator()
    else:
        caller = harness.user("ALICE")
        assert caller.object_id is not None
        if who == "equivalent":
            harness.service.properties.make_equivalent(harness.admin, caller.object_id, 1)
        else:
            harness.service.logins.change_password(
                harness.admin, caller.object_id, b"", b"secret", PasswordHashing(bytes(SALT_SIZE))
            )
            harness.service.login(caller, "ALICE", 1, b"secret")
    job = harness.open_job(at(caller, "10.0.0.1"))
    assert fill(harness, caller, job) == ROOM - ROOM // 4


def test_a_password_that_an_object_gave_itself_proves_nothing(harness: QueueServiceHarness) -> None:
    hostile = at(harness.user("MALLORY"), "10.0.0.1")
    logins, own = harness.service.logins, hostile.object_id or 0
    for old, new in ((b"", b"first"), (b"first", b"second")):
        logins.change_password(hostile, own, old, new, PasswordHashing(bytes(SALT_SIZE)))
    harness.service.login(hostile, "MALLORY", 1, b"second")
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM // 4
    harness.service.logout(hostile)
    harness.perform()
    harness.restart()
    harness.service.login(hostile, "MALLORY", 1, b"second")
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM // 4
    salt = PasswordHashing(bytes(SALT_SIZE))
    harness.service.logins.change_password(harness.admin, own, b"", b"third", salt)
    harness.service.logins.change_password(hostile, own, b"third", b"fourth", salt)
    harness.service.login(hostile, "MALLORY", 1, b"fourth")
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM, "one that a supervisor gave"


def test_a_login_without_password_ends_what_was_proved(harness: QueueServiceHarness) -> None:
    harness.user("TRUDY")
    hostile = at(harness.known(harness.user("MALLORY")), "10.0.0.1")
    harness.service.logout(hostile)
    assert not hostile.has_proved
    hostile.has_proved = True
    harness.service.login(hostile, "TRUDY", 1)
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM // 4


def test_a_file_in_many_hands_costs_no_more() -> None:
    """The size of a file is known, however many objects have written to it."""
    space, file = FileSpace(SETTINGS), VolumeFile("SYS:A")
    for number in range(2_000):
        account = Account(f"{number:08X}", f"10.0.{number // 256}.{number % 256}")
        space.check(file, space.size(file) + 1, account)
        space.add(file, 1, account)
    assert space.size(file) == space.used == 2_000
    space.set_size(file, 500)
    assert space.size(file) == space.used == 500
    space.delete(file)
    assert (space.size(file), space.used, space.by_object.by_origin()) == (0, 0, {})


def test_a_job_that_ends_gives_its_bytes_back(harness: QueueServiceHarness) -> None:
    hostile = at(harness.user("MALLORY"), "10.0.0.1")
    job = harness.open_job(hostile)
    fill(harness, hostile, job)
    harness.service.jobs.close_and_start(hostile, QUEUE_ID, job.job_number)
    assert fill(harness, hostile, harness.open_job(hostile)) == 0
    harness.service.jobs.remove(hostile, QUEUE_ID, job.job_number)
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM // 4


def test_a_moved_job_keeps_its_account(harness: QueueServiceHarness) -> None:
    hostile, operator = at(harness.user("MALLORY"), "10.0.0.1"), harness.user_and_operator()
    job = harness.open_job(hostile)
    fill(harness, hostile, job)
    harness.service.jobs.close_and_start(hostile, QUEUE_ID, job.job_number)
    other = harness.queue("OTHER")
    for name in (Q_USERS, Q_OPERATORS):
        harness.admit(name, operator.object_id or 0, other)
    number = harness.service.jobs.move(operator, QUEUE_ID, job.job_number, other)
    assert harness.service.files.total_bytes == ROOM // 4
    assert fill(harness, hostile, harness.open_job(hostile)) == 0
    harness.service.jobs.remove(operator, other, number)
    assert harness.service.files.total_bytes == 0
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM // 4


def test_shares_are_counted_again_at_the_start(harness: QueueServiceHarness) -> None:
    hostile, operator = at(harness.user("MALLORY"), "10.0.0.1"), harness.user_and_operator()
    for caller in (hostile, operator):
        job = harness.open_job(caller)
        harness.write(caller, job.job_file_handle, bytes(ROOM // 4))
        harness.service.jobs.close_and_start(caller, QUEUE_ID, job.job_number)
    harness.perform()
    harness.restart()
    space = harness.service.files.space
    assert space.by_object.used_by("") == ROOM // 4, "the operator's"
    hostile = at(harness.login("MALLORY"), "10.0.0.9")
    assert fill(harness, hostile, harness.open_job(hostile)) == 0


def test_files_of_volumes_have_the_same_shares(harness: QueueServiceHarness) -> None:
    hostile = at(harness.user("MALLORY"), "10.0.0.1")
    volumes, files = harness.service.volumes, harness.service.files
    volumes.set_trustee(harness.admin, "SYS:", hostile.object_id or 0, int(TrusteeRights.TR_CREATE))
    handle = volumes.create_file(hostile, "SYS:A.TXT")
    files.write(hostile, handle, 0, ROOM // 4)
    with harness.refused(FULL):
        files.write(hostile, handle, ROOM // 4, 1)
    assert fill(harness, hostile, harness.open_job(hostile)) == 0, "together with jobs"
    handle = volumes.create_file(harness.supervisor, "SYS:B.TXT")
    files.write(harness.supervisor, handle, 0, ROOM // 2)
    assert files.size(VolumeFile("SYS:B.TXT")) == ROOM // 2


def test_the_parts_are_settings() -> None:
    settings = replace(SETTINGS, files_per_origin_percent=50, files_reserve_percent=10)
    harness = QueueServiceHarness(settings)
    hostile = at(harness.user("MALLORY"), "10.0.0.1")
    assert fill(harness, hostile, harness.open_job(hostile)) == ROOM // 2


def test_a_small_disk_is_shared_as_well() -> None:
    space, mallory, file = FileSpace(SETTINGS), Account("00000002", "10.0.0.1"), VolumeFile("SYS:A")
    space.disk_has(8_000)
    space.check(file, 2_000, mallory)
    with pytest.raises(ShareUsedUp):
        space.check(file, 2_001, mallory)
    space.check(file, ROOM, KNOWN)


def test_bytes_that_were_not_written_are_given_back() -> None:
    space, mallory, file = FileSpace(SETTINGS), Account("00000002", "10.0.0.1"), VolumeFile("SYS:A")
    space.add(file, 500)
    space.add(file, 300, mallory)
    space.set_size(file, 600)
    assert (space.used, space.by_object.used_by("00000002"), space.by_origin.used_by("10.0.0.1")) == (
        600,
        100,
        100,
    )
    space.set_size(file, 0)
    assert (space.used, space.by_object.by_origin(), space.by_origin.by_origin()) == (0, {}, {})
    space.set_size(file, 70)
    assert space.size(file) == space.by_object.used_by("") == 70
