"""The driver of a queue service: operations in order, durable before they are answered, all or nothing."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import EngineFailed, NcpRefused, StoreDamaged, StoreError, StoreRefused, Unreachable
from msmqwire.ncp.constants import CompletionCode, JobControlFlags
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import (
    CopyJobFile,
    CreateJobFile,
    DeleteJobFile,
    MakeQueueDirectory,
    RemoveQueueDirectory,
    SyncJobFile,
)
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.model.job import JobRequest
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime import driver as driver_module
from msmqwire.netware.runtime.job_changes import JobChanges
from msmqwire.netware.store import disk
from msmqwire.netware.store.tables import LAYOUT, NetwareTable
from msmqwire.service import disk as room_module
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.memory import MemoryStore
from tests.support.netware.netware_folder import ADMIN, NOON, QUEUE_ID, DrivenFolder
from tests.support.patience import happens
from tests.support.running import PATIENCE_S
from tests.support.small_disks import report_of

FULL = StoreRefused("the disk is full", file="store")
SYSTEM_FILES = ["Q$5D03.SRV", "Q$5D03.SYS"]


class FickleStore(MemoryStore):
    """A store whose commits can be held, and fail.

    Attributes:
        open: commits wait while it is not set.
        failure: what commits raise.
        commits: how many there were.
    """

    def __init__(self) -> None:
        super().__init__(LAYOUT)
        self.open = threading.Event()
        self.open.set()
        self.failure: StoreError | None = None
        self.commits = 0

    def commit(self, changes: Changes) -> None:
        assert self.open.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure
        self.commits += 1
        super().commit(changes)


@pytest.fixture
def store() -> FickleStore:
    return FickleStore()


@pytest.fixture
def driven(tmp_path: Path, store: FickleStore) -> Iterator[DrivenFolder]:
    with DrivenFolder(tmp_path / "data", store) as driven:
        yield driven
        store.open.set()


def creating(name: str) -> Any:
    return lambda s: s.bindery.create_object(ADMIN, name, 1).id


def named(name: str) -> Any:
    return lambda s: s.objects.find(name, 1) is not None


# -- one transaction, in order ------------------------------------------------------------------------------


def test_operations_that_wait_share_a_transaction(driven: DrivenFolder, store: FickleStore) -> None:
    before = store.commits
    assert driven.together(*(creating(f"U{number}") for number in range(20)), named("U19")) == [
        *range(QUEUE_ID + 4, QUEUE_ID + 24),
        True,
    ]
    assert store.commits == before + 1
    assert len(list(store.rows(NetwareTable.OBJECT))) == 20 + 5
    driven.do(named("U1"))
    assert store.commits == before + 1


def waiting(driven: DrivenFolder) -> int:
    """How many callers wait until what they have done is durable."""
    driver = driven.driver._driver
    batches = [driver._pending, *driver._ready, *filter(None, [driver._on_disk])]
    return sum(len(batch.waiting) for batch in batches)


def has_room(driven: DrivenFolder) -> bool:
    """Whether the service has seen room on the disk; to be called in the loop of the driver."""
    return driven.driver._driver.guest.service.files.has_room


def test_nothing_is_answered_before_it_is_durable(driven: DrivenFolder, store: FickleStore) -> None:
    async def story() -> None:
        store.open.clear()
        first = asyncio.ensure_future(driven.driver.run(creating("ONE")))
        await happens(lambda: driven.driver._driver.under_way, "its batch is being performed")
        later = [
            asyncio.ensure_future(driven.driver.run(operation))
            for operation in (creating("TWO"), named("ONE"), creating("ONE"))
        ]
        cancelled = asyncio.ensure_future(driven.driver.run(creating("THREE")))
        await happens(lambda: waiting(driven) == 5, "all are performed, and wait for the disk")
        assert not any(task.done() for task in (first, *later))
        cancelled.cancel()
        store.open.set()
        one, two, seen, twice = await asyncio.gather(first, *later, return_exceptions=True)
        assert (one, two, seen) == (QUEUE_ID + 4, QUEUE_ID + 5, True)
        assert isinstance(twice, NcpRefused)
        assert twice.code == CompletionCode.OBJECT_ALREADY_EXISTS

    driven.await_(story())
    assert driven.do(named("THREE"))  # it had happened: only its answer was not awaited


def test_data_is_synced_before_the_job_counts_as_submitted(
    driven: DrivenFolder, store: FickleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = driven.connect("ALICE")
    job = driven.open_job(alice)
    driven.write(alice, job, b"data")
    steps: list[str] = []
    file, fsync, commit = driven.directory / job.job_file_name, os.fsync, store.commit

    def synced(descriptor: int) -> None:
        steps.append("sync" if os.path.sameopenfile(descriptor, watched) else "another sync")
        fsync(descriptor)

    def committed(changes: Changes) -> None:
        steps.append("commit")
        commit(changes)

    watched = os.open(file, os.O_RDONLY)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(store, "commit", committed)
    driven.start(alice, job)
    os.close(watched)
    assert steps == ["sync", "commit"]


def test_a_batch_makes_nothing_that_it_deletes() -> None:
    batch = JobChanges([CreateJobFile(1, 1, "")])
    batch.add(JobChanges([DeleteJobFile(1, 5, ""), RemoveQueueDirectory(2, "SYS:A")]))
    for change in (CreateJobFile(1, 5, ""), CopyJobFile(3, 1, "", 1, 5, ""), MakeQueueDirectory(4, "SYS:A")):
        assert not batch.joins(JobChanges([change]))
    for change in (CreateJobFile(1, 6, ""), CreateJobFile(2, 5, ""), SyncJobFile(1, 5, "")):
        assert batch.joins(JobChanges([change]))


# -- failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [FULL, StoreDamaged("overwritten", file="store")])
def test_a_commit_that_fails_takes_all_that_waits_with_it(
    driven: DrivenFolder, store: FickleStore, failure: StoreError
) -> None:
    alice, number = driven.connect("ALICE"), driven.job(b"data")
    kept = driven.open_job(alice, job_control_flags=JobControlFlags.NWCF_SERVICE_AUTO_START)
    driven.write(alice, kept, b"half")
    lost = driven.open_job(alice)
    restarts: list[int] = []
    driven.driver.on_restart = lambda: restarts.append(1)
    store.failure = failure

    def opened(service: QueueService) -> int:
        return service.jobs.create(alice, QUEUE_ID, JobRequest(), NOON).job_number

    failed = driven.together(creating("ONE"), opened, creating("TWO"), named("ONE"))
    assert [type(result) for result in failed] == [type(failure)] * 4
    with pytest.raises(type(failure)):  # the restart has changes, too
        driven.do(named("ONE"))
    assert restarts == []
    store.failure = None
    assert driven.do(lambda s: s.queue_table[QUEUE_ID].order) == [number, kept.job_number]
    assert restarts == [1]
    assert driven.together(named("ONE"), creating("ONE"), named("TWO")) == [False, QUEUE_ID + 4, False]
    assert driven.files() == sorted([*SYSTEM_FILES, "Q$5D03.001", "Q$5D03.002"])
    assert lost.job_number == 3
    driven.check_shown()
    server = driven.server()
    assert [driven.read(server, driven.take_job(server)) for _ in range(2)] == [b"data", b"half"]


def test_a_batch_that_waits_for_one_that_fails_fails(driven: DrivenFolder, store: FickleStore) -> None:
    async def story() -> list[Any]:
        store.open.clear()
        tasks = [asyncio.ensure_future(driven.driver.run(creating("ONE")))]
        await happens(lambda: driven.driver._driver.under_way, "its batch is being performed")
        tasks.append(asyncio.ensure_future(driven.driver.run(creating("TWO"))))
        await happens(lambda: waiting(driven) == 2, "the second one waits as well")
        store.failure = FULL
        store.open.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(result) for result in driven.await_(story())] == [StoreRefused] * 2
    store.failure = None
    assert driven.together(named("ONE"), named("TWO"), creating("TWO")) == [False, False, QUEUE_ID + 4]


def test_a_file_that_can_not_be_made(driven: DrivenFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = driven.connect("ALICE")
    opened, full = os.open, True

    def refusing(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if full and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "no space")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(StoreRefused):
        driven.open_job(alice)
    assert driven.do(lambda s: s.queue_table[QUEUE_ID].order) == []  # nothing is made by a restart
    full = False
    assert driven.open_job(alice).job_number == 1
    driven.check_shown()


def test_system_files_that_can_not_be_written_follow_later(
    driven: DrivenFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patched:
        refused = list[Path]()

        def refuse(path: Path, data: bytes) -> None:
            refused.append(path)
            raise OSError(errno.ENOSPC, "no space")

        patched.setattr(disk, "replace_hidden", refuse)
        patched.setattr(driver_module, "RETRY_S", 0.01)
        with caplog.at_level(logging.WARNING, "msmqwire"):
            assert driven.job(b"data") == 1  # its row and its data are durable
        assert caplog.text.count("tried again later") == 1
        assert driven.system_file() == []
        before = len(refused)
        driven.await_(happens(lambda: len(refused) > before + 1, "it is tried again, and once more"))
    driven.await_(happens(driven.system_file, "the file is written, though nothing was called"))
    driven.check_shown()


def test_a_disk_that_is_full_while_data_is_written(
    driven: DrivenFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, server = driven.connect("ALICE"), driven.server()
    job = driven.open_job(alice)
    driven.write(alice, job, b"first")
    with monkeypatch.context() as patched:

        def refuse(descriptor: int, data: Any) -> int:
            raise OSError(errno.ENOSPC, "no space")

        patched.setattr(os, "write", refuse)
        with pytest.raises(NcpRefused) as caught:
            driven.write(alice, job, b"second", 5)
    assert caught.value.code == CompletionCode.OUT_OF_DISK_SPACE
    driven.start(alice, job)
    assert driven.do(lambda s: s.files.total_bytes) == 5
    assert driven.read(server, driven.take_job(server)) == b"first"


def test_a_fault_of_our_own_leaves_what_was_done_before(driven: DrivenFolder) -> None:
    def faulty(service: QueueService) -> None:
        service.bindery.create_object(ADMIN, "HALF", 1)
        raise KeyError("a fault")

    one, fault, two = driven.together(creating("ONE"), faulty, creating("TWO"))
    assert one == QUEUE_ID + 4
    assert isinstance(fault, EngineFailed)
    assert two == QUEUE_ID + 5
    assert driven.together(*map(named, ("ONE", "HALF", "TWO"))) == [True, False, True]


def test_after_the_end_nothing_is_done(tmp_path: Path, store: FickleStore) -> None:
    with DrivenFolder(tmp_path / "data", store) as driven:
        driven.server()
        driven.await_(driven.driver.close())
        assert (driven.directory / "Q$5D03.SRV").read_bytes() == b""
        with pytest.raises(Unreachable):
            driven.do(creating("LATE"))


# -- what a restart finds -----------------------------------------------------------------------------------


def test_a_job_whose_file_is_lost_is_held_and_not_serviced(
    driven: DrivenFolder, caplog: pytest.LogCaptureFixture
) -> None:
    for data in (b"one", b"two"):
        driven.job(data)
    (driven.directory / "Q$5D03.001").unlink()
    with caplog.at_level(logging.ERROR, "msmqwire"):
        driven.restart()
    assert [(record.msg, record.job) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("the file of a job is lost: the job is held", 1)
    ]
    server, olga = driven.server(), driven.connect("OLGA")
    assert driven.take_job(server).job_number == 2
    with pytest.raises(NcpRefused) as caught:
        driven.take_job(server)
    assert caught.value.code == CompletionCode.ERR_NO_Q_JOB
    driven.do(lambda s: s.jobs.change_entry(olga, QUEUE_ID, 1, JobRequest()))
    driven.take_job(server)
    with pytest.raises(StoreRefused):
        driven.await_(driven.driver.read_file(StoredJobFile(QUEUE_ID, 1), 0, 3))
    driven.do(lambda s: s.servicing.finish(server, QUEUE_ID, 1))
    driven.restart()
    assert driven.do(lambda s: s.queue_table[QUEUE_ID].order) == []


def test_an_open_job_whose_file_is_lost_is_no_obstacle(driven: DrivenFolder) -> None:
    alice = driven.connect("ALICE")
    job = driven.open_job(alice, job_control_flags=JobControlFlags.NWCF_SERVICE_AUTO_START)
    (driven.directory / job.job_file_name).unlink()
    with pytest.raises(StoreRefused):
        driven.start(alice, job)  # its data can't become durable
    entry = driven.do(lambda s: s.queue_table[QUEUE_ID].jobs[1])
    assert entry.job_control_flags == JobControlFlags.NWCF_SERVICE_AUTO_START | 0x80


def test_files_that_no_job_has_are_removed(driven: DrivenFolder) -> None:
    driven.job(b"data")
    for name in ("Q$5D03.002", "Q$5D03.999", "Q$5D03.01", "Q$5D03.SYS.new", "Q$5D03.0000000001"):
        (driven.directory / name).write_bytes(b"stray")
    (driven.directory / "Q$5D03.SYS").unlink()
    driven.restart()
    driven.check_shown()


def test_a_queue_directory_that_was_not_finished_is_removed(
    driven: DrivenFolder, store: FickleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(service: QueueService) -> int:
        return service.queues.create(ADMIN, "NEW", 3, "SYS:SYSTEM")

    directory = driven.directory.with_name("015D07")
    commits, commit = [0], store.commit

    def second_fails(changes: Changes) -> None:
        commits[0] += 1
        if commits[0] == 2:
            assert directory.is_dir()
            raise FULL
        commit(changes)

    monkeypatch.setattr(store, "commit", second_fails)
    with pytest.raises(StoreRefused):
        driven.do(made)
    assert driven.do(made) == 0x015D07
    assert sorted(path.name for path in directory.iterdir()) == ["Q$5D07.SRV", "Q$5D07.SYS"]
    driven.do(lambda s: s.queues.destroy(ADMIN, 0x015D07))
    driven.do(creating("SOMEBODY"))
    assert not directory.exists()
    assert list(store.rows(NetwareTable.UNSETTLED)) == []


def test_a_directory_that_can_not_be_removed_is_removed_later(
    driven: DrivenFolder, store: FickleStore
) -> None:
    (driven.directory / "FOREIGN").mkdir()
    driven.do(lambda s: s.queues.destroy(ADMIN, QUEUE_ID))
    assert driven.directory.exists()
    driven.restart()  # which must succeed
    assert [key for key, _ in store.rows(NetwareTable.UNSETTLED)] == [b"SYS:SYSTEM\\015D03"]
    (driven.directory / "FOREIGN").rmdir()
    driven.restart()
    assert not driven.directory.exists()


# -- the room on the disk -----------------------------------------------------------------------------------


def test_a_small_disk_is_filled_and_drained(tmp_path: Path) -> None:
    report = report_of("tests.support.netware.netware_small_disk", tmp_path)
    assert report.pop("first submitted") > 30
    assert report.pop("second submitted") > 30
    assert report == {
        "first finished": True,
        "first taken again": True,
        "second finished": True,
        "second taken again": True,
        "finished on a full disk": True,
        "restarts": 0,
        "files": SYSTEM_FILES,
    }


def test_below_the_mark_no_file_is_created_or_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = [100 << 20]
    monkeypatch.setattr(room_module, "free_on_disk", lambda _: free[0])
    monkeypatch.setattr(driver_module, "ROOM_S", 0.01)
    with DrivenFolder(tmp_path / "data", min_free=8 << 20) as driven:
        alice, server = driven.connect("ALICE"), driven.server()
        first, second = driven.job(b"data"), driven.open_job(alice)
        driven.write(alice, second, b"data")
        free[0] = 1 << 20
        driven.await_(happens(lambda: not has_room(driven), "the disk is looked at"))
        for refused in (
            lambda: driven.open_job(alice),
            lambda: driven.write(alice, second, b"more", 1),
            lambda: driven.do(lambda s: s.volumes.create_file(ADMIN, "SYS:FILE")),
        ):
            with pytest.raises(NcpRefused) as caught:
                refused()
            assert caught.value.code == CompletionCode.OUT_OF_DISK_SPACE
        driven.write(alice, second, b"DATA")
        driven.start(alice, second)
        assert driven.read(server, driven.take_job(server)) == b"data"
        driven.do(lambda s: s.servicing.finish(server, QUEUE_ID, first))
        free[0] = 100 << 20
        driven.await_(happens(lambda: has_room(driven), "the disk is looked at again"))
        assert driven.job(b"more") == 3


def test_nonfiles_in_the_place_of_a_new_file_end_no_connection(tmp_path: Path) -> None:
    """A folder, a link and a pipe stand there."""
    with DrivenFolder(tmp_path / "data") as driven:
        volume = tmp_path / "data" / "volumes" / "SYS"
        (volume / "DIR").mkdir()
        (volume / "LINK").symlink_to(tmp_path / "outside")
        os.mkfifo(volume / "PIPE")
        job = driven.open_job(driven.connect("ALICE"))
        before = driven.do(id)
        for name in ("DIR", "LINK", "PIPE"):
            handle = driven.do(lambda s, name=name: s.volumes.create_file(ADMIN, f"SYS:{name}"))
            access = driven.do(lambda s, handle=handle: s.files.write(ADMIN, handle, 0, 4))
            with pytest.raises(StoreRefused):
                driven.await_(driven.driver.write_file(access.file, 0, b"data"))
        assert not (tmp_path / "outside").exists()
        assert driven.do(id) == before
        assert driven.do(lambda s: list(s.queue_table[QUEUE_ID].order)) == [job.job_number]


# -- many operations, some of which fail --------------------------------------------------------------------


class Faults:
    """Lets one of the next commits, syncs or creations of files fail."""

    def __init__(self, store: FickleStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left = -1
        self.hits = 0
        for owner, name, error in (
            (store, "commit", FULL),
            (os, "fsync", OSError(errno.EIO, "input/output error")),
            (os, "open", OSError(errno.ENOSPC, "no space")),
        ):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name), error))

    def _failing(self, function: Any, error: Exception) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if threading.current_thread().name.startswith("qms-store"):
                self._left -= 1
                if self._left == 0:
                    self.hits += 1
                    raise error
            return function(*arguments, **options)

        return call

    def arm(self, left: int) -> None:
        """Let the call fail that is so many calls away; 0 for none."""
        self._left = left


@pytest.mark.requirement("QMS-jobfields-32", "QMS-jobfields-33", "QMS-bindery-01")
@pytest.mark.parametrize("seed", range(3))
def test_what_was_answered_is_so_whatever_fails(
    driven: DrivenFolder, store: FickleStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng, faults = random.Random(seed), Faults(store, monkeypatch)
    order: list[int] = []
    answered = failed = 0
    restart = JobControlFlags.NWCF_SERVICE_RESTART

    def submit() -> None:
        order.append(driven.job(b"data", job_control_flags=restart))

    def finish() -> None:
        server = driven.server()
        number = driven.take_job(server).job_number
        driven.do(lambda s: s.servicing.finish(server, QUEUE_ID, number))
        order.remove(number)

    def remove() -> None:
        olga, number = driven.connect("OLGA"), rng.choice(order)
        driven.do(lambda s: s.jobs.remove(olga, QUEUE_ID, number))
        order.remove(number)

    def place() -> None:
        olga, number, position = driven.connect("OLGA"), rng.choice(order), rng.randint(1, 9)
        driven.do(lambda s: s.jobs.change_position(olga, QUEUE_ID, number, position))
        order.remove(number)
        order.insert(position - 1, number)

    for _ in range(60):
        operation = rng.choice((submit, finish, remove, place)) if len(order) > 2 else submit
        faults.arm(rng.randint(1, 25))
        try:
            operation()
            answered += 1
        except (StoreError, NcpRefused):  # it was refused, or what it had begun has ended meanwhile
            failed += 1
        faults.arm(0)
        assert driven.do(lambda s: list(s.queue_table[QUEUE_ID].order)) == order
        driven.do(lambda s: [s.connection_lost(Caller(number)) for number in range(200)])
        driven.do(creating(f"U{answered + failed}"))  # files that could not be changed are tried again
        driven.check_shown()
    assert answered > 20
    assert failed > 5
    assert faults.hits >= failed
