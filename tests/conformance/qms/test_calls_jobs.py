"""The calls about jobs, byte by byte at the offsets of the chapter and of public descriptions of NCP."""

from __future__ import annotations

import struct
from datetime import timedelta

import pytest

from tests.support.netware.netware_station import (
    ANY,
    AT_ONCE,
    ENTRY_TIME,
    NOW,
    PRINT_QUEUE,
    Office,
    Station,
    be16,
    be32,
    le32,
    new_job,
    old_job,
    six_bytes,
)

requirement = pytest.mark.requirement
LATER = bytes((26, 3, 1, 24, 0, 0))
RECORD = bytes(range(152))
AUTO_START, RESTART, OPEN, USER_HOLD, OPERATOR_HOLD = 0x08, 0x10, 0x20, 0x40, 0x80


@pytest.fixture
def office() -> Office:
    return Office()


def entry(office: Office, number: int) -> bytes:
    """A job as an operator reads it, in the newer form."""
    return office.oscar.call(122, be32(office.queue) + le32(number))


def flags(office: Office, number: int) -> int:
    return int.from_bytes(entry(office, number)[46:48], "little")


@requirement(
    "QMS-jobfields-01",
    "QMS-jobfields-20",
    "QMS-jobfields-26",
    "QMS-manage-02",
    "QMS-submit-04",
    "QMS-flags-06",
)
def test_a_job_is_created_in_the_old_form(office: Office) -> None:
    structure = old_job(target=office.ps1_id, at=LATER, type_=0x0102, flags=AUTO_START, description=b"memo",
                        record=RECORD, junk=0xEE, number=77, position=9)  # fmt: skip
    reply = office.alice.call(104, be32(office.queue) + structure)
    head = b"".join((
        bytes((office.alice.connection, 3)), be32(office.alice_id), be32(office.ps1_id), LATER, ENTRY_TIME,
        be16(1, 0x0102), bytes((1, AUTO_START | OPEN)), b"\x0aQ$0007.001\0\0\0", reply[42:48], bytes(6),
    ))  # fmt: skip
    assert (reply, len(reply)) == (head, 54)
    assert reply[42:48] != bytes(6), "the handle of its file"
    read = office.bob.call(108, be32(office.queue) + be16(1))
    assert read == head + b"memo".ljust(50, b"\0") + RECORD


@requirement(
    "QMS-jobfields-20",
    "QMS-jobfields-26",
    "QMS-jobfields-39",
    "QMS-manage-02",
    "QMS-submit-04",
    "QMS-flags-06",
)
def test_a_job_is_created_in_the_newer_form(office: Office) -> None:
    structure = new_job(target=office.ps1_id, at=LATER, type_=0x0102, flags=0x0300 | RESTART,
                        description=b"memo", record=RECORD, junk=0xEE, number=77, position=9)  # fmt: skip
    reply = office.alice.call(121, be32(office.queue) + structure)
    head = b"".join((
        bytes(10), le32(office.alice.connection, 3), be32(office.alice_id), be32(office.ps1_id), LATER,
        ENTRY_TIME, le32(1), be16(0x0102), struct.pack("<HH", 1, 0x0300 | RESTART | OPEN),
        b"\x0aQ$0007.001\0\0\0", reply[62:66], bytes(12),
    ))  # fmt: skip
    assert (reply, len(reply)) == (head, 78)
    assert reply[62:66] != bytes(4), "the handle of its file"
    assert entry(office, 1) == head + b"memo".ljust(50, b"\0") + RECORD


def test_both_forms_show_the_same_job(office: Office) -> None:
    office.alice.submit(office.queue, b"data", type_=7, flags=USER_HOLD, description=b"text", record=RECORD)
    new, old = entry(office, 1), office.oscar.call(108, be32(office.queue) + be16(1))
    assert old[2:22] == new[18:38], "objects and times"
    assert (old[:2], old[22:28]) == (new[10:11] + new[14:15], be16(1, 7) + bytes((1, USER_HOLD)))
    assert (old[28:42], old[54:]) == (new[48:62], new[78:])


@requirement("QMS-jobfields-32", "QMS-jobfields-33", "QMS-monitor-17", "QMS-monitor-20")
def test_the_list_the_positions_and_the_next_job(office: Office) -> None:
    assert office.alice.call(107, be32(office.queue)) == be16(0)
    for _ in range(4):
        office.alice.submit(office.queue)
    office.alice.call(128, be32(office.queue) + le32(2))
    assert office.alice.call(107, be32(office.queue)) == be16(3, 1, 3, 4)
    assert office.alice.call(129, be32(office.queue) + le32(1)) == le32(3, 3, 1, 3, 4)
    places = [
        (entry(office, number)[44], struct.unpack("<HII", entry(office, number)[:10])) for number in (1, 3, 4)
    ]
    assert places == [(1, (0, 0, 3)), (2, (0, 0, 4)), (3, (0, 0, 0))]


@pytest.mark.parametrize(
    ("start", "first"),
    [(0, 1), (1, 1), (2, 2), (125, 125), (126, 126), (131, None), (ANY, 1), (ANY - 1, None)],
)
def test_a_list_begins_at_a_position_and_has_125_jobs_at_most(start: int, first: int | None) -> None:
    office = Office()
    for _ in range(130):
        office.alice.submit(office.queue)
    numbers = [] if first is None else list(range(first, min(first + 125, 131)))
    assert office.alice.call(129, be32(office.queue) + le32(start)) == le32(130, len(numbers), *numbers)
    assert len(office.alice.call(107, be32(office.queue))) == 2 + 2 * 130


def test_jobs_of_some_types_are_listed(office: Office) -> None:
    for type_ in (5, 6, 5, 7):
        office.alice.submit(office.queue, type_=type_)
    forms = struct.pack("<2H", 5, 7)
    assert office.alice.call(137, be32(office.queue) + le32(1, 2) + forms) == le32(3, 3, 1, 3, 4)
    assert office.alice.call(137, be32(office.queue) + le32(2, 2) + forms) == le32(3, 2, 3, 4)
    assert office.alice.call(137, be32(office.queue) + le32(1, 0)) == le32(0, 0)
    office.alice.call(137, be32(office.queue) + le32(1, 3) + forms, code=0x7E)
    office.alice.call(137, be32(office.queue) + le32(1, ANY) + forms, code=0x7E)


@requirement("QMS-submit-06", "QMS-submit-12")
@pytest.mark.parametrize(("create", "start", "at"), [(104, 105, 22), (121, 127, 38)])
def test_closing_and_starting(office: Office, create: int, start: int, at: int) -> None:
    structure = old_job() if create == 104 else new_job()
    reply = office.alice.call(create, be32(office.queue) + structure)
    number = reply[at : at + (2 if create == 104 else 4)]
    assert flags(office, 1) == OPEN
    assert office.alice.call(start, be32(office.queue) + number) == b""
    assert flags(office, 1) == 0
    office.alice.call(start, be32(office.queue) + number, code=0xD6)


@requirement("QMS-jobfields-27", "QMS-jobfields-28")
@pytest.mark.parametrize("remove", [106, 128])
def test_removing_by_the_number(office: Office, remove: int) -> None:
    for _ in range(3):
        office.alice.submit(office.queue)
    number = be16(2) if remove == 106 else le32(2)
    assert office.alice.call(remove, be32(office.queue) + number) == b""
    assert office.jobs() == [1, 3]
    office.alice.call(remove, be32(office.queue) + number, code=0xD5)


@requirement("QMS-manage-03", "QMS-manage-04", "QMS-ext-06", "QMS-flags-11")
@pytest.mark.parametrize("change", [109, 123])
def test_changing_an_entry(office: Office, change: int) -> None:
    office.alice.submit(office.queue)
    office.alice.submit(office.queue, flags=0x0501)
    before = entry(office, 2)
    make = old_job if change == 109 else new_job
    structure = make(target=9, at=LATER, type_=3, flags=USER_HOLD | OPERATOR_HOLD | OPEN | 0x01, number=2,
                     position=1, description=b"new", record=RECORD, junk=0xEE)  # fmt: skip
    assert office.alice.call(change, be32(office.queue) + structure) == b""
    kept = 0x0500 if change == 109 else 0  # the old form has no room for these
    assert entry(office, 2) == b"".join((
        before[:22], be32(9), LATER, before[32:42], be16(3), struct.pack("<HH", 2, USER_HOLD | 0x01 | kept),
        before[48:78], b"new".ljust(50, b"\0"), RECORD,
    ))  # fmt: skip
    office.oscar.call(change, be32(office.queue) + structure)
    assert struct.unpack("<HH", entry(office, 2)[44:48]) == (1, USER_HOLD | OPERATOR_HOLD | 0x01 | kept)
    assert office.jobs() == [2, 1], "an operator's change moves it"


def test_an_entry_is_changed_by_requests_of_other_sizes(office: Office) -> None:
    office.alice.submit(office.queue)
    office.alice.call(123, be32(office.queue) + old_job(number=1, type_=4))
    assert entry(office, 1)[42:44] == be16(4)
    office.alice.call(109, old_job(number=1, type_=5), code=0x7E)
    assert entry(office, 1)[42:44] == be16(4), "the request names no queue"


@requirement("QMS-jobfields-25")
@pytest.mark.parametrize("at", [bytes(6), bytes((26, 13, 1, 0, 0, 0)), AT_ONCE[:5] + b"\0"])
def test_a_time_out_of_range_is_refused(office: Office, at: bytes) -> None:
    office.alice.call(121, be32(office.queue) + new_job(at=at), code=0xFF)
    assert office.jobs() == []


@requirement("QMS-monitor-19", "QMS-ext-07")
@pytest.mark.parametrize("call", [110, 130])
def test_changing_the_position(office: Office, call: int) -> None:
    for _ in range(4):
        office.alice.submit(office.queue)

    def move(number: int, position: int, code: int = 0) -> list[int]:
        data = be16(number) + bytes((position,)) if call == 110 else le32(number, position)
        office.oscar.call(call, be32(office.queue) + data, code=code)
        return office.jobs()

    assert move(4, 1) == [4, 1, 2, 3]
    assert move(4, 250) == [1, 2, 3, 4]
    assert move(2, 3) == [1, 3, 2, 4]
    assert move(2, 0, code=0xFF) == [1, 3, 2, 4]
    assert [entry(office, number)[38:46] for number in (1, 3)] == [
        le32(1) + be16(0) + b"\1\0",
        le32(3) + be16(0) + b"\2\0",
    ]


@requirement("QMS-service-05")
def test_the_size_of_a_file(office: Office) -> None:
    office.alice.submit(office.queue, b"hello")
    assert office.ps1.call(120, be32(office.queue) + be16(1)) == be32(office.queue) + be16(1) + be32(5)
    assert office.ps1.call(135, be32(office.queue) + le32(1)) == be32(office.queue) + le32(1) + be32(5)


def test_moving_to_another_queue(office: Office) -> None:
    second = office.server.queue("SECOND", PRINT_QUEUE)
    office.alice.submit(office.queue, b"first")
    office.alice.submit(office.queue, b"hello", type_=5)
    data = be32(office.queue) + le32(2) + be32(second)
    office.oscar.call(136, data, code=0xD3)
    office.server.admit(second, "Q_OPERATORS", office.server.service.objects.named("OSCAR", 1).id)
    office.server.admit(second, "Q_SERVERS", office.ps1_id)
    assert office.oscar.call(136, data) == le32(1)
    assert office.jobs() == [1]
    office.ps1.call(111, be32(second))
    job = office.ps1.call(124, be32(second) + be16(5))
    assert office.ps1.read(six_bytes(job[62:66]), 0, 100) == be16(5) + b"hello"


@requirement("QMS-files-09", "QMS-jobfields-34", "QMS-submit-05", "QMS-service-09")
def test_the_bytes_of_a_job(office: Office) -> None:
    reply = office.alice.call(121, be32(office.queue) + new_job())
    handle = six_bytes(reply[62:66])
    office.alice.write(handle, 0, b"0123456789")
    office.alice.write(handle, 10, b"abc")
    office.alice.write(handle, 15, b"z")
    office.alice.write(handle, 4, b"XY")
    whole = b"0123XY6789abc\0\0z"
    assert office.alice.read(handle, 0, 0xFFFF) == be16(16) + whole
    assert office.alice.read(handle, 3, 4) == be16(4) + b"\0" + whole[3:7], "a byte of padding"
    assert office.alice.read(handle, 4, 4) == be16(4) + whole[4:8]
    assert office.alice.read(handle, 16, 4) == be16(0)
    assert office.alice.read(handle, 0, 16, room=16 + 2 + 5) == be16(5) + whole[:5]
    assert office.alice.read(handle, 1, 16, room=16 + 2 + 5) == be16(4) + b"\0" + whole[1:5]
    office.alice.call(127, be32(office.queue) + le32(1))
    office.alice.write(handle, 0, b"?", code=0x88)
    job = office.serve()
    taken = six_bytes(job[62:66])
    assert office.ps1.read(taken, 0, 100) == be16(16) + whole
    office.ps1.write(taken, 0, b"?", code=0x94)
    office.ps1.file(66, b"\0" + taken)
    office.ps1.read(taken, 0, 1, code=0x88)
    office.ps1.file(66, b"\0" + taken, code=0x88)


@requirement("QMS-submit-11")
def test_a_handle_is_for_its_connection_alone(office: Office) -> None:
    handle = six_bytes(office.alice.call(121, be32(office.queue) + new_job())[62:66])
    office.bob.write(handle, 0, b"x", code=0x88)
    second = Station(office.server).login("ALICE")
    second.write(handle, 0, b"x", code=0x88)
    second.call(127, be32(office.queue) + le32(1), code=0xD6)
    office.alice.write(handle, 0, b"x")


@pytest.mark.parametrize("data", [b"", bytes(12), bytes(14), bytes(6)])
def test_a_read_of_wrong_length(office: Office, data: bytes) -> None:
    office.alice.file(72, data, code=0x7E)


def test_a_write_that_has_other_bytes_than_it_says(office: Office) -> None:
    handle = six_bytes(office.alice.call(121, be32(office.queue) + new_job())[62:66])
    for count in (2, 4):
        office.alice.file(73, b"\0" + handle + be32(0) + be16(count) + b"abc", code=0x7E)
    assert office.alice.call(135, be32(office.queue) + le32(1))[8:] == be32(0)


@requirement("QMS-flags-01", "QMS-flags-02", "QMS-submit-08", "QMS-submit-09")
def test_an_open_job_whose_connection_breaks(office: Office) -> None:
    office.alice.call(121, be32(office.queue) + new_job(flags=AUTO_START))
    office.alice.call(121, be32(office.queue) + new_job())
    office.alice.lose()
    assert office.jobs() == [1]
    assert flags(office, 1) == AUTO_START


@requirement("QMS-jobfields-23", "QMS-manage-08")
def test_a_time_that_has_not_come(office: Office) -> None:
    office.alice.submit(office.queue, at=LATER)
    office.ps1.call(111, be32(office.queue))
    office.ps1.call(124, be32(office.queue) + be16(0xFFFF), code=0xD5)
    office.server.now = NOW + timedelta(hours=11, minutes=29, seconds=15)
    assert len(office.ps1.call(124, be32(office.queue) + be16(0xFFFF))) == 78


def test_old_calls_have_no_room_for_stations_above_255(office: Office) -> None:
    far = office.server
    far.numbers = type(far.numbers)(400)
    stations = [Station(far) for _ in range(300)]
    stations[-1].login("ALICE").submit(office.queue)
    assert entry(office, 1)[10:14] == le32(300)
    assert office.oscar.call(108, be32(office.queue) + be16(1))[:1] == b"\0"
