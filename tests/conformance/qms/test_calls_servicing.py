"""The calls of queue servers, byte by byte."""

from __future__ import annotations

import struct

import pytest

from tests.support.netware.netware_station import (
    AT_ONCE,
    ENTRY_TIME,
    PRINT_SERVER,
    Office,
    Station,
    be16,
    be32,
    le32,
    new_job,
    six_bytes,
    text,
)

requirement = pytest.mark.requirement
RESTART, USER_HOLD = 0x10, 0x40
ANY_TYPE = be16(0xFFFF)


@pytest.fixture
def office() -> Office:
    return Office()


@requirement("QMS-manage-15", "QMS-service-06", "QMS-jobfields-36", "QMS-jobfields-37")
def test_service_in_the_newer_form(office: Office) -> None:
    office.alice.submit(office.queue, type_=0x0102, flags=RESTART)
    office.alice.submit(office.queue)
    assert office.ps1.call(111, be32(office.queue)) == b""
    reply = office.ps1.call(124, be32(office.queue) + ANY_TYPE)
    assert reply == b"".join((
        bytes(6), le32(2), le32(office.alice.connection, 3), be32(office.alice_id), b"\xff" * 4, AT_ONCE,
        ENTRY_TIME, le32(1), be16(0x0102), struct.pack("<HH", 1, RESTART), b"\x0aQ$0007.001\0\0\0",
        reply[62:66], le32(office.ps1.connection, 3), be32(office.ps1_id),
    ))  # fmt: skip
    assert reply[62:66] != bytes(4), "the handle of its file"
    assert office.bob.call(122, be32(office.queue) + le32(1))[:78] == reply


@requirement("QMS-manage-15", "QMS-service-06")
def test_service_in_the_old_form(office: Office) -> None:
    office.alice.submit(office.queue, type_=5)
    office.ps1.call(111, be32(office.queue))
    office.ps1.call(113, be32(office.queue) + be16(6), code=0xD5)
    reply = office.ps1.call(113, be32(office.queue) + be16(5))
    assert reply == b"".join((
        bytes((office.alice.connection, 3)), be32(office.alice_id), b"\xff" * 4, AT_ONCE, ENTRY_TIME,
        be16(1, 5), b"\x01\0", b"\x0aQ$0007.001\0\0\0", reply[42:48], bytes((office.ps1.connection, 3)),
        be32(office.ps1_id),
    ))  # fmt: skip
    assert office.bob.call(108, be32(office.queue) + be16(1))[:54] == reply


@requirement("QMS-manage-10", "QMS-ext-12")
def test_service_by_a_list_of_types(office: Office) -> None:
    for type_ in (5, 6, 7):
        office.alice.submit(office.queue, type_=type_)
    office.ps1.call(111, be32(office.queue))

    def served(*types: int, code: int = 0) -> int:
        forms = struct.pack(f"<{len(types)}H", *types)
        data = be32(office.queue) + le32(1, len(types)) + forms
        reply = office.ps1.call(138, data, code=code)
        return int.from_bytes(reply[38:42], "little")

    assert served(7, 6) == 2
    assert served(7, 6) == 3
    served(7, 6, code=0xD5)
    served(code=0xD5)
    assert served(1, 0xFFFF) == 1


@requirement("QMS-service-14", "QMS-files-08", "QMS-ext-03")
@pytest.mark.parametrize(("subfunction", "data"), [
    (114, be16(1) + be32(9)), (114, be16(1) + be16(9)), (131, le32(1) + be32(9)),
])  # fmt: skip
def test_finishing(office: Office, subfunction: int, data: bytes) -> None:
    office.alice.submit(office.queue, b"hello")
    handle = six_bytes(office.serve()[62:66])
    office.alice.call(subfunction, be32(office.queue) + data, code=0xD9)
    assert office.ps1.call(subfunction, be32(office.queue) + data) == b""
    assert office.jobs() == []
    assert office.server.files == {}
    office.ps1.read(handle, 0, 1, code=0x88)
    office.ps1.call(subfunction, be32(office.queue) + data, code=0xD5)


@requirement("QMS-ext-01", "QMS-ext-02", "QMS-service-16", "QMS-service-17", "QMS-flags-04", "QMS-flags-05")
@pytest.mark.parametrize(("subfunction", "number"), [(115, be16(1)), (132, le32(1))])
@pytest.mark.parametrize("restarts", [False, True])
def test_aborting(office: Office, subfunction: int, number: bytes, restarts: bool) -> None:
    office.alice.submit(office.queue, flags=RESTART * restarts)
    office.alice.submit(office.queue)
    handle = six_bytes(office.serve()[62:66])
    assert office.ps1.call(subfunction, be32(office.queue) + number) == b""
    assert office.jobs() == ([1, 2] if restarts else [2])
    office.ps1.read(handle, 0, 1, code=0x88)
    if restarts:
        job = office.bob.call(122, be32(office.queue) + le32(1))
        assert (job[44:48], job[66:78]) == (struct.pack("<HH", 1, RESTART), bytes(12))


@requirement("QMS-service-02", "QMS-service-15", "QMS-monitor-11", "QMS-monitor-12", "QMS-monitor-21")
@requirement("QMS-ext-11", "QMS-ext-13")
def test_status_of_the_queue(office: Office) -> None:
    queue = be32(office.queue)
    second = Station(office.server).login("PS1", PRINT_SERVER)
    for server in (office.ps1, second):
        server.call(111, queue)
    office.alice.submit(office.queue)
    ids = be32(office.ps1_id, office.ps1_id)
    stations = (office.ps1.connection, second.connection)
    assert office.oscar.call(102, queue) == queue + bytes((0, 1, 2)) + ids + bytes(stations)
    assert office.bob.call(125, queue) == queue + le32(0, 1, 2) + ids + le32(*stations)
    office.ps1.call(112, queue)
    assert office.oscar.call(103, queue + b"\x01") == b""
    assert office.bob.call(102, queue) == queue + bytes((1, 1, 1)) + ids[:4] + bytes(stations[1:])
    office.alice.call(121, queue + new_job(), code=0xDA)
    assert office.oscar.call(126, queue + le32(6)) == b""
    assert office.bob.call(125, queue) == queue + le32(6, 1, 1) + ids[:4] + le32(second.connection)
    second.call(124, queue + ANY_TYPE, code=0xDA)
    assert office.oscar.call(126, queue + b"\x02") == b"", "one byte of status"
    office.ps1.call(111, queue, code=0xDA)
    second.call(124, queue + ANY_TYPE)
    office.oscar.call(126, queue + le32(0x100), code=0xFF)


@requirement("QMS-ext-18", "QMS-monitor-13", "QMS-monitor-14")
def test_status_of_a_server(office: Office) -> None:
    queue, record = be32(office.queue), bytes(range(64))
    old = queue + be32(office.ps1_id) + bytes((office.ps1.connection,))
    new = queue + be32(office.ps1_id) + le32(office.ps1.connection)
    office.alice.call(118, old, code=0xD2)
    office.ps1.call(119, queue + record, code=0xD9)
    office.ps1.call(111, queue)
    assert office.alice.call(118, old) == bytes(64)
    assert office.ps1.call(119, queue + record) == b""
    assert office.oscar.call(118, old) == record
    assert office.alice.call(134, new) == record
    office.alice.call(134, queue + be32(office.ps1_id) + le32(99), code=0xD2)
    office.oscar.call(119, queue + record, code=0xD9)


@requirement("QMS-service-10", "QMS-service-12", "QMS-service-13", "QMS-ext-16", "QMS-ext-17")
@pytest.mark.parametrize(("subfunction", "number"), [(116, be16(1)), (133, le32(1))])
def test_client_rights(office: Office, subfunction: int, number: bytes) -> None:
    queue, server = be32(office.queue), office.server.service
    administrator = office.server.administrator
    server.volumes.create_directory(administrator, "SYS:HOME")
    server.volumes.set_trustee(administrator, "SYS:HOME", office.alice_id, 0x0B)
    server.take()

    def create(name: str, code: int = 0) -> bytes:
        return office.ps1.file(77, b"\0\0" + text(f"SYS:HOME\\{name}"), code=code)

    office.alice.submit(office.queue, b"hello")
    office.ps1.call(subfunction, queue + number, code=0xD9)
    job = office.serve()
    create("BEFORE", code=0x84)
    assert office.ps1.call(subfunction, queue + number) == b""
    reply = create("FILE")
    assert (reply[6:22], reply[22:]) == (b"\0\0FILE" + bytes(10), bytes(14))
    entry = server.volumes.entry("SYS:HOME\\FILE")
    assert entry is not None
    assert entry.owner_id == office.alice_id
    assert office.ps1.read(six_bytes(job[62:66]), 0, 9) == be16(5) + b"hello", "open before"
    assert office.ps1.call(117) == b""
    create("AFTER", code=0x84)
    office.ps1.write(reply[:6], 0, b"restored")
    assert office.ps1.read(reply[:6], 0, 99) == be16(8) + b"restored", "open since"
    office.ps1.call(subfunction, queue + number)
    office.ps1.call(131, queue + le32(1, 0))
    create("LATE", code=0x84)
    opened = office.alice.file(76, b"\0\0\x03" + text("SYS:home/file"))
    assert (opened[6:24], opened[24:28], opened[28:]) == (b"\0\0FILE" + bytes(12), be32(8), bytes(8))
    office.alice.file(76, b"\x05\0\x03" + text("FILE"), code=0x9B)
    office.alice.file(76, b"\0\0\x01" + text("FILE"), code=0x9C)
    office.alice.file(76, b"\0\0\x01" + text("SYS:HOME\\NONE"), code=0xFF)
    office.bob.file(76, b"\0\0\x01" + text("SYS:HOME\\FILE"), code=0x93)


@requirement("QMS-service-07", "QMS-service-08", "QMS-ext-13")
def test_service_that_is_refused(office: Office) -> None:
    queue = be32(office.queue)
    for subfunction, data in ((113, ANY_TYPE), (124, ANY_TYPE), (138, le32(1, 0))):
        office.ps1.call(subfunction, queue + data, code=0xD9)
    office.ps1.call(111, queue)
    office.alice.submit(office.queue, flags=USER_HOLD)
    for subfunction, data in ((113, ANY_TYPE), (124, ANY_TYPE), (138, le32(1, 1) + b"\xff\xff")):
        office.ps1.call(subfunction, queue + data, code=0xD5)


@requirement("QMS-service-16")
def test_a_lost_server(office: Office) -> None:
    office.alice.submit(office.queue, flags=RESTART)
    office.alice.submit(office.queue)
    office.serve()
    office.ps1.call(124, be32(office.queue) + ANY_TYPE)
    office.ps1.lose()
    assert office.jobs() == [1]
    assert office.bob.call(125, be32(office.queue)) == be32(office.queue) + le32(0, 1, 0)
