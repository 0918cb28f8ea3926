"""The queue directory and its files on disk, by the chapter's Queue Process and QMS Files."""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.errors import NcpRefused, StoreRefused
from msmqwire.ncp.constants import CompletionCode, JobControlFlags, ObjectType
from msmqwire.netware.model.files import StoredJobFile, VolumeEntry, VolumeFile
from msmqwire.netware.store import dos_attributes
from msmqwire.netware.store.tables import LAYOUT
from msmqwire.service.store.memory import MemoryStore
from tests.support.netware.netware_folder import ADMIN, QUEUE_ID, DrivenFolder, structures

requirement = pytest.mark.requirement
SYSTEM_FILES = ["Q$5D03.SRV", "Q$5D03.SYS"]
RESTART = JobControlFlags.NWCF_SERVICE_RESTART


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[DrivenFolder]:
    with DrivenFolder(tmp_path / "data", MemoryStore(LAYOUT)) as driven:
        yield driven


@requirement("QMS-process-01", "QMS-qdir-05", "QMS-qdir-07", "QMS-qdir-11", "QMS-createq-02")
@requirement("QMS-files-01", "QMS-files-02", "QMS-files-03", "QMS-files-10")
def test_a_new_queue_has_a_directory_with_two_system_files(driven: DrivenFolder) -> None:
    assert driven.directory.is_dir()
    assert driven.files() == SYSTEM_FILES
    assert [(driven.directory / name).read_bytes() for name in SYSTEM_FILES] == [b"", b""]
    holder = driven.do(lambda s: s.objects[QUEUE_ID])
    assert holder.properties["Q_DIRECTORY"].segments[0].rstrip(b"\0") == rb"SYS:\SYSTEM\015D03"


@requirement("QMS-qdir-06", "QMS-qdir-05")
@pytest.mark.parametrize("path", ["SYS:", "sys:print/queues", "VOL1:A\\B\\C"])
def test_the_queue_directory_is_below_any_path(driven: DrivenFolder, path: str) -> None:
    new = driven.do(lambda s: s.queues.create(ADMIN, "OTHER", ObjectType.NWOT_JOB_QUEUE, path))
    volume, _, rest = path.upper().replace("/", "\\").partition(":")
    directory = (driven.data / "volumes" / volume).joinpath(*filter(None, rest.split("\\")), f"{new:06X}")
    stem = f"Q${new & 0xFFFF:04X}"
    assert sorted(path.name for path in directory.iterdir()) == [f"{stem}.SRV", f"{stem}.SYS"]


def hidden(path: Path) -> bool:
    """Whether a file has the DOS attribute, as the system tells."""
    if sys.platform == "win32":
        return bool(path.stat().st_file_attributes & 0x02)
    return os.getxattr(path, "user.DOSATTRIB") == b"0x2"


@requirement("QMS-files-04")
def test_system_files_are_hidden_from_their_creation_on(driven: DrivenFolder) -> None:
    probe = driven.data / "probe"
    probe.touch()
    if not dos_attributes.hide(probe):
        pytest.skip("this file system takes no attributes")
    assert all(hidden(driven.directory / name) for name in SYSTEM_FILES)
    driven.job(b"data")
    driven.server()
    assert all(hidden(driven.directory / name) for name in SYSTEM_FILES)
    if sys.platform != "win32":
        assert os.listxattr(driven.directory / "Q$5D03.001") == []


@requirement("QMS-files-04")
def test_a_file_system_without_attributes_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def refuse(path: Path, *_: object, **more: object) -> None:
        asked.append(path)
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "setxattr", refuse, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    with DrivenFolder(tmp_path / "data") as driven:
        assert {path.name.removesuffix(".new") for path in asked} == set(SYSTEM_FILES)
        assert driven.job(b"data") == 1


@requirement("QMS-process-02", "QMS-files-05", "QMS-files-06", "QMS-files-10", "QMS-files-07")
def test_each_job_has_a_file_headed_by_its_structure(driven: DrivenFolder) -> None:
    alice = driven.connect("ALICE")
    record, text = bytes(range(152)), b"Monthly report".ljust(50, b"\0")
    job = driven.open_job(
        alice,
        job_type=7,
        job_control_flags=0x47,
        job_description=text,
        queue_record=record,
        target_server_id=9,
    )
    assert job.job_file_name == "Q$5D03.001"
    driven.write(alice, job, b"data")
    content = (driven.directory / "Q$5D03.001").read_bytes()
    assert content[256:] == b"data"
    (structure,) = structures(content[:256])
    assert structure._asdict() == {
        "client_station": alice.connection,
        "client_task": alice.task,
        "client_id": driven.users["ALICE"],
        "target_server_id": 9,
        "target_execution_time": b"\xff" * 6,
        "job_entry_time": bytes((96, 4, 1, 12, 0, 0)),
        "job_number": 1,
        "job_type": 7,
        "job_position": 1,
        "job_control_flags": 0x67,  # NWCF_ENTRY_OPEN is QMS's
        "job_file_name": b"\x0aQ$5D03.001\0\0\0",
        "job_file_handle": bytes(6),
        "servicing_server_station": 0,
        "servicing_server_task_number": 0,
        "servicing_server_id_number": 0,
        "job_description": text,
        "queue_record": record,
    }
    assert [driven.open_job(alice).job_file_name for _ in range(2)] == ["Q$5D03.002", "Q$5D03.003"]
    assert driven.files() == sorted([*SYSTEM_FILES, "Q$5D03.001", "Q$5D03.002", "Q$5D03.003"])


@requirement("QMS-files-03", "QMS-files-07", "QMS-jobfields-33", "QMS-monitor-19")
def test_structures_are_kept_true_with_every_change(driven: DrivenFolder) -> None:
    for _ in range(4):
        driven.job(b"data", job_control_flags=RESTART)
    olga, server = driven.connect("OLGA"), driven.server()
    driven.check_shown()
    driven.do(lambda s: s.jobs.change_position(olga, QUEUE_ID, 4, 1))
    driven.check_shown()
    assert [job.job_number for job in driven.system_file()] == [4, 1, 2, 3]
    driven.take_job(server)
    driven.check_shown()
    assert driven.system_file()[0].servicing_server_station == server.connection
    driven.do(lambda s: s.servicing.abort(server, QUEUE_ID, 4))
    driven.check_shown()
    driven.do(lambda s: s.jobs.remove(olga, QUEUE_ID, 1))
    driven.check_shown()
    assert [job.job_number for job in driven.system_file()] == [4, 2, 3]
    driven.restart()
    driven.check_shown()


@requirement("QMS-files-02", "QMS-service-02", "QMS-service-15")
def test_the_file_of_servers_has_those_attached_at_the_moment(driven: DrivenFolder) -> None:
    file = driven.directory / "Q$5D03.SRV"
    servers = [driven.server(), driven.server()]
    pairs = [struct.pack(">II", driven.users["PS1"], server.connection) for server in servers]
    assert file.read_bytes() == b"".join(pairs)
    driven.do(lambda s: s.servicing.detach(servers[0], QUEUE_ID))
    assert file.read_bytes() == pairs[1]
    driven.do(lambda s: s.connection_lost(servers[1]))
    assert file.read_bytes() == b""
    driven.server()
    driven.restart()
    assert file.read_bytes() == b""


@requirement("QMS-files-08", "QMS-service-14", "QMS-monitor-17", "QMS-submit-07")
def test_a_job_that_is_gone_leaves_no_trace(driven: DrivenFolder) -> None:
    server, olga, alice = driven.server(), driven.connect("OLGA"), driven.connect("ALICE")
    for number in (1, 2):
        assert driven.job(b"data") == number
    aborted = driven.open_job(alice)
    driven.write(alice, aborted, b"half")
    driven.take_job(server)
    driven.do(lambda s: s.servicing.finish(server, QUEUE_ID, 1))
    assert driven.files() == sorted([*SYSTEM_FILES, "Q$5D03.002", "Q$5D03.003"])
    assert [job.job_number for job in driven.system_file()] == [2, 3]
    driven.do(lambda s: s.jobs.remove(olga, QUEUE_ID, 2))
    driven.do(lambda s: s.jobs.close_and_abort(alice, QUEUE_ID, 3))
    assert driven.files() == SYSTEM_FILES
    assert driven.system_file() == []


@requirement("QMS-files-07", "QMS-files-09", "QMS-service-09", "QMS-submit-05")
def test_the_content_of_a_queue_file_comes_back_unchanged(driven: DrivenFolder) -> None:
    alice, server = driven.connect("ALICE"), driven.server()
    data = bytes(range(256)) * 300
    job = driven.open_job(alice)
    driven.write(alice, job, data[40_000:], 40_000)  # in any order, a gap meanwhile
    driven.write(alice, job, data[:40_000], 0)
    driven.start(alice, job)
    driven.restart()
    server = driven.server()
    taken = driven.take_job(server)
    read = b"".join(driven.read(server, taken, offset, 30_000) for offset in range(0, len(data) + 1, 30_000))
    assert read == data
    assert driven.do(lambda s: s.jobs.file_size(server, QUEUE_ID, job.job_number)) == len(data)


@requirement("QMS-ext-04", "QMS-ext-15", "QMS-createq-15")
def test_destroying_a_queue_removes_its_directory(driven: DrivenFolder) -> None:
    server = driven.server()
    driven.job(b"data")
    driven.job(b"more")
    taken = driven.take_job(server)
    driven.do(lambda s: s.queues.destroy(ADMIN, QUEUE_ID))
    assert not driven.directory.exists()
    assert driven.directory.parent.is_dir()
    with pytest.raises(NcpRefused) as caught:
        driven.read(server, taken)
    assert caught.value.code == CompletionCode.INVALID_FILE_HANDLE
    with pytest.raises(NcpRefused) as caught:
        driven.await_(driven.driver.read_file(StoredJobFile(QUEUE_ID, 1), 0, 4))
    assert caught.value.code == CompletionCode.INVALID_FILE_HANDLE
    driven.restart()
    assert not driven.directory.exists()


@requirement("QMS-files-06")
@pytest.mark.parametrize("links", [True, False])
def test_a_moved_job_has_its_data_in_the_other_directory(
    driven: DrivenFolder, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:

        def refuse(*_: object, **more: object) -> None:
            raise OSError(errno.EPERM, "no hard links")

        monkeypatch.setattr(os, "link", refuse)
    other = driven.do(lambda s: s.queues.create(ADMIN, "OTHER", ObjectType.NWOT_PRINT_QUEUE, "SYS:SYSTEM"))
    driven.do(lambda s: s.properties.add_member(ADMIN, other, "Q_OPERATORS", driven.users["OLGA"]))
    driven.job(b"first")
    driven.job(b"second" * 1000)
    (driven.directory.with_name(f"{other:06X}") / f"Q${other & 0xFFFF:04X}.001").write_bytes(b"stray")
    olga = driven.connect("OLGA")
    number = driven.do(lambda s: s.jobs.move(olga, QUEUE_ID, 2, other))
    directory = driven.directory.with_name(f"{other:06X}")
    content = (directory / f"Q${other & 0xFFFF:04X}.{number:03}").read_bytes()
    assert content[256:] == b"second" * 1000
    assert structures(content[:256])[0].job_number == number
    assert driven.files() == sorted([*SYSTEM_FILES, "Q$5D03.001"])
    driven.check_shown()


def test_no_link_is_followed(driven: DrivenFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (driven.data / "volumes" / "SYS" / "LINK").symlink_to(outside)
    with pytest.raises(StoreRefused):
        driven.do(lambda s: s.queues.create(ADMIN, "AWAY", ObjectType.NWOT_PRINT_QUEUE, "SYS:LINK"))
    assert list(outside.iterdir()) == []
    driven.do(lambda s: s.volumes.create_directory(ADMIN, "SYS:DIR"))
    driven.do(lambda s: s.volumes.create_file(ADMIN, "SYS:DIR\\FILE"))
    directory = driven.data / "volumes" / "SYS" / "DIR"
    directory.rename(outside / "DIR")
    directory.symlink_to(outside / "DIR")
    file = VolumeFile("SYS:DIR\\FILE")
    driven.do(lambda s: s.files.set_size(file, 4))  # as a call that writes does
    for work in (driven.driver.read_file(file, 0, 4), driven.driver.write_file(file, 0, b"data")):
        with pytest.raises(StoreRefused):
            driven.await_(work)
    assert (outside / "DIR" / "FILE").read_bytes() == b""
    assert driven.do(lambda s: s.files.total_bytes) == 0
    number = driven.job(b"data")
    queue_file = driven.directory / f"Q$5D03.{number:03}"
    precious = tmp_path / "precious"
    precious.write_bytes(bytes(256) + b"precious")
    queue_file.unlink()
    queue_file.symlink_to(precious)
    with pytest.raises(StoreRefused):
        driven.await_(driven.driver.read_file(StoredJobFile(QUEUE_ID, number), 0, 8))
    driven.restart()
    assert precious.read_bytes() == bytes(256) + b"precious"
    assert not queue_file.is_symlink()


@pytest.mark.parametrize(
    "path", ["SYS:..", "SYS:A\\..\\..\\B", "..:A", "SYS:A/./B", "A", "SYS:CON", "SYS:LPT1.TXT"]
)
def test_paths_that_lead_out_of_the_volumes(driven: DrivenFolder, path: str) -> None:
    before = sorted(driven.data.rglob("*"))
    with pytest.raises(NcpRefused) as caught:
        driven.do(lambda s: s.queues.create(ADMIN, "AWAY", ObjectType.NWOT_PRINT_QUEUE, path))
    assert caught.value.code == CompletionCode.INVALID_PATH
    assert sorted(driven.data.rglob("*")) == before


@requirement("QMS-service-12")
def test_files_of_volumes_last(driven: DrivenFolder) -> None:
    driven.do(lambda s: s.volumes.create_directory(ADMIN, "SYS:SYSTEM\\LOGS"))
    handle = driven.do(lambda s: s.volumes.create_file(ADMIN, "sys:system/logs/day.log"))
    access = driven.do(lambda s: s.files.write(ADMIN, handle, 3, 4))
    driven.await_(driven.driver.write_file(access.file, access.offset, b"four"))
    assert (driven.data / "volumes/SYS/SYSTEM/LOGS/DAY.LOG").read_bytes() == b"\0\0\0four"
    driven.restart()
    handle = driven.do(
        lambda s: s.volumes.open_file(ADMIN, "SYS:SYSTEM\\LOGS\\DAY.LOG", may_read=True, may_write=False)
    )
    access = driven.do(lambda s: s.files.read(ADMIN, handle, 0, 100))
    assert driven.await_(driven.driver.read_file(access.file, access.offset, access.count)) == b"\0\0\0four"


def test_a_file_can_not_take_the_place_of_a_queue_directory(driven: DrivenFolder) -> None:
    def create(path: str) -> int:
        return driven.do(lambda s: s.queues.create(ADMIN, "OTHER", ObjectType.NWOT_PRINT_QUEUE, path))

    for path, code in (
        ("SYS:SYSTEM", CompletionCode.NO_CREATE_DELETE_PRIVILEGES),
        ("SYS:SYSTEM\\015D03", CompletionCode.INVALID_PATH),
        ("SYS:SYSTEM\\015D03\\Q$5D03.SYS", CompletionCode.INVALID_PATH),
    ):
        with pytest.raises(NcpRefused) as caught:
            driven.do(lambda s, path=path: s.volumes.create_file(ADMIN, path))
        assert caught.value.code == code
    driven.do(lambda s: s.volumes.create_file(ADMIN, "SYS:FILE"))
    for path in ("SYS:FILE", "SYS:FILE\\BELOW"):
        with pytest.raises(NcpRefused) as caught:
            create(path)
        assert caught.value.code == CompletionCode.INVALID_PATH
    create("SYS:A\\B")
    assert [driven.do(lambda s, path=path: s.volumes.entry(path)) for path in ("SYS:A", "SYS:A\\B")] == [
        VolumeEntry("SYS:A", ADMIN.object_id, True),
        VolumeEntry("SYS:A\\B", ADMIN.object_id, True),
    ]
