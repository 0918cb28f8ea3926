"""The queue calls and those around them, byte by byte: sizes, offsets, values, variants, headers."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.ncp.calls import Call
from msmqwire.ncp.constants import ObjectType
from msmqwire.ncp.packets import (
    CALLS,
    CALLS_BY_NAME,
    NcpReply,
    NcpRequest,
    make_reply,
    make_request,
    parse_reply,
    parse_request,
)
from msmqwire.ncp.queue_calls import QUEUE_CALLS
from msmqwire.schema import Record, fixed_size
from tests.support.codec_checks import assert_refused
from tests.support.netware.ncp_vectors import CallVector, calls, other_calls, reply_of, request_of, structure

VECTORS = list(calls())
ALL = [*VECTORS, *other_calls()]
EACH = pytest.mark.parametrize("vector", ALL, ids=lambda v: f"{v.function}/{v.number} {v.direction}")
COUNTS = {"JobCount", "FormCount", "ServerCount"}
QUEUE = "015D0311"


def read(vector: CallVector) -> NcpRequest | NcpReply:
    if vector.direction == "request":
        return parse_request(vector.packet)
    return parse_reply(vector.packet, call=CALLS[vector.function, vector.number])


def values(record: Record) -> dict[str, Any]:
    """Numbers and bytes; structures of a size of their own as their bytes, lists as dicts."""
    return {name: _value(value) for name, value in dict(record).items()}


def _value(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_bytes()
    return [dict(item) for item in value] if isinstance(value, list) else value


def test_there_is_a_vector_for_each_call() -> None:
    assert {(v.number, v.name) for v in VECTORS} == {(call.number, call.name) for call in QUEUE_CALLS}
    assert sorted(v.number for v in VECTORS) == sorted([*range(100, 139)] * 2)
    assert {(v.function, v.number) for v in ALL} == CALLS.keys()


@EACH
def test_a_call_has_these_fields_and_no_others(vector: CallVector) -> None:
    packet = read(vector)
    assert packet.data is not None
    fields = values(packet.data)
    shown = {name: value for name, value in fields.items() if name in vector.fields}
    assert shown == vector.fields
    assert {name.removesuffix("Length") for name in fields} - set(vector.fields) == set()
    assert (packet.trailing, packet.kind) == (b"", f"{vector.name} {vector.direction}")
    assert packet.to_bytes() == vector.packet


@EACH
def test_a_call_is_made_of_its_fields_alone(vector: CallVector) -> None:
    given = {
        name: CALLS_BY_NAME[vector.name].request.part(name).header.parse(value)
        if name == "Job" and vector.direction == "request"
        else value
        for name, value in vector.fields.items()
        if name not in COUNTS
    }
    call = CALLS_BY_NAME[vector.name]
    request = make_request(call, sequence=7, connection=0x0102, task=5)
    if vector.direction == "request":
        request = make_request(call, given, sequence=7, connection=0x0102, task=5)
        assert request.to_bytes() == vector.packet
        assert request.subfunction is None or request.subfunction.StructureLength == vector.length
    elif "Job" not in given and "JobCount" not in vector.fields:
        reply = make_reply(request, given)
        assert reply.to_bytes()[8:] == vector.packet[8:]


@pytest.mark.parametrize(
    "vector",
    [v for v in ALL if (v.function, v.direction) not in {(72, "reply"), (104, "request")}],  # any data
    ids=lambda v: f"{v.function}/{v.number} {v.direction}",
)
def test_a_call_cut_short_is_refused_at_its_end(vector: CallVector) -> None:
    """At each byte of the data: the refusal names a field and its offset in the packet."""
    start = len(vector.packet) - len(vector.data)
    variants = {fixed_size(other) for other in CALLS[vector.function, vector.number].others}
    for size in range(len(vector.data)):
        if vector.direction == "request" and size in variants:
            continue
        with pytest.raises(MalformedPacket) as refused:
            read(vector._replace(data=vector.data[:size], length=size + 1))
        assert refused.value.path.startswith(("Ncp", "NWQueue"))
        assert start <= (refused.value.offset or 0) <= start + size


# -- variants ---------------------------------------------------------------------------------------


def test_a_change_of_an_old_job_without_its_queue() -> None:
    packet = request_of(109, structure("old-job").hex())
    request = parse_request(packet)
    assert request.data is not None
    assert request.data.Job.jobNumber == 500
    assert "QueueID" not in request.data.schema.fields
    assert request.to_bytes() == packet


def test_a_change_of_a_job_with_the_old_structure() -> None:
    packet = request_of(123, QUEUE + structure("old-job").hex())
    request = parse_request(packet)
    assert request.data is not None
    assert (request.data.QueueID, request.data.Job.jobType) == (0x015D0311, 0x0102)
    assert request.data.Job.to_bytes() == structure("old-job")
    assert request.to_bytes() == packet


def test_a_charge_of_two_bytes() -> None:
    packet = request_of(114, QUEUE + "01F4 0102")
    request = parse_request(packet)
    assert request.data is not None
    assert (request.data.JobNumber, request.data.Charge) == (500, 0x0102)
    assert request.to_bytes() == packet


def test_a_status_of_one_byte() -> None:
    packet = request_of(126, QUEUE + "05")
    request = parse_request(packet)
    assert request.data is not None
    status = request.data.QueueStatus
    assert (status.CantAddJobs, status.ServersCantAttach, status.CantServiceJobs) == (True, False, True)
    assert request.to_bytes() == packet


def test_a_status_with_room_for_25_servers() -> None:
    servers = "0A0B0C0D 01020304" + "00" * 92
    packet = reply_of(f"{QUEUE} 04 07 02 {servers} 1234 {'00' * 23}")
    reply = parse_reply(packet, call=CALLS[23, 102])
    assert reply.data is not None
    assert (reply.data.ServerCount, reply.data.JobCount) == (2, 7)
    assert (reply.data.ServerID1, reply.data.ServerID2, reply.data.ServerID3) == (0x0A0B0C0D, 0x01020304, 0)
    assert (reply.data.ServerStation1, reply.data.ServerStation2) == (0x12, 0x34)
    assert (reply.trailing, reply.to_bytes()) == (b"", packet)


def test_a_status_with_25_servers_is_counted() -> None:
    packet = reply_of(f"{QUEUE} 00 00 19 {'01020304' * 25} {'15' * 25}")
    reply = parse_reply(packet, call=CALLS[23, 102])
    assert reply.data is not None
    assert [item.ServerStation for item in reply.data.ServerStations] == [0x15] * 25
    assert reply.to_bytes() == packet


def test_two_zeros_behind_a_reply_are_kept() -> None:
    packet = reply_of("0000")
    for number in (115, 132):
        reply = parse_reply(packet, call=CALLS[23, number])
        assert (reply.trailing, reply.to_bytes()) == (b"\0\0", packet)


def test_a_failed_call_has_no_data() -> None:
    reply = parse_reply(reply_of("", 0xD5), call=CALLS[23, 122])
    assert (reply.data, reply.header.CompletionCode, reply.kind) == (None, 0xD5, "ReadQueueJobEntry reply")
    made = make_reply(parse_request(request_of(122, QUEUE + "F4010000")), completion=0xD5)
    assert made.to_bytes() == bytes.fromhex("3333 07 02 05 01 D5 00")


@pytest.mark.requirement("QMS-ext-18")
def test_a_server_status_has_64_bytes_with_the_price_first() -> None:
    record = structure("server-status")
    assert (len(record), int.from_bytes(record[:4], "big")) == (64, 25)
    request = parse_request(request_of(119, QUEUE + record.hex()))
    assert request.data is not None
    assert request.data.ServerStatusRecord == record
    for number in (118, 134):
        reply = parse_reply(reply_of(record.hex()), call=CALLS[23, number])
        assert reply.data is not None
        assert reply.data.ServerStatusRecord == record
        with pytest.raises(MalformedPacket):
            parse_reply(reply_of(record[:63].hex()), call=CALLS[23, number])
    with pytest.raises(InvalidValue):
        make_request(CALLS[23, 119], {"ServerStatusRecord": bytes(65)}, sequence=0, connection=1)


@pytest.mark.parametrize(
    ("name", "number"),
    [("NWOT_PRINT_QUEUE", 3), ("NWOT_ARCHIVE_QUEUE", 8), ("NWOT_JOB_QUEUE", 10)],
)
@pytest.mark.requirement("QMS-createq-03")
def test_a_queue_of_a_type(name: str, number: int) -> None:
    request = parse_request(request_of(100, f"{number:04X} 01 51 00 01 2F"))
    assert request.data is not None
    assert ObjectType(request.data.QueueType).name == name


# -- headers ----------------------------------------------------------------------------------------


def test_the_fields_of_the_headers() -> None:
    request = parse_request(bytes.fromhex("2222 FF 34 05 12 17 0009 7A 015D0311 F4010000"))
    assert dict(request.header) == {
        "RequestType": 0x2222, "SequenceNumber": 255, "ConnectionNumberLow": 0x34, "TaskNumber": 5,
        "ConnectionNumberHigh": 0x12, "FunctionCode": 23,
    }  # fmt: skip
    assert request.subfunction is not None
    assert dict(request.subfunction) == {"StructureLength": 9, "SubFunctionCode": 122}
    assert request.connection == 0x1234
    reply = parse_reply(bytes.fromhex("9999 FF 34 05 12 00 51"), request)
    assert (reply.header.ReplyType, reply.connection, reply.data) == (0x9999, 0x1234, None)
    status = reply.header.ConnectionStatus
    assert (status.BadConnection, status.ServerDown, status.MessageWaiting) == (True, True, True)


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        ("1111 00 FF 00 FF 00", "CreateConnection request"),
        ("5555 09 02 00 00 00", "DestroyConnection request"),
        ("5555 09 02 00 00", "DestroyConnection request"),
        ("2222 09 02 00 00 17 0001 FE", "Ncp request"),
        ("2222 09 02 00 00 55 0102", "Ncp request"),
    ],
    ids=["create", "destroy", "short destroy", "unknown subfunction", "unknown function"],
)
def test_requests_without_a_known_call_come_back(packet: str, kind: str) -> None:
    data = bytes.fromhex(packet)
    request = parse_request(data)
    assert (request.kind, request.call, request.to_bytes()) == (kind, None, data)


@pytest.mark.parametrize(
    ("data", "path", "offset"),
    [
        ("", "NcpRequestHeader.RequestType", 0),
        ("2222 01 02 00 00", "NcpRequestHeader.FunctionCode", 6),
        ("1111 00 FF 00 FF", "NcpRequestHeader.FunctionCode", 6),
        ("5555 00 FF 00", "NcpRequestHeader.ConnectionNumberHigh", 5),
        ("2222 01 02 00 00 17 00", "NcpSubfunctionHeader.StructureLength", 8),
        ("2222 01 02 00 00 17 0001", "NcpSubfunctionHeader.SubFunctionCode", 9),
        ("2222 01 02 00 00 17 0009 65 015D0311", "NcpSubfunctionHeader.StructureLength", 7),
        ("2222 01 02 00 00 17 0004 65 015D0311", "NcpSubfunctionHeader.StructureLength", 7),
        ("2222 01 02 00 00 17 0004 65 015D03", "NcpQueue.QueueID", 13),
        ("2222 01 02 00 00 17 0006 64 0003 05 5052", "NcpCreateQueue.QueueNameLength", 12),
    ],
)
def test_a_malformed_request_is_refused_with_its_place(data: str, path: str, offset: int) -> None:
    assert_refused(parse_request, bytes.fromhex(data), path, offset)


def test_a_count_that_is_a_lie_is_refused_at_once() -> None:
    with pytest.raises(MalformedPacket) as refused:
        parse_reply(reply_of("01000000 FFFFFFFF 01000000"), call=CALLS[23, 129])
    assert (refused.value.path, refused.value.offset) == ("NcpJobList.JobCount", 12)


def test_what_the_length_word_counts_too_much_is_kept() -> None:
    packet = request_of(101, QUEUE + "ABCD")
    request = parse_request(packet)
    assert (request.trailing, request.to_bytes()) == (b"\xab\xcd", packet)


@pytest.mark.parametrize(
    "wrong", [{"connection": 0x10000}, {"connection": -1}, {"sequence": 256}, {"task": 256}]
)
def test_a_header_that_does_not_fit_is_refused(wrong: dict[str, int]) -> None:
    call: Call = CALLS[23, 117]
    with pytest.raises(InvalidValue):
        make_request(call, **{"sequence": 1, "connection": 1, **wrong})


def test_data_beyond_the_length_word_are_refused() -> None:
    forms = [{"Form": 1}] * 0x4000
    with pytest.raises(InvalidValue) as refused:
        make_request(CALLS[23, 137], {"Forms": forms * 2}, sequence=1, connection=1)
    assert refused.value.path == "NcpJobForms"
