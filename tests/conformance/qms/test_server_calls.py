"""The first calls of a client: about the file server, its clock, its volume, its connections and logins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from msmqwire.netware.model.files import VolumeFile
from msmqwire.netware.model.settings import Settings
from tests.support.netware.netware_station import (
    ENTRY_TIME,
    PRINT_SERVER,
    REQUEST,
    USER,
    MemoryServer,
    Office,
    Station,
    be16,
    be32,
    le32,
    named,
    new_job,
    six_bytes,
    text,
)

NOW = ENTRY_TIME + b"\0"  # 1 March 2026 is a Sunday
NOBODY = bytes(62)


@pytest.fixture
def office() -> Office:
    return Office()


def logged_in(office: Office, name: str, type_: int, object_id: int) -> bytes:
    """The data of a login at the time of the office."""
    return be32(object_id) + be16(type_) + name.encode().ljust(48, b"\0") + NOW + b"\0"


def test_what_a_client_asks_before_its_login(office: Office) -> None:
    late = Station(office.server)
    for size in (b"\0\0", b"\2\0", b"\xff\xff"):
        assert late.file(33, size) == size
        assert late.file(97, size + b"\x02") == size + b"\0\0\0"  # no echo socket, no signatures
    assert late.call(70) == b"\0" + b"\xff" * 4
    assert late.call(205) == b"\1"
    late.call(200, code=0xC6)
    late.call(23, code=0xFB)  # no login key: the client sends its password in 23/20
    late.call(24, bytes(8) + named(USER, "ALICE"), code=0xFB)
    late.file(104, b"\1" + bytes(5), code=0xFB)  # no NDS: the client asks the bindery
    assert late.call(28, le32(late.connection)) == NOBODY


def test_the_file_server(office: Office) -> None:
    numbers = office.server.numbers
    data = office.alice.call(17)
    assert len(data) == 128
    assert data[:48] == b"OFFICE".ljust(48, b"\0")
    assert data[48:61] == bytes((3, 11)) + be16(16, 6, 1) + b"\0\0\0" + be16(6)
    assert data[61:] == b"\0\0\1" + bytes(64)
    late = Station(office.server)
    assert late.call(17)[50:54] == be16(16, 7)
    late.lose()
    assert (len(numbers), numbers.peak) == (6, 7)
    assert office.alice.call(17)[52:61] == be16(6, 1) + b"\0\0\0" + be16(7)


def test_the_clock_is_utc(office: Office) -> None:
    assert office.alice.file(20, b"") == NOW
    office.server.now = datetime(2000, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    assert office.alice.file(20, b"") == bytes((99, 12, 31, 23, 30, 0, 5))
    office.server.now = datetime(2080, 1, 1, tzinfo=UTC) - timedelta(seconds=1)
    assert office.alice.file(20, b"") == bytes((79, 12, 31, 23, 59, 59, 0))


def test_who_is_logged_in_on_a_connection(office: Office) -> None:
    alice, ps1 = office.alice, office.ps1
    own = logged_in(office, "ALICE", USER, office.alice_id)
    for station in (alice, office.supervisor, office.outsider):
        assert station.call(28, le32(alice.connection)) == own
        assert station.call(22, bytes((alice.connection,))) == own
    assert alice.call(28, le32(ps1.connection)) == logged_in(office, "PS1", PRINT_SERVER, office.ps1_id)
    late = Station(office.server)
    late.call(28, le32(alice.connection), code=0xFC)  # users are shown to those who are logged in
    for number in (0, late.connection + 1, 0x10000 + alice.connection, 0xFFFFFFFF):
        alice.call(28, le32(number), code=0xFD)
    alice.file(25, b"")
    assert office.supervisor.call(28, le32(alice.connection)) == NOBODY
    office.supervisor.call(51, named(PRINT_SERVER, "PS1"))
    assert ps1.call(28, le32(ps1.connection)) == NOBODY


def test_the_address_of_a_connection(office: Office) -> None:
    number = office.bob.connection
    assert office.alice.call(26, le32(number)) == bytes(12) + b"\x0b"
    assert office.alice.call(19, bytes((number,))) == bytes(12)
    office.alice.call(26, le32(99), code=0xFD)
    office.alice.call(19, b"\0", code=0xFD)


def test_the_level_of_a_caller(office: Office) -> None:
    assert office.alice.call(70) == b"\x22" + be32(office.alice_id)
    assert office.supervisor.call(70) == b"\x33" + be32(1)
    office.supervisor.call(200)
    for station in (office.alice, office.oscar, office.ps1):
        station.call(200, code=0xC6)


def volume(clusters: int, free: int, slots: int, left: int, sectors: int) -> bytes:
    return be16(sectors, clusters, free, slots, left) + b"SYS".ljust(16, b"\0") + b"\0\0"


def station_of(settings: Settings) -> Station:
    return Station(MemoryServer(settings=settings)).login("SUPERVISOR")


@pytest.mark.parametrize(
    "total, sectors, clusters",
    [(0, 1, 0), (511, 1, 0), (512, 1, 1), (0xFFFF * 512, 1, 0xFFFF), (0xFFFF * 512 + 1, 2, 0x7FFF),
     (4 << 30, 256, 0x8000), (1 << 60, 0x8000, 0xFFFF)],
)  # fmt: skip
def test_the_size_of_the_volume(total: int, sectors: int, clusters: int) -> None:
    station = station_of(Settings(files_bytes_max=total, volume_entries_max=1 << 20))
    assert station.file(18, b"\0") == volume(clusters, clusters, 0xFFFF, 0xFFFF, sectors)


def test_what_files_leave_of_the_volume() -> None:
    station = station_of(Settings(files_bytes_max=1024, file_bytes_max=1024, volume_entries_max=2))
    service = station.server.service
    handle = station.file(77, b"\0\0" + text("SYS:A.TXT"))[:6]
    station.write(handle, 0, bytes(513))
    assert station.file(18, b"\0") == volume(2, 0, 2, 1, 1)
    service.files.has_room = False
    assert station.file(18, b"\0") == volume(2, 0, 2, 1, 1)
    service.files.set_size(VolumeFile("SYS:A.TXT"), 0)
    assert station.file(18, b"\0") == volume(2, 0, 2, 1, 1), "no room on the disk"
    service.files.has_room = True
    assert station.file(18, b"\0") == volume(2, 2, 2, 1, 1)


def volume_number(station: Station, name: str, code: int = 0) -> bytes:
    data = be16(len(name) + 2) + b"\5" + text(name)
    return station.file(22, data, code=code)


def test_the_number_of_the_volume(office: Office) -> None:
    for name in ("SYS", "sys", "SYS:"):
        assert volume_number(office.alice, name) == b"\0"
    for name in ("", ":", "SYS::", "SYS:A", "DATA", "S" * 255):
        volume_number(office.alice, name, code=0x98)
    for number in (1, 0xFF):
        office.alice.file(18, bytes((number,)), code=0x98)
    office.alice.file(22, be16(1) + b"\6", code=0xFB)


def test_the_end_of_a_job_closes_files_of_its_task(office: Office) -> None:
    station = office.supervisor
    files = [station.file(77, b"\0\0" + text(f"SYS:{name}"))[:6] for name in "AB"]
    station.task += 1
    other = station.file(77, b"\0\0" + text("SYS:C"))[:6]
    station.task -= 1
    alice = office.alice
    job = six_bytes(alice.call(121, be32(office.queue) + new_job())[62:66])
    alice.file(24, b"")
    alice.write(job, 0, b"data")
    station.file(24, b"")
    for handle in files:
        station.read(handle, 0, 1, code=0x88)
    station.read(other, 0, 1)
    station.task += 1
    station.file(24, b"")
    station.read(other, 0, 1, code=0x88)


@pytest.mark.parametrize(
    "function, subfunction, data",
    [
        (18, None, b"\0"), (20, None, b""), (24, None, b""), (33, None, b"\2\0"), (97, None, b"\2\0\0"),
        (22, 5, text("SYS")), (23, 17, b""), (23, 19, b"\1"), (23, 22, b"\1"), (23, 26, le32(1)),
        (23, 28, le32(1)), (23, 70, b""), (23, 205, b""),
    ],
)  # fmt: skip
def test_a_wrong_length_is_refused(
    office: Office, function: int, subfunction: int | None, data: bytes
) -> None:
    def sent(data: bytes, counted: int | None = None) -> int:
        if subfunction is not None:
            data = be16(len(data) + 1 if counted is None else counted) + bytes((subfunction,)) + data
        return office.supervisor.send(office.supervisor.packet(REQUEST, data, function=function))[6]

    assert sent(data) == 0
    assert sent(data + b"\0") == 0x7E
    for size in range(len(data)):
        assert sent(data[:size]) == 0x7E
    if subfunction is not None:
        for counted in (0, len(data), len(data) + 2, 0xFFFF):
            assert sent(data, counted) == 0x7E
