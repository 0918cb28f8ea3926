"""What tshark makes of both sides of an association: nothing malformed, the same types, calls and sizes."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import NDR20, NDR64, AuthLevel, AuthType, PduType
from msmqwire.rpc.endpoint_mapper import (
    ENDPOINT_MAPPER,
    ENDPOINT_MAPPER_METHODS,
    EPT_MAP,
    EndpointMapper,
    map_request,
    mapped_port,
)
from msmqwire.rpc.events import Called
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.pdu import parse_pdu
from msmqwire.rpc.server_association import ServerAssociation
from tests.support import captures as c
from tests.support.capture.tshark import tshark
from tests.support.rpc.rpc_pair import PORT, Pair, pdu
from tests.support.rpc.rpc_server import REMOTE_READ

HEADER = ("pkt_type", "cn_call_id", "cn_frag_len", "cn_auth_len", "cn_flags")
MORE = ("opnum", "auth_level", "auth_type", "cn_reject_reason", "cn_max_recv", "cn_assoc_group",
        "cn_num_ctx_items", "cn_ack_result", "cn_sec_addr", "cn_status")  # fmt: skip
EPM = ("epm.opnum", "epm.proto.tcp_port", "epm.proto.ip", "epm.uuid", "epm.num_towers")
CASES = {
    "anonymous": (AuthLevel.NONE, AuthType.WINNT),
    "NTLM, connect": (AuthLevel.CONNECT, AuthType.WINNT),
    "NTLM, integrity": (AuthLevel.PKT_INTEGRITY, AuthType.WINNT),
    "NTLM, privacy": (AuthLevel.PKT_PRIVACY, AuthType.WINNT),
    "SPNEGO, privacy": (AuthLevel.PKT_PRIVACY, AuthType.GSS_NEGOTIATE),
}
REFUSED, MAPPED = "refused", "endpoint mapper"


def conversation(level: AuthLevel, auth_type: AuthType) -> list[tuple[bool, bytes]]:
    """Fragments both ways, answers in another order, a fault, a cancel, an orphaned call and a shutdown."""
    pair = Pair(level, auth_type)
    calls = [
        pair.client.call(number, bytes([number]) * size) for number, size in enumerate((20_001, 3, 0, 8))
    ]
    pair.exchange()
    assert [event.call for event in pair.called if isinstance(event, Called)] == calls
    pair.server.answer(calls[1], b"z" * 12_345)
    pair.server.fault(calls[0], 0xC00E0003)
    pair.client.cancel(calls[2])
    pair.exchange()
    pair.server.answer(calls[2], b"")
    pair.client.orphan(calls[3])
    pair.server.shutdown()
    pair.exchange()
    return pair.pdus


def refused() -> list[tuple[bool, bytes]]:
    pair = Pair(bind=False)
    pair.client.bind()
    bind = pair.client.data_to_send()
    pair.server.received(pdu(PduType.BIND, {"max_recv_frag": 100}, call_id=1))
    return [(True, bind), (False, pair.server.data_to_send())]


def mapped() -> list[tuple[bool, bytes]]:
    """The port of an interface in NDR20, and in NDR64."""
    pdus = []
    for syntax in (NDR20, NDR64):
        client = ClientAssociation(ENDPOINT_MAPPER, transfer_syntaxes=(syntax,))
        server = ServerAssociation({ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}, groups=AssociationGroups())
        client.bind()
        pdus.append((True, client.data_to_send()))
        server.received(pdus[-1][1])
        pdus.append((False, server.data_to_send()))
        client.received(pdus[-1][1])
        client.call(EPT_MAP, map_request(REMOTE_READ, syntax))
        pdus.append((True, client.data_to_send()))
        (called,) = server.received(pdus[-1][1])
        address = IPv4Address("10.0.0.5")
        mapper = EndpointMapper({REMOTE_READ: 49_321})
        server.answer(called.call, mapper.called(called.opnum, called.stub, syntax, address))
        pdus.append((False, server.data_to_send()))
        (answered,) = client.received(pdus[-1][1])
        assert mapped_port(answered.stub, REMOTE_READ, syntax) == 49_321
    return pdus


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """By conversation: its PDUs, and of each what tshark says. One run of tshark, which starts slowly."""
    talks = {name: conversation(*case) for name, case in CASES.items()}
    talks |= {
        REFUSED: refused(),
        MAPPED: mapped(),
    }
    frames = []
    for number, pdus in enumerate(talks.values()):
        talk = c.TcpConversation((c.CLIENT, 50_000 + number), (c.SERVER, PORT), mss=20_000).handshake()
        for by_client, data in pdus:
            talk.send(data, by_client=by_client)
        frames += talk.close().frames
    path = tmp_path_factory.mktemp("rpc") / "a.pcap"
    path.write_bytes(c.pcap_bytes(frames))
    names = ["tcp.stream", "_ws.malformed", *EPM, *(f"dcerpc.{name}" for name in (*HEADER, *MORE))]
    arguments = [argument for name in names for argument in ("-e", name)]
    lines = tshark(path, "-d", f"tcp.port=={PORT},dcerpc", "-Y", "dcerpc", "-T", "fields", *arguments)
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in lines.splitlines()]
    return {
        name: (pdus, [row for row in rows if row["tcp.stream"] == str(number)])
        for number, (name, pdus) in enumerate(talks.items())
    }


def number(text: str) -> int | None:
    return int(text, 0) if text else None


@pytest.mark.parametrize("name", [*CASES, REFUSED, MAPPED])
def test_types_calls_sizes_and_methods(seen, name):
    pdus, rows = seen[name]
    records = [parse_pdu(data).record for _, data in pdus]
    heads = [record.header for record in records]
    ours = [(h.PTYPE, h.call_id, h.frag_length, h.auth_length, h.pfc_flags) for h in heads]
    assert [tuple(number(row[f"dcerpc.{field}"]) for field in HEADER) for row in rows] == ours
    assert not any(row["_ws.malformed"] for row in rows)
    for record, row in zip(records, rows, strict=True):
        if record.header.PTYPE == PduType.REQUEST:
            assert number(row["dcerpc.opnum"]) == record.opnum
        if record.header.PTYPE == PduType.FAULT:
            assert number(row["dcerpc.cn_status"]) == record.status


@pytest.mark.parametrize("name", CASES)
def test_every_type_of_pdu_is_among_them(seen, name):
    level, auth_type = CASES[name]
    expected = set(PduType) - {
        PduType.BIND_NAK,
        PduType.ALTER_CONTEXT,
        PduType.ALTER_CONTEXT_RESP,
        PduType.AUTH3,
    }
    if level > AuthLevel.NONE:
        ntlm = auth_type == AuthType.WINNT
        expected |= {PduType.AUTH3} if ntlm else {PduType.ALTER_CONTEXT, PduType.ALTER_CONTEXT_RESP}
    pdus, rows = seen[name]
    assert {data[2] for _, data in pdus} == expected
    verifiers = {(row["dcerpc.auth_level"], row["dcerpc.auth_type"]) for row in rows} - {("", "")}
    assert verifiers == ({(str(level), str(auth_type))} if level > AuthLevel.NONE else set())


def test_what_a_bind_and_its_answers_say(seen):
    (bind, ack, *_), (*_, nak) = seen["anonymous"][1], seen[REFUSED][1]
    assert (bind["dcerpc.cn_num_ctx_items"], bind["dcerpc.cn_max_recv"]) == ("3", "5840")
    assert (ack["dcerpc.cn_ack_result"], ack["dcerpc.cn_sec_addr"]) == ("0,2,3", str(PORT))
    assert (number(ack["dcerpc.cn_assoc_group"]), ack["dcerpc.cn_max_recv"]) == (1, "5840")
    assert nak["dcerpc.cn_reject_reason"] == "4"


def test_the_endpoint_mapper(seen):
    """The question and the answer in NDR20; tshark does not read those in NDR64 as such."""
    question, answer = seen[MAPPED][1][2:4]
    assert (question["epm.opnum"], question["epm.proto.tcp_port"]) == ("3", "0")
    assert question["epm.uuid"].split(",")[-2] == str(REMOTE_READ.uuid)
    assert (answer["epm.num_towers"], answer["epm.proto.tcp_port"]) == ("1", "49321")
    assert answer["epm.proto.ip"] == "10.0.0.5"
