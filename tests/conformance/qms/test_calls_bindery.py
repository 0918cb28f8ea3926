"""The bindery calls and those that create and destroy queues, byte by byte."""

from __future__ import annotations

import pytest

from tests.support.netware.netware_station import (
    GROUP,
    PRINT_QUEUE,
    PRINT_SERVER,
    USER,
    MemoryServer,
    Office,
    Station,
    be16,
    be32,
    le32,
    named,
    text,
)

requirement = pytest.mark.requirement
YES, NO = b"\xff", b"\0"
ANY_TYPE = 0xFFFF
FIRST = b"\xff" * 4
JOB_QUEUE = 0x000A
DYNAMIC, SET = 1, 2


@pytest.fixture
def office() -> Office:
    return Office()


def with_id(object_id: int, object_type: int, name: str) -> bytes:
    return be32(object_id) + be16(object_type) + name.encode().ljust(48, b"\0")


def segment(data: bytes) -> bytes:
    return data.ljust(128, b"\0")


@requirement("QMS-qservers-04")
def test_logging_in_and_out() -> None:
    server = MemoryServer()
    server.add("ALICE")
    server.add("PS1", PRINT_SERVER)
    station = Station(server)
    assert station.call(20, named(USER, "alice") + text("")) == b""
    assert station.call(20, named(PRINT_SERVER, "PS1") + text("")) == b""
    station.call(20, named(USER, "PS1") + text(""), code=0xFC)
    station.call(20, named(USER, "ALICE") + text("secret"), code=0xFF)
    station.call(20, named(USER, "A*") + text(""), code=0xF0)
    station.call(20, named(USER, "") + text(""), code=0xEF)
    assert station.file(25, b"") == b""
    station.call(64, named(USER, "SUPERVISOR") + text("") + text("x"), code=0xFC)


@requirement("QMS-createqs-04")
def test_an_object_logs_in_by_its_password(office: Office) -> None:
    change = named(PRINT_SERVER, "PS1") + text("") + text("secret")
    office.alice.call(64, change, code=0xF8)
    assert office.supervisor.call(64, change) == b""
    late = Station(office.server)
    for password in ("", "SECRE"):
        late.call(20, named(PRINT_SERVER, "PS1") + text(password), code=0xFF)
    for password in ("secret", "SECRET"):
        late.call(20, named(PRINT_SERVER, "PS1") + text(password))
    late.call(64, named(PRINT_SERVER, "PS1") + text("WRONG") + text("NEW"), code=0xFF)
    late.call(64, named(PRINT_SERVER, "PS1") + text("SECRET") + text("NEW"))
    late.call(20, named(PRINT_SERVER, "PS1") + text("SECRET"), code=0xFF)
    late.call(20, named(PRINT_SERVER, "PS1") + text("NEW"))
    office.supervisor.call(64, named(PRINT_SERVER, "PS1") + text("") + text(""))
    late.call(20, named(PRINT_SERVER, "PS1") + text(""))


@requirement("QMS-createq-01", "QMS-createq-03", "QMS-qobject-02", "QMS-createqs-03")
def test_creating_a_queue(office: Office) -> None:
    create = be16(JOB_QUEUE) + text("COMPILE") + b"\0" + text("SYS:SYSTEM")
    office.alice.call(100, create, code=0xF5)
    queue_id = office.supervisor.call(100, create)
    assert len(queue_id) == 4
    found = with_id(int.from_bytes(queue_id, "big"), JOB_QUEUE, "COMPILE")
    assert office.alice.call(53, named(JOB_QUEUE, "compile")) == found
    assert office.alice.call(54, queue_id) == found
    office.supervisor.call(100, create, code=0xEE)
    office.supervisor.call(100, be16(JOB_QUEUE) + text("X") + b"\x01" + text("SYS:SYSTEM"), code=0x9B)
    office.supervisor.call(100, be16(JOB_QUEUE) + text("X") + b"\0" + text("SYSTEM"), code=0x9C)
    office.supervisor.call(100, be16(JOB_QUEUE) + text("X") + b"\0" + text("SYS:" + 115 * "A"), code=0x9C)
    office.supervisor.call(100, be16(JOB_QUEUE) + text("A*") + b"\0" + text("SYS:SYSTEM"), code=0xF0)
    office.supervisor.call(100, be16(JOB_QUEUE) + text("") + b"\0" + text("SYS:SYSTEM"), code=0xEF)
    office.supervisor.call(100, be16(JOB_QUEUE) + text("X" * 48) + b"\0" + text("SYS:SYSTEM"), code=0xEF)
    office.alice.call(53, named(JOB_QUEUE, "X"), code=0xFC)


@requirement("QMS-createq-15", "QMS-createq-16", "QMS-ext-14")
def test_destroying_a_queue(office: Office) -> None:
    office.alice.submit(office.queue)
    for station in (office.alice, office.oscar, office.ps1):
        station.call(101, be32(office.queue), code=0xD3)
    assert office.supervisor.call(101, be32(office.queue)) == b""
    assert office.server.files == {}
    for subfunction in (101, 102, 107, 111, 112, 125):
        office.supervisor.call(subfunction, be32(office.queue), code=0xD1)
    office.alice.call(53, named(PRINT_QUEUE, "PRINTQ"), code=0xFC)
    office.alice.call(54, be32(office.queue), code=0xFC)


@requirement("QMS-qobject-07", "QMS-qobject-08")
def test_scanning_for_queues() -> None:
    server = MemoryServer()
    queues = [server.queue(name) for name in ("PRINTQ_0", "PRINTQ_1", "OTHER")]
    nobody = Station(server)
    last, found = FIRST, []
    for name in ("PRINTQ_0", "PRINTQ_1"):
        reply = nobody.call(55, last + named(PRINT_QUEUE, "printq*"))
        assert reply == with_id(queues[len(found)], PRINT_QUEUE, name) + b"\0\x30" + YES
        last = reply[:4]
        found.append(name)
    nobody.call(55, last + named(PRINT_QUEUE, "PRINTQ*"), code=0xFC)
    assert nobody.call(55, last + named(ANY_TYPE, "*"))[:4] == be32(queues[2])


@requirement("QMS-createqs-01", "QMS-createqs-09")
def test_creating_and_deleting_objects(office: Office) -> None:
    create = b"\0\x31" + named(PRINT_SERVER, "PS2")
    office.alice.call(50, create, code=0xF5)
    assert office.supervisor.call(50, create) == b""
    office.supervisor.call(50, create, code=0xEE)
    office.supervisor.call(50, b"\0\x31" + named(ANY_TYPE, "PS3"), code=0xF0)
    office.supervisor.call(50, b"\0\x44" + named(PRINT_SERVER, "PS3"), code=0xF1)
    reply = office.alice.call(55, FIRST + named(PRINT_SERVER, "PS2"))
    assert reply[54:] == b"\0\x31" + NO
    office.supervisor.call(50, b"\x01\x31" + named(PRINT_SERVER, "PS4"))
    assert office.alice.call(55, FIRST + named(PRINT_SERVER, "PS4"))[54:] == b"\x01\x31" + NO
    office.alice.call(51, named(PRINT_SERVER, "PS2"), code=0xF4)
    assert office.supervisor.call(51, named(PRINT_SERVER, "PS2")) == b""
    office.supervisor.call(51, named(PRINT_SERVER, "PS2"), code=0xFC)


@requirement(
    "QMS-qprops-01", "QMS-qprops-02", "QMS-qdir-01", "QMS-qdir-02", "QMS-qdir-10", "QMS-createq-06",
    "QMS-bindery-02/b",
)  # fmt: skip
def test_scanning_the_properties_of_a_queue(office: Office) -> None:
    queue = named(PRINT_QUEUE, "PRINTQ")
    expected = [
        ("Q_DIRECTORY", b"\0\x33", YES), ("Q_OPERATORS", b"\x02\x30", YES), ("Q_SERVERS", b"\x02\x30", YES),
        ("Q_USERS", b"\x02\x30", YES),
    ]  # fmt: skip
    instance = FIRST
    for place, (name, kind, value) in enumerate(expected, start=1):
        reply = office.supervisor.call(60, queue + instance + text("*"))
        more = YES if place < len(expected) else NO
        assert reply == name.encode().ljust(16, b"\0") + kind + be32(place) + value + more
        instance = reply[18:22]
    office.supervisor.call(60, queue + instance + text("*"), code=0xFB)
    seen = office.alice.call(60, queue + FIRST + text("Q*"))
    assert seen[:16].rstrip(b"\0") == b"Q_OPERATORS", "Q_DIRECTORY is for the supervisor"


@requirement("QMS-qdir-01", "QMS-qdir-03", "QMS-qdir-08", "QMS-createq-07")
def test_reading_property_values(office: Office) -> None:
    queue = named(PRINT_QUEUE, "PRINTQ")
    directory = queue + b"\x01" + text("Q_DIRECTORY")
    office.alice.call(61, directory, code=0xF9)
    path = b"SYS:SYSTEM\\%06X" % office.queue
    assert office.supervisor.call(61, directory) == segment(path) + NO + b"\0"
    servers = office.alice.call(61, queue + b"\x01" + text("Q_SERVERS"))
    assert servers == segment(be32(office.ps1_id)) + NO + b"\x02"
    office.alice.call(61, queue + b"\x02" + text("Q_SERVERS"), code=0xEC)
    office.alice.call(61, queue + b"\0" + text("Q_SERVERS"), code=0xEC)
    office.alice.call(61, queue + b"\x01" + text("Q_NONE"), code=0xFB)


def test_a_set_of_several_segments(office: Office) -> None:
    ids = sorted([office.server.add(f"U{number}") for number in range(40)])
    office.server.admit(office.queue, "Q_SERVERS", *ids)
    queue = named(PRINT_QUEUE, "PRINTQ")
    first = office.alice.call(61, queue + b"\x01" + text("Q_SERVERS"))
    assert first == be32(office.ps1_id, *ids[:31]) + YES + b"\x02"
    second = office.alice.call(61, queue + b"\x02" + text("Q_SERVERS"))
    assert second == segment(be32(*ids[31:])) + NO + b"\x02"


@requirement("QMS-qprops-03", "QMS-createq-14", "QMS-createqs-06", "QMS-qobject-09")
def test_properties_of_an_application(office: Office) -> None:
    queue = named(PRINT_QUEUE, "PRINTQ")
    create = queue + b"\0\x31" + text("DEVICE")
    office.alice.call(57, create, code=0xF7)
    assert office.supervisor.call(57, create) == b""
    office.supervisor.call(57, create, code=0xED)
    office.supervisor.call(61, queue + b"\x01" + text("DEVICE"), code=0xEC)
    office.alice.call(62, queue + b"\x01\0" + text("DEVICE") + segment(b"x"), code=0xF8)
    for number, more, data in ((1, NO, b"plotter"), (2, NO, b"two"), (1, YES, b"tape"), (2, NO, b"last")):
        write = queue + bytes((number,)) + more + text("DEVICE") + segment(data)
        assert office.supervisor.call(62, write) == b""
    assert office.alice.call(61, queue + b"\x01" + text("DEVICE")) == segment(b"tape") + YES + b"\0"
    assert office.alice.call(61, queue + b"\x02" + text("DEVICE")) == segment(b"last") + NO + b"\0"
    office.supervisor.call(62, queue + b"\x04\0" + text("DEVICE") + segment(b"x"), code=0xEC)
    office.alice.call(58, queue + text("DEVICE"), code=0xF6)
    assert office.supervisor.call(58, queue + text("DEVICE")) == b""
    office.alice.call(61, queue + b"\x01" + text("DEVICE"), code=0xFB)


@requirement("QMS-createq-13", "QMS-qusers-04", "QMS-qservers-03", "QMS-qoperators-06")
def test_members_of_sets(office: Office) -> None:
    def member(name: str, object_type: int = USER, of: str = "Q_USERS") -> bytes:
        return named(PRINT_QUEUE, "PRINTQ") + text(of) + named(object_type, name)

    assert office.bob.call(67, member("ALICE")) == b""
    office.bob.call(67, member("OTTO"), code=0xEA)
    office.alice.call(65, member("OTTO"), code=0xF8)
    office.outsider.call(125, be32(office.queue), code=0xD3)
    assert office.supervisor.call(65, member("OTTO")) == b""
    assert office.outsider.call(125, be32(office.queue)) == be32(office.queue) + le32(0, 0, 0)
    office.supervisor.call(65, member("OTTO"), code=0xE9)
    office.alice.call(66, member("OTTO"), code=0xF8)
    assert office.supervisor.call(66, member("OTTO")) == b""
    office.supervisor.call(66, member("OTTO"), code=0xEA)
    office.outsider.call(125, be32(office.queue), code=0xD3)
    office.supervisor.call(65, member("PS9", PRINT_SERVER, "Q_SERVERS"), code=0xFC)
    office.supervisor.call(65, member("PS1", PRINT_SERVER, "Q_OPERATORS"), code=0xFC)
    office.supervisor.call(65, member("OTTO", of="Q_DIRECTORY"), code=0xEB)
    office.supervisor.call(65, member("OTTO", of="Q_NONE"), code=0xFB)


@requirement("QMS-qusers-03")
def test_a_group_is_made_over_the_wire(office: Office) -> None:
    office.supervisor.call(50, b"\0\x31" + named(GROUP, "STAFF"))
    office.supervisor.call(57, named(GROUP, "STAFF") + bytes((SET, 0x31)) + text("GROUP_MEMBERS"))
    office.supervisor.call(65, named(PRINT_QUEUE, "PRINTQ") + text("Q_USERS") + named(GROUP, "STAFF"))
    office.outsider.call(107, be32(office.queue), code=0xD3)
    office.supervisor.call(65, named(GROUP, "STAFF") + text("GROUP_MEMBERS") + named(USER, "OTTO"))
    office.outsider.call(107, be32(office.queue))


def test_the_security_of_an_object_is_not_changed(office: Office) -> None:
    office.supervisor.call(56, b"\x31" + named(USER, "OTTO"), code=0xFB)


@pytest.mark.parametrize(
    ("subfunction", "data"),
    [
        (20, named(USER, "ALICE")),
        (53, b""),
        (53, be16(USER) + b"\x05ALIC"),
        (54, be32(1) + b"\0"),
        (100, be16(3) + text("Q")),
        (101, be16(1)),
        (61, named(USER, "ALICE") + b"\x01"),
        (62, named(USER, "ALICE") + b"\x01\0" + text("P") + bytes(127)),
        (119, be32(1) + bytes(63)),
        (121, be32(1) + bytes(279)),
        (121, be32(1) + bytes(281)),
        (104, be32(1) + bytes(257)),
        (136, be32(1) + le32(1)),
        (138, be32(1) + le32(1, 1)),
        (138, be32(1) + le32(1, 1) + bytes(3)),
        (126, be32(1) + bytes(2)),
        (114, be32(1) + bytes(3)),
        (117, b"\0"),
    ],
)
def test_wrong_lengths(office: Office, subfunction: int, data: bytes) -> None:
    office.alice.call(subfunction, data, code=0x7E)


def test_every_call_answers_who_is_not_logged_in(office: Office) -> None:
    nobody, queue, job = Station(office.server), be32(office.queue), le32(1)
    office.alice.submit(office.queue)
    for subfunction in (102, 107, 111, 125):
        nobody.call(subfunction, queue, code=0xD3)
    for subfunction in (122, 128):
        nobody.call(subfunction, queue + job, code=0xD3)
    nobody.call(112, queue, code=0xD9)
    assert office.jobs() == [1]
