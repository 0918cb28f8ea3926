"""A service connection of NCP: its number, its sequence, and what is refused before any call is performed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.ncp.calls import Call
from msmqwire.ncp.packets import CALLS_BY_NAME
from msmqwire.ncp.readings import JobNumberForm, Readings
from msmqwire.netware.protocol.connection_numbers import ConnectionNumbers
from msmqwire.netware.protocol.dispatch import OPERATIONS
from msmqwire.netware.protocol.session import Answer, GiveUp, Later, NcpSession, Perform
from msmqwire.schema import fixed_size
from tests.support.netware.netware_station import (
    CREATE,
    DESTROY,
    PRINT_QUEUE,
    PRINT_SERVER,
    REQUEST,
    MemoryServer,
    Office,
    Station,
    be16,
    be32,
    le32,
    new_job,
    text,
)

ATTACH = b"\x11\x11\0\xff\0\xff\0"
LOGOUT = 25


def test_attaching_gives_the_lowest_free_number() -> None:
    server = MemoryServer(connections=2)
    first, second = Station(server), Station(server)
    assert (first.connection, second.connection) == (1, 2)
    first.lose()
    assert Station(server).connection == 1


def test_no_slot_is_free() -> None:
    server = MemoryServer(connections=1)
    taken = Station(server)
    late = Station(server, attach=False)
    assert late.send(ATTACH) == b"\x33\x33\0\0\0\0\xf9\0"
    taken.lose()
    assert late.send(ATTACH) == b"\x33\x33\0\x01\0\0\0\0"


def test_a_number_above_255_has_its_high_byte_at_offset_5() -> None:
    server = MemoryServer(connections=300)
    stations = [Station(server) for _ in range(258)]
    assert stations[-1].connection == 258
    request = stations[-1].packet(REQUEST, function=LOGOUT)
    assert request[3:6] == b"\x02\x03\x01"
    assert stations[-1].send(request) == b"\x33\x33\x01\x02\x03\x01\0\0"


def test_a_repeated_request_gets_the_same_reply_and_no_effect() -> None:
    office = Office()
    submit = be16(285) + b"\x79" + be32(office.queue) + bytes(280)
    request = office.alice.packet(REQUEST, submit[:7] + bytes(22) + b"\xff" * 10 + submit[39:])
    reply = office.alice.send(request)
    assert len(reply) == 8 + 78
    assert office.alice.send(request) == reply
    assert office.jobs() == [1]
    refused = office.alice.packet(REQUEST, be16(1) + b"\x75")
    assert office.alice.send(refused) == office.alice.send(refused)


def test_a_repeated_request_to_attach_gets_the_same_number() -> None:
    station = Station(MemoryServer(), attach=False)
    assert station.send(ATTACH) == station.send(ATTACH) == b"\x33\x33\0\x01\0\0\0\0"
    assert len(station.server.numbers) == 1


def test_attaching_again_later_gives_up_what_the_connection_had() -> None:
    office = Office()
    office.alice.call(121, be32(office.queue) + bytes(22) + b"\xff" * 10 + bytes(248))
    assert office.jobs() == [1]
    before = office.alice.connection
    assert office.alice.send(ATTACH)[3] not in (0, before)
    assert office.jobs() == []
    assert office.alice.send(office.alice.packet(REQUEST, function=LOGOUT))[6:] == b"\0\x01"


def test_a_request_that_waits_gets_a_busy_reply() -> None:
    server = MemoryServer()
    session = NcpSession(server.numbers)
    session.received(ATTACH)
    request = b"\x22\x22\x01\x01\x07\0\x19"
    first = session.received(request)
    assert isinstance(first, Perform)
    assert session.received(request) == Answer(b"\x99\x99\x01\x01\x07\0\0\0")
    assert isinstance(session.received(b"\x22\x22\x02\x01\x07\0\x19"), Later)
    assert isinstance(session.received(ATTACH), Later)
    assert session.performed(first, {}) == b"\x33\x33\x01\x01\x07\0\0\0"
    assert isinstance(session.received(b"\x22\x22\x02\x01\x07\0\x19"), Perform)


@pytest.mark.parametrize("number", [0, 2, 0x0101, 0xFFFF])
@pytest.mark.parametrize("type_", [REQUEST, DESTROY])
def test_another_connection_number_is_a_bad_connection(type_: int, number: int) -> None:
    station = Station(MemoryServer())
    packet = station.packet(type_, connection=number, function=LOGOUT)
    head = bytes((station.sequence, number & 0xFF, station.task, number >> 8))
    assert station.send(packet) == b"\x33\x33" + head + b"\0\x01"
    assert station.session.caller is not None


def test_before_attaching_every_connection_is_bad() -> None:
    station = Station(MemoryServer(), attach=False)
    assert station.send(station.packet(REQUEST, function=LOGOUT))[6:] == b"\0\x01"


@pytest.mark.parametrize("type_", [0x0000, 0x1112, 0x3333, 0x3E3E, 0x7777, 0x9999, 0xBBBB])
def test_an_unknown_type_is_not_supported(type_: int) -> None:
    station = Station(MemoryServer())
    assert station.send(station.packet(type_))[6:] == b"\xfb\0"


@pytest.mark.parametrize("cut", [0, 1])
def test_a_connection_is_destroyed_by_six_bytes_or_seven(cut: int) -> None:
    server = MemoryServer(connections=1)
    station = Station(server)
    destroy = station.packet(DESTROY, function=0)
    reply = station.send(destroy[: len(destroy) - cut])
    assert reply == b"\x33\x33\x01\x01\x03\0\0\0"
    assert station.send(destroy) == reply, "repeated"
    assert station.send(station.packet(REQUEST, function=LOGOUT))[6:] == b"\0\x01"
    assert Station(server).connection == 1


def test_destroying_gives_up_what_the_connection_had() -> None:
    office = Office()
    office.alice.call(121, be32(office.queue) + bytes(22) + b"\xff" * 10 + bytes(248))
    office.alice.send(office.alice.packet(DESTROY, function=0))
    assert office.jobs() == []


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (b"", 0x7E),
        (b"\x22\x22\x01\x01\x03\0", 0x7E),
        (b"\x22\x22\x01\x01\x03\0\x17", 0x7E),
        (b"\x22\x22\x01\x01\x03\0\x17\0\x01", 0x7E),
        (b"\x22\x22\x01\x01\x03\0\x17\0\x02\x75", 0x7E),
        (b"\x22\x22\x01\x01\x03\0\x17\0\x00\x75", 0x7E),
        (b"\x22\x22\x01\x01\x03\0\x17\0\x02\x75\0", 0x7E),
        (b"\x22\x22\x01\x01\x03\0\x19\0", 0x7E),
        (b"\x11\x11\x01\x01\x03\0\x00\0", 0x7E),
        (b"\x55\x55\x01\x01\x03\0\x00\0", 0x7E),
        (b"\x22\x22\x01\x01\x03\0\x17\0\x01\x96", 0xFB),
        (b"\x22\x22\x01\x01\x03\0\x17\0\x01\xff", 0xFB),
        (b"\x22\x22\x01\x01\x03\0\x00", 0xFB),
        (b"\x22\x22\x01\x01\x03\0\xff\x01\x02", 0xFB),
    ],
    ids=lambda value: value.hex() or "empty" if isinstance(value, bytes) else None,
)
def test_wrong_lengths_and_unknown_functions(packet: bytes, code: int) -> None:
    station = Station(MemoryServer())
    assert station.send(packet)[6:] == bytes((code, 0))
    assert station.session.caller is not None


def test_a_reply_that_the_client_has_no_room_for() -> None:
    office = Office()
    create = be32(office.queue) + bytes(22) + b"\xff" * 10 + bytes(248)
    office.alice.call(121, create, room=8 + 8 + 77, code=0x7E)
    assert office.jobs() == [], "it was not performed"
    office.alice.call(121, create, room=8 + 8 + 78)
    office.alice.call(129, be32(office.queue) + le32(1), room=8 + 8 + 11, code=0x7E)
    assert len(office.alice.call(129, be32(office.queue) + le32(1), room=8 + 8 + 12)) == 12
    office.alice.call(20, be16(1) + text("ALICE") + text(""), room=1)


def test_a_server_that_goes_down_says_so() -> None:
    station = Station(MemoryServer())
    station.session.is_going_down = True
    assert station.send(station.packet(REQUEST, function=LOGOUT))[6:] == b"\0\x10"


@pytest.mark.parametrize(
    ("form", "number"), [("little", b"\x02\1\0\0"), ("big", b"\0\0\1\x02"), ("high-low", b"\1\x02\0\0")]
)
def test_job_numbers_are_read_and_written_alike(form: JobNumberForm, number: bytes) -> None:
    office = Office()
    office.server.readings = Readings(job_number=form, service_type="little")
    alice, server = Station(office.server).login("ALICE"), Station(office.server).login("PS1", PRINT_SERVER)
    queue = be32(office.queue)
    table = office.server.service.queue_table[office.queue]
    table.row = replace(table.row, next_number=0x0102)
    created = alice.call(121, queue + new_job(type_=5))
    assert created[38:42] == number
    alice.call(127, queue + number)
    assert alice.call(129, queue + le32(1)) == le32(1, 1) + number
    assert alice.call(122, queue + number)[38:42] == number
    assert alice.call(135, queue + number) == queue + number + be32(0)
    server.call(111, queue)
    assert server.call(124, queue + b"\5\0")[38:42] == number
    server.call(131, queue + number + bytes(4))
    assert office.jobs() == []


@given(st.lists(st.one_of(st.binary(max_size=24), st.builds(
    lambda kind, sequence, number, rest: be16(kind) + bytes((sequence, number, 0, 0)) + rest,
    st.sampled_from([CREATE, REQUEST, DESTROY]), st.integers(0, 3), st.integers(0, 3), st.binary(max_size=24),
)), max_size=12))  # fmt: skip
def test_any_packets(packets: list[bytes]) -> None:
    numbers = ConnectionNumbers(2)
    session = NcpSession(numbers)
    for packet in packets:
        outcome = session.received(packet)
        match outcome:
            case Answer(reply):
                pass
            case GiveUp():
                reply = session.given_up(outcome)
            case Perform():
                assert session.received(packet) != outcome
                reply = session.refused(outcome, 0xD3)
            case _:
                raise AssertionError("nothing is being performed")
        assert (reply[:2], len(reply)) == (b"\x33\x33", 8)
    assert len(numbers) == (session.caller is not None)


def test_all_calls_but_these_are_performed() -> None:
    keyed = {"GetLoginKey", "KeyedObjectLogin"}  # their proof is of a hash that is not kept
    left_out = {"ChangeBinderyObjectSecurity", "DirectoryServices", *keyed}
    assert CALLS_BY_NAME.keys() - OPERATIONS.keys() == left_out
    assert OPERATIONS.keys() <= CALLS_BY_NAME.keys()


@pytest.mark.parametrize("call", CALLS_BY_NAME.values(), ids=lambda call: call.name)
def test_any_data_of_any_call_is_answered(call: Call) -> None:
    office, chance = Office(), Random(call.number)
    office.alice.submit(office.queue)
    office.serve()
    fixed = [size for layout in (call.request, *call.others) if (size := fixed_size(layout)) is not None]
    stations = (office.alice, office.oscar, office.ps1, office.supervisor, Station(office.server))
    for size in [*fixed, *(chance.randrange(90) for _ in range(8))]:
        for first in (be32(office.queue), be16(PRINT_QUEUE) + text("PRINTQ"), b"\0", b""):
            fill = chance.choice((b"\0", b"\1", b"\xff", chance.randbytes(1)))
            data = (first + fill * size)[:size] if chance.random() < 0.7 else chance.randbytes(size)
            if call.has_subfunction:
                data = be16(len(data) + 1) + bytes((call.number,)) + data
            for station in stations:
                reply = station.send(station.packet(REQUEST, data, function=call.function))
                assert reply[:2] == b"\x33\x33"
    office.server.service.take()
