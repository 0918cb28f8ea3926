"""PDUs of big-endian senders: [C706] 14.1. The vectors are laid out by hand."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.errors import MalformedPacket
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import build_request, parse_request
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import NDR20, AuthLevel, AuthType, FaultStatus, PduType
from msmqwire.rpc.endpoint_mapper import EPT_MAP, EPT_MAP_REQUEST, EndpointMapper, mapped_port
from msmqwire.rpc.events import Answered, Bound, Called, Closed
from msmqwire.rpc.ndr import NDR20 as NDR
from msmqwire.rpc.ndr import NDR64, build_stub, to_json
from msmqwire.rpc.pdu import PduFramer, build_pdu, make_pdu, parse_pdu, pdu_from_json
from msmqwire.rpc.pdus import BIG_ENDIAN, LITTLE_ENDIAN, syntax_of
from msmqwire.rpc.security import Security
from msmqwire.rpc.towers import Tower, build_tower
from tests.support.capture import rpc_captures as r
from tests.support.rpc.rpc_pair import Pair, as_big_endian, login, pdu
from tests.support.rpc.rpc_server import ECHO, REMOTE_READ

INTERFACE = "1a9134dd 7b39 45ba ad88 44d01ca47f28 0000 0001"
TRANSFER = "8a885d04 1ceb 11c9 9fe8 08002b104860 0000 0002"
OBJECT = "11223344 5566 7788 99aa bbccddeeff00"
VECTORS = {
    "bind": (
        "05 00 0b 17 00000000 0058 0008 00000001 16d0 16d0 00000102 01 00 0000"
        f"0007 01 00 {INTERFACE} {TRANSFER} 0a 05 00 00 0000002a 4e544c4d53535000",
        {"max_xmit_frag": 5840, "assoc_group_id": 0x102, "n_context_elem": 1},
    ),
    "bind_ack": (
        "05 00 0c 13 00000000 003c 0000 00000001 16d0 16d0 00003039"
        f"0005 3231303300 00 01 00 0000 0000 0000 {TRANSFER}",
        {"port_spec": b"2103\0", "pad2": b"\0", "assoc_group_id": 12345, "n_results": 1},
    ),
    "bind_nak": (
        "05 00 0d 03 00000000 0015 0000 00000001 0008 01 05 00",
        {"provider_reject_reason": 8, "n_protocols": 1},
    ),
    "request": (
        f"05 00 00 83 00000000 002c 0000 00000009 00000004 0007 0001 {OBJECT} 01020304",
        {"alloc_hint": 4, "p_cont_id": 7, "opnum": 1, "object": UUID(OBJECT.replace(" ", ""))},
    ),
    "response": (
        "05 00 02 03 00000000 001c 0000 00000009 00000004 0007 01 00 01020304",
        {"alloc_hint": 4, "p_cont_id": 7, "cancel_count": 1, "stub_data": b"\1\2\3\4"},
    ),
    "fault": (
        "05 00 03 03 00000000 0020 0000 00000009 00000020 0007 00 00 1c010003 00000000",
        {"p_cont_id": 7, "status": 0x1C010003},
    ),
    "rpc_auth_3": (
        "05 00 10 03 00000000 0020 0004 00000001 20202020 0a020000 00000105 01020304",
        {"pad": b"    "},
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_read_built_and_kept_in_json(name):
    text, fields = VECTORS[name]
    data = bytes.fromhex(text)
    parsed = parse_pdu(data)
    record = parsed.record
    assert (record.schema.name, parsed.big_endian) == (name, True)
    assert {field: record[field] for field in fields} == fields
    assert (record.header.frag_length, record.header.packed_drep) == (len(data), BIG_ENDIAN)
    assert build_pdu(parsed) == data
    assert build_pdu(pdu_from_json(parsed.to_json())) == data


def test_the_versions_and_the_verifier_of_a_bind():
    parsed = parse_pdu(bytes.fromhex(VECTORS["bind"][0]))
    (element,) = parsed.record.p_context_elem
    assert (element.p_cont_id, syntax_of(element.abstract_syntax)) == (7, REMOTE_READ)
    assert [syntax_of(each) for each in element.transfer_syntaxes] == [NDR20]
    assert parsed.sec_trailer is not None
    assert (parsed.sec_trailer.auth_context_id, parsed.sec_trailer.auth_value) == (42, b"NTLMSSP\0")


@pytest.mark.parametrize("name", VECTORS)
def test_every_cut_is_refused(name):
    data = bytes.fromhex(VECTORS[name][0])
    for size in range(len(data)):
        with pytest.raises(MalformedPacket):
            parse_pdu(data[:size])
    least = {"bind": 72, "request": 40, "response": 24, "rpc_auth_3": 16, "fault": 32, "bind_nak": 20}
    for size in range(16, least.get(name, len(data))):  # with a length that fits
        cut = data[:8] + size.to_bytes(2, "big") + b"\0\0" + data[12:size]
        with pytest.raises(MalformedPacket):
            parse_pdu(cut)


@pytest.mark.parametrize(
    "at, value, path",
    [
        (8, "000f", "rpcconn_common_hdr_t.frag_length"),
        (8, "5800", "rpcconn_common_hdr_t.frag_length"),
        (8, "ffff", "rpcconn_common_hdr_t.frag_length"),
        (10, "0045", "rpcconn_common_hdr_t.auth_length"),
        (10, "ffff", "rpcconn_common_hdr_t.auth_length"),
        (24, "02", "bind.n_context_elem"),
        (24, "ff", "bind.n_context_elem"),
        (28 + 2, "ff", "bind.p_context_elem"),
        (74, "ff", "sec_trailer.auth_pad_length"),
    ],
)
def test_hostile_lengths_are_refused_at_their_place(at, value, path):
    data = bytearray.fromhex(VECTORS["bind"][0])
    data[at : at + len(value) // 2] = bytes.fromhex(value)
    with pytest.raises(MalformedPacket) as caught:
        parse_pdu(bytes(data))
    assert caught.value.path.startswith(path)


def test_hostile_lengths_of_an_answer():
    for value in ("ffff", "7fff", "002a"):
        data = bytearray.fromhex(VECTORS["bind_ack"][0])
        data[24:26] = bytes.fromhex(value)
        with pytest.raises(MalformedPacket) as caught:
            parse_pdu(bytes(data))
        assert caught.value.path.startswith("bind_ack.port_spec")


# -- the server ---------------------------------------------------------------------------------------------


def bound(**options):
    pair = Pair(bind=False, **options)
    pair.client.bind()
    pair.exchange(change=as_big_endian)
    assert isinstance(pair.told[-1], Bound)
    return pair


def answers(pair):
    return [parse_pdu(frame.data) for frame in PduFramer().feed(pair.server.data_to_send())]


@pytest.mark.parametrize("step", [1, 1 << 20])
def test_a_call_is_answered_in_the_order_of_the_server(step):
    """Each side writes its own order; the receiver makes it right."""
    pair = bound()
    call = pair.client.call(ECHO, b"abcd" * 4_000)  # in fragments
    pair.exchange(step, as_big_endian)
    called = pair.called[-1]
    assert isinstance(called, Called)
    assert (called.call, called.stub, called.big_endian) == (call, b"abcd" * 4_000, True)
    pair.server.answer(call, b"dcba")
    assert [(each.record.header.packed_drep, each.record.stub_data) for each in answers(pair)] == [
        (LITTLE_ENDIAN, b"dcba")
    ]
    call = pair.client.call(99, b"")
    pair.exchange(step, as_big_endian)
    assert (pair.told[-1].call, pair.told[-1].status) == (call, FaultStatus.NCA_S_OP_RNG_ERROR)


@pytest.mark.requirement("MQRR-2.2-02")
@pytest.mark.parametrize("opnum", [Opnum.R_StartReceive, Opnum.R_OpenQueue])
@pytest.mark.parametrize("syntax", [NDR, NDR64])
def test_arguments_are_read_in_the_order_of_the_caller(opnum, syntax):
    pair = bound()
    arguments = r.receive_arguments() if opnum == Opnum.R_StartReceive else r.open_arguments()
    big, little = (syntax.ordered(big_endian=order) for order in (True, False))
    pair.client.call(ECHO, build_request(opnum, arguments, big))
    pair.exchange(change=as_big_endian)
    read = parse_request(opnum, pair.called[-1].stub, syntax.ordered(big_endian=pair.called[-1].big_endian))
    expected = parse_request(opnum, build_request(opnum, arguments, little), little)
    declaration = PROCEDURES[opnum].request
    assert to_json(declaration, read) == to_json(declaration, expected)


def test_fragments_of_a_call_have_one_byte_order():
    pair = bound()
    first, last = (
        pdu(PduType.REQUEST, {"stub_data": b"12345678"}, call_id=7, pfc_flags=flags) for flags in (1, 2)
    )
    assert pair.server.received(as_big_endian(first)) == []
    (closed,) = pair.server.received(last)
    assert isinstance(closed, Closed)
    assert closed.error.path == "rpcconn_common_hdr_t.packed_drep"


class BigEndianSecurity(Security):
    """That of a big-endian client, which signs what it sends."""

    def protected(self, head, body, padding):
        whole = make_pdu(PduType.REQUEST, {})  # the layout of the head alone
        record, _ = whole.record.schema.read(head)
        record.header.packed_drep = BIG_ENDIAN
        head = build_pdu(type(whole)(record))
        trailer = self.trailer(padding)
        trailer = trailer[:4] + trailer[:3:-1]
        sent, signature = self.context.protect(head, body, trailer, seal=self.seals, sign_head=self.sign_head)
        return head + sent + trailer + signature


@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY])
def test_a_user_who_is_big_endian(level):
    context = login(AuthType.WINNT, level, user="LAB\\alice", password="secret 7")
    pair = bound(level=level, security=context)
    protects = level > AuthLevel.CONNECT
    if protects:
        known = pair.client._security
        pair.client._security = BigEndianSecurity(
            known.auth_type, known.level, known.context_id, known.context, known.failed, known.sign_head
        )
    pair.client.call(ECHO, b"abcdefgh")
    pair.exchange(change=(lambda data: data) if protects else as_big_endian)
    called = pair.called[-1]
    assert isinstance(called, Called)
    assert (called.stub[:8], called.identity, called.big_endian) == (b"abcdefgh", "LAB\\alice", True)


# -- the client ---------------------------------------------------------------------------------------------


def test_answers_of_a_big_endian_server():
    pair = Pair(bind=False)
    pair.client.bind()
    pair.server.received(pair.client.data_to_send())
    (event,) = pair.client.received(as_big_endian(pair.server.data_to_send()))
    assert isinstance(event, Bound)
    call = pair.client.call(ECHO, b"x")
    pair.server.received(pair.client.data_to_send())
    pair.server.answer(call, bytes(10_000))
    data = pair.server.data_to_send()
    assert pair.client.received(as_big_endian(data)) == [
        Answered(call, pair.client.transfer_syntax, bytes(10_000), True)
    ]


def test_fragments_of_an_answer_have_one_byte_order():
    pair = Pair()
    call = pair.client.call(ECHO, b"x")
    pair.exchange()
    pair.server.answer(call, bytes(10_000))
    first, *_, last = PduFramer().feed(pair.server.data_to_send())
    assert isinstance(pair.client, ClientAssociation)
    assert pair.client.received(first.data) == []
    (closed,) = pair.client.received(as_big_endian(last.data))
    assert closed.error.path == "rpcconn_common_hdr_t.packed_drep"


@pytest.mark.parametrize("syntax", [NDR, NDR64])
def test_the_endpoint_mapper_reads_both_byte_orders(syntax):
    mapper = EndpointMapper({REMOTE_READ: 2103})
    tower = build_tower(Tower(REMOTE_READ, NDR20))
    values = EPT_MAP_REQUEST.value(obj=UUID(int=0), map_tower={"tower_octet_string": tower}, max_towers=4)
    stub = build_stub(EPT_MAP_REQUEST, values, syntax.ordered(big_endian=True))
    answer = mapper.called(EPT_MAP, stub, syntax.identifier, big_endian=True)
    assert mapped_port(answer, REMOTE_READ, syntax.identifier) == 2103
