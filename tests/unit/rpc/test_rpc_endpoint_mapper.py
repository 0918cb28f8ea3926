"""The endpoint mapper: stubs laid out by hand, both ends, and what is not there or malformed."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket, RpcFault
from msmqwire.rpc.constants import NDR20, NDR64, FaultStatus, SyntaxId
from msmqwire.rpc.endpoint_mapper import (
    EPT_MAP,
    EPT_MAP_REQUEST,
    EndpointMapper,
    ept_map_response,
    map_request,
    mapped_port,
)
from msmqwire.rpc.ndr import SYNTAXES, build_stub, from_json, parse_stub, to_json
from msmqwire.rpc.towers import TOWER, Tower, build_tower, parse_tower
from tests.support.rpc.rpc_server import REMOTE_READ

ADDRESS = IPv4Address("10.0.0.5")
FLOORS = (
    "0500 1300 0d dd34911a 397b ba45 ad88 44d01ca47f28 0100 0200 0000"
    "1300 0d 045d888a eb1c c911 9fe8 08002b104860 0200 0200 0000 0100 0b 0200 0000"
)
ASKED = f"{FLOORS} 0100 07 0200 0000 0100 09 0400 00000000"
FOUND = f"{FLOORS} 0100 07 0200 0837 0100 09 0400 0a000005"
HANDLE, OBJECT = "00000000" * 5, "00000000" * 4
STUBS = {
    NDR20: (
        f"01000000 {OBJECT} 02000000 4b000000 4b000000 {ASKED} 00 {HANDLE} 04000000",
        f"{HANDLE} 01000000 04000000 00000000 01000000 03000000 4b000000 4b000000 {FOUND} 00 00000000",
    ),
    NDR64: (
        f"0100000000000000 {OBJECT} 0200000000000000 4b00000000000000 4b000000 {ASKED} 00 {HANDLE} 04000000",
        f"{HANDLE} 01000000 0400000000000000 0000000000000000 0100000000000000 0300000000000000"
        f"4b00000000000000 4b000000 {FOUND} 00 00000000",
    ),
}
MAPPER = EndpointMapper({SyntaxId(REMOTE_READ.uuid, 2): 9, REMOTE_READ: 2103})


def answered(asked, syntax=NDR20):
    return parse_stub(ept_map_response(4), MAPPER.called(EPT_MAP, asked, syntax, ADDRESS), SYNTAXES[syntax])


def request(tower, **more):
    given = {"tower_octet_string": tower} if isinstance(tower, bytes) else tower
    values = {"map_tower": given, "max_towers": 4, **more}
    return build_stub(EPT_MAP_REQUEST, values, SYNTAXES[NDR20])


@pytest.mark.requirement("MQRR-2.1-02", "MQRR-2.1-01")
@pytest.mark.parametrize("syntax", STUBS, ids=["NDR20", "NDR64"])
def test_question_and_answer_byte_for_byte(syntax):
    question, answer = (bytes.fromhex(text) for text in STUBS[syntax])
    assert map_request(REMOTE_READ, syntax) == question
    assert MAPPER.called(EPT_MAP, question, syntax, ADDRESS) == answer
    assert mapped_port(answer, REMOTE_READ, syntax) == 2103
    for stub, data in ((EPT_MAP_REQUEST, question), (ept_map_response(4), answer)):
        value = parse_stub(stub, data, SYNTAXES[syntax])
        assert build_stub(stub, value, SYNTAXES[syntax]) == data
        again = build_stub(stub, from_json(stub, to_json(stub, value)), SYNTAXES[syntax])
        assert parse_stub(stub, again, SYNTAXES[syntax]) == value


@pytest.mark.parametrize("syntax", STUBS, ids=["NDR20", "NDR64"])
def test_every_cut_is_refused(syntax):
    question, answer = (bytes.fromhex(text) for text in STUBS[syntax])
    for cut in range(len(question)):
        with pytest.raises(RpcFault) as caught:
            MAPPER.called(EPT_MAP, question[:cut], syntax)
        assert caught.value.status == FaultStatus.RPC_X_BAD_STUB_DATA
    for cut in range(len(answer)):
        with pytest.raises(MalformedPacket):
            mapped_port(answer[:cut], REMOTE_READ, syntax)


@pytest.mark.requirement("MQRR-3.1.3-01", "MQRR-2.1-01")
def test_what_is_not_there():
    for interface in (NDR20, REMOTE_READ._replace(major=3), REMOTE_READ._replace(minor=1)):
        stub = MAPPER.called(EPT_MAP, map_request(interface, NDR20), NDR20)
        with pytest.raises(RpcFault) as caught:
            mapped_port(stub, interface, NDR20)
        assert (caught.value.status, caught.value.name) == (0x16C9A0D6, "EPT_S_NOT_REGISTERED")
    pipe = bytes.fromhex(ASKED.replace("0100 07 0200 0000", "0100 0f 0200 5c00"))
    odd = (pipe, b"", b"\5", build_tower(Tower(REMOTE_READ, REMOTE_READ)), bytes.fromhex(ASKED) + b"\0")
    for tower in (*odd, None):
        answer = answered(request(tower))
        assert (answer.num_towers, answer.ITowers, answer.status) == (0, (), FaultStatus.EPT_S_NOT_REGISTERED)
    for opnum in (0, 1, 2, 4):
        with pytest.raises(RpcFault) as caught:
            MAPPER.called(opnum, b"", NDR20)
        assert caught.value.status == FaultStatus.RPC_S_CANNOT_SUPPORT


def test_the_number_of_towers_is_the_client_s():
    for most, count in ((0, 0), (1, 1), (500, 1)):
        stub = MAPPER.called(EPT_MAP, request(bytes.fromhex(ASKED), max_towers=most), NDR20)
        assert parse_stub(ept_map_response(most), stub, SYNTAXES[NDR20]).num_towers == count
    too_many = map_request(REMOTE_READ, NDR20)[:-4] + (501).to_bytes(4, "little")
    with pytest.raises(RpcFault):
        MAPPER.called(EPT_MAP, too_many, NDR20)


def test_answers_without_a_port():
    def answer(*towers, **more):
        values = {"ITowers": [tower and {"tower_octet_string": tower} for tower in towers], **more}
        return build_stub(ept_map_response(4), values, SYNTAXES[NDR64])

    good = build_tower(Tower(REMOTE_READ, NDR20, 7))
    assert mapped_port(answer(None, b"other", good), REMOTE_READ, NDR64) == 7
    other = build_tower(Tower(NDR64, NDR20, 7))
    for wrong in (answer(), answer(None), answer(other), answer(build_tower(Tower(REMOTE_READ, NDR20)))):
        with pytest.raises(MalformedPacket):
            mapped_port(wrong, REMOTE_READ, NDR64)
    with pytest.raises(RpcFault):
        mapped_port(answer(status=5), REMOTE_READ, NDR64)
    counts = answer(good)
    for at in (20, 24, 32, 40):  # num_towers, maximum count, offset, actual count
        with pytest.raises(MalformedPacket):
            mapped_port(counts[:at] + b"\2" + counts[at + 1 :], REMOTE_READ, NDR64)


def test_towers():
    data = bytes.fromhex(FOUND)
    assert parse_tower(data) == Tower(REMOTE_READ, NDR20, 2103, ADDRESS)
    assert build_tower(parse_tower(data)) == data
    assert [floor.lhs[0] for floor in TOWER.parse(data).floors] == [0x0D, 0x0D, 0x0B, 7, 9]
    for at, byte in ((2, 0x12), (4, 0x0E), (61, 8), (69, 3), (69, 5)):
        with pytest.raises(MalformedPacket):
            parse_tower(data[:at] + bytes([byte]) + data[at + 1 :])
    with pytest.raises(InvalidValue):
        build_tower(Tower(REMOTE_READ, NDR20, 0x10000))
