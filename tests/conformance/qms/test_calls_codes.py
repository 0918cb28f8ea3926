"""Completion codes that come of limits and of the state of a job."""

from __future__ import annotations

import pytest

from msmqwire.netware.model.settings import Settings
from tests.support.netware.netware_station import (
    PRINT_SERVER,
    USER,
    MemoryServer,
    Office,
    Station,
    be16,
    be32,
    le32,
    named,
    new_job,
    old_job,
    six_bytes,
    text,
)

requirement = pytest.mark.requirement


def small(**limits: int) -> tuple[MemoryServer, Station, bytes]:
    """A server with limits, SUPERVISOR, who may do everything to a queue, and the ID of the queue."""
    server = MemoryServer(settings=Settings(**limits))
    queue = server.queue()
    for name in ("Q_USERS", "Q_OPERATORS", "Q_SERVERS"):
        server.admit(queue, name, 1)
    server.service.take()
    return server, Station(server).login("SUPERVISOR"), be32(queue)


@requirement("QMS-ext-08", "QMS-ext-09")
def test_a_full_queue() -> None:
    _, station, queue = small()
    for _ in range(250):
        station.submit(int.from_bytes(queue, "big"))
    station.call(121, queue + new_job(), code=0xD4)
    station.call(104, queue + old_job(), code=0xD4)
    station.call(106, queue + be16(250))
    assert station.call(121, queue + new_job())[38:46] == le32(251) + be16(0) + b"\xfa\0"


@requirement("QMS-ext-08", "QMS-ext-10")
def test_too_many_servers() -> None:
    server, _, queue = small()
    server.numbers = type(server.numbers)(30)
    stations = [Station(server).login("SUPERVISOR") for _ in range(26)]
    for station in stations[:25]:
        station.call(111, queue)
    stations[25].call(111, queue, code=0xDB)
    stations[0].call(111, queue)
    stations[7].call(112, queue)
    stations[25].call(111, queue)


def test_out_of_memory() -> None:
    _, station, _ = small(objects_max=3, queues_max=1)
    station.call(100, be16(3) + text("SECOND") + b"\0" + text("SYS:SYSTEM"), code=0x96)
    station.call(50, b"\0\x31" + named(USER, "ALICE"))
    station.call(50, b"\0\x31" + named(USER, "BOB"), code=0x96)


def test_no_room_and_no_handles() -> None:
    _, station, queue = small(file_bytes_max=10, files_bytes_max=15, handles_max=2)
    first, second = (six_bytes(station.call(121, queue + new_job())[62:66]) for _ in range(2))
    station.call(121, queue + new_job(), code=0x81)
    station.write(first, 5, b"123456", code=0x01)
    station.write(first, 0xFFFFFFFF, b"1", code=0x01)
    station.write(first, 5, b"12345")
    station.write(second, 0, b"123456", code=0x01)
    station.write(second, 0, b"12345")
    station.read(first, 0xFFFFFFFF, 2, code=0xFF)


def test_a_full_directory() -> None:
    _, station, _ = small(volume_entries_max=2)  # one is SYS:SYSTEM
    station.file(77, b"\0\0" + text("SYS:ONE"))
    station.file(77, b"\0\0" + text("SYS:ONE"), code=0x85)
    station.file(77, b"\0\0" + text("SYS:TWO"), code=0x99)
    station.file(77, b"\0\0" + text("SYS:..\\TWO"), code=0x9C)
    station.file(77, b"\0\0" + text("TWO"), code=0x9C)


@requirement("QMS-ext-04", "QMS-ext-05", "QMS-ext-14", "QMS-manage-09")
def test_a_job_in_service() -> None:
    office = Office()
    office.alice.submit(office.queue)
    handle = six_bytes(office.serve()[62:66])
    queue = be32(office.queue)
    office.alice.call(123, queue + new_job(number=1), code=0xD7)
    office.oscar.call(109, queue + old_job(number=1), code=0xD7)
    office.ps1.call(124, queue + be16(0xFFFF), code=0xD5)
    office.bob.call(128, queue + le32(1), code=0xD6)
    office.ps1.call(128, queue + le32(1), code=0xD6)
    office.outsider.call(128, queue + le32(1), code=0xD3)
    office.alice.call(128, queue + le32(2), code=0xD5)
    second = Station(office.server).login("PS1", PRINT_SERVER)
    second.call(111, queue)
    second.call(131, queue + le32(1, 0), code=0xD6)
    office.alice.call(128, queue + le32(1))
    office.ps1.read(handle, 0, 1, code=0x88)
    office.ps1.call(131, queue + le32(1, 0), code=0xD5)


@requirement("QMS-ext-14")
@pytest.mark.parametrize("queue", [0, 1, 0xFFFFFFFF])
def test_no_such_queue(queue: int) -> None:
    office = Office()
    for subfunction, rest in (
        (101, b""), (102, b""), (103, b"\0"), (104, old_job()), (105, be16(1)), (106, be16(1)), (107, b""),
        (108, be16(1)), (109, old_job()), (110, be16(1) + b"\1"), (111, b""), (112, b""), (113, be16(1)),
        (114, be16(1) + be32(0)), (115, be16(1)), (116, be16(1)), (118, be32(1) + b"\1"), (119, bytes(64)),
        (120, be16(1)), (121, new_job()), (122, le32(1)), (123, new_job()), (124, be16(1)), (125, b""),
        (126, le32(0)), (127, le32(1)), (128, le32(1)), (129, le32(1)), (130, le32(1, 1)), (131, le32(1, 0)),
        (132, le32(1)), (133, le32(1)), (134, be32(1) + le32(1)), (135, le32(1)), (136, le32(1) + be32(1)),
        (137, le32(1, 0)), (138, le32(1, 0)),
    ):  # fmt: skip
        office.supervisor.call(subfunction, be32(queue) + rest, code=0xD1)
